//! The gateway's HTTP API, as this command needs it.

use std::fmt::Write as _;
use std::time::Duration;

use bytes::Bytes;
use clap::builder::PossibleValuesParser;
use http::{Method, Request};
use ressac_http::{Client, ClientConfig, Reply, Sent, parse_url};
use ressac_policy::Reason;
use serde_json::Value;

use crate::exit::Stop;
use crate::output::printable;

/// How long one call may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The gateway's largest page.
const PAGE: usize = 1_000;
/// The largest answer: a page of messages has long keys and paths at most.
const MAX_ANSWER: usize = 64 * 1024 * 1024;

/// Which dead letters.
#[derive(Debug, clap::Args)]
pub(super) struct Filter {
    /// Only of this partner.
    #[arg(long, value_name = "NAME")]
    pub(super) partner: Option<String>,

    /// Only those that ended for this reason.
    #[arg(long, value_name = "REASON", hide_possible_values = true,
          value_parser = PossibleValuesParser::new(Reason::ALL.map(Reason::as_str)))]
    pub(super) reason: Option<String>,
}

impl Filter {
    pub(super) fn wants_discarded(&self) -> bool {
        self.reason.as_deref() == Some(Reason::Discarded.as_str())
    }
}

/// A gateway's address.
#[derive(Debug)]
pub(super) struct Api {
    client: Client,
    base: String,
}

/// Dead letters that were looked for.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) letters: Vec<Value>,
    /// There are more than wanted.
    pub(super) more: bool,
    /// So many on the way had been discarded, and were left out.
    pub(super) hidden: usize,
}

impl Found {
    fn take(&mut self, mut messages: Vec<Value>, filter: &Filter) {
        if !filter.wants_discarded() {
            let all = messages.len();
            messages.retain(|letter| !is_discarded(letter));
            self.hidden += all - messages.len();
        }
        self.letters.append(&mut messages);
    }
}

fn is_discarded(letter: &Value) -> bool {
    letter.get("reason").and_then(Value::as_str) == Some(Reason::Discarded.as_str())
}

/// A call that brought no result.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The gateway said no, and why.
    Answer(String),
    /// It could not be asked.
    Failed(Stop),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Stop {
        match refusal {
            Refusal::Answer(why) => Stop::no(why),
            Refusal::Failed(stop) => stop,
        }
    }
}

impl Api {
    pub(super) fn new(url: &str) -> Result<Api, Stop> {
        parse_url(url).map_err(|error| Stop::usage(format_args!("--url: {error}")))?;
        if url.contains(['?', '#']) {
            return Err(Stop::usage("--url: write the gateway's address only"));
        }
        let config = ClientConfig {
            max_response_body: MAX_ANSWER,
            ..ClientConfig::default()
        };
        Ok(Api {
            client: Client::new(config).map_err(Stop::fault)?,
            base: url.trim_end_matches('/').to_owned(),
        })
    }

    /// Dead letters, the newest first, page by page up to `limit`. Those that were discarded are
    /// left out, unless it is them that the filter wants.
    pub(super) async fn dead_letters(&self, filter: &Filter, limit: usize) -> Result<Found, Stop> {
        let mut found = Found::default();
        let mut cursor: Option<String> = None;
        // One more than wanted tells whether there are more.
        let enough = limit.saturating_add(1);
        loop {
            let page = PAGE.min(enough - found.letters.len()).max(1);
            let mut path = format!("/v1/messages?state=dead&limit={page}");
            for (name, value) in [
                ("partner", &filter.partner),
                ("reason", &filter.reason),
                ("cursor", &cursor),
            ] {
                if let Some(value) = value {
                    let _ = write!(path, "&{name}={}", encode(value));
                }
            }
            let mut answer = self.call(Method::GET, &path).await?;
            let next = answer
                .get("next")
                .and_then(Value::as_str)
                .map(str::to_owned);
            let Some(Value::Array(messages)) = answer.get_mut("messages") else {
                return Err(self.no_gateway());
            };
            found.take(std::mem::take(messages), filter);
            // A cursor that does not move on would never end.
            if found.letters.len() >= enough || next.is_none() || next == cursor {
                found.more = found.letters.len() > limit;
                found.letters.truncate(limit);
                return Ok(found);
            }
            cursor = next;
        }
    }

    /// One message, as the call leaves it.
    pub(super) async fn message(&self, method: Method, path: &str) -> Result<Value, Refusal> {
        let message = self.call(method, path).await?;
        match message.get("id") {
            Some(Value::String(_)) => Ok(message),
            _ => Err(Refusal::Failed(self.no_gateway())),
        }
    }

    fn no_gateway(&self) -> Stop {
        Stop::no(format_args!(
            "{} answers, but not as a gateway: is --url right?",
            self.base
        ))
    }

    /// One call, one attempt.
    async fn call(&self, method: Method, path: &str) -> Result<Value, Refusal> {
        let failed = |stop| Err(Refusal::Failed(stop));
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base))
            .body(Bytes::new());
        let request = match request {
            Ok(request) => request,
            Err(error) => return failed(Stop::fault(error)),
        };
        match self.client.send(request, TIMEOUT).await {
            Ok(reply) if reply.status.is_success() => match serde_json::from_slice(&reply.body) {
                Ok(value) => Ok(value),
                Err(_) => failed(self.no_gateway()),
            },
            Ok(reply) => Err(Refusal::Answer(problem(&reply))),
            Err(failure) if failure.sent == Sent::NotSent => failed(Stop::no(format_args!(
                "the gateway at {} cannot be reached: {failure}; is `ressac serve` running? \
                 (--url says where)",
                self.base
            ))),
            Err(failure) => failed(Stop::no(format_args!(
                "the gateway at {} did not answer: {failure}; the call may have been carried out",
                self.base
            ))),
        }
    }
}

/// What the gateway says is wrong: RFC 9457, or else the status.
fn problem(reply: &Reply) -> String {
    let body: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    let word = |name| body.get(name).and_then(Value::as_str).map(printable);
    match (word("title"), word("detail")) {
        (Some(title), Some(detail)) => format!("{title}: {detail}"),
        (Some(only), None) | (None, Some(only)) => only,
        (None, None) => format!("the gateway answers {}", reply.status),
    }
}

/// Percent-encodes a value of a query (RFC 3986 §2.1).
fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_cannot_leave_its_place_in_the_query() {
        assert_eq!(encode("acme-1_x.y~"), "acme-1_x.y~");
        assert_eq!(encode("a&limit=1 é"), "a%26limit%3D1%20%C3%A9");
    }
}
