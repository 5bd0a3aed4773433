//! `ressac completions`: a completion script for a shell.

use clap_complete::Shell;

use crate::cli;
use crate::exit::{Exit, Stop};
use crate::output::Output;

/// The arguments of `ressac completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ressac completions bash > ~/.local/share/bash-completion/completions/ressac
  ressac completions zsh > ~/.zfunc/_ressac
  ressac completions fish > ~/.config/fish/completions/ressac.fish")]
pub(crate) struct Args {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

/// Writes the script to stdout.
pub(crate) fn run(args: Args, output: Output) -> Result<Exit, Stop> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut cli::command(), "ressac", &mut script);
    output.bytes(&script)?;
    Ok(Exit::DONE)
}
