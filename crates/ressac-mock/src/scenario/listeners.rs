//! `[[listener]]`.

use std::time::Duration;

use toml::de::{DeTable, DeValue};

use super::listener::{AcceptScript, Certificate, ListenerSpec, TcpFaults, TcpSpec};
use super::reader::{Doc, Res, Value};
use crate::step::Cut;

/// The most listeners of one mock.
const MAX_LISTENERS: usize = 64;
/// The longest that a fault may last.
pub(super) const MAX_TTL: Duration = Duration::from_secs(3600);

const KEYS: &[&str] = &["name", "speak", "tls", "accept", "tcp"];

pub(super) fn parse(doc: Doc<'_>, v: &Value<'_>) -> Res<Vec<ListenerSpec>> {
    let mut out: Vec<ListenerSpec> = Vec::new();
    for item in doc.array(v, "listener")? {
        let t = doc.table(item, "listener")?;
        doc.only(t, "[[listener]]", KEYS)?;
        let spec = one(doc, item, t)?;
        if out.iter().any(|l| l.name == spec.name) {
            let what = format!("two listeners named `{}`", spec.name);
            let at = t.get("name").map_or(item.span(), toml::Spanned::span);
            return doc.err(at, what, "rename one");
        }
        out.push(spec);
    }
    if out.is_empty() || out.len() > MAX_LISTENERS {
        let what = format!("{} listeners", out.len());
        return doc.err(v.span(), what, "write 1 to 64");
    }
    Ok(out)
}

fn one(doc: Doc<'_>, item: &Value<'_>, t: &DeTable<'_>) -> Res<ListenerSpec> {
    let Some(name) = t.get("name") else {
        let what = "a listener without a name";
        return doc.err(item.span(), what, "add `name = \"plain\"`");
    };
    let text = doc.str(name, "name")?;
    let fine = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    if text.is_empty() || text.len() > 100 || !text.bytes().all(fine) {
        let what = format!("`{text}` cannot name a listener");
        return doc.err(name.span(), what, "use letters, digits, `-`, `_` and `.`");
    }
    let mut spec = ListenerSpec::plain(text);
    if let Some(v) = t.get("tls") {
        spec.certificate = tls(doc, v)?;
    }
    if let Some(v) = t.get("speak") {
        speak(doc, v, &mut spec)?;
    }
    if let Some(v) = t.get("accept") {
        spec.accept = doc.bad(v, doc.str(v, "accept")?.parse::<AcceptScript>())?;
        if spec.accept.needs_tls() && spec.certificate.is_none() {
            let what = "there is no ClientHello without TLS";
            return doc.err(v.span(), what, "add `tls = { cert = \"valid\" }`");
        }
    }
    if let Some(v) = t.get("tcp") {
        if spec.certificate.is_some() || t.contains_key("speak") {
            let what = "a raw forwarder speaks nothing itself";
            return doc.err(v.span(), what, "leave `tls` and `speak` out");
        }
        spec.tcp = Some(tcp(doc, v)?);
    }
    Ok(spec)
}

fn tls(doc: Doc<'_>, v: &Value<'_>) -> Res<Option<Certificate>> {
    if let DeValue::Boolean(b) = v.get_ref() {
        return Ok(b.then_some(Certificate::Valid));
    }
    let t = doc.table(v, "tls")?;
    doc.only(t, "tls", &["cert"])?;
    let Some(cert) = t.get("cert") else {
        return Ok(Some(Certificate::Valid));
    };
    let name = doc.str(cert, "cert")?;
    match Certificate::NAMES.iter().find(|(n, _)| *n == name) {
        Some((_, kind)) => Ok(Some(*kind)),
        None => {
            let known: Vec<_> = Certificate::NAMES.iter().map(|(n, _)| *n).collect();
            let fix = format!("write one of {}", known.join(", "));
            doc.err(cert.span(), format!("unknown certificate `{name}`"), fix)
        }
    }
}

