//! The long form: the words of the notation as TOML keys.

use toml::de::{DeTable, DeValue};

use super::reader::{Doc, Res, Value};
use crate::notation;
use crate::step::{
    Action, Barrier, Body, Create, DateForm, DateWord, End, MAX_TIMES, Reply, RetryAfter, Script,
    Step, Times,
};

const KEYS: &[&str] = &[
    "status",
    "headers",
    "body",
    "text",
    "json",
    "file",
    "retry_after",
    "date",
    "delay_head",
    "delay_body",
    "drip",
    "drip_head",
    "content_length",
    "chunked",
    "nolast",
    "badchunk",
    "until_close",
    "interim",
    "garbage",
    "early",
    "expect",
    "end",
    "idle",
    "idle_rst",
    "race",
    "create",
    "barrier",
    "pass",
    "refused_stream",
    "rst_stream",
    "end_stream",
    "goaway",
    "code",
    "pick",
    "times",
];

/// Keys that are `true` or absent, and their words.
const FLAGS: &[(&str, &str)] = &[
    ("chunked", "chunked"),
    ("nolast", "nolast"),
    ("badchunk", "badchunk"),
    ("until_close", "until-close"),
    ("early", "early"),
    ("pass", "pass"),
    ("refused_stream", "refused-stream"),
    ("end_stream", "end-stream"),
];

/// Keys whose value is written as in the short notation, and their words.
const VALUES: &[(&str, &str)] = &[
    ("delay_head", "hold"),
    ("delay_body", "gap"),
    ("drip", "drip"),
    ("drip_head", "drip-head"),
    ("interim", "interim"),
    ("garbage", "garbage"),
    ("expect", "expect"),
    ("idle", "idle"),
    ("idle_rst", "idle-rst"),
    ("race", "race"),
    ("rst_stream", "rst-stream"),
    ("goaway", "goaway"),
    ("code", "code"),
];

pub(super) fn parse(doc: Doc<'_>, v: &Value<'_>) -> Res<Script> {
    let items = doc.array(v, "step")?;
    if items.is_empty() || items.len() > 10_000 {
        return doc.err(
            v.span(),
            format!("{} steps", items.len()),
            "write 1 to 10000",
        );
    }
    let mut steps = Vec::with_capacity(items.len());
    for (i, item) in items.iter().enumerate() {
        let step = one(doc, item)?;
        if step.times == Times::Forever && i + 1 < items.len() {
            let what = "steps after `times = \"*\"` are never reached";
            return doc.err(item.span(), what, "put it on the last step only");
        }
        steps.push(step);
    }
    Ok(Script { steps })
}

fn one(doc: Doc<'_>, item: &Value<'_>) -> Res<Step> {
    let t = doc.table(item, "step")?;
    doc.only(t, "step", KEYS)?;
    let mut r = Reply::default();
    let mut times = Times::N(1);
    if let Some(v) = t.get("pick") {
        return pick(doc, t, v);
    }
    for (key, v) in t {
        let key: &str = key.get_ref();
        if key == "times" {
            times = self::times(doc, v)?;
        } else {
            apply(doc, &mut r, key, v)?;
        }
    }
    if r == Reply::default() {
        return doc.err(item.span(), "this step is empty", "add `status = 200`");
    }
    doc.bad(item, notation::check_reply(&r))?;
    Ok(Step {
        action: Action::Reply(Box::new(r)),
        times,
    })
}

/// `pick = "0.2:503, else:200"`: the arms as in the short notation.
fn pick(doc: Doc<'_>, t: &DeTable<'_>, v: &Value<'_>) -> Res<Step> {
    if let Some((other, _)) = t
        .iter()
        .find(|(k, _)| !["pick", "times"].contains(&k.get_ref().as_ref()))
    {
        let what = format!("`{}` beside `pick`", other.get_ref());
        return doc.err(other.span(), what, "write it inside the arms");
    }
    let text = format!("pick({})", doc.str(v, "pick")?);
    let mut step = doc.bad(
        v,
        notation::parse_step(&text).map_err(|e| (e.message().to_owned(), e.fix().to_owned())),
    )?;
    if let Some(v) = t.get("times") {
        step.times = times(doc, v)?;
    }
    Ok(step)
}

