//! `ressac mock`: ports file, script, seed, end.

#![allow(clippy::unwrap_used)]

mod common;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use common::{command, finish, ressac};
use serde_json::Value;

/// A mock that is ready, and its ports.
fn start(folder: &Path, args: &[&str]) -> (Child, Value) {
    let ports = folder.join("ports.json");
    // Of an earlier run; whoever waits must not read it.
    std::fs::write(&ports, "{}").unwrap();
    let args = [&["mock", "--ports-file", ports.to_str().unwrap()], args].concat();
    let mut child = command(&args).spawn().unwrap();
    let begun = Instant::now();
    loop {
        if let Ok(text) = std::fs::read_to_string(&ports)
            && text != "{}"
        {
            // By rename: what can be seen is whole.
            return (child, serde_json::from_str(&text).unwrap());
        }
        assert!(child.try_wait().unwrap().is_none(), "{:?}", finish(child));
        assert!(begun.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn plain(ports: &Value) -> &str {
    ports["listeners"]["plain"]["url"].as_str().unwrap()
}

#[cfg(unix)]
#[test]
fn a_script_on_the_command_line_is_served_until_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let (mut child, ports) = start(
        folder.path(),
        &["--script", "503 x2, 201", "--path", "/pay"],
    );
    let url = format!("{}/pay", plain(&ports));
    let (_folder, spec) = common::policy("base = \"5ms\"\ncap = \"10ms\"\nbreaker = \"off\"\n");
    let ran = ressac(&[
        "send", &url, "-d", "x", "--key", "k", "--json", "--policy", &spec,
    ]);
    assert_eq!(ran.json()["attempts"], 3, "{ran:?}");
    let mut line = String::new();
    let mut err = BufReader::new(child.stderr.take().unwrap());
    err.read_line(&mut line).unwrap();
    assert!(
        line.starts_with(&format!("ressac mock: plain {}", plain(&ports))),
        "{line}"
    );
    common::signal(&child, "-TERM");
    assert_eq!(finish(child).code, 0);
}

#[test]
fn the_control_api_ends_it() {
    let folder = tempfile::tempdir().unwrap();
    let (child, ports) = start(folder.path(), &[]);
    // Without a file or script every path answers 200.
    assert_eq!(ressac(&["send", &format!("{}/any", plain(&ports))]).code, 0);
    let stop = format!(
        "{}/__ressac/v1/stop",
        ports["control"]["url"].as_str().unwrap()
    );
    assert_eq!(ressac(&["send", "-X", "POST", &stop]).code, 0);
    assert_eq!(finish(child).code, 0);
}

#[test]
fn a_file_and_a_seed_make_chance_repeatable() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("chance.toml");
    let text = "version = 1\n[[route]]\nname = \"r\"\npath = \"/r\"\n\
                script = \"pick(0.5:503, else:200) x*\"\n";
    std::fs::write(&file, text).unwrap();
    let statuses = |seed: &str| {
        let args = [
            "-s",
            file.to_str().unwrap(),
            "--seed",
            seed,
            "--control",
            "off",
        ];
        let (mut child, ports) = start(folder.path(), &args);
        assert_eq!(ports["control"], Value::Null);
        let url = format!("{}/r", plain(&ports));
        let (_folder, spec) = common::policy("retries = 0\n");
        let codes: Vec<_> = (0..12)
            .map(|_| ressac(&["send", &url, "--policy", &spec]).code)
            .collect();
        child.kill().unwrap();
        child.wait().unwrap();
        codes
    };
    let first = statuses("7");
    assert!(first.contains(&0) && first.contains(&12), "{first:?}");
    assert_eq!(statuses("7"), first);
}

#[test]
fn check_reads_and_ends() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.toml");
    std::fs::write(&file, "version = 1\nsead = 3\n").unwrap();
    let path = file.to_str().unwrap();
    let ran = ressac(&["mock", "-s", path, "--check"]);
    assert_eq!(ran.code, 64);
    assert!(ran.err.contains(&format!("{path}:2:1: ")), "{ran:?}");
    assert!(ran.err.contains("did you mean `seed`?"), "{ran:?}");
    std::fs::write(&file, "version = 1\nseed = 3\n").unwrap();
    let ran = ressac(&["mock", "-s", path, "--check"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "sound: no routes\n"));
}

#[test]
fn what_cannot_be_served_is_refused() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let folder = tempfile::tempdir().unwrap();
    let bad_word = folder.path().join("word.toml");
    let text = "version = 1\n[[route]]\nname = \"r\"\npath = \"/\"\nscript = \"503 foo\"\n";
    std::fs::write(&bad_word, text).unwrap();
    let bad_word = bad_word.to_str().unwrap();
    for (args, code, word) in [
        (&["--script", "503 hodl=2s"][..], 64, "did you mean `hold`?"),
        (&["--path", "/pay"], 64, "--script"),
        (&["--bind", "nowhere"], 64, "127.0.0.1:8080"),
        (&["--control", "0.0.0.0:0"], 64, "--control-token"),
        (&["--upstream", "https://x"], 64, "http://127.0.0.1:8080"),
        (&["--script", "pass x*"], 64, "--upstream"),
        (&["--journal", "0"], 64, "--journal"),
        (&["-s", "no-such.toml"], 64, "no-such.toml"),
        (
            &["--ports-file", "/no/such/folder/ports.json"],
            64,
            "/no/such/folder/ports.json cannot be written: ",
        ),
        (&["--script", "503 foo"], 64, "docs/mock.md"),
        (&["-s", bad_word], 64, "docs/mock.md"),
        (&["--control", &taken], 64, "stop what listens there"),
        (&["--bind", &taken], 64, "stop what listens there"),
    ] {
        let ran = ressac(&[&["mock"], args].concat());
        assert_eq!(ran.code, code, "{ran:?}");
        assert!(ran.err.contains(word), "{ran:?}");
        assert!(!ran.err.contains(".ressac-"), "{ran:?}");
    }
}

#[test]
fn a_program_behind_it_is_reached_and_its_certificate_lies_beside_the_ports() {
    let folder = tempfile::tempdir().unwrap();
    let (mut behind, ports) = start(folder.path(), &["--script", "201 x*", "--path", "/pay"]);
    let url = plain(&ports).to_owned();
    let front = tempfile::tempdir().unwrap();
    let args = ["--upstream", &url, "--control-on-plain", "--control", "off"];
    let (child, ports) = start(front.path(), &args);
    let base = plain(&ports);
    let ran = ressac(&["send", "-X", "POST", &format!("{base}/pay"), "--json"]);
    assert_eq!(ran.json()["status"], 201, "{ran:?}");
    let ca = ports["ca"].as_str().unwrap();
    assert!(
        std::fs::read_to_string(ca)
            .unwrap()
            .starts_with("-----BEGIN CERTIFICATE-----")
    );
    assert!(
        ports["listeners"]["tls"]["url"]
            .as_str()
            .unwrap()
            .starts_with("https://127.0.0.1:")
    );
    let stop = format!("{base}/__ressac/v1/stop");
    assert_eq!(ressac(&["send", "-X", "POST", &stop]).code, 0);
    assert_eq!(finish(child).code, 0);
    assert!(
        !Path::new(ca).exists(),
        "the certificate goes with the mock"
    );
    behind.kill().unwrap();
    behind.wait().unwrap();
}
