//! What cannot be known of a policy because a value of it was refused: no contradiction is drawn
//! from it, and all others are told at once.

use std::collections::BTreeSet;

use ressac_policy::Problem;

use crate::settings::POLICY;

/// Settings (dotted) whose value cannot be known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Doubt(BTreeSet<&'static str>);

/// Settings that a problem of one of them hangs on too.
const TOGETHER: &[(&str, &[&str])] = &[
    ("cap", &["base"]),
    ("breaker.open_max", &["breaker.open"]),
    ("breaker.min_calls", &["breaker.window"]),
    (
        "budget",
        &["budget.ratio", "budget.reserve", "budget.trickle"],
    ),
];

/// The setting of this name; of a group's name all of its settings.
fn settings(name: &str) -> impl Iterator<Item = &'static str> {
    POLICY
        .iter()
        .map(|known| known.setting.name)
        .filter(move |known| {
            let rest = known.strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
}

impl Doubt {
    /// Every setting: what lies below is not known.
    pub(crate) fn of_all() -> Self {
        Doubt(POLICY.iter().map(|known| known.setting.name).collect())
    }

    /// What was said of this setting or group was refused.
    pub(crate) fn add(&mut self, name: &str) {
        self.0.extend(settings(name));
    }

    /// This setting is said, or this group switched off.
    pub(crate) fn lift(&mut self, name: &str) {
        for name in settings(name) {
            self.0.remove(name);
        }
    }

    /// Does the problem hang on something that is not known?
    pub(crate) fn touches(&self, problem: &Problem) -> bool {
        let together = TOGETHER.iter().find(|(field, _)| *field == problem.field);
        let others = together.map_or(&[][..], |(_, others)| others);
        self.0.contains(problem.field) || others.iter().any(|other| self.0.contains(other))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use ressac_policy::Policy;

    #[test]
    fn a_problem_hangs_on_what_it_is_compared_with() {
        let mut policy = Policy::sync();
        policy.backoff.cap = policy.backoff.base / 2;
        let problem = policy.problems().next().unwrap();
        assert_eq!(problem.field, "cap");
        let mut doubt = Doubt::default();
        assert!(!doubt.touches(&problem));
        doubt.add("base");
        assert!(doubt.touches(&problem));
        doubt.lift("base");
        assert!(!doubt.touches(&problem));
    }

    #[test]
    fn a_group_is_all_of_its_settings() {
        let mut doubt = Doubt::default();
        doubt.add("budget");
        doubt.lift("budget.ratio");
        assert!(doubt.0.contains("budget.reserve") && !doubt.0.contains("budget.ratio"));
        doubt.lift("budget");
        assert!(doubt.0.is_empty());
        assert!(Doubt::of_all().0.contains("base"));
    }
}
