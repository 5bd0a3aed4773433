//! Whoever gives up gives back what he held, at once.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use ressac::policy::{BreakerConfig, GateState};
use ressac::{Partner, Policy, Processed, Reason, outcomes};
use tokio::time::Instant;

use super::{limited, refused, spawn, state};

/// All parts on, and a backoff of three seconds.
fn three_seconds() -> Policy {
    let mut policy = Policy::sync();
    policy.backoff.base = Duration::from_secs(3);
    policy.backoff.jitter = ressac::policy::Jitter::None;
    policy
}

/// In real time: the wake-up is what is tested.
#[tokio::test]
async fn ca_1_an_abort_during_a_backoff_returns_at_once() {
    let partner = Partner::new(three_seconds());
    let own = partner.clone();
    let task = spawn(async move {
        own.retry(|_| std::future::ready(Err::<(), _>(refused())))
            .await
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    let before = state(&partner);
    let begun = std::time::Instant::now();
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    assert!(
        begun.elapsed() < Duration::from_millis(20),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(state(&partner).0, 0);
    assert_eq!((before.0, before.2), (0, "closed"));
}

#[tokio::test]
async fn ca_1_a_cancel_signal_during_a_backoff_returns_at_once_and_says_so() {
    let partner = Partner::new(three_seconds());
    let (cancel, cancelled) = tokio::sync::oneshot::channel::<()>();
    let own = partner.clone();
    let task = spawn(async move {
        let told = own
            .retry(|_| std::future::ready(Err::<(), _>(refused())))
            .cancelled_by(async { drop(cancelled.await) })
            .await;
        (told.unwrap_err(), std::time::Instant::now())
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    let begun = std::time::Instant::now();
    cancel.send(()).unwrap();
    let (told, ended) = task.await.unwrap();
    assert!(
        ended - begun < Duration::from_millis(20),
        "{:?}",
        ended - begun
    );
    assert_eq!((told.reason(), told.attempts()), (Reason::Cancelled, 1));
    // What had been refused was not processed, and a cancel adds no doubt.
    assert_eq!(told.processed(), Processed::No);
    assert_eq!(told.last_error().unwrap().kind(), refused().kind());
}

/// Budget, breaker and limiter are as if the call had ended.
#[tokio::test(start_paused = true)]
async fn a_future_dropped_inside_its_attempt_gives_its_place_back() {
    let partner = Partner::new(Policy::sync());
    // What an operation that ends leaves behind.
    let compared = Partner::new(Policy::sync());
    compared
        .retry(|_| std::future::ready(Ok::<_, std::io::Error>(())))
        .await
        .unwrap();
    let mut operation = Box::pin(
        partner
            .retry(|_| std::future::pending::<Result<(), std::io::Error>>())
            .into_future(),
    );
    assert!(futures_pending(operation.as_mut()).await);
    assert_eq!(partner.view().in_flight, 1);
    drop(operation);
    assert_eq!(state(&partner), state(&compared));
    // BR-3: a caller's cancel says nothing about the partner.
    assert_eq!((partner.view().failures, partner.view().calls), (0, 0));
}

async fn futures_pending<F: Future>(mut future: std::pin::Pin<&mut F>) -> bool {
    std::future::poll_fn(|cx| std::task::Poll::Ready(future.as_mut().poll(cx).is_pending())).await
}

#[tokio::test(start_paused = true)]
async fn an_attempt_cut_off_by_a_signal_may_have_arrived() {
    let partner = Partner::new(Policy::sync());
    let told = partner
        .retry(|_| std::future::pending::<Result<(), std::io::Error>>())
        .cancelled_by(tokio::time::sleep(Duration::from_secs(1)))
        .await
        .unwrap_err();
    assert_eq!(
        (told.reason(), told.processed()),
        (Reason::Cancelled, Processed::Maybe)
    );
    assert_eq!(state(&partner), (0, Some(10_000), "closed"));
}

/// In the closure, and in the future it returned.
#[tokio::test(start_paused = true)]
async fn a_closure_that_panics_gives_its_place_back() {
    let partner = Partner::new(Policy::sync());
    for early in [true, false] {
        let own = partner.clone();
        let task = spawn(async move {
            own.retry(move |_| {
                assert!(!early, "early");
                async { panic!("late") }
            })
            .classify(|_: &Result<(), ()>, _| outcomes::transient())
            .await
        });
        assert!(task.await.unwrap_err().is_panic());
        assert_eq!((partner.view().in_flight, partner.view().calls), (0, 0));
    }
    let blocking = std::panic::catch_unwind(AssertUnwindSafe(|| {
        partner
            .retry_blocking(|_| -> Result<(), std::io::Error> { panic!("blocking") })
            .call()
    }));
    assert!(blocking.is_err());
    assert_eq!(partner.view().in_flight, 0);
    // And the lock is not poisoned.
    partner
        .retry(|_| std::future::ready(Ok::<_, std::io::Error>(())))
        .await
        .unwrap();
}

/// A panic's place is free even while somebody still holds the broken future.
#[tokio::test(start_paused = true)]
async fn a_panic_that_is_caught_leaves_no_place_taken() {
    let partner = Partner::new(limited(1));
    let mut operation = Box::pin(
        partner
            .retry(|_| async { panic!("here") })
            .classify(|_: &Result<(), ()>, _| outcomes::transient())
            .into_future(),
    );
    let waker = std::task::Waker::noop();
    let mut cx = std::task::Context::from_waker(waker);
    let caught = std::panic::catch_unwind(AssertUnwindSafe(|| operation.as_mut().poll(&mut cx)));
    assert!(caught.is_err());
    assert_eq!(partner.view().in_flight, 0);
    drop(operation);
    assert_eq!(partner.view().in_flight, 0);
}

fn breaker(probes: u8) -> Policy {
    let mut policy = Policy::sync();
    policy.breaker = Some(BreakerConfig {
        probes,
        open_jitter: ressac::policy::Ratio::ZERO,
        ..BreakerConfig::default()
    });
    policy
}

async fn open(partner: &Partner) {
    while partner.view().gate == GateState::Closed {
        let told = partner
            .retry(|_| std::future::ready(Err::<(), _>(refused())))
            .within(Duration::from_millis(1))
            .await;
        assert!(told.is_err());
    }
}

/// BR-1, BR-2: no probe is stuck, and there are never more than the policy says.
#[tokio::test(start_paused = true)]
async fn a_probe_that_is_dropped_gives_its_place_to_the_next() {
    let partner = Partner::new(breaker(1));
    open(&partner).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    for _ in 0..3 {
        let mut probe = Box::pin(
            partner
                .retry(|_| std::future::pending::<Result<(), std::io::Error>>())
                .into_future(),
        );
        assert!(futures_pending(probe.as_mut()).await);
        assert_eq!(partner.view().gate.as_str(), "half_open");
        // A second one does not pass while the first is out.
        let told = partner
            .retry(|_| std::future::ready(Ok::<_, std::io::Error>(())))
            .await;
        assert_eq!(told.unwrap_err().reason(), Reason::CircuitOpen);
        drop(probe);
    }
    partner
        .retry(|_| std::future::ready(Ok::<_, std::io::Error>(())))
        .await
        .unwrap();
    assert_eq!(partner.view().gate, GateState::Closed);
}

#[tokio::test(start_paused = true)]
async fn br_1_of_a_hundred_who_come_half_open_only_the_probes_pass() {
    let partner = Partner::new(breaker(3));
    open(&partner).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let begun = Instant::now();
    let mut tasks = Vec::new();
    for _ in 0..100 {
        let own = partner.clone();
        tasks.push(spawn(async move {
            own.retry(|_| super::asleep(50, Ok::<_, std::io::Error>(())))
                .await
        }));
    }
    let mut passed = 0;
    for task in tasks {
        match task.await.unwrap() {
            Ok(()) => passed += 1,
            Err(told) => {
                assert_eq!(
                    (told.reason(), told.attempts()),
                    (Reason::CircuitOpen, 0),
                    "BR-10"
                );
                assert!(told.elapsed() < Duration::from_millis(20));
            }
        }
    }
    assert_eq!(passed, 3);
    assert!(begun.elapsed() < Duration::from_secs(1));
}

/// The cancelled one was the last that could have passed the call on.
#[tokio::test(start_paused = true)]
async fn whoever_is_called_and_gives_up_calls_the_next() {
    let partner = Partner::new(limited(1));
    let hold = partner.clone();
    let holder = spawn(async move {
        hold.retry(|_| super::asleep(1000, Ok::<_, std::io::Error>(())))
            .await
    });
    tokio::task::yield_now().await;
    let mut first = Box::pin(
        partner
            .retry(|_| std::future::ready(Ok::<_, std::io::Error>(1)))
            .into_future(),
    );
    assert!(futures_pending(first.as_mut()).await);
    let own = partner.clone();
    let second = spawn(async move {
        own.retry(|_| std::future::ready(Ok::<_, std::io::Error>(2)))
            .await
    });
    tokio::task::yield_now().await;
    holder.await.unwrap().unwrap();
    // The first has been called by now, and is never polled again.
    drop(first);
    let value = tokio::time::timeout(Duration::from_secs(1), second).await;
    assert_eq!(value.expect("the second was called").unwrap().unwrap(), 2);
}
