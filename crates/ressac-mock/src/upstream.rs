//! The program behind the mock: one request, one reply, over HTTP/1.1.

use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::reply::{Content, Length, Payload};
use crate::wire::{Conn, MAX_BODY, MAX_HEAD, RequestHead, Sink};

/// The longest wait for a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// The longest wait for the whole reply.
const REPLY: Duration = Duration::from_secs(120);
/// The most header lines of a reply.
const MAX_HEADERS: usize = 256;

/// Fields that belong to a connection, not to a message (RFC 9110, 7.6.1).
const HOP: [&str; 8] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "content-length",
];

/// Where requests are passed on to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Upstream {
    authority: String,
    /// `host:port`.
    address: String,
    /// A path in front of every target, without a slash at its end.
    prefix: String,
}

impl Upstream {
    /// Reads `http://host:port/prefix`. The error says what is wrong and how to write it.
    pub(crate) fn parse(url: &str) -> Result<Self, String> {
        let Some(rest) = url.strip_prefix("http://") else {
            return Err(format!(
                "the upstream {url:?} is no http:// URL; write one like http://127.0.0.1:8080"
            ));
        };
        let (authority, prefix) = match rest.find('/') {
            Some(i) => rest.split_at(i),
            None => (rest, ""),
        };
        let plain = |b: u8| b.is_ascii_graphic() && !b"?#@".contains(&b);
        if authority.is_empty() || !rest.bytes().all(plain) {
            return Err(format!(
                "the upstream {url:?} needs a host, and no user, query or fragment"
            ));
        }
        let port = authority.rsplit_once(':').map(|(_, p)| p.parse::<u16>());
        let address = match (port, authority.ends_with(']')) {
            (Some(Ok(_)), false) => authority.to_owned(),
            (_, true) | (None, false) => format!("{authority}:80"),
            (Some(Err(_)), false) => return Err(format!("the upstream {url:?} has a bad port")),
        };
        Ok(Self {
            authority: authority.to_owned(),
            address,
            prefix: prefix.trim_end_matches('/').to_owned(),
        })
    }

    /// Passes a request on. The error says what went wrong.
    pub(crate) async fn send(&self, head: &RequestHead, body: &Bytes) -> Result<Content, String> {
        let tcp = match timeout(CONNECT, TcpStream::connect(&self.address)).await {
            Ok(Ok(tcp)) => tcp,
            Ok(Err(e)) => return Err(format!("cannot connect to {}: {e}", self.address)),
            Err(_) => return Err(format!("no connection to {} in 10 s", self.address)),
        };
        let _ = tcp.set_nodelay(true);
        let mut conn = Conn::new(tcp, 0, 0);
        match timeout(REPLY, self.exchange(&mut conn, head, body)).await {
            Ok(got) => got,
            Err(_) => Err("no reply in 120 s".to_owned()),
        }
    }

    async fn exchange(
        &self,
        conn: &mut Conn,
        head: &RequestHead,
        body: &Bytes,
    ) -> Result<Content, String> {
        let mut bytes = self.request(head, body.len());
        bytes.extend_from_slice(body);
        // A reply may come before the body was taken; then the rest of it does not matter.
        let sent = conn.stream.write_all(&bytes).await;
        loop {
            let reply = match self.reply_head(conn).await {
                Ok(reply) => reply,
                Err(e) => return Err(sent.err().map_or(e, |w| w.to_string())),
            };
            if reply.status < 200 {
                continue;
            }
            return finish(conn, head, reply).await;
        }
    }

    fn request(&self, head: &RequestHead, len: usize) -> BytesMut {
        let target = match head.target.split_once("://") {
            Some((_, rest)) if !head.target.starts_with('/') => {
                rest.find('/').map_or("/", |i| &rest[i..])
            }
            _ => &head.target,
        };
        let mut out = format!("{} {}{target} HTTP/1.1\r\n", head.method, self.prefix);
        out.push_str(&format!("Host: {}\r\n", self.authority));
        let named: Vec<String> = head
            .headers
            .iter()
            .filter(|(n, _)| n.eq_ignore_ascii_case("connection"))
            .flat_map(|(_, v)| v.split(',').map(|o| o.trim().to_ascii_lowercase()))
            .collect();
        for (name, value) in &head.headers {
            let lower = name.to_ascii_lowercase();
            let drop = HOP.contains(&lower.as_str()) || named.contains(&lower);
            if !drop && lower != "host" && lower != "expect" {
                out.push_str(&format!("{name}: {value}\r\n"));
            }
        }
        if len > 0 || head.has_body() || matches!(head.method.as_str(), "POST" | "PUT" | "PATCH") {
            out.push_str(&format!("Content-Length: {len}\r\n"));
        }
        out.push_str("Connection: close\r\n\r\n");
        BytesMut::from(out.as_bytes())
    }

