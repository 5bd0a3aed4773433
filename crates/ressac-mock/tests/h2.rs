//! HTTP/2 on a raw socket: frames read by a small parser of the test's own.
#![allow(clippy::unwrap_used)]

mod raw;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use raw::{Ended, connect, eventually, silent};
use ressac_mock::{Flag, Kind, Mock, ScriptHandle, Wire};

const DEADLINE: Duration = Duration::from_secs(10);
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    body: Vec<u8>,
}

impl Frame {
    fn u32_at(&self, i: usize) -> u32 {
        u32::from_be_bytes(self.body[i..i + 4].try_into().unwrap())
    }

    /// Header fields, all literals without Huffman coding.
    fn fields(&self) -> Vec<(String, String)> {
        assert_eq!(self.kind, HEADERS);
        let (mut at, mut out) = (0, Vec::new());
        let string = |at: &mut usize| {
            assert_eq!(self.body[*at] & 128, 0, "no Huffman coding");
            let len = usize::from(self.body[*at]);
            assert!(len < 127, "short fields only in these tests");
            let text = &self.body[*at + 1..*at + 1 + len];
            *at += 1 + len;
            String::from_utf8(text.to_vec()).unwrap()
        };
        while at < self.body.len() {
            assert_eq!(self.body[at], 0, "a literal without indexing");
            at += 1;
            out.push((string(&mut at), string(&mut at)));
        }
        out
    }

    fn field(&self, name: &str) -> Option<String> {
        self.fields().into_iter().find(|f| f.0 == name).map(|f| f.1)
    }

    fn ends_stream(&self) -> bool {
        self.flags & 1 != 0
    }
}

/// What comes next on a connection.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Frame(Frame),
    End(Ended),
}

fn frame(kind: u8, flags: u8, stream: u32, body: &[u8]) -> Vec<u8> {
    let len = u32::try_from(body.len()).unwrap().to_be_bytes();
    let mut out = vec![len[1], len[2], len[3], kind, flags];
    out.extend(stream.to_be_bytes());
    out.extend(body);
    out
}

fn block(method: &str, path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let own = [
        (":method", method),
        (":scheme", "http"),
        (":path", path),
        (":authority", "m"),
    ];
    let mut out = Vec::new();
    for (name, value) in own.iter().chain(more) {
        out.push(0);
        for text in [name, value] {
            out.push(u8::try_from(text.len()).unwrap());
            out.extend(text.as_bytes());
        }
    }
    out
}

/// A client of frames, past the preface and the settings.
struct Client {
    s: TcpStream,
}

impl Client {
    fn new(mock: &Mock) -> Self {
        Self::with_settings(mock, &[])
    }

    fn with_settings(mock: &Mock, settings: &[u8]) -> Self {
        let mut s = connect(mock.addr());
        s.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
        s.write_all(&frame(SETTINGS, 0, 0, settings)).unwrap();
        let mut c = Self { s };
        let own = c.frame();
        assert_eq!((own.kind, own.flags, own.stream), (SETTINGS, 0, 0));
        let ack = c.frame();
        assert_eq!((ack.kind, ack.flags, ack.body.len()), (SETTINGS, 1, 0));
        c.send(&frame(SETTINGS, 1, 0, &[]));
        c
    }

    fn send(&mut self, bytes: &[u8]) {
        self.s.write_all(bytes).unwrap();
    }

    fn get(&mut self, stream: u32, path: &str) {
        self.send(&frame(HEADERS, 5, stream, &block("GET", path, &[])));
    }

    fn post(&mut self, stream: u32, path: &str, body: &[u8]) {
        self.send(&frame(HEADERS, 4, stream, &block("POST", path, &[])));
        self.send(&frame(DATA, 1, stream, body));
    }

    fn read(&mut self) -> Next {
        let mut head = [0; 9];
        let mut have = 0;
        while have < 9 {
            match self.s.read(&mut head[have..]) {
                Ok(0) if have == 0 => return Next::End(Ended::Fin),
                Ok(0) => panic!("cut inside a frame head"),
                Ok(n) => have += n,
                Err(e) if e.kind() == ErrorKind::ConnectionReset => return Next::End(Ended::Rst),
                Err(e) => panic!("{e}"),
            }
        }
        let len = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let body = raw::read_n(&mut self.s, len);
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        Next::Frame(Frame {
            kind: head[3],
            flags: head[4],
            stream,
            body,
        })
    }

