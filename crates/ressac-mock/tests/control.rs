//! The control API on a raw socket.
#![allow(clippy::unwrap_used)]

mod raw;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use raw::{Reply, ask, get, post};
use ressac_mock::{Mock, MockError, Options, Scenario};
use serde_json::{Value, json};

const SCENARIO: &str = "version = 1\noutage = [{ to = \"1h\", clock = \"armed\", do = \"503\" }]\n\
    [[route]]\nname = \"pay\"\npath = \"/{token}/pay\"\nscope = \"token\"\n\
    script = \"503 x2, 201 create\"";

fn start() -> (Mock, SocketAddr) {
    let scenario = Scenario::parse(SCENARIO).unwrap();
    let mock = Mock::start_blocking_with(scenario, Options::default()).unwrap();
    let control = mock.control_url().unwrap()["http://".len()..]
        .parse()
        .unwrap();
    (mock, control)
}

fn call(control: SocketAddr, path: &str) -> Value {
    let r = ask(control, &get(&format!("/__ressac/v1/{path}")));
    assert_eq!(r.status, 200, "{path}: {}", r.text());
    serde_json::from_slice(&r.body).unwrap()
}

fn send(control: SocketAddr, method: &str, path: &str, body: &str) -> Reply {
    let request = post(&format!("/__ressac/v1/{path}"), "", body);
    ask(control, &request.replacen("POST", method, 1))
}

