//! A payment is sent through an outage, and made once.
//!
//! `cargo run -p ressac --features reqwest --example payment`
//!
//! The partner answers 503 twice and then does not answer at all: the payment has been made, and
//! nobody on this side can know. The same key goes with every attempt, so the last one finds the
//! payment made and gets its receipt.
#![allow(clippy::print_stdout)]

use std::time::Duration;

use ressac::reqwest::Client;
use ressac::{Idempotency, Partner, Policy};
use ressac_mock::Mock;

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The faulty partner: it keeps keys as a real one does.
    let mock = Mock::start().await;
    let pay = mock.script("POST", "503 x2, 201 create hold=1s, 201 create x*");

    let mut policy = Policy {
        attempt_timeout: Duration::from_millis(500),
        ..Policy::sync()
    };
    policy.backoff.base = Duration::from_millis(50);
    let acme = Partner::builder(policy)
        .name("acme")
        .idempotency(Idempotency::header("Idempotency-Key"))
        .build()?;
    let client = Client::new(acme)?;

    let payment = serde_json::json!({ "amount": 1999, "currency": "EUR", "to": "DE89 3704" });
    let reply = client.post(pay.url()).json(&payment).send().await?;

    println!("{} after {} attempts", reply.status(), pay.attempts().len());
    println!(
        "keys on the wire: {}, payments made: {}",
        pay.keys().len(),
        pay.effects()
    );
    assert!(pay.attempts().len() >= 4);
    assert_eq!((pay.keys().len(), pay.effects()), (1, 1));

    // Without a key the doubt is told, not gambled with.
    let client = Client::new(Partner::new(Policy::sync()))?;
    let lost = mock.script("POST", "fin@req");
    let Err(told) = client.post(lost.url()).json(&payment).send().await else {
        return Err("the connection was cut, and there was an answer".into());
    };
    println!("{told}");
    assert_eq!(told.reason(), ressac::Reason::Ambiguous);
    Ok(())
}
