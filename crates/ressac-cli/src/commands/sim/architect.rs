//! `ressac sim compare` and `ressac sim suggest`: what an architect asks before the outage.

use std::fmt::Write;
use std::time::Duration;

use comfy_table::{CellAlignment, ContentArrangement, Table};
use ressac_config::{format_duration, parse_duration};
use ressac_sim::{Answer, Bounds, Question, Suggestion};
use serde_json::json;

use super::progress::Progress;
use super::table::{RULE, sparkline};
use crate::exit::{Exit, Stop};
use crate::output::Output;

/// What the model leaves out; said each time, since it decides how far to trust it.
const LEFT_OUT: &str = "The model leaves out: connections and their set-up, bandwidth, message size, differences \
     between messages, a partner that gets slower as it gets fuller, caches that are cold after an \
     outage, other callers of the partner, and more than one partner. It knows one outage of full \
     refusals, Poisson arrivals, and exponential service times.";

/// The arguments of `ressac sim compare`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ressac sim compare --policy sync --policy durable --outage 2m
  ressac sim compare --policy ressac.toml:payments --policy durable --capacity 50 --rate 40 \\
      --clients 4 --outage 10m --retry-after 60s --window 1h")]
pub(crate) struct CompareArgs {
    /// A policy of a ressac.toml, or `sync` or `durable`. Give two or more.
    #[arg(long = "policy", value_name = "FILE:NAME", required = true)]
    policies: Vec<String>,

    #[command(flatten)]
    question: QuestionArgs,

    /// Write one JSON object.
    #[arg(long)]
    json: bool,
}

/// The arguments of `ressac sim suggest`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ressac sim suggest
  ressac sim suggest --policy ressac.toml:payments --capacity 50 --rate 40 --outage 10m \\
      --retries 3..10 --ratio 0.05..0.3")]
pub(crate) struct SuggestArgs {
    /// The policy to begin with: of a ressac.toml, or `sync` or `durable`.
    #[arg(long, value_name = "FILE:NAME", default_value = "durable")]
    policy: String,

    #[command(flatten)]
    question: QuestionArgs,

    /// Where to search the base, e.g. 100ms..10s.
    #[arg(long, value_name = "FROM..TO", default_value = "100ms..10s", value_parser = times)]
    base: (Duration, Duration),

    /// Where to search the cap.
    #[arg(long, value_name = "FROM..TO", default_value = "5s..10m", value_parser = times)]
    cap: (Duration, Duration),

    /// Where to search the number of retries.
    #[arg(long, value_name = "FROM..TO", default_value = "2..30", value_parser = counts)]
    retries: (u32, u32),

    /// Where to search the budget's ratio.
    #[arg(long, value_name = "FROM..TO", default_value = "0.02..0.5", value_parser = shares)]
    ratio: (f64, f64),

    /// Where to search the spread on top of Retry-After.
    #[arg(long, value_name = "FROM..TO", default_value = "0.1..2", value_parser = shares)]
    spread: (f64, f64),

    /// How many settings to try, 1 to 10000.
    #[arg(long, value_name = "N", default_value_t = 60,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    tries: u32,

    /// Write one JSON object.
    #[arg(long)]
    json: bool,
}

/// One outage.
#[derive(Debug, clap::Args)]
struct QuestionArgs {
    /// Requests a second that the partner can serve.
    #[arg(long, value_name = "NUMBER", default_value = "1200", value_parser = rate)]
    capacity: f64,

    /// Fresh operations a second, over all clients.
    #[arg(long, value_name = "NUMBER", default_value = "1000", value_parser = rate)]
    rate: f64,

    /// Clients, each with a budget and a breaker of its own; 1 is a shared gateway.
    #[arg(long, value_name = "N", default_value_t = 10,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    clients: u32,

    /// How long the partner refuses everything, up to 6h.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = outage)]
    outage: Duration,

    /// The Retry-After that it answers meanwhile.
    #[arg(long, value_name = "TIME", value_parser = time)]
    retry_after: Option<Duration>,

    /// How long an operation may take in all.
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = time)]
    window: Duration,

    /// Replications of each.
    #[arg(long, value_name = "N", default_value_t = 3,
          value_parser = clap::value_parser!(u32).range(1..=1_000))]
    seeds: u32,

    /// The seed of the first replication.
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
}

fn time(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| error.to_string())
}

fn outage(text: &str) -> Result<Duration, String> {
    let time = time(text)?;
    let allowed = Duration::from_millis(100)..=Duration::from_secs(6 * 3_600);
    allowed
        .contains(&time)
        .then_some(time)
        .ok_or_else(|| "from 100ms to 6h".to_owned())
}

