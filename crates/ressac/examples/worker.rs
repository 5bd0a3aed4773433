//! Twenty workers share one partner: its budget, its breaker, its places.
//!
//! `cargo run -p ressac --example worker`
//!
//! In a total outage they send a few attempts between them, not six each, and then leave the partner
//! alone.
#![allow(clippy::print_stdout)]

use std::io::{Error, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use ressac::{Metrics, Partner, Policy, Reason};

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let metrics = Metrics::default();
    let mut policy = Policy::sync();
    policy.backoff.base = Duration::from_millis(10);
    policy.limit.concurrency = Some(4);
    let warehouse = Partner::builder(policy)
        .name("warehouse")
        .observer(metrics.clone())
        .build()?;

    let arrived = Arc::new(AtomicU32::new(0));
    let mut workers = Vec::new();
    for job in 0..20 {
        // A clone is the same partner.
        let (warehouse, arrived) = (warehouse.clone(), arrived.clone());
        workers.push(tokio::spawn(async move {
            let result = warehouse
                .retry(async |_attempt| {
                    arrived.fetch_add(1, Ordering::Relaxed);
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    Err::<(), _>(Error::from(ErrorKind::ConnectionRefused))
                })
                .await;
            (job, result)
        }));
    }
    for worker in workers {
        let (job, result) = worker.await?;
        if let Err(told) = result {
            println!("job {job}: {told}");
        }
    }
    let arrived = arrived.load(Ordering::Relaxed);
    println!("20 jobs, {arrived} attempts; alone they would have made 120");
    println!("{}", metrics.snapshot().to_prometheus("warehouse"));
    assert!(arrived < 30, "{arrived}");
    assert!(metrics.snapshot().ended(Reason::CircuitOpen) > 0);
    Ok(())
}