fn apply(doc: Doc<'_>, r: &mut Reply, key: &str, v: &Value<'_>) -> Res<()> {
    if let Some((_, word)) = FLAGS.iter().find(|(k, _)| *k == key) {
        return match doc.bool(v, key)? {
            true => doc.bad(v, notation::apply(r, word, None)),
            false => Ok(()),
        };
    }
    if let Some((_, word)) = VALUES.iter().find(|(k, _)| *k == key) {
        let text = match v.get_ref() {
            DeValue::Integer(_) => doc.u64(v, key)?.to_string(),
            _ => doc.str(v, key)?.to_owned(),
        };
        return doc.bad(v, notation::apply(r, word, Some(&text)));
    }
    match key {
        "status" => match doc.u64(v, key)? {
            s @ 200..=999 => r.status = Some(s as u16),
            s => return doc.err(v.span(), format!("{s} is not a status"), "write 200 to 999"),
        },
        "headers" => r.headers = headers(doc, v)?,
        "body" | "text" | "json" | "file" => {
            if r.body.is_some() {
                return doc.err(
                    v.span(),
                    "a step has one body",
                    "keep one of body, text, json, file",
                );
            }
            r.body = Some(body(doc, key, v)?);
        }
        "retry_after" => r.retry_after = Some(retry_after(doc, v)?),
        "date" => {
            r.date = Some(match doc.str(v, key)? {
                "none" => DateWord::Omit,
                s => DateWord::Shift(doc.bad(v, notation::signed_ms(s))?),
            });
        }
        "content_length" => r.content_length = Some(doc.u64(v, key)?),
        "end" if r.end.is_some() => {
            return doc.err(v.span(), "a step has one end", "keep one of them");
        }
        "end" => r.end = Some(end(doc, v)?),
        "create" => r.create = create(doc, v)?,
        "barrier" => r.barrier = Some(barrier(doc, v)?),
        _ => return doc.err(v.span(), format!("unknown key `{key}`"), "remove it"),
    }
    Ok(())
}

fn times(doc: Doc<'_>, v: &Value<'_>) -> Res<Times> {
    match v.get_ref() {
        DeValue::String(s) if s == "*" => Ok(Times::Forever),
        _ => match doc.u64(v, "times")? {
            n @ 1..=MAX_TIMES => Ok(Times::N(n)),
            n => doc.err(v.span(), format!("times {n}"), "write 1 to 10^9, or \"*\""),
        },
    }
}

fn headers(doc: Doc<'_>, v: &Value<'_>) -> Res<Vec<(String, String)>> {
    let mut out = Vec::new();
    for pair in doc.array(v, "headers")? {
        let [name, value] = doc.array(pair, "headers")? else {
            return doc.err(
                pair.span(),
                "a header is a pair",
                "write [\"Name\", \"Value\"]",
            );
        };
        let (n, val) = (doc.str(name, "headers")?, doc.str(value, "headers")?);
        doc.bad(name, notation::check_header(n, val))?;
        out.push((n.to_owned(), val.to_owned()));
    }
    Ok(out)
}

fn body(doc: Doc<'_>, key: &str, v: &Value<'_>) -> Res<Body> {
    match (key, v.get_ref()) {
        ("text", _) => Ok(Body::Text(doc.str(v, key)?.to_owned())),
        ("file", _) => file(doc, v),
        ("json", DeValue::String(s)) => Ok(Body::Json(doc.bad(v, notation::json(s.trim()))?)),
        ("json", _) => Ok(Body::Json(to_json(doc, v)?.to_string())),
        (_, DeValue::Table(t)) => {
            doc.only(t, "body", &["size", "file"])?;
            match (t.get("size"), t.get("file")) {
                (Some(n), None) => pattern(doc, n),
                (None, Some(f)) => file(doc, f),
                _ => doc.err(
                    v.span(),
                    "a body without `size` or `file`",
                    "add one of them, like `size = 100`",
                ),
            }
        }
        _ => pattern(doc, v),
    }
}

fn file(doc: Doc<'_>, v: &Value<'_>) -> Res<Body> {
    let mut r = Reply::default();
    let quoted = notation::quote(doc.str(v, "file")?);
    doc.bad(v, notation::apply(&mut r, "file", Some(&quoted)))?;
    r.body
        .map_or_else(|| doc.err(v.span(), "no file", "name one"), Ok)
}

fn pattern(doc: Doc<'_>, v: &Value<'_>) -> Res<Body> {
    match doc.u64(v, "body")? {
        n if n <= notation::MAX_BODY => Ok(Body::Pattern(n)),
        n => doc.err(
            v.span(),
            format!("a body of {n} bytes"),
            "stay at or below 64 MiB",
        ),
    }
}

