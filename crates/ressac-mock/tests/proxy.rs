//! The fault proxy: what no route takes goes to the upstream; raw bytes go through tunnels.
#![allow(clippy::unwrap_used)]

mod raw;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use raw::{
    Ended, ask, connect, eventually, get, post, read_n, read_to_end, start, start_with, until_end,
};
use ressac_mock::{Fault, Flag, Mock, MockError, Options, Scenario};

fn behind(upstream: &Mock, text: &str) -> Mock {
    let options = Options {
        upstream: Some(upstream.url()),
        ..Options::default()
    };
    start_with(text, options)
}

#[test]
fn what_no_route_takes_is_passed_on_whole() {
    let upstream = Mock::start_blocking();
    let u = upstream.script("POST", "201 create h=X-Up:1 h=X-Up:2 chunked text=\"made\"");
    let mock = behind(&upstream, "");
    let request = post(
        &u.path(),
        "X-A: 1\r\nX-A: 2\r\nConnection: X-Hop\r\nX-Hop: 1\r\n",
        "hello",
    );
    let r = ask(mock.addr(), &request);
    assert_eq!((r.status, r.text()), (201, "made"));
    let ups: Vec<_> = r.headers.iter().filter(|h| h.0 == "X-Up").collect();
    assert_eq!((ups.len(), r.header("Transfer-Encoding")), (2, None));
    let e = u.wait_done_blocking(1, Duration::from_secs(10)).unwrap()[0].clone();
    assert_eq!(&e.body_head[..], b"hello");
    let seen: Vec<_> = e
        .headers
        .iter()
        .filter(|h| h.0 == "X-A")
        .map(|h| h.1.as_str())
        .collect();
    assert_eq!((seen, e.header("X-Hop")), (vec!["1", "2"], None));
    assert_eq!(e.header("Host"), Some(&upstream.url()["http://".len()..]));
}

#[test]
fn head_keeps_the_length_of_what_get_would_bring() {
    let upstream = Mock::start_blocking();
    let u = upstream.script("*", "200 body=1000 x2, 200 chunked body=1000, 304");
    let text = format!(
        "[[route]]\nname = \"p\"\npath = \"{}\"\nscript = \"pass x*\"",
        u.path()
    );
    let mock = behind(&upstream, &text);
    let mut s = connect(mock.addr());
    let mut head = |method: &str| {
        let request = get(&u.path()).replacen("GET", method, 1);
        s.write_all(request.as_bytes()).unwrap();
        let reply = raw::read_head(&mut s);
        (
            reply.status,
            reply.header("Content-Length").map(str::to_owned),
        )
    };
    assert_eq!(head("HEAD"), (200, Some("1000".to_owned())));
    // No body followed it, and the connection goes on.
    assert_eq!(head("HEAD"), (200, Some("1000".to_owned())));
    assert_eq!(head("HEAD"), (200, None), "the upstream told no length");
    assert_eq!(head("GET"), (304, None));
    let list = mock.journal();
    let sent = list.iter().map(|e| e.sent.as_ref().unwrap());
    assert!(sent.clone().all(|s| s.body_bytes == 0));
    assert_eq!(u.attempts().len(), 4);
}

#[test]
fn fail_the_first_two_then_work() {
    let upstream = Mock::start_blocking();
    let u = upstream.script("GET", "200 body=100 x*");
    let text = format!(
        "[[route]]\nname = \"p\"\npath = \"{}\"\nscript = \"503 x2, pass, pass rst@body+10, pass h=X:1 x*\"",
        u.path()
    );
    let mock = behind(&upstream, &text);
    let one = || ask(mock.addr(), &get(&u.path()));
    assert_eq!([one().status, one().status], [503, 503]);
    assert_eq!(u.attempts().len(), 0);
    let r = one();
    assert_eq!((r.status, r.body.len()), (200, 100));
    // The fault hits the reply; the effect has happened.
    let (bytes, end) = until_end(mock.addr(), &get(&u.path()));
    assert_eq!((raw::split(&bytes).body.len(), end), (10, Ended::Rst));
    assert_eq!(u.attempts().len(), 2);
    assert_eq!(one().header("X"), Some("1"));
}

#[test]
fn faults_come_and_go_in_front_of_a_program() {
    let upstream = Mock::start_blocking();
    let mock = behind(&upstream, "");
    let one = || ask(mock.addr(), &get("/any"));
    assert_eq!(one().status, 200);
    let mut fault = Fault::new("503 ra=1", Duration::from_secs(30));
    fault.times = Some(1);
    mock.add_fault(fault).unwrap();
    assert_eq!([one().status, one().status], [503, 200]);
    mock.add_fault(Fault::new("hold=120ms pass", Duration::from_secs(30)))
        .unwrap();
    let begun = Instant::now();
    assert_eq!(one().status, 200);
    assert!(begun.elapsed() >= Duration::from_millis(120));
    assert_eq!(upstream.journal().len(), 3);
}

