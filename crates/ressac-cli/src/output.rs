//! What a command writes: text or JSON to stdout, notes to stderr.

use std::io::{self, ErrorKind, IsTerminal, Write};

use ressac_config::ConfigError;
use serde::Serialize;

use crate::exit::{Exit, Stop};

/// When to use colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Color {
    /// On terminals, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Color {
    fn on(self, terminal: bool) -> bool {
        match self {
            Color::Always => true,
            Color::Never => false,
            // https://no-color.org: set and not empty.
            Color::Auto => {
                terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
            }
        }
    }
}

/// Where a command's results go. A reader that has gone away (`| head`) is no error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    color: Color,
}

impl Output {
    pub(crate) fn new(color: Color) -> Output {
        Output { color }
    }

    /// Is stdout to be coloured?
    pub(crate) fn color(self) -> bool {
        self.color.on(io::stdout().is_terminal())
    }

    /// Is stderr to be coloured?
    pub(crate) fn color_of_notes(self) -> bool {
        self.color.on(io::stderr().is_terminal())
    }

    /// Writes text to stdout, with a line end if it has none.
    pub(crate) fn text(self, text: &str) -> io::Result<()> {
        let end = if text.ends_with('\n') { "" } else { "\n" };
        self.bytes(&[text.as_bytes(), end.as_bytes()].concat())
    }

    /// Writes one JSON value and a line end to stdout.
    pub(crate) fn json(self, value: &impl Serialize) -> Result<(), Stop> {
        let mut text = serde_json::to_vec(value)
            .map_err(|error| Stop::fault(format_args!("cannot write JSON: {error}")))?;
        text.push(b'\n');
        Ok(self.bytes(&text)?)
    }

    /// Writes bytes to stdout, as they are.
    pub(crate) fn bytes(self, bytes: &[u8]) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        let written = stdout.write_all(bytes).and_then(|()| stdout.flush());
        match written {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            other => other,
        }
    }

    /// Writes a line to stderr. Nobody can be told where that fails.
    pub(crate) fn note(self, line: &str) {
        let _ = writeln!(io::stderr().lock(), "{line}");
    }

    /// A configuration that was refused, with the lines of the file.
    pub(crate) fn refused(self, error: &ConfigError) -> Stop {
        Stop::shown(Exit::USAGE, error.render(self.color_of_notes()))
    }
}

/// Text of a stranger, on one line and without what steers a terminal.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

/// `no partners`, `1 partner`, `2 partners`, `2 policies`.
pub(crate) fn count(number: usize, what: &str) -> String {
    match (number, what.strip_suffix('y')) {
        (0, Some(stem)) => format!("no {stem}ies"),
        (0, None) => format!("no {what}s"),
        (1, _) => format!("1 {what}"),
        (_, Some(stem)) => format!("{number} {stem}ies"),
        (_, None) => format!("{number} {what}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_colour_beats_the_terminal() {
        for terminal in [false, true] {
            assert!(Color::Always.on(terminal));
            assert!(!Color::Never.on(terminal));
        }
        assert!(!Color::Auto.on(false));
    }

    #[test]
    fn one_is_not_many() {
        let texts = [0, 1, 2].map(|number| count(number, "attempt"));
        assert_eq!(texts, ["no attempts", "1 attempt", "2 attempts"]);
        assert_eq!(count(2, "own policy"), "2 own policies");
    }
}
