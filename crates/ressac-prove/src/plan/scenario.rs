//! The scenario of the mock, as the file that is kept beside the journal.

use std::fmt::Write as _;

use crate::case::{OpSpec, Part};
use crate::claims::{Claims, Mode};

/// The listener's and the routes' TOML.
pub(crate) fn scenario(part: &Part, claims: &Claims, down_ms: Option<f64>, seed: u64) -> String {
    let header = claims
        .claims
        .keys
        .as_ref()
        .map_or("Idempotency-Key", |k| k.header.as_str());
    let mut out = format!("version = 1\nseed = {seed}\n");
    let _ = writeln!(out, "idempotency = {{ header = {} }}", quoted(header));
    let mut outages: Vec<String> = part
        .outage
        .iter()
        .map(|o| {
            format!(
                "{{ from = \"{}ms\", to = \"{}ms\", clock = {}, do = {} }}",
                o.from_ms,
                o.to_ms,
                quoted(&o.clock),
                quoted(&o.action)
            )
        })
        .collect();
    if let Some(ms) = down_ms {
        let to = format!("{}ms", ms.round());
        outages.push(format!(
            "{{ to = {}, clock = \"armed\", do = \"down\" }}",
            quoted(&to)
        ));
    }
    if !outages.is_empty() {
        let _ = writeln!(out, "outage = [{}]", outages.join(", "));
    }
    listener(&mut out, part);
    for (index, op) in part.op.iter().enumerate() {
        // A barrier must know how many come, which is fewer in exec mode.
        let script = op.script.replace("{COUNT}", &count(op, claims).to_string());
        let _ = write!(
            out,
            "[[route]]\nname = \"s{index}\"\npath = \"/{{token}}/s{index}\"\nscope = \"token\"\n\
             script = {}\n",
            quoted(&script)
        );
        if let Some(quota) = &part.quota {
            let _ = writeln!(out, "quota = {quota}");
        }
    }
    out
}

fn count(op: &OpSpec, claims: &Claims) -> u32 {
    match (claims.client.mode, op.count_exec) {
        (Mode::Exec, Some(n)) => n,
        _ => op.count,
    }
}

fn listener(out: &mut String, part: &Part) {
    out.push_str("[[listener]]\nname = \"subject\"\n");
    if let Some(script) = &part.accept {
        let _ = writeln!(out, "accept = {}", quoted(script));
    }
    let words: Vec<String> = part.speak.iter().map(|w| quoted(w)).collect();
    match words.is_empty() {
        true => out.push_str("speak = [\"http/1.1\"]\n"),
        false => {
            let _ = writeln!(out, "speak = [{}]", words.join(", "));
        }
    }
    if let Some(cert) = &part.tls {
        let _ = writeln!(out, "tls = {{ cert = {} }}", quoted(cert));
    }
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
