//! The executor in virtual time: waits, cancels, the line before a partner, the blocking shell.
#![allow(missing_docs, clippy::unwrap_used)]

mod executor {
    mod blocking;
    mod cancel;
    mod hooks;
    mod line;
    mod waits;

    use std::future::Future;
    use std::io::{Error, ErrorKind};
    use std::time::Duration;

    use ressac::{Attempt, Partner, Policy};

    /// An error that proves that nothing was sent.
    pub(crate) fn refused() -> Error {
        ErrorKind::ConnectionRefused.into()
    }

    /// An error that proves nothing.
    pub(crate) fn reset() -> Error {
        ErrorKind::ConnectionReset.into()
    }

    /// The partner's state, to be compared before and after.
    pub(crate) fn state(partner: &Partner) -> (u32, Option<u64>, &'static str) {
        let view = partner.view();
        let millitokens = view.tokens.map(|tokens| (tokens * 1000.0) as u64);
        (view.in_flight, millitokens, view.gate.as_str())
    }

    /// Without breaker and budget.
    pub(crate) fn bare() -> Policy {
        Policy {
            breaker: None,
            budget: None,
            ..Policy::sync()
        }
    }

    pub(crate) fn limited(places: u32) -> Policy {
        let mut policy = bare();
        policy.limit.concurrency = Some(places);
        policy
    }

    /// Fails so often, then succeeds with the number of attempts.
    pub(crate) fn failing(
        times: u32,
    ) -> impl FnMut(Attempt) -> std::future::Ready<Result<u32, Error>> {
        move |attempt| {
            let number = attempt.number();
            std::future::ready(if number <= times {
                Err(refused())
            } else {
                Ok(number)
            })
        }
    }

    pub(crate) async fn asleep<T>(millis: u64, value: T) -> T {
        tokio::time::sleep(Duration::from_millis(millis)).await;
        value
    }

    pub(crate) fn spawn<F>(future: F) -> tokio::task::JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        tokio::spawn(future)
    }
}
