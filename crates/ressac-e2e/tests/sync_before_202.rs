//! Accepted means on the disk, seen from outside: the system calls of a gateway, in their order.
#![allow(clippy::unwrap_used, clippy::print_stdout)]
#![cfg(target_os = "linux")]

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use ressac_e2e::{Caller, Gateway, Site, partner, ressac};
use tokio::process::Command;

/// Found nowhere else in what the gateway reads and writes.
const MARK: &str = "the-invoice-of-november";

/// A system call that has returned.
#[derive(Debug)]
struct Call {
    name: String,
    /// With the path of each file after its number.
    args: String,
    result: i64,
}

impl Call {
    fn is(&self, names: &[&str]) -> bool {
        names.contains(&self.name.as_str())
    }

    /// On the store's log.
    fn on_log(&self) -> bool {
        self.args
            .split(',')
            .next()
            .is_some_and(|fd| fd.ends_with("ressac.db-wal>"))
    }
}

/// The calls of all threads in the order of their returns; a call that another one interrupted in
/// the trace is put together again.
fn calls(trace: &str) -> Vec<Call> {
    let (mut calls, mut open) = (Vec::new(), HashMap::new());
    for line in trace.lines() {
        let Some((thread, rest)) = line.trim_start().split_once(' ') else {
            continue;
        };
        // "1764500000.123456 fdatasync(9</tmp/x/ressac.db-wal>) = 0"
        let Some((_, rest)) = rest.trim_start().split_once(' ') else {
            continue;
        };
        if let Some(begun) = rest.strip_suffix(" <unfinished ...>") {
            open.insert(thread, begun.to_owned());
            continue;
        }
        let whole = match rest
            .strip_prefix("<... ")
            .and_then(|rest| rest.split_once(" resumed>"))
        {
            Some((_, ending)) => match open.remove(thread) {
                Some(begun) => begun + ending,
                None => continue,
            },
            None => rest.to_owned(),
        };
        let Some((call, result)) = whole.rsplit_once(" = ") else {
            continue;
        };
        let Some((name, args)) = call.split_once('(') else {
            continue;
        };
        let result = result
            .split(' ')
            .next()
            .and_then(|number| number.parse().ok());
        calls.push(Call {
            name: name.to_owned(),
            args: args.trim_end().trim_end_matches(')').to_owned(),
            result: result.unwrap_or(-1),
        });
    }
    calls
}

fn find(calls: &[Call], from: usize, what: &str, wanted: impl Fn(&Call) -> bool) -> usize {
    let found = calls.iter().skip(from).position(wanted);
    from + found.unwrap_or_else(|| panic!("no {what} after call {from}:\n{}", shown(calls)))
}

fn shown(calls: &[Call]) -> String {
    let line = |(i, call): (usize, &Call)| {
        let args: String = call.args.chars().take(100).collect();
        format!("{i:4} {}({args}) = {}\n", call.name, call.result)
    };
    calls.iter().enumerate().map(line).collect()
}

async fn trace(site: &Site, file: &Path) -> Gateway {
    const CALLS: &str = "trace=fdatasync,fsync,pwrite64,write,writev,sendto,sendmsg,read,readv,\
                         recvfrom,recvmsg";
    let gateway = Gateway::command(ressac(), &site.config());
    let mut command = Command::new("strace");
    // -D: the child is the gateway itself, and strace looks on from outside.
    // -s: long enough for a page of the log.
    command
        .args(["-D", "-f", "-y", "-ttt", "-s", "6000", "-e", CALLS, "-o"])
        .arg(file);
    command
        .arg(gateway.as_std().get_program())
        .args(gateway.as_std().get_args());
    Gateway::start_by(command).await
}

/// The trace, once strace has written the gateway's end.
async fn whole(file: &Path) -> String {
    for _ in 0..1_000 {
        let trace = std::fs::read_to_string(file).unwrap();
        if trace.contains("+++ exited with 0 +++") {
            return trace;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("strace has not ended");
}

/// ST-3: between the last byte of a message read and the first byte of its 202 written, its content
/// goes to the store's log and the log to the disk. ST-6: an attempt is on the disk before it is sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sync_before_202_st_3_st_6() {
    if std::process::Command::new("strace")
        .arg("-V")
        .output()
        .is_err()
    {
        println!("sync_before_202: strace is not installed, nothing was looked at");
        assert!(std::env::var_os("CI").is_none(), "CI must have strace");
        return;
    }
    let mock = partner("script = '201 create x*'").await;
    let site = Site::new(&format!("[partner.p]\nurl = '{}/here'\n", mock.url()));
    let file = site.folder().join("trace");
    let gateway = trace(&site, &file).await;
    let caller = Caller::new();
    let answer = caller
        .post(gateway.address(), "p", &[], MARK)
        .await
        .unwrap();
    assert_eq!(answer.status, 202);
    caller
        .becomes(
            gateway.address(),
            &answer.id(),
            "delivered",
            Duration::from_secs(30),
        )
        .await;
    gateway.stop().await;

    let trace = whole(&file).await;
    let calls = calls(&trace);
    let receive = ["read", "readv", "recvfrom", "recvmsg"];
    let send = ["write", "writev", "sendto", "sendmsg"];
    let sync = |call: &Call| call.is(&["fdatasync", "fsync"]) && call.on_log() && call.result == 0;

    let arrived = find(&calls, 0, "message read", |call| {
        call.is(&receive) && call.args.contains(MARK)
    });
    let answered = find(&calls, arrived, "202 written", |call| {
        call.is(&send) && call.args.contains("HTTP/1.1 202")
    });
    let logged = find(&calls, arrived, "content in the log", |call| {
        call.is(&["pwrite64"]) && call.on_log() && call.args.contains(MARK) && call.result > 0
    });
    let synced = find(&calls, logged, "sync of the log", sync);
    assert!(
        synced < answered,
        "202 before the sync:\n{}",
        shown(&calls[arrived..=answered])
    );

    let sent = find(&calls, arrived, "message sent", |call| {
        call.is(&send) && call.args.contains("POST /here")
    });
    let recorded = find(&calls, synced + 1, "second sync of the log", sync);
    assert!(
        recorded < sent,
        "sent before it was recorded:\n{}",
        shown(&calls[arrived..=sent])
    );
    println!(
        "sync_before_202: read at call {arrived}, in the log at {logged}, synced at {synced}, 202 at \
         {answered}; attempt synced at {recorded}, sent at {sent}; {} calls seen",
        calls.len()
    );
}
