//! Threads.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use ressac::{Partner, Reason, VirtualTime};

use super::{bare, limited, refused};
use ressac::Sleeper;

#[test]
fn waits_block_the_thread() {
    let mut policy = bare();
    policy.backoff.base = Duration::from_millis(40);
    policy.backoff.jitter = ressac::policy::Jitter::None;
    let begun = Instant::now();
    let mut left = 2;
    let tries = Partner::new(policy)
        .retry_blocking(|attempt| {
            left -= 1;
            if left > 0 {
                Err(refused())
            } else {
                Ok(attempt.number())
            }
        })
        .call()
        .unwrap();
    assert_eq!(tries, 2);
    assert!(begun.elapsed() >= Duration::from_millis(40));
}

#[test]
fn virtual_time_moves_by_itself() {
    let time = VirtualTime::new();
    let start = time.now();
    let partner = Partner::builder(bare())
        .sleeper(time.clone())
        .seed(7)
        .build()
        .unwrap();
    let begun = Instant::now();
    let told = partner
        .retry_blocking(|_| Err::<(), _>(refused()))
        .call()
        .unwrap_err();
    assert_eq!((told.reason(), told.attempts()), (Reason::Exhausted, 6));
    assert!(time.now().since(start) > Duration::from_millis(500));
    assert!(begun.elapsed() < Duration::from_secs(2));
    // One seed, the same waits.
    let again = VirtualTime::new();
    let partner = Partner::builder(bare())
        .sleeper(again.clone())
        .seed(7)
        .build()
        .unwrap();
    partner
        .retry_blocking(|_| Err::<(), _>(refused()))
        .call()
        .unwrap_err();
    assert_eq!(time.now(), again.now());
}

#[test]
fn threads_share_the_places_of_a_partner_with_each_other() {
    let partner = Partner::new(limited(2));
    let (now, most) = (AtomicU32::new(0), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..20 {
                    partner
                        .retry_blocking(|_| {
                            let own = now.fetch_add(1, Ordering::SeqCst) + 1;
                            most.fetch_max(own, Ordering::SeqCst);
                            std::thread::yield_now();
                            now.fetch_sub(1, Ordering::SeqCst);
                            Ok::<_, std::io::Error>(())
                        })
                        .call()
                        .unwrap();
                }
            });
        }
    });
    assert!(most.load(Ordering::SeqCst) <= 2);
    assert_eq!(partner.view().in_flight, 0);
}

/// Futures without any runtime: the timer thread wakes them.
#[test]
fn an_async_operation_needs_no_runtime() {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.unpark();
        }
    }
    let mut policy = bare();
    policy.backoff.base = Duration::from_millis(20);
    let partner = Partner::new(policy);
    let mut future = Box::pin(partner.retry(super::failing(2)).into_future());
    let waker = std::task::Waker::from(std::sync::Arc::new(Unpark(std::thread::current())));
    let mut cx = std::task::Context::from_waker(&waker);
    let value = loop {
        match future.as_mut().poll(&mut cx) {
            std::task::Poll::Ready(value) => break value,
            std::task::Poll::Pending => std::thread::park(),
        }
    };
    assert_eq!(value.unwrap(), 3);
}
