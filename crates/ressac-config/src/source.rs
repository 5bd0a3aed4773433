//! A configuration file's text, and places in it.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::settings::{GATEWAY, GROUPS, PARTNER, POLICY, policy_setting};

/// One file: its path, its text, and the text as it may be shown.
pub(crate) struct Source {
    /// As the caller named it.
    pub(crate) path: String,
    /// What relative paths in the file start from.
    pub(crate) folder: PathBuf,
    pub(crate) text: String,
    /// The text with every byte of a possible secret replaced by `*`.
    shown: String,
}

impl Source {
    pub(crate) fn new(path: String, folder: PathBuf, text: String) -> Self {
        let shown = masked(&text);
        Source {
            path,
            folder,
            text,
            shown,
        }
    }

    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// A stretch of one file.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) source: Arc<Source>,
    pub(crate) span: Range<usize>,
}

impl Place {
    pub(crate) fn new(source: &Arc<Source>, span: Range<usize>) -> Self {
        // A renderer that is given half a character panics: whole ones only.
        let text = &source.text;
        let start = text.floor_char_boundary(span.start);
        let end = text.ceil_char_boundary(span.end.max(start));
        Place {
            source: Arc::clone(source),
            span: start..end,
        }
    }

    /// From 1.
    pub(crate) fn line(&self) -> usize {
        1 + self.source.text[..self.span.start].matches('\n').count()
    }
}

/// Two places are one if they lie at the same spot of the same file.
impl PartialEq for Place {
    fn eq(&self, other: &Self) -> bool {
        self.span == other.span && Arc::ptr_eq(&self.source, &other.source)
    }
}

/// `path:line`.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.source.path, self.line())
    }
}

/// Hides what an error's excerpt must not show: header values, passwords or keys in a URL, and
/// whatever stands under a name that is not known here, which may be either misspelt.
fn masked(text: &str) -> String {
    let (tree, errors) = DeTable::parse_recoverable(text);
    let mut spans = Vec::new();
    for (key, value) in tree.get_ref() {
        collect(&mut vec![key.get_ref()], value, text, &mut spans);
    }
    if !errors.is_empty() {
        // The tree cannot be trusted to hold every value: hide by the look of the lines.
        spans.extend(suspicious(text));
    }
    let mut bytes = text.as_bytes().to_vec();
    for span in spans {
        for byte in bytes.get_mut(span).into_iter().flatten() {
            if *byte != b'\n' && *byte != b'\r' {
                *byte = b'*';
            }
        }
    }
    // A span that cut a character left bytes that are no text: those are hidden too.
    let plain = |byte: u8| if byte.is_ascii() { byte as char } else { '*' };
    String::from_utf8(bytes).unwrap_or_else(|e| e.as_bytes().iter().copied().map(plain).collect())
}

/// The texts below a value that are not to be shown.
fn collect<'a>(
    path: &mut Vec<&'a str>,
    value: &'a Spanned<DeValue<'_>>,
    text: &str,
    spans: &mut Vec<Range<usize>>,
) {
    match value.get_ref() {
        DeValue::Table(table) => {
            for (key, value) in table {
                path.push(key.get_ref());
                collect(path, value, text, spans);
                path.pop();
            }
        }
        DeValue::Array(items) => {
            for item in items {
                collect(path, item, text, spans);
            }
        }
        DeValue::String(written) => match path.as_slice() {
            ["partner", _, "url"] | ["gateway", "store"] => credentials(value, text, spans),
            _ if is_shown(path) || is_reference(written) => {}
            _ => spans.push(inside(value.span(), text)),
        },
        _ => {}
    }
}

/// Is this the name of a setting whose value is no secret?
fn is_shown(path: &[&str]) -> bool {
    match path {
        ["policy", _, "mode" | "extends"] => true,
        ["policy", _, rest @ ..] => {
            GROUPS.iter().any(|(group, ..)| *rest == [*group])
                || policy_setting(&rest.join(".")).is_some()
        }
        ["partner", _, "policy" | "ca_file" | "idempotency", ..] => true,
        ["partner", _, "http_version"] => true,
        ["gateway", name] => GATEWAY.iter().any(|setting| setting.name == *name),
        _ => false,
    }
}

/// What stands before an `@`, and behind a `?` or `#`.
fn credentials(url: &Spanned<DeValue<'_>>, text: &str, spans: &mut Vec<Range<usize>>) {
    let span = inside(url.span(), text);
    let written = text.get(span.clone()).unwrap_or_default();
    if let Some(at) = written.rfind('@') {
        let start = written.find("//").map_or(0, |slashes| slashes + 2).min(at);
        spans.push(span.start + start..span.start + at);
    }
    if let Some(query) = written.find(['?', '#']) {
        spans.push(span.start + query + 1..span.end);
    }
}

