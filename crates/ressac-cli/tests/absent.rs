//! A build for testers, without the gateway and the simulator, says what it lacks.
//! `cargo test -p ressac-cli --no-default-features --test absent`

#![cfg(not(any(feature = "gateway", feature = "sim")))]

mod common;

use common::ressac;

#[test]
fn what_is_missing_says_how_to_get_it() {
    for (name, rest) in [
        ("serve", "ressac.toml"),
        ("sim", "--help"),
        ("demo", "--json"),
    ] {
        let ran = ressac(&[name, rest]);
        assert_eq!(ran.code, 64, "{ran:?}");
        assert!(ran.err.contains(&format!("without `{name}`")), "{ran:?}");
        assert!(ran.err.contains("cargo install"), "{ran:?}");
    }
}

#[test]
fn help_does_not_offer_it() {
    let ran = ressac(&["--help"]);
    let offered = |name: &str| {
        ran.out
            .lines()
            .any(|line| line.trim_start().starts_with(name))
    };
    assert!(offered("prove ") && offered("mock "), "{ran:?}");
    assert!(!offered("serve ") && !offered("sim "), "{ran:?}");
}
