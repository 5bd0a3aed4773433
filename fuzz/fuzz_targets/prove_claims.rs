//! Whatever stands in a claims file or a list of known failures is read or refused with its line.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ressac_prove::{Claims, KnownFailing};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    match Claims::parse("claims.toml", text) {
        Ok(claims) => {
            for need in ["st:503", "m:PUT", "err:reset", "ra:date", "kst:409", "set:base"] {
                let _ = claims.has(need);
            }
            let _ = claims.count();
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    if let Err(error) = KnownFailing::parse("known.toml", text) {
        assert!(!error.to_string().is_empty());
    }
});
