//! Somebody who hands messages to the gateway and asks what became of them.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::HeaderMap;
use ressac_http::{Client, ClientConfig, Failure};
use serde_json::Value;

/// Longer than any answer of a gateway takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// A caller with its own connections. A clone shares them.
#[derive(Clone, Debug)]
pub struct Caller {
    client: Client,
}

/// An answer of the gateway.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, or null if it is no JSON.
    pub json: Value,
}

impl Answer {
    /// The word behind `urn:ressac:problem:`, or nothing.
    pub fn problem(&self) -> &str {
        let kind = self.json["type"].as_str().unwrap_or_default();
        kind.strip_prefix("urn:ressac:problem:").unwrap_or_default()
    }

    /// The id of the message it is about.
    pub fn id(&self) -> String {
        self.json["id"].as_str().unwrap_or_default().to_owned()
    }
}

/// How many messages a partner has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the words of the states")]
pub struct Counts {
    pub waiting: u64,
    pub sending: u64,
    pub delivered: u64,
    pub dead: u64,
}

impl Caller {
    /// A caller without connections yet.
    pub fn new() -> Self {
        Caller {
            client: Client::new(ClientConfig::default()).unwrap(),
        }
    }

    /// Hands a message in.
    ///
    /// # Errors
    ///
    /// No whole answer came.
    pub async fn post(
        &self,
        gateway: SocketAddr,
        partner: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<Answer, Failure> {
        let path = format!("/v1/partners/{partner}/messages");
        self.call(gateway, "POST", &path, headers, body.into())
            .await
    }

    /// Asks for something that is there.
    ///
    /// # Panics
    ///
    /// If no answer comes, or not 200.
    pub async fn get(&self, gateway: SocketAddr, path: &str) -> Value {
        let answer = self.call(gateway, "GET", path, &[], Bytes::new()).await;
        let answer = answer.unwrap_or_else(|error| panic!("GET {path}: {error}"));
        assert_eq!(answer.status, 200, "GET {path}: {}", answer.json);
        answer.json
    }

    /// One request.
    ///
    /// # Errors
    ///
    /// No whole answer came.
    pub async fn call(
        &self,
        gateway: SocketAddr,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Result<Answer, Failure> {
        let mut request = http::Request::builder()
            .method(method)
            .uri(format!("http://{gateway}{path}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let reply = self
            .client
            .send(request.body(body).unwrap(), PATIENCE)
            .await?;
        Ok(Answer {
            status: reply.status.as_u16(),
            json: serde_json::from_slice(&reply.body).unwrap_or(Value::Null),
            headers: reply.headers,
        })
    }

    /// How many messages the partner has.
    pub async fn counts(&self, gateway: SocketAddr, partner: &str) -> Counts {
        let list = self.get(gateway, "/v1/partners").await;
        let found = list["partners"].as_array().unwrap().iter();
        let found = found.into_iter().find(|p| p["partner"] == partner);
        let number = |name| found.map_or(0, |p| p[name].as_u64().unwrap());
        Counts {
            waiting: number("waiting"),
            sending: number("sending"),
            delivered: number("delivered"),
            dead: number("dead"),
        }
    }

    /// Waits until every message of the partner has ended, and says how.
    ///
    /// # Panics
    ///
    /// If that takes longer than `limit`.
    pub async fn drained(&self, gateway: SocketAddr, partner: &str, limit: Duration) -> Counts {
        let start = Instant::now();
        loop {
            let counts = self.counts(gateway, partner).await;
            if counts.waiting + counts.sending == 0 {
                return counts;
            }
            if start.elapsed() > limit {
                let partners = self.get(gateway, "/v1/partners").await;
                panic!("not drained after {limit:?}: {partners:#}");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until the message has that state, and shows it.
    ///
    /// # Panics
    ///
    /// If that takes longer than `limit`.
    pub async fn becomes(
        &self,
        gateway: SocketAddr,
        id: &str,
        state: &str,
        limit: Duration,
    ) -> Value {
        let start = Instant::now();
        loop {
            let shown = self.get(gateway, &format!("/v1/messages/{id}")).await;
            if shown["state"] == state {
                return shown;
            }
            assert!(
                start.elapsed() < limit,
                "not {state} after {limit:?}: {shown:#}"
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Every message, page by page.
    pub async fn messages(&self, gateway: SocketAddr) -> Vec<Value> {
        let (mut all, mut path) = (Vec::new(), "/v1/messages?limit=500".to_owned());
        loop {
            let page = self.get(gateway, &path).await;
            all.extend(page["messages"].as_array().unwrap().iter().cloned());
            match page["next"].as_str() {
                Some(next) => path = format!("/v1/messages?limit=500&cursor={next}"),
                None => return all,
            }
        }
    }
}

impl Default for Caller {
    fn default() -> Self {
        Self::new()
    }
}
