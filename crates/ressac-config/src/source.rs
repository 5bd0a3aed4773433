//! A configuration file's text, and places in it.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

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

/// Hides what an error's excerpt must not show: header values, and passwords or keys in a URL.
fn masked(text: &str) -> String {
    let (tree, errors) = DeTable::parse_recoverable(text);
    let mut spans = Vec::new();
    if let Some(DeValue::Table(partners)) = tree.get_ref().get("partner").map(|v| v.get_ref()) {
        for partner in partners.values().filter_map(|v| v.get_ref().as_table()) {
            collect(partner, text, &mut spans);
        }
    }
    if let Some(store) = tree
        .get_ref()
        .get("gateway")
        .and_then(|v| v.get_ref().get("store"))
    {
        credentials(store, text, &mut spans);
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
    // Spans that cut a character leave bytes that are no text.
    String::from_utf8(bytes).unwrap_or_else(|e| {
        e.as_bytes()
            .iter()
            .map(|b| if b.is_ascii() { *b as char } else { '*' })
            .collect()
    })
}

fn collect(partner: &DeTable<'_>, text: &str, spans: &mut Vec<Range<usize>>) {
    if let Some(headers) = partner.get("headers") {
        match headers.get_ref() {
            DeValue::Table(table) => {
                for value in table.values() {
                    let reference = value.get_ref().as_str().is_some_and(is_reference);
                    if !reference {
                        spans.push(inside(value.span(), text));
                    }
                }
            }
            _ => spans.push(inside(headers.span(), text)),
        }
    }
    if let Some(url) = partner.get("url") {
        credentials(url, text, spans);
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

/// In a broken file: all that follows the first quotation mark or equals sign of the lines from
/// `headers` to the end of its table, and of lines that hold `@` or `?` behind a `//`.
fn suspicious(text: &str) -> Vec<Range<usize>> {
    let (mut spans, mut start, mut in_headers) = (Vec::new(), 0, false);
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with('[') {
            in_headers = false;
        }
        let headers_at = line.to_ascii_lowercase().find("headers");
        in_headers |= headers_at.is_some();
        let from = headers_at.unwrap_or(0);
        if in_headers && let Some(quote) = line[from..].find(['"', '\'', '=']) {
            spans.push(start + from + quote + 1..start + line.len());
        } else if let Some(slashes) = line.find("//")
            && line[slashes..].contains(['@', '?', '#'])
        {
            spans.push(start + slashes + 2..start + line.len());
        }
        start += line.len();
    }
    spans
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
    fn ht_8_not_even_in_a_file_that_does_not_parse() {
        for text in [
            "[partner.a]\nheaders = { X = \"hunter2\n",
            "[partner.a.headers]\nX = hunter2\n",
            "[partner.a.headers]\nX = 'hunter2\nY = \"\"\"\nhunter2 =\"hunter2\n",
            "[partner.a]\nurl = \"https://u:hunter2@h\n[x",
        ] {
            let shown = masked(text);
            assert!(
                !shown.replace("hunter2 =", "").contains("hunter2"),
                "{shown}"
            );
        }
    }
}
