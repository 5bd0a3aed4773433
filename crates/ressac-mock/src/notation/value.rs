//! Values of words: durations, dates, end points, quoted text.

use std::time::Duration;

use crate::step::{Cut, DateForm, DateWord, Drip, End, Expect, H2Code, Hold, Point, RetryAfter};

/// The longest duration that can be written: a hundred years, so that no sum overflows.
const MAX_MS: u64 = 100 * 366 * 24 * 3_600_000;
/// The longest Retry-After text.
const MAX_TEXT: usize = 1024;

/// A complaint and its fix.
pub(crate) type Bad = (String, String);

fn bad<T>(what: impl Into<String>, fix: impl Into<String>) -> Result<T, Bad> {
    Err((what.into(), fix.into()))
}

/// `20ms 2s 10m 1h`.
pub(crate) fn duration(text: &str) -> Result<Duration, Bad> {
    const FIX: &str = "write a whole number and ms, s, m or h, like `20ms` or `2s`";
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let unit: u64 = match &text[digits..] {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return bad(format!("`{text}` is not a duration"), FIX),
    };
    let n: u64 = match text[..digits].parse() {
        Ok(n) => n,
        Err(_) => return bad(format!("`{text}` is not a duration"), FIX),
    };
    match n.checked_mul(unit) {
        Some(ms) if ms <= MAX_MS => Ok(Duration::from_millis(ms)),
        _ => bad(
            format!("`{text}` is too long"),
            "stay below a hundred years, or use `*`",
        ),
    }
}

/// `+10m` or `-1h`, in milliseconds.
pub(crate) fn signed_ms(text: &str) -> Result<i64, Bad> {
    let (sign, rest) = match (text.strip_prefix('+'), text.strip_prefix('-')) {
        (Some(rest), _) => (1, rest),
        (_, Some(rest)) => (-1, rest),
        _ => return bad(format!("`{text}` has no sign"), "write `+3s` or `-3s`"),
    };
    // A hundred years of milliseconds fit.
    Ok(sign * i64::try_from(duration(rest)?.as_millis()).unwrap_or(i64::MAX))
}

/// `T`, `a..b` or `*`.
pub(crate) fn hold(text: &str) -> Result<Hold, Bad> {
    if text == "*" {
        return Ok(Hold::Forever);
    }
    match text.split_once("..") {
        None => Ok(Hold::For(duration(text)?)),
        Some((a, b)) => {
            let (a, b) = (duration(a)?, duration(b)?);
            if a >= b {
                return bad("the range is empty", "write the shorter duration first");
            }
            Ok(Hold::Between(a, b))
        }
    }
}

/// `ra=`.
pub(super) fn retry_after(text: &str) -> Result<RetryAfter, Bad> {
    if text == "auto" {
        return Ok(RetryAfter::Auto);
    }
    if text.starts_with('"') {
        return Ok(RetryAfter::Text(header_text(&unquote(text)?)?));
    }
    if let Some(date) = text.strip_prefix('@') {
        let (form, offset) = match (date.strip_prefix("850"), date.strip_prefix("asc")) {
            (Some(rest), _) => (DateForm::Rfc850, rest),
            (_, Some(rest)) => (DateForm::Asctime, rest),
            _ => (DateForm::Imf, date),
        };
        return Ok(RetryAfter::Date {
            form,
            offset_ms: signed_ms(offset)?,
        });
    }
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        return Ok(RetryAfter::Text(header_text(text)?));
    }
    bad(
        format!("`{text}` is not a Retry-After"),
        "write seconds, `auto`, `@+3s`, `@850+3s`, `@asc+3s`, or any text in quotes",
    )
}

/// Text that can stand in a header line without starting another one.
pub(crate) fn header_text(text: &str) -> Result<String, Bad> {
    if text.len() > MAX_TEXT {
        return bad("longer than 1024 bytes", "shorten it");
    }
    match text.chars().find(|c| *c != '\t' && c.is_control()) {
        Some(_) => bad(
            "a control character in a header",
            "a header line cannot hold one",
        ),
        None => Ok(text.to_owned()),
    }
}

/// `date=`.
pub(super) fn date(text: &str) -> Result<DateWord, Bad> {
    match text {
        "none" => Ok(DateWord::Omit),
        _ => Ok(DateWord::Shift(signed_ms(text).map_err(|(what, _)| {
            (what, "write `+10m`, `-10m` or `none`".to_owned())
        })?)),
    }
}

