//! Spans and events, as a log shows them.
#![cfg(feature = "tracing")]
#![allow(missing_docs, clippy::unwrap_used)]

use std::io::{self, ErrorKind, Write};
use std::sync::{Arc, Mutex};

use ressac::{Partner, Policy};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn a_log_tells_the_story_and_what_the_closure_logs_stands_in_its_attempt() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::DEBUG)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let partner = Partner::builder(Policy::sync())
        .name("acme")
        .build()
        .unwrap();
    let told = partner
        .retry(async |attempt| {
            tracing::info!("inside");
            let kind = match attempt.number() {
                1 => ErrorKind::ConnectionRefused,
                _ => ErrorKind::ConnectionReset,
            };
            Err::<(), _>(io::Error::from(kind))
        })
        .await
        .unwrap_err();
    assert_eq!(told.attempts(), 2);
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let inside: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("inside"))
        .collect();
    assert_eq!(inside.len(), 2, "{text}");
    assert!(
        inside[0].contains("attempt{partner=\"acme\" number=1 kind=\"first\"}"),
        "{text}"
    );
    assert!(inside[1].contains("number=2 kind=\"retry\""), "{text}");
    let has = |words: &[&str]| {
        text.lines()
            .any(|line| words.iter().all(|word| line.contains(word)))
    };
    assert!(
        has(&[
            "INFO",
            "attempt failed",
            "outcome=refused",
            "processed=\"no\""
        ]),
        "{text}"
    );
    assert!(has(&["DEBUG", "because=\"backoff\""]), "{text}");
    assert!(
        has(&["WARN", "reason=\"ambiguous\"", "processed=\"maybe\""]),
        "{text}"
    );
}
