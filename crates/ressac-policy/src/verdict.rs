//! From outcome to verdict: the one table that says what is retried, what was processed, and who
//! is to blame.

use crate::outcome::{Blame, Outcome, OutcomeKind, Processed};
use crate::policy::Rules;
use crate::status::RetryOn;

/// What an outcome means for its operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It is done.
    Success,
    /// The reply says it had been done before, and an earlier attempt may have arrived: success.
    AlreadyDone,
    /// Worth another attempt, if the operation may be repeated.
    Retry,
    /// Another attempt cannot help.
    Permanent,
}

/// What an attempt says about the partner's health, for its breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Health {
    /// It answered, and the fault, if any, was ours.
    Good,
    /// It, or the way to it, failed.
    Bad,
    /// Nothing either way: a 429, a caller's cancel, a crash of ours.
    Neutral,
}

/// An outcome, judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// What it means for the operation.
    pub verdict: Verdict,
    /// Was the request processed, as far as anybody can know?
    pub processed: Processed,
    /// Whose failure it was; `None` for success.
    pub blame: Option<Blame>,
    /// What it says about the partner.
    pub health: Health,
    /// A permanent failure that concerns the partner, not the message: a certificate, a password,
    /// a wrong address. Three in a row suspend it.
    pub concerns_partner: bool,
}

impl Judgement {
    /// Of what simply worked.
    pub(crate) const SUCCESS: Judgement = Judgement {
        verdict: Verdict::Success,
        processed: Processed::Yes,
        blame: None,
        health: Health::Good,
        concerns_partner: false,
    };
}

impl Rules {
    /// Judges an outcome. `keyed`: the operation has a key that the partner honours; `before`: the
    /// worst over its earlier attempts.
    ///
    /// ```
    /// use ressac_policy::{Blame, Outcome, Processed, Rules, Verdict};
    ///
    /// let judged = Rules::default().judge(&Outcome::status(503), false, Processed::No);
    /// assert_eq!(judged.verdict, Verdict::Retry);
    /// // The application may have done it before a proxy answered.
    /// assert_eq!(judged.processed, Processed::Maybe);
    /// assert_eq!(judged.blame, Some(Blame::Partner));
    /// ```
    #[must_use]
    #[inline]
    pub fn judge(&self, outcome: &Outcome, keyed: bool, before: Processed) -> Judgement {
        if let Some(verdict) = self.success(outcome, before) {
            return Judgement {
                verdict,
                ..Judgement::SUCCESS
            };
        }
        let mut judgement = Judgement::SUCCESS;
        self.judge_failure(outcome, keyed, &mut judgement);
        judgement
    }

    /// Judges what is no success. Into a place of the caller's: five bytes that are returned are
    /// packed into a register and taken apart again.
    #[inline]
    pub(crate) fn judge_failure(&self, outcome: &Outcome, keyed: bool, into: &mut Judgement) {
        let mut row = row(outcome, keyed);
        if let Some(list) = &self.retry_on {
            row.go_by(list, outcome);
        }
        into.verdict = if row.retry {
            Verdict::Retry
        } else {
            Verdict::Permanent
        };
        into.processed = self.proof(outcome).unwrap_or(row.processed);
        into.blame = Some(row.blame);
        into.health = row.health;
        into.concerns_partner = !row.retry && concerns_partner(outcome.kind);
    }

    #[inline]
    pub(crate) fn success(&self, outcome: &Outcome, before: Processed) -> Option<Verdict> {
        if let OutcomeKind::Status(status) = outcome.kind
            && before > Processed::No
            && self.already_done.contains(status)
        {
            return Some(Verdict::AlreadyDone);
        }
        outcome.is_success().then_some(Verdict::Success)
    }

    #[inline]
    fn proof(&self, outcome: &Outcome) -> Option<Processed> {
        if let OutcomeKind::Status(status) = outcome.kind
            && (self.unprocessed.contains(status)
                || outcome.hint.is_some() && self.unprocessed_with_hint.contains(status))
        {
            return Some(Processed::No);
        }
        outcome.processed
    }
}

