//! `ressac explain`: a policy in numbers, before the outage.

use std::time::Duration;

use ressac_config::{
    Config, Environment, ExplainOptions, Explanation, NamedPolicy, explain, parse_duration,
};
use ressac_policy::Mode;

use crate::exit::{Exit, Stop};
use crate::output::Output;

/// The arguments of `ressac explain`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ressac explain sync
  ressac explain ressac.toml --policy payments --outage 30m --rate 100
  ressac explain --json durable | jq '.[0].outage.amplification'")]
pub(crate) struct Args {
    /// Configuration files, read together; or `sync` or `durable`, the built-in policies.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,

    /// Only this policy.
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,

    /// The length of the total outage, above 0, e.g. 90s or 1h 30m.
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = outage)]
    outage: Duration,

    /// First attempts per second, of all callers of one partner together; above 0.
    #[arg(long, value_name = "NUMBER", default_value = "10", value_parser = rate)]
    rate: f64,

    /// Seeds the draws: the same seed, the same numbers.
    #[arg(long, default_value_t = ExplainOptions::default().seed)]
    seed: u64,

    /// Write a JSON array with one object per policy, all times in seconds.
    #[arg(long)]
    json: bool,
}

fn outage(text: &str) -> Result<Duration, String> {
    let time = parse_duration(text).map_err(|error| error.to_string())?;
    match time.is_zero() {
        true => Err("an outage of no time is none; write a time above 0, e.g. 5m".to_owned()),
        false => Ok(time),
    }
}

fn rate(text: &str) -> Result<f64, String> {
    text.strip_suffix("/s")
        .unwrap_or(text)
        .parse::<f64>()
        .ok()
        .filter(|rate| rate.is_finite() && *rate > 0.0)
        .ok_or_else(|| "write a number above 0, e.g. 100".to_owned())
}

/// Prints each policy asked for.
pub(crate) fn run(args: Args, output: Output) -> Result<Exit, Stop> {
    let options = ExplainOptions {
        outage: args.outage,
        rate: args.rate,
        seed: args.seed,
        ..ExplainOptions::default()
    };
    let policies = policies(&args, output)?;
    let explanations: Vec<Explanation> = policies
        .iter()
        .map(|named| explain(named, &options))
        .collect();
    if args.json {
        output.json(&explanations)?;
    } else {
        let texts: Vec<String> = explanations.iter().map(ToString::to_string).collect();
        output.text(&texts.join("\n"))?;
    }
    Ok(Exit::DONE)
}

/// The built-in ones named, and those of the files: their own, and what their partners use.
fn policies(args: &Args, output: Output) -> Result<Vec<NamedPolicy>, Stop> {
    let built_in = |name: &str| match name {
        "sync" => Some(Mode::Synchronous),
        "durable" => Some(Mode::Durable),
        _ => None,
    };
    let (named, files): (Vec<_>, Vec<_>) =
        args.files.iter().partition(|file| built_in(file).is_some());
    let mut found: Vec<NamedPolicy> = named
        .iter()
        .filter_map(|name| built_in(name))
        .map(NamedPolicy::built_in)
        .collect();
    if !files.is_empty() {
        // What a policy says does not hang on the secrets of a partner.
        let config = Config::load_with(&files, &Environment::ignored())
            .map_err(|error| output.refused(&error))?;
        found.extend(of_config(&config, args.policy.as_deref()));
    }
    if let Some(name) = &args.policy {
        found.retain(|policy| policy.name() == name);
    }
    if found.is_empty() {
        return Err(Stop::usage(match &args.policy {
            Some(name) => format!("there is no policy `{name}` in what was given"),
            None => "the file has no policy and no partner; try `ressac explain sync`".to_owned(),
        }));
    }
    Ok(found)
}

fn of_config(config: &Config, wanted: Option<&str>) -> Vec<NamedPolicy> {
    let built_in = |name: &str| matches!(name, "sync" | "durable");
    let used = |name: &str| {
        let mut partners = config.partners().iter();
        partners.any(|partner| partner.policy == name)
    };
    config
        .policies()
        .filter(|policy| {
            let name = policy.name();
            !built_in(name) || used(name) || wanted == Some(name)
        })
        .cloned()
        .collect()
}
