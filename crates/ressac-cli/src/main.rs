//! `ressac`, the one binary: parse, dispatch, exit code.

mod cli;
mod commands;
mod draft;
mod exit;
mod output;
// The page tells of the whole program.
#[cfg(all(test, feature = "gateway", feature = "sim"))]
mod reference;
mod signal;

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use clap::{ColorChoice, FromArgMatches};

use crate::cli::{Cli, Verb};
use crate::exit::{Exit, Stop};
use crate::output::Output;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let command = cli::command().color(help_color(&arguments));
    let parsed = command
        .try_get_matches_from(arguments)
        .and_then(|matches| Cli::from_arg_matches(&matches));
    match parsed {
        Ok(cli) => {
            let output = Output::new(cli.color);
            // A panic has said its words on stderr; its code is that of any fault of ours.
            let result = catch_unwind(AssertUnwindSafe(|| run(cli.verb, output)));
            let exit = match result {
                Ok(Ok(exit)) => exit,
                Ok(Err(stop)) => {
                    output.note(&stop.to_string());
                    stop.exit
                }
                Err(_) => Exit::FAULT,
            };
            exit.into()
        }
        Err(answer) => {
            // Help and version are answers, to stdout; the rest is bad usage, to stderr.
            let exit = if answer.use_stderr() {
                Exit::USAGE
            } else {
                Exit::DONE
            };
            // A reader that has gone away (`--help | head`) is no error.
            let _ = answer.print();
            exit.into()
        }
    }
}

fn run(verb: Verb, output: Output) -> Result<Exit, Stop> {
    match verb {
        Verb::Send(args) => commands::send::run(args, output),
        Verb::Serve(args) => commands::serve::run(args, output),
        Verb::Dead(args) => commands::dead::run(args, output),
        Verb::Check(args) => commands::check::run(args, output),
        Verb::Explain(args) => commands::explain::run(args, output),
        Verb::Mock(args) => commands::mock::run(args, output),
        Verb::Prove(args) => commands::prove::run(*args, output),
        Verb::Demo(args) => commands::demo::run(args, output),
        Verb::Sim(args) => commands::sim::run(args, output),
        Verb::Completions(args) => commands::completions::run(args, output),
    }
}

/// What `--color` says to help and usage errors, which come before there is a parsed command line.
fn help_color(arguments: &[OsString]) -> ColorChoice {
    let mut said = ColorChoice::Auto;
    for (index, argument) in arguments.iter().enumerate() {
        let word = match argument.to_str() {
            Some("--color") => arguments.get(index + 1).and_then(|next| next.to_str()),
            Some("--") => break,
            Some(text) => text.strip_prefix("--color="),
            None => None,
        };
        match word {
            Some("always") => said = ColorChoice::Always,
            Some("never") => said = ColorChoice::Never,
            _ => {}
        }
    }
    said
}