#[test]
fn health_ports_scripts_and_journal() {
    let (mock, control) = start();
    assert_eq!(call(control, "health")["status"], "ready");
    let ports = call(control, "ports");
    assert_eq!(ports["listeners"]["plain"]["url"], mock.url());
    assert_eq!(
        ports,
        serde_json::from_str::<Value>(&mock.ports_json()).unwrap()
    );
    for (token, body) in [("a", "{\"x\":1}"), ("b", "b"), ("a", "")] {
        ask(
            mock.addr(),
            &post(&format!("/{token}/pay"), "Idempotency-Key: k\r\n", body),
        );
    }
    let begun = Instant::now();
    while !mock.journal().iter().all(ressac_mock::Entry::is_done) {
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "replies were read, yet are not done"
        );
    }
    let s = call(control, "scripts/pay/a");
    assert_eq!(
        (
            &s["arrivals"],
            &s["next_step"],
            &s["consumed"],
            &s["complete"]
        ),
        (&json!(2), &json!(2), &json!(1), &json!(false))
    );
    let page = call(control, "journal?token=a&route=pay");
    let entries = page["entries"].as_array().unwrap();
    assert_eq!(
        (entries.len(), &page["dropped"], &page["next_seq"]),
        (2, &json!(0), &json!(7))
    );
    let e = &entries[0];
    assert_eq!(
        (&e["kind"], &e["n"], &e["step"], &e["body_head"], &e["key"]),
        (
            &json!("request"),
            &json!(1),
            &json!(1),
            &json!("{\"x\":1}"),
            &json!("k")
        )
    );
    assert_eq!(
        (&e["sent"]["status"], &e["effect"]),
        (&json!(503), &json!("none"))
    );
    let times = [
        "t_accept",
        "t_first",
        "t_head",
        "t_req_end",
        "t_reply_before",
        "t_reply_after",
    ];
    let ns: Vec<u64> = times.iter().map(|t| e[t].as_u64().unwrap()).collect();
    assert!(ns.windows(2).all(|w| w[0] <= w[1]), "{ns:?}");
    assert_eq!(
        call(control, "journal?since=2&limit=1")["entries"][0]["seq"],
        4
    );
    let connections = call(control, "journal")["connections"].clone();
    assert_eq!(connections.as_array().unwrap().len(), 3);
    assert_eq!(
        (
            &connections[1]["kind"],
            &connections[1]["conn"],
            &connections[1]["requests"]
        ),
        (&json!("connection"), &json!(2), &json!(1))
    );
    assert_eq!(
        call(control, "journal?limit=2")["entries"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[test]
fn keys_resources_and_metrics_without_tokens() {
    let (mock, control) = start();
    for _ in 0..4 {
        ask(
            mock.addr(),
            &post("/secret-token/pay", "Idempotency-Key: secret-key\r\n", ""),
        );
    }
    let keys = call(control, "keys");
    assert_eq!(
        keys["keys"],
        json!([{ "key": "secret-key", "state": "done", "effects": 1 }])
    );
    let made = call(control, "resources/pay");
    assert_eq!(
        (&made["resources"][0]["id"], &made["resources"][0]["token"]),
        (&json!("pay_1"), &json!("secret-token"))
    );
    let text = ask(control, &get("/__ressac/metrics")).text().to_owned();
    for line in [
        "ressac_mock_requests_total{route=\"pay\",status=\"503\"} 2",
        "ressac_mock_requests_total{route=\"pay\",status=\"201\"} 1",
        "ressac_mock_overruns_total{route=\"pay\"} 1",
        "ressac_mock_effects_total{resource=\"pay\",effect=\"created\"} 1",
        "ressac_mock_journal_dropped_total 0",
    ] {
        assert!(text.lines().any(|l| l == line), "{line}\nin\n{text}");
    }
    assert!(!text.contains("secret"));
    let begun = Instant::now();
    while !ask(control, &get("/__ressac/metrics"))
        .text()
        .contains("ressac_mock_in_flight 0\n")
    {
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "requests stay in flight"
        );
    }
}

#[test]
fn arm_reset_and_a_new_scenario() {
    let (mock, control) = start();
    let pay = || ask(mock.addr(), &post("/t/pay", "", "")).status;
    assert_eq!(pay(), 503);
    assert_eq!(
        send(control, "POST", "reset", "{\"what\":[\"scripts\"]}").status,
        204
    );
    assert_eq!([pay(), pay(), pay()], [503, 503, 201]);
    assert_eq!(send(control, "POST", "arm", "").status, 204);
    assert_eq!(pay(), 503);
    assert_eq!(send(control, "POST", "reset", "").status, 204);
    assert_eq!(
        (mock.journal().len(), mock.effects_by_token().len()),
        (0, 0)
    );
    let bad = send(control, "PUT", "scenario", "version = 1\nsede = 3");
    let problem: Value = serde_json::from_slice(&bad.body).unwrap();
    assert_eq!(
        (bad.status, bad.header("Content-Type")),
        (422, Some("application/problem+json"))
    );
    assert_eq!(
        (&problem["line"], &problem["column"], &problem["fix"]),
        (&json!(2), &json!(1), &json!("did you mean `seed`?"))
    );
    assert_eq!(pay(), 503, "a bad scenario changes nothing");
    let good = SCENARIO.replace("503 x2, 201 create", "404 x*");
    assert_eq!(send(control, "PUT", "scenario", &good).status, 204);
    assert_eq!(pay(), 404);
    let passing = SCENARIO.replace("503 x2, 201 create", "pass x*");
    assert_eq!(send(control, "PUT", "scenario", &passing).status, 422);
    let other = format!("{good}\n[[listener]]\nname = \"new\"");
    assert_eq!(send(control, "PUT", "scenario", &other).status, 422);
    assert_eq!(pay(), 404);
}

#[test]
fn wrong_calls_are_problems() {
    let (_mock, control) = start();
    for (method, path, body, status) in [
        ("GET", "nothing", "", 404),
        ("GET", "reset", "", 405),
        ("POST", "reset", "{", 400),
        ("POST", "reset", "{\"what\":[\"all\"]}", 422),
        ("POST", "reset", "{\"wat\":[]}", 422),
        ("GET", "journal?since=x", "", 400),
        ("GET", "journal?sinse=1", "", 400),
        ("GET", "scripts/none/a", "", 404),
        ("GET", "resources/none", "", 404),
    ] {
        let r = send(control, method, path, body);
        assert_eq!(
            (r.status, r.header("Content-Type")),
            (status, Some("application/problem+json")),
            "{path}"
        );
        let problem: Value = serde_json::from_slice(&r.body).unwrap();
        assert!(problem["detail"].as_str().is_some_and(|d| !d.is_empty()));
    }
}

#[test]
fn the_control_api_stays_on_loopback() {
    let options = Options {
        control: Some("0.0.0.0:0".parse().unwrap()),
        ..Options::default()
    };
    let err = Mock::start_blocking_with(Scenario::default(), options).unwrap_err();
    assert!(matches!(err, MockError::ControlNotLoopback(_)));
    let options = Options {
        control: None,
        ..Options::default()
    };
    let mock = Mock::start_blocking_with(Scenario::default(), options).unwrap();
    assert_eq!(mock.control_url(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stop_is_told_to_the_owner() {
    let mock = Mock::start().await;
    let control: SocketAddr = mock.control_url().unwrap()["http://".len()..]
        .parse()
        .unwrap();
    let call = std::thread::spawn(move || send(control, "POST", "stop", "").status);
    tokio::time::timeout(Duration::from_secs(10), mock.stopped())
        .await
        .unwrap();
    mock.shutdown().await;
    assert_eq!(call.join().unwrap(), 204);
}

#[test]
fn listeners_and_connections_over_the_api() {
    let (mock, control) = start();
    assert_eq!(
        send(control, "POST", "listeners/plain/down", "{\"for\":\"1h\"}").status,
        204
    );
    assert!(std::net::TcpStream::connect(mock.addr()).is_err());
    assert_eq!(send(control, "POST", "listeners/plain/up", "").status, 204);
    raw::eventually("it opens", || {
        std::net::TcpStream::connect(mock.addr()).is_ok()
    });
    for (path, body, status) in [
        ("listeners/none/down", "{\"for\":\"1s\"}", 404),
        ("listeners/plain/down", "", 422),
        ("listeners/plain/down", "{\"for\":\"2h\"}", 422),
        ("listeners/plain/down", "{\"for\":1}", 422),
        ("connections/close", "{\"how\":\"kill\"}", 422),
        ("connections/close", "{\"listener\":\"none\"}", 404),
        ("connections/close", "[", 400),
    ] {
        assert_eq!(
            send(control, "POST", path, body).status,
            status,
            "{path} {body}"
        );
    }
    let mut idle = raw::connect(mock.addr());
    raw::eventually("it is accepted", || {
        let body = "{\"listener\":\"plain\",\"how\":\"rst\",\"idle_only\":true}";
        let r = send(control, "POST", "connections/close", body);
        let closed: Value = serde_json::from_slice(&r.body).unwrap();
        closed["closed"].as_u64().unwrap() > 0
    });
    assert_eq!(raw::read_to_end(&mut idle), (vec![], raw::Ended::Rst));
}

#[test]
fn the_journal_is_streamed_as_it_happens() {
    let (mock, control) = start();
    ask(mock.addr(), &post("/a/pay", "Connection: close\r\n", ""));
    let mut s = raw::connect(control);
    std::io::Write::write_all(&mut s, get("/__ressac/v1/journal/stream").as_bytes()).unwrap();
    let head = raw::read_head(&mut s);
    assert_eq!(head.header("Content-Type"), Some("application/x-ndjson"));
    ask(mock.addr(), &post("/b/pay", "Connection: close\r\n", ""));
    let mut seen = String::new();
    while seen.matches("\"kind\":\"connection\"").count() < 2
        || seen.matches("\"kind\":\"request\"").count() < 2
        || !seen.ends_with("}\n")
    {
        seen.push_str(std::str::from_utf8(&raw::read_n(&mut s, 1)).unwrap());
    }
    let kinds = |text: &str| -> Vec<Value> {
        let lines = text.lines().filter(|l| l.starts_with('{'));
        lines.map(|l| serde_json::from_str(l).unwrap()).collect()
    };
    let tokens: Vec<_> = kinds(&seen)
        .into_iter()
        .filter(|v| v["kind"] == "request")
        .collect();
    assert_eq!(
        (&tokens[0]["token"], &tokens[1]["token"]),
        (&json!("a"), &json!("b"))
    );
    assert_eq!(tokens[0]["sent"]["wire"], "complete");
    drop(mock);
    // The end of the mock ends the stream.
    let (rest, _) = raw::read_to_end(&mut s);
    assert!(rest.len() < 4096);
}

#[test]
fn beyond_loopback_or_by_choice_a_token_is_needed() {
    let options = Options {
        control: Some("0.0.0.0:0".parse().unwrap()),
        control_token: Some("secret".to_owned()),
        ..Options::default()
    };
    let mock = Mock::start_blocking_with(Scenario::default(), options).unwrap();
    let port = mock
        .control_url()
        .unwrap()
        .rsplit_once(':')
        .unwrap()
        .1
        .parse()
        .unwrap();
    let addr = SocketAddr::from(([127, 0, 0, 1], port));
    let with = |line: &str| {
        let request = format!("GET /__ressac/v1/health HTTP/1.1\r\n{line}\r\n");
        ask(addr, &request).status
    };
    assert_eq!(with(""), 401);
    assert_eq!(with("Authorization: Bearer secres\r\n"), 401);
    assert_eq!(with("Authorization: Bearer secret\r\n"), 200);
}

#[test]
fn the_api_can_be_had_on_the_plain_listener() {
    let options = Options {
        control: None,
        control_on_plain: true,
        ..Options::default()
    };
    let text = format!(
        "{SCENARIO}\n[[route]]\nname = \"all\"\npath = \"/{{rest...}}\"\nscript = \"503 x*\""
    );
    let mock = Mock::start_blocking_with(Scenario::parse(&text).unwrap(), options).unwrap();
    mock.arm();
    // Before outages and routes, and never journaled.
    let r = ask(mock.addr(), &get("/__ressac/v1/health"));
    assert_eq!(r.status, 200);
    assert_eq!(ask(mock.addr(), &get("/x")).status, 503);
    assert_eq!(mock.journal().len(), 1);
    let page = ask(mock.addr(), &get("/__ressac/v1/journal?kind=request"));
    let page: Value = serde_json::from_slice(&page.body).unwrap();
    assert_eq!(page["entries"].as_array().unwrap().len(), 1);
    assert_eq!(page["connections"], json!([]));
}
