//! A question before something that touches many messages.

use std::io::{self, BufRead, IsTerminal, Write};

use crate::exit::Stop;

/// Asks; anything but yes stops. Refuses where nobody can answer.
pub(super) fn consent(question: &str) -> Result<(), Stop> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(Stop::usage(format_args!(
            "\"{question}\" cannot be asked without a terminal; give --yes"
        )));
    }
    // To stderr: stdout is for the result.
    let mut stderr = io::stderr().lock();
    let asked = write!(stderr, "{question} [y/N] ").and_then(|()| stderr.flush());
    let mut answer = String::new();
    asked
        .and_then(|()| io::stdin().lock().read_line(&mut answer))
        .map_err(|error| Stop::fault(format_args!("cannot ask: {error}")))?;
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Stop::no("nothing was done")),
    }
}
