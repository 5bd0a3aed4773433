//! What `ressac send` prints and keeps: stdout, `-o`, `-i`, `-v`, `--json`, and what it refuses.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Ran, command, finish, policy, ressac};
use ressac_mock::Mock;

const FAST: &str =
    "retries = 2\nbase = \"5ms\"\ncap = \"20ms\"\nbreaker = \"off\"\nbudget = \"off\"\n";

fn send(url: &str, args: &[&str]) -> Ran {
    let (_folder, spec) = policy(FAST);
    ressac(&[&["send", url, "--policy", &spec], args].concat())
}

#[test]
fn a_file_gets_the_whole_reply_and_stdout_nothing() {
    let mock = Mock::start_blocking();
    let get = mock.script("GET", "200 text=\"whole\" x*");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("reply");
    std::fs::write(&file, "an older and longer reply").unwrap();
    let ran = send(&get.url(), &["-o", file.to_str().unwrap()]);
    assert_eq!((ran.code, ran.out.as_str()), (0, ""), "{ran:?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "whole");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// A reply cut in its body is never passed off as whole, nor put in place of an older file.
#[test]
fn without_a_whole_reply_an_old_file_stays() {
    let mock = Mock::start_blocking();
    let get = mock.script("GET", "200 cl=100 body=10 x*");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("reply");
    std::fs::write(&file, "old").unwrap();
    let ran = send(&get.url(), &["-o", file.to_str().unwrap()]);
    assert_eq!(ran.code, 12, "{ran:?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "old");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    assert_eq!(send(&get.url(), &[]).out, "");
}

#[test]
fn a_place_that_cannot_be_written_is_found_before_anything_is_sent() {
    let mock = Mock::start_blocking();
    let get = mock.script("GET", "200 x*");
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("missing/reply");
    for place in [&inside, folder.path()] {
        let ran = send(&get.url(), &["-o", place.to_str().unwrap()]);
        assert_eq!(ran.code, 64, "{ran:?}");
        let named = format!("--output {} cannot be written: ", place.display());
        assert!(ran.err.contains(&named), "{ran:?}");
        // The draft's own name says nothing to anybody.
        assert!(!ran.err.contains(".ressac-"), "{ran:?}");
    }
    assert_eq!(get.attempts().len(), 0);
}

#[test]
fn include_puts_the_head_before_the_body() {
    let mock = Mock::start_blocking();
    let get = mock.script("GET", "404 h=X-Why:gone text=\"no\" x*");
    let ran = send(&get.url(), &["-i"]);
    assert_eq!(ran.code, 10);
    let (head, body) = ran.out.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 404 Not Found\r\n"), "{head}");
    assert!(head.contains("x-why: gone"), "{head}");
    assert_eq!(body, "no");
}

#[test]
fn json_is_one_object_with_the_history() {
    let mock = Mock::start_blocking();
    let get = mock.script("GET", "503, rst@req, 200 text=\"hello\"");
    let ran = send(&get.url(), &["--json"]);
    let report = ran.json();
    let mut keys: Vec<_> = report
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    keys.sort_unstable();
    assert_eq!(
        keys,
        [
            "already_done",
            "attempts",
            "blame",
            "body_len",
            "elapsed_ms",
            "hint_ms",
            "history",
            "key",
            "ok",
            "processed",
            "reason",
            "status"
        ]
    );
    assert_eq!(
        (&report["ok"], &report["reason"]),
        (&true.into(), &"delivered".into())
    );
    assert_eq!(
        (&report["status"], &report["body_len"]),
        (&200.into(), &5.into())
    );
    let history = report["history"].as_array().unwrap();
    let outcomes: Vec<_> = history
        .iter()
        .map(|a| a["outcome"].as_str().unwrap())
        .collect();
    assert_eq!(outcomes, ["status", "reset", "status"]);
    assert_eq!(history[0]["kind"], "first");
    assert_eq!(history[1]["kind"], "retry");
    assert_eq!(history[0]["waits"][0]["because"], "backoff");
    assert_eq!(history[0]["waits"][0]["ceiling_ms"], 5);
    assert_eq!(history[1]["waits"][0]["ceiling_ms"], 10);
    assert_eq!(history[2]["waits"].as_array().unwrap().len(), 0);
}

#[test]
fn verbose_tells_each_attempt_and_decision_and_no_secret() {
    let mock = Mock::start_blocking();
    let get = mock.script("GET", "503 ra=1, 200 text=\"hello\"");
    let url = format!("{}?token=hunter2", get.url());
    let ran = send(&url, &["-v", "-H", "Authorization: Bearer hunter2"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "hello"), "{ran:?}");
    let lines: Vec<_> = ran.err.lines().collect();
    assert_eq!(lines.len(), 6, "{ran:?}");
    assert!(lines[0].starts_with("* attempt 1 of at most 3 (first): GET to 127.0.0.1:"));
    assert!(lines[1].starts_with("* attempt 1: 503 Service Unavailable after "));
    assert!(lines[1].ends_with("; blame partner, processed maybe; Retry-After asks for 1s"));
    assert!(
        lines[2].contains("because retry_after: floor 1s + jitter "),
        "{ran:?}"
    );
    assert!(lines[2].ends_with(", ceiling 0.005s, hint 1s"), "{ran:?}");
    assert!(lines[3].starts_with("* attempt 2 of at most 3 (retry): "));
    assert!(lines[4].starts_with("* attempt 2: 200 OK after "));
    assert!(lines[5].starts_with("* delivered after 2 attempts in "));
    // DM-1: the header's value and the query stay out of it.
    assert!(
        !ran.err.contains("hunter2") && !ran.err.contains(get.token()),
        "{ran:?}"
    );
    assert_eq!(
        get.attempts()[0].header("authorization"),
        Some("Bearer hunter2")
    );
}

#[test]
fn a_body_over_max_body_is_not_passed_off_as_whole() {
    let mock = Mock::start_blocking();
    let get = mock.script("GET", "200 body=5000 x*");
    let ran = send(&get.url(), &["--max-body", "4KB"]);
    assert_eq!((ran.code, ran.out.len()), (70, 4000), "{}", ran.err);
    assert!(ran.err.contains("delivered, but"), "{}", ran.err);
}

#[test]
fn a_reader_that_has_gone_away_is_no_error() {
    let mock = Mock::start_blocking();
    let get = mock.script("GET", "200 body=3000000 x*");
    let mut child = command(&["send", &get.url()]).spawn().unwrap();
    drop(child.stdout.take());
    let ran = finish(child);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
}

/// What was sent is said even where its reply is lost.
#[cfg(target_os = "linux")]
#[test]
fn st_2_a_full_disk_is_told_with_what_was_delivered() {
    let mock = Mock::start_blocking();
    let get = mock.script("GET", "200 text=\"hello\" x*");
    let full = || {
        std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap()
    };
    for args in [&[][..], &["--json"]] {
        let child = command(&[&["send", &get.url()], args].concat())
            .stdout(full())
            .spawn()
            .unwrap();
        let ran = finish(child);
        assert_eq!(ran.code, 70, "{ran:?}");
        assert!(ran.err.contains("delivered, but"), "{ran:?}");
    }
    let ran = send(&get.url(), &["-o", "/dev/full"]);
    assert_eq!(ran.code, 70, "{ran:?}");
    assert!(
        ran.err
            .contains("delivered, but the reply could not be written to /dev/full: ")
    );
}

#[cfg(unix)]
#[test]
fn a_link_and_an_umask_are_respected() {
    use std::os::unix::fs::PermissionsExt;
    let mock = Mock::start_blocking();
    let get = mock.script("GET", "200 text=\"new\" x*");
    let folder = tempfile::tempdir().unwrap();
    let (file, link) = (folder.path().join("file"), folder.path().join("link"));
    std::fs::write(&file, "old").unwrap();
    let usual = std::fs::metadata(&file).unwrap().permissions().mode();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    assert_eq!(send(&get.url(), &["-o", link.to_str().unwrap()]).code, 0);
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "new");
    assert_eq!(
        std::fs::metadata(&file).unwrap().permissions().mode(),
        usual
    );
}

#[test]
fn ht_8_what_cannot_be_sent_is_64_and_not_sent() {
    let mock = Mock::start_blocking();
    let post = mock.script("*", "200 x*");
    let url = post.url();
    for (args, word) in [
        (&["-X", "post"][..], "POST"),
        (&["-X", "CONNECT"], "tunnel"),
        (&["-H", "Authorization hunter2"], "no colon"),
        (&["-H", "X-Bad: hunter2\nX-Evil: 1"], "line break"),
        (&["--key", "a b"], "visible ASCII"),
        (
            &["--key", "k", "-H", "idempotency-key: j"],
            "one operation has one key",
        ),
        (&["--key", "k", "--make-key"], "cannot be used with"),
        (&["--policy", "no-such.toml:p"], "no-such.toml"),
        (&["--policy", "nonsense"], "FILE:NAME"),
        (&["--deliver-by", "tomorrow"], "RFC 3339"),
        (&["--cacert", "/no/such.pem"], "--cacert"),
        (&["-d", "@/no/such/body"], "/no/such/body"),
        (&["--max-body", "2GB"], "1GB"),
    ] {
        let ran = ressac(&[&["send", &url], args].concat());
        assert_eq!(ran.code, 64, "{args:?} {ran:?}");
        assert!(ran.err.contains(word), "{args:?} {ran:?}");
        assert!(!ran.err.contains("hunter2"), "{args:?} {ran:?}");
    }
    for url in [
        "ftp://acme.example/",
        "acme.example",
        "http://me:hunter2@acme.example/",
    ] {
        let ran = ressac(&["send", url]);
        assert_eq!(ran.code, 64, "{ran:?}");
        assert!(!ran.err.contains("hunter2"), "{ran:?}");
    }
    assert_eq!(post.attempts().len(), 0);
}

#[test]
fn the_version_of_http_is_the_callers_or_the_partners_choice() {
    let mock = Mock::start_blocking();
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    std::fs::write(&ca, mock.ca_pem()).unwrap();
    let ca = ["--cacert", ca.to_str().unwrap()];
    for (tls, options, proto) in [
        (false, &[][..], "HTTP/1.1"),
        (false, &["--http2-prior-knowledge"], "HTTP/2"),
        (true, &[], "HTTP/2"),
        (true, &["--http1.1"], "HTTP/1.1"),
    ] {
        let get = mock.script("GET", "200");
        let url = if tls { get.tls_url() } else { get.url() };
        let ran = send(&url, &[&ca, options].concat());
        assert_eq!((ran.code, get.attempts()[0].proto), (0, proto), "{ran:?}");
    }
    let both = ["--http1.1", "--http2-prior-knowledge"];
    assert_eq!(send("http://127.0.0.1:1/", &both).code, 64);
}

/// RFC 9113 §8.7: what a partner refuses it has not processed, so that a POST goes again.
#[test]
fn vr_2_a_refused_stream_is_sent_again_whatever_the_method() {
    let mock = Mock::start_blocking();
    let pay = mock.script("POST", "refused-stream, goaway=below, 201 create");
    let options = ["-X", "POST", "-d", "x", "--http2-prior-knowledge"];
    assert_eq!(send(&pay.url(), &options).code, 0);
    assert_eq!((pay.attempts().len(), pay.effects()), (3, 1));
    pay.verify();
}
