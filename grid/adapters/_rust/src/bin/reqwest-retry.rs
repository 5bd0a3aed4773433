//! reqwest with the middleware of reqwest-retry: its default strategy, its exponential backoff.

use grid_rust::{Error, Op, Reply, read, run};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};
use reqwest_retry::policies::ExponentialBackoff;
use reqwest_retry::{Jitter, RetryTransientMiddleware};

fn make(op: &Op) -> ClientWithMiddleware {
    let policy = ExponentialBackoff::builder()
        .retry_bounds(op.time("base_ms", 1000.0), op.time("cap_ms", 1_800_000.0))
        .jitter(Jitter::Full)
        .base(2)
        .build_with_max_retries(op.retries());
    ClientBuilder::new(op.reqwest().build().expect("a client"))
        .with(RetryTransientMiddleware::new_with_policy(policy))
        .build()
}

async fn send(client: ClientWithMiddleware, op: Op) -> Result<Reply, Error> {
    let mut request = client.request(op.method(), op.url());
    for (name, value) in op.headers() {
        request = request.header(name, value);
    }
    if let Some(body) = op.body().await? {
        request = request.body(body);
    }
    if op.text("attempt_timeout_ms").is_some() {
        request = request.timeout(op.time("attempt_timeout_ms", 0.0));
    }
    read(request.send().await?).await
}

#[tokio::main]
async fn main() {
    run("reqwest-retry", "0.9.1 reqwest 0.13.5", make, send).await;
}
