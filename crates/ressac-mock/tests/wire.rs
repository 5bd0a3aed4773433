//! Exact bytes, their number and the end, for every word, on a raw socket.
#![allow(clippy::unwrap_used)]

mod raw;

use std::io::{Read, Write};
use std::time::{Duration, Instant, UNIX_EPOCH};

use raw::{Ended, ask, connect, get, post, read_reply, read_to_end, split, until_end};
use ressac_mock::{Mock, Wire};

const DEADLINE: Duration = Duration::from_secs(10);

#[test]
fn a_status_is_these_lines_and_nothing_else() {
    let mock = Mock::start_blocking();
    let h = mock.script("GET", "503 ra=2 h=X-A:1 h=X-A:2");
    let (bytes, end) = until_end(
        mock.addr(),
        &format!("GET {} HTTP/1.1\r\nConnection: close\r\n\r\n", h.path()),
    );
    let date = split(&bytes).header("Date").unwrap().to_owned();
    let want = format!(
        "HTTP/1.1 503 Service Unavailable\r\nDate: {date}\r\nContent-Length: 0\r\n\
         Ressac-Mock: {};n=1;step=1\r\nRetry-After: 2\r\nX-A: 1\r\nX-A: 2\r\n\
         Connection: close\r\n\r\n",
        h.route()
    );
    assert_eq!((String::from_utf8(bytes).unwrap(), end), (want, Ended::Fin));
    let age = UNIX_EPOCH.elapsed().unwrap()
        - httpdate::parse_http_date(&date)
            .unwrap()
            .duration_since(UNIX_EPOCH)
            .unwrap();
    assert!(age < DEADLINE, "{age:?}");
}

#[test]
fn bodies_and_keep_alive() {
    let mock = Mock::start_blocking();
    let h = mock.script(
        "GET",
        "200, 200 body=130, 404 text=\"hé\\n\", 200 json={\"a\": [1, 2]}, 204",
    );
    let mut s = connect(mock.addr());
    let mut next = || {
        s.write_all(get(&h.path()).as_bytes()).unwrap();
        read_reply(&mut s)
    };
    let json = format!("{{\"n\":1,\"step\":1,\"token\":\"{}\"}}", h.token());
    assert_eq!(next().text(), json);
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let pattern: Vec<u8> = (0..130).map(|i| letters[(i + i / 64) % 64]).collect();
    assert_eq!(next().body, pattern);
    let text = next();
    assert_eq!((text.status, text.text()), (404, "hé\n"));
    let json = next();
    assert_eq!(json.header("Content-Type"), Some("application/json"));
    assert_eq!(json.text(), "{\"a\": [1, 2]}");
    let none = next();
    assert_eq!((none.status, none.header("Content-Length")), (204, None));
    assert!(h.attempts().iter().all(|e| e.conn == h.attempts()[0].conn));
    h.verify();
}

#[test]
fn mo_10_head_gets_a_length_and_no_body() {
    let mock = Mock::start_blocking();
    let h = mock.script("*", "200 body=50 x2");
    let mut s = connect(mock.addr());
    write!(s, "HEAD {} HTTP/1.1\r\n\r\n", h.path()).unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut b = [0];
        s.read_exact(&mut b).unwrap();
        head.push(b[0]);
    }
    assert!(
        String::from_utf8(head)
            .unwrap()
            .contains("Content-Length: 50\r\n")
    );
    // The next byte on the connection is the next reply.
    s.write_all(get(&h.path()).as_bytes()).unwrap();
    assert_eq!(read_reply(&mut s).body.len(), 50);
}

#[test]
fn mo_2_fin_and_rst_at_every_point() {
    let mock = Mock::start_blocking();
    for (word, end) in [("fin", Ended::Fin), ("rst", Ended::Rst)] {
        for (point, body) in [
            ("head", None),
            ("req", None),
            ("hdr", Some(0)),
            ("body+10", Some(10)),
            ("end", Some(100)),
        ] {
            let reply = if body.is_some() { "200 body=100 " } else { "" };
            let h = mock.script("POST", &format!("{reply}{word}@{point}"));
            let (bytes, got) = until_end(mock.addr(), &post(&h.path(), "", "hello"));
            assert_eq!(got, end, "{word}@{point}");
            match body {
                None => assert!(bytes.is_empty(), "{word}@{point}: {bytes:?}"),
                Some(n) => {
                    let r = split(&bytes);
                    assert_eq!((r.status, r.body.len()), (200, n), "{word}@{point}");
                    assert_eq!(r.header("Content-Length"), Some("100"));
                }
            }
            let e = &h.wait_done_blocking(1, DEADLINE).unwrap()[0];
            let sent = e.sent.as_ref().unwrap();
            let wire = if end == Ended::Fin {
                Wire::Fin
            } else {
                Wire::Rst
            };
            assert_eq!(
                (sent.wire, sent.body_bytes),
                (wire, body.unwrap_or(0) as u64)
            );
            assert_eq!(e.t_req_end.is_some(), point != "head");
        }
    }
}

