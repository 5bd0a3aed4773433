//! Quotas, resources, and faults that come and go.
#![allow(clippy::unwrap_used)]

mod raw;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use raw::{Reply, ask, eventually, get, post, start};
use ressac_mock::{Fault, Flag, Mock};
use serde_json::{Value, json};

fn send(addr: SocketAddr, method: &str, path: &str, body: &str) -> Reply {
    ask(addr, &post(path, "", body).replacen("POST", method, 1))
}

fn control(mock: &Mock) -> SocketAddr {
    mock.control_url().unwrap()["http://".len()..]
        .parse()
        .unwrap()
}

#[test]
fn a_quota_takes_no_step_and_names_the_next_free_place() {
    let mock = start(
        "[[route]]\nname = \"q\"\npath = \"/q\"\nscript = \"201, 202, 203\"\n\
         quota = { limit = 2, per = \"1s\", announce = true }",
    );
    let one = || ask(mock.addr(), &get("/q"));
    let (a, b, over) = (one(), one(), one());
    assert_eq!((a.status, b.status, over.status), (201, 202, 429));
    assert_eq!(over.header("Retry-After"), Some("1"));
    assert_eq!(over.header("Ressac-Mock"), Some("q;over-quota"));
    let limits = |r: &Reply| {
        let text = |n| r.header(n).unwrap().to_owned();
        (text("RateLimit-Policy"), text("RateLimit"))
    };
    let policy = "\"q\";q=2;w=1".to_owned();
    assert_eq!(limits(&a), (policy.clone(), "\"q\";r=1;t=1".to_owned()));
    assert_eq!(limits(&over), (policy, "\"q\";r=0;t=1".to_owned()));
    let e = mock.journal()[2].clone();
    assert_eq!((e.n, e.flags.as_slice()), (None, &[Flag::OverQuota][..]));
    // Whoever waits as long as told finds a place, and the third step.
    let free = e.retry_at.unwrap();
    while mock.now() < free {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(one().status, 203);
    mock.reset(&[ressac_mock::Reset::Quotas, ressac_mock::Reset::Scripts]);
    assert_eq!((one().status, one().status, one().status), (201, 202, 429));
}

#[test]
fn quotas_by_token_with_a_step_of_their_own() {
    let mock = start(
        "[[route]]\nname = \"q\"\npath = \"/{token}/q\"\nscript = \"200 x*\"\n\
         quota = { limit = 1, per = \"1h\", kind = \"sliding\", scope = \"token\", over = \"503 ra=auto\" }",
    );
    let one = |t: &str| ask(mock.addr(), &get(&format!("/{t}/q")));
    assert_eq!((one("a").status, one("b").status), (200, 200));
    let over = one("a");
    assert_eq!(
        (over.status, over.header("Retry-After")),
        (503, Some("3600"))
    );
    assert_eq!(over.header("RateLimit"), None);
}

#[test]
fn resources_are_read_replaced_and_removed() {
    let mock = start(
        "[[route]]\nname = \"pay\"\nmethod = [\"POST\"]\npath = \"/{token}/pay\"\nscope = \"token\"\n\
         script = \"201 create x*\"\nresource = { id = \"pay_{n}\" }",
    );
    let addr = mock.addr();
    let made = ask(addr, &post("/t/pay", "", "{\"sum\":1}"));
    assert_eq!(
        (made.status, made.header("Location")),
        (201, Some("/t/pay/pay_1"))
    );
    let json = |r: &Reply| serde_json::from_slice::<Value>(&r.body).unwrap();
    let read = ask(addr, &get("/t/pay/pay_1"));
    assert_eq!(json(&read)["content"], "{\"sum\":1}");
    assert_eq!(
        json(&ask(addr, &get("/t/pay")))["resources"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert_eq!(send(addr, "PUT", "/t/pay/pay_1", "new").status, 200);
    assert_eq!(json(&ask(addr, &get("/t/pay/pay_1")))["content"], "new");
    assert_eq!(send(addr, "DELETE", "/t/pay/pay_1", "").status, 204);
    for method in ["GET", "PUT", "DELETE"] {
        assert_eq!(
            send(addr, method, "/t/pay/pay_1", "").status,
            404,
            "{method}"
        );
    }
    assert_eq!(send(addr, "PATCH", "/t/pay/pay_1", "").status, 404);
    // POST, PUT and DELETE were one effect each; reading was none, and no step was taken.
    assert_eq!(mock.effects_by_token()["t"], 3);
    let next = ask(addr, &post("/t/pay", "", ""));
    assert_eq!(next.header("Ressac-Mock"), Some("pay;n=2;step=1"));
    assert_eq!(
        next.header("Location"),
        Some("/t/pay/pay_2"),
        "an id is never used twice"
    );
}

#[test]
fn create_on_put_and_delete_applies_the_effect() {
    let mock = Mock::start_blocking();
    let h = mock.script("*", "200 create, 204 create");
    assert_eq!(send(mock.addr(), "PUT", &h.path(), "x").status, 200);
    assert_eq!(send(mock.addr(), "DELETE", &h.path(), "").status, 204);
    assert_eq!(h.effects(), 2);
}

#[test]
fn mo_7_a_fault_goes_by_number_and_by_time() {
    let mock = start("[[route]]\nname = \"r\"\npath = \"/r\"\nscript = \"200 x2, 201 x*\"");
    let one = || ask(mock.addr(), &get("/r")).status;
    let mut fault = Fault::new("503 ra=1", Duration::from_secs(60));
    (fault.times, fault.skip) = (Some(2), 1);
    let id = mock.add_fault(fault).unwrap();
    // Spared, hit, hit, gone; steps are taken by the others only.
    assert_eq!(
        [one(), one(), one(), one(), one()],
        [200, 503, 503, 200, 201]
    );
    assert!(!mock.remove_fault(id));
    let e = &mock.journal()[1];
    assert_eq!(
        (e.fault, e.n, e.flags.as_slice()),
        (Some(id), None, &[Flag::Fault][..])
    );
    let begun = Instant::now();
    mock.add_fault(Fault::new("503 ra=auto", Duration::from_millis(300)))
        .unwrap();
    assert_eq!(one(), 503);
    eventually("the fault goes", || one() == 201);
    assert!(begun.elapsed() >= Duration::from_millis(290));
    for (step, ttl) in [
        ("503", 0),
        ("503", 3601),
        ("503 x2", 1),
        ("201 create", 1),
        ("pass", 1),
    ] {
        let fault = Fault::new(step, Duration::from_secs(ttl));
        assert!(mock.add_fault(fault).is_err(), "{step} {ttl}");
    }
}

#[test]
fn faults_over_the_control_api() {
    let mock = start("[[route]]\nname = \"r\"\npath = \"/{token}/r\"\nscript = \"200 x*\"");
    let api = control(&mock);
    let call = |method: &str, path: &str, body: &str| {
        send(api, method, &format!("/__ressac/v1/{path}"), body)
    };
    let body = json!({
        "match": { "method": "GET", "path": "/{token}/r", "header": "X-Hit: yes" },
        "do": "503 ra=1", "ttl": "30s", "times": 1, "scope": "token",
    });
    let added = call("POST", "faults", &body.to_string());
    assert_eq!(added.status, 201, "{}", added.text());
    let ask_with = |token: &str, line: &str| {
        let request = format!("GET /{token}/r HTTP/1.1\r\n{line}\r\n");
        ask(mock.addr(), &request).status
    };
    assert_eq!(ask_with("a", ""), 200);
    assert_eq!(ask_with("a", "X-Hit: no\r\n"), 200);
    for token in ["a", "b"] {
        assert_eq!(ask_with(token, "X-Hit: yes\r\n"), 503);
        assert_eq!(
            ask_with(token, "X-Hit: yes\r\n"),
            200,
            "once for each token"
        );
    }
    let list: Value = serde_json::from_slice(&call("GET", "faults", "").body).unwrap();
    assert_eq!(list["faults"][0]["hits"], 2);
    assert_eq!(call("DELETE", "faults/1", "").status, 204);
    assert_eq!(call("DELETE", "faults/1", "").status, 404);
    for bad in [
        "{\"do\":\"503\"}",
        "{\"do\":\"503\",\"ttl\":\"2h\"}",
        "{\"do\":\"503\",\"ttl\":\"1s\",\"p\":2}",
        "{\"do\":\"503 hodl=1s\",\"ttl\":\"1s\"}",
        "{\"do\":\"200 file=/etc/passwd\",\"ttl\":\"1s\"}",
        "{\"do\":\"503\",\"ttl\":\"1s\",\"tims\":1}",
        "[]",
    ] {
        assert_eq!(call("POST", "faults", bad).status, 422, "{bad}");
    }
    let text =
        "version = 1\n[[route]]\nname = \"f\"\npath = \"/f\"\nscript = \"200 file=/etc/passwd\"";
    let refused = call("PUT", "scenario", text);
    assert!(refused.status == 422 && refused.text().contains("not over the network"));
}

#[test]
fn a_share_of_arrivals_is_drawn_from_the_seed() {
    let run = || {
        let mock = start("seed = 5\n[[route]]\nname = \"r\"\npath = \"/r\"\nscript = \"200 x*\"");
        let mut fault = Fault::new("503", Duration::from_secs(60));
        fault.p = 0.5;
        mock.add_fault(fault).unwrap();
        (0..40)
            .map(|_| ask(mock.addr(), &get("/r")).status)
            .collect::<Vec<_>>()
    };
    let (a, b) = (run(), run());
    assert_eq!(a, b);
    let hit = a.iter().filter(|s| **s == 503).count();
    assert!((8..=32).contains(&hit), "{hit}");
}
