//! `ressac serve` on what cannot be served, and what it logs.

#![allow(clippy::unwrap_used)]

mod common;

use std::io::Read;

use common::{command, ressac};

fn file(listen: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ressac.toml");
    let text =
        format!("[gateway]\nlisten = \"{listen}\"\n[partner.acme]\nurl = \"http://127.0.0.1:1\"\n");
    std::fs::write(&file, text).unwrap();
    let path = file.to_str().unwrap().to_owned();
    (folder, path)
}

#[test]
fn a_port_that_is_taken_is_64_and_says_what_to_do() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (_folder, file) = file(&taken.local_addr().unwrap().to_string());
    let ran = ressac(&["serve", &file]);
    assert_eq!((ran.code, ran.out.as_str()), (64, ""), "{ran:?}");
    let remedy = "set gateway.listen, or stop what listens there";
    assert!(ran.err.contains(remedy), "{ran:?}");
}

#[test]
fn the_log_is_coloured_as_color_says() {
    for (color, coloured) in [("always", true), ("never", false), ("auto", false)] {
        let (_folder, file) = file("127.0.0.1:0");
        let args = ["--color", color, "serve", &file, "--log", "trace"];
        let mut child = command(&args).spawn().unwrap();
        let mut err = child.stderr.take().unwrap();
        let mut seen = Vec::new();
        let mut some = [0; 4_096];
        // The line that it listens comes after lines of the log.
        while !String::from_utf8_lossy(&seen).contains("ressac listens on") {
            let read = err.read(&mut some).unwrap();
            assert_ne!(read, 0, "{color}: {}", String::from_utf8_lossy(&seen));
            seen.extend_from_slice(&some[..read]);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(
            seen.windows(5)
                .any(|word| word == b"TRACE" || word == b"DEBUG")
        );
        assert_eq!(seen.contains(&0x1b), coloured, "{color}");
    }
}
