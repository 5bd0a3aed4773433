//! What is wrong or unwise, where, and what to do: rendered with the line and a caret under it.

use std::fmt;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::source::Place;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The configuration is refused.
    Error,
    /// A bad habit; refused under `ressac check --strict` only.
    Warning,
}

/// One error or warning about a configuration file.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic {
    severity: Severity,
    code: &'static str,
    title: String,
    marks: Vec<Mark>,
    help: Vec<String>,
}

/// A place, and what to say at it. The first one is the culprit, others are context.
#[derive(Clone, Debug, PartialEq)]
struct Mark {
    place: Place,
    label: String,
}

impl Diagnostic {
    pub(crate) fn error(code: &'static str, title: impl Into<String>) -> Self {
        Diagnostic {
            severity: Severity::Error,
            code,
            title: title.into(),
            marks: Vec::new(),
            help: Vec::new(),
        }
    }

    pub(crate) fn warning(code: &'static str, title: impl Into<String>) -> Self {
        Diagnostic {
            severity: Severity::Warning,
            ..Diagnostic::error(code, title)
        }
    }

    pub(crate) fn at(mut self, place: &Place, label: impl Into<String>) -> Self {
        self.marks.push(Mark {
            place: place.clone(),
            label: label.into(),
        });
        self
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help.push(help.into());
        self
    }

    /// Do both point at the same spot first?
    pub(crate) fn same_place(&self, other: &Self) -> bool {
        self.marks.first().map(|mark| &mark.place) == other.marks.first().map(|mark| &mark.place)
    }

    /// Error or warning.
    #[must_use]
    pub fn severity(&self) -> Severity {
        self.severity
    }

    /// A stable word for the kind of it: `unknown-key`, `no-jitter`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// The one-line statement, without the place.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// What is wrong at the place, in a few words; empty where there is no place.
    #[must_use]
    pub fn label(&self) -> &str {
        self.marks.first().map_or("", |mark| &mark.label)
    }

    /// What to do about it.
    pub fn fixes(&self) -> impl Iterator<Item = &str> {
        self.help.iter().map(String::as_str)
    }

    /// The file and line (from 1), where there is one.
    #[must_use]
    pub fn location(&self) -> Option<(&str, usize)> {
        let place = &self.marks.first()?.place;
        Some((&place.source.path, place.line()))
    }

    /// The whole, several lines, with the excerpt of the file; without a line end. Header values
    /// are masked in the excerpt.
    #[must_use]
    pub fn render(&self, color: bool) -> String {
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let title = printable(&self.title);
        let labels: Vec<String> = self
            .marks
            .iter()
            .map(|mark| printable(&mark.label))
            .collect();
        let mut group = Group::with_title(level.primary_title(title).id(self.code));
        let mut taken = vec![false; self.marks.len()];
        for (index, mark) in self.marks.iter().enumerate() {
            if taken[index] {
                continue;
            }
            let mut snippet =
                Snippet::source(mark.place.source.shown()).path(&mark.place.source.path);
            for (other, candidate) in self.marks.iter().enumerate().skip(index) {
                if candidate.place.source.path != mark.place.source.path {
                    continue;
                }
                taken[other] = true;
                let kind = if other == 0 {
                    AnnotationKind::Primary
                } else {
                    AnnotationKind::Context
                };
                snippet = snippet.annotation(
                    kind.span(candidate.place.span.clone())
                        .label(&labels[other]),
                );
            }
            group = group.element(snippet);
        }
        for help in &self.help {
            group = group.element(Level::HELP.message(printable(help)));
        }
        let renderer = if color {
            Renderer::styled()
        } else {
            Renderer::plain()
        };
        renderer.render(&[group])
    }
}

/// As [`Diagnostic::render`], without colour.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

/// What a file says is repeated in messages: without control characters, and not at any length.
fn printable(text: &str) -> String {
    const LONGEST: usize = 300;
    let mut out: String = text
        .chars()
        .take(LONGEST)
        .map(|c| {
            if c.is_control() && c != '\n' {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect();
    if text.chars().nth(LONGEST).is_some() {
        out.push('…');
    }
    out
}

/// All that is wrong with a configuration, at once.
///
/// `Display` renders it without colour, one error after another with an empty line between.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigError {
    diagnostics: Vec<Diagnostic>,
}

impl ConfigError {
    /// Sorts by place and drops what is said twice. There must be at least one.
    pub(crate) fn new(mut diagnostics: Vec<Diagnostic>) -> Self {
        sort(&mut diagnostics);
        ConfigError { diagnostics }
    }

    /// The errors, in the order of the files and lines; at least one.
    #[must_use]
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// All of them with their lines, and their number at the end.
    #[must_use]
    pub fn render(&self, color: bool) -> String {
        render_all(&self.diagnostics, color)
    }
}

/// Renders diagnostics one after another, an empty line between them.
#[must_use]
pub fn render_all(diagnostics: &[Diagnostic], color: bool) -> String {
    let parts: Vec<String> = diagnostics.iter().map(|d| d.render(color)).collect();
    parts.join("\n\n")
}

/// By file and place; equal neighbours once.
pub(crate) fn sort(diagnostics: &mut Vec<Diagnostic>) {
    let key = |d: &Diagnostic| {
        d.marks
            .first()
            .map(|mark| (mark.place.source.path.clone(), mark.place.span.start))
    };
    diagnostics.sort_by_key(key);
    let mut seen: Vec<Diagnostic> = Vec::with_capacity(diagnostics.len());
    for diagnostic in diagnostics.drain(..) {
        // What is equal has the same place, and so lies among the last of that place.
        let twice = seen
            .iter()
            .rev()
            .take_while(|other| key(other) == key(&diagnostic))
            .any(|other| *other == diagnostic);
        if !twice {
            seen.push(diagnostic);
        }
    }
    *diagnostics = seen;
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for ConfigError {}