fn rate(text: &str) -> Result<f64, String> {
    text.strip_suffix("/s")
        .unwrap_or(text)
        .parse::<f64>()
        .ok()
        .filter(|rate| (0.001..=1e6).contains(rate))
        .ok_or_else(|| "a number from 0.001 to 1000000, e.g. 1200".to_owned())
}

fn range<T: PartialOrd>(
    text: &str,
    one: impl Fn(&str) -> Result<T, String>,
) -> Result<(T, T), String> {
    let (from, to) = text
        .split_once("..")
        .ok_or_else(|| "write FROM..TO".to_owned())?;
    let (from, to) = (one(from.trim())?, one(to.trim())?);
    if from > to {
        return Err("the first must not be above the second".to_owned());
    }
    Ok((from, to))
}

fn times(text: &str) -> Result<(Duration, Duration), String> {
    range(text, |text| {
        time(text).and_then(|time| {
            (!time.is_zero())
                .then_some(time)
                .ok_or_else(|| "above zero".to_owned())
        })
    })
}

fn counts(text: &str) -> Result<(u32, u32), String> {
    range(text, |text| {
        text.parse::<u32>().map_err(|error| error.to_string())
    })
}

fn shares(text: &str) -> Result<(f64, f64), String> {
    range(text, |text| {
        text.parse::<f64>()
            .ok()
            .filter(|share| (0.001..=100.0).contains(share))
            .ok_or_else(|| "numbers from 0.001 to 100".to_owned())
    })
}

impl QuestionArgs {
    fn question(&self) -> Result<Question, Stop> {
        // Arrivals are what a run costs; a day of a busy partner would take a day.
        let operations = self.rate * self.outage.as_secs_f64() * 20.0;
        if operations > 2e8 {
            return Err(Stop::usage(format_args!(
                "{operations:.0} operations would be simulated: lower --rate and --capacity in the same \
                 proportion, or shorten --outage"
            )));
        }
        Ok(Question {
            capacity: self.capacity,
            rate: self.rate,
            clients: self.clients,
            outage: self.outage,
            retry_after: self.retry_after,
            window: self.window,
            seeds: self.seeds,
            seed: self.seed,
            ..Question::default()
        })
    }

    fn said(&self) -> String {
        let hint = self.retry_after.map_or(String::new(), |time| {
            format!(", Retry-After: {}", format_duration(time))
        });
        format!(
            "{}/s from {} clients to a partner for {}/s, which refuses everything for {}{hint}; window {}",
            self.rate,
            self.clients,
            self.capacity,
            format_duration(self.outage),
            format_duration(self.window),
        )
    }
}

/// Several policies in one outage.
pub(super) fn compare(args: &CompareArgs, output: Output) -> Result<Exit, Stop> {
    let question = args.question.question()?;
    let policies = super::named(&args.policies, output)?;
    let progress = Progress::start("policies");
    let mut answers = Vec::new();
    for (policy, spec) in policies.iter().zip(&args.policies) {
        progress.set(answers.len() as u64, policies.len() as u64);
        answers.push(ressac_sim::compare(&question, spec, policy.policy()));
    }
    progress.end();
    let best = answers
        .iter()
        .min_by(|a, b| a.cost(&question).total_cmp(&b.cost(&question)));
    if args.json {
        output.json(&json!({
            "seed": question.seed,
            "seeds": question.seeds,
            "rows": answers,
            "best": best.map(|best| &best.policy),
        }))?;
        return Ok(Exit::DONE);
    }
    let mut text = format!("{}\n\n{}\n", args.question.said(), answer_table(&answers));
    text.push_str("\nArrivals a second, each by its own highest:\n");
    for answer in &answers {
        let span = answer.arrivals.len().div_ceil(60).max(1);
        let spans: Vec<u64> = answer
            .arrivals
            .chunks(span)
            .map(|s| s.iter().sum())
            .collect();
        let _ = writeln!(text, "  {:<28} {}", answer.policy, sparkline(&spans));
    }
    let _ = write!(text, "\n{}\n", verdict(&question, &answers, best));
    let _ = write!(
        text,
        "\n{LEFT_OUT}\n\nseed {}, {} replications\n",
        question.seed, question.seeds
    );
    output.text(&text)?;
    Ok(Exit::DONE)
}

