//! A command that this build was made without: it takes any arguments, and says how to get it.

/// Stands in for the module of a command where a feature is off.
macro_rules! without {
    ($feature:literal, $command:ident) => {
        #[cfg(not(feature = $feature))]
        pub(crate) mod $command {
            use crate::exit::{Exit, Stop};
            use crate::output::Output;

            /// Whatever was said to it.
            #[derive(Debug, clap::Args)]
            pub(crate) struct Args {
                /// Not read.
                #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
                _rest: Vec<std::ffi::OsString>,
            }

            /// Says what is missing.
            pub(crate) fn run(_: Args, _: Output) -> Result<Exit, Stop> {
                Err(Stop::usage(concat!(
                    "this `ressac` was built without `",
                    stringify!($command),
                    "`; the whole program is built by `cargo install --locked --path \
                     crates/ressac-cli` in a clone of the project"
                )))
            }
        }
    };
}
pub(super) use without;
