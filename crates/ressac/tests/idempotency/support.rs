//! A server, and a client that shows every byte.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::routing::post;
use ressac::idempotency::IdempotencyLayer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Serves until the test ends.
pub(crate) async fn serve(app: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    addr
}

/// How often a handler ran.
#[derive(Clone, Default)]
pub(crate) struct Effects(Arc<AtomicUsize>);

impl Effects {
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    pub(crate) fn add(&self) -> usize {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }
}

/// Counts, and answers 201 with the number and the body it was sent.
pub(crate) fn payments(effects: &Effects, keys: IdempotencyLayer) -> Router {
    let effects = effects.clone();
    let pay = move |body: String| async move {
        let number = effects.add();
        let location = format!("/payments/{number}");
        (
            StatusCode::CREATED,
            [(LOCATION, location)],
            format!("{number}: {body}"),
        )
    };
    Router::new()
        .route(
            "/pay",
            post(pay.clone()).patch(pay.clone()).put(pay.clone()),
        )
        .route("/refund", post(pay))
        .layer(keys)
}

/// One request on a connection of its own.
#[derive(Clone)]
pub(crate) struct Ask {
    method: &'static str,
    path: &'static str,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

pub(crate) fn pay(key: &str) -> Ask {
    ask("POST", "/pay")
        .key(key)
        .header("content-type", "text/plain")
        .body("10 EUR")
}

pub(crate) fn ask(method: &'static str, path: &'static str) -> Ask {
    Ask {
        method,
        path,
        headers: Vec::new(),
        body: Vec::new(),
    }
}

impl Ask {
    pub(crate) fn key(self, key: &str) -> Self {
        self.header("idempotency-key", key)
    }

    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub(crate) fn path(mut self, path: &'static str) -> Self {
        self.path = path;
        self
    }

    pub(crate) fn method(mut self, method: &'static str) -> Self {
        self.method = method;
        self
    }

    pub(crate) fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut head = format!(
            "{} {} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n",
            self.method, self.path
        );
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("content-length: {}\r\n\r\n", self.body.len()));
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(&self.body);
        bytes
    }

    pub(crate) async fn to(&self, server: SocketAddr) -> Reply {
        exchange(server, &self.bytes()).await
    }

    /// Sends and leaves the reply for later; dropping the stream hangs up.
    pub(crate) async fn begin(&self, server: SocketAddr) -> TcpStream {
        let mut stream = TcpStream::connect(server).await.unwrap();
        stream.write_all(&self.bytes()).await.unwrap();
        stream
    }
}

pub(crate) async fn exchange(server: SocketAddr, bytes: &[u8]) -> Reply {
    let mut stream = TcpStream::connect(server).await.unwrap();
    // A server that refuses a body may have closed by now; its reply is read all the same.
    let _ = stream.write_all(bytes).await;
    Reply::read(stream).await
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) async fn read(mut stream: TcpStream) -> Self {
        let mut raw = Vec::new();
        // A reset after the reply takes nothing from what was read.
        let _ = stream.read_to_end(&mut raw).await;
        let end = raw.windows(4).position(|four| four == b"\r\n\r\n");
        let end = end.unwrap_or_else(|| panic!("no reply: {:?}", String::from_utf8_lossy(&raw)));
        let head = String::from_utf8(raw[..end].to_vec()).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines
            .next()
            .unwrap()
            .split(' ')
            .nth(1)
            .unwrap()
            .parse()
            .unwrap();
        let headers: Vec<_> = lines
            .map(|line| line.split_once(": ").unwrap())
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let mut body = raw[end + 4..].to_vec();
        if headers.iter().any(|(name, _)| name == "transfer-encoding") {
            body = unchunked(&body);
        }
        Reply {
            status,
            headers,
            body,
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn replayed(&self) -> bool {
        self.header("idempotent-replayed") == Some("true")
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// The title, of what must be a problem by its form.
    pub(crate) fn title(&self) -> String {
        assert_eq!(
            self.header("content-type"),
            Some("application/problem+json")
        );
        let problem: serde_json::Value = serde_json::from_slice(&self.body).unwrap();
        assert_eq!(problem["status"], self.status);
        assert!(problem["type"].as_str().unwrap().starts_with("https://"));
        assert!(problem["detail"].as_str().unwrap().len() > 10);
        problem["title"].as_str().unwrap().to_owned()
    }

    /// What must be the same on a replay: all but what the server itself puts on each reply.
    pub(crate) fn kept(&self) -> (u16, Vec<(String, String)>, &[u8]) {
        let own = ["date", "idempotent-replayed", "connection"];
        let mut headers = self.headers.clone();
        headers.retain(|(name, _)| !own.contains(&name.as_str()));
        (self.status, headers, &self.body)
    }
}

fn unchunked(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
        let size = std::str::from_utf8(&rest[..end]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            break;
        }
        body.extend_from_slice(&rest[end + 2..end + 2 + size]);
        rest = &rest[end + 2 + size + 2..];
    }
    body
}