#[test]
fn mo_2_writes_after_fin_do_not_fail() {
    let mock = Mock::start_blocking();
    let h = mock.script("POST", "fin@head");
    let mut s = connect(mock.addr());
    write!(
        s,
        "POST {} HTTP/1.1\r\nContent-Length: 100000\r\n\r\n",
        h.path()
    )
    .unwrap();
    assert_eq!(s.read(&mut [0; 10]).unwrap(), 0);
    for _ in 0..5 {
        s.write_all(b"more of the body").unwrap();
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn mo_2_rst_after_exactly_n_bytes_even_to_a_slow_reader() {
    let mock = Mock::start_blocking();
    let h = mock.script("GET", "200 body=300000 rst@body+200000");
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    socket.connect(&mock.addr().into()).unwrap();
    let mut s: std::net::TcpStream = socket.into();
    s.set_read_timeout(Some(DEADLINE)).unwrap();
    s.write_all(get(&h.path()).as_bytes()).unwrap();
    let (mut all, mut buf) = (Vec::new(), [0; 2048]);
    let end = loop {
        std::thread::sleep(Duration::from_millis(2));
        match s.read(&mut buf) {
            Ok(0) => break Ended::Fin,
            Ok(n) => all.extend_from_slice(&buf[..n]),
            Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => break Ended::Rst,
            Err(e) => panic!("{e}"),
        }
    };
    let wire = h.wait_done_blocking(1, DEADLINE).unwrap()[0]
        .sent
        .clone()
        .unwrap()
        .wire;
    assert_eq!(
        (split(&all).body.len(), end, wire),
        (200_000, Ended::Rst, Wire::Rst)
    );
}

#[test]
fn close_says_so_and_a_short_body_ends_in_fin() {
    let mock = Mock::start_blocking();
    let h = mock.script("GET", "200 body=3 close, 200 cl=100 body=40");
    let (bytes, end) = until_end(mock.addr(), &get(&h.path()));
    let r = split(&bytes);
    assert_eq!(
        (r.header("Connection"), r.body.len(), end),
        (Some("close"), 3, Ended::Fin)
    );
    let (bytes, end) = until_end(mock.addr(), &get(&h.path()));
    let r = split(&bytes);
    assert_eq!(
        (r.header("Content-Length"), r.body.len(), end),
        (Some("100"), 40, Ended::Fin)
    );
    assert_eq!(r.header("Connection"), None);
}

#[test]
fn stall_sends_what_was_said_and_stays_open() {
    let mock = Mock::start_blocking();
    let h = mock.script("GET", "stall, 200 body=5 cl=9 stall");
    for want in [0, 5] {
        let mut s = connect(mock.addr());
        s.write_all(get(&h.path()).as_bytes()).unwrap();
        s.set_read_timeout(Some(Duration::from_millis(150)))
            .unwrap();
        let mut all = Vec::new();
        let err = s.read_to_end(&mut all).unwrap_err();
        assert!(matches!(
            err.kind(),
            std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
        ));
        let body = if want == 0 {
            all.len()
        } else {
            split(&all).body.len()
        };
        assert_eq!(body, want);
    }
    let wires: Vec<_> = h
        .wait_done_blocking(2, DEADLINE)
        .unwrap()
        .into_iter()
        .map(|e| e.sent.unwrap().wire)
        .collect();
    assert_eq!(wires, [Wire::Stall, Wire::Stall]);
}

#[test]
fn hold_keeps_silent_for_its_time() {
    let mock = Mock::start_blocking();
    let h = mock.script("GET", "200 hold=120ms, 200 hold=50ms..150ms");
    for (low, high) in [(120, 2000), (50, 2000)] {
        let begun = Instant::now();
        assert_eq!(ask(mock.addr(), &get(&h.path())).status, 200);
        let took = begun.elapsed();
        assert!(
            took >= Duration::from_millis(low) && took < Duration::from_millis(high),
            "{took:?}"
        );
    }
}

#[test]
fn dates_parse_back_to_the_journaled_instant() {
    let mock = Mock::start_blocking();
    for script in [
        "429 ra=@+3s",
        "429 ra=@850+3s",
        "429 ra=@asc+3s",
        "429 ra=@-1h",
    ] {
        let h = mock.script("GET", script);
        let asked = UNIX_EPOCH.elapsed().unwrap();
        let r = ask(mock.addr(), &get(&h.path()));
        let named = httpdate::parse_http_date(r.header("Retry-After").unwrap()).unwrap();
        let named = named.duration_since(UNIX_EPOCH).unwrap();
        let e = &h.attempts()[0];
        assert_eq!(e.retry_date, Some(named.as_secs() as i64), "{script}");
        if script.contains('+') {
            assert!(
                named >= asked + Duration::from_secs(3),
                "never earlier than asked"
            );
            assert!(named <= asked + Duration::from_secs(9));
            let anchor = mock.anchor().duration_since(UNIX_EPOCH).unwrap();
            let journaled = anchor + Duration::from_nanos(e.retry_at.unwrap());
            assert!(
                journaled.abs_diff(named) < Duration::from_millis(500),
                "{journaled:?} {named:?}"
            );
        } else {
            assert!(named + Duration::from_secs(3590) < asked);
        }
    }
}

#[test]
fn a_wrong_clock_and_none_at_all() {
    let mock = Mock::start_blocking();
    let h = mock.script(
        "GET",
        "429 date=+10m ra=@+3s, 429 date=-10m ra=@+3s, 429 date=none ra=1",
    );
    for sign in [1i64, -1] {
        let now = UNIX_EPOCH.elapsed().unwrap().as_secs() as i64;
        let r = ask(mock.addr(), &get(&h.path()));
        let secs = |name| {
            let t = httpdate::parse_http_date(r.header(name).unwrap()).unwrap();
            t.duration_since(UNIX_EPOCH).unwrap().as_secs() as i64
        };
        assert_eq!(secs("Retry-After") - secs("Date"), 3);
        assert!((secs("Date") - now - sign * 600).abs() <= 10);
    }
    let r = ask(mock.addr(), &get(&h.path()));
    assert_eq!(
        (r.header("Date"), r.header("Retry-After")),
        (None, Some("1"))
    );
    let e = &h.attempts()[2];
    assert_eq!(e.retry_at, Some(e.t_reply_before.unwrap() + 1_000_000_000));
}

#[test]
fn retry_after_texts_go_out_as_written() {
    let mock = Mock::start_blocking();
    let long = "9".repeat(29);
    for (word, want) in [
        ("\"1.5\"", "1.5"),
        ("\"\"", ""),
        ("\"1, 2\"", "1, 2"),
        (long.as_str(), long.as_str()),
    ] {
        let h = mock.script("GET", &format!("429 ra={word}"));
        let r = ask(mock.addr(), &get(&h.path()));
        assert_eq!(r.header("Retry-After"), Some(want));
        let at = h.attempts()[0].retry_at;
        assert_eq!(at, want.starts_with('9').then_some(u64::MAX));
    }
}

#[test]
fn barrier_releases_all_together_or_by_time() {
    let mock = Mock::start_blocking();
    let h = mock.script("GET", "503 barrier=4 x4, 200 barrier=4:100ms");
    let path = h.path();
    std::thread::scope(|s| {
        for i in 0..4 {
            let (path, addr) = (&path, mock.addr());
            s.spawn(move || {
                std::thread::sleep(Duration::from_millis(40 * i));
                assert_eq!(ask(addr, &get(path)).status, 503);
            });
        }
    });
    let list = h.attempts();
    let last_in = list.iter().map(|e| e.t_head).max().unwrap();
    let first_out = list.iter().filter_map(|e| e.t_reply_before).min().unwrap();
    assert!(
        first_out >= last_in,
        "a reply left before the last had come"
    );
    let begun = Instant::now();
    assert_eq!(ask(mock.addr(), &get(&path)).status, 200);
    assert!(begun.elapsed() >= Duration::from_millis(100));
    assert_eq!(h.attempts()[4].flags, [ressac_mock::Flag::BarrierTimeout]);
}

#[test]
fn request_bodies_expect_and_chunks() {
    let mock = Mock::start_blocking();
    let h = mock.script("POST", "200 x*");
    let mut s = connect(mock.addr());
    write!(
        s,
        "POST {} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
        h.path()
    )
    .unwrap();
    s.write_all(b"5;x=y\r\nhello\r\n1\r\n!\r\n0\r\nTrailer: 1\r\n\r\n")
        .unwrap();
    assert_eq!(read_reply(&mut s).status, 200);
    write!(
        s,
        "POST {} HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 6\r\n\r\n",
        h.path()
    )
    .unwrap();
    let mut interim = [0; 25];
    s.read_exact(&mut interim).unwrap();
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    s.write_all(b"hello!").unwrap();
    assert_eq!(read_reply(&mut s).status, 200);
    let list = h.attempts();
    assert_eq!(
        (list[0].body_len, &list[0].body_head[..]),
        (6, &b"hello!"[..])
    );
    assert_eq!(list[0].body_sha256, list[1].body_sha256);
}

#[test]
fn malformed_requests_get_400_and_take_no_step() {
    let mock = Mock::start_blocking();
    let h = mock.script("GET", "200");
    for bad in [
        "\u{1}\u{2}\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "GET / HTTP/1.1\r\nbad header\r\n\r\n",
    ] {
        let (bytes, end) = until_end(mock.addr(), bad);
        let r = split(&bytes);
        assert_eq!(
            (r.status, r.header("Ressac-Mock"), end),
            (400, Some("bad-request"), Ended::Fin)
        );
    }
    let big = format!(
        "GET {} HTTP/1.1\r\nX: {}\r\n\r\n",
        h.path(),
        "x".repeat(70_000)
    );
    assert_eq!(split(&until_end(mock.addr(), &big).0).status, 400);
    // A head that never completes is journaled and takes no step either.
    let mut s = connect(mock.addr());
    write!(s, "GET {} HTT", h.path()).unwrap();
    s.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(read_to_end(&mut s), (vec![], Ended::Fin));
    assert_eq!(ask(mock.addr(), &get(&h.path())).status, 200);
    let kinds: Vec<_> = mock.journal().iter().map(|e| e.kind).collect();
    use ressac_mock::Kind::{BadRequest, Incomplete, Request};
    assert_eq!(
        kinds,
        [
            BadRequest, BadRequest, BadRequest, BadRequest, Incomplete, Request
        ]
    );
}

#[test]
fn without_routes_every_path_answers_200() {
    let mock = Mock::start_blocking();
    assert_eq!(ask(mock.addr(), &get("/anything?x=1")).status, 200);
    mock.script("GET", "200");
    let r = ask(mock.addr(), &get("/anything"));
    assert_eq!((r.status, r.header("Ressac-Mock")), (404, Some("no-route")));
}

#[test]
fn journal_and_client_agree_on_every_byte() {
    let mock = Mock::start_blocking();
    for (script, body) in [
        ("200 body=70000", 70_000),
        ("200 body=70000 chunked", 70_000),
        ("200 body=70000 fin@body+65537", 65_537),
        ("200 body=9 drip=2/1ms rst@body+5", 5),
        ("200 body=9 gap=5ms until-close", 9),
        ("200 body=9 drip-head=40/1ms quiet-close", 9),
        ("200 text=\"hé\" nolast", 3),
        ("503 fin@hdr", 0),
    ] {
        let h = mock.script("GET", script);
        let request = get(&h.path()).replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
        let (bytes, _) = until_end(mock.addr(), &request);
        let reply = split(&bytes);
        let sent = h.wait_done_blocking(1, DEADLINE).unwrap()[0]
            .sent
            .clone()
            .unwrap();
        assert_eq!(sent.body_bytes, body, "{script}");
        assert_eq!(sent.headers, reply.headers, "{script}");
        // What stands around chunks is the frame's, not the body's.
        let frame = match reply.header("Transfer-Encoding") {
            Some(_) if body == 70_000 => "10000\r\n\r\n1170\r\n\r\n0\r\n\r\n".len(),
            Some(_) => "3\r\n\r\n".len(),
            None => 0,
        };
        assert_eq!(reply.body.len(), body as usize + frame, "{script}");
    }
}

#[test]
fn the_first_bytes_of_a_connection_are_kept_as_they_were() {
    let options = ressac_mock::Options {
        raw_bytes: 64,
        ..Default::default()
    };
    let mock = raw::start_with("", options);
    let (bytes, _) = until_end(mock.addr(), "GET /a HTTP/1.1\r\nConnection: close\r\n\r\n");
    raw::eventually("the end is journaled", || {
        mock.connections().iter().all(|c| c.end.is_some())
    });
    let all = mock.connections();
    let tape = all[0].raw.as_ref().unwrap();
    assert_eq!(
        tape.received(),
        b"GET /a HTTP/1.1\r\nConnection: close\r\n\r\n"
    );
    assert_eq!(tape.sent(), bytes[..64]);
    assert!(Mock::start_blocking().connections().is_empty());
}
