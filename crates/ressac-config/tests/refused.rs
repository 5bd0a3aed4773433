//! What is refused: all of it at once, and nothing that is only a guess.

#![allow(clippy::unwrap_used)]

use ressac_config::{Config, Environment};

fn parse(text: &str) -> Config {
    Config::parse("t.toml", text, &Environment::of([])).unwrap()
}

fn codes(text: &str) -> Vec<&'static str> {
    let error = Config::parse("t.toml", text, &Environment::of([])).unwrap_err();
    error.diagnostics().iter().map(|d| d.code()).collect()
}

#[test]
fn all_errors_are_told_at_once() {
    for (text, all) in [
        // A value that is refused hides no contradiction of others.
        (
            "[policy.p]\nwindow = \"0s\"\nretries = -1",
            &["contradiction", "bad-value"][..],
        ),
        (
            "[policy.p]\nbase = \"1m\"\ncap = \"1s\"\nretrys = 1",
            &["contradiction", "unknown-key"],
        ),
        (
            "[policy.p]\nextends = \"q\"\nwindow = \"0s\"\n[policy.q]\nretries = -1",
            &["contradiction", "bad-value"],
        ),
        (
            "[policy.p]\nextends = \"q\"\nwindow = \"0s\"",
            &["unknown-policy", "contradiction"],
        ),
        (
            "[policy.p]\nmode = \"no\"\nwindow = \"0s\"",
            &["bad-value", "contradiction"],
        ),
        // A list is read to its end.
        (
            "[policy.p]\nretry_on = [1, 503, \"x\", 2]",
            &["bad-value"; 3],
        ),
        ("[policy.p]\nunprocessed = [1, \"503\"]", &["bad-value"; 2]),
        (
            "[policy.p]\nalready_done = [1, true]",
            &["bad-value", "wrong-type"],
        ),
        (
            "[policy.p]\nretry_after = { vendor = [\"a\", 2] }",
            &["bad-value", "wrong-type"],
        ),
        // A partner that is nowhere has other faults too.
        (
            "[partner.a]\npolicy = \"q\"",
            &["missing-key", "unknown-policy"],
        ),
        (
            "[partner.a]\nurl = \"ftp://a\"\npolicy = \"sync\"",
            &["bad-value", "contradiction"],
        ),
        (
            "[policy.p]\nwindow = \"0s\"\n[partner.a]\nurl = 1\npolicy = \"p\"",
            &["contradiction", "wrong-type"],
        ),
    ] {
        assert_eq!(codes(text), all, "{text}");
    }
    let many = format!("[policy.p]\nalready_done = [{}]", "1, ".repeat(5_000));
    assert_eq!(codes(&many).len(), 17);
}

/// What was refused may have been right in what it contradicts.
#[test]
fn nothing_is_said_over_a_value_that_was_refused() {
    for (text, all) in [
        ("[policy.p]\nbase = \"1m\"\ncap = \"2\"", &["bad-value"][..]),
        ("[policy.p]\nbase = \"1m\"\ncpa = \"2m\"", &["unknown-key"]),
        (
            "[policy.p]\nbase = \"1m\"\nmax_delay = \"2m\"",
            &["unknown-key"],
        ),
        (
            "[policy.p]\nbase = \"1m\"\nmode = \"durabel\"",
            &["bad-value"],
        ),
        (
            "[policy.p]\nbase = \"1m\"\nextends = \"nobody\"",
            &["unknown-policy"],
        ),
        (
            "[policy.p]\nextends = \"q\"\nbase = \"1m\"\n[policy.q]\ncap = \"2\"",
            &["bad-value"],
        ),
        (
            "[policy.p]\nbreaker = { window = 5, min_calls = 0.5 }",
            &["wrong-type"],
        ),
        (
            "[policy.p]\nbudget = { ratio = 0, reserve = -1, trickle = \"off\" }",
            &["bad-value"],
        ),
        // A group that was refused, then said in part.
        (
            "[policy.p]\nextends = \"q\"\nbreaker = { open = \"2m\" }\n[policy.q]\nbreaker = 1",
            &["wrong-type"],
        ),
        (
            "[gateway]\nmax_store = \"15MB\"\nmax_body = 1",
            &["wrong-type"],
        ),
        (
            "[gateway]\nlisten = \"0.0.0.0:7070\"\n[partner.a]\nurl = \"http://localhost:7070\"",
            &["bad-value"],
        ),
    ] {
        assert_eq!(codes(text), all, "{text}");
    }
}

#[test]
fn a_key_comes_in_a_header_of_its_own() {
    for header in [
        "Content-Type",
        "content-length",
        "Host",
        "Authorization",
        "Connection",
        "Transfer-Encoding",
        "Date",
        "User-Agent",
        "Cookie",
        "Ressac-Key",
    ] {
        let text =
            format!("[partner.a]\nurl = \"http://a\"\nidempotency = {{ header = \"{header}\" }}");
        assert_eq!(codes(&text), ["bad-value"], "{header}");
    }
    for header in [
        "Idempotency-Key",
        "webhook-id",
        "Message-ID",
        "X-Request-Id",
    ] {
        let text =
            format!("[partner.a]\nurl = \"http://a\"\nidempotency = {{ header = \"{header}\" }}");
        assert_eq!(
            parse(&text).partners()[0]
                .idempotency
                .as_ref()
                .unwrap()
                .header,
            header
        );
    }
}

#[test]
fn a_partner_is_not_the_gateway_itself() {
    let itself = "[partner.a]\nurl = \"http://localhost:7070/v1\"\n";
    assert_eq!(codes(itself), ["contradiction"]);
    let told = "[gateway]\nlisten = \"[::1]:8080\"\n[partner.a]\nurl = \"http://127.0.0.1:8080\"";
    let error = Config::parse("t.toml", told, &Environment::of([])).unwrap_err();
    let text = error.to_string();
    assert_eq!(error.diagnostics().len(), 1, "{text}");
    assert!(
        text.contains("without end") && text.contains("listens here"),
        "{text}"
    );
    // Another gateway, or a port that is not chosen yet.
    parse(&format!("[gateway]\nlisten = \"127.0.0.1:7071\"\n{itself}"));
    parse(&format!("[gateway]\nlisten = \"127.0.0.1:0\"\n{itself}"));
}

#[test]
fn cf_4_more_in_flight_than_the_gateway_holds_is_refused() {
    let most = parse("[policy.p]\nlimit = { concurrency = 1024 }");
    let limit = &most.policy("p").unwrap().policy().limit;
    assert_eq!(limit.concurrency, Some(1_024));
    assert_eq!(
        codes("[policy.p]\nlimit = { concurrency = 1025 }"),
        ["bad-value"]
    );
}
