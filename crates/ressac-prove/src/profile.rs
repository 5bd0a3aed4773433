//! Profiles: what other rule books change.

use std::borrow::Cow;

use crate::case::{Case, Level};
use crate::claims::Claims;
use crate::rule::Rule;

/// The case under a profile: with another title, needs and parts where the case says so; and whose
/// operations are all POST and safe, they are made so.
pub(crate) fn apply<'c>(case: &'c Case, profile: &str) -> Cow<'c, Case> {
    let change = case.profiles.get(profile);
    let needs = change.and_then(|c| c.needs.as_ref());
    let parts = change.map(|c| &c.part).filter(|parts| !parts.is_empty());
    let title = change.and_then(|c| c.title.as_ref());
    let posts = matches!(profile, "otlp" | "webhook-sender");
    if needs.is_none() && parts.is_none() && title.is_none() && !posts {
        return Cow::Borrowed(case);
    }
    let mut changed = case.clone();
    if let Some(title) = title {
        changed.title.clone_from(title);
    }
    if let Some(needs) = needs {
        changed.needs.clone_from(needs);
    }
    if let Some(parts) = parts {
        changed.part.clone_from(parts);
        changed.op.clear();
    }
    if posts {
        all_safe_posts(&mut changed);
    }
    Cow::Owned(changed)
}

fn all_safe_posts(case: &mut Case) {
    let ops = case
        .op
        .iter_mut()
        .chain(case.part.iter_mut().flat_map(|p| &mut p.op));
    for op in ops {
        if op.method == "GET" {
            op.method = "POST".to_owned();
            op.safe = true;
            op.body = op.body.or(Some(64));
        }
    }
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::case::all;

    #[test]
    fn a_profile_gives_other_parts_needs_and_titles() {
        let case = |number: &str| all().iter().find(|c| c.number() == number).unwrap();
        let cancel = case("D09");
        assert!(matches!(apply(cancel, "ressac"), Cow::Borrowed(_)));
        let left = apply(cancel, "proxy");
        assert_eq!(left.needs, ["ra:503"]);
        assert_ne!(left.title, cancel.title);
        let parts = left.parts();
        assert_eq!(parts[0].interrupt.as_ref().unwrap().what, "cut");
        // The short form gives way to parts.
        let streamed = apply(case("E12"), "proxy");
        assert_eq!(streamed.parts().len(), 1);
        assert_eq!(streamed.parts()[0].op[0].body, Some(16 << 20));
    }

    #[test]
    fn what_is_no_matter_of_a_proxy_is_not_run() {
        let of_proxy = |case: &&Case| skipped(case, "proxy").is_some();
        let skipped: Vec<&str> = all().iter().filter(of_proxy).map(Case::number).collect();
        let wanted = "E08 E14 E15 H01 H02 H03 H04 H05 H13";
        assert_eq!(skipped.join(" "), wanted);
    }
}
