//! Whatever a client sends to the faulty partner: heads of HTTP/1, frames and header fields of
//! HTTP/2. The first byte chooses.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ressac_mock::fuzzing;

fuzz_target!(|data: &[u8]| {
    let Some((kind, bytes)) = data.split_first() else {
        return;
    };
    let parsed = match kind % 2 {
        0 => fuzzing::request_heads(bytes),
        _ => fuzzing::frames(bytes),
    };
    // Each took at least a byte, so none was made of nothing.
    assert!(parsed <= bytes.len());
});
