//! The demo's way to send: the real gateway, configured by a real `ressac.toml`, over HTTP.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use ressac_config::{Config, Environment};
use ressac_gateway::Gateway;
use ressac_http::{Client, ClientConfig};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::documents::{Document, documents};
use super::partner::FaultyPartner;
use super::{Args, Progress, Protection};
use crate::exit::Stop;

/// How long a call to the gateway may take.
const CALL: Duration = Duration::from_secs(30);
/// Callers at a time.
const CALLERS: usize = 16;

/// The demo's configuration. What differs from the defaults is said why.
fn configuration(args: &Args, partner: &FaultyPartner, folder: &std::path::Path) -> String {
    let off = |protection| args.without.contains(&protection);
    let breaker = if off(Protection::Breaker) {
        "\"off\""
    } else {
        // A drain that doubles every 4 s keeps 50 documents below 10 a second.
        "{ consecutive = \"off\", ramp_step = \"4s\" }"
    };
    let hold = !off(Protection::Hold);
    let store = Value::from(format!("sqlite:{}", folder.join("demo.db").display())).to_string();
    format!(
        r#"[policy.edi]
extends = "durable"
window = "1h"
retry_after = {{ hold = {hold} }}
breaker = {breaker}

[partner.acme]
url = "{url}"
policy = "edi"
idempotency = {{ header = "Idempotency-Key" }}

[gateway]
listen = "127.0.0.1:0"
store = {store}
"#,
        url = partner.url(),
    )
}

/// Hands all documents to the gateway while the partner is down, and waits until each has ended.
pub(super) async fn send_all(
    args: &Args,
    partner: &FaultyPartner,
    progress: &watch::Sender<Progress>,
) -> Result<(), Stop> {
    let folder = tempfile::tempdir()
        .map_err(|error| Stop::fault(format_args!("no folder for the store: {error}")))?;
    let text = configuration(args, partner, folder.path());
    let config = Config::parse("demo.toml", &text, &Environment::ignored())
        .map_err(|error| Stop::fault(error.render(false)))?;
    let gateway = Gateway::start_configured(&config)
        .await
        .map_err(Stop::fault)?;
    let caller = Caller::new(format!("http://{}", gateway.address()))?;
    partner.go_down();
    offer(&caller, args, progress).await?;
    loop {
        if look(&caller, progress).await? {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    gateway.stop().await;
    Ok(())
}

/// Offers every document, a few at a time, as many senders would.
async fn offer(
    caller: &Caller,
    args: &Args,
    progress: &watch::Sender<Progress>,
) -> Result<(), Stop> {
    let mut calls = JoinSet::new();
    for document in documents(args.messages) {
        if calls.len() >= CALLERS {
            taken(calls.join_next().await, progress)?;
        }
        let caller = caller.clone();
        calls.spawn(async move { caller.accept(document).await });
    }
    while !calls.is_empty() {
        taken(calls.join_next().await, progress)?;
    }
    Ok(())
}

fn taken(
    call: Option<Result<Result<(), Stop>, tokio::task::JoinError>>,
    progress: &watch::Sender<Progress>,
) -> Result<(), Stop> {
    match call {
        Some(Ok(result)) => result?,
        Some(Err(error)) => return Err(Stop::fault(error)),
        None => {}
    }
    progress.send_modify(|progress| progress.accepted += 1);
    Ok(())
}

/// Reads the gateway's own account of the partner. True once nothing is under way.
async fn look(caller: &Caller, progress: &watch::Sender<Progress>) -> Result<bool, Stop> {
    let answer = caller.get("/v1/partners").await?;
    let partner = &answer["partners"][0];
    let number = |field: &str| partner[field].as_u64().unwrap_or(0);
    let open = number("waiting") + number("sending");
    let dead = if number("dead") > 0 {
        caller.dead_by_reason().await?
    } else {
        Vec::new()
    };
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut breaker = word(&partner["breaker"]["state"]);
    if let Some(cause) = partner["breaker"]["cause"].as_str() {
        breaker = format!("{breaker} ({cause})");
    }
    progress.send_modify(|progress| {
        progress.waiting = open;
        progress.breaker = breaker;
        progress.dead = dead;
    });
    Ok(open == 0)
}

/// Calls the gateway's API.
#[derive(Clone)]
struct Caller {
    client: Client,
    base: String,
}

impl Caller {
    fn new(base: String) -> Result<Caller, Stop> {
        let client = Client::new(ClientConfig::default()).map_err(Stop::fault)?;
        Ok(Caller { client, base })
    }

    async fn accept(&self, document: Document) -> Result<(), Stop> {
        let request = Request::post(format!("{}/v1/partners/acme/messages", self.base))
            .header("content-type", document.content_type)
            .header("idempotency-key", document.key)
            .body(Bytes::from(document.body))
            .map_err(Stop::fault)?;
        let reply = self.client.send(request, CALL).await.map_err(Stop::fault)?;
        if reply.status == http::StatusCode::ACCEPTED {
            return Ok(());
        }
        let body = String::from_utf8_lossy(&reply.body).into_owned();
        Err(Stop::fault(format_args!(
            "the gateway answered {}: {body}",
            reply.status
        )))
    }

    async fn get(&self, path: &str) -> Result<Value, Stop> {
        let request = Request::get(format!("{}{path}", self.base))
            .body(Bytes::new())
            .map_err(Stop::fault)?;
        let reply = self.client.send(request, CALL).await.map_err(Stop::fault)?;
        serde_json::from_slice(&reply.body).map_err(Stop::fault)
    }

    async fn dead_by_reason(&self) -> Result<Vec<(String, u64)>, Stop> {
        let mut counts = std::collections::BTreeMap::<String, u64>::new();
        let mut cursor = String::new();
        loop {
            let page = self
                .get(&format!("/v1/messages?state=dead&limit=500{cursor}"))
                .await?;
            for message in page["messages"].as_array().into_iter().flatten() {
                let reason = message["reason"].as_str().unwrap_or("unknown").to_owned();
                *counts.entry(reason).or_default() += 1;
            }
            match page["next"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return Ok(counts.into_iter().collect()),
            }
        }
    }
}
