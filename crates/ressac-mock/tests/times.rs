//! How exact waits are: never shorter than asked for, and on a quiet machine hardly longer.
//!
//! The lower bound holds always. The upper one is looked at only while threads that merely sleep
//! are woken in time; on a machine that lags the test says so and goes on.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod raw;

use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use raw::{ask, connect, get, read_reply, start};
use ressac_mock::{Entry, Mock, ScriptHandle};

const DEADLINE: Duration = Duration::from_secs(10);
/// What a wait may take beyond what was asked for.
const MORE: Duration = Duration::from_millis(30);
/// A machine on which sleeps are late by more is not quiet.
const QUIET: Duration = Duration::from_millis(2);

/// Runs something while other threads do nothing but sleep; how late they were woken at worst.
fn with_lag<T>(run: impl FnOnce() -> T) -> (T, Duration) {
    let over = AtomicBool::new(false);
    let beat = || {
        let nap = Duration::from_millis(1);
        let mut worst = Duration::ZERO;
        while !over.load(Ordering::Relaxed) {
            let begun = Instant::now();
            std::thread::sleep(nap);
            worst = worst.max(begun.elapsed().saturating_sub(nap));
        }
        worst
    };
    std::thread::scope(|s| {
        let hearts: Vec<_> = (0..2).map(|_| s.spawn(beat)).collect();
        let out = run();
        over.store(true, Ordering::Relaxed);
        let lags = hearts.into_iter().map(|h| h.join().unwrap());
        (out, lags.max().unwrap())
    })
}

/// Asserts that what a run measures is never below `least`, and at most `most` in one of three
/// runs on a quiet machine.
fn within(what: &str, least: Duration, most: Duration, mut run: impl FnMut() -> Duration) {
    let mut quiet = Vec::new();
    for _ in 0..5 {
        let (took, lag) = with_lag(&mut run);
        assert!(took >= least, "{what}: {took:?} is less than {least:?}");
        if lag > QUIET {
            continue;
        }
        if took <= most {
            return;
        }
        quiet.push(took);
        assert!(
            quiet.len() < 3,
            "{what}: {quiet:?}, at most {most:?} asked for"
        );
    }
    eprintln!("{what}: the machine lags, so `at most {most:?}` was not looked at ({quiet:?})");
}

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// The last arrival, once it is over.
fn last(h: &ScriptHandle, n: &mut usize) -> Entry {
    *n += 1;
    h.wait_done_blocking(*n, DEADLINE).unwrap()[*n - 1].clone()
}

#[test]
fn a_barrier_releases_all_at_once() {
    let mock = Mock::start_blocking();
    let h = mock.script("GET", "200 barrier=8 x*");
    let mut seen = 0;
    within("barrier=8", Duration::ZERO, ms(5), || {
        std::thread::scope(|s| {
            for i in 0..8 {
                let (path, addr) = (h.path(), mock.addr());
                s.spawn(move || {
                    std::thread::sleep(ms(3 * i));
                    assert_eq!(ask(addr, &get(&path)).status, 200);
                });
            }
        });
        let list = h.wait_done_blocking(seen + 8, DEADLINE).unwrap();
        let list = &list[seen..];
        seen += 8;
        let out = list.iter().map(|e| e.t_reply_before.unwrap());
        let (first, last) = (out.clone().min().unwrap(), out.max().unwrap());
        let came = list.iter().map(|e| e.t_head).max().unwrap();
        assert!(first >= came, "a reply left before the last had come");
        Duration::from_nanos(last - first)
    });
}

#[test]
fn waits_of_a_step_are_as_long_as_asked_for() {
    let mock = Mock::start_blocking();
    for (step, wait) in [
        ("200 hold=60ms", 60),
        ("200 body=10 gap=60ms", 60),
        // Four pieces, so three waits.
        ("200 body=8 drip=2/20ms", 60),
        ("200 barrier=2:60ms", 60),
    ] {
        let h = mock.script("GET", &format!("{step} x*"));
        let mut seen = 0;
        within(step, ms(wait), ms(wait) + MORE, || {
            assert_eq!(ask(mock.addr(), &get(&h.path())).status, 200);
            let e = last(&h, &mut seen);
            Duration::from_nanos(e.t_reply_before.unwrap() - e.t_head)
        });
    }
}

#[test]
fn an_idle_connection_ends_in_time() {
    let mock = Mock::start_blocking();
    let h = mock.script("GET", "200 body=0 idle=60ms x*");
    within("idle=60ms", ms(60), ms(60) + MORE, || {
        let mut s = connect(mock.addr());
        // Before the request leaves, so before the mock begins to wait.
        let begun = Instant::now();
        s.write_all(get(&h.path()).as_bytes()).unwrap();
        read_reply(&mut s);
        assert_eq!(s.read(&mut [0]).unwrap(), 0);
        begun.elapsed()
    });
}

#[test]
fn an_outage_ends_in_time() {
    let out = ms(60);
    within("an outage of 60 ms", out, out + MORE, || {
        let mock = start(
            "outage = [{ to = \"60ms\", clock = \"first-request\", do = \"503\" }]\n\
             [[route]]\nname = \"r\"\npath = \"/r\"\nscript = \"200 x*\"",
        );
        let mut s = connect(mock.addr());
        loop {
            s.write_all(get("/r").as_bytes()).unwrap();
            if read_reply(&mut s).status == 200 {
                break;
            }
            std::thread::sleep(ms(1));
        }
        let list = mock.journal();
        let since = |e: &Entry| Duration::from_nanos(e.t_head - list[0].t_head);
        let inside = list.iter().filter(|e| e.outage.is_some());
        assert!(inside.clone().all(|e| since(e) < out), "`to` is exclusive");
        since(list.last().unwrap())
    });
}
