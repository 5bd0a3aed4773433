//! Contradictions between the words of a step.

use super::value::Bad;
use crate::step::{Body, End, Point, Reply};

/// Contradictions between words.
pub(crate) fn check_reply(r: &Reply) -> Result<(), Bad> {
    let status = r.effective_status();
    if r.create.is_some() && r.ends_at_head() {
        return Err((
            "`create` needs the whole request, the end comes before".into(),
            "end at `req` instead of `head`".into(),
        ));
    }
    if matches!(status, 204 | 304) && (r.body.is_some() || r.content_length.is_some()) {
        return Err((
            format!("a {status} has no body"),
            "leave body and length out".into(),
        ));
    }
    if r.sends_nothing() {
        let idle = r.body.is_some() || r.retry_after.is_some() || !r.headers.is_empty();
        if idle || r.content_length.is_some() || r.date.is_some() {
            return Err((
                "nothing is sent, so these words have no effect".into(),
                "end at `hdr` or later, or give a status".into(),
            ));
        }
    }
    if let Some(End::At(_, Point::Body(n))) = r.end {
        let len = match &r.body {
            Some(Body::Pattern(len)) => Some(*len),
            Some(Body::Text(t) | Body::Json(t)) => Some(t.len() as u64),
            None if (200..300).contains(&status) && status != 204 => None,
            None => Some(0),
        };
        if len.is_some_and(|len| n > len) {
            return Err((
                format!("the end is at body byte {n}, the body ends before"),
                "add `body=N` with a larger N".into(),
            ));
        }
    }
    Ok(())
}