fn verdict(question: &Question, answers: &[Answer], best: Option<&Answer>) -> String {
    let names = |picked: &dyn Fn(&Answer) -> bool| {
        let names: Vec<&str> = answers
            .iter()
            .filter(|answer| picked(answer))
            .map(|answer| answer.policy.as_str())
            .collect();
        if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(", ")
        }
    };
    let fastest = answers
        .iter()
        .filter(|answer| answer.loses_nothing())
        .min_by(|a, b| a.recover_seconds.total_cmp(&b.recover_seconds));
    format!(
        "Loses nothing:             {}\nKeeps below the capacity:  {}\nDrains fastest (and loses nothing): {}\nBest in all: {}",
        names(&Answer::loses_nothing),
        names(&|answer| answer.peak_per_second <= question.capacity),
        fastest.map_or("none loses nothing".to_owned(), |answer| format!(
            "{}, {:.0} s after the outage",
            answer.policy, answer.recover_seconds
        )),
        best.map_or("", |best| best.policy.as_str()),
    )
}

fn answer_table(answers: &[Answer]) -> Table {
    let mut table = Table::new();
    table
        .load_style(comfy_table::presets::NOTHING.header_separator(RULE))
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header([
            "policy",
            "lost",
            "waiting",
            "peak/s",
            "ampl.",
            "recover s",
            "p50 s",
            "p99 s",
            "early",
        ]);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    for answer in answers {
        table.add_row([
            answer.policy.clone(),
            format!("{:.0} ({:.1} %)", answer.lost, 100.0 * answer.lost_share),
            format!("{:.0}", answer.waiting),
            format!("{:.0}", answer.peak_per_second),
            format!("{:.2}", answer.amplification),
            format!("{:.0}", answer.recover_seconds),
            format!("{:.2}", answer.p50_seconds),
            format!("{:.1}", answer.p99_seconds),
            format!("{:.0}", answer.early),
        ]);
    }
    table
}

/// The best settings found.
pub(super) fn suggest(args: &SuggestArgs, output: Output) -> Result<Exit, Stop> {
    let question = args.question.question()?;
    let policy = super::named(std::slice::from_ref(&args.policy), output)?
        .pop()
        .ok_or_else(|| Stop::usage("give one policy"))?;
    let bounds = Bounds {
        base: args.base.0..=args.base.1,
        cap: args.cap.0..=args.cap.1,
        retries: args.retries.0..=args.retries.1,
        ratio: args.ratio.0..=args.ratio.1,
        spread: args.spread.0..=args.spread.1,
    };
    let progress = Progress::start("settings");
    let found = ressac_sim::suggest(&question, policy.policy(), &bounds, args.tries, &|done| {
        progress.set(u64::from(done), u64::from(args.tries));
    });
    progress.end();
    if args.json {
        output.json(&json!({
            "seed": question.seed,
            "seeds": question.seeds,
            "suggestion": found,
        }))?;
    } else {
        output.text(&suggestion(args, &question, &found))?;
    }
    Ok(Exit::DONE)
}

fn suggestion(args: &SuggestArgs, question: &Question, found: &Suggestion) -> String {
    let Suggestion { before, after, .. } = found;
    let mut text = format!(
        "{}\n\nThe best of {} settings, beginning with `{}`:\n\n{}\n",
        args.question.said(),
        found.tried,
        args.policy,
        found.best.toml(),
    );
    let _ = writeln!(text, "{}", answer_table(&[before.clone(), after.clone()]));
    text.push_str(
        "\nEach setting alone halved or doubled (a cost above 1 is worse than the best):\n",
    );
    for one in &found.sensitivity {
        let tried = match one.setting {
            "base" => format_duration(one.tried.base),
            "cap" => format_duration(one.tried.cap),
            "retries" => one.tried.retries.to_string(),
            "ratio" => one.tried.ratio.to_string(),
            _ => one.tried.spread.to_string(),
        };
        let answer = &one.answer;
        let _ = writeln!(
            text,
            "  {:<8} {tried:>8}  cost x {:<6.2} lost {:.0}, peak {:.0}/s, recovered after {:.0} s",
            one.setting,
            one.cost_ratio,
            answer.lost,
            answer.peak_per_second,
            answer.recover_seconds,
        );
    }
    let _ = write!(
        text,
        "\nThe cost puts losses first, then load above the capacity, then time to recover, then slow \
         completions.\n{LEFT_OUT}\n\nseed {}, {} replications of each\n",
        question.seed, question.seeds
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_and_nonsense_is_refused() {
        let (from, to) = times("100ms..10s").unwrap();
        assert_eq!(
            (from, to),
            (Duration::from_millis(100), Duration::from_secs(10))
        );
        assert_eq!(counts("2..30"), Ok((2, 30)));
        for bad in ["10s..1s", "0s..1s", "5s", "x..y"] {
            assert!(times(bad).is_err(), "{bad}");
        }
        assert!(shares("0.5..0.1").is_err() && shares("0..1").is_err());
        assert!(rate("nan").is_err() && rate("0").is_err() && outage("7h").is_err());
    }
}
