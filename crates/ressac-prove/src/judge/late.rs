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

/// Whether the client told nobody anything from the start of this operation to its late end, while
/// others were offered: it was held up as a whole.
pub(super) fn held_up(late: &OpView<'_>, all: &[OpView<'_>]) -> bool {
    let Some((from, to)) = late.start.zip(late.result.map(|r| r.t)) else {
        return false;
    };
    let meanwhile = |t: u64| t > from && t + TOGETHER < to;
    let offered = all.iter().filter_map(|v| v.start).any(meanwhile);
    let told = all.iter().filter_map(|v| Some(v.result?.t)).any(meanwhile);
    offered && !told
}
