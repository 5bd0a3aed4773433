//! Clients that the suite is tried on: `reference` and its variants are right, `plain` and
//! `modest` promise little, a mutant has one fault, and a non-client is none.
//!
//! `prove-client KIND [--mutant NAME]`, where KIND is `reference`, `library` (with the feature
//! `library`: the crate `ressac` over reqwest), `quoted`, `plain`, `modest`, or `none:WORD`.
#![allow(clippy::print_stdout)]

mod client;
mod done;
mod exec;
mod fault;
mod fault_decision;
mod key;
#[cfg(feature = "library")]
mod library;
mod lines;
mod none;
mod policy;
mod send;
mod sign;
mod told;
mod transport;
#[cfg(feature = "library")]
mod unverified;

use std::process::ExitCode;

use crate::fault::Fault;

/// What kind of client this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The engine, with everything.
    Reference,
    /// The crate `ressac` over reqwest, as a program uses it.
    #[cfg(feature = "library")]
    Library,
    /// The reference, with keys as structured strings.
    Quoted,
    /// One attempt.
    Plain,
    /// A GET on a 503, at a pace of its own.
    Modest,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let word = arguments.first().map_or("reference", String::as_str);
    let mutant = arguments
        .iter()
        .position(|a| a == "--mutant")
        .and_then(|i| arguments.get(i + 1));
    if let Some(what) = word.strip_prefix("none:") {
        return none::run(what);
    }
    let kind = match word {
        "reference" => Kind::Reference,
        #[cfg(feature = "library")]
        "library" => Kind::Library,
        "quoted" => Kind::Quoted,
        "plain" => Kind::Plain,
        "modest" => Kind::Modest,
        other => {
            eprintln!("prove-client: `{other}` is no client");
            return ExitCode::from(64);
        }
    };
    let fault = Fault::named(mutant.map(String::as_str));
    let Ok(runtime) = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
    else {
        return ExitCode::from(70);
    };
    let lines = std::env::var("PROVE_MODE").is_ok_and(|mode| mode == "lines");
    let code = runtime.block_on(async move {
        match lines {
            true => lines::run(kind, fault).await,
            false => exec::run(kind, fault).await,
        }
    });
    // Requests that nobody waits for any more must not keep the process.
    runtime.shutdown_background();
    ExitCode::from(code)
}
