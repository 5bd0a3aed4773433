//! Whatever stands in a rule is read or refused; a rule that is read prints what reads to the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ressac_prove::Rule;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    match text.parse::<Rule>() {
        Ok(rule) => {
            let printed = rule.to_string();
            assert_eq!(
                printed.parse::<Rule>().as_ref(),
                Ok(&rule),
                "{text:?} printed as {printed:?}"
            );
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
