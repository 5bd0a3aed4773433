//! backon's ExponentialBuilder with jitter, round a function that calls reqwest.
//!
//! What its documentation shows repeats every error; `when` narrows it to errors that are no
//! answer, 429 and 5xx. It knows no methods.

use backon::{ExponentialBuilder, Retryable};
use grid_rust::{Error, Op, Reply, read, run};
use reqwest::{Client, StatusCode};

fn make(op: &Op) -> Client {
    op.reqwest().build().expect("a client")
}

fn transient(error: &Error) -> bool {
    let status = error
        .downcast_ref::<reqwest::Error>()
        .and_then(reqwest::Error::status);
    status.is_none_or(|s| s.is_server_error() || s == StatusCode::TOO_MANY_REQUESTS)
}

async fn send(client: Client, op: Op) -> Result<Reply, Error> {
    let pace = ExponentialBuilder::default()
        .with_min_delay(op.time("base_ms", 1000.0))
        .with_max_delay(op.time("cap_ms", 60_000.0))
        .with_factor(op.number("factor", 2.0) as f32)
        .with_max_times(op.retries() as usize)
        .with_jitter();
    let attempt = || async {
        let request = op.fill(client.request(op.method(), op.url())).await?;
        read(request.send().await?.error_for_status()?).await
    };
    attempt.retry(pace).when(transient).await
}

#[tokio::main]
async fn main() {
    run("backon", "1.6.0 reqwest 0.13.5", make, send).await;
}