/// One row of the built-in table.
struct Row {
    processed: Processed,
    blame: Blame,
    retry: bool,
    health: Health,
}

impl Row {
    /// What `retry_on` says replaces the row's word, where this kind can be listed.
    #[cold]
    fn go_by(&mut self, list: &RetryOn, outcome: &Outcome) {
        match outcome.kind {
            OutcomeKind::Certificate | OutcomeKind::Invalid | OutcomeKind::Crash => {}
            kind => self.retry = list.contains(kind),
        }
        // A status that the policy retries against the table is taken for the partner's trouble.
        if let (Blame::Ours, OutcomeKind::Status(500..)) = (self.blame, outcome.kind)
            && self.retry
        {
            self.blame = Blame::Partner;
            self.health = health(outcome, self.blame);
        }
    }
}

#[inline]
fn row(outcome: &Outcome, keyed: bool) -> Row {
    let row = |processed, blame, retry| Row {
        processed,
        blame,
        retry,
        health: health(outcome, blame),
    };
    match outcome.kind {
        OutcomeKind::Dns
        | OutcomeKind::Refused
        | OutcomeKind::ConnectTimeout
        | OutcomeKind::Tls
        | OutcomeKind::RefusedStream => row(Processed::No, Blame::Network, true),
        OutcomeKind::Certificate => row(Processed::No, Blame::Partner, false),
        OutcomeKind::Invalid => row(Processed::No, Blame::Ours, false),
        OutcomeKind::Status(408 | 425 | 429) => row(Processed::No, Blame::Partner, true),
        OutcomeKind::Status(502..=504) => row(Processed::Maybe, Blame::Partner, true),
        OutcomeKind::Reset | OutcomeKind::Eof | OutcomeKind::Timeout => {
            row(Processed::Maybe, Blame::Network, true)
        }
        OutcomeKind::Truncated => row(Processed::Yes, Blame::Network, true),
        OutcomeKind::Status(409) if keyed && in_flight(outcome) => {
            row(Processed::Maybe, Blame::Partner, true)
        }
        OutcomeKind::Crash => row(Processed::Maybe, Blame::Ours, true),
        OutcomeKind::Status(_) | OutcomeKind::Success => row(Processed::Yes, Blame::Ours, false),
    }
}

/// The partner is still at work on an earlier attempt with this key.
fn in_flight(outcome: &Outcome) -> bool {
    outcome.hint.is_some() || outcome.key_in_flight
}

#[inline]
fn health(outcome: &Outcome, blame: Blame) -> Health {
    match (outcome.kind, blame) {
        // "Slow down", "still busy with your own key" and "never looked at it" are no outage.
        (OutcomeKind::Status(409 | 429) | OutcomeKind::RefusedStream, _) => Health::Neutral,
        (_, Blame::Partner | Blame::Network) => Health::Bad,
        (OutcomeKind::Status(_), Blame::Ours) => Health::Good,
        (_, Blame::Ours) => Health::Neutral,
    }
}

