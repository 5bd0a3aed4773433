//! An error of a scenario file: where, what, and the fix.

use std::fmt;
use std::path::{Path, PathBuf};

/// What is wrong with a scenario, where, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioError {
    file: Option<PathBuf>,
    line: usize,
    column: usize,
    message: String,
    fix: String,
}

impl ScenarioError {
    /// An error at a byte offset of the text.
    pub(super) fn at(
        text: &str,
        offset: usize,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |i| i + 1);
        let column = before[start..].chars().count() + 1;
        Self {
            file: None,
            line,
            column,
            message: message.into(),
            fix: fix.into(),
        }
    }

    /// A file that could not be read at all.
    pub(super) fn unreadable(path: &Path, message: String) -> Self {
        Self {
            file: Some(path.to_owned()),
            line: 0,
            column: 0,
            message,
            fix: "check the path and its permissions".to_owned(),
        }
    }

    pub(super) fn in_file(mut self, path: &Path) -> Self {
        self.file = Some(path.to_owned());
        self
    }

    /// The file, where there is one.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The line, from 1; 0 if the file could not be read.
    pub fn line(&self) -> usize {
        self.line
    }

    /// The column in characters, from 1; 0 if the file could not be read.
    pub fn column(&self) -> usize {
        self.column
    }

    /// What is wrong.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What to do about it.
    pub fn fix(&self) -> &str {
        &self.fix
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => write!(f, "{}", file.display())?,
            None => f.write_str("scenario")?,
        }
        if self.line > 0 {
            write!(f, ":{}:{}", self.line, self.column)?;
        }
        write!(f, ": {}; {}", self.message, self.fix)
    }
}

impl std::error::Error for ScenarioError {}
