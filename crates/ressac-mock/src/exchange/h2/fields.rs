//! Header fields of HTTP/2: requests decoded (RFC 7541), replies written as literals.

use bytes::{BufMut, BytesMut};
use loona_hpack::Decoder;

use crate::wire::{BodyKind, MAX_HEAD, RequestHead, Version};

/// The largest dynamic table that a client may use: the size that needs no agreement.
const TABLE: usize = 4096;

/// Why a block is no request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FieldError {
    /// The table of the connection is lost.
    Compression(String),
    /// Only this stream is wrong.
    Malformed(&'static str),
}

/// A decoder for one connection.
pub(crate) fn decoder() -> Decoder<'static> {
    let mut decoder = Decoder::new();
    decoder.set_max_allowed_table_size(TABLE);
    decoder
}

/// The head of a request (RFC 9113, 8.3.1). `body`: whether one follows.
pub(crate) fn request(
    decoder: &mut Decoder<'_>,
    block: &[u8],
    body: bool,
) -> Result<RequestHead, FieldError> {
    let mut fields: Vec<(String, String)> = Vec::new();
    // A block of indexes can stand for much more than it is long.
    let mut size = 0;
    let result = decoder.decode_with_cb(block, |name, value| {
        size += name.len() + value.len() + 32;
        if size <= MAX_HEAD {
            let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
            fields.push((text(&name), text(&value)));
        }
    });
    result.map_err(|e| FieldError::Compression(e.to_string()))?;
    if size > MAX_HEAD {
        return Err(FieldError::Malformed("the head is larger than 64 KiB"));
    }
    assemble(fields, body)
}

fn assemble(fields: Vec<(String, String)>, body: bool) -> Result<RequestHead, FieldError> {
    let (mut method, mut path, mut authority) = (None, None, None);
    let mut headers = Vec::with_capacity(fields.len() + 1);
    for (name, value) in fields {
        let slot = match name.as_str() {
            ":method" => &mut method,
            ":path" => &mut path,
            ":authority" => &mut authority,
            ":scheme" => continue,
            n if n.starts_with(':') => {
                return Err(FieldError::Malformed("an unknown pseudo-header field"));
            }
            n if n.is_empty()
                || n.bytes()
                    .any(|b| b.is_ascii_uppercase() || !b.is_ascii_graphic()) =>
            {
                return Err(FieldError::Malformed("a field name that is none"));
            }
            _ if value.contains(['\r', '\n', '\0']) => {
                return Err(FieldError::Malformed("a line break in a field"));
            }
            _ => {
                headers.push((name, value));
                continue;
            }
        };
        if slot.replace(value).is_some() || !headers.is_empty() {
            return Err(FieldError::Malformed("a pseudo-header field out of place"));
        }
    }
    let (Some(method), Some(target)) = (method, path) else {
        return Err(FieldError::Malformed("no :method or no :path"));
    };
    let plain = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_graphic());
    if !plain(&method) || !plain(&target) {
        return Err(FieldError::Malformed("a bad :method or :path"));
    }
    // One name for it, whatever the version.
    if let Some(host) = authority {
        headers.insert(0, ("host".to_owned(), host));
    }
    Ok(RequestHead {
        method,
        target,
        headers,
        version: Version::H2,
        body: match body {
            true => BodyKind::Chunked,
            false => BodyKind::Length(0),
        },
    })
}

/// The block of a reply: literals without indexing, names in lower case. What belongs to an HTTP/1
/// connection is left out.
pub(crate) fn reply(status: u16, lines: &[(String, String)]) -> BytesMut {
    let mut out = BytesMut::with_capacity(256);
    literal(&mut out, ":status", &status.to_string());
    for (name, value) in lines {
        let lower = name.to_ascii_lowercase();
        if !matches!(
            lower.as_str(),
            "connection" | "transfer-encoding" | "keep-alive" | "upgrade" | "proxy-connection"
        ) {
            literal(&mut out, &lower, value);
        }
    }
    out
}

fn literal(out: &mut BytesMut, name: &str, value: &str) {
    out.put_u8(0);
    string(out, name);
    string(out, value);
}

/// A string without Huffman coding: its length in a prefix of 7 bits (RFC 7541, 5.1, 5.2).
fn string(out: &mut BytesMut, text: &str) {
    let mut rest = text.len();
    if rest < 127 {
        out.put_u8(rest as u8);
    } else {
        out.put_u8(127);
        rest -= 127;
        while rest >= 128 {
            out.put_u8((rest % 128) as u8 | 128);
            rest /= 128;
        }
        out.put_u8(rest as u8);
    }
    out.put_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn replies_decode_to_what_was_written() {
        let long = "x".repeat(300);
        let lines = [
            ("Content-Length".to_owned(), "3".to_owned()),
            ("Connection".to_owned(), "close".to_owned()),
            ("X-Long".to_owned(), long.clone()),
        ];
        let got = decoder().decode(&reply(503, &lines)).unwrap();
        let text: Vec<(String, String)> = got
            .into_iter()
            .map(|(n, v)| (String::from_utf8(n).unwrap(), String::from_utf8(v).unwrap()))
            .collect();
        let want = [
            (":status", "503"),
            ("content-length", "3"),
            ("x-long", long.as_str()),
        ];
        let want: Vec<_> = want.map(|(n, v)| (n.to_owned(), v.to_owned())).to_vec();
        assert_eq!(text, want);
    }

    #[test]
    fn requests_of_the_rfc_with_huffman() {
        // RFC 7541, C.4.1: GET http www.example.com /.
        let block = [
            0x82, 0x86, 0x84, 0x41, 0x8c, 0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab,
            0x90, 0xf4, 0xff,
        ];
        let head = request(&mut decoder(), &block, false).unwrap();
        assert_eq!((head.method.as_str(), head.target.as_str()), ("GET", "/"));
        assert_eq!(head.header("Host"), Some("www.example.com"));
    }

    #[test]
    fn a_block_that_unfolds_without_end_is_refused() {
        let mut d = decoder();
        // One field of 4000 bytes goes into the table, then it is named ten thousand times.
        let mut block = vec![0x82, 0x84, 0x40];
        let mut text = BytesMut::new();
        string(&mut text, "x");
        string(&mut text, &"y".repeat(4000));
        block.extend_from_slice(&text);
        block.extend(std::iter::repeat_n(0xbe, 10_000));
        assert!(matches!(
            request(&mut d, &block, false),
            Err(FieldError::Malformed("the head is larger than 64 KiB"))
        ));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_fields_or_refused(bytes: Vec<u8>) {
            let _ = request(&mut decoder(), &bytes, true);
        }
    }
}
