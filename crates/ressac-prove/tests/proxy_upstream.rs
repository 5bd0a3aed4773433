//! What the proxy of the suite speaks to its upstream: HTTP/1.1 and HTTP/2, with TLS and without.
//! The cases judge its retries; here it is seen that it carries what is right, whole.
#![allow(missing_docs, clippy::unwrap_used)]

use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use ressac_http::{Client, ClientConfig, Failure, FailureKind, Reply};
use ressac_mock::{Entry, Mock, ScriptHandle};
use tempfile::NamedTempFile;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Long enough that only a fault of the code under test reaches it.
const PATIENCE: Duration = Duration::from_secs(30);

/// Above what the proxy keeps of a body.
const LARGE: usize = 9 * 1024 * 1024;

fn command(upstream: &str, http: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_prove-proxy"));
    command
        .env("PROVE_UPSTREAM", upstream)
        .env("PROVE_HTTP", http)
        .env("PROVE_BASE_MS", "10")
        .stdin(Stdio::null());
    command
}

/// A file with an authority; the proxy reads it before it listens.
fn ca_file(mock: &Mock) -> NamedTempFile {
    let file = NamedTempFile::new().unwrap();
    std::fs::write(file.path(), mock.ca_pem()).unwrap();
    file
}

/// A proxy that runs, and a client that sends through it.
struct Proxy {
    child: Child,
    address: SocketAddr,
    client: Client,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Proxy {
    /// In front of `mock`, over TLS if `tls`.
    async fn start(mock: &Mock, tls: bool, http: &str) -> Self {
        let upstream = if tls { mock.tls_url() } else { mock.url() };
        let ca = ca_file(mock);
        let mut command = command(&upstream, http);
        command.env("PROVE_CA_FILE", ca.path());
        Self::run(command).await
    }

    async fn run(mut command: Command) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        command.env("PROVE_LISTEN", address.to_string());
        let client = Client::new(ClientConfig {
            max_response_body: 2 * LARGE,
            ..ClientConfig::default()
        });
        let proxy = Self {
            child: command.spawn().unwrap(),
            address,
            client: client.unwrap(),
        };
        let listens = async {
            while TcpStream::connect(address).await.is_err() {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(PATIENCE, listens).await.unwrap();
        proxy
    }

    async fn send(
        &self,
        method: Method,
        to: &ScriptHandle,
        body: impl Into<Bytes>,
    ) -> Result<Reply, Failure> {
        let url = format!("http://{}{}", self.address, to.path());
        let request = Request::builder().method(method).uri(url);
        let request = request.body(body.into()).unwrap();
        self.client.send(request, PATIENCE).await
    }
}

/// How many connections there were.
fn connections(entries: &[Entry]) -> usize {
    let mut numbers: Vec<u64> = entries.iter().map(|entry| entry.conn).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers.len()
}

#[tokio::test]
async fn each_version_is_spoken_with_tls_and_without_over_one_connection() {
    for (tls, http, proto) in [
        (false, "1.1", "HTTP/1.1"),
        (true, "1.1", "HTTP/1.1"),
        (false, "h2c", "HTTP/2"),
        (true, "2", "HTTP/2"),
    ] {
        let mock = Mock::start().await;
        let order = mock.script("POST", "201 create body=100 x2");
        let proxy = Proxy::start(&mock, tls, http).await;
        for _ in 0..2 {
            let reply = proxy.send(Method::POST, &order, "one").await.unwrap();
            assert_eq!((reply.status.as_u16(), reply.body.len()), (201, 100));
        }
        let attempts = order.attempts();
        let upstream = mock.tls_url();
        let upstream = if tls { upstream } else { mock.url() };
        for entry in &attempts {
            assert_eq!(entry.proto, proto);
            assert_eq!(entry.tls.is_some(), tls, "{proto}");
            assert_eq!(entry.body_len, 3);
            assert_eq!(entry.header("content-length"), Some("3"), "{proto}");
            // Over HTTP/2 the mock writes the authority down as `host`.
            let host = entry.header("host").unwrap();
            assert!(upstream.ends_with(host), "{host} of {upstream}");
        }
        assert_eq!((attempts.len(), connections(&attempts)), (2, 1), "{proto}");
        order.verify();
    }
}

#[tokio::test]
async fn requests_at_once_share_a_connection_of_http2() {
    let mock = Mock::start().await;
    let order = mock.script("GET", "200 body=100 hold=200ms x*");
    let proxy = Arc::new(Proxy::start(&mock, false, "h2c").await);
    let order = Arc::new(order);
    let mut tasks = JoinSet::new();
    for _ in 0..20 {
        let (proxy, order) = (proxy.clone(), order.clone());
        tasks.spawn(async move { proxy.send(Method::GET, &order, "").await });
    }
    for reply in tasks.join_all().await {
        assert_eq!(reply.unwrap().body.len(), 100);
    }
    let attempts = order.attempts();
    assert_eq!((attempts.len(), connections(&attempts)), (20, 1));
}

/// What is above the proxy's buffer goes through it as it comes, past every window of HTTP/2.
#[tokio::test]
async fn large_bodies_pass_through_whole() {
    let mock = Mock::start().await;
    let order = mock.script("PUT", &format!("200 body={LARGE} x2"));
    for (number, http) in ["h2c", "1.1"].into_iter().enumerate() {
        let proxy = Proxy::start(&mock, false, http).await;
        let body = Bytes::from(vec![b'x'; LARGE]);
        let reply = proxy.send(Method::PUT, &order, body).await.unwrap();
        assert_eq!((reply.status.as_u16(), reply.body.len()), (200, LARGE));
        let entry = &order.attempts()[number];
        assert_eq!(entry.body_len, LARGE as u64, "{http}");
        let length = LARGE.to_string();
        assert_eq!(entry.header("content-length"), Some(&*length), "{http}");
    }
}

#[tokio::test]
async fn a_reply_without_a_body_keeps_what_it_announces() {
    let mock = Mock::start().await;
    let head = mock.script("HEAD", "200 body=100");
    let gone = mock.script("DELETE", "204");
    let proxy = Proxy::start(&mock, false, "h2c").await;
    let reply = proxy.send(Method::HEAD, &head, "").await.unwrap();
    assert_eq!(reply.headers["content-length"], "100");
    assert!(reply.body.is_empty());
    let reply = proxy.send(Method::DELETE, &gone, "").await.unwrap();
    assert_eq!((reply.status.as_u16(), reply.body.len()), (204, 0));
}

/// A reply that is cut upstream is cut downstream, whichever way that is said there; its head is
/// not lost.
#[tokio::test]
async fn a_cut_reply_is_cut_downstream() {
    for (http, script, status) in [
        ("h2c", "200 cl=100 body=40 end-stream", 200),
        ("h2c", "200 cl=100 body=100 rst@body+40", 200),
        ("h2c", "200 chunked body=100 fin@body+40", 200),
        ("h2c", "404 cl=100 body=40 end-stream", 404),
        ("1.1", "200 cl=100 body=40", 200),
        ("1.1", "200 cl=100 body=100 rst@body+40", 200),
        ("1.1", "404 cl=100 body=40", 404),
    ] {
        let mock = Mock::start().await;
        let order = mock.script("GET", script);
        let proxy = Proxy::start(&mock, false, http).await;
        let failure = proxy.send(Method::GET, &order, "").await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Truncated, "{http} {script}");
        assert_eq!(failure.reply.unwrap().status, status, "{http} {script}");
        assert_eq!(order.attempts().len(), 1, "{http} {script}");
    }
}

#[tokio::test]
async fn a_connection_that_fell_silent_carries_no_other_request() {
    let mock = Mock::start().await;
    let order = mock.script("GET", "200, 200 hold=*, 200");
    let mut command = command(&mock.url(), "h2c");
    command.env("PROVE_ATTEMPT_TIMEOUT_MS", "300");
    let proxy = Proxy::run(command).await;
    for _ in 0..2 {
        let reply = proxy.send(Method::GET, &order, "").await.unwrap();
        assert_eq!(reply.status, 200);
    }
    let attempts = order.attempts();
    assert_eq!(attempts.len(), 3);
    assert_eq!(attempts[0].conn, attempts[1].conn);
    assert_ne!(attempts[1].conn, attempts[2].conn);
}

/// Without the file it is the machine's authorities that count, and they do not know the mock's.
#[tokio::test]
async fn who_is_not_certified_gets_nothing() {
    let mock = Mock::start().await;
    let strangers = ca_file(&Mock::start().await);
    let order = mock.script("GET", "200");
    for (http, ca) in [("1.1", None), ("2", None), ("2", Some(strangers.path()))] {
        let mut command = command(&mock.tls_url(), http);
        if let Some(ca) = ca {
            command.env("PROVE_CA_FILE", ca);
        }
        let proxy = Proxy::run(command).await;
        let reply = proxy.send(Method::GET, &order, "").await.unwrap();
        assert_eq!(reply.status, 502, "{http}");
        assert_eq!(reply.headers["ressac-reason"], "permanent", "{http}");
    }
    assert!(order.attempts().is_empty());
}

#[test]
fn what_it_is_told_must_make_sense() {
    let run = |upstream: &str, http: &str, ca: Option<&str>| {
        let mut command = command(upstream, http);
        command.env("PROVE_LISTEN", "127.0.0.1:1");
        if let Some(ca) = ca {
            command.env("PROVE_CA_FILE", ca);
        }
        let done = command.output().unwrap();
        let said = String::from_utf8(done.stderr).unwrap();
        (done.status.code(), said)
    };
    let good = "http://127.0.0.1:9";
    for (upstream, http, ca, says) in [
        (good, "3", None, "PROVE_HTTP is `3`"),
        ("127.0.0.1:9", "2", None, "PROVE_UPSTREAM"),
        ("http://127.0.0.1:9/path", "2", None, "has a path"),
        (good, "2", Some("no-such-file"), "PROVE_CA_FILE"),
        (good, "2", Some("Cargo.toml"), "CERTIFICATE"),
    ] {
        let (code, said) = run(upstream, http, ca);
        assert_eq!(code, Some(64), "{said}");
        assert!(said.contains(says), "{said}");
    }
}
