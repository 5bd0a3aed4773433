//! How many requests the mock answers on one core, journal on, beside a hyper hello-world and
//! wiremock-rs.
//!
//! `cargo bench -p ressac-mock --bench load`, and for the memory alone
//! `cargo bench -p ressac-mock --bench load -- memory 10000000`.
//!
//! Every server has one thread; the client of raw sockets has another and keeps 32 requests on
//! their way. All contenders run in the same process in interleaved rounds (A B C A B C …), so that
//! a machine that is busy with something else is busy for all of them. A number is the median over
//! the rounds; a ratio is the median of the ratios within a round. The time on the processor of all
//! threads but the client's is told beside the rate: it is what a core is used for, however slow
//! the client.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]

use std::convert::Infallible;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Full;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use ressac_mock::{Mock, Options, Scenario};

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

/// Routes that tokens are spread over.
const ROUTES: usize = 4;
/// Connections, with one request on its way on each.
const CONNECTIONS: usize = 32;

fn main() {
    let size = match std::env::args().any(|a| a == "--bench") {
        true => FULL,
        false => SHORT,
    };
    let mut args = std::env::args().skip_while(|a| a != "memory").skip(1);
    if let Some(n) = args.next().filter(|n| n != "--bench") {
        return memory(n.parse().expect("memory takes a number of requests"));
    }
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("load before: {load}");
    let mut contenders = vec![hyper(), mock_200(), mock_per_token(), wiremock()];
    let mut results = vec![Vec::with_capacity(size.rounds); contenders.len()];
    for round in 0..=size.rounds {
        for (contender, rounds) in contenders.iter_mut().zip(&mut results) {
            let got = contender.run(size.requests);
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
        let mut sockets: Vec<TcpStream> = (0..CONNECTIONS)
            .map(|_| {
                let s = TcpStream::connect(self.addr).unwrap();
                s.set_nodelay(true).unwrap();
                s
            })
            .collect();
        let requests: Vec<String> = (self.sent..self.sent + count).map(self.request).collect();
        self.sent += count;
        let before = others_cpu();
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
        let cpu = others_cpu().zip(before).map(|(after, before)| {
            (after.saturating_sub(before)).as_secs_f64() * 1e6 / count as f64
        });
        let rate = count as f64 / took.as_secs_f64();
        Got { rate, cpu }
    }
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

/// Time on the processor of all threads but this one.
fn others_cpu() -> Option<Duration> {
    let own = std::fs::read_link("/proc/thread-self").ok()?;
    let own = own.file_name()?.to_owned();
    let mut sum = 0;
    for task in std::fs::read_dir("/proc/self/task").ok()? {
        let task = task.ok()?;
        if task.file_name() == own {
            continue;
        }
        // A thread may end while we look.
        if let Ok(text) = std::fs::read_to_string(task.path().join("schedstat")) {
            sum += text.split(' ').next()?.parse::<u64>().ok()?;
        }
    }
    Some(Duration::from_nanos(sum))
}

fn plain(_: usize) -> String {
    "GET /hello HTTP/1.1\r\nHost: m\r\n\r\n".to_owned()
}

/// Three requests for each token: `503 x2, 200`.
fn per_token(i: usize) -> String {
    let token = i / 3;
    format!(
        "GET /{}/t{token}/pay HTTP/1.1\r\nHost: m\r\n\r\n",
        token % ROUTES
    )
}

fn mock(script: &str) -> Mock {
    let text =
        format!("version = 1\n[[listener]]\nname = \"plain\"\n[[route]]\nname = \"r\"\n{script}\n");
    let options = Options {
        control: None,
        ..Options::default()
    };
    Mock::start_blocking_with(Scenario::parse(&text).unwrap(), options).unwrap()
}

fn mock_200() -> Contender {
    let mock = mock("path = \"/hello\"\nscript = \"200 text=\\\"Hello, World!\\\" x*\"");
    Contender {
        name: "ressac-mock: `200`",
        addr: mock.addr(),
        request: plain,
        sent: 0,
        _alive: Box::new(mock),
    }
}

fn mock_per_token() -> Contender {
    // A route keeps 100 000 tokens, and a run needs more: the first path segment chooses one of
    // several routes.
    let mut routes = String::from("path = \"/never\"\nscript = \"200\"\n");
    for i in 0..ROUTES {
        let _ = write!(
            routes,
            "[[route]]\nname = \"r{i}\"\npath = \"/{i}/{{token}}/pay\"\nscope = \"token\"\n\
             script = \"503 x2, 200\"\n"
        );
    }
    let mock = mock(&routes);
    Contender {
        name: "ressac-mock: `503 x2, 200` per token",
        addr: mock.addr(),
        request: per_token,
        sent: 0,
        _alive: Box::new(mock),
    }
}

fn hyper() -> Contender {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let addr = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let serve = async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                stream.set_nodelay(true).unwrap();
                tokio::task::spawn_local(async move {
                    let hello = |_: Request<hyper::body::Incoming>| async {
                        let body = Full::new(Bytes::from_static(b"Hello, World!"));
                        Ok::<_, Infallible>(Response::new(body))
                    };
                    // A client that goes away is none of the server's business.
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service_fn(hello))
                        .await;
                });
            }
        };
        let local = tokio::task::LocalSet::new();
        local.block_on(&runtime, serve);
    });
    Contender {
        name: "hyper: hello world",
        addr,
        request: plain,
        sent: 0,
        _alive: Box::new(()),
    }
}

fn wiremock() -> Contender {
    use wiremock::matchers::{method, path};
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let server = runtime.block_on(async {
        let server = wiremock::MockServer::start().await;
        let reply = wiremock::ResponseTemplate::new(200).set_body_string("Hello, World!");
        wiremock::Mock::given(method("GET"))
            .and(path("/hello"))
            .respond_with(reply)
            .mount(&server)
            .await;
        server
    });
    Contender {
        name: "wiremock-rs: `200`",
        addr: *server.address(),
        request: plain,
        sent: 0,
        _alive: Box::new((server, runtime)),
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
            "| {} | {rate:.0} | {ratio:.2} | {used:.1} | {used_ratio:.2} |",
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
fn memory(requests: usize) {
    let mut contender = mock_200();
    println!("| requests | resident KiB |");
    println!("| --- | --- |");
    let step = (requests / 10).max(1);
    for tenth in 1..=10 {
        while contender.sent < step * tenth {
            contender.run(FULL.requests.min(step * tenth - contender.sent));
        }
        println!("| {} | {} |", contender.sent, resident());
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
