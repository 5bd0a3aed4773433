//! What the journal lets a caller compute.
#![allow(clippy::unwrap_used)]

mod raw;

use std::time::Duration;

use raw::{ask, get, post};
use ressac_mock::{Mock, Options, Scenario, Summary};

#[test]
fn early_returns_doubles_and_load() {
    let mock = Mock::start_blocking_with(
        Scenario::parse(
            "version = 1\nidempotency = \"off\"\n\
             [[route]]\nname = \"a\"\npath = \"/{token}/a\"\nscope = \"token\"\n\
             script = \"503 ra=1, 201 create x*\"\n\
             [[route]]\nname = \"b\"\npath = \"/b\"\nscript = \"200 x*\"",
        )
        .unwrap(),
        Options::default(),
    )
    .unwrap();
    let addr = mock.addr();
    let send = |token: &str| {
        ask(
            addr,
            &post(&format!("/{token}/a"), "Idempotency-Key: k\r\n", ""),
        )
    };
    send("one"); // told to wait 1 s
    send("one"); // came back at once: too early, for itself and for the route
    send("two"); // too early for the route; told to wait itself
    ask(addr, &get("/b")); // another route
    std::thread::sleep(Duration::from_millis(1100));
    send("one"); // in time
    let s = Summary::of(&mock.journal());
    assert_eq!((s.arrivals, s.inside_hold, s.inside_own_hold), (5, 2, 1));
    assert_eq!(s.per_second.iter().sum::<u64>(), 5);
    assert_eq!((s.per_second[0], s.peak_per_second()), (4, 4));
    assert_eq!(
        s.by_status.into_iter().collect::<Vec<_>>(),
        [(200, 1), (201, 2), (503, 2)]
    );
    assert_eq!(s.effects_by_key["k"], 2);
}
