//! A partner scripted by hand: raw sockets, so that a fault is what it says.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

pub mod tls;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use ressac_http::{Client, ClientConfig, Failure, Reply};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// Long enough that only a fault of the code under test reaches it.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// A listener whose n-th connection is given to `serve`, and how many there were.
pub struct Partner {
    pub address: SocketAddr,
    accepted: Arc<AtomicUsize>,
}

impl Partner {
    pub async fn new<F, S>(serve: F) -> Self
    where
        F: Fn(usize, TcpStream) -> S + Send + 'static,
        S: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let accepted = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&accepted);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let number = counter.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(number, socket));
            }
        });
        Self { address, accepted }
    }

    pub fn connections(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

/// One request as it came: head and body, bytes unchanged.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Seen {
    pub head: String,
    pub body: Vec<u8>,
}

/// Reads one whole request; `None` at the end of the stream.
pub async fn read_request<S: AsyncRead + Unpin>(socket: &mut S) -> Option<Seen> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            break at + 4;
        }
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..head_end].to_vec()).unwrap();
    let length = head
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .map_or(0, |(_, value)| value.trim().parse().unwrap());
    while bytes.len() < head_end + length {
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    Some(Seen {
        head,
        body: bytes[head_end..].to_vec(),
    })
}

/// Reads a request, writes `reply`, and ends as told.
pub async fn answer_once(socket: &mut TcpStream, reply: &[u8]) -> Option<Seen> {
    let seen = read_request(socket).await?;
    socket.write_all(reply).await.ok()?;
    Some(seen)
}

/// A partner that answers every request with `reply` and reports what it saw.
pub async fn answering(reply: impl Into<Vec<u8>>) -> (Partner, mpsc::UnboundedReceiver<Seen>) {
    let (tell, seen) = mpsc::unbounded_channel();
    let reply = Arc::new(reply.into());
    let partner = Partner::new(move |_, mut socket| {
        let (tell, reply) = (tell.clone(), Arc::clone(&reply));
        async move {
            while let Some(request) = answer_once(&mut socket, &reply).await {
                let _ = tell.send(request);
            }
        }
    })
    .await;
    (partner, seen)
}

/// Closes with RST instead of FIN.
pub fn reset(socket: TcpStream) {
    SockRef::from(&socket)
        .set_linger(Some(Duration::ZERO))
        .unwrap();
    drop(socket);
}

pub fn client() -> Client {
    Client::new(ClientConfig::default()).unwrap()
}

pub async fn post(client: &Client, url: String, body: &[u8]) -> Result<Reply, Failure> {
    let request = Request::post(url)
        .body(Bytes::copy_from_slice(body))
        .unwrap();
    client.send(request, PATIENCE).await
}

pub async fn get(client: &Client, url: String, limit: Duration) -> Result<Reply, Failure> {
    client
        .send(Request::get(url).body(Bytes::new()).unwrap(), limit)
        .await
}
