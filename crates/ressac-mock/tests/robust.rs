//! Random bytes into every listener, many mocks at once, and what a drop leaves behind.
#![allow(clippy::unwrap_used)]

mod raw;

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use raw::{ask, connect, eventually, get, post};
use ressac_mock::{Mock, Options, Scenario};

/// A small generator: every run tests the same bytes.
struct Bytes(u64);

impl Bytes {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn take(&mut self, most: u64) -> Vec<u8> {
        let n = self.next() % most;
        (0..n).map(|_| self.next() as u8).collect()
    }
}

fn throw(addr: SocketAddr, bytes: &[u8]) {
    let mut s = connect(addr);
    s.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    // The other side may end first, in any way; it must end.
    let _ = s.write_all(bytes);
    let _ = s.shutdown(Shutdown::Write);
    let mut sink = [0; 4096];
    loop {
        match s.read(&mut sink) {
            Ok(0) => return,
            Ok(_) => {}
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => panic!("hangs on {bytes:?}"),
            Err(_) => return,
        }
    }
}

#[test]
fn random_bytes_end_every_connection_and_nothing_else() {
    let mock = Mock::start_blocking();
    let h = mock.script("*", "200 x*");
    let control = mock.control_url().unwrap()["http://".len()..]
        .parse()
        .unwrap();
    let mut addrs: Vec<SocketAddr> = mock.listeners().iter().map(|l| l.1).collect();
    addrs.push(control);
    let mut random = Bytes(0x9e37_79b9_7f4a_7c15);
    let heads: [&[u8]; 6] = [
        b"",
        b"GET / HTTP/1.1\r\n",
        b"POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\x20\x01\x05\0\0\0\x01",
        b"\x16\x03\x01\x00\x40",
    ];
    for round in 0..240 {
        let addr = addrs[round % addrs.len()];
        let head = heads[(round / addrs.len()) % heads.len()];
        throw(addr, &[head, &random.take(300)].concat());
    }
    // Frames of a valid form with random types, flags and bodies.
    for _ in 0..120 {
        let mut bytes = heads[3].to_vec();
        for _ in 0..4 {
            let body = random.take(40);
            let kind = (random.next() % 11) as u8;
            let flags = random.next() as u8;
            let stream = (random.next() % 4) as u8;
            bytes.extend([0, 0, body.len() as u8, kind, flags, 0, 0, 0, stream]);
            bytes.extend(body);
        }
        throw(mock.addr(), &bytes);
    }
    assert_eq!(ask(mock.addr(), &get(&h.path())).status, 200);
    assert_eq!(ask(control, &get("/__ressac/v1/health")).status, 200);
}

#[test]
fn hundreds_of_mocks_live_in_one_process_and_leave_nothing() {
    let options = || Options {
        control: None,
        ..Options::default()
    };
    let scenario = || Scenario::parse("version = 1\n[[listener]]\nname = \"p\"").unwrap();
    let mocks: Vec<Mock> = (0..200)
        .map(|_| Mock::start_blocking_with(scenario(), options()).unwrap())
        .collect();
    let handles: Vec<_> = mocks.iter().map(|m| m.script("GET", "201")).collect();
    for (mock, h) in mocks.iter().zip(&handles) {
        assert_eq!(ask(mock.addr(), &get(&h.path())).status, 201);
    }
    let addrs: Vec<SocketAddr> = mocks.iter().map(Mock::addr).collect();
    let mut open = connect(addrs[0]);
    eventually("it is accepted", || mocks[0].connections().len() == 2);
    drop(mocks);
    // Closed at once, though the handles live on.
    for addr in &addrs {
        eventually("refused", || TcpStream::connect(addr).is_err());
    }
    assert_eq!(open.read(&mut [0]).unwrap_or(0), 0);
    eventually("the port is free again", || {
        TcpListener::bind(addrs[0]).is_ok()
    });
    assert_eq!(handles[0].attempts().len(), 1, "a handle can still be read");
}

#[test]
fn sixty_four_requests_with_one_key_make_one_resource() {
    let mock = Mock::start_blocking();
    let h = mock.script("POST", "201 create=slow:50ms x*");
    let statuses: Vec<u16> = std::thread::scope(|s| {
        let one = |_| {
            s.spawn(|| ask(mock.addr(), &post(&h.path(), "Idempotency-Key: k\r\n", "b")).status)
        };
        let threads: Vec<_> = (0..64).map(one).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert_eq!(h.effects(), 1);
    let count = |status| statuses.iter().filter(|s| **s == status).count();
    // The one that made it, those that came while it was made, those that came after.
    assert!(
        count(201) >= 1 && count(201) + count(409) == 64,
        "{statuses:?}"
    );
    let replayed = h
        .attempts()
        .iter()
        .filter(|e| e.effect == ressac_mock::Effect::Replayed)
        .count();
    assert_eq!(count(201), 1 + replayed);
}
