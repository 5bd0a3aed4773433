//! A command that this build was made without.

use std::ffi::OsString;

use crate::exit::Stop;

/// Whatever was said to it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Not read.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _rest: Vec<OsString>,
}

/// Says what is missing, and how to get it.
pub(crate) fn stop(command: &str) -> Stop {
    Stop::usage(format_args!(
        "this `ressac` was built without `{command}`; the whole program is built by \
         `cargo install --locked --path crates/ressac-cli` in a clone of the project"
    ))
}
