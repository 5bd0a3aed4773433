//! One attempt over HTTP: the request as stored, the partner's headers, the key where it belongs.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use ressac_http::{Client, ConfigError, Failure, Reply};
use ressac_policy::{Outcome, OutcomeKind, Timestamp, VendorHints};
use ressac_store::MessageContent;

use crate::settings::{Idempotency, PartnerSettings};

const AGENT: HeaderValue = HeaderValue::from_static(concat!("ressac/", env!("CARGO_PKG_VERSION")));
/// What is kept of a reply's body, for people; the store has the same bound.
const EXCERPT: usize = 4 * 1024;

/// The way to one partner.
#[derive(Debug)]
pub(crate) struct HttpTransport {
    client: Client,
    url: Uri,
    idempotency: Option<Idempotency>,
    headers: HeaderMap,
    vendors: VendorHints,
}

/// What came of an attempt: for the engine, and for people.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) outcome: Outcome,
    pub(crate) note: String,
    pub(crate) reply_head: Vec<u8>,
    pub(crate) reply_body: Vec<u8>,
}

impl HttpTransport {
    pub(crate) fn new(partner: &PartnerSettings) -> Result<Self, ConfigError> {
        Ok(HttpTransport {
            client: Client::new(partner.client.clone())?,
            url: partner.url.clone(),
            idempotency: partner.idempotency.clone(),
            headers: partner.headers.clone(),
            vendors: partner.policy.retry_after.vendors,
        })
    }

    pub(crate) async fn send(
        &self,
        message: &MessageContent,
        timeout: Duration,
        clock: impl Fn() -> Timestamp,
    ) -> Sent {
        let request = match self.request(message) {
            Ok(request) => request,
            Err(problem) => {
                return Sent {
                    outcome: Outcome::new(OutcomeKind::Invalid),
                    note: problem,
                    reply_head: Vec::new(),
                    reply_body: Vec::new(),
                };
            }
        };
        match self.client.send(request, timeout).await {
            Ok(reply) => replied(&reply, reply.outcome(clock(), self.vendors)),
            Err(failure) => failed(&failure, failure.outcome(clock(), self.vendors)),
        }
    }

    /// The message as a request. Built anew for each attempt from the stored bytes.
    fn request(&self, message: &MessageContent) -> Result<Request<Bytes>, String> {
        let method = Method::from_bytes(message.method.as_bytes())
            .map_err(|_| "the method is no HTTP token".to_owned())?;
        let mut request = Request::new(message.body.clone());
        *request.method_mut() = method;
        *request.uri_mut() = join(&self.url, &message.path)?;
        let headers = request.headers_mut();
        let theirs = |name: &str| !name.starts_with("ressac-");
        for (name, value) in message.headers.iter().filter(|(name, _)| theirs(name)) {
            let name = HeaderName::from_bytes(name.as_bytes())
                .map_err(|_| "a header's name is not valid".to_owned())?;
            let value = HeaderValue::from_bytes(value)
                .map_err(|_| format!("the value of the header {name} is not valid"))?;
            headers.append(name, value);
        }
        for name in self.headers.keys() {
            headers.remove(name);
        }
        headers.extend(self.headers.clone());
        headers.entry(USER_AGENT).or_insert(AGENT);
        if let Some(promise) = &self.idempotency {
            let key = if promise.quoted {
                format!("\"{}\"", message.key)
            } else {
                message.key.clone()
            };
            let value = HeaderValue::from_str(&key)
                .map_err(|_| "the idempotency key cannot be a header value".to_owned())?;
            headers.insert(promise.header.clone(), value);
        }
        Ok(request)
    }
}

/// The partner's URL with a message's path behind its own. The path was checked at intake: it
/// cannot leave the partner's.
fn join(base: &Uri, path: &str) -> Result<Uri, String> {
    let mut parts = base.clone().into_parts();
    let own = base.path().trim_end_matches('/');
    let joined = match path {
        "" if own.is_empty() => "/".to_owned(),
        "" => base.path().to_owned(),
        path => format!("{own}/{}", path.trim_start_matches('/')),
    };
    parts.path_and_query = Some(
        joined
            .parse()
            .map_err(|_| "the path is no valid URL path".to_owned())?,
    );
    Uri::from_parts(parts).map_err(|_| "partner URL and path do not fit together".to_owned())
}

fn replied(reply: &Reply, outcome: Outcome) -> Sent {
    let mut note = String::new();
    if reply.body_limit_hit {
        note.push_str("the reply's body is over the limit; its beginning was read");
    }
    Sent {
        outcome,
        note,
        reply_head: head(reply.status.as_u16(), &reply.headers),
        reply_body: reply.body[..reply.body.len().min(EXCERPT)].to_vec(),
    }
}

fn failed(failure: &Failure, outcome: Outcome) -> Sent {
    let reply_head = failure
        .reply
        .as_ref()
        .map(|reply| head(reply.status.as_u16(), &reply.headers));
    Sent {
        outcome,
        note: failure.message.clone(),
        reply_head: reply_head.unwrap_or_default(),
        reply_body: Vec::new(),
    }
}

/// The few reply headers that tell an operator something. No cookies, no tokens.
fn head(status: u16, headers: &HeaderMap) -> Vec<u8> {
    const KEPT: [&str; 6] = [
        "retry-after",
        "date",
        "location",
        "idempotent-replayed",
        "ressac-reason",
        "x-request-id",
    ];
    let mut text = format!("HTTP {status}\n").into_bytes();
    for name in [CONTENT_TYPE.as_str()].into_iter().chain(KEPT) {
        for value in headers.get_all(name) {
            text.extend_from_slice(format!("{name}: ").as_bytes());
            text.extend_from_slice(value.as_bytes());
            text.push(b'\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_goes_behind_the_partners_own() {
        let cases = [
            ("http://a.example", "", "http://a.example/"),
            ("http://a.example/in", "", "http://a.example/in"),
            ("http://a.example/in/", "", "http://a.example/in/"),
            (
                "http://a.example/in",
                "/v1/x?y=1",
                "http://a.example/in/v1/x?y=1",
            ),
            ("http://a.example/in/", "v1", "http://a.example/in/v1"),
        ];
        for (base, path, expected) in cases {
            assert_eq!(
                join(&base.parse().unwrap(), path).unwrap().to_string(),
                expected
            );
        }
    }
}
