//! Which cases are run.

use crate::case::{Case, Level, all, find};

/// The profiles, the default first.
pub const PROFILES: [&str; 8] = [
    "ressac",
    "rfc",
    "otlp",
    "webhook-sender",
    "gcs",
    "aws-standard",
    "graph",
    "proxy",
];

/// A selection that names what does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// A pattern that fits no case.
    #[error("`{0}` fits no case; `ressac prove list` shows them")]
    Nothing(String),
    /// A profile that does not exist.
    #[error("`{0}` is no profile; there are {list}", list = PROFILES.join(", "))]
    Profile(String),
}

/// Which cases are run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// Patterns on the full id, or numbers; empty: all.
    pub run: Vec<String>,
    /// Patterns of cases left out.
    pub skip: Vec<String>,
    /// Letters of groups; empty: all.
    pub groups: Vec<char>,
    /// Nothing below this level.
    pub level: Option<Level>,
}

impl Selection {
    /// The cases selected, in order.
    ///
    /// # Errors
    ///
    /// A pattern that fits nothing: a typing error must not look like a clean run.
    pub fn cases(&self) -> Result<Vec<&'static Case>, SelectionError> {
        for pattern in self.run.iter().chain(&self.skip) {
            if find(pattern).is_none() && !all().iter().any(|c| glob_matches(pattern, &c.id)) {
                return Err(SelectionError::Nothing(pattern.clone()));
            }
        }
        let fits = |pattern: &String, case: &Case| {
            case.number() == pattern || glob_matches(pattern, &case.id)
        };
        let chosen = |case: &&Case| {
            (self.run.is_empty() || self.run.iter().any(|p| fits(p, case)))
                && !self.skip.iter().any(|p| fits(p, case))
                && (self.groups.is_empty() || self.groups.contains(&case.group()))
                && self.level.is_none_or(|least| case.level <= least)
        };
        Ok(all().iter().filter(chosen).collect())
    }
}

/// Does the pattern fit? `*` is any run of characters, `?` any one.
///
/// ```
/// use ressac_prove::glob_matches;
///
/// assert!(glob_matches("*/9110-*", "C01/9110-10.2.3/seconds-503"));
/// assert!(glob_matches("A*", "A01/9110-15.6.4/get-503-once"));
/// assert!(!glob_matches("A*", "B01/9110-15.5.1/400"));
/// ```
#[must_use]
pub fn glob_matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    let mut back = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                back = Some((p, t));
                p += 1;
            }
            Some(c) if *c == b'?' || *c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match back {
                Some((star, from)) => {
                    back = Some((star, from + 1));
                    p = star + 1;
                    t = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_pattern_that_fits_nothing_is_an_error() {
        let one = |run: &str| Selection {
            run: vec![run.to_owned()],
            ..Selection::default()
        };
        assert_eq!(one("A01").cases().unwrap().len(), 1);
        assert_eq!(
            one("A0x").cases(),
            Err(SelectionError::Nothing("A0x".into()))
        );
        let groups = Selection {
            groups: vec!['A'],
            ..Selection::default()
        };
        assert!(groups.cases().unwrap().iter().all(|c| c.group() == 'A'));
    }

    #[test]
    fn stars_go_back() {
        assert!(glob_matches("*a*b", "xaayab"));
        assert!(!glob_matches("*a*b", "xaaya"));
        assert!(glob_matches("**", ""));
        assert!(!glob_matches("?", ""));
    }
}
