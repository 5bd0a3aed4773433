//! Reading values out of a TOML table, with the place of each for the error.

use std::ops::Range;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::ScenarioError;
use crate::notation::{self, NotationError};
use crate::step::Reply;

pub(super) type Res<T> = Result<T, ScenarioError>;
pub(super) type Value<'t> = Spanned<DeValue<'t>>;

/// The text of a scenario, to make errors with.
#[derive(Clone, Copy)]
pub(super) struct Doc<'d> {
    pub(super) text: &'d str,
    /// Where relative paths of `file=` begin; `None`: no file is read.
    pub(super) folder: Option<&'d std::path::Path>,
}

impl Doc<'_> {
    pub(super) fn err<T>(
        &self,
        span: Range<usize>,
        what: impl Into<String>,
        fix: impl Into<String>,
    ) -> Res<T> {
        Err(ScenarioError::at(self.text, span.start, what, fix))
    }

    /// Turns a complaint about a value into an error at that value.
    pub(super) fn bad<T>(&self, v: &Value<'_>, r: Result<T, (String, String)>) -> Res<T> {
        r.or_else(|(what, fix)| self.err(v.span(), what, fix))
    }

    /// Turns an error inside a string value into one at the very character.
    pub(super) fn notation<T>(&self, v: &Value<'_>, r: Result<T, NotationError>) -> Res<T> {
        r.or_else(|e| {
            let span = v.span();
            let raw = self.text.get(span.clone()).unwrap_or("");
            let inner = v.get_ref().as_str().unwrap_or("");
            // Escapes move what follows, so only a string that stands there as it is can be
            // pointed into.
            let at = match raw.find(inner) {
                Some(lead) if !inner.is_empty() => span.start + lead + e.offset(),
                _ => span.start,
            };
            self.err(at..at, e.message(), e.fix())
        })
    }

    pub(super) fn str<'v>(&self, v: &'v Value<'_>, key: &str) -> Res<&'v str> {
        match v.get_ref() {
            DeValue::String(s) => Ok(s),
            other => self.wrong(v, key, "a string", other),
        }
    }

    pub(super) fn u64(&self, v: &Value<'_>, key: &str) -> Res<u64> {
        match v.get_ref() {
            DeValue::Integer(i) => match u64::from_str_radix(i.as_str(), i.radix()) {
                Ok(n) => Ok(n),
                Err(_) => self.err(
                    v.span(),
                    format!("`{key}` must lie between 0 and 2^64 - 1"),
                    "write a whole number without a sign",
                ),
            },
            other => self.wrong(v, key, "a whole number", other),
        }
    }

    pub(super) fn bool(&self, v: &Value<'_>, key: &str) -> Res<bool> {
        match v.get_ref() {
            DeValue::Boolean(b) => Ok(*b),
            other => self.wrong(v, key, "true or false", other),
        }
    }

    pub(super) fn duration(&self, v: &Value<'_>, key: &str) -> Res<Duration> {
        self.bad(v, notation::duration(self.str(v, key)?))
    }

    pub(super) fn table<'v, 't>(&self, v: &'v Value<'t>, key: &str) -> Res<&'v DeTable<'t>> {
        match v.get_ref() {
            DeValue::Table(t) => Ok(t),
            other => self.wrong(v, key, "a table", other),
        }
    }

    pub(super) fn array<'v, 't>(&self, v: &'v Value<'t>, key: &str) -> Res<&'v [Value<'t>]> {
        match v.get_ref() {
            DeValue::Array(a) => Ok(a),
            other => self.wrong(v, key, "an array", other),
        }
    }

    /// An array of strings, or one string alone.
    pub(super) fn strings(&self, v: &Value<'_>, key: &str) -> Res<Vec<String>> {
        if let DeValue::String(s) = v.get_ref() {
            return Ok(vec![s.to_string()]);
        }
        self.array(v, key)?
            .iter()
            .map(|v| Ok(self.str(v, key)?.to_owned()))
            .collect()
    }

    /// Refuses keys that are not known.
    pub(super) fn only(&self, t: &DeTable<'_>, what: &str, known: &[&str]) -> Res<()> {
        for key in t.keys() {
            let name: &str = key.get_ref();
            if known.contains(&name) {
                continue;
            }
            let fix = match notation::suggest(name, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known here: {}", known.join(", ")),
            };
            return self.err(key.span(), format!("unknown key `{name}` in {what}"), fix);
        }
        Ok(())
    }

    /// Reads what `file=` names.
    pub(super) fn files<'r>(
        &self,
        v: &Value<'_>,
        replies: impl Iterator<Item = &'r mut Reply>,
    ) -> Res<()> {
        for reply in replies {
            self.bad(v, super::files::read(reply, self.folder))?;
        }
        Ok(())
    }

    fn wrong<T>(&self, v: &Value<'_>, key: &str, want: &str, got: &DeValue<'_>) -> Res<T> {
        self.err(
            v.span(),
            format!("`{key}` is {} {}", article(got.type_str()), got.type_str()),
            format!("write {want}"),
        )
    }
}

fn article(noun: &str) -> &'static str {
    if noun.starts_with(['a', 'e', 'i', 'o', 'u']) {
        "an"
    } else {
        "a"
    }
}
