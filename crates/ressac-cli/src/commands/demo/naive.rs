//! What the demo is compared with: plain exponential backoff, as it stands in many a program. One
//! task a document, base 1 s, doubling, no jitter, no look at Retry-After, no limit.
//!
//! On purpose not the engine: it has no way to be this careless in every respect at once.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use ressac_http::{Client, ClientConfig};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::documents::{Document, documents};
use super::partner::FaultyPartner;
use super::{Args, Progress};
use crate::exit::Stop;

const BASE: Duration = Duration::from_secs(1);
const CAP: Duration = Duration::from_secs(600);
const RETRIES: u32 = 30;
const TIMEOUT: Duration = Duration::from_secs(30);

/// Sends all documents at once, each until it arrives.
pub(super) async fn send_all(
    args: &Args,
    partner: &FaultyPartner,
    progress: &watch::Sender<Progress>,
) -> Result<(), Stop> {
    let config = ClientConfig {
        max_idle_per_host: 64,
        ..ClientConfig::default()
    };
    let client = Client::new(config).map_err(Stop::fault)?;
    partner.go_down();
    let mut tasks = JoinSet::new();
    let all: Vec<Document> = documents(args.messages).collect();
    let count = all.len() as u64;
    progress.send_modify(|progress| {
        progress.accepted = count;
        progress.waiting = count;
        progress.breaker = "none".to_owned();
    });
    for document in all {
        let (client, url) = (client.clone(), partner.url());
        tasks.spawn(async move { send(&client, &url, &document).await });
    }
    while let Some(ended) = tasks.join_next().await {
        let arrived = ended.map_err(Stop::fault)??;
        progress.send_modify(|progress| {
            progress.waiting -= 1;
            if !arrived {
                let count = progress.dead.first().map_or(0, |(_, count)| *count) + 1;
                progress.dead = vec![("exhausted".to_owned(), count)];
            }
        });
    }
    Ok(())
}

async fn send(client: &Client, url: &str, document: &Document) -> Result<bool, Stop> {
    for retry in 0..=RETRIES {
        let request = Request::post(url)
            .header("content-type", document.content_type)
            .header("idempotency-key", document.key.as_str())
            .body(Bytes::from(document.body.clone()))
            .map_err(Stop::fault)?;
        if client
            .send(request, TIMEOUT)
            .await
            .is_ok_and(|reply| reply.status.is_success())
        {
            return Ok(true);
        }
        tokio::time::sleep(BASE.saturating_mul(1 << retry.min(20)).min(CAP)).await;
    }
    Ok(false)
}