/// Does a header's value name a place rather than hold the value?
pub(crate) fn is_reference(value: &str) -> bool {
    value.starts_with("env:") || value.starts_with("file:")
}

/// Without the quotes at either end.
fn inside(span: Range<usize>, text: &str) -> Range<usize> {
    let written = text.get(span.clone()).unwrap_or_default();
    let quoted = written.len() >= 2 && written.starts_with(['"', '\'']);
    if quoted {
        span.start + 1..span.end - 1
    } else {
        span
    }
}

/// In a broken file: every line that neither is a table's head nor begins with a known setting;
/// all from `headers` on to the end of its table; and what follows a `//` with `@`, `?` or `#`.
fn suspicious(text: &str) -> Vec<Range<usize>> {
    let (mut spans, mut start, mut in_headers) = (Vec::new(), 0, false);
    for line in text.split_inclusive('\n') {
        let end = start + line.len();
        let head = is_head(line);
        let headers_at = line.to_ascii_lowercase().find("headers");
        in_headers = headers_at.is_some() || in_headers && !head;
        let hidden = match headers_at {
            _ if head => None,
            Some(at) => Some(at + "headers".len()),
            None if in_headers || !begins_with_a_setting(line) => Some(0),
            None => line
                .find("//")
                .filter(|at| line[*at..].contains(['@', '?', '#'])),
        };
        spans.extend(hidden.map(|hidden| start + hidden..end));
        start = end;
    }
    spans
}

/// `[partner.acme]`, and nothing that could be the text of a list.
fn is_head(line: &str) -> bool {
    let line = line.trim();
    let plain = |c: char| c.is_ascii_alphanumeric() || "[]._- ".contains(c);
    line.starts_with('[') && line.ends_with(']') && line.chars().all(plain)
}

fn begins_with_a_setting(line: &str) -> bool {
    let Some((key, _)) = line.split_once('=') else {
        return line.trim().is_empty();
    };
    let key = key.trim();
    let partner = PARTNER
        .iter()
        .filter_map(|setting| setting.name.split('.').next());
    let mut known = POLICY
        .iter()
        .map(|known| known.setting.name)
        .chain(GATEWAY.iter().map(|setting| setting.name))
        .chain(GROUPS.iter().map(|(group, ..)| *group))
        .chain(partner)
        .chain(["mode", "extends"]);
    known.any(|name| name == key)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::masked;

    #[test]
    fn ht_8_what_may_be_a_secret_is_not_shown() {
        let text = "[partner.a]\nurl = \"https://u:hunter2@h/?k=hunter2\"\n\
                    headers = { X = \"hunter2\", Y = 'hunter2', Z = \"env:TOKEN\" }\n";
        let shown = masked(text);
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(
            shown.contains("env:TOKEN") && shown.contains("@h/?"),
            "{shown}"
        );
        assert_eq!(shown.len(), text.len());
    }

    #[test]
    fn ht_8_a_misspelt_name_gives_nothing_away() {
        for text in [
            "[partner.a]\nhedaers = { X = \"hunter2\" }\n",
            "[gateway]\ntoken = \"hunter2\"\n",
            "[partnr.a.headers]\nX = [[\"hunter2\"]]\n",
            "[policy.a]\nheaders.X = \"hunter2\"\n",
        ] {
            assert!(!masked(text).contains("hunter2"), "{}", masked(text));
        }
        let plain =
            "[policy.a]\nbase = \"1s\"\nlimit = { rate = \"5/s\" }\n[gateway]\nlisten = \"::1\"\n";
        assert_eq!(masked(plain), plain);
    }

    #[test]
    fn ht_8_not_even_in_a_file_that_does_not_parse() {
        for text in [
            "[partner.a]\nheaders = { X = \"hunter2\n",
            "[partner.a.headers]\nX = hunter2\n",
            "[partner.a.headers]\nX = 'hunter2\nY = \"\"\"\nhunter2 =\"hunter2\n",
            "[partner.a]\nurl = \"https://u:hunter2@h\n[x",
            "[partner.a]\nhedaers = { X = \"hunter2\" }\n[x",
            "[partner.a]\nhedaers = \"\"\"\nhunter2\n\"\"\"\n[x",
        ] {
            let shown = masked(text);
            assert!(
                !shown.replace("hunter2 =", "").contains("hunter2"),
                "{shown}"
            );
        }
    }
}
