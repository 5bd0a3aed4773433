//! Whatever stands in a scenario or a script is read or refused, never a panic; and a script that is
//! read prints what reads to the same script.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ressac_mock::{AcceptScript, Script, fuzzing};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(script) = text.parse::<Script>() {
        let printed = script.to_string();
        assert_eq!(
            printed.parse::<Script>().as_ref(),
            Ok(&script),
            "{text:?} printed as {printed:?}"
        );
        for n in [1, 2, u64::MAX] {
            let index = script.step_for(n);
            assert!(index.is_none_or(|i| i < script.steps.len()));
        }
    }
    if let Ok(script) = text.parse::<AcceptScript>() {
        // The last step repeats, so there is always one.
        let _ = (script.action_for(1), script.action_for(u64::MAX));
    }
    if let Err(error) = fuzzing::scenario(text) {
        assert!(error.line() <= text.lines().count() + 1, "{error}");
    }
});
