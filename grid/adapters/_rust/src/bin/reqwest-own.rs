//! reqwest's own retries, scoped to a host, with its budget and the classifier of its
//! documentation: idempotent methods, a few statuses, and errors.

use grid_rust::{Error, Op, Reply, read, run};
use reqwest::{Client, StatusCode, retry};

fn make(op: &Op) -> Client {
    let url = reqwest::Url::parse(&op.url()).expect("a URL");
    let host = url.host_str().unwrap_or_default().to_owned();
    let mut policy = retry::for_host(host)
        .max_retries_per_request(op.retries())
        .classify_fn(
            |attempt| match (attempt.method().is_idempotent(), attempt.status()) {
                (true, Some(StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE)) => {
                    attempt.retryable()
                }
                (true, Some(StatusCode::GATEWAY_TIMEOUT | StatusCode::TOO_MANY_REQUESTS)) => {
                    attempt.retryable()
                }
                (true, None) if attempt.error().is_some() => attempt.retryable(),
                _ => attempt.success(),
            },
        );
    if op.text("budget").as_deref() == Some("off") {
        policy = policy.no_budget();
    }
    op.reqwest().retry(policy).build().expect("a client")
}

async fn send(client: Client, op: Op) -> Result<Reply, Error> {
    let request = op.fill(client.request(op.method(), op.url())).await?;
    read(request.send().await?).await
}

#[tokio::main]
async fn main() {
    run("reqwest::retry", "0.13.5", make, send).await;
}
