//! One reply: a status and its words.

use super::NotationError;
use super::check::check_reply;
use super::error::suggest;
use super::lex::Word;
use super::value::{self, Bad};
use super::words::{KNOWN, UNSUPPORTED};
use crate::step::{Barrier, Body, Create, End, Reply};

/// The largest body, announced or sent, in bytes.
pub(crate) const MAX_BODY: u64 = 64 * 1024 * 1024;

pub(super) fn reply(words: &[Word<'_>], at: usize) -> Result<Reply, NotationError> {
    if words.is_empty() {
        return Err(NotationError::new(
            at,
            "nothing to do",
            "write a status, like `503`",
        ));
    }
    let mut reply = Reply::default();
    for (i, word) in words.iter().enumerate() {
        let apply = match status(word.text) {
            Some(s) if i == 0 => s.map(|s| reply.status = Some(s)),
            Some(_) => Err((
                format!("the status `{}` must come first", word.text),
                "separate steps with a comma".into(),
            )),
            None => apply_word(&mut reply, word.text),
        };
        apply.map_err(|(what, fix)| NotationError::new(word.at, what, fix))?;
    }
    check_reply(&reply).map_err(|(what, fix)| NotationError::new(words[0].at, what, fix))?;
    Ok(reply)
}

fn status(word: &str) -> Option<Result<u16, Bad>> {
    if word.is_empty() || !word.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some(match word.parse::<u16>() {
        Ok(s @ 200..=999) => Ok(s),
        _ => Err((
            format!("`{word}` is not a status"),
            "write 200 to 999".into(),
        )),
    })
}

fn apply_word(reply: &mut Reply, word: &str) -> Result<(), Bad> {
    if let Some(end) = value::end_point(word) {
        if UNSUPPORTED.contains(&word) {
            return Err(unsupported(word));
        }
        return set(&mut reply.end, end?, word);
    }
    let (name, val) = match word.split_once('=') {
        Some((n, v)) => (n, Some(v)),
        None => (word, None),
    };
    match (name, val) {
        ("close", None) => set(&mut reply.end, End::Close, name),
        ("stall", None) => set(&mut reply.end, End::Stall, name),
        ("create", v) => set(&mut reply.create, create(v)?, name),
        ("h", Some(v)) => header(v).map(|h| reply.headers.push(h)),
        ("body", Some(v)) => set(&mut reply.body, Body::Pattern(size(v)?), name),
        ("text", Some(v)) => set(&mut reply.body, Body::Text(value::unquote(v)?), name),
        ("json", Some(v)) => set(&mut reply.body, Body::Json(json(v)?), name),
        ("ra", Some(v)) => set(&mut reply.retry_after, value::retry_after(v)?, name),
        ("date", Some(v)) => set(&mut reply.date, value::date(v)?, name),
        ("hold", Some(v)) => set(&mut reply.hold, value::hold(v)?, name),
        ("cl", Some(v)) => set(&mut reply.content_length, number(v)?, name),
        ("barrier", Some(v)) => set(&mut reply.barrier, barrier(v)?, name),
        _ => Err(unknown(name, val)),
    }
}

fn unsupported(name: &str) -> Bad {
    (
        format!("`{name}` is not supported yet"),
        "leave it out for now".into(),
    )
}

fn unknown(name: &str, val: Option<&str>) -> Bad {
    if UNSUPPORTED.contains(&name) {
        return unsupported(name);
    }
    if KNOWN.contains(&name) {
        return match val {
            None => (
                format!("`{name}` needs a value"),
                format!("write `{name}=..`"),
            ),
            Some(_) => (
                format!("`{name}` takes no value"),
                format!("write `{name}` alone"),
            ),
        };
    }
    let fix = match suggest(name, KNOWN.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "see the list of step words".to_owned(),
    };
    (format!("unknown word `{name}`"), fix)
}

fn set<T>(slot: &mut Option<T>, value: T, name: &str) -> Result<(), Bad> {
    if slot.is_some() {
        return Err((
            format!("`{name}` contradicts an earlier word"),
            "keep one of them".into(),
        ));
    }
    *slot = Some(value);
    Ok(())
}

fn number(text: &str) -> Result<u64, Bad> {
    // `parse` alone would take a plus sign.
    if text.bytes().all(|b| b.is_ascii_digit())
        && let Ok(n) = text.parse()
    {
        return Ok(n);
    }
    Err((
        format!("`{text}` is not a number"),
        "write a whole number".into(),
    ))
}

fn size(text: &str) -> Result<u64, Bad> {
    let (digits, unit) = match text.strip_suffix(['k', 'K', 'M']) {
        Some(d) if text.ends_with('M') => (d, 1024 * 1024),
        Some(d) => (d, 1024),
        None => (text, 1),
    };
    number(digits)?
        .checked_mul(unit)
        .filter(|n| *n <= MAX_BODY)
        .ok_or_else(|| {
            (
                format!("`{text}` is too large"),
                "stay at or below 64M".into(),
            )
        })
}

fn create(val: Option<&str>) -> Result<Create, Bad> {
    match val {
        None => Ok(Create::Now),
        Some("abandon") => Ok(Create::Abandon),
        Some(v) => match v.strip_prefix("slow:") {
            Some(t) => Ok(Create::Slow(value::duration(t)?)),
            None => Err((
                format!("unknown create `{v}`"),
                "write create, create=slow:T or =abandon".into(),
            )),
        },
    }
}

fn header(text: &str) -> Result<(String, String), Bad> {
    let owned;
    let (text, whole) = match text.starts_with('"') {
        true => {
            owned = value::unquote(text)?;
            (owned.as_str(), true)
        }
        false => (text, false),
    };
    let Some((name, val)) = text.split_once(':') else {
        return Err(("a header without `:`".into(), "write `h=Name:Value`".into()));
    };
    let val = match val.starts_with('"') && !whole {
        true => value::unquote(val)?,
        false => val.trim().to_owned(),
    };
    check_header(name, &val)?;
    Ok((name.to_owned(), val))
}

/// Whether this can stand as one header line.
pub(crate) fn check_header(name: &str, val: &str) -> Result<(), Bad> {
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if name.is_empty() || name.len() > 256 || !name.bytes().all(token) {
        return Err((
            format!("`{name}` is no header name"),
            "use letters, digits and `-`".into(),
        ));
    }
    value::header_text(val).map(drop)
}

pub(crate) fn json(text: &str) -> Result<String, Bad> {
    match serde_json::from_str::<serde::de::IgnoredAny>(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(e) => Err((
            format!("not JSON: {e}"),
            "write valid JSON, like `json={\"a\":1}`".into(),
        )),
    }
}

fn barrier(text: &str) -> Result<Barrier, Bad> {
    let (n, t) = match text.split_once(':') {
        Some((n, t)) => (n, value::duration(t)?),
        None => (text, Barrier::DEFAULT_TIMEOUT),
    };
    make_barrier(number(n)?, t)
}

pub(crate) fn make_barrier(n: u64, timeout: std::time::Duration) -> Result<Barrier, Bad> {
    match u32::try_from(n) {
        Ok(arrivals @ 1..=10_000) => Ok(Barrier { arrivals, timeout }),
        _ => Err((
            format!("a barrier of {n}"),
            "write 1 to 10000: connections end there".into(),
        )),
    }
}
