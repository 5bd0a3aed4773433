//! The command line: one definition for parsing, help, completions and the reference page.

use clap::{Command, CommandFactory, Parser, Subcommand};

use crate::commands;
use crate::exit;
use crate::output::Color;

/// Retries that cannot become a retry storm.
///
/// One policy decides every retry: `send` uses it for one request, `serve` for a durable outbox.
/// `mock` is a partner that fails on purpose, `prove` tries any client on it; `check` and `explain` judge a policy before the outage.
#[derive(Debug, Parser)]
#[command(name = "ressac", version, propagate_version = true)]
#[command(disable_help_subcommand = true, max_term_width = 100)]
#[command(after_help = "Examples:
  ressac demo
  ressac send -v https://api.acme.example/v1/orders -d @order.json --key order-17
  ressac check ressac.toml && ressac serve ressac.toml")]
pub(crate) struct Cli {
    /// When to use colour; `auto` heeds NO_COLOR.
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub(crate) color: Color,

    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Send one request, with retries.
    Send(commands::send::Args),
    /// Run the gateway: accept messages, deliver them through every outage.
    #[cfg_attr(
        not(feature = "gateway"),
        command(hide = true, disable_help_flag = true)
    )]
    Serve(commands::serve::Args),
    /// Look at dead letters, replay or discard them.
    Dead(commands::dead::Args),
    /// Check configuration files, and warn of bad habits.
    Check(commands::check::Args),
    /// Put policies into numbers: waits, worst cases, load in an outage.
    Explain(commands::explain::Args),
    /// Run a partner that fails on purpose.
    Mock(commands::mock::Args),
    /// Prove a client's retries, in any language.
    Prove(Box<commands::prove::Args>),
    /// Watch a gateway live through an outage.
    #[cfg_attr(
        not(feature = "gateway"),
        command(hide = true, disable_help_flag = true)
    )]
    Demo(commands::demo::Args),
    /// Simulate policies in an outage, before there is one.
    #[cfg_attr(not(feature = "sim"), command(hide = true, disable_help_flag = true))]
    Sim(commands::sim::Args),
    /// Write a completion script for a shell.
    Completions(commands::completions::Args),
}

/// The whole command line, with the exit codes in the long help of every command.
pub(crate) fn command() -> Command {
    let mut command = Cli::command();
    // `built` gives nested commands their full names, which the completions need.
    command.build();
    with_codes(command)
}

fn with_codes(command: Command) -> Command {
    let codes = match command.get_name() {
        "send" => exit::send_codes(),
        "prove" => exit::prove_codes(),
        _ => exit::common_codes(),
    };
    let long = match command.get_after_help() {
        Some(examples) => format!("{examples}\n\n{codes}"),
        None => codes,
    };
    command.after_long_help(long).mut_subcommands(with_codes)
}