/// `fin@P` or `rst@P`; `None` if the word is neither.
pub(crate) fn end_point(word: &str) -> Option<Result<End, Bad>> {
    let (cut, point) = match (word.strip_prefix("fin@"), word.strip_prefix("rst@")) {
        (Some(p), _) => (Cut::Fin, p),
        (_, Some(p)) => (Cut::Rst, p),
        _ => return None,
    };
    let point = match point {
        "head" => Point::Head,
        "req" => Point::Req,
        "interim" => Point::Interim,
        "hdr" => Point::Hdr,
        "end" => Point::End,
        _ => match point.strip_prefix("body+").map(str::parse) {
            Some(Ok(n)) => Point::Body(n),
            _ => {
                return Some(bad(
                    format!("`{point}` is no point of an exchange"),
                    "write head, req, interim, hdr, body+N or end",
                ));
            }
        },
    };
    Some(Ok(End::At(cut, point)))
}

/// `N/T`.
pub(super) fn drip(text: &str) -> Result<Drip, Bad> {
    const FIX: &str = "write bytes and time, like `10/400ms`";
    let Some((n, t)) = text.split_once('/') else {
        return bad(format!("`{text}` is no drip"), FIX);
    };
    let every = duration(t)?;
    match n.parse::<u32>() {
        Ok(bytes) if bytes > 0 && !n.starts_with('+') => Ok(Drip { bytes, every }),
        _ => bad(format!("`{n}` is no number of bytes"), FIX),
    }
}

/// `interim=`: any 1xx but 101, which would end HTTP on the connection.
pub(super) fn interim(text: &str) -> Result<u16, Bad> {
    match text.parse::<u16>() {
        Ok(s @ (100 | 102..=199)) => Ok(s),
        _ => bad(
            format!("`{text}` is no interim status"),
            "write 103, or another 1xx but 101",
        ),
    }
}

/// `expect=`.
pub(super) fn expect(text: &str) -> Result<Expect, Bad> {
    match (text, text.strip_prefix("late:")) {
        ("auto", _) => Ok(Expect::Auto),
        ("never", _) => Ok(Expect::Never),
        ("417", _) => Ok(Expect::Fail),
        ("final", _) => Ok(Expect::Final),
        (_, Some(t)) => Ok(Expect::Late(duration(t)?)),
        _ => bad(
            format!("unknown expect `{text}`"),
            "write auto, late:T, never, 417 or final",
        ),
    }
}

/// An error code of HTTP/2 by its name.
pub(super) fn code(text: &str) -> Result<H2Code, Bad> {
    match H2Code::named(text) {
        Some(code) => Ok(code),
        None => {
            let known = H2Code::NAMES.iter().copied();
            let fix = match super::suggest(text, known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "write one like `CANCEL` or `INTERNAL_ERROR` (RFC 9113, 7)".to_owned(),
            };
            bad(format!("`{text}` is no error code"), fix)
        }
    }
}

/// `CODE`, `CODE@hdr` or `CODE@body+N`.
pub(super) fn rst_stream(text: &str) -> Result<End, Bad> {
    let (name, point) = match text.split_once('@') {
        Some((name, point)) => (name, Some(point)),
        None => (text, None),
    };
    let code = code(name)?;
    let point = match point {
        None => Point::Req,
        Some("hdr") => Point::Hdr,
        Some(p) => match p.strip_prefix("body+").map(str::parse) {
            Some(Ok(n)) => Point::Body(n),
            _ => return bad(format!("`{p}` is no point here"), "write hdr or body+N"),
        },
    };
    Ok(End::RstStream(code, point))
}

/// Takes the quotes and the escapes `\" \\ \n \r \t` away.
pub(super) fn unquote(text: &str) -> Result<String, Bad> {
    let inner = text
        .strip_prefix('"')
        .and_then(|t| t.strip_suffix('"'))
        .filter(|_| text.len() > 1);
    let Some(inner) = inner else {
        return bad("this must stand in quotes", "write it as \"..\"");
    };
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        if c == '"' {
            return bad(
                "text after the closing quote",
                "put the whole value in one pair of quotes",
            );
        }
        if c != '\\' {
            out.push(c);
            continue;
        }
        out.push(match chars.next() {
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some(c @ ('"' | '\\')) => c,
            _ => return bad("an unknown escape", "use \\\" \\\\ \\n \\r or \\t"),
        });
    }
    Ok(out)
}

/// The opposite of [`unquote`].
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
