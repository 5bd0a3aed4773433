//! Timers, resets, limits, many mocks in one process.
#![allow(clippy::unwrap_used)]

mod raw;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use raw::{ask, connect, get, post, read_to_end};
use ressac_mock::{Mock, Options, Reset, Scenario, Wire};

const DEADLINE: Duration = Duration::from_secs(10);

#[test]
fn mo_6_fifty_delayed_replies_come_at_once_not_in_waves() {
    let mock = Mock::start_blocking();
    let h = mock.script("GET", "200 hold=300ms x*");
    let begun = Instant::now();
    let mut conns: Vec<_> = (0..50)
        .map(|_| {
            let mut c = connect(mock.addr());
            c.write_all(get(&h.path()).as_bytes()).unwrap();
            c
        })
        .collect();
    for c in &mut conns {
        assert_eq!(raw::read_reply(c).status, 200);
    }
    let took = begun.elapsed();
    // Sleeping workers would take 50 × 300 ms on one thread, 7.5 s on two.
    assert!(
        took >= Duration::from_millis(300) && took < Duration::from_secs(3),
        "{took:?}"
    );
    let early = h
        .attempts()
        .iter()
        .filter(|e| e.t_reply_before.unwrap() < e.t_head + 300_000_000)
        .count();
    assert_eq!(early, 0);
}

#[test]
fn mo_7_a_reset_cancels_what_is_delayed() {
    let mock = Mock::start_blocking();
    let held = mock.script("GET", "200 hold=* x*");
    let barrier = mock.script("GET", "200 barrier=2:1h x*");
    let slow = mock.script("POST", "201 create=slow:1h x*");
    let stalled = mock.script("GET", "stall x*");
    let requests = [
        get(&held.path()),
        get(&barrier.path()),
        post(&slow.path(), "", ""),
        get(&stalled.path()),
    ];
    let mut conns: Vec<TcpStream> = requests
        .iter()
        .map(|r| {
            let mut c = connect(mock.addr());
            c.write_all(r.as_bytes()).unwrap();
            c
        })
        .collect();
    for h in [&held, &barrier, &slow, &stalled] {
        h.wait_attempts_blocking(1, DEADLINE).unwrap();
    }
    let begun = Instant::now();
    mock.reset(&[Reset::Scripts]);
    for c in &mut conns {
        assert_eq!(read_to_end(c).0, b"");
    }
    assert!(begun.elapsed() < DEADLINE);
    for h in [&held, &barrier, &slow] {
        let e = &h.wait_done_blocking(1, DEADLINE).unwrap()[0];
        assert_eq!(e.sent.as_ref().unwrap().wire, Wire::Cancelled);
        assert_eq!(h.progress().consumed, 0, "the script begins again");
    }
    assert_eq!(slow.effects(), 0);
}

#[test]
fn mo_8_the_journal_is_bounded_and_counts_what_it_drops() {
    let options = Options {
        journal_entries: 10,
        ..Options::default()
    };
    let mock = Mock::start_blocking_with(Scenario::default(), options).unwrap();
    let mut c = connect(mock.addr());
    for _ in 0..25 {
        c.write_all(get("/x").as_bytes()).unwrap();
        raw::read_reply(&mut c);
    }
    let seqs: Vec<u64> = mock.journal().iter().map(|e| e.seq).collect();
    // The connection itself is number 1.
    assert_eq!((seqs, mock.journal_dropped()), ((17..=26).collect(), 15));
    let since: Vec<u64> = mock.journal_since(24).iter().map(|e| e.seq).collect();
    assert_eq!(since, [25, 26]);
    mock.reset(&[Reset::Journal]);
    assert_eq!((mock.journal().len(), mock.journal_dropped()), (0, 0));
    ask(mock.addr(), &get("/x"));
    assert_eq!(mock.journal()[0].seq, 28);
}

#[test]
fn mo_8_large_bodies_count_too() {
    let mock = Mock::start_blocking();
    let body = "x".repeat(100_000);
    let request = post("/x", "", &body);
    let mut c = connect(mock.addr());
    // 64 KiB of each are kept: 1100 of them pass 64 MiB.
    for _ in 0..1100 {
        c.write_all(request.as_bytes()).unwrap();
        raw::read_reply(&mut c);
    }
    let kept: usize = mock.journal().iter().map(|e| e.body_head.len()).sum();
    assert!(
        kept <= 64 * 1024 * 1024 && kept > 60 * 1024 * 1024,
        "{kept}"
    );
    assert!(mock.journal_dropped() > 50);
    assert!(
        mock.journal()
            .iter()
            .all(|e| e.body_len == 100_000 && e.body_head.len() == 65_536)
    );
}

