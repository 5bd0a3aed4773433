//! How the process ends: its exit code, and the last words on stderr.

use std::fmt::{self, Write as _};
use std::io;
use std::process::ExitCode;

use ressac_policy::Reason;

/// An exit code, the same for every command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exit(u8);

impl Exit {
    /// Done, or clean.
    pub(crate) const DONE: Exit = Exit(0);
    /// The answer is no.
    pub(crate) const NO: Exit = Exit(1);
    /// It cannot be told (`prove`).
    pub(crate) const INCONCLUSIVE: Exit = Exit(2);
    /// The subject cannot be driven at all (`prove`).
    pub(crate) const SETUP: Exit = Exit(3);
    /// Bad arguments or configuration.
    pub(crate) const USAGE: Exit = Exit(64);
    /// Our own fault.
    pub(crate) const FAULT: Exit = Exit(70);

    /// The code that `send` ends with.
    pub(crate) const fn of(reason: Reason) -> Exit {
        match reason {
            Reason::Delivered => Exit::DONE,
            Reason::Permanent => Exit(10),
            Reason::Ambiguous => Exit(11),
            Reason::Exhausted => Exit(12),
            Reason::WindowClosed => Exit(13),
            Reason::CircuitOpen => Exit(14),
            Reason::BudgetSpent => Exit(15),
            Reason::BodyNotReplayable => Exit(16),
            Reason::HintOverMax => Exit(17),
            Reason::UpstreamGaveUp => Exit(18),
            Reason::Cancelled => Exit(19),
            // No operation of a command ends so: receipts and operators are the gateway's.
            Reason::Disputed | Reason::Discarded => Exit::FAULT,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.0)
    }
}

/// What every command's long help says about exit codes.
pub(crate) fn common_codes() -> String {
    list(&[
        (Exit::DONE, "done, or clean"),
        (
            Exit::NO,
            "the answer is no (warnings under --strict, a refusal)",
        ),
        (Exit::USAGE, "bad arguments or configuration"),
        (Exit::FAULT, "our own fault"),
    ])
}

/// What the long help of `prove` says about exit codes.
pub(crate) fn prove_codes() -> String {
    list(&[
        (Exit::DONE, "nothing failed, and nothing is inconclusive"),
        (Exit::NO, "at least one case failed"),
        (
            Exit::INCONCLUSIVE,
            "nothing failed, at least one case is inconclusive",
        ),
        (Exit::SETUP, "the client cannot be driven: set-up failed"),
        (Exit::USAGE, "bad arguments, claims or list"),
        (Exit::FAULT, "our own fault"),
    ])
}

/// What the long help of `send` says about exit codes.
pub(crate) fn send_codes() -> String {
    let why = |reason| match reason {
        Reason::Permanent => "permanent: another attempt cannot help",
        Reason::Ambiguous => "ambiguous: it may have been done, and repeating it is not safe",
        Reason::Exhausted => "exhausted: all retries are used up",
        Reason::WindowClosed => "window_closed: the next attempt would come too late",
        Reason::CircuitOpen => "circuit_open: the breaker is open",
        Reason::BudgetSpent => "budget_spent: the retry budget is spent",
        Reason::BodyNotReplayable => "body_not_replayable: the body cannot be sent again",
        Reason::HintOverMax => "hint_over_max: the partner asked for more time than allowed",
        Reason::UpstreamGaveUp => "upstream_gave_up: an inner layer had retried and given up",
        Reason::Cancelled => "cancelled: by SIGINT or SIGTERM",
        Reason::Delivered | Reason::Disputed | Reason::Discarded => "",
    };
    let mut codes = vec![(Exit::DONE, "delivered")];
    let reasons = Reason::ALL.into_iter().map(|r| (Exit::of(r), why(r)));
    codes.extend(reasons.filter(|(_, why)| !why.is_empty()));
    codes.push((
        Exit::USAGE,
        "bad arguments or configuration; nothing was sent",
    ));
    codes.push((Exit::FAULT, "our own fault; the message says what was sent"));
    list(&codes)
}

fn list(codes: &[(Exit, &str)]) -> String {
    let mut text = "Exit codes:\n".to_owned();
    for (exit, meaning) in codes {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {:<3} {meaning}", exit.0);
    }
    text
}

/// A command that ends before its work is done: the code, and what a person is told.
#[derive(Debug)]
pub(crate) struct Stop {
    pub(crate) exit: Exit,
    text: String,
}

impl Stop {
    /// Bad arguments or configuration. Say what is wrong and what to write instead.
    pub(crate) fn usage(message: impl fmt::Display) -> Stop {
        Stop::with(Exit::USAGE, message)
    }

    /// The answer is no.
    pub(crate) fn no(message: impl fmt::Display) -> Stop {
        Stop::with(Exit::NO, message)
    }

    /// Another code.
    pub(crate) fn coded(exit: Exit, message: impl fmt::Display) -> Stop {
        Stop::with(exit, message)
    }

    /// Our own fault.
    pub(crate) fn fault(message: impl fmt::Display) -> Stop {
        Stop::with(Exit::FAULT, message)
    }

    /// A text that is complete as it stands.
    pub(crate) fn shown(exit: Exit, text: String) -> Stop {
        Stop { exit, text }
    }

    fn with(exit: Exit, message: impl fmt::Display) -> Stop {
        Stop {
            exit,
            text: format!("error: {message}"),
        }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        Stop::fault(format_args!("cannot write the output: {error}"))
    }
}