    async fn reply_head(&self, conn: &mut Conn) -> Result<ReplyHead, String> {
        loop {
            if !conn.buf.is_empty()
                && let Some(head) = ReplyHead::parse(&mut conn.buf)?
            {
                return Ok(head);
            }
            match conn.stream.read_buf(&mut conn.buf).await {
                Ok(0) => return Err("it closed before a whole reply head".to_owned()),
                Ok(_) => {}
                Err(e) => return Err(e.to_string()),
            }
        }
    }
}

struct ReplyHead {
    status: u16,
    headers: Vec<(String, String)>,
}

impl ReplyHead {
    fn parse(buf: &mut BytesMut) -> Result<Option<Self>, String> {
        let mut lines = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut reply = httparse::Response::new(&mut lines);
        let len = match reply.parse(buf) {
            Ok(httparse::Status::Complete(len)) => len,
            Ok(httparse::Status::Partial) if buf.len() < MAX_HEAD => return Ok(None),
            Ok(_) => return Err("its reply head is larger than 64 KiB".to_owned()),
            Err(e) => return Err(format!("its reply is no HTTP: {e}")),
        };
        let text = |v: &[u8]| String::from_utf8_lossy(v).into_owned();
        let headers = reply.headers.iter();
        let head = Self {
            status: reply.code.unwrap_or(0),
            headers: headers
                .map(|h| (h.name.to_owned(), text(h.value)))
                .collect(),
        };
        buf.advance(len);
        Ok(Some(head))
    }

    fn header(&self, name: &str) -> Option<&str> {
        let mut all = self.headers.iter();
        all.find(|(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, v)| v.trim())
    }
}

/// Reads the body of a reply and makes its content.
async fn finish(conn: &mut Conn, head: &RequestHead, reply: ReplyHead) -> Result<Content, String> {
    let keep = usize::try_from(MAX_BODY).unwrap_or(usize::MAX);
    let none = head.method == "HEAD" || matches!(reply.status, 204 | 304);
    let chunked = reply
        .header("transfer-encoding")
        .is_some_and(|t| t.eq_ignore_ascii_case("chunked"));
    let length = match reply.header("content-length").map(str::parse::<u64>) {
        None => None,
        Some(Ok(n)) if none || n <= MAX_BODY => Some(n),
        Some(_) => return Err("its Content-Length is no number below 64 MiB".to_owned()),
    };
    let short = |_| "its reply was cut in the body".to_owned();
    let body = match (none, chunked, length) {
        (true, ..) => Bytes::new(),
        (_, true, _) => {
            let kind = crate::wire::BodyKind::Chunked;
            conn.read_body(kind, keep).await.map_err(short)?.head
        }
        (_, _, Some(n)) => {
            let kind = crate::wire::BodyKind::Length(n);
            conn.read_body(kind, keep).await.map_err(short)?.head
        }
        (_, _, None) => until_close(conn, keep).await?,
    };
    let date = reply.header("date").map(str::to_owned);
    let headers = reply.headers.into_iter().filter(|(name, _)| {
        let lower = name.to_ascii_lowercase();
        !HOP.contains(&lower.as_str()) && lower != "date"
    });
    Ok(Content {
        status: reply.status,
        date,
        headers: headers.collect(),
        body: Payload::Bytes(body),
        length: match none {
            true => Length::AsTold(length),
            false => Length::OfBody,
        },
        hint: None,
    })
}

async fn until_close(conn: &mut Conn, keep: usize) -> Result<Bytes, String> {
    let mut sink = Sink::new(keep);
    loop {
        let bytes = conn.buf.split();
        sink.take(&bytes);
        if sink.len() > MAX_BODY {
            return Err("its reply is larger than 64 MiB".to_owned());
        }
        match conn.fill().await {
            Ok(0) => return Ok(sink.done().head),
            Ok(_) => {}
            Err(e) => return Err(e.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn urls() {
        let u = Upstream::parse("http://127.0.0.1:8080/base/").unwrap();
        assert_eq!(
            (u.address.as_str(), u.prefix.as_str()),
            ("127.0.0.1:8080", "/base")
        );
        assert_eq!(Upstream::parse("http://host").unwrap().address, "host:80");
        assert_eq!(Upstream::parse("http://[::1]").unwrap().address, "[::1]:80");
        for bad in [
            "https://x",
            "x",
            "http://",
            "http://u@h",
            "http://h:x",
            "http://h/?q",
        ] {
            assert!(Upstream::parse(bad).is_err(), "{bad}");
        }
    }
}
