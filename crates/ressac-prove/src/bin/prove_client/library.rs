//! The crate that a program adds: `ressac::reqwest`, used as its documentation says.

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::{Bytes, BytesMut};
use http_body_util::Full;
use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Body, Certificate, ClientBuilder, Method, Request, Response};
use ressac::policy::{OutcomeKind, Policy, Reason};
use ressac::reqwest::{Client, Error, RequestBuilder};
use ressac::{Attempt, Event, IdempotencyKey, Observer, Partner};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::client::cancelled;
use crate::done::{Done, sha256};
use crate::key;
use crate::sign::signature;
use crate::told::Told;

/// So much of a reply is read within its attempt.
const LONGEST_REPLY: usize = 4 << 20;

tokio::task_local! {
    /// Attempts of the operation of this task.
    static ATTEMPTS: Cell<u32>;
}

/// Counts attempts: a reply does not say how many it took.
struct Count;

impl Observer for Count {
    fn on_event(&self, event: &Event<'_>) {
        if let Event::Attempt { attempt, .. } = event {
            // Outside an operation nobody asks.
            let _ = ATTEMPTS.try_with(|count| count.set(attempt.number()));
        }
    }
}

/// One partner, and a client for it.
#[derive(Debug)]
pub(crate) struct Instance {
    client: Client,
    state: Option<PathBuf>,
}

impl Instance {
    pub(crate) fn new(policy: Policy, told: &Told, task: &Told) -> Result<Self, String> {
        let partner = Partner::builder(policy)
            .name("mock")
            .observer(Count)
            .build()
            .map_err(|e| e.to_string())?;
        // Without an authority of the case, one that signs nothing: reading the platform's for each
        // of hundreds of instances would be measured as this client's latency.
        let pem = match task.get("ca_file") {
            Some(file) => std::fs::read(file).map_err(|e| format!("{file}: {e}"))?,
            None => include_bytes!("nobody.pem").to_vec(),
        };
        let anchors = Certificate::from_pem_bundle(&pem).map_err(|e| e.to_string())?;
        let http = task.get("http").unwrap_or("1.1");
        let configure = |builder: ClientBuilder| {
            let builder = builder.no_proxy().tls_certs_only(anchors.clone());
            match http {
                "h2c" => builder.http2_prior_knowledge(),
                // By ALPN.
                "2" => builder,
                _ => builder.http1_only(),
            }
        };
        Ok(Self {
            client: Client::with(partner, configure).map_err(|e| chain(&e))?,
            state: told.get("state_dir").map(PathBuf::from),
        })
    }

    /// The request of a task, and its key.
    fn request(&self, task: &Told) -> Result<(RequestBuilder, Option<String>), String> {
        let method = task.get("method").unwrap_or("GET");
        let method = Method::from_bytes(method.as_bytes()).map_err(|e| e.to_string())?;
        let url = task.get("url").ok_or("no url")?;
        let mut request = self.client.request(method, url);
        for (name, value) in task.headers() {
            request = request.header(name, value);
        }
        if let Some(file) = task.get("body_file") {
            let bytes = Bytes::from(std::fs::read(file).map_err(|e| format!("{file}: {e}"))?);
            request = match task.get("body_mode") {
                // reqwest knows it as a stream, and cannot clone it.
                Some("stream") => request.body(Body::wrap(Full::new(bytes))),
                _ => request.body(bytes),
            };
        }
        if task.get("safe") == Some("1") {
            request = request.idempotent();
        }
        let key = match task.get("key_mode") {
            Some("given") => task.get("key").map(str::to_owned),
            Some("own") => {
                let (state, op) = (self.state.as_deref(), task.get("op").unwrap_or_default());
                let make = || self.client.partner().make_key().to_string();
                Some(key::own(state, op, make))
            }
            _ => None,
        };
        if let Some(key) = &key {
            let key = IdempotencyKey::new(key.as_str()).map_err(|e| e.to_string())?;
            request = request.idempotency_key(key);
        }
        let secret = task.get("secret").map(str::to_owned);
        let request = request.before_attempt(move |attempt, request| {
            let number = attempt.number().into();
            request.headers_mut().insert("ressac-attempt", number);
            if let Some(secret) = &secret {
                sign(secret, attempt, request);
            }
        });
        Ok((request, key))
    }
}

/// As Standard Webhooks has it: the id is the operation's, the moment this attempt's.
fn sign(secret: &str, attempt: &Attempt, request: &mut Request) {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let stamp = since.unwrap_or_default().as_secs();
    let id = attempt.key().to_string();
    let body = request.body().and_then(Body::as_bytes).unwrap_or_default();
    let signed = signature(secret, &id, stamp, body);
    set(request.headers_mut(), "webhook-id", id);
    set(
        request.headers_mut(),
        "webhook-timestamp",
        stamp.to_string(),
    );
    set(request.headers_mut(), "webhook-signature", signed);
}

fn set(fields: &mut HeaderMap, name: &'static str, value: String) {
    match HeaderValue::try_from(value) {
        Ok(value) => {
            fields.insert(name, value);
        }
        // Left out: the suite sees it.
        Err(error) => eprintln!("prove-client: {name}: {error}"),
    }
}

/// The result line of an operation.
pub(crate) async fn perform(
    instance: Arc<Instance>,
    task: Told,
    mut cancel: watch::Receiver<bool>,
) -> Value {
    let id = task.get("op").unwrap_or_default().to_owned();
    let (request, key) = match instance.request(&task) {
        Ok(request) => request,
        Err(error) => {
            return json!({ "op": id, "ok": false, "reason": "permanent", "error": error });
        }
    };
    let work = ATTEMPTS.scope(Cell::new(0), async {
        // Dropping the future cancels the operation.
        let ended = tokio::select! {
            biased;
            ended = request.send_whole(LONGEST_REPLY) => Some(ended),
            () = cancelled(&mut cancel) => None,
        };
        let mut done = match ended {
            Some(Ok(reply)) => delivered(reply).await,
            Some(Err(error)) => failed(&error),
            None => nothing(Reason::Cancelled),
        };
        done.attempts = ATTEMPTS.with(Cell::get);
        done
    });
    Done { key, ..work.await }.line(&id)
}

fn nothing(reason: Reason) -> Done {
    Done {
        ok: reason == Reason::Delivered,
        status: None,
        attempts: 0,
        reason: reason.as_str(),
        hint: None,
        key: None,
        body: None,
        error: None,
    }
}

async fn delivered(mut reply: Response) -> Done {
    let mut done = nothing(Reason::Delivered);
    done.status = Some(reply.status().as_u16());
    let mut body = BytesMut::new();
    while body.len() <= LONGEST_REPLY {
        match reply.chunk().await {
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => {
                done.body = Some((body.len() as u64, sha256(&body)));
                return done;
            }
            Err(error) => {
                done.ok = false;
                done.error = Some(chain(&error));
                return done;
            }
        }
    }
    done
}

/// `delivered` as an error: an earlier attempt had done it, and there is no reply to hand over.
fn failed(error: &Error) -> Done {
    let mut done = nothing(error.reason());
    done.status = match error.last_outcome() {
        Some(OutcomeKind::Status(status)) => Some(status),
        _ => None,
    };
    done.hint = error.hint().map(|hint| hint.wait);
    done.error = Some(chain(error));
    done
}

/// An error with all that is below it.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut below = error.source();
    while let Some(error) = below {
        text.push_str(": ");
        text.push_str(&error.to_string());
        below = error.source();
    }
    text
}
