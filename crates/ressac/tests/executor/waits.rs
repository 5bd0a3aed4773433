//! How long it waits, and what it says of it.

use std::time::Duration;

use ressac::policy::{Backoff, Hint, HintSource, Jitter, OverMax, RetryAfter, StatusSet};
use ressac::{
    Because, Last, Outcome, OutcomeKind, Partner, Policy, PolicyExt, Processed, Reason, RetryError,
    outcomes,
};
use tokio::time::Instant;

use super::{bare, failing, refused, reset};

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn hint(seconds: u64) -> Option<Hint> {
    Some(Hint {
        wait: secs(seconds),
        source: HintSource::RetryAfter,
    })
}

/// The waits of an operation that always fails in this way.
async fn gaps(policy: Policy, outcome: Outcome) -> (Vec<Duration>, RetryError<(), ()>) {
    let mut at = Vec::new();
    let partner = Partner::new(policy);
    let told = partner
        .retry(|_| {
            at.push(Instant::now());
            std::future::ready(Err::<(), ()>(()))
        })
        .idempotent()
        .classify(move |_, _| outcome)
        .await
        .unwrap_err();
    (at.windows(2).map(|two| two[1] - two[0]).collect(), told)
}

#[tokio::test(start_paused = true)]
async fn bo_5_bo_7_no_wait_is_above_the_cap() {
    let policy = Policy {
        retries: 60,
        window: None,
        backoff: Backoff {
            base: secs(1),
            cap: secs(10),
            ..Backoff::default()
        },
        ..bare()
    };
    for jitter in [
        Jitter::None,
        Jitter::Full,
        Jitter::Equal,
        Jitter::Decorrelated,
    ] {
        let backoff = Backoff {
            jitter,
            ..policy.backoff
        };
        let (gaps, told) = gaps(
            Policy {
                backoff,
                ..policy.clone()
            },
            outcomes::not_sent(),
        )
        .await;
        assert_eq!((gaps.len(), told.reason()), (60, Reason::Exhausted));
        let longest = gaps.iter().max().unwrap();
        // Tokio's timers are exact to a millisecond, and late.
        assert!(
            *longest <= secs(10) + Duration::from_millis(2),
            "{jitter:?}: {longest:?}"
        );
        let distinct: std::collections::BTreeSet<_> = gaps.iter().collect();
        // Decorrelated jitter often draws above the cap, which is then the wait.
        assert!(
            jitter == Jitter::None || distinct.len() > 5,
            "{jitter:?} is spread"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn ra_3_a_hint_is_a_floor_and_the_jitter_comes_on_top() {
    let throttled = outcomes::throttled().with_hint(hint(60));
    let mut all = Vec::new();
    for _ in 0..20 {
        all.extend(
            gaps(
                Policy {
                    retries: 2,
                    ..bare()
                },
                throttled,
            )
            .await
            .0,
        );
    }
    assert!(
        all.iter().all(|gap| *gap >= secs(60)),
        "never earlier: {all:?}"
    );
    assert!(
        all.iter()
            .all(|gap| *gap <= secs(120) + Duration::from_millis(2))
    );
    // Not inverted either: they do not all come at the sixtieth second.
    assert!(all.iter().any(|gap| *gap > secs(75)), "spread: {all:?}");
}

#[tokio::test(start_paused = true)]
async fn ra_8_a_hint_over_the_maximum_is_clamped_or_the_end_and_told_whole() {
    let throttled = outcomes::throttled().with_hint(hint(1_796_040_000));
    let clamp = Policy {
        retries: 1,
        window: Some(secs(3600)),
        ..bare()
    };
    let (gaps_seen, told) = gaps(clamp.clone(), throttled).await;
    assert!(
        gaps_seen[0] >= secs(120) && gaps_seen[0] <= secs(241),
        "{gaps_seen:?}"
    );
    assert_eq!(told.hint().unwrap().wait, secs(1_796_040_000));

    let retry_after = RetryAfter {
        over_max: OverMax::GiveUp,
        ..clamp.retry_after
    };
    let (none, told) = gaps(
        Policy {
            retry_after,
            ..clamp
        },
        throttled,
    )
    .await;
    assert_eq!((none.len(), told.reason()), (0, Reason::HintOverMax));
    assert_eq!(told.hint().unwrap().wait, secs(1_796_040_000));
    assert!(told.advice().contains("retry_after.max"));
}

#[tokio::test(start_paused = true)]
async fn wd_3_a_wait_past_the_window_ends_it_without_sleeping() {
    let begun = Instant::now();
    let policy = Policy {
        window: Some(secs(30)),
        ..bare()
    };
    let (none, told) = gaps(policy, outcomes::throttled().with_hint(hint(60))).await;
    assert_eq!((none.len(), told.reason()), (0, Reason::WindowClosed));
    assert!(begun.elapsed() < Duration::from_millis(5));
}

#[tokio::test(start_paused = true)]
async fn the_wait_is_told_with_its_numbers() {
    let (_, told) = gaps(
        Policy {
            retries: 1,
            ..bare()
        },
        outcomes::throttled().with_hint(hint(7)),
    )
    .await;
    let wait = told.wait().unwrap();
    assert_eq!(
        (wait.because, wait.retry, wait.floor),
        (Because::RetryAfter, Some(0), secs(7))
    );
    let (_, told) = gaps(
        Policy {
            retries: 1,
            ..bare()
        },
        outcomes::not_sent(),
    )
    .await;
    let wait = told.wait().unwrap();
    assert_eq!(
        (wait.because, wait.ceiling),
        (Because::Backoff, Duration::from_millis(500))
    );
}

#[tokio::test(start_paused = true)]
async fn an_attempt_has_a_time_limit_and_is_dropped_then() {
    let begun = Instant::now();
    let told = Partner::new(bare())
        .retry(|_| std::future::pending::<Result<(), std::io::Error>>())
        .await
        .unwrap_err();
    assert_eq!(
        (told.reason(), told.last_outcome()),
        (Reason::Ambiguous, Some(OutcomeKind::Timeout))
    );
    assert_eq!(told.processed(), Processed::Maybe);
    assert!(matches!(told.last(), Last::Nothing));
    let took = begun.elapsed();
    assert!(
        took >= secs(10) && took < Duration::from_millis(10_010),
        "{took:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn wd_4_the_window_shortens_the_last_attempt() {
    let mut limits = Vec::new();
    let told = Partner::new(bare())
        .retry(|attempt| {
            limits.push(attempt.timeout());
            std::future::pending::<Result<(), std::io::Error>>()
        })
        .idempotent()
        .within(secs(12))
        .await
        .unwrap_err();
    assert_eq!(told.reason(), Reason::WindowClosed);
    assert_eq!(limits[0], secs(10));
    assert!(
        limits[1..].iter().all(|limit| *limit < secs(2)),
        "{limits:?}"
    );
    assert!(told.elapsed() <= Duration::from_millis(12_010));
}

#[tokio::test(start_paused = true)]
async fn cf_5_retries_are_the_attempts_after_the_first() {
    let policy = Policy {
        retries: 2,
        ..bare()
    };
    assert_eq!(policy.retry(failing(2)).await.unwrap(), 3);
    let told = policy.retry(failing(9)).await.unwrap_err();
    assert_eq!((told.attempts(), told.reason()), (3, Reason::Exhausted));
    let none = Policy {
        retries: 0,
        ..bare()
    };
    assert_eq!(
        none.retry(failing(9)).await.unwrap_err().attempts(),
        1,
        "WD-2"
    );
}

#[tokio::test(start_paused = true)]
async fn ik_1_one_key_for_all_attempts_and_another_for_the_next_operation() {
    let partner = Partner::new(bare());
    let mut keys = Vec::new();
    for _ in 0..2 {
        let told = partner
            .retry(|attempt| {
                keys.push(attempt.key().to_string());
                std::future::ready(Err::<(), _>(reset()))
            })
            .keyed()
            .await
            .unwrap_err();
        assert_eq!(told.reason(), Reason::Exhausted);
        assert_eq!(&told.key().to_string(), keys.last().unwrap());
    }
    assert_eq!(keys.len(), 12);
    let distinct: std::collections::BTreeSet<_> = keys.iter().collect();
    assert_eq!(distinct.len(), 2);
    assert_eq!(keys[0].as_bytes()[14], b'7', "a UUID v7: {}", keys[0]);
}

#[tokio::test(start_paused = true)]
async fn a_key_the_partner_has_forgotten_makes_nothing_safe() {
    let policy = Policy {
        retries: 30,
        window: None,
        ..bare()
    };
    let told = Partner::new(policy)
        .retry(|_| std::future::ready(Err::<(), _>(reset())))
        .keyed_for(secs(60))
        .await
        .unwrap_err();
    assert_eq!(told.reason(), Reason::Ambiguous);
    // Within the minute, or at the end of the backoff that the minute ended in.
    assert!(told.attempts() > 2 && told.elapsed() <= secs(91), "{told}");
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_is_no_success_stands_in_the_error() {
    let mut replies = ["busy", "busy", "broken"].into_iter();
    let told = Partner::new(bare())
        .retry(|_| std::future::ready(Ok::<_, std::io::Error>(replies.next().unwrap())))
        .idempotent()
        .classify(|result, _| match result {
            Ok("busy") => Outcome::status(503),
            Ok(_) => Outcome::status(400),
            Err(_) => outcomes::transient(),
        })
        .await
        .unwrap_err();
    assert_eq!((told.reason(), told.attempts()), (Reason::Permanent, 3));
    assert_eq!(told.into_reply().unwrap(), "broken");
}

#[tokio::test(start_paused = true)]
async fn already_done_is_success_and_says_so() {
    let mut policy = bare();
    policy.rules.already_done = StatusSet::of(&[409]);
    let mut replies = [503, 409].into_iter();
    let delivered = Partner::new(policy)
        .retry(|_| std::future::ready(Ok::<u16, std::io::Error>(replies.next().unwrap())))
        .idempotent()
        .classify(|status, _| Outcome::status(*status.as_ref().unwrap()))
        .detailed()
        .await
        .unwrap();
    assert_eq!((delivered.value, delivered.end.already_done), (409, true));
}

#[tokio::test(start_paused = true)]
async fn ex_1_a_body_that_can_be_sent_once_is_not_sent_twice() {
    let once = |error: fn() -> std::io::Error| async move {
        Partner::new(Policy {
            retries: 1,
            ..bare()
        })
        .retry(move |_| std::future::ready(Err::<(), _>(error())))
        .idempotent()
        .body_once()
        .await
        .unwrap_err()
    };
    assert_eq!(once(reset).await.reason(), Reason::BodyNotReplayable);
    let told = once(refused).await;
    assert_eq!(
        (told.reason(), told.attempts()),
        (Reason::Exhausted, 2),
        "PX-5"
    );
}

#[tokio::test(start_paused = true)]
async fn when_says_whether_it_can_help_and_never_that_it_is_safe() {
    let partner = Partner::new(bare());
    let op = || |_| std::future::ready(Err::<(), _>("busy"));
    let told = partner
        .retry(op())
        .when(|error| *error == "busy")
        .await
        .unwrap_err();
    assert_eq!((told.reason(), told.attempts()), (Reason::Ambiguous, 1));
    let told = partner
        .retry(op())
        .when(|_| true)
        .idempotent()
        .await
        .unwrap_err();
    assert_eq!((told.reason(), told.attempts()), (Reason::Exhausted, 6));
    let told = partner
        .retry(op())
        .when(|_| false)
        .idempotent()
        .await
        .unwrap_err();
    assert_eq!((told.reason(), told.attempts()), (Reason::Permanent, 1));
}

#[tokio::test(start_paused = true)]
async fn the_error_says_what_happened_and_what_to_do() {
    let partner = Partner::builder(bare()).name("acme").build().unwrap();
    let told = partner
        .retry(|_| std::future::ready(Err::<(), _>(reset())))
        .await
        .unwrap_err();
    let text = told.to_string();
    assert!(
        text.starts_with("ambiguous after 1 attempt, last reset, blame network"),
        "{text}"
    );
    assert!(
        text.contains("acme") && text.contains("ask the partner before"),
        "{text}"
    );
    let source = std::error::Error::source(&told).unwrap();
    assert_eq!(
        source.downcast_ref::<std::io::Error>().unwrap().kind(),
        reset().kind()
    );
    assert!(format!("{told:?}").contains("Ambiguous"));
}
