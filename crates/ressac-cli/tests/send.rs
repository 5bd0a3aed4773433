//! `ressac send` against a partner that fails: every reason it can end for, and what it sent.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::{Duration, Instant};

use common::{Ran, command, finish, policy, ressac, ressac_with, signal};
use ressac_mock::Mock;

/// Quick, and nothing but its retries ends it.
const FAST: &str =
    "retries = 2\nbase = \"5ms\"\ncap = \"20ms\"\nbreaker = \"off\"\nbudget = \"off\"\n";

fn send(url: &str, text: &str, args: &[&str]) -> Ran {
    let (_folder, spec) = policy(text);
    ressac(&[&["send", url, "--policy", &spec], args].concat())
}

/// Each reason has its own code, and its word stands in the last line.
fn ends(ran: &Ran, code: i32, reason: &str) {
    assert_eq!(ran.code, code, "{ran:?}");
    let line = ran.err.lines().last().unwrap();
    assert!(
        line.starts_with(&format!("error: {reason} after ")),
        "{ran:?}"
    );
}

#[test]
fn delivered_after_retries_with_its_body_on_stdout() {
    let mock = Mock::start_blocking();
    let get = mock.script("GET", "503 x2, 200 text=\"hello\"");
    let ran = send(&get.url(), FAST, &[]);
    assert_eq!(
        (ran.code, ran.out.as_str(), ran.err.as_str()),
        (0, "hello", "")
    );
    get.verify();
}

