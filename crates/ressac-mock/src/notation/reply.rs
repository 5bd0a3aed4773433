//! One reply: a status and its words.

use super::NotationError;
use super::check::check_reply;
use super::error::suggest;
use super::lex::Word;
use super::value::{self, Bad};
use super::words::KNOWN;
use crate::step::{Barrier, Body, Create, End, FileBody, Framing, Goaway, Reply};

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
        return set(&mut reply.end, end?, word);
    }
    match word.split_once('=') {
        Some((name, val)) => apply(reply, name, Some(val)),
        None => apply(reply, word, None),
    }
}

/// Carries a word out, with its value if it has one.
pub(crate) fn apply(reply: &mut Reply, name: &str, val: Option<&str>) -> Result<(), Bad> {
    if let Some(done) = content(reply, name, val) {
        return done;
    }
    if let Some(done) = framing(reply, name, val) {
        return done;
    }
    match (name, val) {
        ("create", v) => set(&mut reply.create, create(v)?, name),
        ("hold", Some(v)) => set(&mut reply.hold, value::hold(v)?, name),
        ("gap", Some(v)) => set(&mut reply.gap, value::hold(v)?, name),
        ("drip", Some(v)) => set(&mut reply.drip, value::drip(v)?, name),
        ("drip-head", Some(v)) => set(&mut reply.drip_head, value::drip(v)?, name),
        ("barrier", Some(v)) => set(&mut reply.barrier, barrier(v)?, name),
        ("early", None) => flag(&mut reply.early, name),
        ("expect", Some(v)) => set(&mut reply.expect, value::expect(v)?, name),
        ("pass", None) => flag(&mut reply.pass, name),
        ("code", Some(v)) => set(&mut reply.code, value::code(v)?, name),
        _ => match end(name, val) {
            Some(end) => set(&mut reply.end, end?, name),
            None => Err(unknown(name, val)),
        },
    }
}

/// Words that say what the reply is.
fn content(reply: &mut Reply, name: &str, val: Option<&str>) -> Option<Result<(), Bad>> {
    let v = val?;
    let body = |b: Result<Body, Bad>, reply: &mut Reply| set(&mut reply.body, b?, name);
    Some(match name {
        "h" => header(v).map(|h| reply.headers.push(h)),
        "body" => body(size(v).map(Body::Pattern), reply),
        "text" => body(value::unquote(v).map(Body::Text), reply),
        "json" => body(json(v).map(Body::Json), reply),
        "file" => body(file(v).map(Body::File), reply),
        "ra" => value::retry_after(v).and_then(|ra| set(&mut reply.retry_after, ra, name)),
        "date" => value::date(v).and_then(|d| set(&mut reply.date, d, name)),
        _ => return None,
    })
}

/// Words that say how its bytes go out.
fn framing(reply: &mut Reply, name: &str, val: Option<&str>) -> Option<Result<(), Bad>> {
    // `nolast` and `badchunk` are chunked already; saying so is no contradiction.
    let chunks = |reply: &mut Reply, new: Framing| match reply.framing {
        Some(Framing::Chunked) | None => {
            reply.framing = Some(new);
            Ok(())
        }
        Some(_) => Err(contradicts(name)),
    };
    Some(match (name, val) {
        ("cl", Some(v)) => number(v).and_then(|n| set(&mut reply.content_length, n, name)),
        ("chunked", None) => match reply.framing {
            Some(Framing::NoLast | Framing::BadChunk) => Ok(()),
            _ => set(&mut reply.framing, Framing::Chunked, name),
        },
        ("nolast", None) => chunks(reply, Framing::NoLast),
        ("badchunk", None) => chunks(reply, Framing::BadChunk),
        ("until-close", None) => set(&mut reply.framing, Framing::UntilClose, name),
        ("interim", Some(v)) => value::interim(v).and_then(|s| set(&mut reply.interim, s, name)),
        ("garbage", Some(v)) => garbage(v).and_then(|n| set(&mut reply.garbage, n, name)),
        _ => return None,
    })
}

/// Words that say how it ends.
fn end(name: &str, val: Option<&str>) -> Option<Result<End, Bad>> {
    use crate::step::Cut;
    Some(match (name, val) {
        ("close", None) => Ok(End::Close),
        ("quiet-close", None) => Ok(End::QuietClose),
        ("stall", None) => Ok(End::Stall),
        ("idle", Some(v)) => value::duration(v).map(|t| End::Idle(Cut::Fin, t)),
        ("idle-rst", Some(v)) => value::duration(v).map(|t| End::Idle(Cut::Rst, t)),
        ("race", Some("fin")) => Ok(End::Race(Cut::Fin)),
        ("race", Some("rst")) => Ok(End::Race(Cut::Rst)),
        ("race", Some(v)) => Err((format!("unknown race `{v}`"), "write fin or rst".into())),
        ("refused-stream", None) => Ok(End::RefusedStream),
        ("rst-stream", Some(v)) => value::rst_stream(v),
        ("end-stream", None) => Ok(End::EndStream),
        ("goaway", Some("below")) => Ok(End::Goaway(Goaway::Below)),
        ("goaway", Some("covers")) => Ok(End::Goaway(Goaway::Covers)),
        ("goaway", Some("graceful")) => Ok(End::Goaway(Goaway::Graceful)),
        ("goaway", Some(v)) => Err((
            format!("unknown goaway `{v}`"),
            "write below, covers or graceful".into(),
        )),
        _ => return None,
    })
}

fn unknown(name: &str, val: Option<&str>) -> Bad {
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

fn contradicts(name: &str) -> Bad {
    (
        format!("`{name}` contradicts an earlier word"),
        "keep one of them".into(),
    )
}

fn flag(slot: &mut bool, name: &str) -> Result<(), Bad> {
    match std::mem::replace(slot, true) {
        true => Err(contradicts(name)),
        false => Ok(()),
    }
}

fn set<T>(slot: &mut Option<T>, value: T, name: &str) -> Result<(), Bad> {
    if slot.is_some() {
        return Err(contradicts(name));
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

/// `garbage=`: few enough to be kept in memory.
fn garbage(text: &str) -> Result<u32, Bad> {
    match size(text)? {
        n @ 1..=1_048_576 => Ok(n as u32),
        n => Err((format!("{n} bytes of garbage"), "write 1 to 1M".into())),
    }
}

/// `file=`: a path, quoted if it needs to be.
fn file(text: &str) -> Result<FileBody, Bad> {
    let path = match text.starts_with('"') {
        true => value::unquote(text)?,
        false => text.to_owned(),
    };
    if path.is_empty() || path.contains('\0') {
        return Err((
            "a file without a name".into(),
            "write `file=reply.json`".into(),
        ));
    }
    Ok(FileBody::unread(path))
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