#[test]
fn a_peer_that_leaves_during_a_hold_is_journaled() {
    let mock = Mock::start_blocking();
    let h = mock.script("GET", "200 hold=*");
    let mut c = connect(mock.addr());
    c.write_all(get(&h.path()).as_bytes()).unwrap();
    h.wait_attempts_blocking(1, DEADLINE).unwrap();
    drop(c);
    let e = &h.wait_done_blocking(1, DEADLINE).unwrap()[0];
    assert!(e.t_peer_close.is_some());
    assert_eq!(e.sent.as_ref().unwrap().wire, Wire::PeerClosed);
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let mock = Mock::start_blocking();
    let h = mock.script("GET", "200 body=1, 200 body=2 hold=30ms, 200 body=3 close");
    let mut c = connect(mock.addr());
    c.write_all(get(&h.path()).repeat(3).as_bytes()).unwrap();
    let (all, _) = read_to_end(&mut c);
    let text = String::from_utf8(all).unwrap();
    let at = |s: &str| text.find(s).unwrap();
    assert!(at("step=1") < at("step=2") && at("step=2") < at("step=3"));
    assert!(text.ends_with("ABC"));
}

#[tokio::test]
async fn hundreds_of_mocks_and_a_drop_closes_everything() {
    let mut mocks = Vec::new();
    for _ in 0..100 {
        mocks.push(Mock::start().await);
    }
    let addrs: Vec<_> = mocks.iter().map(Mock::addr).collect();
    let open = tokio::net::TcpStream::connect(addrs[0]).await.unwrap();
    let last = mocks.pop().unwrap();
    last.shutdown().await;
    assert!(tokio::net::TcpStream::connect(addrs[99]).await.is_err());
    drop(mocks);
    // Aborted tasks let go of their sockets when the runtime next runs.
    let closed = tokio::time::timeout(DEADLINE, async {
        for addr in &addrs {
            while tokio::net::TcpStream::connect(addr).await.is_ok() {
                tokio::task::yield_now().await;
            }
        }
        let mut buf = [0];
        loop {
            open.readable().await.unwrap();
            match open.try_read(&mut buf) {
                Ok(0) => break,
                Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => break,
                _ => {}
            }
        }
    });
    closed.await.unwrap();
}

#[tokio::test]
async fn attempts_can_be_waited_for() {
    let mock = Mock::start().await;
    let h = mock.script("GET", "503 x2");
    let err = h
        .wait_attempts(1, Duration::from_millis(20))
        .await
        .unwrap_err();
    assert_eq!((err.wanted, err.seen), (1, 0));
    let (addr, path) = (mock.addr(), h.path());
    let client = std::thread::spawn(move || {
        for _ in 0..2 {
            ask(addr, &get(&path));
            std::thread::sleep(Duration::from_millis(30));
        }
    });
    let list = h.wait_attempts(2, DEADLINE).await.unwrap();
    assert_eq!(list.len(), 2);
    assert!(h.gaps()[0] >= Duration::from_millis(30));
    client.join().unwrap();
    h.verify();
}

#[test]
fn random_bytes_neither_hang_nor_kill_it() {
    let mock = Mock::start_blocking();
    let mut x = 88_172_645_463_325_252_u64;
    for round in 0..200 {
        let mut c = connect(mock.addr());
        c.set_read_timeout(Some(DEADLINE)).unwrap();
        let mut bytes = if round % 2 == 0 {
            Vec::new()
        } else {
            b"POST / HTTP/1.1\r\n".to_vec()
        };
        for _ in 0..100 {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            bytes.extend_from_slice(&x.to_le_bytes());
        }
        // The mock may have refused the first bytes already.
        let _ = c.write_all(&bytes);
        let _ = c.shutdown(std::net::Shutdown::Write);
        let mut sink = Vec::new();
        let _ = c.read_to_end(&mut sink);
    }
    assert_eq!(ask(mock.addr(), &get("/")).status, 200);
}
