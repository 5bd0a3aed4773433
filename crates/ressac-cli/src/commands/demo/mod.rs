//! `ressac demo`: a gateway through an outage, live.

use crate::exit::{Exit, Stop};
use crate::output::Output;

/// The arguments of `ressac demo`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Not in this version.
pub(crate) fn run(_args: Args, _output: Output) -> Result<Exit, Stop> {
    Err(Stop::fault("`ressac demo` is not part of this version"))
}
