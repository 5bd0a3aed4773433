//! A server that writes its replies, and its misdeeds, to the socket by hand.
#![allow(dead_code, missing_docs, unreachable_pub, clippy::unwrap_used)]

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ressac::{Partner, Policy};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What becomes of a request, or of a connection.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    /// A whole reply: status line, fields, body.
    Reply(u16, &'static str, &'static str),
    /// Bytes, then the connection ends.
    Raw(&'static str),
    /// The connection ends as it is accepted.
    Close,
    /// The connection is reset as it is accepted.
    Reset,
    /// All is read, then the connection ends.
    ReadAndClose,
    /// All is read, then the connection is reset.
    ReadAndReset,
    /// All is read, and nothing ever comes back.
    Silence,
    /// A whole reply after so many milliseconds.
    Late(u64, u16),
}

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct Seen {
    pub at: Instant,
    pub connection: usize,
    pub head: String,
    pub body: Vec<u8>,
}

impl Seen {
    /// The value of a field.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (own, value) = line.split_once(':')?;
            own.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

#[derive(Default)]
struct State {
    acts: VecDeque<Act>,
    seen: Vec<Seen>,
    connections: usize,
}

/// Acts through its list, then answers 200.
#[derive(Clone)]
pub struct Server {
    pub addr: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl Server {
    pub async fn start(acts: impl IntoIterator<Item = Act>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Server {
            addr: listener.local_addr().unwrap(),
            state: Arc::new(Mutex::new(State {
                acts: acts.into_iter().collect(),
                ..State::default()
            })),
        };
        let own = server.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let own = own.clone();
                tokio::spawn(async move { own.connection(socket).await });
            }
        });
        server
    }

    pub fn url(&self) -> String {
        format!("http://{}/pay", self.addr)
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.state.lock().unwrap().seen.clone()
    }

    pub fn connections(&self) -> usize {
        self.state.lock().unwrap().connections
    }

    pub fn push(&self, acts: impl IntoIterator<Item = Act>) {
        self.state.lock().unwrap().acts.extend(acts);
    }

    async fn connection(&self, mut socket: TcpStream) {
        let (number, first) = {
            let mut state = self.state.lock().unwrap();
            state.connections += 1;
            let at_once = matches!(state.acts.front(), Some(Act::Close | Act::Reset));
            let act = if at_once {
                state.acts.pop_front()
            } else {
                None
            };
            (state.connections, act)
        };
        match first {
            Some(Act::Reset) => return reset(socket),
            Some(_) => return,
            None => {}
        }
        while let Some((head, body)) = request(&mut socket).await {
            let act = {
                let mut state = self.state.lock().unwrap();
                state.seen.push(Seen {
                    at: Instant::now(),
                    connection: number,
                    head,
                    body,
                });
                state.acts.pop_front().unwrap_or(Act::Reply(200, "", "ok"))
            };
            let (status, fields, body) = match act {
                Act::Reply(status, fields, body) => (status, fields, body),
                Act::Late(millis, status) => {
                    tokio::time::sleep(Duration::from_millis(millis)).await;
                    (status, "", "late")
                }
                Act::Raw(bytes) => {
                    let _ = socket.write_all(bytes.as_bytes()).await;
                    let _ = socket.shutdown().await;
                    return;
                }
                Act::ReadAndReset | Act::Reset => return reset(socket),
                Act::ReadAndClose | Act::Close => return,
                Act::Silence => {
                    // Until the client has gone.
                    let mut byte = [0; 1];
                    let _ = socket.read(&mut byte).await;
                    return;
                }
            };
            let length = body.len();
            let reply =
                format!("HTTP/1.1 {status} Told\r\n{fields}content-length: {length}\r\n\r\n{body}");
            if socket.write_all(reply.as_bytes()).await.is_err() {
                return;
            }
        }
    }
}

fn reset(socket: TcpStream) {
    socket2::SockRef::from(&socket)
        .set_linger(Some(Duration::ZERO))
        .unwrap();
}

async fn request(socket: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..head_end].to_vec()).unwrap();
    let field = |name: &str| {
        head.lines().find_map(|line| {
            let (own, value) = line.split_once(':')?;
            own.eq_ignore_ascii_case(name)
                .then(|| value.trim().to_owned())
        })
    };
    let mut body = bytes[head_end..].to_vec();
    if let Some(length) = field("content-length") {
        let length: usize = length.parse().unwrap();
        while body.len() < length {
            if socket.read_buf(&mut body).await.ok()? == 0 {
                return None;
            }
        }
    } else if field("transfer-encoding").is_some() {
        while !body.ends_with(b"0\r\n\r\n") {
            if socket.read_buf(&mut body).await.ok()? == 0 {
                return None;
            }
        }
    }
    Some((head, body))
}

/// Quick waits, no breaker and no budget: for tests of one operation.
pub fn quick() -> Policy {
    let sync = Policy::sync();
    Policy {
        retries: 3,
        backoff: ressac::policy::Backoff {
            base: Duration::from_millis(2),
            cap: Duration::from_millis(10),
            ..sync.backoff
        },
        attempt_timeout: Duration::from_secs(5),
        window: Some(Duration::from_secs(60)),
        budget: None,
        breaker: None,
        ..sync
    }
}

pub fn partner() -> Partner {
    Partner::new(quick())
}
