//! Programs that are no clients: none of them may pass a case.

use std::io::{BufRead, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Value, json};

/// `ok` and `ko` do nothing and say so; `elsewhere`, `early`, `hangs`, `crashes`, `noise`.
pub(crate) fn run(what: &str) -> ExitCode {
    let lines = std::env::var("PROVE_MODE").is_ok_and(|mode| mode == "lines");
    if !lines {
        return match what {
            "ok" | "elsewhere" => ExitCode::SUCCESS,
            "hangs" => hang(),
            "crashes" => std::process::abort(),
            _ => ExitCode::from(1),
        };
    }
    if what == "crashes" {
        std::process::abort();
    }
    let mut out = std::io::stdout();
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let told: Value = serde_json::from_str(&line).unwrap_or_default();
        let answer = match (told.get("hello"), told.get("op")) {
            (Some(_), _) if what != "hangs" => json!({ "ready": 1 }).to_string(),
            (_, Some(op)) => match what {
                "ok" | "elsewhere" => json!({ "op": op, "ok": true, "status": 200 }).to_string(),
                "early" => {
                    let url = told["url"].as_str().unwrap_or_default().to_owned();
                    std::thread::spawn(move || touch(&url));
                    json!({ "op": op, "ok": true, "status": 200 }).to_string()
                }
                "noise" => "{{{ 200 OK !!".to_owned(),
                "hangs" => hang_lines(),
                _ => json!({ "op": op, "ok": false, "status": 503 }).to_string(),
            },
            _ => continue,
        };
        if writeln!(out, "{answer}")
            .and_then(|()| out.flush())
            .is_err()
        {
            break;
        }
    }
    ExitCode::SUCCESS
}

fn hang() -> ExitCode {
    std::thread::sleep(Duration::from_secs(3600));
    ExitCode::SUCCESS
}

fn hang_lines() -> String {
    std::thread::sleep(Duration::from_secs(3600));
    String::new()
}

/// A request, after the answer was given.
fn touch(url: &str) {
    std::thread::sleep(Duration::from_millis(100));
    let rest = url.trim_start_matches("http://");
    let (address, path) = rest.split_once('/').unwrap_or((rest, ""));
    if let Ok(mut socket) = std::net::TcpStream::connect(address) {
        let _ = write!(socket, "GET /{path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
        std::thread::sleep(Duration::from_millis(200));
    }
}
