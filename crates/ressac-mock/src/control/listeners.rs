//! Calls that act on listeners and connections.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::Context;
use super::answer::Answer;
use crate::notation;
use crate::step::Cut;
use crate::wire::Slot;

/// The longest that a listener can be told to refuse.
const MAX_DOWN: Duration = Duration::from_secs(3600);

/// The object of a call's body; an empty body is an empty object.
pub(super) fn object(body: &[u8], known: &[&str]) -> Result<Map<String, Value>, Answer> {
    if body.is_empty() {
        return Ok(Map::new());
    }
    let map = match serde_json::from_slice(body) {
        Ok(Value::Object(map)) => map,
        Ok(_) => return Err(Answer::problem(422, "the body is an object")),
        Err(e) => return Err(Answer::problem(400, &format!("not JSON: {e}"))),
    };
    match map.keys().find(|k| !known.contains(&k.as_str())) {
        Some(other) => {
            let detail = format!("unknown key {other:?}; there are {}", known.join(", "));
            Err(Answer::problem(422, &detail))
        }
        None => Ok(map),
    }
}

fn slot<'c>(ctx: &'c Context, name: &str) -> Result<&'c Arc<Slot>, Answer> {
    let mut all = ctx.shared.listeners().iter();
    all.find(|s| s.name.as_ref() == name)
        .ok_or_else(|| Answer::problem(404, &format!("no listener is named {name:?}")))
}

/// `POST listeners/{name}/down {for}`: refuse for a time.
pub(super) fn down(ctx: &Context, name: &str, body: &[u8]) -> Result<Answer, Answer> {
    let slot = slot(ctx, name)?;
    let map = object(body, &["for"])?;
    let time = match map.get("for") {
        None => return Err(Answer::problem(422, "say for how long: {\"for\": \"2s\"}")),
        Some(Value::String(t)) => notation::duration(t)
            .map_err(|(what, fix)| Answer::problem(422, &format!("for: {what}; {fix}")))?,
        Some(_) => return Err(Answer::problem(422, "`for` is a duration like \"2s\"")),
    };
    if time > MAX_DOWN {
        return Err(Answer::problem(422, "`for` is at most 1h"));
    }
    if !cfg!(target_os = "linux") {
        let detail = "`down` needs SO_REUSEPORT to keep its port, not used on this system";
        return Err(Answer::problem(422, detail));
    }
    ctx.shared.set_down(slot, Some(Some(time)));
    Ok(Answer::done())
}

/// `POST listeners/{name}/up`.
pub(super) fn up(ctx: &Context, name: &str) -> Result<Answer, Answer> {
    ctx.shared.set_down(slot(ctx, name)?, None);
    Ok(Answer::done())
}

/// `POST connections/close {listener, how, idle_only}`: FIN or RST now.
pub(super) fn close(ctx: &Context, body: &[u8]) -> Result<Answer, Answer> {
    let map = object(body, &["listener", "how", "idle_only"])?;
    let listener = match map.get("listener") {
        None => None,
        Some(Value::String(name)) => Some(slot(ctx, name)?.name.as_ref()),
        Some(_) => return Err(Answer::problem(422, "`listener` is a name")),
    };
    let cut = match map.get("how").map(Value::as_str) {
        None | Some(Some("fin")) => Cut::Fin,
        Some(Some("rst")) => Cut::Rst,
        Some(_) => return Err(Answer::problem(422, "`how` is fin or rst")),
    };
    let idle_only = match map.get("idle_only") {
        None => false,
        Some(Value::Bool(b)) => *b,
        Some(_) => return Err(Answer::problem(422, "`idle_only` is true or false")),
    };
    let closed = ctx.shared.close_connections(listener, cut, idle_only);
    Ok(Answer::json(&json!({ "closed": closed })))
}