#[test]
fn an_upstream_that_fails_is_a_loud_502() {
    let upstream = Mock::start_blocking();
    let u = upstream.script("GET", "200 body=100 fin@body+10, garbage=64, fin@req x*");
    let mock = behind(&upstream, "");
    for part in ["cut in the body", "no HTTP", "closed before"] {
        let r = ask(mock.addr(), &get(&u.path()));
        assert_eq!(
            (r.status, r.header("Ressac-Mock")),
            (502, Some("upstream-failed"))
        );
        assert!(r.text().contains(part), "{part} in {}", r.text());
    }
    drop(upstream);
    let r = ask(mock.addr(), &get("/x"));
    assert!(r.text().contains("cannot connect"), "{}", r.text());
    assert_eq!(mock.journal()[3].flags, [Flag::UpstreamFailed]);
}

#[test]
fn a_wrong_upstream_or_none_is_refused_at_the_start() {
    let options = Options {
        upstream: Some("https://x".to_owned()),
        ..Options::default()
    };
    let err = Mock::start_blocking_with(Scenario::default(), options).unwrap_err();
    assert!(matches!(err, MockError::Upstream(_)));
    let text = "version = 1\n[[route]]\nname = \"p\"\npath = \"/p\"\nscript = \"pass x*\"";
    let err = Mock::start_blocking_with(Scenario::parse(text).unwrap(), Options::default());
    assert!(matches!(err.unwrap_err(), MockError::NoUpstream(_)));
    assert!(Mock::start_blocking().try_script("GET", "pass").is_err());
}

/// A server that echoes what it reads.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                let mut buf = [0; 4096];
                while let Ok(n @ 1..) = stream.read(&mut buf) {
                    if stream.write_all(&buf[..n]).is_err() {
                        return;
                    }
                }
            });
        }
    });
    addr
}

fn tunnel(words: &str) -> Mock {
    let to = echo();
    start(&format!(
        "[[listener]]\nname = \"t\"\ntcp = {{ to = \"{to}\", {words} }}"
    ))
}

#[test]
fn a_tunnel_forwards_raw_bytes_both_ways() {
    let to = echo();
    let mock = start(&format!(
        "[[listener]]\nname = \"t\"\ntcp = {{ to = \"{to}\" }}"
    ));
    let mut s = connect(mock.addr());
    let sent: Vec<u8> = (0..200_000u32).map(|i| (i % 251) as u8).collect();
    let mut writer = s.try_clone().unwrap();
    let copy = sent.clone();
    let thread = std::thread::spawn(move || {
        writer.write_all(&copy).unwrap();
        writer.shutdown(std::net::Shutdown::Write).unwrap();
    });
    let (got, end) = read_to_end(&mut s);
    thread.join().unwrap();
    assert_eq!((got == sent, end), (true, Ended::Fin));
    assert_eq!(
        mock.listener_url("t").unwrap(),
        format!("tcp://{}", mock.addr())
    );
}

#[test]
fn latency_and_rate() {
    let mock =
        tunnel("request = { latency = \"80ms\" }, reply = { latency = \"80ms\" }, ttl = \"1m\"");
    let mut s = connect(mock.addr());
    let begun = Instant::now();
    s.write_all(b"hello").unwrap();
    assert_eq!(read_n(&mut s, 5), b"hello");
    assert!(
        begun.elapsed() >= Duration::from_millis(160),
        "{:?}",
        begun.elapsed()
    );
    let mock = tunnel("reply = { rate = 1000 }, ttl = \"1m\"");
    let mut s = connect(mock.addr());
    let begun = Instant::now();
    s.write_all(&[7; 300]).unwrap();
    assert_eq!(read_n(&mut s, 300), [7; 300]);
    // 300 bytes at 1000 a second; the last piece is not waited for.
    assert!(
        begun.elapsed() >= Duration::from_millis(240),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn a_tunnel_is_cut_after_exactly_n_bytes() {
    for (cut, end) in [("fin@7", Ended::Fin), ("rst@7", Ended::Rst)] {
        let mock = tunnel(&format!("reply = {{ cut = \"{cut}\" }}, ttl = \"1m\""));
        let mut s = connect(mock.addr());
        s.write_all(b"0123456789").unwrap();
        assert_eq!(read_to_end(&mut s), (b"0123456".to_vec(), end), "{cut}");
    }
    let mock = tunnel("request = { cut = \"rst@0\" }, ttl = \"1m\"");
    assert_eq!(read_to_end(&mut connect(mock.addr())), (vec![], Ended::Rst));
}

#[test]
fn the_faults_of_a_tunnel_end_with_their_time() {
    let mock = tunnel("down = true, ttl = \"300ms\"");
    assert!(TcpStream::connect(mock.addr()).is_err());
    eventually("it opens", || TcpStream::connect(mock.addr()).is_ok());
    assert!(mock.now() >= 300_000_000);
    let mock = tunnel("reply = { cut = \"rst@1\" }, ttl = \"100ms\"");
    std::thread::sleep(Duration::from_millis(120));
    let mut s = connect(mock.addr());
    s.write_all(b"hello").unwrap();
    assert_eq!(read_n(&mut s, 5), b"hello");
}

#[test]
fn a_tunnel_to_nowhere_is_reset() {
    let nowhere = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let mock = start(&format!(
        "[[listener]]\nname = \"t\"\ntcp = {{ to = \"{nowhere}\" }}"
    ));
    assert_eq!(read_to_end(&mut connect(mock.addr())), (vec![], Ended::Rst));
}
