//! `ressac serve`: the gateway.

use crate::exit::{Exit, Stop};
use crate::output::Output;

/// The arguments of `ressac serve`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Not in this version.
pub(crate) fn run(_args: Args, _output: Output) -> Result<Exit, Stop> {
    Err(Stop::fault("`ressac serve` is not part of this version"))
}
