//! The table of cases.

use std::sync::OnceLock;

use super::Case;
use crate::diagnostic::BadFile;

static FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/cases.rs"));

/// All cases, in the order of their numbers.
///
/// ```
/// let cases = ressac_prove::cases();
/// assert!(cases.iter().any(|case| case.id == "A01/9110-15.6.4/get-503-once"));
/// ```
pub fn all() -> &'static [Case] {
    static CASES: OnceLock<Vec<Case>> = OnceLock::new();
    CASES.get_or_init(|| {
        let mut cases: Vec<Case> = FILES
            .iter()
            .map(|(name, text)| match read(name, text) {
                Ok(case) => case,
                // The files are compiled in, and a test reads them all.
                Err(error) => panic!("{error}"),
            })
            .collect();
        cases.sort_by(|a, b| a.id.cmp(&b.id));
        cases
    })
}

/// The case with this id, or this number.
#[must_use]
pub fn find(id: &str) -> Option<&'static Case> {
    all().iter().find(|c| c.id == id || c.number() == id)
}

fn read(name: &str, text: &str) -> Result<Case, BadFile> {
    toml::from_str(text).map_err(|error| BadFile::toml(name, text, &error))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_case_can_be_read_and_says_what_a_reader_needs() {
        let mut numbers = BTreeSet::new();
        for (name, text) in FILES {
            let case = read(name, text).unwrap_or_else(|e| panic!("{e}"));
            let shown = &case.id;
            assert_eq!(case.id.split('/').count(), 3, "{shown}");
            assert_eq!(*name, format!("{}.toml", case.number()), "{shown}");
            assert!(numbers.insert(case.number().to_owned()), "{shown}: twice");
            assert!(!case.title.is_empty() && !case.why.is_empty(), "{shown}");
            assert!(!case.source.is_empty(), "{shown}");
            assert!(!case.mutants.is_empty(), "{shown} names no mutant");
            let parts = case.parts();
            assert!(!parts.is_empty(), "{shown}");
            for part in &parts {
                assert!(!part.op.is_empty(), "{shown}: a part without operations");
                for op in &part.op {
                    let judged = op.rule.is_some() || op.group.is_some() || case.rule.is_some();
                    assert!(judged || op.client == "one" || part.op.len() > 1, "{shown}");
                }
            }
        }
    }
}
