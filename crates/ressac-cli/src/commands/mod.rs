//! One file or folder for each command: its arguments, and what it does.

mod absent;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod dead;
#[cfg(feature = "gateway")]
pub(crate) mod demo;
pub(crate) mod explain;
pub(crate) mod mock;
pub(crate) mod prove;
pub(crate) mod send;
#[cfg(feature = "gateway")]
pub(crate) mod serve;
#[cfg(feature = "sim")]
pub(crate) mod sim;

absent::without!("gateway", serve);
absent::without!("gateway", demo);
absent::without!("sim", sim);

use tokio::runtime::{Builder, Runtime};

use crate::exit::Stop;

/// A runtime on this thread alone, for a command that waits for one thing at a time.
fn small_runtime() -> Result<Runtime, Stop> {
    built(Builder::new_current_thread())
}

/// A runtime with a thread for each core.
fn runtime() -> Result<Runtime, Stop> {
    built(Builder::new_multi_thread())
}

fn built(mut builder: Builder) -> Result<Runtime, Stop> {
    builder
        .enable_all()
        .build()
        .map_err(|error| Stop::fault(format_args!("cannot start the runtime: {error}")))
}