fn speak(doc: Doc<'_>, v: &Value<'_>, spec: &mut ListenerSpec) -> Res<()> {
    (spec.http1, spec.http2) = (false, false);
    let second = if spec.certificate.is_some() {
        "h2"
    } else {
        "h2c"
    };
    for word in doc.strings(v, "speak")? {
        match word.as_str() {
            "http/1.1" => spec.http1 = true,
            "h2" | "h2c" if word == second => spec.http2 = true,
            "h2" | "h2c" => {
                let what = format!("`{word}` is not how this listener speaks HTTP/2");
                return doc.err(v.span(), what, format!("write `{second}`"));
            }
            _ => {
                let what = format!("unknown protocol `{word}`");
                return doc.err(v.span(), what, format!("write http/1.1 or {second}"));
            }
        }
    }
    if !spec.http1 && !spec.http2 {
        return doc.err(
            v.span(),
            "a listener that speaks nothing",
            "leave `speak` out",
        );
    }
    Ok(())
}

fn tcp(doc: Doc<'_>, v: &Value<'_>) -> Res<TcpSpec> {
    let t = doc.table(v, "tcp")?;
    doc.only(t, "tcp", &["to", "request", "reply", "down", "ttl"])?;
    let Some(to) = t.get("to") else {
        return doc.err(
            v.span(),
            "a forwarder without `to`",
            "add `to = \"127.0.0.1:5432\"`",
        );
    };
    let address = doc.str(to, "to")?;
    let fine = address
        .rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok_and(|p| p > 0));
    if !fine {
        let what = format!("`{address}` is no address");
        return doc.err(to.span(), what, "write host and port, like 127.0.0.1:5432");
    }
    let side = |key| match t.get(key) {
        Some(v) => faults(doc, v, key),
        None => Ok(TcpFaults::default()),
    };
    let (request, reply) = (side("request")?, side("reply")?);
    let down = match t.get("down") {
        Some(v) => doc.bool(v, "down")?,
        None => false,
    };
    let none = TcpFaults::default();
    let faulty = down || request != none || reply != none;
    let ttl = match t.get("ttl") {
        Some(v) => match doc.duration(v, "ttl")? {
            ttl if ttl <= MAX_TTL && !ttl.is_zero() => ttl,
            _ => return doc.err(v.span(), "a fault lasts at most an hour", "write up to 1h"),
        },
        None if faulty => {
            let what = "faults without an end";
            return doc.err(v.span(), what, "add `ttl = \"30s\"`, at most 1h");
        }
        None => Duration::ZERO,
    };
    Ok(TcpSpec {
        to: address.to_owned(),
        request,
        reply,
        down,
        ttl,
    })
}

fn faults(doc: Doc<'_>, v: &Value<'_>, key: &str) -> Res<TcpFaults> {
    let t = doc.table(v, key)?;
    doc.only(t, key, &["latency", "rate", "cut"])?;
    let mut out = TcpFaults::default();
    if let Some(v) = t.get("latency") {
        out.latency = doc.duration(v, "latency")?;
    }
    if let Some(v) = t.get("rate") {
        out.rate = match doc.u64(v, "rate")? {
            0 => {
                return doc.err(
                    v.span(),
                    "a rate of nothing",
                    "write bytes a second, from 1",
                );
            }
            n => Some(n),
        };
    }
    if let Some(v) = t.get("cut") {
        let text = doc.str(v, "cut")?;
        let cut = match (text.strip_prefix("fin@"), text.strip_prefix("rst@")) {
            (Some(n), _) => n.parse().ok().map(|n| (Cut::Fin, n)),
            (_, Some(n)) => n.parse().ok().map(|n| (Cut::Rst, n)),
            _ => None,
        };
        if cut.is_none() {
            return doc.err(
                v.span(),
                format!("unknown cut `{text}`"),
                "write fin@N or rst@N",
            );
        }
        out.cut = cut;
    }
    Ok(out)
}
