//! The list of known failures: each must keep failing, or be taken off.

use std::collections::BTreeMap;

use crate::case::{Case, find};

/// Why a list was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}:{line}: {what}")]
pub struct KnownFailingError {
    path: String,
    line: usize,
    what: String,
}

/// Cases that are known to fail, with the reason of each.
///
/// ```
/// use ressac_prove::KnownFailing;
///
/// let list = KnownFailing::parse("known.txt", "C07/9110-10.2.3/malformed  # issue 12\n").unwrap();
/// assert_eq!(list.reason("C07/9110-10.2.3/malformed"), Some("issue 12"));
/// assert!(KnownFailing::parse("known.txt", "C07/9110-10.2.3/malformed\n").is_err());
/// assert!(KnownFailing::parse("known.txt", "Z99/no/case # x\n").is_err());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownFailing {
    reasons: BTreeMap<String, String>,
}

impl KnownFailing {
    /// Reads lines `CASE-ID  # reason`. Ids are exact and must exist; a reason is mandatory.
    ///
    /// # Errors
    ///
    /// The first line that is not so.
    pub fn parse(path: &str, text: &str) -> Result<Self, KnownFailingError> {
        let mut reasons = BTreeMap::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = |what: String| KnownFailingError {
                path: path.to_owned(),
                line: index + 1,
                what,
            };
            let (id, reason) = line.split_once('#').unwrap_or((line, ""));
            let (id, reason) = (id.trim(), reason.trim());
            let Some(case) = find(id) else {
                return Err(wrong(format!(
                    "`{id}` is no case; `ressac prove list` shows them"
                )));
            };
            if reason.is_empty() {
                return Err(wrong(format!("`{id}` has no reason; write `{id}  # why`")));
            }
            if reasons.insert(case.id.clone(), reason.to_owned()).is_some() {
                return Err(wrong(format!("`{id}` stands here twice")));
            }
        }
        Ok(Self { reasons })
    }

    /// The reason of a case that is listed.
    #[must_use]
    pub fn reason(&self, id: &str) -> Option<&str> {
        self.reasons.get(id).map(String::as_str)
    }

    /// Listed cases that are not among these.
    #[must_use]
    pub fn not_run(&self, run: &[&Case]) -> Vec<&str> {
        let ran = |id: &str| run.iter().any(|c| c.id == id);
        self.reasons
            .keys()
            .map(String::as_str)
            .filter(|id| !ran(id))
            .collect()
    }
}