fn to_json(doc: Doc<'_>, v: &Value<'_>) -> Res<serde_json::Value> {
    Ok(match v.get_ref() {
        DeValue::String(s) => s.to_string().into(),
        DeValue::Boolean(b) => (*b).into(),
        DeValue::Integer(i) => match i64::from_str_radix(i.as_str(), i.radix()) {
            Ok(n) => n.into(),
            Err(_) => return doc.err(v.span(), "the number is too large", "write it as a string"),
        },
        DeValue::Float(f) => match f.as_str().parse::<f64>().ok().filter(|f| f.is_finite()) {
            Some(n) => n.into(),
            None => return doc.err(v.span(), "JSON has no such number", "write it as a string"),
        },
        DeValue::Datetime(d) => d.to_string().into(),
        DeValue::Array(a) => {
            serde_json::Value::Array(a.iter().map(|v| to_json(doc, v)).collect::<Res<_>>()?)
        }
        DeValue::Table(t) => object(doc, t)?,
    })
}

fn object(doc: Doc<'_>, t: &DeTable<'_>) -> Res<serde_json::Value> {
    let pairs = t
        .iter()
        .map(|(k, v)| Ok((k.get_ref().to_string(), to_json(doc, v)?)));
    Ok(serde_json::Value::Object(pairs.collect::<Res<_>>()?))
}

fn retry_after(doc: Doc<'_>, v: &Value<'_>) -> Res<RetryAfter> {
    let t = match v.get_ref() {
        DeValue::Integer(_) => return Ok(RetryAfter::Text(doc.u64(v, "retry_after")?.to_string())),
        DeValue::String(s) if s == "auto" => return Ok(RetryAfter::Auto),
        DeValue::String(s) => return Ok(RetryAfter::Text(doc.bad(v, notation::header_text(s))?)),
        _ => doc.table(v, "retry_after")?,
    };
    doc.only(t, "retry_after", &["date", "form"])?;
    let Some(date) = t.get("date") else {
        return doc.err(
            v.span(),
            "retry_after without `date`",
            "add `date = \"+3s\"`",
        );
    };
    let offset_ms = doc.bad(date, notation::signed_ms(doc.str(date, "date")?))?;
    let form = match t.get("form") {
        None => DateForm::Imf,
        Some(f) => match doc.str(f, "form")? {
            "imf" => DateForm::Imf,
            "rfc850" => DateForm::Rfc850,
            "asctime" => DateForm::Asctime,
            other => {
                let what = format!("unknown form `{other}`");
                return doc.err(f.span(), what, "write imf, rfc850 or asctime");
            }
        },
    };
    Ok(RetryAfter::Date { form, offset_ms })
}

fn end(doc: Doc<'_>, v: &Value<'_>) -> Res<End> {
    let word = doc.str(v, "end")?;
    match (word, notation::end_point(word)) {
        ("close", _) => Ok(End::Close),
        ("quiet-close", _) => Ok(End::QuietClose),
        ("stall", _) => Ok(End::Stall),
        (_, Some(r)) => doc.bad(v, r),
        _ => {
            let what = format!("unknown end `{word}`");
            let fix = "write close, quiet-close, stall, fin@P or rst@P";
            doc.err(v.span(), what, fix)
        }
    }
}

fn create(doc: Doc<'_>, v: &Value<'_>) -> Res<Option<Create>> {
    match v.get_ref() {
        DeValue::Boolean(b) => Ok(b.then_some(Create::Now)),
        DeValue::String(s) if s == "abandon" => Ok(Some(Create::Abandon)),
        _ => match doc.str(v, "create")?.strip_prefix("slow:") {
            Some(t) => Ok(Some(Create::Slow(doc.bad(v, notation::duration(t))?))),
            None => doc.err(
                v.span(),
                "unknown create",
                "write true, \"slow:T\" or \"abandon\"",
            ),
        },
    }
}

fn barrier(doc: Doc<'_>, v: &Value<'_>) -> Res<Barrier> {
    let (n, timeout) = match v.get_ref() {
        DeValue::Table(t) => {
            doc.only(t, "barrier", &["arrivals", "timeout"])?;
            let Some(n) = t.get("arrivals") else {
                return doc.err(
                    v.span(),
                    "a barrier without `arrivals`",
                    "add `arrivals = 10`",
                );
            };
            let timeout = match t.get("timeout") {
                Some(t) => doc.duration(t, "timeout")?,
                None => Barrier::DEFAULT_TIMEOUT,
            };
            (doc.u64(n, "arrivals")?, timeout)
        }
        _ => (doc.u64(v, "barrier")?, Barrier::DEFAULT_TIMEOUT),
    };
    doc.bad(v, notation::make_barrier(n, timeout))
}
