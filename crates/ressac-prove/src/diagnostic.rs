//! A file that was refused: the line, a mark under it, and what to write instead.

use std::fmt;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

/// What a file says that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadFile {
    path: String,
    text: String,
    span: Range<usize>,
    what: String,
    fix: String,
}

impl BadFile {
    pub(crate) fn new(
        path: &str,
        text: &str,
        span: Option<Range<usize>>,
        what: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        let end = text.len();
        let span = span.unwrap_or(0..0);
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
            span: span.start.min(end)..span.end.min(end),
            what: what.into(),
            fix: fix.into(),
        }
    }

    pub(crate) fn toml(path: &str, text: &str, error: &toml::de::Error) -> Self {
        Self::new(path, text, error.span(), error.message(), "")
    }

    /// The line, from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        let before = self.text.get(..self.span.start).unwrap_or_default();
        before.matches('\n').count() + 1
    }

    /// What is wrong, without the place.
    #[must_use]
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Several lines, with the excerpt of the file.
    #[must_use]
    pub fn render(&self, color: bool) -> String {
        let snippet = Snippet::source(self.text.as_str())
            .path(self.path.as_str())
            .annotation(AnnotationKind::Primary.span(self.span.clone()));
        let mut group = Level::ERROR
            .primary_title(self.what.as_str())
            .element(snippet);
        if !self.fix.is_empty() {
            group = group.element(Level::HELP.message(self.fix.as_str()));
        }
        let renderer = if color {
            Renderer::styled()
        } else {
            Renderer::plain()
        };
        renderer.render(&[group])
    }
}

impl fmt::Display for BadFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for BadFile {}
