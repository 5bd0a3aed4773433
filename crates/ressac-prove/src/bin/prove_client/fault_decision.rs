//! Faults in the decision itself.

use std::time::Duration;

use ressac_http::FailureKind;
use ressac_policy::Outcome;

use crate::fault::{Fault, Override, Seen};

/// Between two wrong attempts.
const SHORT: Duration = Duration::from_millis(20);
/// The most that a fault without a count sends.
const ENDLESS: u32 = 60;

impl Fault {
    /// What is done instead of asking the engine. `retries` is what the policy allows.
    pub(crate) fn overrides(&self, seen: &Seen, outcome: &Outcome, retries: u32) -> Override {
        let within = seen.attempts <= retries;
        let again = |wait: Duration| {
            if within {
                Override::Again(wait)
            } else {
                Override::Stop(false)
            }
        };
        let status = seen.status.filter(|_| seen.failure.is_none());
        let on = |wanted: u16| status == Some(wanted);
        let cut = matches!(seen.failure, Some(FailureKind::Reset | FailureKind::Eof));
        let refused = seen.failure == Some(FailureKind::RefusedStream);
        match self.name() {
            "never-retries" if !outcome.is_success() => Override::Stop(false),
            "stops-after-one" if seen.attempts >= 2 && !outcome.is_success() => {
                Override::Stop(false)
            }
            "only-503" if matches!(status, Some(502 | 504)) => Override::Stop(false),
            "no-wait-on-429" if on(429) && outcome.hint.is_none() => again(Duration::ZERO),
            "reuses-after-408" if on(408) => Override::Stop(false),
            "refused-is-fatal" if seen.failure == Some(FailureKind::Refused) => {
                Override::Stop(false)
            }
            "reset-is-fatal" | "race-is-fatal" if cut => Override::Stop(false),
            "425-uncounted" if on(425) => endless(seen),
            "retries-400" if on(400) => again(SHORT),
            "retries-same-credentials" if on(401) => again(SHORT),
            "retries-404" if on(404) => again(SHORT),
            "retries-501" if on(501) => again(SHORT),
            "retries-unclaimed-500" if on(500) => again(SHORT),
            "413-before-hint" if on(413) => again(SHORT),
            "410-retried" if on(410) => again(SHORT),
            "blind-after-first" if seen.attempts >= 2 && on(400) => again(SHORT),
            "head-looks-truncated" if seen.method == "HEAD" => again(SHORT),
            "partial-retried" if contains(seen, b"partialSuccess") => again(SHORT),
            "hint-triggers" if seen.hint_text().is_some() && !on(429) && !on(503) => again(SHORT),
            "post-429-early" if on(429) && seen.method == "POST" => again(Duration::ZERO),
            "retries-post-on-timeout" if seen.failure == Some(FailureKind::Timeout) => again(SHORT),
            "409-is-fatal" if on(409) => Override::Stop(false),
            "new-key-on-422" if on(422) => again(SHORT),
            "421-same-connection" if on(421) && seen.attempts < 2 => {
                Override::Again(Duration::ZERO)
            }
            "resends-on-reused-eof" if cut && seen.method == "POST" && seen.attempts < 2 => {
                Override::Again(Duration::ZERO)
            }
            "103-is-final" if cut => Override::Stop(true),
            "broken-pipe-is-fatal" if on(503) && seen.sent_len > 1 << 20 => Override::Stop(false),
            "refused-post-is-fatal" if refused && !seen.goaway && seen.method == "POST" => {
                Override::Stop(false)
            }
            "refused-uncounted" if refused && !seen.goaway => endless(seen),
            "goaway-is-fatal" if refused && seen.goaway => Override::Stop(false),
            "goaway-always-safe" if cut && seen.goaway => again(Duration::ZERO),
            // The request went out on another connection; its caller hears of the first one's end.
            "goaway-surfaces" if seen.http2 && seen.turn > 0 => Override::Stop(false),
            "no-verify" if seen.failure == Some(FailureKind::Certificate) => Override::Stop(true),
            "tls-cut-is-fatal" if seen.failure == Some(FailureKind::Tls) => Override::Stop(false),
            "retries-bad-certificate" if seen.failure == Some(FailureKind::Certificate) => {
                again(SHORT)
            }
            "connect-loop" if cut && seen.attempts < 400 => {
                Override::Again(Duration::from_millis(10))
            }
            "accepts-short" | "chunk-eof-is-end"
                if seen.failure == Some(FailureKind::Truncated) =>
            {
                Override::Stop(true)
            }
            "h2-short-ok" if seen.http2 && seen.failure == Some(FailureKind::Truncated) => {
                Override::Stop(true)
            }
            "garbage-panics" if cut_or_odd(seen) => std::process::exit(101),
            "lost-probe-locks" if seen.failure == Some(FailureKind::Timeout) => Override::Forget,
            _ => self.by_hint(seen, outcome, &again),
        }
    }

    /// Faults in reading the hint.
    fn by_hint(
        &self,
        seen: &Seen,
        outcome: &Outcome,
        again: &dyn Fn(Duration) -> Override,
    ) -> Override {
        let Some(text) = seen.hint_text() else {
            return Override::None;
        };
        let hint = outcome.hint.map(|h| h.wait);
        let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
        let date = !text.is_empty() && text.ends_with("GMT");
        match self.name() {
            "past-is-now" if date && hint.is_some_and(|h| h.is_zero()) => again(Duration::ZERO),
            "zero-uncounted" if text == "0" => endless(seen),
            "reads-leading-digits" if hint.is_none() && !digits.is_empty() => {
                again(Duration::from_secs(digits.parse().unwrap_or(0)))
            }
            "malformed-aborts" if hint.is_none() => Override::Stop(false),
            "32-bit-milliseconds" if !digits.is_empty() => {
                let ms = digits.parse::<u64>().unwrap_or(u64::MAX).wrapping_mul(1000) as i32;
                again(Duration::from_millis(u64::try_from(ms).unwrap_or(0)))
            }
            "shortens-hint" if hint.is_some_and(|h| h > Duration::from_secs(3)) => {
                again(Duration::from_millis(200))
            }
            "local-clock" if date => again(local_wait(&text)),
            "hint-exact" if hint.is_some() => again(hint.unwrap_or_default()),
            "comes-early" if hint.is_some() => again(Duration::from_millis(100)),
            _ => Override::None,
        }
    }
}

/// The wait until a date by the clock of this machine.
fn local_wait(text: &str) -> Duration {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let at = ressac_policy::parse_http_date(text.as_bytes(), ressac_policy::Timestamp::ZERO + now);
    match at {
        Some(at) => Duration::from_secs_f64((at.unix_seconds as f64 - now.as_secs_f64()).max(0.0)),
        None => Duration::ZERO,
    }
}

fn endless(seen: &Seen) -> Override {
    match seen.attempts < ENDLESS {
        true => Override::Again(Duration::from_millis(5)),
        false => Override::Stop(false),
    }
}

fn contains(seen: &Seen, needle: &[u8]) -> bool {
    seen.failure.is_none() && seen.body.windows(needle.len()).any(|w| w == needle)
}

fn cut_or_odd(seen: &Seen) -> bool {
    matches!(
        seen.failure,
        Some(FailureKind::Malformed | FailureKind::Eof | FailureKind::Reset)
    )
}
