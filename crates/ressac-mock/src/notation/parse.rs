//! From text to a [`Script`].

use std::str::FromStr;

use super::NotationError;
use super::lex::{Word, split_commas, split_spaces};
use super::reply::reply;
use crate::step::{Action, MAX_TIMES, Pick, Reply, Script, Step, Times};

/// The most steps of one script.
const MAX_STEPS: usize = 10_000;

type Res<T> = Result<T, NotationError>;

impl FromStr for Script {
    type Err = NotationError;

    fn from_str(text: &str) -> Res<Self> {
        let parts = split_commas(text)?;
        if parts.len() > MAX_STEPS {
            let at = parts[MAX_STEPS].at;
            return Err(NotationError::new(at, "more than 10000 steps", "use xN"));
        }
        let last = parts.len() - 1;
        let mut steps = Vec::with_capacity(parts.len());
        for (i, part) in parts.into_iter().enumerate() {
            let step = parse_part(part)?;
            if step.times == Times::Forever && i < last {
                return Err(NotationError::new(
                    part.at,
                    "steps after `x*` are never reached",
                    "put `x*` on the last step only",
                ));
            }
            steps.push(step);
        }
        Ok(Self { steps })
    }
}

/// One step alone, as an outage or a long form takes it.
pub(crate) fn parse_step(text: &str) -> Res<Step> {
    match split_commas(text)?[..] {
        [one] => parse_part(one),
        [_, second, ..] => Err(NotationError::new(
            second.at,
            "one step was expected",
            "remove what follows",
        )),
        [] => Err(NotationError::new(
            0,
            "the step is empty",
            "write a status, like `503`",
        )),
    }
}

fn parse_part(part: Word<'_>) -> Res<Step> {
    let mut words = split_spaces(part)?;
    let times = match words.last().copied().map(times) {
        Some(Some(t)) => {
            words.pop();
            t?
        }
        _ => Times::N(1),
    };
    let Some(first) = words.first().copied() else {
        return Err(NotationError::new(
            part.at,
            "this step is empty",
            "write a status or a word",
        ));
    };
    let action = match first.text.strip_prefix("pick") {
        Some(rest) if rest.starts_with('(') => {
            if let Some(extra) = words.get(1) {
                return Err(NotationError::new(
                    extra.at,
                    "a word after `pick(..)`",
                    "write it inside the arms",
                ));
            }
            Action::Pick(pick(Word {
                text: rest,
                at: first.at + 4,
            })?)
        }
        _ => Action::Reply(Box::new(reply(&words, part.at)?)),
    };
    Ok(Step { action, times })
}

/// `xN` or `x*`; `None` if the word is something else.
fn times(word: Word<'_>) -> Option<Res<Times>> {
    let n = word.text.strip_prefix('x')?;
    if n == "*" {
        return Some(Ok(Times::Forever));
    }
    if n.is_empty() || !n.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some(match n.parse::<u64>() {
        Ok(0) => Err(NotationError::new(
            word.at,
            "`x0` serves nobody",
            "leave the step out",
        )),
        Ok(n) if n <= MAX_TIMES => Ok(Times::N(n)),
        _ => Err(NotationError::new(
            word.at,
            "too many repetitions",
            "use x*",
        )),
    })
}

fn pick(word: Word<'_>) -> Res<Pick> {
    // The lexer has proven that the parentheses are balanced, not that they end the word.
    let inner = word
        .text
        .strip_prefix('(')
        .and_then(|t| t.strip_suffix(')'));
    let Some(inner) = inner else {
        return Err(NotationError::new(
            word.at,
            "`pick(` does not end in `)`",
            "close it",
        ));
    };
    let base = word.at + 1;
    let mut arms = Vec::new();
    let mut otherwise = None;
    let mut sum = 0.0;
    for part in split_commas(inner).map_err(|e| e.shifted(base))? {
        let lead = part.text.len() - part.text.trim_start().len();
        let at = base + part.at + lead;
        let (p, reply) = arm(Word {
            text: part.text.trim(),
            at,
        })?;
        if otherwise.is_some() {
            return Err(NotationError::new(
                at,
                "an arm after `else`",
                "put `else` last",
            ));
        }
        let Some(p) = p else {
            otherwise = Some(Box::new(reply));
            continue;
        };
        sum += p;
        // Decimal fractions that add up to 1 may pass it by a rounding error.
        if sum > 1.0 + 1e-9 {
            return Err(NotationError::new(
                at,
                "the probabilities pass 1",
                "lower one",
            ));
        }
        arms.push((p, reply));
    }
    let Some(otherwise) = otherwise else {
        return Err(NotationError::new(
            word.at,
            "`pick` has no `else`",
            "add `else:200`",
        ));
    };
    Ok(Pick { arms, otherwise })
}

/// One arm: its probability (`None` for `else`) and its reply.
fn arm(part: Word<'_>) -> Res<(Option<f64>, Reply)> {
    let Some((weight, rest)) = part.text.split_once(':') else {
        let fix = "write `0.2:503` or `else:200`";
        return Err(NotationError::new(part.at, "an arm has no `:`", fix));
    };
    let at = part.at + weight.len() + 1;
    let words = split_spaces(Word { text: rest, at })?;
    if let Some(nested) = words.first().filter(|w| w.text.starts_with("pick(")) {
        return Err(NotationError::new(
            nested.at,
            "a pick inside a pick",
            "flatten it",
        ));
    }
    let reply = reply(&words, at)?;
    if weight == "else" {
        return Ok((None, reply));
    }
    match weight.parse::<f64>() {
        Ok(p) if p > 0.0 && p <= 1.0 => Ok((Some(p), reply)),
        _ => {
            let what = format!("`{weight}` is not a probability");
            Err(NotationError::new(
                part.at,
                what,
                "write a number above 0 and at most 1",
            ))
        }
    }
}
