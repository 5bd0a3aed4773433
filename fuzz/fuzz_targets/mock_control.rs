//! Whatever calls the control API, and what arrives while those calls hold.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use ressac_mock::fuzzing::Unplugged;

static MOCK: LazyLock<Unplugged> = LazyLock::new(Unplugged::new);

fuzz_target!(|data: &[u8]| {
    let requests = MOCK.talk(data);
    assert!(requests <= data.len());
});
