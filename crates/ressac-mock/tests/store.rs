//! Keys and effects on the wire.
#![allow(clippy::unwrap_used)]

mod raw;

use std::time::{Duration, Instant};

use raw::{Ended, ask, connect, get, post, split, until_end};
use ressac_mock::{Effect, Mock, Options, Scenario};
use std::io::Write;

fn key(k: &str) -> String {
    format!("Idempotency-Key: {k}\r\n")
}

fn start(store: &str, script: &str) -> Mock {
    let text = format!(
        "version = 1\nidempotency = {store}\n[[route]]\nname = \"pay\"\nmethod = [\"POST\"]\n\
         path = \"/{{token}}/pay\"\nscript = \"{script}\"\nresource = {{ id = \"pay_{{n}}\" }}"
    );
    Mock::start_blocking_with(Scenario::parse(&text).unwrap(), Options::default()).unwrap()
}

#[test]
fn mo_5_a_replay_is_the_first_reply_byte_for_byte() {
    let mock = start(
        "{ ttl = \"1h\" }",
        "201 create h=X-N:1 fin@end, 503 create h=X-N:2 fin@end",
    );
    let request = post("/t1/pay", &key("k1"), "{}");
    let (first, _) = until_end(mock.addr(), &request);
    let (again, _) = until_end(mock.addr(), &request);
    let (first, again) = (
        String::from_utf8(first).unwrap(),
        String::from_utf8(again).unwrap(),
    );
    assert_eq!(
        again,
        first.replacen("\r\n\r\n", "\r\nIdempotent-Replayed: true\r\n\r\n", 1)
    );
    let r = split(first.as_bytes());
    assert_eq!(
        (r.status, r.header("Location")),
        (201, Some("/t1/pay/pay_1"))
    );
    assert_eq!(
        r.text(),
        "{\"id\":\"pay_1\",\"n\":1,\"step\":1,\"token\":\"t1\"}"
    );
    let effects: Vec<_> = mock.journal().iter().map(|e| e.effect).collect();
    assert_eq!(effects, [Effect::Created, Effect::Replayed]);
    assert_eq!(
        (mock.effects_by_token()["t1"], mock.effects_by_key()["k1"]),
        (1, 1)
    );
}

