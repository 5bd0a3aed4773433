//! A client of plain sockets: no HTTP library, and none of the mock's own code.
#![allow(clippy::unwrap_used, dead_code, unreachable_pub)]

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    Fin,
    Rst,
}

pub fn connect(addr: SocketAddr) -> TcpStream {
    let s = TcpStream::connect(addr).unwrap();
    s.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    s.set_nodelay(true).unwrap();
    s
}

/// A request without a body.
pub fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: m\r\n\r\n")
}

/// A POST with a body and more header lines, each ending in CRLF.
pub fn post(path: &str, more: &str, body: &str) -> String {
    let len = body.len();
    format!("POST {path} HTTP/1.1\r\nHost: m\r\nContent-Length: {len}\r\n{more}\r\n{body}")
}

/// Reads until the connection ends.
pub fn read_to_end(s: &mut TcpStream) -> (Vec<u8>, Ended) {
    let mut all = Vec::new();
    let mut buf = [0; 4096];
    loop {
        match s.read(&mut buf) {
            Ok(0) => return (all, Ended::Fin),
            Ok(n) => all.extend_from_slice(&buf[..n]),
            Err(e) if e.kind() == ErrorKind::ConnectionReset => return (all, Ended::Rst),
            Err(e) => panic!("after {} bytes: {e}", all.len()),
        }
    }
}

/// Sends and reads until the connection ends.
pub fn until_end(addr: SocketAddr, request: &str) -> (Vec<u8>, Ended) {
    let mut s = connect(addr);
    s.write_all(request.as_bytes()).unwrap();
    read_to_end(&mut s)
}

/// A reply taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, v)| v.as_str())
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

/// Splits bytes into head and what follows.
pub fn split(bytes: &[u8]) -> Reply {
    let end = bytes
        .windows(4)
        .position(|w| w == b"\r\n\r\n")
        .expect("no end of head");
    let head = std::str::from_utf8(&bytes[..end]).unwrap();
    let mut lines = head.split("\r\n");
    let status = lines
        .next()
        .unwrap()
        .split(' ')
        .nth(1)
        .unwrap()
        .parse()
        .unwrap();
    let headers = lines
        .map(|l| l.split_once(": ").unwrap())
        .map(|(n, v)| (n.to_owned(), v.to_owned()))
        .collect();
    Reply {
        status,
        headers,
        body: bytes[end + 4..].to_vec(),
    }
}

/// Reads one reply of announced length from a connection kept alive.
pub fn read_reply(s: &mut TcpStream) -> Reply {
    let mut all = Vec::new();
    let mut buf = [0; 4096];
    while !all.windows(4).any(|w| w == b"\r\n\r\n") {
        let n = s.read(&mut buf).unwrap();
        assert!(
            n > 0,
            "ended inside a head: {:?}",
            String::from_utf8_lossy(&all)
        );
        all.extend_from_slice(&buf[..n]);
    }
    let mut reply = split(&all);
    let len: usize = reply
        .header("content-length")
        .map_or(0, |l| l.parse().unwrap());
    while reply.body.len() < len {
        let n = s.read(&mut buf).unwrap();
        assert!(n > 0, "ended inside a body");
        reply.body.extend_from_slice(&buf[..n]);
    }
    assert_eq!(reply.body.len(), len, "more than was announced");
    reply
}

/// Sends on a connection of its own and reads one reply.
pub fn ask(addr: SocketAddr, request: &str) -> Reply {
    let mut s = connect(addr);
    s.write_all(request.as_bytes()).unwrap();
    read_reply(&mut s)
}

/// Starts a mock from the text of a scenario, without its `version`.
pub fn start(text: &str) -> ressac_mock::Mock {
    start_with(text, ressac_mock::Options::default())
}

pub fn start_with(text: &str, options: ressac_mock::Options) -> ressac_mock::Mock {
    let text = format!("version = 1\n{text}");
    let scenario = ressac_mock::Scenario::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    ressac_mock::Mock::start_blocking_with(scenario, options).unwrap()
}

/// Waits for something to become true, at most ten seconds.
pub fn eventually(what: &str, mut fits: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !fits() {
        assert!(begun.elapsed() < Duration::from_secs(10), "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Reads exactly so many bytes.
pub fn read_n(s: &mut TcpStream, n: usize) -> Vec<u8> {
    let mut buf = vec![0; n];
    s.read_exact(&mut buf).unwrap();
    buf
}

/// Reads to the end of a head, and no byte further.
pub fn read_head(s: &mut TcpStream) -> Reply {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.extend(read_n(s, 1));
    }
    split(&head)
}

/// Whether nothing comes for a while.
pub fn silent(s: &mut TcpStream, time: Duration) -> bool {
    s.set_read_timeout(Some(time)).unwrap();
    let got = s.peek(&mut [0]);
    s.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    matches!(got, Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut))
}