    /// The next frame that is no WINDOW_UPDATE.
    fn next(&mut self) -> Next {
        loop {
            match self.read() {
                Next::Frame(f) if f.kind == WINDOW_UPDATE => {}
                other => return other,
            }
        }
    }

    fn frame(&mut self) -> Frame {
        match self.next() {
            Next::Frame(f) => f,
            Next::End(e) => panic!("the connection ended by {e:?}"),
        }
    }

    fn headers(&mut self, stream: u32) -> Frame {
        let f = self.frame();
        assert_eq!(
            (f.kind, f.stream, f.flags & 4),
            (HEADERS, stream, 4),
            "{f:?}"
        );
        f
    }

    /// Reads the DATA of a stream to its end.
    fn data(&mut self, stream: u32) -> Vec<u8> {
        let mut all = Vec::new();
        loop {
            let f = self.frame();
            assert_eq!((f.kind, f.stream), (DATA, stream), "{f:?}");
            all.extend(&f.body);
            if f.ends_stream() {
                return all;
            }
        }
    }

    fn ends(&mut self, how: Ended) {
        assert_eq!(self.next(), Next::End(how));
    }
}

fn wire(h: &ScriptHandle, n: usize) -> Wire {
    let list = h.wait_done_blocking(n, DEADLINE).unwrap();
    list[n - 1].sent.as_ref().unwrap().wire
}

fn pattern(n: usize) -> Vec<u8> {
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    (0..n).map(|i| letters[(i + i / 64) % 64]).collect()
}

#[test]
fn a_reply_is_headers_and_data() {
    let mock = Mock::start_blocking();
    let h = mock.script("POST", "503 ra=2 h=X-A:1, 200 body=3, 204");
    let mut c = Client::new(&mock);
    c.post(1, &h.path(), b"hello");
    let f = c.headers(1);
    assert!(f.ends_stream(), "no body, no DATA");
    let names: Vec<_> = f.fields().into_iter().map(|f| f.0).collect();
    assert_eq!(
        names,
        [
            ":status",
            "date",
            "content-length",
            "ressac-mock",
            "retry-after",
            "x-a"
        ]
    );
    assert_eq!(
        (f.field(":status"), f.field("retry-after")),
        (Some("503".into()), Some("2".into()))
    );
    c.post(3, &h.path(), b"hello");
    assert!(!c.headers(3).ends_stream());
    assert_eq!(c.data(3), b"ABC");
    c.post(5, &h.path(), b"");
    let f = c.headers(5);
    assert_eq!(
        (f.field(":status"), f.field("content-length")),
        (Some("204".into()), None)
    );
    let list = h.wait_done_blocking(3, DEADLINE).unwrap();
    let e = &list[0];
    assert_eq!(
        (e.proto, e.stream, e.conn, e.body_len),
        ("HTTP/2", Some(1), 1, 5)
    );
    assert_eq!(e.header("host"), Some("m"));
    assert_eq!(e.body_sha256.as_ref().unwrap().len(), 64);
    h.verify();
}

#[test]
fn huffman_padding_priority_and_continuation_are_read() {
    let mock = Mock::start_blocking();
    let mut c = Client::new(&mock);
    // RFC 7541, C.4.1 with Huffman coding: GET / of www.example.com.
    let block = [
        0x82, 0x86, 0x84, 0x41, 0x8c, 0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90,
        0xf4, 0xff,
    ];
    let mut body = vec![2];
    body.extend([0, 0, 0, 0, 16]);
    body.extend(&block[..5]);
    body.extend([0, 0]);
    c.send(&frame(HEADERS, 1 | 8 | 32, 1, &body));
    c.send(&frame(CONTINUATION, 0, 1, &block[5..9]));
    c.send(&frame(CONTINUATION, 4, 1, &block[9..]));
    assert_eq!(c.headers(1).field(":status"), Some("200".into()));
    let e = mock.journal()[0].clone();
    assert_eq!(
        (e.target.as_str(), e.header("host")),
        ("/", Some("www.example.com"))
    );
}

