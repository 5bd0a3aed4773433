//! From a [`Script`] back to text that parses to the same script.

use std::fmt;
use std::time::Duration;

use super::value::quote;
use crate::step::{
    Action, Barrier, Body, Create, Cut, DateForm, DateWord, Drip, End, Expect, Framing, Goaway,
    Hold, Pick, Point, Reply, RetryAfter, Script, Step, Times,
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
    w.extend(r.headers.iter().map(|(n, v)| format!("h={n}:{}", bare(v))));
    w.extend(r.body.as_ref().map(|b| match b {
        Body::Pattern(n) => format!("body={n}"),
        Body::Text(t) => format!("text={}", quote(t)),
        Body::Json(j) => format!("json={j}"),
        Body::File(f) => format!("file={}", bare(&f.path)),
    }));
    w.extend(r.retry_after.as_ref().map(retry_after));
    w.extend(r.date.map(|d| match d {
        DateWord::Omit => "date=none".to_owned(),
        DateWord::Shift(ms) => format!("date={}", signed(ms)),
    }));
    w.extend(r.content_length.map(|n| format!("cl={n}")));
    w.extend(r.framing.map(|f| match f {
        Framing::Chunked => "chunked".to_owned(),
        Framing::NoLast => "chunked nolast".to_owned(),
        Framing::BadChunk => "chunked badchunk".to_owned(),
        Framing::UntilClose => "until-close".to_owned(),
    }));
    w.extend(r.garbage.map(|n| format!("garbage={n}")));
    behaviour(r, &mut w);
    w.extend(r.end.map(end));
    w.extend(r.code.map(|c| format!("code={c}")));
    w
}

fn behaviour(r: &Reply, w: &mut Vec<String>) {
    w.extend(r.hold.map(|h| format!("hold={}", hold(h))));
    w.extend(r.interim.map(|s| format!("interim={s}")));
    w.extend(r.gap.map(|h| format!("gap={}", hold(h))));
    w.extend(r.drip.map(|d| format!("drip={}", drip(d))));
    w.extend(r.drip_head.map(|d| format!("drip-head={}", drip(d))));
    w.extend(r.early.then(|| "early".to_owned()));
    w.extend(r.expect.map(|e| match e {
        Expect::Auto => "expect=auto".to_owned(),
        Expect::Late(d) => format!("expect=late:{}", duration(d)),
        Expect::Never => "expect=never".to_owned(),
        Expect::Fail => "expect=417".to_owned(),
        Expect::Final => "expect=final".to_owned(),
    }));
    w.extend(r.pass.then(|| "pass".to_owned()));
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
}

fn hold(h: Hold) -> String {
    match h {
        Hold::For(d) => duration(d),
        Hold::Between(a, b) => format!("{}..{}", duration(a), duration(b)),
        Hold::Forever => "*".to_owned(),
    }
}

fn drip(d: Drip) -> String {
    format!("{}/{}", d.bytes, duration(d.every))
}

/// As it is where that can stand without quotes.
fn bare(v: &str) -> String {
    if plain(v) { v.to_owned() } else { quote(v) }
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
    match e {
        End::Close => "close".to_owned(),
        End::QuietClose => "quiet-close".to_owned(),
        End::Stall => "stall".to_owned(),
        End::Idle(Cut::Fin, t) => format!("idle={}", duration(t)),
        End::Idle(Cut::Rst, t) => format!("idle-rst={}", duration(t)),
        End::Race(c) => format!("race={}", cut(c)),
        End::RefusedStream => "refused-stream".to_owned(),
        End::RstStream(code, Point::Hdr) => format!("rst-stream={code}@hdr"),
        End::RstStream(code, Point::Body(n)) => format!("rst-stream={code}@body+{n}"),
        End::RstStream(code, _) => format!("rst-stream={code}"),
        End::EndStream => "end-stream".to_owned(),
        End::Goaway(Goaway::Below) => "goaway=below".to_owned(),
        End::Goaway(Goaway::Covers) => "goaway=covers".to_owned(),
        End::Goaway(Goaway::Graceful) => "goaway=graceful".to_owned(),
        End::At(c, Point::Head) => format!("{}@head", cut(c)),
        End::At(c, Point::Req) => format!("{}@req", cut(c)),
        End::At(c, Point::Interim) => format!("{}@interim", cut(c)),
        End::At(c, Point::Hdr) => format!("{}@hdr", cut(c)),
        End::At(c, Point::Body(n)) => format!("{}@body+{n}", cut(c)),
        End::At(c, Point::End) => format!("{}@end", cut(c)),
    }
}

fn cut(c: Cut) -> &'static str {
    match c {
        Cut::Fin => "fin",
        Cut::Rst => "rst",
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
