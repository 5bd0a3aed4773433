//! `quota = { limit = 20, per = "1s" }`.

use std::time::Duration;

use toml::de::DeTable;

use super::reader::{Doc, Res, Value};
use super::{Route, Scope};
use crate::step::{Reply, RetryAfter};

/// The most arrivals that a quota can let through at once: their times are kept.
const MAX_LIMIT: u64 = 100_000;
/// The longest window.
const MAX_PER: Duration = Duration::from_secs(366 * 24 * 3600);

/// How many arrivals a route lets through.
#[derive(Debug, Clone, PartialEq)]
pub struct Quota {
    /// How many, from 1 to 100 000.
    pub limit: u64,
    /// In how long.
    pub per: Duration,
    /// How they are counted.
    pub kind: QuotaKind,
    /// What they are counted by.
    pub scope: Scope,
    /// What the others meet.
    pub over: Box<Reply>,
    /// Whether replies carry `RateLimit-Policy` and `RateLimit`.
    pub announce: bool,
}

/// How arrivals are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuotaKind {
    /// In windows; one begins with the first arrival after the last.
    Fixed,
    /// In the time before each arrival.
    Sliding,
    /// One every `per / limit`, so many at once.
    Gcra {
        /// How many at once, from 1.
        burst: u64,
    },
}

const KEYS: &[&str] = &["limit", "per", "kind", "burst", "scope", "over", "announce"];

pub(super) fn parse(doc: Doc<'_>, v: &Value<'_>) -> Res<Quota> {
    let t = doc.table(v, "quota")?;
    doc.only(t, "quota", KEYS)?;
    let (Some(limit), Some(per)) = (t.get("limit"), t.get("per")) else {
        return doc.err(v.span(), "a quota needs `limit` and `per`", "add both");
    };
    let limit = count(doc, limit, "limit")?;
    let window = doc.duration(per, "per")?;
    if window.is_zero() || window > MAX_PER {
        return doc.err(
            per.span(),
            "a window of no time, or too long",
            "write 1ms to a year",
        );
    }
    let over = match t.get("over") {
        Some(v) => super::outages::step(doc, v, doc.str(v, "over")?, "a quota")?,
        None => Box::new(Reply {
            retry_after: Some(RetryAfter::Auto),
            ..Reply::status(429)
        }),
    };
    Ok(Quota {
        limit,
        per: window,
        kind: kind(doc, t, limit)?,
        scope: super::routes::scope(doc, t)?,
        over,
        announce: match t.get("announce") {
            Some(v) => doc.bool(v, "announce")?,
            None => false,
        },
    })
}

fn count(doc: Doc<'_>, v: &Value<'_>, key: &str) -> Res<u64> {
    match doc.u64(v, key)? {
        n @ 1..=MAX_LIMIT => Ok(n),
        n => doc.err(v.span(), format!("{key} {n}"), "write 1 to 100000"),
    }
}

fn kind(doc: Doc<'_>, t: &DeTable<'_>, limit: u64) -> Res<QuotaKind> {
    let burst = t.get("burst");
    let word = match t.get("kind") {
        Some(v) => (doc.str(v, "kind")?, v.span()),
        None => ("fixed", 0..0),
    };
    if let Some(b) = burst
        && word.0 != "gcra"
    {
        return doc.err(
            b.span(),
            "`burst` belongs to gcra",
            "write `kind = \"gcra\"`",
        );
    }
    match word.0 {
        "fixed" => Ok(QuotaKind::Fixed),
        "sliding" => Ok(QuotaKind::Sliding),
        "gcra" => Ok(QuotaKind::Gcra {
            burst: match burst {
                Some(b) => count(doc, b, "burst")?,
                None => limit,
            },
        }),
        other => {
            let what = format!("unknown kind `{other}`");
            doc.err(word.1, what, "write fixed, sliding or gcra")
        }
    }
}

/// Scope `token` and a path without one contradict each other.
pub(super) fn check(doc: Doc<'_>, v: &Value<'_>, route: &Route) -> Res<()> {
    let by_token = route
        .quota
        .as_ref()
        .is_some_and(|q| q.scope == Scope::Token);
    if by_token && route.token_header.is_none() && !route.path.has_token() {
        return doc.err(
            v.span(),
            "a quota by token without a token",
            "put `{token}` into the path, or add `token_header`",
        );
    }
    Ok(())
}
