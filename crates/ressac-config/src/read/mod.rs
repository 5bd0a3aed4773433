//! From TOML to values, collecting everything that is wrong on the way.

mod gateway;
mod header;
mod partner;
mod policy;
mod refer;
mod version;

use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::diagnostic::Diagnostic;
use crate::settings::Fault;
use crate::source::{Place, Source};
use crate::suggest::nearest;

pub(crate) use gateway::{GatewayRead, Said, read_gateway};
pub(crate) use partner::read_partner;
pub(crate) use policy::read_policy;
pub use refer::Environment;

/// Reads one file; what is wrong is collected in `found`.
pub(crate) struct Reader<'a> {
    pub(crate) source: &'a Arc<Source>,
    pub(crate) environment: &'a Environment,
    pub(crate) found: &'a mut Vec<Diagnostic>,
}

/// One key of a table and its value.
pub(crate) struct Entry<'a> {
    pub(crate) key: &'a str,
    /// Where the key stands.
    pub(crate) place: Place,
    pub(crate) value: &'a DeValue<'a>,
    /// Where the value stands.
    pub(crate) value_place: Place,
}

impl Reader<'_> {
    /// The entries of a table, in the order of the file.
    pub(crate) fn entries<'t>(&self, table: &'t DeTable<'t>) -> Vec<Entry<'t>> {
        let mut entries: Vec<_> = table
            .iter()
            .map(|(key, value): (&Spanned<_>, &Spanned<_>)| Entry {
                key: key.get_ref().as_ref(),
                place: Place::new(self.source, key.span()),
                value: value.get_ref(),
                value_place: Place::new(self.source, value.span()),
            })
            .collect();
        entries.sort_by_key(|entry| entry.place.span.start);
        entries
    }

    pub(crate) fn push(&mut self, diagnostic: Diagnostic) {
        self.found.push(diagnostic);
    }

    /// A value that cannot be used. `path` is the setting, as a person would name it.
    pub(crate) fn fault(&mut self, path: &str, place: &Place, fault: Fault) {
        for more in fault.more {
            self.fault(path, place, more);
        }
        let title = match fault.code {
            "wrong-type" => format!("`{path}` has the wrong type"),
            _ => format!("`{path}` has a value that cannot be used"),
        };
        let place = match fault.span {
            Some(span) => Place::new(self.source, span),
            None => place.clone(),
        };
        self.push(
            Diagnostic::error(fault.code, title)
                .at(&place, fault.label)
                .help(fault.fix),
        );
    }

    /// The value, or what is wrong with it on the list.
    pub(crate) fn take<T>(
        &mut self,
        path: &str,
        entry: &Entry<'_>,
        read: impl FnOnce(&DeValue<'_>) -> Result<T, Fault>,
    ) -> Option<T> {
        match read(entry.value) {
            Ok(value) => Some(value),
            Err(fault) => {
                self.fault(path, &entry.value_place, fault);
                None
            }
        }
    }

    /// A key that nothing here is called.
    pub(crate) fn unknown<'k>(
        &mut self,
        section: &str,
        entry: &Entry<'_>,
        known: impl IntoIterator<Item = &'k str>,
        hint: Option<String>,
    ) {
        let known: Vec<_> = known.into_iter().collect();
        let help = hint.unwrap_or_else(|| match nearest(entry.key, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known here: {}", known.join(", ")),
        });
        let title = format!("unknown key `{}` in {section}", entry.key);
        self.push(
            Diagnostic::error("unknown-key", title)
                .at(&entry.place, "no setting has this name")
                .help(help),
        );
    }
}

/// A text.
pub(crate) fn text<'a>(value: &'a DeValue<'_>, fix: &str) -> Result<&'a str, Fault> {
    value
        .as_str()
        .ok_or_else(|| Fault::kind(value, "a text", fix))
}

/// What names of policies and partners look like.
pub(crate) const NAME_RULE: &str =
    "1 to 64 of a-z, 0-9, `_` and `-`, beginning with a letter or digit";

/// Is it a name of a policy or a partner?
pub(crate) fn is_name(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    name.len() <= 64
        && name.bytes().next().is_some_and(plain)
        && name.bytes().all(|b| plain(b) || b == b'_' || b == b'-')
}
