//! From a [`Script`] back to text that parses to the same script.

use std::fmt;
use std::time::Duration;

use super::value::quote;
use crate::step::{
    Action, Barrier, Body, Create, Cut, DateForm, DateWord, End, Hold, Pick, Point, Reply,
    RetryAfter, Script, Step, Times,
};

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, step) in self.steps.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{step}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.action {
            Action::Reply(r) => write!(f, "{r}")?,
            Action::Pick(p) => write!(f, "{p}")?,
        }
        match self.times {
            Times::N(1) => Ok(()),
            Times::N(n) => write!(f, " x{n}"),
            Times::Forever => f.write_str(" x*"),
        }
    }
}

impl fmt::Display for Pick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("pick(")?;
        for (p, r) in &self.arms {
            write!(f, "{p}:{r}, ")?;
        }
        write!(f, "else:{})", self.otherwise)
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&words(self).join(" "))
    }
}

fn words(r: &Reply) -> Vec<String> {
    let mut w = Vec::new();
    w.extend(r.status.map(|s| s.to_string()));
    w.extend(r.headers.iter().map(|(n, v)| match plain(v) {
        true => format!("h={n}:{v}"),
        false => format!("h={n}:{}", quote(v)),
    }));
    w.extend(r.body.as_ref().map(|b| match b {
        Body::Pattern(n) => format!("body={n}"),
        Body::Text(t) => format!("text={}", quote(t)),
        Body::Json(j) => format!("json={j}"),
    }));
    w.extend(r.retry_after.as_ref().map(retry_after));
    w.extend(r.date.map(|d| match d {
        DateWord::Omit => "date=none".to_owned(),
        DateWord::Shift(ms) => format!("date={}", signed(ms)),
    }));
    w.extend(r.hold.map(|h| match h {
        Hold::For(d) => format!("hold={}", duration(d)),
        Hold::Between(a, b) => format!("hold={}..{}", duration(a), duration(b)),
        Hold::Forever => "hold=*".to_owned(),
    }));
    w.extend(r.content_length.map(|n| format!("cl={n}")));
    w.extend(r.create.map(|c| match c {
        Create::Now => "create".to_owned(),
        Create::Slow(d) => format!("create=slow:{}", duration(d)),
        Create::Abandon => "create=abandon".to_owned(),
    }));
    w.extend(
        r.barrier
            .map(|b| match b.timeout == Barrier::DEFAULT_TIMEOUT {
                true => format!("barrier={}", b.arrivals),
                false => format!("barrier={}:{}", b.arrivals, duration(b.timeout)),
            }),
    );
    w.extend(r.end.map(end));
    w
}

fn retry_after(ra: &RetryAfter) -> String {
    match ra {
        RetryAfter::Auto => "ra=auto".to_owned(),
        RetryAfter::Text(t) if !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit()) => {
            format!("ra={t}")
        }
        RetryAfter::Text(t) => format!("ra={}", quote(t)),
        RetryAfter::Date { form, offset_ms } => {
            let form = match form {
                DateForm::Imf => "",
                DateForm::Rfc850 => "850",
                DateForm::Asctime => "asc",
            };
            format!("ra=@{form}{}", signed(*offset_ms))
        }
    }
}

fn end(e: End) -> String {
    let (cut, point) = match e {
        End::Close => return "close".to_owned(),
        End::Stall => return "stall".to_owned(),
        End::At(Cut::Fin, p) => ("fin", p),
        End::At(Cut::Rst, p) => ("rst", p),
    };
    match point {
        Point::Head => format!("{cut}@head"),
        Point::Req => format!("{cut}@req"),
        Point::Hdr => format!("{cut}@hdr"),
        Point::Body(n) => format!("{cut}@body+{n}"),
        Point::End => format!("{cut}@end"),
    }
}

/// Whether a header value can stand without quotes.
fn plain(v: &str) -> bool {
    let safe = |b: u8| b.is_ascii_graphic() && !b"\",{}[]()\\".contains(&b);
    !v.is_empty() && v.bytes().all(safe)
}

fn signed(ms: i64) -> String {
    let sign = if ms < 0 { '-' } else { '+' };
    format!(
        "{sign}{}",
        duration(Duration::from_millis(ms.unsigned_abs()))
    )
}

/// The largest unit that leaves a whole number.
pub(crate) fn duration(d: Duration) -> String {
    let ms = d.as_millis();
    match ms {
        0 => "0s".to_owned(),
        _ if ms.is_multiple_of(3_600_000) => format!("{}h", ms / 3_600_000),
        _ if ms.is_multiple_of(60_000) => format!("{}m", ms / 60_000),
        _ if ms.is_multiple_of(1_000) => format!("{}s", ms / 1_000),
        _ => format!("{ms}ms"),
    }
}
