//! Those who wait for a place.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use ressac::policy::{BudgetConfig, Rate, Ratio};
use ressac::{Because, Partner, Policy, Reason};
use tokio::time::Instant;

use super::{asleep, bare, limited, refused, spawn};

#[tokio::test(start_paused = true)]
async fn no_more_at_a_time_than_there_are_places_and_all_get_one() {
    let partner = Partner::new(limited(3));
    let (now, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let begun = Instant::now();
    let mut tasks = Vec::new();
    for _ in 0..30 {
        let (own, now, most) = (partner.clone(), now.clone(), most.clone());
        tasks.push(spawn(async move {
            own.retry(|_| async {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                asleep(100, ()).await;
                now.fetch_sub(1, Ordering::SeqCst);
                Ok::<_, std::io::Error>(())
            })
            .await
        }));
    }
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    assert_eq!(most.load(Ordering::SeqCst), 3);
    // Ten rounds of 100 ms: a place that comes free is taken at once, by no timer.
    assert!(
        begun.elapsed() < Duration::from_millis(1050),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(partner.view().in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn first_come_first_served() {
    let partner = Partner::new(limited(1));
    let order = Arc::new(std::sync::Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    for number in 0..8 {
        let (own, order) = (partner.clone(), order.clone());
        tasks.push(spawn(async move {
            own.retry(|_| {
                order.lock().unwrap().push(number);
                asleep(10, Ok::<_, std::io::Error>(()))
            })
            .await
        }));
        tokio::task::yield_now().await;
    }
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3, 4, 5, 6, 7]);
}

/// Those in line hear that the breaker has opened; they do not sleep until their window closes.
#[tokio::test(start_paused = true)]
async fn br_10_who_waits_for_a_place_hears_of_the_open_breaker() {
    let mut policy = limited(5);
    policy.breaker = Policy::sync().breaker;
    policy.retries = 0;
    let partner = Partner::new(policy);
    let mut tasks = Vec::new();
    for _ in 0..25 {
        let own = partner.clone();
        tasks.push(spawn(async move {
            own.retry(|_| asleep(100, Err::<(), _>(refused())))
                .await
                .unwrap_err()
        }));
    }
    let mut reasons = Vec::new();
    for task in tasks {
        let told = task.await.unwrap();
        assert!(told.elapsed() < Duration::from_secs(1), "{told}");
        reasons.push(told.reason());
    }
    let count = |reason| reasons.iter().filter(|own| **own == reason).count();
    assert_eq!(
        (count(Reason::Exhausted), count(Reason::CircuitOpen)),
        (5, 20)
    );
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_place_waits_no_longer_than_the_window() {
    let partner = Partner::new(limited(1));
    let own = partner.clone();
    let holder = spawn(async move {
        own.retry(|_| asleep(5_000, Ok::<_, std::io::Error>(())))
            .await
    });
    tokio::task::yield_now().await;
    let told = partner
        .retry(|_| std::future::ready(Ok::<_, std::io::Error>(())))
        .within(Duration::from_secs(2))
        .await
        .unwrap_err();
    assert_eq!((told.reason(), told.attempts()), (Reason::WindowClosed, 0));
    assert_eq!(told.wait().unwrap().because, Because::Concurrency);
    holder.await.unwrap().unwrap();
}

/// A durable operation waits in line for a token; a first attempt of another brings it.
#[tokio::test(start_paused = true)]
async fn who_waits_for_a_token_is_called_by_a_deposit() {
    let mut policy = Policy {
        breaker: None,
        ..Policy::durable()
    };
    policy.backoff.base = Duration::from_millis(1);
    policy.backoff.cap = Duration::from_millis(1);
    policy.budget = Some(BudgetConfig {
        reserve: 1,
        ratio: Ratio::ONE,
        trickle: Rate::new(1, Duration::from_secs(1)),
        ..BudgetConfig::default()
    });
    let partner = Partner::new(policy);
    let own = partner.clone();
    let begun = Instant::now();
    // Two retries: one token is there.
    let waiting = spawn(async move {
        let mut left = 3;
        let result = own
            .retry(move |_| {
                left -= 1;
                std::future::ready(if left > 0 { Err(refused()) } else { Ok(()) })
            })
            .await;
        (result, Instant::now())
    });
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(
        !waiting.is_finished(),
        "a trickle of one in a million seconds"
    );
    partner
        .retry(|_| std::future::ready(Ok::<_, std::io::Error>(())))
        .await
        .unwrap();
    let (result, ended) = waiting.await.unwrap();
    result.unwrap();
    assert!(
        ended - begun < Duration::from_millis(5_100),
        "{:?}",
        ended - begun
    );
}

#[tokio::test(start_paused = true)]
async fn an_operator_who_resumes_a_partner_wakes_all_who_wait_for_it() {
    let mut policy = Policy::durable();
    policy.breaker.as_mut().unwrap().open = Duration::from_secs(50);
    let partner = Partner::new(policy);
    while partner.view().gate.as_str() == "closed" {
        let told = partner
            .retry(|_| std::future::ready(Err::<(), _>(refused())))
            .within(Duration::from_millis(1))
            .await;
        assert!(told.is_err());
    }
    let own = partner.clone();
    let begun = Instant::now();
    let waiting = spawn(async move {
        own.retry(|_| std::future::ready(Ok::<_, std::io::Error>(())))
            .await
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    partner.resume();
    waiting.await.unwrap().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn a_rate_is_kept() {
    let mut policy = bare();
    policy.limit.rate = Some(Rate::per_second(10));
    let partner = Partner::new(policy);
    let begun = Instant::now();
    let mut tasks = Vec::new();
    for _ in 0..11 {
        let own = partner.clone();
        tasks.push(spawn(async move {
            own.retry(|_| std::future::ready(Ok::<_, std::io::Error>(())))
                .await
        }));
    }
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    assert!(
        begun.elapsed() >= Duration::from_secs(1),
        "{:?}",
        begun.elapsed()
    );
    assert!(begun.elapsed() < Duration::from_millis(1_200));
}

/// On two real threads, with callers that give up all the time.
#[test]
fn many_tasks_on_two_threads_share_four_places() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap();
    let partner = Partner::new(limited(4));
    runtime.block_on(async {
        let mut tasks = Vec::new();
        for task in 0..64_u64 {
            let own = partner.clone();
            tasks.push(spawn(async move {
                for round in 0..50_u64 {
                    let operation = own.retry(|_| async {
                        tokio::task::yield_now().await;
                        Ok::<_, std::io::Error>(())
                    });
                    if (task + round) % 7 == 0 {
                        let limit = Duration::from_micros(50);
                        let _ = tokio::time::timeout(limit, operation.into_future()).await;
                    } else {
                        operation.await.unwrap();
                    }
                }
            }));
        }
        let all = async {
            for task in tasks {
                task.await.unwrap();
            }
        };
        tokio::time::timeout(Duration::from_secs(60), all)
            .await
            .expect("somebody waits for ever");
    });
    assert_eq!(partner.view().in_flight, 0);
}
