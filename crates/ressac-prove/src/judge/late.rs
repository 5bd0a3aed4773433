//! Delays that a machine makes and no lag of the suite's own shows: they prove nothing.

use super::finding::{Finding, Outcome, ms};
use super::op::{OpView, since};
use crate::claims::Mode;

/// Where the client is a process of its own that took longer to its first byte than in the set-up,
/// what it did in time by its own clock cannot be told. Anybody else has broken the rule.
pub(super) fn began_late(view: &OpView<'_>, rule: &str) -> Finding {
    let process = view.claims.client.mode == Mode::Exec;
    let first = view.attempts.first().zip(view.start);
    let first = first.map_or(0.0, |(a, start)| since(a.t_first, start));
    let usual = view.setup.lambda_ms;
    let late = process && first > usual;
    Finding {
        outcome: if late {
            Outcome::Unknown
        } else {
            Outcome::Fail
        },
        rule: rule.to_owned(),
        expected: format!("a start as in the set-up, {}", ms(usual)),
        seen: format!("the first byte after {}", ms(first)),
        note: false,
    }
}

/// Results that are told within this time of each other were held up together, ns.
const TOGETHER: u64 = 1_000_000;

/// Whether all that was offered after this operation, until its late end, was told no sooner than
/// it: the client was held up as a whole.
pub(super) fn held_up(late: &OpView<'_>, all: &[OpView<'_>]) -> bool {
    let Some((from, to)) = late.start.zip(late.result.map(|r| r.t)) else {
        return false;
    };
    let mut after = all
        .iter()
        .filter(|v| v.start.is_some_and(|t| t > from && t < to))
        .peekable();
    let told_sooner = |v: &OpView<'_>| v.result.is_some_and(|r| r.t + TOGETHER < to);
    after.peek().is_some() && !after.any(told_sooner)
}
