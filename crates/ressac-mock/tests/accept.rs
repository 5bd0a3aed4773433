//! Connection scripts on a raw socket, and connections ended from outside.
#![allow(clippy::unwrap_used)]

mod raw;

use std::io::{ErrorKind, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use raw::{Ended, ask, connect, eventually, get, read_reply, read_to_end, silent, start};
use ressac_mock::{Cut, ListenerError, Mock};

fn with_accept(script: &str) -> Mock {
    start(&format!(
        "[[listener]]\nname = \"plain\"\naccept = \"{script}\"\n\
         [[route]]\nname = \"r\"\npath = \"/r\"\nscript = \"200 x*\""
    ))
}

#[test]
fn connections_meet_their_step_in_order() {
    let mock = with_accept("rst x2, fin, stall, ok x*");
    for want in [Ended::Rst, Ended::Rst, Ended::Fin] {
        let mut s = connect(mock.addr());
        assert_eq!(read_to_end(&mut s), (vec![], want));
    }
    let mut stalled = connect(mock.addr());
    stalled.write_all(get("/r").as_bytes()).unwrap();
    assert!(silent(&mut stalled, Duration::from_millis(150)));
    assert_eq!(ask(mock.addr(), &get("/r")).status, 200);
    let met: Vec<_> = mock
        .connections()
        .iter()
        .map(|c| (c.n, c.accept.clone()))
        .collect();
    let words = ["rst", "rst", "fin", "stall", "ok"];
    let want: Vec<_> = (1u64..).zip(words.map(str::to_owned)).collect();
    assert_eq!(met, want);
    eventually("the ends are journaled", || {
        let ends: Vec<_> = mock
            .connections()
            .iter()
            .take(3)
            .filter_map(|c| c.end)
            .collect();
        ends == ["rst@accept", "rst@accept", "fin@accept"]
    });
    // No request arrived on them.
    assert_eq!(mock.journal().len(), 1);
    mock.reset(&[ressac_mock::Reset::Scripts]);
    assert_eq!(read_to_end(&mut stalled).0, b"");
    assert_eq!(
        read_to_end(&mut connect(mock.addr())),
        (vec![], Ended::Rst),
        "from the beginning"
    );
}

#[test]
fn a_client_that_leaves_a_silent_connection_is_seen_to() {
    let mock = with_accept("stall x*");
    let mut s = connect(mock.addr());
    s.write_all(b"anything").unwrap();
    eventually("it is accepted", || mock.connections().len() == 1);
    drop(s);
    eventually("the end is journaled", || {
        mock.connections()[0].end == Some("stall@accept")
    });
}

#[test]
fn down_and_up_from_outside() {
    let mock = with_accept("ok x*");
    let addr = mock.addr();
    let mut kept = connect(addr);
    kept.write_all(get("/r").as_bytes()).unwrap();
    assert_eq!(read_reply(&mut kept).status, 200);
    mock.down("plain", None).unwrap();
    // At once: nothing is waited for.
    let err = TcpStream::connect(addr).unwrap_err();
    assert_eq!(err.kind(), ErrorKind::ConnectionRefused);
    assert_eq!(
        TcpListener::bind(addr).unwrap_err().kind(),
        ErrorKind::AddrInUse
    );
    kept.write_all(get("/r").as_bytes()).unwrap();
    assert_eq!(
        read_reply(&mut kept).status,
        200,
        "open connections stay open"
    );
    mock.up("plain").unwrap();
    eventually("it opens again", || TcpStream::connect(addr).is_ok());
    let begun = Instant::now();
    mock.down("plain", Some(Duration::from_millis(200)))
        .unwrap();
    assert!(TcpStream::connect(addr).is_err());
    eventually("it opens by itself", || TcpStream::connect(addr).is_ok());
    assert!(begun.elapsed() >= Duration::from_millis(200));
    assert_eq!(
        mock.down("none", None),
        Err(ListenerError::Unknown("none".to_owned()))
    );
    for _ in 0..20 {
        mock.down("plain", None).unwrap();
        assert!(TcpStream::connect(addr).is_err());
        mock.up("plain").unwrap();
        eventually("again", || TcpStream::connect(addr).is_ok());
    }
}

#[test]
fn connections_are_closed_by_fin_or_rst_and_busy_ones_can_be_spared() {
    let mock = Mock::start_blocking();
    let h = mock.script("GET", "200 x2, 200 hold=* x*");
    for (cut, end) in [(Cut::Fin, Ended::Fin), (Cut::Rst, Ended::Rst)] {
        let mut idle = connect(mock.addr());
        idle.write_all(get(&h.path()).as_bytes()).unwrap();
        assert_eq!(read_reply(&mut idle).status, 200);
        eventually("it is idle", || {
            mock.close_connections(Some("plain"), cut, true) == 1
        });
        assert_eq!(read_to_end(&mut idle), (vec![], end));
        eventually("it is gone", || {
            mock.close_connections(None, cut, false) == 0
        });
    }
    let mut busy = connect(mock.addr());
    busy.write_all(get(&h.path()).as_bytes()).unwrap();
    h.wait_attempts_blocking(3, Duration::from_secs(10))
        .unwrap();
    assert_eq!(mock.close_connections(None, Cut::Rst, true), 0);
    assert_eq!(mock.close_connections(Some("tls"), Cut::Rst, false), 0);
    assert_eq!(mock.close_connections(None, Cut::Rst, false), 1);
    assert_eq!(read_to_end(&mut busy), (vec![], Ended::Rst));
    let e = h.wait_done_blocking(3, Duration::from_secs(10)).unwrap()[2].clone();
    assert_eq!(e.sent.unwrap().wire, ressac_mock::Wire::Cancelled);
    let ends: Vec<_> = mock.connections().iter().filter_map(|c| c.end).collect();
    assert_eq!(ends, ["control", "control", "control"]);
}
