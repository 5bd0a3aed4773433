//! A policy with its name, and who said what in it.

use std::collections::BTreeMap;

use ressac_policy::{Mode, Policy, Problem};
use serde::Serialize;

use crate::diagnostic::Diagnostic;
use crate::doubt::Doubt;
use crate::layer::mode_word;
use crate::settings::POLICY;
use crate::source::Place;

/// A policy as the configuration makes it: the built-in one, with the settings of each
/// `[policy.NAME]` of its `extends` chain laid over it, field by field.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedPolicy {
    pub(crate) name: String,
    pub(crate) policy: Policy,
    pub(crate) said: BTreeMap<&'static str, Said>,
    /// The table's head; `None` for a built-in one.
    pub(crate) place: Option<Place>,
}

/// Who said it, and where.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Said {
    pub(crate) policy: String,
    pub(crate) place: Place,
}

/// One setting of a policy, its value, and whose value won.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Field {
    /// Dotted, as in `ressac.toml`.
    pub name: &'static str,
    /// As one would write it.
    pub value: String,
    /// Whose value it is.
    pub origin: Origin,
}

/// Whose value won.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The built-in policy of this name.
    BuiltIn {
        /// `sync` or `durable`.
        policy: &'static str,
    },
    /// The policy itself, or one that it extends.
    Policy {
        /// Its name.
        policy: String,
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
    },
}

impl NamedPolicy {
    /// The built-in policy of a mode, named `sync` or `durable`.
    #[must_use]
    pub fn built_in(mode: Mode) -> Self {
        let policy = match mode {
            Mode::Synchronous => Policy::sync(),
            Mode::Durable => Policy::durable(),
        };
        NamedPolicy {
            name: mode_word(mode).to_owned(),
            policy,
            said: BTreeMap::new(),
            place: None,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The policy itself.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The policy itself, without its origins.
    #[must_use]
    pub fn into_policy(self) -> Policy {
        self.policy
    }

    /// Every setting, its value and whose value won, in the order of the reference page.
    #[must_use]
    pub fn fields(&self) -> Vec<Field> {
        POLICY
            .iter()
            .map(|known| Field {
                name: known.setting.name,
                value: (known.show)(&self.policy),
                origin: self.origin(known.setting.name),
            })
            .collect()
    }

    /// Whose value stands in this setting (dotted). What no setting is called is built in.
    #[must_use]
    pub fn origin(&self, field: &str) -> Origin {
        match self.said_of(field) {
            Some(said) => Origin::Policy {
                policy: said.policy.clone(),
                file: said.place.source.path.clone(),
                line: said.place.line(),
            },
            None => Origin::BuiltIn {
                policy: mode_word(self.policy.mode),
            },
        }
    }

    /// Who set this very field, or switched off the group it is in.
    fn said_of(&self, field: &str) -> Option<&Said> {
        let off = |group: &str| match group {
            "budget" => self.policy.budget.is_none(),
            "breaker" => self.policy.breaker.is_none(),
            _ => false,
        };
        let group = field.split('.').next().filter(|group| off(group));
        self.said.get(group.unwrap_or(field))
    }

    /// Is the value that of a policy that this one extends?
    pub(crate) fn inherits(&self, field: &str) -> bool {
        self.said_of(field)
            .is_some_and(|said| said.policy != self.name)
    }

    /// Where the field is set; else where its group is; else the head of the policy.
    pub(crate) fn place_of(&self, field: &str) -> Option<&Place> {
        let group = field.split('.').next().unwrap_or(field);
        self.said_of(field)
            .or_else(|| self.said.get(group))
            .map(|said| &said.place)
            .or(self.place.as_ref())
    }

    /// The engine's objections, each at its line, but for those that hang on what is not known.
    pub(crate) fn objections(&self, doubt: &Doubt) -> Vec<Diagnostic> {
        self.policy
            .problems()
            .filter(|problem| !doubt.touches(problem))
            .map(|problem| self.objection(&problem))
            .collect()
    }

    fn objection(&self, problem: &Problem) -> Diagnostic {
        // Who said it, not who inherited it: else every heir would repeat the error.
        let culprit = self
            .said
            .get(problem.field)
            .map_or(&self.name, |said| &said.policy);
        let title = format!(
            "`{}` of policy `{}`: {}",
            problem.field, culprit, problem.what
        );
        let show = |field: &str| {
            let known = POLICY.iter().find(|known| known.setting.name == field);
            known.map_or_else(String::new, |known| (known.show)(&self.policy))
        };
        let mut diagnostic = Diagnostic::error("contradiction", title);
        // The value may be the built-in one, and the culprit the setting it is compared with.
        let other = COMPARED
            .iter()
            .find(|(field, _)| *field == problem.field)
            .map(|(_, other)| *other);
        match (
            self.said.get(problem.field),
            other.and_then(|other| self.said.get(other).zip(Some(other))),
        ) {
            (Some(said), Some((with, other))) => {
                diagnostic = diagnostic
                    .at(&said.place, problem.what)
                    .at(&with.place, format!("`{other}` is {}", show(other)));
            }
            (None, Some((with, other))) => {
                let label = format!(
                    "`{other}` is {} here, `{}` is {} by default",
                    show(other),
                    problem.field,
                    show(problem.field)
                );
                diagnostic = diagnostic.at(&with.place, label);
            }
            _ => {
                if let Some(place) = self.place_of(problem.field) {
                    diagnostic = diagnostic.at(place, problem.what);
                }
            }
        }
        diagnostic.help(problem.fix)
    }
}

/// Settings whose range hangs on another one.
const COMPARED: &[(&str, &str)] = &[
    ("cap", "base"),
    ("breaker.open_max", "breaker.open"),
    ("breaker.min_calls", "breaker.window"),
];