#[test]
fn ra_3_retry_after_is_a_floor() {
    let mock = Mock::start_blocking();
    let get = mock.script("GET", "503 ra=1, 200");
    let ran = send(&get.url(), FAST, &["--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let gap = get.gaps()[0];
    assert!(gap >= Duration::from_secs(1), "{gap:?}");
    let wait = &ran.json()["history"][0]["waits"][0];
    assert_eq!(wait["because"], "retry_after");
    assert_eq!(
        (&wait["floor_ms"], &wait["hint_ms"]),
        (&1000.into(), &1000.into())
    );
    get.verify();
}

#[test]
fn permanent_prints_the_body_and_is_10() {
    let mock = Mock::start_blocking();
    let post = mock.script("POST", "422 text=\"no such account\"");
    let ran = send(&post.url(), FAST, &["-d", "x"]);
    ends(&ran, 10, "permanent");
    assert_eq!(ran.out, "no such account");
    post.verify();
}

#[test]
fn ht_3_redirects_are_not_followed() {
    let mock = Mock::start_blocking();
    let target = mock.script("GET", "200 x*");
    let script = format!("307 h=Location:{}", target.url());
    let get = mock.script("GET", &script);
    let ran = send(&get.url(), FAST, &[]);
    ends(&ran, 10, "permanent");
    assert!(ran.err.contains("redirects are not followed"), "{ran:?}");
    assert_eq!(target.attempts().len(), 0);
}

/// VR-3: a POST that may have been processed is not repeated without a key.
#[test]
fn vr_3_ambiguous_is_11_and_arrives_once() {
    let mock = Mock::start_blocking();
    let post = mock.script("POST", "201 create rst@req, 201 create x*");
    let ran = send(&post.url(), FAST, &["-d", "x"]);
    ends(&ran, 11, "ambiguous");
    assert!(ran.err.contains("processed maybe"), "{ran:?}");
    assert!(
        ran.err.contains("only if the partner honours keys"),
        "{ran:?}"
    );
    assert_eq!((post.attempts().len(), post.effects()), (1, 1));
}

/// With a key the same bytes go out again, and the partner does it once.
#[test]
fn ik_1_with_a_key_the_same_key_goes_out_twice() {
    for key in [&["--key", "order-17"][..], &["--make-key"]] {
        let mock = Mock::start_blocking();
        let post = mock.script("POST", "201 create rst@req, 201 create");
        let ran = send(&post.url(), FAST, &[&["-d", "x", "--json"], key].concat());
        assert_eq!(ran.code, 0, "{ran:?}");
        let report = ran.json();
        assert_eq!(report["attempts"], 2);
        let sent: Vec<_> = post.attempts().into_iter().map(|a| a.key).collect();
        let key = report["key"].as_str().unwrap();
        assert_eq!(sent, [Some(key.to_owned()), Some(key.to_owned())]);
        assert_eq!(post.effects(), 1);
    }
}

/// VR-2: a proxy may answer 503 after the application has paid.
#[test]
fn vr_2_a_post_answered_503_is_ambiguous_and_answered_429_is_not() {
    let mock = Mock::start_blocking();
    let post = mock.script("POST", "503 x*");
    ends(&send(&post.url(), FAST, &["-d", "x"]), 11, "ambiguous");
    assert_eq!(post.attempts().len(), 1);
    let post = mock.script("POST", "429, 201");
    assert_eq!(send(&post.url(), FAST, &["-d", "x"]).code, 0);
    assert_eq!(post.attempts().len(), 2);
}

#[test]
fn the_callers_word_makes_a_post_repeatable() {
    let mock = Mock::start_blocking();
    let post = mock.script("POST", "rst@req, 201");
    let ran = send(&post.url(), FAST, &["-d", "x", "--idempotent"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    // No key goes out behind the caller's back.
    assert_eq!(post.keys(), Vec::<String>::new());
}

#[test]
fn exhausted_is_12_after_all_retries() {
    let mock = Mock::start_blocking();
    let get = mock.script("GET", "503 text=\"down\" x*");
    let ran = send(&get.url(), FAST, &[]);
    ends(&ran, 12, "exhausted");
    assert_eq!((get.attempts().len(), ran.out.as_str()), (3, "down"));
}

#[test]
fn wd_3_window_closed_is_13_without_sleeping() {
    let mock = Mock::start_blocking();
    let get = mock.script("GET", "503 ra=60 x*");
    let begun = Instant::now();
    let text = format!("{FAST}window = \"30s\"\nattempt_timeout = \"5s\"\n");
    let ran = send(&get.url(), &text, &["--json"]);
    ends(&ran, 13, "window_closed");
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert_eq!(
        (get.attempts().len(), &ran.json()["hint_ms"]),
        (1, &60_000.into())
    );
}

#[test]
fn a_moment_that_has_passed_sends_nothing() {
    let mock = Mock::start_blocking();
    let get = mock.script("GET", "200 x*");
    for moment in ["2020-01-01T00:00:00Z", "Wed, 01 Jan 2020 00:00:00 GMT"] {
        let ran = ressac(&["send", &get.url(), "--deliver-by", moment]);
        ends(&ran, 13, "window_closed");
    }
    assert_eq!(get.attempts().len(), 0);
}

#[test]
fn circuit_open_is_14() {
    let mock = Mock::start_blocking();
    let get = mock.script("GET", "500 x*");
    let text = "retries = 9\nbase = \"5ms\"\ncap = \"20ms\"\nbudget = \"off\"\nretry_on = [500]\n\
                breaker = { consecutive = 3, open = \"20s\" }\n";
    let ran = send(&get.url(), text, &[]);
    ends(&ran, 14, "circuit_open");
    assert_eq!(get.attempts().len(), 3);
}

#[test]
fn bu_1_budget_spent_is_15() {
    let mock = Mock::start_blocking();
    let get = mock.script("GET", "503 x*");
    let text = "retries = 9\nbase = \"5ms\"\ncap = \"20ms\"\nbreaker = \"off\"\n\
                budget = { ratio = 0.0, reserve = 1, trickle = \"off\" }\n";
    let ran = send(&get.url(), text, &[]);
    ends(&ran, 15, "budget_spent");
    assert_eq!(get.attempts().len(), 2);
}

#[test]
fn hint_over_max_is_17() {
    let mock = Mock::start_blocking();
    let get = mock.script("GET", "429 ra=100 x*");
    let text = format!("{FAST}retry_after = {{ max = \"1s\", over_max = \"give_up\" }}\n");
    let ran = send(&get.url(), &text, &[]);
    ends(&ran, 17, "hint_over_max");
    assert!(ran.err.contains("asks for 100s"), "{ran:?}");
    assert_eq!(get.attempts().len(), 1);
}

/// What an inner layer has given up on is not retried on top.
#[test]
fn vr_5_upstream_gave_up_is_18() {
    let mock = Mock::start_blocking();
    let get = mock.script("GET", "503 h=Ressac-Reason:exhausted x*");
    let ran = send(&get.url(), FAST, &[]);
    ends(&ran, 18, "upstream_gave_up");
    assert_eq!(get.attempts().len(), 1);
}

#[cfg(unix)]
#[test]
fn ca_1_cancelled_in_a_wait_is_19_at_once() {
    let mock = Mock::start_blocking();
    let get = mock.script("GET", "503 ra=60 x*");
    for name in ["-INT", "-TERM"] {
        let before = get.attempts().len();
        let child = command(&["send", &get.url(), "-v", "--json"])
            .spawn()
            .unwrap();
        get.wait_done_blocking(before + 1, Duration::from_secs(30))
            .unwrap();
        // The reply has left the partner; give the client time to be in its wait.
        std::thread::sleep(Duration::from_millis(300));
        let begun = Instant::now();
        signal(&child, name);
        let ran = finish(child);
        assert!(begun.elapsed() < Duration::from_secs(10));
        ends(&ran, 19, "cancelled");
        assert!(ran.err.contains("may have been processed"), "{ran:?}");
        assert_eq!(ran.json()["attempts"], 1);
        assert_eq!(get.attempts().len(), before + 1);
    }
}

#[cfg(unix)]
#[test]
fn cancelled_in_an_attempt_says_that_it_may_have_arrived() {
    let mock = Mock::start_blocking();
    let post = mock.script("POST", "200 hold=60s x*");
    let child = command(&["send", &post.url(), "-d", "x", "--key", "k1", "--json"])
        .spawn()
        .unwrap();
    post.wait_attempts_blocking(1, Duration::from_secs(30))
        .unwrap();
    signal(&child, "-INT");
    let ran = finish(child);
    ends(&ran, 19, "cancelled");
    assert!(ran.err.contains("ended by SIGINT"), "{ran:?}");
    assert!(ran.err.contains("send it again with --key k1"), "{ran:?}");
    let report = ran.json();
    assert_eq!(report["processed"], "maybe");
    assert_eq!(report["history"][0]["outcome"], "cancelled");
}

#[test]
fn nothing_listens_there() {
    // A free port could be taken by a test beside this one; nobody listens on the first.
    let url = "http://127.0.0.1:1/";
    let ran = send(url, FAST, &["-d", "x", "--json"]);
    ends(&ran, 12, "exhausted");
    assert!(ran.err.contains("was not processed"), "{ran:?}");
    let report = ran.json();
    assert_eq!(
        (&report["blame"], &report["processed"]),
        (&"network".into(), &"no".into())
    );
    assert_eq!(report["history"][0]["outcome"], "refused");
}

#[test]
fn ex_1_the_same_body_goes_out_on_every_attempt() {
    let mock = Mock::start_blocking();
    let put = mock.script("PUT", "503, 200");
    let (_folder, spec) = policy(FAST);
    let args = [
        "send",
        &put.url(),
        "-X",
        "PUT",
        "-d",
        "@-",
        "--policy",
        &spec,
    ];
    let ran = ressac_with(&args, b"line\n\xff\x00end");
    assert_eq!(ran.code, 0, "{ran:?}");
    let bodies: Vec<_> = put
        .attempts()
        .iter()
        .map(|a| a.body_sha256.clone())
        .collect();
    assert_eq!(bodies.len(), 2);
    assert_eq!(bodies[0], bodies[1]);
    assert_eq!(put.attempts()[0].body_len, 10);
}
