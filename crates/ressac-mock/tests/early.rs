//! `early`: the reply comes while the body is still being sent.
#![allow(clippy::unwrap_used)]

mod raw;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use raw::{Ended, connect, read_head, read_reply, read_to_end, start};
use ressac_mock::{Fault, Mock};

const DEADLINE: Duration = Duration::from_secs(10);
const LARGE: usize = 8 * 1024 * 1024;

fn put(s: &mut TcpStream, path: &str, len: usize) {
    write!(
        s,
        "PUT {path} HTTP/1.1\r\nHost: m\r\nContent-Length: {len}\r\n\r\n"
    )
    .unwrap();
}

/// Writes a body until it is whole or the connection breaks; how much was taken.
fn keep_writing(mut s: TcpStream, len: usize) -> usize {
    let mut sent = 0;
    while sent < len {
        match s.write(&[b'x'; 64 * 1024][..(len - sent).min(64 * 1024)]) {
            Ok(n) => sent += n,
            Err(_) => break,
        }
    }
    sent
}

/// Writes until nothing is taken for a while; how much was.
fn until_it_blocks(s: &mut TcpStream) -> usize {
    s.set_write_timeout(Some(Duration::from_millis(80)))
        .unwrap();
    let mut sent = 0;
    while let Ok(n) = s.write(&[b'x'; 64 * 1024]) {
        sent += n;
        assert!(sent < LARGE, "nothing ever blocked");
    }
    sent
}

#[test]
fn a_large_body_that_keeps_coming_is_not_read_whole() {
    let mock = Mock::start_blocking();
    let h = mock.script("PUT", "503 early close ra=1 text=\"full\", 200");
    let mut s = connect(mock.addr());
    put(&mut s, &h.path(), LARGE);
    let writer = {
        let s = s.try_clone().unwrap();
        std::thread::spawn(move || (keep_writing(s, LARGE), Instant::now()))
    };
    let begun = Instant::now();
    let reply = read_reply(&mut s);
    let replied = Instant::now();
    assert_eq!((reply.status, reply.text()), (503, "full"));
    assert!(
        replied - begun < Duration::from_millis(290),
        "the reply waited for the body: {:?}",
        replied - begun
    );
    let (rest, _) = read_to_end(&mut s);
    assert!(rest.is_empty());
    let (sent, over) = writer.join().unwrap();
    assert!(over > replied, "the body was sent before the reply came");
    assert!(sent < LARGE, "all of it was taken");
    let e = h.wait_done_blocking(1, DEADLINE).unwrap()[0].clone();
    raw::eventually("the journal tells what was read", || {
        h.attempts()[0].body_len > 0
    });
    let read = h.attempts()[0].body_len;
    assert!(read <= 51 * 16 * 1024, "{read} bytes in a second");
    assert_eq!((h.attempts()[0].t_req_end, e.status()), (None, Some(503)));
    // The script goes on with the next attempt.
    let mut s = connect(mock.addr());
    put(&mut s, &h.path(), 5);
    s.write_all(b"hello").unwrap();
    assert_eq!(read_reply(&mut s).status, 200);
    h.verify();
}

#[test]
fn a_body_that_fits_into_the_second_is_read_whole() {
    let mock = Mock::start_blocking();
    let h = mock.script("PUT", "413 early");
    let mut s = connect(mock.addr());
    put(&mut s, &h.path(), 300_000);
    let writer = {
        let s = s.try_clone().unwrap();
        std::thread::spawn(move || keep_writing(s, 300_000))
    };
    assert_eq!(read_head(&mut s).status, 413);
    assert_eq!(read_to_end(&mut s), (vec![], Ended::Fin));
    assert_eq!(writer.join().unwrap(), 300_000);
    let e = h.attempts()[0].clone();
    assert_eq!(e.body_len, 300_000);
    let read_after = e.t_req_end.unwrap() - e.t_reply_after.unwrap();
    assert!(read_after >= 300_000_000, "{read_after} ns");
}

#[test]
fn outages_quotas_and_faults_reply_early_too() {
    let mock = start(
        "outage = [{ to = \"1h\", routes = [\"out\"], do = \"503 early close\" }]\n\
         [[route]]\nname = \"out\"\npath = \"/out\"\nscript = \"200 x*\"\n\
         [[route]]\nname = \"quota\"\npath = \"/quota\"\nscript = \"200 x*\"\n\
         quota = { limit = 1, per = \"1h\", over = \"429 early close\" }\n\
         [[route]]\nname = \"fault\"\npath = \"/fault\"\nscript = \"200 x*\"",
    );
    let blocked = |path: &str, status: u16| {
        let mut s = connect(mock.addr());
        put(&mut s, path, LARGE);
        until_it_blocks(&mut s);
        let reply = read_reply(&mut s);
        assert_eq!(reply.status, status, "{path}");
    };
    blocked("/out", 503);
    raw::ask(mock.addr(), &raw::get("/quota"));
    blocked("/quota", 429);
    // A connection whose kernel has learnt to take a lot at once, before there was such a fault.
    let mut kept = warm(mock.addr());
    mock.add_fault(Fault::new("500 early close", Duration::from_secs(60)))
        .unwrap();
    blocked("/fault", 500);
    put(&mut kept, "/fault", LARGE);
    let sent = until_it_blocks(&mut kept);
    assert_eq!(read_reply(&mut kept).status, 500);
    let whole = mock
        .journal()
        .iter()
        .filter(|e| e.t_req_end.is_some())
        .count();
    assert_eq!(
        whole, 2,
        "only what came before was read whole; {sent} sent"
    );
}

/// A connection over which a large body has gone.
fn warm(addr: SocketAddr) -> TcpStream {
    let mut s = connect(addr);
    put(&mut s, "/fault", LARGE);
    assert_eq!(keep_writing(s.try_clone().unwrap(), LARGE), LARGE);
    assert_eq!(read_reply(&mut s).status, 200);
    s
}

#[test]
fn a_reset_ends_the_wait_of_an_early_reply() {
    let mock = Mock::start_blocking();
    let h = mock.script("PUT", "503 early close");
    let mut s = connect(mock.addr());
    put(&mut s, &h.path(), LARGE);
    assert_eq!(read_reply(&mut s).status, 503);
    let begun = Instant::now();
    mock.reset(&ressac_mock::Reset::ALL);
    // No body came at all: without the reset the wait is 1.3 s.
    assert_eq!(s.read(&mut [0]).unwrap(), 0);
    let took = begun.elapsed();
    assert!(took < Duration::from_millis(1200), "{took:?}");
}
