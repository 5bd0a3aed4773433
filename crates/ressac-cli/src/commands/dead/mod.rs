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
use crate::output::{Output, count};

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
    /// List them, the newest first; those that were discarded with --reason discarded only.
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
        #[arg(value_parser = message_id)]
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
    #[arg(required_unless_present = "all", value_name = "ID", value_parser = message_id)]
    ids: Vec<Uuid>,

    /// All of --partner that were not discarded, with --reason only those.
    #[arg(long, conflicts_with = "ids", requires = "partner")]
    all: bool,

    #[command(flatten)]
    filter: Filter,

    /// Do not ask before --all.
    #[arg(short, long)]
    yes: bool,
}

fn message_id(text: &str) -> Result<Uuid, String> {
    let shown = "no message's id; `ressac dead list` shows them, e.g. \
                 01a22c1f-3a14-75ac-8c36-a4999a6b5428";
    Uuid::try_parse(text).map_err(|_| shown.to_owned())
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
    let found = api.dead_letters(filter, limit as usize).await?;
    match (json, found.letters.is_empty()) {
        (true, _) => output.json(&found.letters)?,
        (false, true) => output.text("no dead letters")?,
        (false, false) => output.text(&table::letters(&found.letters))?,
    }
    if found.more {
        output.note(&format!("there are more than {limit}; see --limit"));
    }
    if found.hidden > 0 {
        // What lies behind the limit was not looked at.
        let least = if found.more { "at least " } else { "" };
        output.note(&format!(
            "{least}{} hidden; --reason discarded shows them",
            count(found.hidden, "discarded letter")
        ));
    }
    Ok(Exit::DONE)
}

async fn show(api: &Api, id: Uuid, json: bool, output: Output) -> Result<Exit, Stop> {
    let path = format!("/v1/messages/{id}");
    let letter = api.message(Method::GET, &path).await?;
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
        true => all(api, action, &chosen).await?,
    };
    let (mut done, mut refused) = (Vec::new(), 0_usize);
    for id in &ids {
        let path = format!("/v1/messages/{id}/{}", action.path);
        match api.message(Method::POST, &path).await {
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
        let refusals = match refused {
            0 => String::new(),
            some => format!(", {some} refused"),
        };
        let letters = count(done.len(), "dead letter");
        output.text(&format!("{letters} {}{refusals}", action.done))?;
    }
    Ok(if refused == 0 { Exit::DONE } else { Exit::NO })
}

/// The ids of all that are chosen, once somebody has agreed to it.
async fn all(api: &Api, action: &Action, chosen: &Chosen) -> Result<Vec<String>, Stop> {
    if chosen.filter.wants_discarded() {
        return Err(Stop::usage(format_args!(
            "what was discarded is ended for good and cannot be {}; hand it over as a new message",
            action.done
        )));
    }
    let letters = api.dead_letters(&chosen.filter, usize::MAX).await?.letters;
    let word = |letter: &Value, name| letter.get(name)?.as_str().map(str::to_owned);
    let ids: Vec<_> = letters.iter().filter_map(|one| word(one, "id")).collect();
    if !ids.is_empty() && !chosen.yes {
        // What is not said to be unprocessed may have arrived.
        let doubtful = letters
            .iter()
            .filter(|letter| word(letter, "processed").as_deref() != Some("no"));
        let partner = chosen.filter.partner.as_deref().unwrap_or_default();
        ask::consent(&format!(
            "{} {} of {partner}, of which {} may have arrived (processed maybe or yes)?",
            action.ask,
            count(ids.len(), "dead letter"),
            doubtful.count()
        ))?;
    }
    Ok(ids)
}
