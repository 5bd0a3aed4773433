//! The loop that every Rust adapter shares: operations come in as lines, results go out as lines.
//!
//! An adapter gives [`run`] a function that makes a client from the policy and one that sends an
//! operation with it; each operation is a task of its own. Cancelling drops the task, as is usual
//! in async Rust.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

/// What goes wrong, as the library says it.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// What an operation came to: status and body.
pub type Reply = (u16, Bytes);

/// One operation, with the policy of the run where it says nothing itself.
#[derive(Clone, Debug)]
pub struct Op(Arc<Map<String, Value>>);

impl Op {
    /// A field as text.
    pub fn text(&self, name: &str) -> Option<String> {
        match self.0.get(name)? {
            Value::Null => None,
            Value::String(text) if text.is_empty() => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        }
    }

    /// A setting, or the library's own value.
    pub fn number(&self, name: &str, otherwise: f64) -> f64 {
        self.text(name)
            .and_then(|t| t.parse().ok())
            .unwrap_or(otherwise)
    }

    /// A setting in milliseconds, or the library's own value.
    pub fn time(&self, name: &str, otherwise: f64) -> Duration {
        Duration::from_secs_f64(self.number(name, otherwise) / 1000.0)
    }

    /// Attempts in all, less one.
    pub fn retries(&self) -> u32 {
        self.number("attempts", 4.0) as u32 - 1
    }

    /// Its method.
    pub fn method(&self) -> Method {
        let word = self.text("method").unwrap_or_else(|| "GET".to_owned());
        word.parse().unwrap_or(Method::GET)
    }

    /// Where to.
    pub fn url(&self) -> String {
        self.text("url").unwrap_or_default()
    }

    /// The headers of every attempt, the key among them.
    pub fn headers(&self) -> Vec<(String, String)> {
        let given = match self.0.get("headers") {
            Some(Value::String(text)) => serde_json::from_str(text).unwrap_or(Value::Null),
            Some(value) => value.clone(),
            None => Value::Null,
        };
        let mut pairs: Vec<(String, String)> = serde_json::from_value(given).unwrap_or_default();
        if let Some(key) = self.key() {
            pairs.push(("Idempotency-Key".to_owned(), key));
        }
        pairs
    }

    fn key(&self) -> Option<String> {
        let given = self.text("key_mode").as_deref() == Some("given");
        self.text("key").filter(|_| given)
    }

    /// The client of reqwest that the row is built on. The system's authorities are left out where
    /// they are not needed: reading them takes long, and a case may want hundreds of clients.
    pub fn reqwest(&self) -> reqwest::ClientBuilder {
        let mut client = reqwest::Client::builder().no_proxy();
        if let Some(path) = self.text("ca_file") {
            let pem = std::fs::read(&path).expect("the authority can be read");
            let roots = reqwest::Certificate::from_pem_bundle(&pem).expect("it is PEM");
            client = client.tls_certs_only(roots);
        } else if self.url().starts_with("http:") {
            client = client.tls_certs_only([]);
        }
        match self.text("http").as_deref() {
            Some("2") => client,
            Some("h2c") => client.http2_prior_knowledge(),
            _ => client.http1_only(),
        }
    }

    /// Adds headers, body and time limit to a request of reqwest.
    pub async fn fill(&self, mut request: RequestBuilder) -> Result<RequestBuilder, Error> {
        for (name, value) in self.headers() {
            request = request.header(name, value);
        }
        if let Some(body) = self.body().await? {
            request = request.body(body);
        }
        if self.text("attempt_timeout_ms").is_some() {
            request = request.timeout(self.time("attempt_timeout_ms", 0.0));
        }
        Ok(request)
    }

    /// The body: bytes, or, where it can be read once only, a stream.
    pub async fn body(&self) -> Result<Option<reqwest::Body>, Error> {
        let Some(path) = self.text("body_file") else {
            return Ok(None);
        };
        if self.text("body_mode").as_deref() == Some("stream") {
            let file = tokio::fs::File::open(path).await?;
            let stream = tokio_util::io::ReaderStream::new(file);
            return Ok(Some(reqwest::Body::wrap_stream(stream)));
        }
        Ok(Some(tokio::fs::read(path).await?.into()))
    }
}

/// Takes the whole reply.
pub async fn read(response: Response) -> Result<Reply, Error> {
    Ok((response.status().as_u16(), response.bytes().await?))
}

/// Reads lines until the end of input, then waits for what is under way.
pub async fn run<C, M, S, F>(name: &str, version: &str, make: M, send: S)
where
    C: Clone + Send + Sync + 'static,
    M: Fn(&Op) -> C + Copy + Send + 'static,
    S: Fn(C, Op) -> F + Copy + Send + 'static,
    F: Future<Output = Result<Reply, Error>> + Send + 'static,
{
    rustls::crypto::ring::default_provider()
        .install_default()
        .expect("none is there yet");
    let (said, mut saying) = mpsc::unbounded_channel::<Value>();
    let printer = tokio::spawn(async move {
        while let Some(line) = saying.recv().await {
            println!("{line}");
        }
    });
    let mut policy = Map::new();
    let mut clients: HashMap<String, Arc<OnceLock<C>>> = HashMap::new();
    let mut cancels: HashMap<String, AbortHandle> = HashMap::new();
    let mut running = JoinSet::new();
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let fields: Map<String, Value> = serde_json::from_str(&line).expect("a JSON object");
        let word = |name: &str| Op(Arc::new(fields.clone())).text(name);
        if fields.contains_key("hello") {
            policy = fields;
            let _ = said.send(json!({"ready": 1, "name": name, "version": version}));
        } else if let Some(id) = word("cancel") {
            if let Some(task) = cancels.remove(&id).filter(|task| !task.is_finished()) {
                task.abort();
                let _ = said.send(json!({"op": id, "ok": false, "error": "cancelled"}));
            }
        } else if let Some(id) = word("end") {
            clients.remove(&id);
        } else if let Some(id) = word("op") {
            let mut all = policy.clone();
            all.extend(fields);
            let op = Op(Arc::new(all));
            let shared = op.text("client").unwrap_or_else(|| id.clone());
            let client = Arc::clone(clients.entry(shared).or_default());
            let said = said.clone();
            let task = running.spawn(async move {
                let client = client.get_or_init(|| make(&op)).clone();
                let reply = send(client, op.clone()).await;
                let _ = said.send(result(&op, reply));
            });
            cancels.insert(id, task);
        }
    }
    while running.join_next().await.is_some() {}
    drop(said);
    let _ = printer.await;
}

fn result(op: &Op, reply: Result<Reply, Error>) -> Value {
    let mut line = json!({"op": op.text("op"), "ok": false});
    if let Some(key) = op.key() {
        line["key"] = key.into();
    }
    match reply {
        Ok((status, body)) => {
            line["ok"] = (200..300).contains(&status).into();
            line["status"] = status.into();
            line["body_len"] = body.len().into();
            let sum = Sha256::digest(&body)
                .iter()
                .fold(String::new(), |mut text, byte| {
                    let _ = write!(text, "{byte:02x}");
                    text
                });
            line["body_sha256"] = sum.into();
        }
        Err(error) => {
            let status = error
                .downcast_ref::<reqwest::Error>()
                .and_then(reqwest::Error::status);
            if let Some(status) = status {
                line["status"] = status.as_u16().into();
            }
            let (mut text, mut cause) = (error.to_string(), error.source());
            while let Some(inner) = cause {
                let _ = write!(text, ": {inner}");
                cause = inner.source();
            }
            line["error"] = text.into();
        }
    }
    line
}
