//! From arguments to what is run.

use std::path::Path;
use std::time::Duration;

use ressac_prove::{Claims, KnownFailing, Mode, Options, PROFILES, Selection, Tempo};

use super::{Args, Level, Select};
use crate::exit::{Exit, Stop};
use crate::output::Output;

/// A time on the command line.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    let time = ressac_config::parse_duration(text).map_err(|e| e.to_string())?;
    match time.is_zero() {
        true => Err("a limit of no time: nothing could run".to_owned()),
        false => Ok(time),
    }
}

/// The selection, checked.
pub(super) fn selection(select: &Select) -> Result<Selection, Stop> {
    if let Some(name) = &select.profile
        && !PROFILES.contains(&name.as_str())
    {
        let known = PROFILES.join(", ");
        return Err(Stop::usage(format_args!(
            "`{name}` is no profile; there are {known}"
        )));
    }
    Ok(Selection {
        run: select.run.clone(),
        skip: select.skip.clone(),
        groups: select.group.iter().map(char::to_ascii_uppercase).collect(),
        level: select.level.map(|level| match level {
            Level::Must => ressac_prove::Level::Must,
            Level::Should => ressac_prove::Level::Should,
            Level::Check => ressac_prove::Level::Check,
        }),
    })
}

pub(super) fn read(path: &Path) -> Result<String, Stop> {
    std::fs::read_to_string(path)
        .map_err(|e| Stop::usage(format_args!("cannot read {}: {e}", path.display())))
}

/// The rule book where none is named.
fn by_mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Proxy => "proxy",
        Mode::Lines | Mode::Exec => "ressac",
    }
}

/// Everything that a run needs.
pub(super) fn of(args: &Args, output: Output) -> Result<Options, Stop> {
    let Some(file) = &args.claims else {
        return Err(Stop::usage(
            "--claims is missing; write the file of the client's claims",
        ));
    };
    let shown = file.display().to_string();
    let claims = Claims::parse(&shown, &read(file)?)
        .map_err(|e| Stop::shown(Exit::USAGE, e.render(output.color_of_notes())))?;
    let known = match &args.known_failing {
        Some(file) => {
            let shown = file.display().to_string();
            KnownFailing::parse(&shown, &read(file)?).map_err(Stop::usage)?
        }
        None => KnownFailing::default(),
    };
    let cases = selection(&args.select)?.cases().map_err(Stop::usage)?;
    if cases.is_empty() {
        return Err(Stop::usage(
            "no case is selected; `ressac prove list` shows them",
        ));
    }
    let profile = match &args.select.profile {
        Some(name) => name.clone(),
        None => by_mode(claims.client.mode).to_owned(),
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Ok(Options {
        command: args.command.clone(),
        claims,
        cases,
        tempo: match args.tempo {
            super::Tempo::Fast => Tempo::Fast,
            super::Tempo::Real => Tempo::Real,
        },
        profile,
        strict: args.strict,
        jobs: args.jobs.map_or((2 * cores).min(8), |n| n as usize),
        seed: args.seed,
        case_limit: args.case_limit,
        repeat: args.repeat,
        fail_fast: args.fail_fast,
        out: args.out.clone(),
        known,
    })
}
