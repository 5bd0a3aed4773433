//! The head of a request.

use std::mem::MaybeUninit;

use bytes::{Buf, BytesMut};

/// The largest head, in bytes.
pub(crate) const MAX_HEAD: usize = 64 * 1024;
/// The most header lines.
const MAX_HEADERS: usize = 256;
/// The largest body, in bytes.
pub(crate) const MAX_BODY: u64 = 64 * 1024 * 1024;

/// A request head, complete.
#[derive(Debug, Clone)]
pub(crate) struct RequestHead {
    pub(crate) method: String,
    pub(crate) target: String,
    /// Names as they came; values read as UTF-8, with replacements where they are not.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) version: Version,
    pub(crate) body: BodyKind,
}

/// The version of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    H10,
    H11,
    H2,
}

/// How the body is framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyKind {
    Length(u64),
    Chunked,
}

/// Why bytes are no request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeadError(pub(crate) String);

fn bad<T>(what: impl Into<String>) -> Result<T, HeadError> {
    Err(HeadError(what.into()))
}

impl RequestHead {
    /// For what never became a request.
    pub(crate) fn unknown() -> Self {
        Self {
            method: String::new(),
            target: String::new(),
            headers: Vec::new(),
            version: Version::H11,
            body: BodyKind::Length(0),
        }
    }

    /// Takes a head off the buffer, or says that more bytes are needed.
    pub(crate) fn parse(buf: &mut BytesMut) -> Result<Option<Self>, HeadError> {
        // Filling in places for 256 lines would cost more than reading the five there are.
        let mut lines = [const { MaybeUninit::uninit() }; MAX_HEADERS];
        let mut req = httparse::Request::new(&mut []);
        let len = match req.parse_with_uninit_headers(buf, &mut lines) {
            Ok(httparse::Status::Complete(len)) if len <= MAX_HEAD => len,
            Ok(httparse::Status::Partial) if buf.len() < MAX_HEAD => return Ok(None),
            Ok(_) => return bad("the head is larger than 64 KiB"),
            Err(e) => return bad(e.to_string()),
        };
        let headers: Vec<(String, String)> = req
            .headers
            .iter()
            .map(|h| {
                (
                    h.name.to_owned(),
                    String::from_utf8_lossy(h.value).into_owned(),
                )
            })
            .collect();
        let head = Self {
            method: req.method.unwrap_or_default().to_owned(),
            target: req.path.unwrap_or_default().to_owned(),
            version: match req.version {
                Some(0) => Version::H10,
                _ => Version::H11,
            },
            body: framing(&headers)?,
            headers,
        };
        buf.advance(len);
        Ok(Some(head))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, v)| v.as_str())
    }

    /// The path, without query; of an absolute target too.
    pub(crate) fn path(&self) -> &str {
        let target = match self.target.split_once("://") {
            Some((_, rest)) if !self.target.starts_with('/') => {
                rest.find('/').map_or("/", |i| &rest[i..])
            }
            _ => &self.target,
        };
        target.split(['?', '#']).next().unwrap_or(target)
    }

    pub(crate) fn proto(&self) -> &'static str {
        match self.version {
            Version::H10 => "HTTP/1.0",
            Version::H11 => "HTTP/1.1",
            Version::H2 => "HTTP/2",
        }
    }

    /// Whether the client wants the connection closed after the reply.
    pub(crate) fn wants_close(&self) -> bool {
        let mut options = self
            .headers
            .iter()
            .filter(|(n, _)| n.eq_ignore_ascii_case("connection"))
            .flat_map(|(_, v)| v.split(','));
        self.version == Version::H10 || options.any(|o| o.trim().eq_ignore_ascii_case("close"))
    }

    /// Whether a body follows.
    pub(crate) fn has_body(&self) -> bool {
        self.body != BodyKind::Length(0)
    }

    pub(crate) fn expects_continue(&self) -> bool {
        self.version != Version::H10
            && self
                .header("expect")
                .is_some_and(|v| v.trim().eq_ignore_ascii_case("100-continue"))
    }
}

/// How the body is framed (RFC 9112, 6.3). What two parsers could read in two ways is refused.
fn framing(headers: &[(String, String)]) -> Result<BodyKind, HeadError> {
    let all = |name: &str| -> Vec<&str> {
        let named = headers.iter().filter(|(n, _)| n.eq_ignore_ascii_case(name));
        named.map(|(_, v)| v.trim()).collect()
    };
    let (codings, lengths) = (all("transfer-encoding"), all("content-length"));
    match (codings.as_slice(), lengths.as_slice()) {
        ([], []) => Ok(BodyKind::Length(0)),
        ([one], []) if one.eq_ignore_ascii_case("chunked") => Ok(BodyKind::Chunked),
        ([_, ..], []) => bad("a transfer coding other than chunked"),
        ([_, ..], [_, ..]) => bad("both Transfer-Encoding and Content-Length"),
        ([], [first, rest @ ..]) => {
            if rest.iter().any(|l| l != first) {
                return bad("several Content-Length values");
            }
            let digits = !first.is_empty() && first.bytes().all(|b| b.is_ascii_digit());
            match first.parse::<u64>() {
                Ok(n) if digits && n <= MAX_BODY => Ok(BodyKind::Length(n)),
                Ok(_) if digits => bad("the body is larger than 64 MiB"),
                _ => bad("a Content-Length that is no number"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn parse(text: &str) -> Result<Option<RequestHead>, HeadError> {
        RequestHead::parse(&mut BytesMut::from(text))
    }

    #[test]
    fn paths_and_framing() {
        let h = parse("POST http://x:1/a/b?q HTTP/1.1\r\nContent-Length: 3\r\n\r\n")
            .unwrap()
            .unwrap();
        assert_eq!((h.path(), h.body), ("/a/b", BodyKind::Length(3)));
        let h = parse("GET /a?u=http://y/ HTTP/1.0\r\n\r\n")
            .unwrap()
            .unwrap();
        assert_eq!((h.path(), h.wants_close()), ("/a", true));
        assert!(parse("GET / HTTP/1.1\r\nHo").unwrap().is_none());
        for bad in [
            "Content-Length: 1\r\nContent-Length: 2",
            "Content-Length: +1",
            "Content-Length: 1\r\nTransfer-Encoding: chunked",
            "Transfer-Encoding: gzip",
            "Content-Length: 99999999999",
        ] {
            assert!(
                parse(&format!("GET / HTTP/1.1\r\n{bad}\r\n\r\n")).is_err(),
                "{bad}"
            );
        }
    }
}