#[test]
fn pings_are_answered_and_unknown_frames_ignored() {
    let mock = Mock::start_blocking();
    let mut c = Client::new(&mock);
    c.send(&frame(PING, 0, 0, b"12345678"));
    let f = c.frame();
    assert_eq!(
        (f.kind, f.flags, f.body.as_slice()),
        (PING, 1, &b"12345678"[..])
    );
    c.send(&frame(0xfe, 0, 0, b"anything"));
    c.get(1, "/x");
    assert_eq!(c.headers(1).field(":status"), Some("200".into()));
}

#[test]
fn streams_run_side_by_side() {
    let mock = Mock::start_blocking();
    let slow = mock.script("GET", "200 hold=300ms");
    let fast = mock.script("GET", "201 x*");
    let mut c = Client::new(&mock);
    c.get(1, &slow.path());
    c.get(3, &fast.path());
    assert_eq!(c.headers(3).field(":status"), Some("201".into()));
    c.data(3);
    assert_eq!(c.headers(1).field(":status"), Some("200".into()));
    c.data(1);
    let barrier = mock.script("GET", "200 body=0 barrier=8 x8");
    for i in 0..8 {
        c.get(5 + 2 * i, &barrier.path());
    }
    let mut ids: Vec<u32> = (0..8).map(|_| c.frame().stream).collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..8).map(|i| 5 + 2 * i).collect::<Vec<_>>());
    barrier.verify();
}

#[test]
fn refused_stream_has_no_effect_and_the_connection_lives() {
    let mock = Mock::start_blocking();
    let h = mock.script("POST", "refused-stream, 201 create");
    let mut c = Client::new(&mock);
    c.send(&frame(HEADERS, 4, 1, &block("POST", &h.path(), &[])));
    let f = c.frame();
    assert_eq!((f.kind, f.stream, f.u32_at(0)), (RST_STREAM, 1, 7));
    assert_eq!((wire(&h, 1), h.effects()), (Wire::RefusedStream, 0));
    c.post(3, &h.path(), b"x");
    assert_eq!(c.headers(3).field(":status"), Some("201".into()));
    h.verify();
}

#[test]
fn rst_stream_comes_after_the_effect_at_its_point() {
    let mock = Mock::start_blocking();
    let h = mock.script(
        "POST",
        "201 create rst-stream=INTERNAL_ERROR, 200 body=9 rst-stream=CANCEL@hdr, \
         200 body=9 rst-stream=NO_ERROR@body+4",
    );
    let mut c = Client::new(&mock);
    c.post(1, &h.path(), b"x");
    let f = c.frame();
    assert_eq!((f.kind, f.stream, f.u32_at(0)), (RST_STREAM, 1, 2));
    assert_eq!((wire(&h, 1), h.effects()), (Wire::RstStream, 1));
    c.post(3, &h.path(), b"x");
    assert!(!c.headers(3).ends_stream());
    let f = c.frame();
    assert_eq!((f.kind, f.stream, f.u32_at(0)), (RST_STREAM, 3, 8));
    c.post(5, &h.path(), b"x");
    c.headers(5);
    let f = c.frame();
    assert_eq!((f.kind, f.flags, f.body), (DATA, 0, pattern(4)));
    assert_eq!(c.frame().u32_at(0), 0);
    assert_eq!(wire(&h, 3), Wire::RstStream);
    assert_eq!(h.attempts()[2].sent.as_ref().unwrap().body_bytes, 4);
}

#[test]
fn end_stream_comes_below_the_announced_length() {
    let mock = Mock::start_blocking();
    let h = mock.script("GET", "200 cl=100 body=40 end-stream, 200 cl=100 body=40");
    let mut c = Client::new(&mock);
    c.get(1, &h.path());
    assert_eq!(c.headers(1).field("content-length"), Some("100".into()));
    assert_eq!(c.data(1), pattern(40));
    // Without the word the connection ends, and the stream does not.
    c.get(3, &h.path());
    c.headers(3);
    let f = c.frame();
    assert_eq!((f.kind, f.flags, f.body.len()), (DATA, 0, 40));
    c.ends(Ended::Fin);
    assert_eq!((wire(&h, 1), wire(&h, 2)), (Wire::Complete, Wire::Fin));
}

