//! A graceful shutdown: operations under way may end, those that wait are cancelled at once.
//!
//! `cargo run -p ressac --example shutdown`
#![allow(clippy::print_stdout)]

use std::io::{Error, ErrorKind};
use std::time::{Duration, Instant};

use ressac::{Partner, Policy, Reason};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Ready when the shutdown has been told.
async fn told(mut stop: watch::Receiver<bool>) {
    // An error means that nobody is left to tell.
    let _ = stop.wait_for(|stop| *stop).await;
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (stop, stopped) = watch::channel(false);
    let mut policy = Policy::sync();
    policy.backoff.base = Duration::from_secs(3);
    policy.backoff.jitter = ressac::policy::Jitter::None;
    let acme = Partner::builder(policy).name("acme").build()?;

    let mut operations = JoinSet::new();
    // Waits three seconds for its first retry: it hears the signal there.
    let (partner, stopping) = (acme.clone(), told(stopped.clone()));
    operations.spawn(async move {
        let op = |_| std::future::ready(Err::<(), _>(Error::from(ErrorKind::ConnectionRefused)));
        partner.retry(op).cancelled_by(stopping).await
    });
    // In the middle of an attempt: it is given the time to end.
    let partner = acme.clone();
    operations.spawn(async move {
        partner
            .retry(async |_| {
                tokio::time::sleep(Duration::from_millis(300)).await;
                Ok::<_, Error>(())
            })
            .await
    });

    tokio::time::sleep(Duration::from_millis(100)).await;
    println!("SIGTERM");
    let begun = Instant::now();
    stop.send(true)?;
    let all = async {
        let mut cancelled = 0;
        while let Some(ended) = operations.join_next().await {
            match ended {
                Ok(Ok(())) => println!("an attempt under way has ended well"),
                Ok(Err(told)) => {
                    println!("{told}");
                    cancelled += u32::from(told.reason() == Reason::Cancelled);
                }
                Err(error) => println!("{error}"),
            }
        }
        cancelled
    };
    // What has not ended after ten seconds is dropped; that too gives every place back.
    let cancelled = tokio::time::timeout(Duration::from_secs(10), all).await?;
    println!("ended after {:?}", begun.elapsed());
    assert_eq!((cancelled, acme.view().in_flight), (1, 0));
    assert!(begun.elapsed() < Duration::from_secs(2));
    Ok(())
}
