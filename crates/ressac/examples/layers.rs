//! Two layers of services that both retry, and do not multiply: 3 × 3 makes 3.
//!
//! `cargo run -p ressac --features reqwest --example layers`
//!
//! The shop calls the payment service, which calls the bank. The bank is down. The payment service
//! gives up after three attempts and says so in its reply, by the header `Ressac-Reason`. The shop's
//! client reads it and does not retry on top.
#![allow(clippy::print_stdout)]

use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use ressac::reqwest::Client;
use ressac::{Partner, Policy, Reason};
use ressac_mock::Mock;

/// Three attempts, with waits short enough for an example.
fn policy() -> Policy {
    let mut policy = Policy {
        retries: 2,
        ..Policy::sync()
    };
    policy.backoff.base = Duration::from_millis(20);
    policy
}

/// The payment service: a handler that calls the bank.
async fn balance(State((bank, url)): State<(Client, String)>) -> Response {
    match bank.get(url).send().await {
        Ok(reply) => reply.text().await.unwrap_or_default().into_response(),
        Err(told) => {
            println!("payment service: {told}");
            // Whoever called us shall know that we have retried already.
            let reason = [("ressac-reason", told.reason().as_str())];
            (StatusCode::SERVICE_UNAVAILABLE, reason).into_response()
        }
    }
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mock = Mock::start().await;
    let bank = mock.script("GET", "503 x*");

    let bank_client = Client::new(Partner::builder(policy()).name("bank").build()?)?;
    let service = Router::new()
        .route("/balance", get(balance))
        .with_state((bank_client, bank.url()));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/balance", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, service).await });

    let shop = Client::new(Partner::builder(policy()).name("payments").build()?)?;
    let Err(told) = shop.get(url).send().await else {
        return Err("the bank is down, and the shop had an answer".into());
    };
    println!("shop: {told}");
    println!("the bank saw {} requests", bank.attempts().len());
    assert_eq!(told.reason(), Reason::UpstreamGaveUp);
    assert_eq!((told.attempts(), bank.attempts().len()), (1, 3));
    Ok(())
}
