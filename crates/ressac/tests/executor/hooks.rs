//! What observers are told.

use std::sync::{Arc, Mutex};

use ressac::{AttemptKind, Because, Event, Metrics, Observer, Partner, Reason};

use super::{bare, failing, limited};

#[derive(Default)]
struct Story(Mutex<Vec<String>>);

impl Observer for Story {
    fn on_event(&self, event: &Event<'_>) {
        let line = match event {
            Event::Attempt {
                partner, attempt, ..
            } => {
                format!(
                    "{partner}: {} {}",
                    attempt.kind().as_str(),
                    attempt.number()
                )
            }
            Event::Outcome {
                number,
                outcome,
                judgement,
                ..
            } => {
                let blame = judgement.blame.map_or("none", |blame| blame.as_str());
                format!("{number} {} {} {blame}", outcome.kind, judgement.processed)
            }
            Event::Wait { wait, .. } => format!("wait {}", wait.because),
            Event::End { end, .. } => format!("end {} {}", end.reason, end.attempts),
            _ => "something new".to_owned(),
        };
        self.0.lock().unwrap().push(line);
    }
}

#[tokio::test(start_paused = true)]
async fn an_observer_hears_each_attempt_outcome_wait_and_end_once() {
    let story = Arc::new(Story::default());
    let builder = Partner::builder(bare())
        .name("acme")
        .observer(story.clone());
    let partner = builder.build().unwrap();
    partner.retry(failing(1)).await.unwrap();
    let told = story.0.lock().unwrap().clone();
    let expected = [
        "acme: first 1",
        "1 refused no network",
        "wait backoff",
        "acme: retry 2",
        "2 success yes none",
        "end delivered 2",
    ];
    assert_eq!(told, expected);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_operation_is_told_as_cancelled() {
    let metrics = Metrics::default();
    let partner = Partner::builder(limited(1))
        .observer(metrics.clone())
        .build()
        .unwrap();
    for _ in 0..2 {
        let operation = partner.retry(|_| std::future::pending::<Result<(), std::io::Error>>());
        let limit = std::time::Duration::from_millis(5);
        assert!(
            tokio::time::timeout(limit, operation.into_future())
                .await
                .is_err()
        );
    }
    let counts = metrics.snapshot();
    assert_eq!(counts.ended(Reason::Cancelled), 2);
    assert_eq!(counts.attempts(AttemptKind::First), 2);
    assert_eq!(counts.waits(Because::Concurrency), 0);
    assert_eq!(counts.failures(), 0, "CA-2: a cancel is no outcome");
}