#[inline]
fn concerns_partner(kind: OutcomeKind) -> bool {
    matches!(
        kind,
        OutcomeKind::Certificate | OutcomeKind::Status(401 | 403 | 404 | 405)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hint::{Hint, HintSource};
    use crate::status::StatusSet;
    use core::time::Duration;

    fn hint() -> Option<Hint> {
        Some(Hint {
            wait: Duration::from_secs(3),
            source: HintSource::RetryAfter,
        })
    }

    fn judge(outcome: Outcome) -> Judgement {
        Rules::default().judge(&outcome, false, Processed::No)
    }

    #[test]
    fn vr_1_to_vr_4_and_vr_7_the_table() {
        use Blame::{Network, Ours, Partner};
        use OutcomeKind::*;
        use Processed::{Maybe, No, Yes};
        let rows = [
            (Dns, No, Network, true),
            (Refused, No, Network, true),
            (ConnectTimeout, No, Network, true),
            (Tls, No, Network, true),
            (Certificate, No, Partner, false),
            (Invalid, No, Ours, false),
            (RefusedStream, No, Network, true),
            (Status(408), No, Partner, true),
            (Status(425), No, Partner, true),
            (Status(429), No, Partner, true),
            (Status(502), Maybe, Partner, true),
            (Status(503), Maybe, Partner, true),
            (Status(504), Maybe, Partner, true),
            (Reset, Maybe, Network, true),
            (Eof, Maybe, Network, true),
            (Timeout, Maybe, Network, true),
            (Truncated, Yes, Network, true),
            (Crash, Maybe, Ours, true),
        ];
        for (kind, processed, blame, retry) in rows {
            let judged = judge(Outcome::new(kind));
            let verdict = if retry {
                Verdict::Retry
            } else {
                Verdict::Permanent
            };
            assert_eq!(judged.verdict, verdict, "{kind}");
            assert_eq!(
                (judged.processed, judged.blame),
                (processed, Some(blame)),
                "{kind}"
            );
        }
        for status in [
            301, 302, 307, 400, 401, 403, 404, 405, 409, 410, 413, 422, 500, 501, 505,
        ] {
            let judged = judge(Outcome::status(status).with_hint(hint()));
            assert_eq!(
                judged.verdict,
                Verdict::Permanent,
                "a hint never makes {status} retryable"
            );
            assert_eq!(
                (judged.processed, judged.blame),
                (Yes, Some(Ours)),
                "{status}"
            );
        }
    }

    #[test]
    fn a_busy_key_is_retried_only_where_there_is_a_key() {
        let busy = Outcome::status(409).with_hint(hint());
        assert_eq!(
            Rules::default().judge(&busy, true, Processed::No).verdict,
            Verdict::Retry
        );
        assert_eq!(judge(busy).verdict, Verdict::Permanent);
        let other = Outcome::status(409);
        assert_eq!(
            Rules::default().judge(&other, true, Processed::No).verdict,
            Verdict::Permanent
        );
    }

    #[test]
    fn already_done_needs_an_earlier_maybe() {
        let rules = Rules {
            already_done: StatusSet::of(&[409]),
            ..Rules::default()
        };
        let outcome = Outcome::status(409);
        let verdict = |before| rules.judge(&outcome, false, before).verdict;
        assert_eq!(verdict(Processed::Maybe), Verdict::AlreadyDone);
        assert_eq!(verdict(Processed::No), Verdict::Permanent);
    }

    #[test]
    fn retry_on_replaces_the_yes_set_and_never_reaches_certificates() {
        let list = RetryOn::EMPTY.with_status(500);
        let rules = Rules {
            retry_on: Some(list),
            ..Rules::default()
        };
        let judge = |kind| rules.judge(&Outcome::new(kind), false, Processed::No);
        assert_eq!(judge(OutcomeKind::Status(500)).verdict, Verdict::Retry);
        assert_eq!(judge(OutcomeKind::Status(500)).blame, Some(Blame::Partner));
        assert_eq!(judge(OutcomeKind::Status(503)).verdict, Verdict::Permanent);
        assert_eq!(judge(OutcomeKind::Reset).verdict, Verdict::Permanent);
        assert_eq!(judge(OutcomeKind::Certificate).verdict, Verdict::Permanent);
        assert_eq!(judge(OutcomeKind::Crash).verdict, Verdict::Retry);
    }

    #[test]
    fn unprocessed_with_a_hint_only() {
        let rules = Rules {
            unprocessed_with_hint: StatusSet::of(&[503]),
            ..Rules::default()
        };
        let plain = Outcome::status(503);
        let judge = |outcome: &Outcome| rules.judge(outcome, false, Processed::No).processed;
        assert_eq!(judge(&plain), Processed::Maybe);
        assert_eq!(judge(&plain.with_hint(hint())), Processed::No);
    }

    #[test]
    fn br_7_and_br_11_what_is_ours_is_no_outage() {
        assert_eq!(judge(Outcome::status(404)).health, Health::Good);
        assert_eq!(judge(Outcome::status(302)).health, Health::Good);
        assert_eq!(judge(Outcome::status(429)).health, Health::Neutral);
        assert_eq!(judge(Outcome::status(503)).health, Health::Bad);
        assert_eq!(
            judge(Outcome::new(OutcomeKind::Crash)).health,
            Health::Neutral
        );
    }
}
