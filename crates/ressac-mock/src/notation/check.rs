//! Contradictions between the words of a step.

use super::value::Bad;
use crate::step::{Body, End, Framing, Goaway, Point, Reply};

fn bad(what: impl Into<String>, fix: &str) -> Result<(), Bad> {
    Err((what.into(), fix.to_owned()))
}

/// Contradictions between words.
pub(crate) fn check_reply(r: &Reply) -> Result<(), Bad> {
    check_effect(r)?;
    check_reading(r)?;
    check_nothing(r)?;
    check_framing(r)?;
    check_length(r)?;
    if r.code.is_some() && !matches!(r.end, Some(End::Goaway(_) | End::Close)) {
        return bad("`code` without a `goaway`", "add `goaway=covers`");
    }
    Ok(())
}

fn check_effect(r: &Reply) -> Result<(), Bad> {
    if r.create.is_none() {
        return Ok(());
    }
    if r.ends_at_head() || r.early {
        return bad(
            "`create` needs the whole request, the end comes before",
            "end at `req` or later, without `early`",
        );
    }
    if r.pass {
        return bad(
            "`create` with `pass`: the effect is the upstream's",
            "keep one of them",
        );
    }
    Ok(())
}

fn check_reading(r: &Reply) -> Result<(), Bad> {
    if r.early && r.expect.is_some() {
        return bad(
            "`early` reads no body, `expect` asks for one",
            "keep one of them",
        );
    }
    if r.early
        && !matches!(
            r.end,
            None | Some(End::Close | End::QuietClose | End::At(_, _))
        )
    {
        return bad(
            "`early` ends the connection",
            "end it with close, fin@end or rst@end",
        );
    }
    if r.early && r.ends_at_head() {
        return bad(
            "`early` sends a reply, the end comes before",
            "leave one of them out",
        );
    }
    if matches!(r.end, Some(End::At(_, Point::Interim))) && r.interim.is_none() {
        return bad(
            "the end is at `interim`, yet there is none",
            "add `interim=103`",
        );
    }
    if r.pass && (r.body.is_some() || r.framing.is_some() || r.garbage.is_some()) {
        return bad(
            "`pass` sends the upstream's body",
            "leave the other body out",
        );
    }
    if r.pass && (r.early || r.ends_at_head()) {
        return bad(
            "`pass` needs the whole request",
            "end at `req` or later, without `early`",
        );
    }
    Ok(())
}

fn check_nothing(r: &Reply) -> Result<(), Bad> {
    let said = r.body.is_some()
        || r.retry_after.is_some()
        || !r.headers.is_empty()
        || r.content_length.is_some()
        || r.date.is_some()
        || r.framing.is_some()
        || r.gap.is_some()
        || r.drip.is_some()
        || r.drip_head.is_some();
    if r.sends_nothing() && (said || r.garbage.is_some()) {
        return bad(
            "nothing is sent, so these words have no effect",
            "end at `hdr` or later, or give a status",
        );
    }
    if r.garbage.is_some() && (said || r.status.is_some() || r.end.is_some() || r.interim.is_some())
    {
        return bad(
            "`garbage` is sent instead of a reply",
            "leave the other words out",
        );
    }
    if r.ends_at_head() && r.interim.is_some() {
        return bad(
            "the end comes before the interim reply",
            "end at `interim` or later",
        );
    }
    Ok(())
}

fn check_framing(r: &Reply) -> Result<(), Bad> {
    let status = r.effective_status();
    let framed = r.content_length.is_some() || r.framing.is_some();
    if matches!(status, 204 | 304) && (r.body.is_some() || framed) {
        return bad(
            format!("a {status} has no body"),
            "leave body and length out",
        );
    }
    match (r.framing, r.content_length) {
        (None, _) => Ok(()),
        (Some(_), Some(_)) => bad(
            "a length and another framing",
            "leave `cl` or the other out",
        ),
        (Some(Framing::NoLast | Framing::BadChunk | Framing::UntilClose), None)
            if matches!(
                r.end,
                Some(End::Idle(..) | End::Race(_) | End::Close | End::QuietClose)
            ) =>
        {
            bad(
                "this framing ends the connection by itself",
                "leave the other end out",
            )
        }
        (Some(_), None) => Ok(()),
    }
}

fn check_length(r: &Reply) -> Result<(), Bad> {
    let (Some(End::At(_, Point::Body(n))) | Some(End::RstStream(_, Point::Body(n)))) = r.end else {
        return match r.end {
            Some(End::Goaway(Goaway::Graceful) | End::Idle(..) | End::Race(_)) if short(r) => bad(
                "a body shorter than its length cannot be kept alive",
                "end it otherwise",
            ),
            _ => Ok(()),
        };
    };
    if length(r).is_some_and(|len| n > len) {
        return bad(
            format!("the end is at body byte {n}, the body ends before"),
            "add `body=N` with a larger N",
        );
    }
    Ok(())
}

/// Whether fewer bytes are sent than are announced.
fn short(r: &Reply) -> bool {
    matches!((r.content_length, length(r)), (Some(n), Some(len)) if n > len)
}

/// How long the body is, where that is known before it is made.
fn length(r: &Reply) -> Option<u64> {
    match &r.body {
        Some(Body::Pattern(len)) => Some(*len),
        Some(Body::Text(t) | Body::Json(t)) => Some(t.len() as u64),
        Some(Body::File(_)) => None,
        None if r.pass => None,
        None if (200..300).contains(&r.effective_status()) && r.effective_status() != 204 => None,
        None => Some(0),
    }
}
