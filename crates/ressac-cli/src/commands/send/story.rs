//! The story of an operation, a line for each attempt and decision, for `--verbose`.

use std::fmt::Write as _;
use std::time::Duration;

use ressac_policy::{Attempt, End, Hint, HintSource, Mode, OutcomeKind, Policy, Wait};

use super::drive::Record;
use super::request::Prepared;
use crate::output::{Output, printable};

/// Tells, or keeps silent.
#[derive(Debug)]
pub(super) struct Story<'a> {
    to: Option<Output>,
    prepared: &'a Prepared,
}

impl<'a> Story<'a> {
    pub(super) fn new(to: Option<Output>, prepared: &'a Prepared) -> Self {
        Story { to, prepared }
    }

    fn tell(&self, line: impl FnOnce() -> String) {
        if let Some(output) = self.to {
            output.note(&format!("* {}", line()));
        }
    }

    pub(super) fn sends(&self, attempt: &Attempt, policy: &Policy) {
        self.tell(|| {
            // A durable policy has free attempts besides.
            let most = match policy.mode {
                Mode::Synchronous => format!(" of at most {}", u64::from(policy.retries) + 1),
                Mode::Durable => String::new(),
            };
            let mut line = format!(
                "attempt {}{most} ({}): {} to {}, within {}",
                attempt.number,
                attempt.kind.as_str(),
                self.prepared.request.method(),
                self.prepared.host,
                seconds(attempt.timeout),
            );
            if let Some(key) = &self.prepared.key {
                let _ = write!(line, ", key {key}");
            }
            line
        });
    }

    pub(super) fn came_to(&self, record: &Record) {
        self.tell(|| {
            let mut line = format!(
                "attempt {}: {} after {}",
                record.number,
                came_to(record),
                seconds(record.took)
            );
            if let Some(blame) = record.blame {
                let _ = write!(line, "; blame {blame}, processed {}", record.processed);
            }
            if let Some(hint) = &record.hint {
                let _ = write!(line, "; {}", asks(hint));
            }
            line
        });
    }

    pub(super) fn waits(&self, wait: &Wait, left: Duration) {
        self.tell(|| {
            let mut line = format!("wait {} because {}", seconds(left), wait.because);
            if wait.retry.is_some() && !(wait.ceiling + wait.floor).is_zero() {
                let _ = write!(
                    line,
                    ": floor {} + jitter {}, ceiling {}",
                    seconds(wait.floor),
                    seconds(wait.jitter),
                    seconds(wait.ceiling)
                );
                if let Some(hint) = &wait.hint {
                    let _ = write!(line, ", hint {}", seconds(hint.wait));
                }
            }
            line
        });
    }

    pub(super) fn ended(&self, end: &End, elapsed: Duration) {
        self.tell(|| {
            let done = if end.already_done {
                " (it had been done before)"
            } else {
                ""
            };
            format!(
                "{}{done} after {} in {}; processed {}",
                end.reason,
                attempts(end.attempts),
                seconds(elapsed),
                end.processed
            )
        });
    }
}

/// What an attempt came to, in words.
pub(super) fn came_to(record: &Record) -> String {
    match (record.outcome, record.note.as_str()) {
        (Some(OutcomeKind::Status(status)), _) => match reason_phrase(status) {
            "" => status.to_string(),
            phrase => format!("{status} {phrase}"),
        },
        (Some(kind), "") => kind.to_string(),
        (Some(kind), note) => format!("{kind} ({})", printable(note)),
        (None, note) => note.to_owned(),
    }
}

fn reason_phrase(status: u16) -> &'static str {
    http::StatusCode::from_u16(status)
        .ok()
        .and_then(|status| status.canonical_reason())
        .unwrap_or("")
}

fn asks(hint: &Hint) -> String {
    let field = match hint.source {
        HintSource::RetryAfter => "Retry-After",
        HintSource::RetryAfterMs => "retry-after-ms",
        HintSource::XMsRetryAfterMs => "x-ms-retry-after-ms",
        HintSource::RateLimit => "RateLimit",
        HintSource::RateLimitReset => "RateLimit-Reset",
        HintSource::XRateLimitReset => "X-RateLimit-Reset",
    };
    format!("{field} asks for {}", seconds(hint.wait))
}

/// `1 attempt`, `3 attempts`.
pub(super) fn attempts(number: u32) -> String {
    match number {
        0 => "no attempt".to_owned(),
        1 => "1 attempt".to_owned(),
        more => format!("{more} attempts"),
    }
}

/// A time in seconds, to the millisecond, without trailing zeros.
pub(super) fn seconds(time: Duration) -> String {
    let text = format!("{:.3}", time.as_secs_f64());
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text}s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        for (millis, text) in [(0, "0s"), (1_204, "1.204s"), (500, "0.5s"), (90_000, "90s")] {
            assert_eq!(seconds(Duration::from_millis(millis)), text);
        }
    }
}
