//! Profiles: what other rule books change.

use std::borrow::Cow;

use crate::case::{Case, Level};
use crate::claims::Claims;
use crate::rule::Rule;

/// The case under a profile: whose operations are all POST and safe, they are made so.
pub(crate) fn apply<'c>(case: &'c Case, profile: &str) -> Cow<'c, Case> {
    if !matches!(profile, "otlp" | "webhook-sender") {
        return Cow::Borrowed(case);
    }
    let mut changed = case.clone();
    let ops = changed
        .op
        .iter_mut()
        .chain(changed.part.iter_mut().flat_map(|p| &mut p.op));
    for op in ops {
        if op.method == "GET" {
            op.method = "POST".to_owned();
            op.safe = true;
            op.body = op.body.or(Some(64));
        }
    }
    Cow::Owned(changed)
}

/// How binding it is.
pub(crate) fn level(case: &Case, profile: &str, claims: &Claims) -> Level {
    let changed = case.profiles.get(profile).and_then(|p| p.level);
    let weaker = !case.check_unless.is_empty() && !case.check_unless.iter().all(|n| claims.has(n));
    match (changed, weaker) {
        (Some(level), _) => level,
        (None, true) => Level::Check,
        (None, false) => case.level,
    }
}

/// Not run under it, and why.
pub(crate) fn skipped(case: &Case, profile: &str) -> Option<String> {
    case.profiles
        .get(profile)?
        .skip
        .as_ref()
        .map(|why| format!("profile {profile}: {why}"))
}

/// The rule that takes the place of the operations' own.
pub(crate) fn rule<'c>(case: &'c Case, profile: &str) -> Option<&'c Rule> {
    case.profiles.get(profile)?.rule.as_ref().map(|r| &r.0)
}
