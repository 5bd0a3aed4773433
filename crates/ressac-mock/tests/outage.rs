//! Outages: edges, clocks, refusing listeners.
#![allow(clippy::unwrap_used)]

mod raw;

use std::io::{ErrorKind, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use raw::{Ended, ask, connect, get, read_reply, read_to_end};
use ressac_mock::{Mock, Options, Scenario, Wire};

fn start(outage: &str) -> Mock {
    let text = format!(
        "version = 1\noutage = [{outage}]\n\
         [[route]]\nname = \"pay\"\npath = \"/pay\"\nscript = \"200 x3\"\n\
         [[route]]\nname = \"sync\"\npath = \"/sync\"\nscript = \"200 barrier=1 x*\"\n\
         [[route]]\nname = \"other\"\npath = \"/other\"\nscript = \"200 x*\""
    );
    Mock::start_blocking_with(Scenario::parse(&text).unwrap(), Options::default()).unwrap()
}

fn until(mock: &Mock, what: &str, path: &str, status: u16) {
    let begun = Instant::now();
    while ask(mock.addr(), &get(path)).status != status {
        assert!(begun.elapsed() < Duration::from_secs(10), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn an_outage_takes_no_step_and_only_its_routes() {
    let mock =
        start("{ to = \"1s\", clock = \"armed\", routes = [\"pay\"], do = \"503 ra=auto\" }");
    assert_eq!(ask(mock.addr(), &get("/pay")).status, 200);
    mock.arm();
    let r = ask(mock.addr(), &get("/pay"));
    assert_eq!((r.status, r.header("Retry-After")), (503, Some("1")));
    assert_eq!(ask(mock.addr(), &get("/other")).status, 200);
    std::thread::sleep(Duration::from_millis(1010));
    // Steps 2 and 3 are still there, then the script ends.
    let rest: Vec<u16> = (0..3)
        .map(|_| ask(mock.addr(), &get("/pay")).status)
        .collect();
    assert_eq!(rest, [200, 200, 599]);
    let out: Vec<_> = mock
        .journal()
        .into_iter()
        .filter(|e| e.outage.is_some())
        .collect();
    assert_eq!(
        (out.len(), out[0].route.as_deref(), out[0].n),
        (1, Some("pay"), None)
    );
    assert!(out[0].retry_at.unwrap() >= out[0].t_head + 1_000_000_000);
}

#[test]
fn clocks_first_request_and_barrier() {
    let mock = start(
        "{ to = \"1s\", clock = \"first-request\", routes = [\"pay\"], do = \"503\" },\
         { to = \"1s\", clock = \"barrier\", routes = [\"other\"], do = \"429\" }",
    );
    std::thread::sleep(Duration::from_millis(1050));
    assert_eq!(ask(mock.addr(), &get("/pay")).status, 503);
    until(&mock, "the first-request outage ends", "/pay", 200);
    assert_eq!(ask(mock.addr(), &get("/other")).status, 200);
    assert_eq!(ask(mock.addr(), &get("/sync")).status, 200);
    assert_eq!(ask(mock.addr(), &get("/other")).status, 429);
    until(&mock, "the barrier outage ends", "/other", 200);
}

#[test]
fn down_refuses_keeps_its_port_and_opens_again() {
    let mock = start("{ to = \"1500ms\", clock = \"armed\", do = \"down\" }");
    let addr = mock.addr();
    let mut kept = connect(addr);
    kept.write_all(get("/other").as_bytes()).unwrap();
    assert_eq!(read_reply(&mut kept).status, 200);
    let armed = Instant::now();
    mock.arm();
    // The listener closes as soon as its task has run.
    let refused = loop {
        match TcpStream::connect(addr) {
            // A handshake under way when the listener closes ends in a reset.
            Err(e) if e.kind() != ErrorKind::ConnectionReset => break e,
            _ => assert!(
                armed.elapsed() < Duration::from_millis(1400),
                "never refused"
            ),
        }
    };
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    assert_eq!(
        TcpListener::bind(addr).unwrap_err().kind(),
        ErrorKind::AddrInUse
    );
    // A connection from before is not answered by a partner that is down.
    kept.write_all(get("/other").as_bytes()).unwrap();
    assert_eq!(read_to_end(&mut kept), (vec![], Ended::Rst));
    let begun = Instant::now();
    while let Err(e) = TcpStream::connect(addr) {
        assert_eq!(e.kind(), ErrorKind::ConnectionRefused);
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "never opened again"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(armed.elapsed() >= Duration::from_millis(1490));
    assert_eq!(mock.addr(), addr);
    assert_eq!(ask(addr, &get("/other")).status, 200);
    let wires: Vec<_> = mock
        .journal()
        .iter()
        .map(|e| e.sent.as_ref().map(|s| s.wire))
        .collect();
    assert_eq!(wires[..2], [Some(Wire::Complete), Some(Wire::Rst)]);
}

#[test]
fn a_fixed_port_is_not_shared_with_another_mock() {
    let first = Mock::start_blocking();
    let options = Options {
        bind: first.addr(),
        ..Options::default()
    };
    let err = Mock::start_blocking_with(Scenario::default(), options).unwrap_err();
    assert!(err.to_string().contains(&first.addr().to_string()), "{err}");
    let addr = first.addr();
    drop(first);
    let options = Options {
        bind: addr,
        ..Options::default()
    };
    let begun = Instant::now();
    loop {
        match Mock::start_blocking_with(Scenario::default(), options.clone()) {
            Ok(again) => break assert_eq!(again.addr(), addr),
            Err(e) => assert!(begun.elapsed() < Duration::from_secs(10), "{e}"),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