#[test]
fn goaway_below_processes_nothing() {
    let mock = Mock::start_blocking();
    let h = mock.script(
        "POST",
        "goaway=below, 200, goaway=below code=ENHANCE_YOUR_CALM, 201 create",
    );
    let mut c = Client::new(&mock);
    c.post(1, &h.path(), b"x");
    let f = c.frame();
    assert_eq!(
        (f.kind, f.stream, f.u32_at(0), f.u32_at(4)),
        (GOAWAY, 0, 0, 0)
    );
    c.ends(Ended::Fin);
    // Still readable: writes after the FIN do not fail.
    for _ in 0..3 {
        c.send(&frame(PING, 0, 0, b"12345678"));
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut c = Client::new(&mock);
    c.post(1, &h.path(), b"x");
    c.headers(1);
    c.data(1);
    c.post(3, &h.path(), b"x");
    let f = c.frame();
    assert_eq!((f.kind, f.u32_at(0), f.u32_at(4)), (GOAWAY, 1, 11));
    c.ends(Ended::Fin);
    assert_eq!((wire(&h, 1), h.effects()), (Wire::Goaway, 0));
}

#[test]
fn goaway_covers_a_stream_without_a_reply() {
    let mock = Mock::start_blocking();
    let h = mock.script("POST", "201 create goaway=covers");
    let mut c = Client::new(&mock);
    c.post(1, &h.path(), b"x");
    let f = c.frame();
    assert_eq!((f.kind, f.u32_at(0), f.u32_at(4)), (GOAWAY, 1, 0));
    c.ends(Ended::Fin);
    assert_eq!(
        (wire(&h, 1), h.effects(), h.attempts()[0].status()),
        (Wire::Goaway, 1, None)
    );
}

#[test]
fn goaway_graceful_is_said_twice() {
    let mock = Mock::start_blocking();
    let h = mock.script("GET", "200 body=3 goaway=graceful, 200 body=3 close");
    let other = mock.script("GET", "200 body=0 x*");
    for n in 1..=2 {
        let mut c = Client::new(&mock);
        c.get(1, &h.path());
        c.headers(1);
        assert_eq!(c.data(1), b"ABC");
        let f = c.frame();
        assert_eq!((f.kind, f.u32_at(0), f.u32_at(4)), (GOAWAY, 0x7fff_ffff, 0));
        let begun = Instant::now();
        // A stream on its way is still served.
        c.get(3, &other.path());
        c.headers(3);
        let f = c.frame();
        assert_eq!((f.kind, f.u32_at(0)), (GOAWAY, 1));
        assert!(
            begun.elapsed() >= Duration::from_millis(80),
            "{:?}",
            begun.elapsed()
        );
        c.ends(Ended::Fin);
        drop(c);
        assert_eq!(
            (wire(&h, n), h.attempts()[n - 1].status()),
            (Wire::Goaway, Some(200))
        );
    }
    eventually("the connections end", || {
        mock.connections().iter().all(|c| c.end == Some("goaway"))
    });
}

#[test]
fn fin_and_rst_take_the_whole_connection_at_every_point() {
    let mock = Mock::start_blocking();
    for (word, end) in [("fin", Ended::Fin), ("rst", Ended::Rst)] {
        for (point, seen) in [
            ("head", None),
            ("req", None),
            ("hdr", Some(0)),
            ("body+10", Some(10)),
            ("end", Some(100)),
        ] {
            let reply = if seen.is_some() { "200 body=100 " } else { "" };
            let h = mock.script("POST", &format!("{reply}{word}@{point}"));
            let mut c = Client::new(&mock);
            c.post(1, &h.path(), b"hello");
            if let Some(n) = seen {
                assert!(!c.headers(1).ends_stream());
                let mut got = 0;
                while got < n {
                    let f = c.frame();
                    assert_eq!((f.kind, f.flags), (DATA, 0));
                    got += f.body.len();
                }
                assert_eq!(got, n);
            }
            c.ends(end);
            let want = if end == Ended::Fin {
                Wire::Fin
            } else {
                Wire::Rst
            };
            assert_eq!(wire(&h, 1), want, "{word}@{point}");
            let sent = h.attempts()[0].sent.clone().unwrap();
            assert_eq!(sent.body_bytes, seen.unwrap_or(0) as u64);
        }
    }
}

#[test]
fn flow_control_is_respected() {
    let mock = Mock::start_blocking();
    let h = mock.script("GET", "200 body=100000");
    // SETTINGS_INITIAL_WINDOW_SIZE 1000.
    let mut c = Client::with_settings(&mock, &[0, 4, 0, 0, 3, 232]);
    c.get(1, &h.path());
    c.headers(1);
    let f = c.frame();
    assert_eq!((f.kind, f.body.len()), (DATA, 1000));
    assert!(
        silent(&mut c.s, Duration::from_millis(150)),
        "the window is used up"
    );
    c.send(&frame(WINDOW_UPDATE, 0, 1, &500u32.to_be_bytes()));
    assert_eq!(c.frame().body.len(), 500);
    assert!(silent(&mut c.s, Duration::from_millis(100)));
    // A larger window for the stream; now the connection's, 65535, is what binds.
    c.send(&frame(WINDOW_UPDATE, 0, 1, &1_000_000u32.to_be_bytes()));
    let mut got = 1500;
    while got < 65_535 {
        let f = c.frame();
        assert!(f.kind == DATA && f.body.len() <= 16_384);
        got += f.body.len();
    }
    assert_eq!(got, 65_535);
    assert!(silent(&mut c.s, Duration::from_millis(100)));
    c.send(&frame(WINDOW_UPDATE, 0, 0, &1_000_000u32.to_be_bytes()));
    assert_eq!(got + c.data(1).len(), 100_000);
    assert_eq!(wire(&h, 1), Wire::Complete);
}

#[test]
fn a_large_body_is_taken_and_hashed() {
    let mock = Mock::start_blocking();
    let h = mock.script("PUT", "200 body=0");
    let mut c = Client::new(&mock);
    c.send(&frame(HEADERS, 4, 1, &block("PUT", &h.path(), &[])));
    let (mut window, total) = (65_535usize, 300_000usize);
    let mut sent = 0;
    while sent < total {
        let n = window.min(16_384).min(total - sent);
        c.send(&frame(DATA, u8::from(sent + n == total), 1, &vec![b'x'; n]));
        (sent, window) = (sent + n, window - n);
        while window == 0 {
            match c.read() {
                Next::Frame(f) if f.kind == WINDOW_UPDATE && f.stream == 1 => {
                    window += f.u32_at(0) as usize;
                }
                Next::Frame(f) => assert_eq!(f.kind, WINDOW_UPDATE),
                Next::End(e) => panic!("{e:?}"),
            }
        }
    }
    assert_eq!(c.headers(1).field(":status"), Some("200".into()));
    let e = h.wait_done_blocking(1, DEADLINE).unwrap()[0].clone();
    assert_eq!((e.body_len, e.body_head.len()), (300_000, 65_536));
}

#[test]
fn interim_gap_drip_and_trailers() {
    let mock = Mock::start_blocking();
    let h = mock.script(
        "POST",
        "200 interim=103 body=9 gap=100ms drip=4/60ms, 200 expect=late:50ms body=0",
    );
    let mut c = Client::new(&mock);
    c.send(&frame(HEADERS, 4, 1, &block("POST", &h.path(), &[])));
    c.send(&frame(DATA, 0, 1, b"hello"));
    // Trailers end the body.
    let trailer = [0, 1, b'x', 1, b'y'];
    c.send(&frame(HEADERS, 5, 1, &trailer));
    let f = c.headers(1);
    assert_eq!(
        (f.field(":status"), f.ends_stream()),
        (Some("103".into()), false)
    );
    assert_eq!(c.headers(1).field(":status"), Some("200".into()));
    let begun = Instant::now();
    let sizes: Vec<usize> = (0..3).map(|_| c.frame().body.len()).collect();
    assert_eq!(sizes, [4, 4, 1]);
    assert!(
        begun.elapsed() >= Duration::from_millis(200),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(h.attempts()[0].body_len, 5);
    let expect = block("POST", &h.path(), &[("expect", "100-continue")]);
    c.send(&frame(HEADERS, 4, 3, &expect));
    let f = c.headers(3);
    assert_eq!(
        (f.field(":status"), f.ends_stream()),
        (Some("100".into()), false)
    );
    c.send(&frame(DATA, 1, 3, b"hello"));
    assert_eq!(c.headers(3).field(":status"), Some("200".into()));
}

#[test]
fn race_idle_stall_and_garbage() {
    let mock = Mock::start_blocking();
    let h = mock.script(
        "GET",
        "200 body=0 race=rst, 200 body=0 idle=150ms, 200 body=2 stall, garbage=32",
    );
    let mut c = Client::new(&mock);
    c.get(1, &h.path());
    c.headers(1);
    eventually("the exchange is over", || h.attempts()[0].is_done());
    std::thread::sleep(Duration::from_millis(30));
    c.get(3, &h.path());
    c.ends(Ended::Rst);
    assert_eq!(wire(&h, 2), Wire::Race);
    assert_eq!(
        (h.attempts()[1].n, h.attempts()[1].flags.as_slice()),
        (None, &[Flag::Raced][..])
    );
    let mut c = Client::new(&mock);
    c.get(1, &h.path());
    c.headers(1);
    let begun = Instant::now();
    c.ends(Ended::Fin);
    assert!(
        begun.elapsed() >= Duration::from_millis(140),
        "{:?}",
        begun.elapsed()
    );
    let mut c = Client::new(&mock);
    c.get(1, &h.path());
    c.headers(1);
    assert_eq!((c.frame().flags, wire(&h, 4)), (0, Wire::Stall));
    assert!(silent(&mut c.s, Duration::from_millis(100)));
    c.get(3, &h.path());
    let mut all = Vec::new();
    c.s.read_to_end(&mut all).unwrap();
    assert_eq!(all.len(), 32);
    assert_eq!(wire(&h, 5), Wire::Fin);
}

#[test]
fn an_early_reply_stops_the_body_without_an_error() {
    let mock = Mock::start_blocking();
    let h = mock.script("PUT", "413 early body=0");
    let mut c = Client::new(&mock);
    c.send(&frame(HEADERS, 4, 1, &block("PUT", &h.path(), &[])));
    c.send(&frame(DATA, 0, 1, &[0; 16_384]));
    let f = c.headers(1);
    assert_eq!(
        (f.field(":status"), f.ends_stream()),
        (Some("413".into()), true)
    );
    let begun = Instant::now();
    // The window of the stream is not given back.
    let stop = loop {
        match c.read() {
            Next::Frame(f) if f.kind == WINDOW_UPDATE => assert_eq!(f.stream, 0),
            Next::Frame(f) => break f,
            Next::End(e) => panic!("{e:?}"),
        }
    };
    assert_eq!((stop.kind, stop.stream, stop.u32_at(0)), (RST_STREAM, 1, 0));
    assert!(begun.elapsed() >= Duration::from_millis(250));
    c.get(3, "/none");
    assert_eq!(c.headers(3).field(":status"), Some("404".into()));
}

#[test]
fn a_stream_that_the_client_resets_is_journaled() {
    let mock = Mock::start_blocking();
    let h = mock.script("GET", "200 hold=* x*");
    let mut c = Client::new(&mock);
    c.get(1, &h.path());
    h.wait_attempts_blocking(1, DEADLINE).unwrap();
    c.send(&frame(RST_STREAM, 0, 1, &8u32.to_be_bytes()));
    let e = h.wait_done_blocking(1, DEADLINE).unwrap()[0].clone();
    assert_eq!(e.sent.unwrap().wire, Wire::PeerClosed);
    assert!(e.t_peer_close.unwrap() >= e.t_head);
    // And so is one whose connection goes.
    c.get(3, &h.path());
    h.wait_attempts_blocking(2, DEADLINE).unwrap();
    drop(c);
    let e = h.wait_done_blocking(2, DEADLINE).unwrap()[1].clone();
    assert!(e.t_peer_close.is_some());
}

#[test]
fn what_breaks_the_rules_is_told_and_ends() {
    let mock = Mock::start_blocking();
    for (bytes, code) in [
        (frame(DATA, 0, 0, b"x"), 1),
        (frame(HEADERS, 5, 2, &block("GET", "/", &[])), 1),
        (frame(CONTINUATION, 4, 1, b""), 1),
        (
            frame(HEADERS, 5, 1, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
            9,
        ),
        (frame(PING, 0, 0, b"123"), 6),
        (frame(WINDOW_UPDATE, 0, 0, &0x7fff_ffffu32.to_be_bytes()), 3),
        (vec![0, 64, 1, 0, 0, 0, 0, 0, 1], 6),
    ] {
        let mut c = Client::new(&mock);
        c.send(&bytes);
        let f = c.frame();
        assert_eq!((f.kind, f.u32_at(4)), (GOAWAY, code), "{bytes:?}");
        c.ends(Ended::Fin);
    }
    let mut c = Client::new(&mock);
    c.send(&frame(HEADERS, 5, 1, &block("GET", "/", &[("Upper", "x")])));
    let f = c.frame();
    assert_eq!(
        (f.kind, f.stream, f.u32_at(0)),
        (RST_STREAM, 1, 1),
        "only the stream"
    );
    c.get(3, "/");
    c.headers(3);
    let bad = mock
        .journal()
        .iter()
        .filter(|e| e.kind == Kind::BadRequest)
        .count();
    assert_eq!(bad, 8);
}

#[test]
fn a_listener_can_speak_http2_alone_or_not_at_all() {
    let only = raw::start("[[listener]]\nname = \"p\"\nspeak = [\"h2c\"]");
    let mut s = connect(only.addr());
    s.write_all(raw::get("/").as_bytes()).unwrap();
    let (bytes, end) = raw::read_to_end(&mut s);
    // SETTINGS, then GOAWAY with PROTOCOL_ERROR.
    assert_eq!((bytes[3], end), (SETTINGS, Ended::Fin));
    assert_eq!(bytes[bytes.len() - 14], GOAWAY);
    let mut c = Client::new(&only);
    c.get(1, "/");
    c.headers(1);
    let never = raw::start("[[listener]]\nname = \"p\"\nspeak = [\"http/1.1\"]");
    let (bytes, _) = raw::until_end(never.addr(), "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    assert!(bytes.starts_with(b"HTTP/1.1 400"), "{bytes:?}");
}

#[test]
fn numbering_under_many_streams() {
    let mock = Mock::start_blocking();
    let h = mock.script("GET", "500 body=0 x20, 501 body=0 x20, 200 body=0 x40");
    let seen: Vec<String> = std::thread::scope(|s| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                s.spawn(|| {
                    let mut c = Client::new(&mock);
                    for i in 0..20 {
                        c.get(1 + 2 * i, &h.path());
                    }
                    (0..20)
                        .map(|_| c.frame().field(":status").unwrap())
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        threads
            .into_iter()
            .flat_map(|t| t.join().unwrap())
            .collect()
    });
    let count = |s: &str| seen.iter().filter(|x| *x == s).count();
    assert_eq!((count("500"), count("501"), count("200")), (20, 20, 40));
    let list = h.wait_done_blocking(80, DEADLINE).unwrap();
    let ns: Vec<u64> = list.iter().map(|e| e.n.unwrap()).collect();
    assert_eq!(ns, (1..=80).collect::<Vec<_>>());
    h.verify();
}

#[test]
fn what_comes_over_http2_goes_on_over_http1() {
    let upstream = Mock::start_blocking();
    let u = upstream.script("POST", "201 create body=3 h=X-Up:1");
    let options = ressac_mock::Options {
        upstream: Some(upstream.url()),
        ..ressac_mock::Options::default()
    };
    let mock = raw::start_with("", options);
    let mut c = Client::new(&mock);
    c.post(1, &u.path(), b"hello");
    let f = c.headers(1);
    assert_eq!(
        (f.field(":status"), f.field("x-up")),
        (Some("201".into()), Some("1".into()))
    );
    assert_eq!(c.data(1), b"ABC");
    let e = u.wait_done_blocking(1, DEADLINE).unwrap()[0].clone();
    assert_eq!((e.proto, &e.body_head[..]), ("HTTP/1.1", &b"hello"[..]));
}
