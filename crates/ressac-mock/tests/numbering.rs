//! Steps are served once each, in order of arrival, whatever the interleaving.
#![allow(clippy::unwrap_used)]

mod raw;

use std::collections::BTreeSet;
use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use raw::{Ended, ask, connect, get, read_reply, split, until_end};
use ressac_mock::{Flag, Mock, Options, Scenario};

fn start(text: &str) -> Mock {
    Mock::start_blocking_with(Scenario::parse(text).unwrap(), Options::default()).unwrap()
}

/// `total` requests over 16 connections at once; the statuses seen.
fn burst(addr: SocketAddr, path: &str, total: usize) -> Vec<u16> {
    std::thread::scope(|s| {
        let threads: Vec<_> = (0..16)
            .map(|i| {
                s.spawn(move || {
                    let mut c = connect(addr);
                    let mine = total / 16 + usize::from(i < total % 16);
                    let one = |_| {
                        c.write_all(get(path).as_bytes()).unwrap();
                        read_reply(&mut c).status
                    };
                    (0..mine).map(one).collect::<Vec<_>>()
                })
            })
            .collect();
        threads
            .into_iter()
            .flat_map(|t| t.join().unwrap())
            .collect()
    })
}

#[test]
fn mo_1_sixteen_connections_share_no_step() {
    let mock = Mock::start_blocking();
    // A small generator: scripts differ, every run tests the same ones.
    let mut x = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = |below: u64| {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x % below
    };
    for _ in 0..200 {
        let steps: Vec<(u16, u64)> = (0..1 + next(6))
            .map(|i| (400 + i as u16 * 10 + next(9) as u16, 1 + next(6)))
            .collect();
        let words: Vec<String> = steps.iter().map(|(s, n)| format!("{s} x{n}")).collect();
        let h = mock.script("GET", &words.join(", "));
        let total: u64 = steps.iter().map(|(_, n)| n).sum();
        let mut seen = burst(mock.addr(), &h.path(), total as usize);
        let mut want: Vec<u16> = steps
            .iter()
            .flat_map(|(s, n)| vec![*s; *n as usize])
            .collect();
        // In order of arrival, as journaled; and each exactly once, as seen by the clients.
        let entries = h
            .wait_done_blocking(total as usize, Duration::from_secs(20))
            .unwrap();
        let served: Vec<u16> = entries.iter().map(|e| e.status().unwrap()).collect();
        assert_eq!(served, want);
        let ns: Vec<u64> = entries.iter().map(|e| e.n.unwrap()).collect();
        assert_eq!(ns, (1..=total).collect::<Vec<_>>());
        assert!(
            entries
                .windows(2)
                .all(|w| w[0].t_head <= w[1].t_head && w[0].seq < w[1].seq)
        );
        seen.sort_unstable();
        want.sort_unstable();
        assert_eq!(seen, want);
        h.verify();
    }
}

#[test]
fn mo_3_callers_with_their_own_token_do_not_disturb_each_other() {
    let mock = start(
        "version = 1\n[[route]]\nname = \"pay\"\npath = \"/{token}/pay\"\nscope = \"token\"\n\
         script = \"503 x2, 200\"",
    );
    let addr = mock.addr();
    std::thread::scope(|s| {
        for i in 0..16 {
            s.spawn(move || {
                let path = format!("/caller{i}/pay");
                let got: Vec<u16> = (0..3).map(|_| ask(addr, &get(&path)).status).collect();
                assert_eq!(got, [503, 503, 200]);
            });
        }
    });
    assert_eq!(mock.journal().iter().filter(|e| e.n == Some(3)).count(), 16);
}

#[test]
fn mo_4_after_the_end_comes_a_loud_599() {
    let mock = Mock::start_blocking();
    let h = mock.script("GET", "503, 200");
    let statuses: Vec<u16> = (0..2)
        .map(|_| ask(mock.addr(), &get(&h.path())).status)
        .collect();
    assert_eq!(statuses, [503, 200]);
    h.verify();
    let (bytes, end) = until_end(mock.addr(), &get(&h.path()));
    let r = split(&bytes);
    assert_eq!((r.status, end), (599, Ended::Fin));
    assert_eq!(r.header("Connection"), Some("close"));
    assert_eq!(r.header("Ressac-Mock"), Some("script-ended"));
    for part in [h.route(), h.token(), "script length 2", "arrival 3"] {
        assert!(r.text().contains(part), "{part} in {}", r.text());
    }
    assert_eq!(h.attempts()[2].flags, [Flag::Overrun]);
    assert_eq!(h.progress().overruns, 1);
    let trace = std::panic::catch_unwind(|| h.verify()).unwrap_err();
    assert!(
        trace
            .downcast_ref::<String>()
            .unwrap()
            .contains("1 overruns")
    );
}