#[test]
fn mo_5_sixty_four_at_once_with_one_key_make_one() {
    for script in ["201 create x*", "201 create=slow:80ms x*"] {
        let mock = Mock::start_blocking();
        let h = mock.script("POST", script);
        let request = post(&h.path(), &key("same"), "{\"amount\":1}");
        let replies: Vec<_> = std::thread::scope(|s| {
            let threads: Vec<_> = (0..64)
                .map(|_| s.spawn(|| ask(mock.addr(), &request)))
                .collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        let created = replies.iter().filter(|r| r.status == 201);
        let fresh = created
            .clone()
            .filter(|r| r.header("Idempotent-Replayed").is_none())
            .count();
        let busy: Vec<_> = replies.iter().filter(|r| r.status == 409).collect();
        assert_eq!((fresh, created.count() + busy.len()), (1, 64), "{script}");
        for r in busy {
            assert_eq!(r.header("Content-Type"), Some("application/problem+json"));
            let rest: u64 = r.header("Retry-After").unwrap().parse().unwrap();
            assert!((29..=30).contains(&rest), "{rest}");
        }
        assert_eq!(
            (h.effects(), h.keys()),
            (1, vec!["same".to_owned()]),
            "{script}"
        );
    }
}

#[test]
fn other_body_is_422_missing_key_is_400_and_quotes_do_not_matter() {
    let mock = start("{ required = [\"pay\"] }", "201 create x*");
    let ask = |line: &str, body: &str| ask(mock.addr(), &post("/t/pay", line, body));
    assert_eq!(ask("", "{}").status, 400);
    assert_eq!(ask(&key("a"), "{}").status, 201);
    let other = ask(&key("a"), "{\"x\":1}");
    assert_eq!(
        (other.status, other.header("Content-Type")),
        (422, Some("application/problem+json"))
    );
    let quoted = ask(&key("\"a\""), "{}");
    assert_eq!(
        (quoted.status, quoted.header("Idempotent-Replayed")),
        (201, Some("true"))
    );
    assert_eq!(mock.effects_by_token()["t"], 1);
    assert_eq!(
        mock.journal()
            .iter()
            .map(|e| e.key_quoted)
            .collect::<Vec<_>>(),
        [false, false, false, true]
    );
}

#[test]
fn no_key_or_no_store_is_an_effect_every_time() {
    let mock = Mock::start_blocking();
    let h = mock.script("POST", "201 create x*");
    for _ in 0..3 {
        assert_eq!(ask(mock.addr(), &post(&h.path(), "", "{}")).status, 201);
    }
    assert_eq!(h.effects(), 3);
    let off = start("\"off\"", "201 create x*");
    for _ in 0..2 {
        ask(off.addr(), &post("/t/pay", &key("k"), "{}"));
    }
    assert_eq!(
        (off.effects_by_token()["t"], off.effects_by_key()["k"]),
        (2, 2)
    );
}

#[test]
fn the_effect_happened_though_the_reply_was_lost() {
    let mock = Mock::start_blocking();
    let h = mock.script("POST", "201 create rst@req, 201 create");
    let request = post(&h.path(), &key("k"), "{}");
    assert_eq!(until_end(mock.addr(), &request), (vec![], Ended::Rst));
    assert_eq!(h.effects(), 1);
    let r = ask(mock.addr(), &request);
    assert_eq!(
        (r.status, r.header("Idempotent-Replayed")),
        (201, Some("true"))
    );
    assert_eq!(h.effects(), 1);
    h.verify();
}

#[test]
fn a_body_that_never_came_whole_has_no_effect() {
    let mock = Mock::start_blocking();
    let h = mock.script("POST", "201 create");
    let mut s = connect(mock.addr());
    write!(
        s,
        "POST {} HTTP/1.1\r\nContent-Length: 10\r\n\r\nhalf",
        h.path()
    )
    .unwrap();
    drop(s);
    let e = &h.wait_done_blocking(1, Duration::from_secs(10)).unwrap()[0];
    assert_eq!(
        (e.flags.as_slice(), e.t_req_end),
        ([ressac_mock::Flag::Incomplete].as_slice(), None)
    );
    assert_eq!(h.effects(), 0);
}

#[test]
fn an_abandoned_key_frees_itself_after_the_lease() {
    let mock = start("{ lease = \"200ms\" }", "201 create=abandon, 201 create x*");
    let request = post("/t/pay", &key("k"), "{}");
    let begun = Instant::now();
    assert_eq!(ask(mock.addr(), &request).status, 201);
    let second = ask(mock.addr(), &request).status;
    // On a very slow machine the lease may be over already.
    assert!(
        second == 409 || begun.elapsed() >= Duration::from_millis(200),
        "{second}"
    );
    std::thread::sleep(Duration::from_millis(220));
    ask(mock.addr(), &request);
    assert_eq!(mock.effects_by_key()["k"], 1);
}

#[test]
fn other_methods_have_an_effect_and_make_no_resource() {
    let mock = Mock::start_blocking();
    let h = mock.script("*", "200 create, 204 create");
    let r = ask(mock.addr(), &format!("PUT {} HTTP/1.1\r\n\r\n", h.path()));
    assert_eq!((r.status, r.header("Location")), (200, None));
    assert_eq!(
        ask(
            mock.addr(),
            &format!("DELETE {} HTTP/1.1\r\n\r\n", h.path())
        )
        .status,
        204
    );
    assert_eq!(h.effects(), 2);
    assert_eq!(ask(mock.addr(), &get(&h.path())).status, 599);
}
