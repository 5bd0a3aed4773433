//! A reply as it is kept: whole, and in the same bytes.

use bytes::Bytes;
use http::header::{CONNECTION, TE, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::store::StoreError;

/// The layout of [`StoredReply::to_bytes`].
const LAYOUT: u8 = 1;

/// A reply that a repeated request gets again.
///
/// Status, headers, body and trailers are kept byte for byte, in their order. Not kept are what belongs to one
/// connection (`Connection`, `Transfer-Encoding` and their like, RFC 9110 §7.6.1), the `Date` that the
/// server writes on its way out, and extensions.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredReply {
    /// Its status.
    pub status: StatusCode,
    /// Its header fields.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
    /// Its trailer fields, if it had any.
    pub trailers: Option<HeaderMap>,
}

impl StoredReply {
    /// A reply to keep; the headers of one connection are taken out.
    #[must_use]
    pub fn new(status: StatusCode, mut headers: HeaderMap, body: Bytes) -> Self {
        let named: Vec<_> = headers
            .get_all(CONNECTION)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .filter_map(|name| name.trim().parse::<HeaderName>().ok())
            .collect();
        for name in named {
            headers.remove(name);
        }
        for name in [CONNECTION, TE, TRANSFER_ENCODING, UPGRADE] {
            headers.remove(name);
        }
        headers.remove("keep-alive");
        headers.remove("proxy-connection");
        StoredReply {
            status,
            headers,
            body,
            trailers: None,
        }
    }

    /// About the bytes it takes in memory.
    #[must_use]
    pub fn size(&self) -> usize {
        let fields = |map: &HeaderMap| -> usize {
            // The table's own overhead, by the entry.
            map.iter()
                .map(|(name, value)| name.as_str().len() + value.len() + 64)
                .sum()
        };
        self.body.len() + fields(&self.headers) + self.trailers.as_ref().map_or(0, fields)
    }

    /// One string of bytes, for stores that keep such.
    ///
    /// ```
    /// use ressac::idempotency::StoredReply;
    ///
    /// let headers = http::HeaderMap::new();
    /// let reply = StoredReply::new(http::StatusCode::CREATED, headers, "paid".into());
    /// assert_eq!(StoredReply::from_bytes(&reply.to_bytes())?, reply);
    /// # Ok::<(), ressac::idempotency::StoreError>(())
    /// ```
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.size() + 16);
        out.push(LAYOUT);
        out.extend_from_slice(&self.status.as_u16().to_be_bytes());
        write_fields(&mut out, &self.headers);
        out.push(u8::from(self.trailers.is_some()));
        if let Some(trailers) = &self.trailers {
            write_fields(&mut out, trailers);
        }
        out.extend_from_slice(&self.body);
        out
    }

    /// Reads what [`to_bytes`](StoredReply::to_bytes) wrote.
    ///
    /// # Errors
    ///
    /// [`StoreError::Damaged`] if it is anything else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, StoreError> {
        let mut rest = Reader(bytes);
        let layout = rest.take(1)?[0];
        if layout != LAYOUT {
            return Err(damaged(
                "its layout is not known here; it is newer, or no reply",
            ));
        }
        let status = u16::from_be_bytes([rest.take(1)?[0], rest.take(1)?[0]]);
        let status = StatusCode::from_u16(status).map_err(|_| damaged("its status is none"))?;
        let headers = rest.fields()?;
        let trailers = match rest.take(1)?[0] {
            0 => None,
            _ => Some(rest.fields()?),
        };
        Ok(StoredReply {
            status,
            headers,
            body: Bytes::copy_from_slice(rest.0),
            trailers,
        })
    }
}

fn write_fields(out: &mut Vec<u8>, fields: &HeaderMap) {
    let long = |n: usize| u32::try_from(n).unwrap_or(u32::MAX).to_be_bytes();
    out.extend_from_slice(&long(fields.len()));
    for (name, value) in fields {
        for part in [name.as_str().as_bytes(), value.as_bytes()] {
            out.extend_from_slice(&long(part.len()));
            out.extend_from_slice(part);
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8], StoreError> {
        let (taken, rest) = self
            .0
            .split_at_checked(n)
            .ok_or_else(|| damaged("it ends too soon"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<usize, StoreError> {
        let mut number = 0;
        for byte in self.take(4)? {
            number = number << 8 | usize::from(*byte);
        }
        Ok(number)
    }

    fn fields(&mut self) -> Result<HeaderMap, StoreError> {
        let mut fields = HeaderMap::new();
        for _ in 0..self.number()? {
            let length = self.number()?;
            let name = HeaderName::from_bytes(self.take(length)?);
            let length = self.number()?;
            let value = HeaderValue::from_bytes(self.take(length)?);
            let (Ok(name), Ok(value)) = (name, value) else {
                return Err(damaged("one of its headers is none"));
            };
            if fields.try_append(name, value).is_err() {
                return Err(damaged("it has too many headers"));
            }
        }
        Ok(fields)
    }
}

fn damaged(detail: &str) -> StoreError {
    StoreError::Damaged {
        detail: detail.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn reply() -> StoredReply {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("location", &b"/v1/payments/7"[..]),
            ("x-name", b"caf\xe9"),
            ("set-cookie", b"a=1"),
            ("set-cookie", b"b=2"),
            ("connection", b"close, x-hop"),
            ("x-hop", b"1"),
            ("transfer-encoding", b"chunked"),
        ] {
            headers.append(name, HeaderValue::from_bytes(value).unwrap());
        }
        StoredReply::new(
            StatusCode::CREATED,
            headers,
            Bytes::from_static(b"\0\xffpaid"),
        )
    }

    #[test]
    fn it_comes_back_byte_for_byte() {
        let mut reply = reply();
        assert_eq!(StoredReply::from_bytes(&reply.to_bytes()).unwrap(), reply);
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", HeaderValue::from_static("0"));
        reply.trailers = Some(trailers);
        assert_eq!(StoredReply::from_bytes(&reply.to_bytes()).unwrap(), reply);
    }

    #[test]
    fn headers_of_one_connection_are_not_kept() {
        let reply = reply();
        assert_eq!(reply.headers.len(), 4);
        assert_eq!(reply.headers.get_all("set-cookie").iter().count(), 2);
    }

    #[test]
    fn what_is_damaged_is_an_error() {
        let bytes = reply().to_bytes();
        let body = reply().body.len();
        for end in 0..bytes.len() - body {
            assert!(StoredReply::from_bytes(&bytes[..end]).is_err(), "{end}");
        }
        assert!(StoredReply::from_bytes(&[9, 0, 200]).is_err());
        assert!(StoredReply::from_bytes(&[1, 0, 1, 0, 0, 0, 0, 0]).is_err());
        assert!(StoredReply::from_bytes(&[1, 0, 200, 255, 255, 255, 255, 0]).is_err());
    }
}
