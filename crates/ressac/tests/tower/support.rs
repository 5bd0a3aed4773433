//! Policies without long waits, hyper's client, and a server that does as it is told.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use ressac::policy::{Backoff, Jitter};
use ressac::tower::{ReplayBody, Retry, RetryLayer};
use ressac::{End, Partner, Policy};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tower::Layer;

pub(crate) type Http = Retry<Client<HttpConnector, ReplayBody>>;

/// Two retries, some milliseconds apart; attempts have time enough on any machine.
pub(crate) fn policy() -> Policy {
    let backoff = Backoff {
        base: Duration::from_millis(5),
        jitter: Jitter::None,
        ..Policy::sync().backoff
    };
    Policy {
        retries: 2,
        backoff,
        attempt_timeout: Duration::from_secs(20),
        ..Policy::sync()
    }
}

pub(crate) fn client(layer: &RetryLayer) -> Http {
    layer.layer(Client::builder(TokioExecutor::new()).build_http())
}

pub(crate) fn h2_client(layer: &RetryLayer) -> Http {
    layer.layer(
        Client::builder(TokioExecutor::new())
            .http2_only(true)
            .build_http(),
    )
}

pub(crate) fn plain() -> RetryLayer {
    RetryLayer::new(Partner::new(policy()))
}

pub(crate) fn end(reply: &Response<Incoming>) -> End {
    *reply.extensions().get::<End>().unwrap()
}

pub(crate) async fn text(reply: Response<Incoming>) -> String {
    let bytes = reply.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

pub(crate) fn full(text: &str) -> Full<Bytes> {
    Full::new(Bytes::copy_from_slice(text.as_bytes()))
}

/// What the server does with a request, once it has all of it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Does {
    /// Writes these bytes and keeps the connection.
    Says(&'static str),
    Closes,
    /// With an RST.
    Resets,
    /// Nothing, for ever.
    Hangs,
}

pub(crate) const OK: Does = Does::Says("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
pub(crate) const BUSY: Does =
    Does::Says("HTTP/1.1 503 Service Unavailable\r\ncontent-length: 4\r\n\r\nbusy");
pub(crate) const SLOW_DOWN: Does =
    Does::Says("HTTP/1.1 429 Too Many Requests\r\ncontent-length: 0\r\n\r\n");

/// A server over HTTP/1.1, byte by byte: what it read, and on how many connections.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) addr: SocketAddr,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    requests: Vec<String>,
    connections: usize,
}

impl Server {
    /// Does these in turn, whatever the connection, and the last of them again and again.
    pub(crate) async fn start(turns: &'static [Does]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let server = Server { addr, seen };
        let this = server.clone();
        tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                this.seen.lock().unwrap().connections += 1;
                tokio::spawn(this.clone().serve(socket, turns));
            }
        });
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/pay", self.addr)
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.seen.lock().unwrap().requests.clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.seen.lock().unwrap().connections
    }

    async fn serve(self, mut socket: TcpStream, turns: &'static [Does]) {
        while let Some(request) = read(&mut socket).await {
            let number = {
                let mut seen = self.seen.lock().unwrap();
                seen.requests.push(request);
                seen.requests.len()
            };
            match turns[(number - 1).min(turns.len() - 1)] {
                Does::Says(reply) => socket.write_all(reply.as_bytes()).await.unwrap(),
                Does::Closes => return,
                Does::Resets => {
                    socket2::SockRef::from(&socket)
                        .set_linger(Some(Duration::ZERO))
                        .unwrap();
                    return;
                }
                Does::Hangs => std::future::pending().await,
            }
        }
    }
}

/// One request with its body, by its length or in chunks. `None` at the end of the connection.
async fn read(socket: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_ascii_lowercase();
            let length = head.split("content-length: ").nth(1);
            let length = length.map(|rest| rest.split("\r\n").next().unwrap().parse().unwrap());
            let chunked = head.contains("transfer-encoding: chunked");
            if chunked && body.ends_with("0\r\n\r\n")
                || !chunked && body.len() >= length.unwrap_or(0)
            {
                return Some(text);
            }
        }
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

/// A port where nobody listens: bound and never listened on, so that nobody else takes it.
pub(crate) fn refused() -> (socket2::Socket, SocketAddr) {
    use socket2::{Domain, Socket, Type};
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    socket.bind(&any.into()).unwrap();
    let addr = socket.local_addr().unwrap().as_socket().unwrap();
    (socket, addr)
}
