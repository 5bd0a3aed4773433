//! `ressac dead`: dead letters of a running gateway, over its HTTP API.

mod api;
mod ask;
mod table;

use clap::Subcommand;
use http::Method;
use serde_json::Value;
use uuid::Uuid;

use self::api::{Api, Filter, Refusal};
use super::small_runtime;
use crate::exit::{Exit, Stop};
use crate::output::Output;

/// The arguments of `ressac dead`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ressac dead list --partner acme --reason ambiguous
  ressac dead show 01a22c1f-3a14-75ac-8c36-a4999a6b5428
  ressac dead replay 01a22c1f-3a14-75ac-8c36-a4999a6b5428
  ressac dead replay --all --partner acme --reason window_closed")]
pub(crate) struct Args {
    /// The gateway.
    #[arg(
        long,
        global = true,
        value_name = "URL",
        env = "RESSAC_URL",
        default_value = "http://127.0.0.1:7070"
    )]
    url: String,

    /// Write JSON: what the gateway answers.
    #[arg(long, global = true)]
    json: bool,

    #[command(subcommand)]
    verb: Verb,
}

/// What to do with dead letters.
#[derive(Debug, Subcommand)]
enum Verb {
    /// List them, the newest first.
    #[command(after_help = "Examples:
  ressac dead list
  ressac dead list --partner acme --reason exhausted --limit 1000 --json")]
    List {
        #[command(flatten)]
        filter: Filter,
        /// At most so many.
        #[arg(long, value_name = "N", default_value_t = 100,
              value_parser = clap::value_parser!(u32).range(1..=100_000))]
        limit: u32,
    },
    /// Show one with the history of its attempts.
    #[command(after_help = "Examples:
  ressac dead show 01a22c1f-3a14-75ac-8c36-a4999a6b5428")]
    Show {
        /// Its id.
        id: Uuid,
    },
    /// Send them again: a new series of attempts, with the old key.
    #[command(after_help = "Examples:
  ressac dead replay 01a22c1f-3a14-75ac-8c36-a4999a6b5428
  ressac dead replay --all --partner acme
  ressac dead replay --all --partner acme --reason window_closed --yes")]
    Replay(Chosen),
    /// End them for good: they are never sent again.
    #[command(after_help = "Examples:
  ressac dead discard 01a22c1f-3a14-75ac-8c36-a4999a6b5428
  ressac dead discard --all --partner acme --reason permanent")]
    Discard(Chosen),
}

/// The dead letters chosen: by id, or all of a partner.
#[derive(Debug, clap::Args)]
struct Chosen {
    /// Their ids.
    #[arg(required_unless_present = "all", value_name = "ID")]
    ids: Vec<Uuid>,

    /// All of --partner, with --reason only those.
    #[arg(long, conflicts_with = "ids", requires = "partner")]
    all: bool,

    #[command(flatten)]
    filter: Filter,

    /// Do not ask before --all.
    #[arg(short, long)]
    yes: bool,
}

/// Runs the call and prints what came of it.
pub(crate) fn run(args: Args, output: Output) -> Result<Exit, Stop> {
    let api = Api::new(&args.url)?;
    small_runtime()?.block_on(async {
        match args.verb {
            Verb::List { filter, limit } => list(&api, &filter, limit, args.json, output).await,
            Verb::Show { id } => show(&api, id, args.json, output).await,
            Verb::Replay(chosen) => act(&api, &REPLAY, chosen, args.json, output).await,
            Verb::Discard(chosen) => act(&api, &DISCARD, chosen, args.json, output).await,
        }
    })
}

async fn list(
    api: &Api,
    filter: &Filter,
    limit: u32,
    json: bool,
    output: Output,
) -> Result<Exit, Stop> {
    let (letters, more) = api.dead_letters(filter, limit as usize).await?;
    if json {
        output.json(&letters)?;
        return Ok(Exit::DONE);
    }
    if letters.is_empty() {
        output.text("no dead letters")?;
        return Ok(Exit::DONE);
    }
    output.text(&table::letters(&letters))?;
    if more {
        output.note(&format!("there are more than {limit}; see --limit"));
    }
    Ok(Exit::DONE)
}

async fn show(api: &Api, id: Uuid, json: bool, output: Output) -> Result<Exit, Stop> {
    let letter = api.call(Method::GET, &format!("/v1/messages/{id}")).await?;
    if json {
        output.json(&letter)?;
    } else {
        output.text(&table::letter(&letter))?;
    }
    Ok(Exit::DONE)
}

/// What can be done to a dead letter.
struct Action {
    path: &'static str,
    ask: &'static str,
    done: &'static str,
}

const REPLAY: Action = Action {
    path: "replay",
    ask: "Send again",
    done: "replayed",
};
const DISCARD: Action = Action {
    path: "discard",
    ask: "Discard for good",
    done: "discarded",
};

async fn act(
    api: &Api,
    action: &Action,
    chosen: Chosen,
    json: bool,
    output: Output,
) -> Result<Exit, Stop> {
    if !chosen.all && (chosen.filter.partner.is_some() || chosen.filter.reason.is_some()) {
        return Err(Stop::usage(
            "--partner and --reason choose with --all, not among ids",
        ));
    }
    let ids = match chosen.all {
        false => chosen.ids.iter().map(ToString::to_string).collect(),
        true => {
            let ids = all(api, &chosen.filter).await?;
            let partner = chosen.filter.partner.as_deref().unwrap_or_default();
            if !ids.is_empty() && !chosen.yes {
                let letters = count(ids.len());
                ask::consent(&format!("{} {letters} of {partner}?", action.ask))?;
            }
            ids
        }
    };
    let (mut done, mut refused) = (Vec::new(), 0_usize);
    for id in &ids {
        let path = format!("/v1/messages/{id}/{}", action.path);
        match api.call(Method::POST, &path).await {
            Ok(letter) => {
                if !json {
                    output.text(&format!("{id} {}", action.done))?;
                }
                done.push(letter);
            }
            // Of many, one may have changed its state since it was listed.
            Err(Refusal::Answer(why)) => {
                output.note(&format!("error: {id}: {why}"));
                refused += 1;
            }
            Err(Refusal::Failed(stop)) => return Err(stop),
        }
    }
    if json {
        output.json(&done)?;
    } else if chosen.all {
        output.text(&format!("{} {}", count(done.len()), action.done))?;
    }
    Ok(if refused == 0 { Exit::DONE } else { Exit::NO })
}

async fn all(api: &Api, filter: &Filter) -> Result<Vec<String>, Stop> {
    let (letters, _) = api.dead_letters(filter, usize::MAX).await?;
    let id = |letter: &Value| letter.get("id")?.as_str().map(str::to_owned);
    Ok(letters.iter().filter_map(id).collect())
}

fn count(number: usize) -> String {
    match number {
        1 => "1 dead letter".to_owned(),
        more => format!("{more} dead letters"),
    }
}
