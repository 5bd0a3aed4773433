//! The rarer words of the notation on a raw socket: exact bytes, their number, and the end.
#![allow(clippy::unwrap_used)]

mod raw;

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use raw::{
    Ended, connect, eventually, get, post, read_head, read_n, read_reply, read_to_end, silent,
    split, until_end,
};
use ressac_mock::{Flag, Mock, Wire};

const DEADLINE: Duration = Duration::from_secs(10);

fn pattern(n: usize) -> Vec<u8> {
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    (0..n).map(|i| letters[(i + i / 64) % 64]).collect()
}

fn wire(h: &ressac_mock::ScriptHandle, n: usize) -> Wire {
    let list = h.wait_done_blocking(n, DEADLINE).unwrap();
    list[n - 1].sent.as_ref().unwrap().wire
}

#[test]
fn gap_lies_between_head_and_body() {
    let mock = Mock::start_blocking();
    let h = mock.script("GET", "200 body=10 gap=150ms");
    let mut s = connect(mock.addr());
    s.write_all(get(&h.path()).as_bytes()).unwrap();
    let head = read_head(&mut s);
    let begun = Instant::now();
    assert_eq!(head.header("Content-Length"), Some("10"));
    assert_eq!(read_n(&mut s, 10), pattern(10));
    let took = begun.elapsed();
    assert!(took >= Duration::from_millis(140), "{took:?}");
    let e = &h.wait_done_blocking(1, DEADLINE).unwrap()[0];
    // The stamp before the last write: a client cannot have had the whole reply earlier.
    assert!(e.t_reply_before.unwrap() >= e.t_head + 150_000_000);
    assert_eq!(
        (wire(&h, 1), e.sent.as_ref().unwrap().body_bytes),
        (Wire::Complete, 10)
    );
}

