//! `accept = "rst x2, ok x*"`.

use super::listener::{AcceptAction, AcceptScript};
use crate::step::{MAX_TIMES, Times};

/// The longest script, in bytes.
const MAX: usize = 64 * 1024;

impl std::str::FromStr for AcceptScript {
    /// What is wrong, and the fix.
    type Err = (String, String);

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() > MAX {
            return Err(("longer than 64 KiB".into(), "use xN".into()));
        }
        let steps = text.split(',').map(step).collect::<Result<Vec<_>, _>>()?;
        let forever = |s: &(AcceptAction, Times)| s.1 == Times::Forever;
        match steps.iter().position(forever) {
            Some(i) if i + 1 == steps.len() => Ok(Self { steps }),
            Some(_) => Err((
                "steps after `x*` are never reached".into(),
                "put `x*` on the last step only".into(),
            )),
            None => Err((
                "a connection script that ends".into(),
                "say what all further connections meet, like `ok x*`".into(),
            )),
        }
    }
}

fn step(part: &str) -> Result<(AcceptAction, Times), (String, String)> {
    let mut words = part.split_whitespace();
    let Some(word) = words.next() else {
        return Err((
            "a step is empty".into(),
            "write `ok`, `fin`, `rst` or `stall`".into(),
        ));
    };
    let action = action(word)?;
    let times = match words.next() {
        None => Times::N(1),
        Some("x*") => Times::Forever,
        Some(w) => match w.strip_prefix('x').map(str::parse::<u64>) {
            Some(Ok(n @ 1..=MAX_TIMES)) => Times::N(n),
            _ => return Err((format!("`{w}` is no repetition"), "write xN or x*".into())),
        },
    };
    match words.next() {
        None => Ok((action, times)),
        Some(w) => Err((format!("`{w}` after the repetition"), "remove it".into())),
    }
}

fn action(word: &str) -> Result<AcceptAction, (String, String)> {
    Ok(match word {
        "ok" => AcceptAction::Ok,
        "fin" => AcceptAction::Fin,
        "rst" => AcceptAction::Rst,
        "stall" => AcceptAction::Stall,
        "fin@hello" => AcceptAction::FinHello,
        "rst@hello" => AcceptAction::RstHello,
        "stall@hello" => AcceptAction::StallHello,
        _ => {
            let Some(name) = word.strip_prefix("alert=") else {
                return Err((
                    format!("unknown word `{word}`"),
                    "write ok, fin, rst, stall, fin@hello, rst@hello, stall@hello or alert=NAME"
                        .into(),
                ));
            };
            match AcceptAction::ALERTS.iter().find(|(n, _)| *n == name) {
                Some((_, code)) => AcceptAction::Alert(*code),
                None => {
                    let known: Vec<_> = AcceptAction::ALERTS.iter().map(|(n, _)| *n).collect();
                    return Err((
                        format!("`{name}` is no alert"),
                        format!("write one of {}", known.join(", ")),
                    ));
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn connections_meet_their_step() {
        let s: AcceptScript = "rst x2, alert=handshake_failure, ok x*".parse().unwrap();
        let got: Vec<_> = (1..=4).map(|n| s.action_for(n).to_string()).collect();
        assert_eq!(got, ["rst", "rst", "alert=handshake_failure", "ok"]);
        for bad in [
            "",
            "ok",
            "rst x2",
            "ok x*, rst x*",
            "ok x0",
            "okk x*",
            "alert=x x*",
            "ok x* y",
        ] {
            assert!(bad.parse::<AcceptScript>().is_err(), "{bad}");
        }
    }
}