#[test]
fn mo_9_repeat_two_fires_twice_whatever_is_sent() {
    let mock = Mock::start_blocking();
    let h = mock.script("*", "503 x2, 200");
    let bodies = ["{\"a\":1}", "{\"a\":1}", "{\"a\":2}"];
    let got: Vec<u16> = bodies
        .iter()
        .map(|b| ask(mock.addr(), &raw::post(&h.path(), "", b)).status)
        .collect();
    assert_eq!(got, [503, 503, 200]);
}

#[test]
fn scopes_global_key_and_connection() {
    let mock = start(
        "version = 1\n\
         [[route]]\nname = \"g\"\npath = \"/g/{token}\"\nscript = \"503, 200 x*\"\n\
         [[route]]\nname = \"k\"\npath = \"/k\"\nscope = \"key\"\nscript = \"503, 200 x*\"\n\
         [[route]]\nname = \"c\"\npath = \"/c\"\nscope = \"connection\"\nscript = \"503, 200 x*\"\n\
         [[route]]\nname = \"h\"\npath = \"/h\"\nscope = \"token\"\ntoken_header = \"X-Token\"\n\
         script = \"503, 200 x*\"",
    );
    let addr = mock.addr();
    let with =
        |path: &str, line: &str| ask(addr, &format!("GET {path} HTTP/1.1\r\n{line}\r\n")).status;
    assert_eq!((with("/g/a", ""), with("/g/b", "")), (503, 200));
    let key = "Idempotency-Key: a\r\n";
    let quoted = "Idempotency-Key: \"a\"\r\n";
    assert_eq!(
        (with("/k", key), with("/k", ""), with("/k", quoted)),
        (503, 503, 200)
    );
    let token = |t| format!("x-token: {t}\r\n");
    assert_eq!(
        (
            with("/h", &token("a")),
            with("/h", &token("b")),
            with("/h", &token("a"))
        ),
        (503, 503, 200)
    );
    for _ in 0..2 {
        let mut c = connect(addr);
        let mut one = || {
            c.write_all(get("/c").as_bytes()).unwrap();
            read_reply(&mut c).status
        };
        assert_eq!((one(), one()), (503, 200));
    }
    let entries = mock.journal();
    assert_eq!(entries.iter().filter(|e| e.key_quoted).count(), 1);
    assert_eq!(
        entries
            .iter()
            .filter(|e| e.key.as_deref() == Some("a"))
            .count(),
        2
    );
}

#[test]
fn chance_depends_on_the_seed_and_the_arrival_only() {
    let text = |seed| {
        format!(
            "version = 1\nseed = {seed}\n[[route]]\nname = \"r\"\npath = \"/r\"\n\
             script = \"pick(0.3:503, 0.2:404, else:200) x*\""
        )
    };
    let run = |seed| -> Vec<u16> {
        let mock = start(&text(seed));
        let mut c = connect(mock.addr());
        (0..60)
            .map(|_| {
                c.write_all(get("/r").as_bytes()).unwrap();
                read_reply(&mut c).status
            })
            .collect()
    };
    let (a, b, other) = (run(1), run(1), run(2));
    assert_eq!(a, b);
    assert_ne!(a, other);
    assert_eq!(a.iter().collect::<BTreeSet<_>>().len(), 3);
}

#[test]
fn arrivals_of_strangers_are_told_apart_and_take_no_step() {
    let text = "version = 1\n[[route]]\nname = \"a\"\npath = \"/{token}/a\"\nscope = \"token\"\n\
                script = \"503, 200\"";
    let options = Options {
        tokens: Some(["mine".to_owned()].into()),
        ..Options::default()
    };
    let mock = Mock::start_blocking_with(Scenario::parse(text).unwrap(), options).unwrap();
    let status = |path: &str| ask(mock.addr(), &get(path)).status;
    assert_eq!((status("/yours/a"), status("/robots.txt")), (404, 404));
    assert_eq!((status("/mine/a"), status("/mine/a")), (503, 200));
    let foreign = mock.journal();
    let foreign = foreign.iter().map(|e| e.flags.contains(&Flag::Foreign));
    assert_eq!(foreign.collect::<Vec<_>>(), [true, true, false, false]);
}
