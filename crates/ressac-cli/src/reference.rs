//! The reference page `docs/cli.md`, written from the command line's own definition. A test keeps
//! it current; `RESSAC_UPDATE=1 cargo test -p ressac-cli reference` writes it.

use std::fmt::Write as _;

use clap::{Arg, Command};

use crate::{cli, exit};

/// The whole page.
fn page() -> String {
    let command = cli::command();
    let mut page = "<!-- Written from the command line's definition: \
                    RESSAC_UPDATE=1 cargo test -p ressac-cli reference -->\n\n\
                    # The command line\n\n"
        .to_owned();
    about(&mut page, &command);
    let _ = writeln!(page, "| command | does |\n|---|---|");
    for sub in command.get_subcommands() {
        let name = sub.get_name();
        let _ = writeln!(page, "| [`{name}`](#ressac-{name}) | {} |", first(sub));
    }
    let _ = writeln!(page, "\nEvery command takes these:\n\n{OPTIONS}");
    for arg in command.get_arguments().filter(|arg| is_common(arg)) {
        option(&mut page, arg);
    }
    let _ = writeln!(page, "\n## Exit codes\n\nOf every command:\n");
    codes(&mut page, &exit::common_codes());
    let _ = writeln!(page, "\n`ressac send` tells the reason:\n");
    codes(&mut page, &exit::send_codes());
    let _ = writeln!(page, "\n`ressac prove` tells the verdict:\n");
    codes(&mut page, &exit::prove_codes());
    for sub in command.get_subcommands() {
        section(&mut page, sub, "##");
    }
    page
}

const OPTIONS: &str = "| option | means |\n|---|---|";

fn section(page: &mut String, command: &Command, level: &str) {
    let name = command.get_bin_name().unwrap_or(command.get_name());
    let _ = writeln!(page, "\n{level} {name}\n");
    about(page, command);
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let _ = writeln!(page, "```text\n{usage}\n```\n");
    let own: Vec<_> = command
        .get_arguments()
        .filter(|arg| !is_common(arg) && !arg.is_hide_set())
        // Of a nested command, what its parent has is told there.
        .filter(|arg| level == "##" || !arg.is_global_set())
        .collect();
    if !own.is_empty() {
        let _ = writeln!(page, "{OPTIONS}");
        for arg in own {
            option(page, arg);
        }
    }
    if let Some(examples) = command.get_after_help() {
        let text = examples.to_string();
        let (examples, remark) = text.split_once("\n\n").unwrap_or((&text, ""));
        let lines = examples.trim_start_matches("Examples:\n").lines();
        let lines: Vec<_> = lines
            .map(|line| line.strip_prefix("  ").unwrap_or(line))
            .collect();
        let _ = writeln!(page, "\n```sh\n{}\n```", lines.join("\n"));
        match remark.split_once(":\n  ") {
            Some((title, list)) => {
                let list = list.replace("\n  ", "\n");
                let _ = writeln!(page, "\n{title}:\n\n```text\n{list}\n```");
            }
            None if !remark.is_empty() => {
                let _ = writeln!(page, "\n{remark}");
            }
            None => {}
        }
    }
    for sub in command.get_subcommands() {
        section(page, sub, "###");
    }
}

fn about(page: &mut String, command: &Command) {
    let text = command.get_long_about().or_else(|| command.get_about());
    if let Some(text) = text {
        let text = text.to_string();
        let _ = writeln!(page, "{}.\n", text.trim_end_matches('.'));
    }
}

fn first(command: &Command) -> String {
    command
        .get_about()
        .map(ToString::to_string)
        .unwrap_or_default()
}

/// Shown once, at the top.
fn is_common(arg: &Arg) -> bool {
    matches!(arg.get_id().as_str(), "color" | "help" | "version")
}

fn option(page: &mut String, arg: &Arg) {
    let takes_value = arg.get_action().takes_values();
    let value = arg
        .get_value_names()
        .filter(|_| takes_value)
        .and_then(|names| names.first())
        .map(|name| format!("<{name}>"))
        .unwrap_or_default();
    let names: Vec<_> = [
        arg.get_short().map(|short| format!("-{short}")),
        arg.get_long().map(|long| format!("--{long}")),
    ]
    .into_iter()
    .flatten()
    .collect();
    let shown = match (names.is_empty(), value.as_str()) {
        (true, value) => value.to_owned(),
        (false, "") => names.join(", "),
        (false, value) => format!("{} {value}", names.join(", ")),
    };
    let help = arg.get_long_help().or_else(|| arg.get_help());
    let mut means = help
        .map(|help| help.to_string().replace('\n', " "))
        .unwrap_or_default();
    if !means.ends_with('.') {
        means.push('.');
    }
    let values: Vec<_> = arg
        .get_possible_values()
        .into_iter()
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    if takes_value && !values.is_empty() {
        let _ = write!(means, " One of {}.", values.join(", "));
    }
    let defaults: Vec<_> = arg
        .get_default_values()
        .iter()
        .filter_map(|v| v.to_str())
        .collect();
    if takes_value && !defaults.is_empty() {
        let _ = write!(means, " Default `{}`.", defaults.join(" "));
    }
    if let Some(name) = arg.get_env().and_then(|name| name.to_str()) {
        let _ = write!(means, " Also from `{name}`.");
    }
    let (shown, means) = (shown.replace('|', "\\|"), means.replace('|', "\\|"));
    let _ = writeln!(page, "| `{shown}` | {means} |");
}

fn codes(page: &mut String, list: &str) {
    let _ = writeln!(page, "| code | means |\n|---|---|");
    for line in list.lines().skip(1) {
        if let Some((code, means)) = line.trim().split_once(' ') {
            let _ = writeln!(page, "| {code} | {} |", means.trim());
        }
    }
}

#[test]
fn the_reference_page_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md");
    let page = page();
    if std::env::var_os("RESSAC_UPDATE").is_some() {
        let written = std::fs::write(path, &page);
        assert!(written.is_ok(), "{path}: {written:?}");
        return;
    }
    let current = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        current.replace("\r\n", "\n") == page,
        "docs/cli.md is old; RESSAC_UPDATE=1 cargo test -p ressac-cli reference writes it"
    );
}

#[test]
fn every_command_and_option_has_a_word() {
    fn look(command: &Command) {
        assert!(!first(command).is_empty(), "{}", command.get_name());
        for arg in command.get_arguments() {
            assert!(
                arg.get_help().is_some(),
                "{} {}",
                command.get_name(),
                arg.get_id()
            );
        }
        command.get_subcommands().for_each(look);
    }
    cli::command().debug_assert();
    look(&cli::command());
}