#[test]
fn drip_sends_pieces_one_every_t() {
    let mock = Mock::start_blocking();
    let h = mock.script("GET", "200 body=9 drip=4/60ms");
    let mut s = connect(mock.addr());
    s.write_all(get(&h.path()).as_bytes()).unwrap();
    read_head(&mut s);
    let (mut sizes, mut buf) = (Vec::new(), [0; 64]);
    let begun = Instant::now();
    while sizes.iter().sum::<usize>() < 9 {
        sizes.push(s.read(&mut buf).unwrap());
    }
    assert_eq!(sizes, [4, 4, 1]);
    assert!(
        begun.elapsed() >= Duration::from_millis(110),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(wire(&h, 1), Wire::Complete);
}

#[test]
fn drip_head_cuts_the_head_into_pieces() {
    let mock = Mock::start_blocking();
    let h = mock.script("GET", "204 date=none drip-head=20/40ms");
    let mut s = connect(mock.addr());
    s.write_all(get(&h.path()).as_bytes()).unwrap();
    let (mut all, mut buf, mut most) = (Vec::new(), [0; 512], 0);
    let begun = Instant::now();
    while !all.ends_with(b"\r\n\r\n") {
        let n = s.read(&mut buf).unwrap();
        most = most.max(n);
        all.extend_from_slice(&buf[..n]);
    }
    // A reader that was held up may find two pieces; never the whole head.
    assert!(most < all.len() && all.starts_with(b"HTTP/1.1 204 No Content\r\n"));
    let pieces = all.len().div_ceil(20) as u64;
    assert!(begun.elapsed() >= Duration::from_millis(40 * (pieces - 1) - 10));
}

#[test]
fn chunked_nolast_badchunk_and_until_close() {
    let mock = Mock::start_blocking();
    let h = mock.script(
        "GET",
        "200 body=20 chunked, 200 body=20 nolast, 200 body=20 badchunk, 200 body=20 until-close",
    );
    let body = String::from_utf8(pattern(20)).unwrap();
    let mut s = connect(mock.addr());
    s.write_all(get(&h.path()).as_bytes()).unwrap();
    let head = read_head(&mut s);
    assert_eq!(
        (
            head.header("Transfer-Encoding"),
            head.header("Content-Length")
        ),
        (Some("chunked"), None)
    );
    let want = format!("14\r\n{body}\r\n0\r\n\r\n");
    assert_eq!(read_n(&mut s, want.len()), want.as_bytes());
    // Kept alive: the next reply comes on the same connection.
    s.write_all(get(&h.path()).as_bytes()).unwrap();
    let (bytes, end) = read_to_end(&mut s);
    assert_eq!(split(&bytes).body, format!("14\r\n{body}\r\n").as_bytes());
    assert_eq!((end, wire(&h, 2)), (Ended::Fin, Wire::Fin));
    let (bytes, end) = until_end(mock.addr(), &get(&h.path()));
    assert_eq!(
        split(&bytes).body,
        format!("14\r\n{body}\r\nnot hex\r\n").as_bytes()
    );
    assert_eq!((end, wire(&h, 3)), (Ended::Fin, Wire::Fin));
    let (bytes, end) = until_end(mock.addr(), &get(&h.path()));
    let r = split(&bytes);
    assert_eq!(
        (r.header("Content-Length"), r.header("Transfer-Encoding")),
        (None, None)
    );
    assert_eq!((r.body.as_slice(), end), (body.as_bytes(), Ended::Fin));
    assert_eq!(wire(&h, 4), Wire::Complete);
}

#[test]
fn a_cut_inside_a_chunk_leaves_its_size_standing() {
    let mock = Mock::start_blocking();
    let h = mock.script(
        "GET",
        "200 body=20 chunked rst@body+7, 200 chunked body=20 drip=8/10ms",
    );
    let (bytes, end) = until_end(mock.addr(), &get(&h.path()));
    let want = [b"14\r\n".as_slice(), &pattern(7)].concat();
    assert_eq!((split(&bytes).body, end), (want, Ended::Rst));
    let mut s = connect(mock.addr());
    s.write_all(get(&h.path()).as_bytes()).unwrap();
    read_head(&mut s);
    let text = String::from_utf8(pattern(20)).unwrap();
    let want = format!(
        "8\r\n{}\r\n8\r\n{}\r\n4\r\n{}\r\n0\r\n\r\n",
        &text[..8],
        &text[8..16],
        &text[16..]
    );
    assert_eq!(read_n(&mut s, want.len()), want.as_bytes());
}

#[test]
fn interim_comes_first_and_can_be_all() {
    let mock = Mock::start_blocking();
    let h = mock.script(
        "POST",
        "200 interim=103 body=3, 201 create interim=103 rst@interim, 200 interim=102 fin@interim",
    );
    let mut s = connect(mock.addr());
    s.write_all(post(&h.path(), "", "x").as_bytes()).unwrap();
    let hints = b"HTTP/1.1 103 Early Hints\r\n\r\n";
    assert_eq!(read_n(&mut s, hints.len()), hints);
    assert_eq!(read_reply(&mut s).body, pattern(3));
    let (bytes, end) = until_end(mock.addr(), &post(&h.path(), "", "x"));
    assert_eq!((bytes.as_slice(), end), (hints.as_slice(), Ended::Rst));
    assert_eq!((wire(&h, 2), h.effects()), (Wire::Rst, 1));
    assert_eq!(h.attempts()[1].status(), None, "a 1xx is not the reply");
    let (bytes, end) = until_end(mock.addr(), &post(&h.path(), "", "x"));
    assert_eq!(bytes, b"HTTP/1.1 102 Processing\r\n\r\n");
    assert_eq!((end, wire(&h, 3)), (Ended::Fin, Wire::Fin));
}

#[test]
fn garbage_is_seeded_and_never_begins_a_reply() {
    let run = |seed| {
        let mock = raw::start(&format!(
            "seed = {seed}\n[[route]]\nname = \"g\"\npath = \"/g\"\nscript = \"garbage=64 x*\""
        ));
        (0..40)
            .map(|_| {
                let (bytes, end) = until_end(mock.addr(), &get("/g"));
                assert_eq!((bytes.len(), end), (64, Ended::Fin));
                assert_ne!(bytes[0], b'H');
                bytes
            })
            .collect::<Vec<_>>()
    };
    let (a, b, c) = (run(1), run(1), run(2));
    assert_eq!(a, b);
    assert_ne!(a, c);
    assert_ne!(a[0], a[1]);
}

#[test]
fn early_blocks_a_large_body_and_then_ends() {
    let mock = Mock::start_blocking();
    let h = mock.script("PUT", "503 early close, 413 early rst@end");
    for (status, ended) in [(503, Ended::Fin), (413, Ended::Rst)] {
        let mut s = connect(mock.addr());
        let len = 8 * 1024 * 1024;
        write!(
            s,
            "PUT {} HTTP/1.1\r\nContent-Length: {len}\r\n\r\n",
            h.path()
        )
        .unwrap();
        let begun = Instant::now();
        s.set_write_timeout(Some(Duration::from_millis(100)))
            .unwrap();
        // As much as the two kernels hold; far from all of it.
        let mut sent = 0;
        while let Ok(n) = s.write(&[b'x'; 65_536]) {
            sent += n;
            assert!(sent < len, "nothing ever blocked");
        }
        let reply = read_head(&mut s);
        assert!(
            begun.elapsed() < Duration::from_secs(5),
            "{:?}",
            begun.elapsed()
        );
        assert_eq!(reply.status, status);
        let (_, end) = read_to_end(&mut s);
        assert_eq!(end, ended);
        assert!(begun.elapsed() >= Duration::from_millis(300));
    }
    let list = h.wait_done_blocking(2, DEADLINE).unwrap();
    let statuses: Vec<_> = list.iter().filter_map(|e| e.status()).collect();
    assert_eq!(statuses, [503, 413]);
    assert!(
        list.iter().all(|e| e.t_req_end.is_none()),
        "the body never came whole"
    );
    assert_eq!(
        list[0].sent.as_ref().unwrap().headers.last().unwrap().1,
        "close"
    );
}

#[test]
fn expect_is_answered_as_the_step_says() {
    let mock = Mock::start_blocking();
    let h = mock.script(
        "PUT",
        "200 expect=417, 200 expect=never, 201 expect=late:120ms, 401 expect=final, 200 expect=417",
    );
    let ask = |body: bool| {
        let mut s = connect(mock.addr());
        write!(
            s,
            "PUT {} HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n",
            h.path()
        )
        .unwrap();
        if body {
            std::thread::sleep(Duration::from_millis(60));
            s.write_all(b"hello").unwrap();
        }
        s
    };
    let mut s = ask(false);
    let r = read_reply(&mut s);
    assert_eq!((r.status, r.header("Connection")), (417, Some("close")));
    assert_eq!(read_to_end(&mut s), (vec![], Ended::Fin));
    let mut s = ask(false);
    assert!(
        silent(&mut s, Duration::from_millis(150)),
        "no 100 must come"
    );
    s.write_all(b"hello").unwrap();
    assert_eq!(read_reply(&mut s).status, 200);
    let begun = Instant::now();
    let mut s = ask(false);
    let go = b"HTTP/1.1 100 Continue\r\n\r\n";
    assert_eq!(read_n(&mut s, go.len()), go);
    assert!(begun.elapsed() >= Duration::from_millis(120));
    s.write_all(b"hello").unwrap();
    assert_eq!(read_reply(&mut s).status, 201);
    let r = read_reply(&mut ask(false));
    assert_eq!((r.status, r.header("Connection")), (401, Some("close")));
    // Without an Expect the word means nothing.
    let mut s = connect(mock.addr());
    s.write_all(
        post(&h.path(), "", "hello")
            .replacen("POST", "PUT", 1)
            .as_bytes(),
    )
    .unwrap();
    assert_eq!(read_reply(&mut s).status, 200);
    let list = h.wait_done_blocking(5, DEADLINE).unwrap();
    let lens: Vec<_> = list.iter().map(|e| e.body_len).collect();
    assert_eq!(lens, [0, 5, 5, 0, 5]);
}

#[test]
fn quiet_close_says_nothing_and_closes() {
    let mock = Mock::start_blocking();
    let h = mock.script("GET", "200 body=3 quiet-close");
    let (bytes, end) = until_end(mock.addr(), &get(&h.path()));
    let r = split(&bytes);
    assert_eq!(
        (r.header("Connection"), r.body.len(), end),
        (None, 3, Ended::Fin)
    );
    assert_eq!(wire(&h, 1), Wire::Complete);
}

#[test]
fn idle_ends_a_connection_that_is_kept_alive() {
    let mock = Mock::start_blocking();
    let h = mock.script("GET", "200 idle=150ms x2, 200 idle-rst=150ms x2");
    for end in [Ended::Fin, Ended::Rst] {
        let mut s = connect(mock.addr());
        s.write_all(get(&h.path()).as_bytes()).unwrap();
        assert_eq!(read_reply(&mut s).status, 200);
        // A request in time begins the wait again.
        s.write_all(get(&h.path()).as_bytes()).unwrap();
        assert_eq!(read_reply(&mut s).status, 200);
        let begun = Instant::now();
        assert_eq!(read_to_end(&mut s), (vec![], end));
        let took = begun.elapsed();
        assert!(took >= Duration::from_millis(140), "{took:?}");
    }
    eventually("connections journaled", || {
        let ends: Vec<_> = mock.connections().iter().filter_map(|c| c.end).collect();
        ends == ["idle", "idle-rst"]
    });
}

#[test]
fn race_takes_no_step_has_no_effect_and_is_journaled() {
    let mock = Mock::start_blocking();
    for (word, end) in [("fin", Ended::Fin), ("rst", Ended::Rst)] {
        let h = mock.script("POST", &format!("200 race={word}, 201 create"));
        let mut s = connect(mock.addr());
        s.write_all(post(&h.path(), "", "a").as_bytes()).unwrap();
        let r = read_reply(&mut s);
        assert_eq!((r.status, r.header("Connection")), (200, None));
        s.write_all(post(&h.path(), "Idempotency-Key: k\r\n", "b").as_bytes())
            .unwrap();
        assert_eq!(read_to_end(&mut s), (vec![], end));
        assert_eq!(wire(&h, 2), Wire::Race);
        let raced = h.attempts()[1].clone();
        assert_eq!(
            (raced.n, raced.step, raced.flags.as_slice()),
            (None, None, &[Flag::Raced][..])
        );
        assert_eq!(raced.token.as_deref(), Some(h.token()));
        assert_eq!((raced.conn, h.effects()), (h.attempts()[0].conn, 0));
        assert_eq!(raw::ask(mock.addr(), &post(&h.path(), "", "b")).status, 201);
        h.verify();
    }
}

#[test]
fn file_is_sent_as_it_lies_there() {
    let path = std::env::temp_dir().join(format!("ressac-mock-body-{}", std::process::id()));
    std::fs::write(&path, b"\x00\xffbytes").unwrap();
    let mock = Mock::start_blocking();
    let h = mock.script("GET", &format!("200 file={}", path.display()));
    std::fs::remove_file(&path).unwrap();
    let mut s = connect(mock.addr());
    s.write_all(get(&h.path()).as_bytes()).unwrap();
    assert_eq!(read_reply(&mut s).body, b"\x00\xffbytes");
    let err = mock
        .try_script("GET", "200 file=/no/such/file")
        .unwrap_err();
    assert!(
        err.to_string().contains("/no/such/file cannot be read"),
        "{err}"
    );
}

#[test]
fn what_needs_http2_is_loud_on_http1() {
    let mock = Mock::start_blocking();
    let h = mock.script("GET", "refused-stream, goaway=covers");
    for _ in 0..2 {
        let (bytes, end) = until_end(mock.addr(), &get(&h.path()));
        let r = split(&bytes);
        assert_eq!((r.status, end), (599, Ended::Fin));
        assert_eq!(r.header("Ressac-Mock"), Some("needs-http2"));
    }
    assert_eq!(h.attempts()[0].flags, [Flag::NeedsHttp2]);
}

#[test]
fn all_times_of_an_arrival_rise() {
    let mock = Mock::start_blocking();
    let h = mock.script("POST", "200 hold=20ms");
    raw::ask(mock.addr(), &post(&h.path(), "", "hello"));
    let e = h.wait_done_blocking(1, DEADLINE).unwrap()[0].clone();
    let times = [
        Some(e.t_accept),
        Some(e.t_first),
        Some(e.t_head),
        e.t_req_end,
        e.t_reply_before,
        e.t_reply_after,
    ];
    let times: Vec<u64> = times.into_iter().map(Option::unwrap).collect();
    assert!(times.windows(2).all(|w| w[0] <= w[1]), "{times:?}");
    assert!(e.t_reply_before.unwrap() >= e.t_req_end.unwrap() + 20_000_000);
    let sha = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    assert_eq!((e.body_sha256.as_deref(), e.body_len), (Some(sha), 5));
    assert_eq!((e.conn, e.stream, e.tls), (1, None, None));
}

#[test]
fn a_peer_that_goes_away_while_it_waits_is_journaled() {
    let mock = Mock::start_blocking();
    let h = mock.script("GET", "200 hold=*");
    let mut s = connect(mock.addr());
    s.write_all(get(&h.path()).as_bytes()).unwrap();
    h.wait_attempts_blocking(1, DEADLINE).unwrap();
    drop(s);
    let e = h.wait_done_blocking(1, DEADLINE).unwrap()[0].clone();
    assert!(e.t_peer_close.unwrap() >= e.t_head);
    assert_eq!(e.sent.unwrap().wire, Wire::PeerClosed);
}
