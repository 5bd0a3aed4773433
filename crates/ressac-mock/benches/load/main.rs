//! How many requests the mock answers on one core, journal on, beside a hyper hello-world,
//! wiremock-rs and, where it is there, WireMock.
//!
//! `cargo bench -p ressac-mock --bench load`, and for the memory alone
//! `cargo bench -p ressac-mock --bench load -- memory 10000000`, with `kept` behind it over the same
//! 32 connections from first to last, else over 32 new ones for every 20 000 requests.
//!
//! Every server has one thread (WireMock: one core, by taskset); the client of raw sockets has
//! another and keeps 32 requests on their way. All contenders run in interleaved rounds (A B C A B
//! C …), so that a machine that is busy with something else is busy for all of them. A number is
//! the median over the rounds; a ratio is the median of the ratios within a round. The time on the
//! processor of all threads of the server is told beside the rate: it is what a core is used for,
//! however slow the client.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]

mod cpu;
mod servers;
mod wiremock_java;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

use servers::{hyper, mock_200, mock_per_token, wiremock_rs};

/// What `cargo bench` measures; run in any other way it only shows that all of it works.
const FULL: Size = Size {
    rounds: 21,
    requests: 20_000,
};
const SHORT: Size = Size {
    rounds: 1,
    requests: 320,
};

/// How long it takes: rounds, and requests of each contender in a round.
#[derive(Clone, Copy)]
struct Size {
    rounds: usize,
    requests: usize,
}

/// Connections, with one request on its way on each.
const CONNECTIONS: usize = 32;

fn main() {
    let size = match std::env::args().any(|a| a == "--bench") {
        true => FULL,
        false => SHORT,
    };
    let args: Vec<String> = std::env::args().collect();
    if let Some(at) = args.iter().position(|a| a == "memory") {
        let n = args.get(at + 1).and_then(|n| n.parse().ok());
        let n = n.expect("memory takes a number of requests");
        return memory(n, args.iter().any(|a| a == "kept"));
    }
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("load before: {load}");
    let mut contenders = vec![hyper(), mock_200(), mock_per_token(), wiremock_rs()];
    match wiremock_java::start(size.requests) {
        Ok(several) => contenders.extend(several),
        Err(why) => println!("wiremock: not run: {why}"),
    }
    let mut results = vec![Vec::with_capacity(size.rounds); contenders.len()];
    for round in 0..=size.rounds {
        for (contender, rounds) in contenders.iter_mut().zip(&mut results) {
            let got = contender.run((size.requests / contender.share).max(CONNECTIONS));
            // The first round warms up.
            if round > 0 {
                rounds.push(got);
            }
        }
    }
    table(&contenders, &results);
}

/// A server, and the requests that it is sent.
struct Contender {
    name: &'static str,
    addr: SocketAddr,
    /// The request number `i`.
    request: fn(usize) -> String,
    sent: usize,
    /// The part of a round's requests that it is sent: 1 is all.
    share: usize,
    /// A server that is a process of its own.
    process: Option<u32>,
    /// What must live as long as the server.
    _alive: Box<dyn std::any::Any>,
}

/// Requests a second, and microseconds on the processor for each.
#[derive(Clone, Copy)]
struct Got {
    rate: f64,
    cpu: Option<f64>,
}

impl Contender {
    fn run(&mut self, count: usize) -> Got {
        let mut sockets = connect(self.addr);
        self.run_over(&mut sockets, count)
    }

    fn run_over(&mut self, sockets: &mut [TcpStream], count: usize) -> Got {
        let requests: Vec<String> = (self.sent..self.sent + count).map(self.request).collect();
        self.sent += count;
        let before = cpu::used(self.process);
        let begun = Instant::now();
        for batch in requests.chunks(CONNECTIONS) {
            for (socket, request) in sockets.iter_mut().zip(batch) {
                socket.write_all(request.as_bytes()).unwrap();
            }
            for (socket, _) in sockets.iter_mut().zip(batch) {
                read_reply(socket);
            }
        }
        let took = begun.elapsed();
        let cpu = cpu::used(self.process).zip(before).map(|(after, before)| {
            (after.saturating_sub(before)).as_secs_f64() * 1e6 / count as f64
        });
        let rate = count as f64 / took.as_secs_f64();
        Got { rate, cpu }
    }
}

fn connect(addr: SocketAddr) -> Vec<TcpStream> {
    let one = |_| {
        let s = TcpStream::connect(addr).unwrap();
        s.set_nodelay(true).unwrap();
        s
    };
    (0..CONNECTIONS).map(one).collect()
}

/// Reads one reply by its length.
fn read_reply(socket: &mut TcpStream) {
    let mut buf = [0; 4096];
    let mut have = 0;
    loop {
        let n = socket.read(&mut buf[have..]).unwrap();
        assert!(n > 0, "the server closed");
        have += n;
        let Some(head) = buf[..have].windows(4).position(|w| w == b"\r\n\r\n") else {
            continue;
        };
        let text = std::str::from_utf8(&buf[..head]).unwrap();
        let length = text.split("\r\n").find_map(|line| {
            let (name, value) = line.split_once(':')?;
            let named = name.eq_ignore_ascii_case("content-length");
            named.then(|| value.trim().parse::<usize>().unwrap())
        });
        if have >= head + 4 + length.unwrap_or(0) {
            return;
        }
    }
}

fn table(contenders: &[Contender], results: &[Vec<Got>]) {
    println!(
        "| one thread, {CONNECTIONS} connections | requests/s | ratio to the first | µs of CPU each | ratio |"
    );
    println!("| --- | --- | --- | --- | --- |");
    for (contender, rounds) in contenders.iter().zip(results) {
        let rate = median(rounds.iter().map(|g| g.rate));
        let ratio = median(rounds.iter().zip(&results[0]).map(|(a, b)| a.rate / b.rate));
        let cpu = |g: &Got| g.cpu.unwrap_or(f64::NAN);
        let used = median(rounds.iter().map(cpu));
        let used_ratio = median(rounds.iter().zip(&results[0]).map(|(a, b)| cpu(b) / cpu(a)));
        println!(
            "| {} | {rate:.0} | {ratio:.3} | {used:.1} | {used_ratio:.3} |",
            contender.name
        );
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// What the process holds after every tenth of so many requests.
fn memory(requests: usize, kept: bool) {
    let mut contender = mock_200();
    println!("| requests | connections | resident KiB |");
    println!("| --- | --- | --- |");
    let step = (requests / 10).max(1);
    let mut sockets = connect(contender.addr);
    let mut connections = sockets.len();
    for tenth in 1..=10 {
        while contender.sent < step * tenth {
            let count = FULL.requests.min(step * tenth - contender.sent);
            contender.run_over(&mut sockets, count);
            if !kept {
                sockets = connect(contender.addr);
                connections += sockets.len();
            }
        }
        println!("| {} | {connections} | {} |", contender.sent, resident());
    }
}

fn resident() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"));
    line.unwrap_or("unknown")
        .trim_end_matches("kB")
        .trim()
        .to_owned()
}
