//! The calls themselves.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::Context;
use super::answer::Answer;
use crate::scenario::{Scenario, ScenarioError};
use crate::state::Reset;
use crate::wire::RequestHead;

/// Entries of one page of the journal.
const PAGE: usize = 1000;

pub(super) fn answer(ctx: &Context, head: &RequestHead, body: &[u8]) -> Answer {
    let path = head.path();
    let query = head.target.split_once('?').map_or("", |(_, q)| q);
    if path == "/__ressac/metrics" {
        return only(head, "GET", || metrics(ctx));
    }
    let Some(call) = path.strip_prefix("/__ressac/v1/") else {
        return Answer::problem(404, "calls are under /__ressac/v1/");
    };
    let parts: Vec<&str> = call.split('/').collect();
    match parts.as_slice() {
        ["health"] => only(head, "GET", || Answer::json(&json!({ "status": "ready" }))),
        ["ports"] => only(head, "GET", || ports(ctx)),
        ["stop"] => only(head, "POST", || {
            ctx.shared.stop.send_replace(true);
            Answer::done()
        }),
        ["arm"] => only(head, "POST", || {
            ctx.shared.arm();
            Answer::done()
        }),
        ["scenario"] => only(head, "PUT", || put_scenario(ctx, body)),
        ["reset"] => only(head, "POST", || reset(ctx, body)),
        ["journal"] => only(head, "GET", || journal(ctx, query)),
        ["keys"] => only(head, "GET", || keys(ctx)),
        ["resources", name] => only(head, "GET", || resources(ctx, &decode(name))),
        ["scripts", route] => only(head, "GET", || script(ctx, &decode(route), "")),
        ["scripts", route, scope] => {
            only(head, "GET", || script(ctx, &decode(route), &decode(scope)))
        }
        _ => Answer::problem(404, &format!("there is no call `{call}`")),
    }
}

fn only(head: &RequestHead, method: &str, call: impl FnOnce() -> Answer) -> Answer {
    if head.method == method {
        return call();
    }
    Answer::problem(405, &format!("this call is {method}, not {}", head.method))
}

fn metrics(ctx: &Context) -> Answer {
    let core = ctx.shared.core();
    Answer::text(core.metrics.render(core.journal.dropped()))
}

fn ports(ctx: &Context) -> Answer {
    Answer::json(&ports_json(&ctx.listeners, Some(ctx.addr)))
}

/// The object of `GET ports` and of the ports file.
pub(crate) fn ports_json(
    listeners: &[(String, std::net::SocketAddr)],
    control: Option<std::net::SocketAddr>,
) -> Value {
    let url =
        |a: &std::net::SocketAddr| json!({ "addr": a.to_string(), "url": format!("http://{a}") });
    let named: Map<String, Value> = listeners.iter().map(|(n, a)| (n.clone(), url(a))).collect();
    json!({ "listeners": named, "control": control.as_ref().map(url) })
}

fn put_scenario(ctx: &Context, body: &[u8]) -> Answer {
    let Ok(text) = std::str::from_utf8(body) else {
        return Answer::problem(422, "the scenario is not UTF-8");
    };
    let scenario = match Scenario::parse(text) {
        Ok(s) => s,
        Err(e) => return scenario_problem(&e),
    };
    let open: Vec<&str> = ctx.listeners.iter().map(|(n, _)| n.as_str()).collect();
    let asked: Vec<&str> = scenario.listeners.iter().map(|l| l.name.as_str()).collect();
    if open != asked {
        let detail =
            format!("the listeners are {open:?} and stay open; the scenario has {asked:?}");
        return Answer::problem(422, &detail);
    }
    ctx.shared.replace(scenario);
    Answer::done()
}

fn scenario_problem(e: &ScenarioError) -> Answer {
    let mut more = Map::new();
    more.insert("line".into(), e.line().into());
    more.insert("column".into(), e.column().into());
    more.insert("fix".into(), e.fix().into());
    Answer::problem_with(422, &e.to_string(), more)
}

fn reset(ctx: &Context, body: &[u8]) -> Answer {
    if body.is_empty() {
        ctx.shared.reset(&Reset::ALL);
        return Answer::done();
    }
    let what = match serde_json::from_slice::<Value>(body) {
        Ok(Value::Object(map)) if map.keys().all(|k| k == "what") => map.get("what").cloned(),
        Ok(_) => return Answer::problem(422, "the body is {\"what\": [..]}, or empty for all"),
        Err(e) => return Answer::problem(400, &format!("not JSON: {e}")),
    };
    let words = match what {
        None => {
            ctx.shared.reset(&Reset::ALL);
            return Answer::done();
        }
        Some(Value::Array(words)) => words,
        Some(_) => return Answer::problem(422, "`what` is an array of words"),
    };
    let mut list = Vec::new();
    for word in &words {
        list.push(match word.as_str() {
            Some("scripts") => Reset::Scripts,
            Some("journal") => Reset::Journal,
            Some("resources") => Reset::Resources,
            Some("keys") => Reset::Keys,
            Some("faults") => Reset::Faults,
            Some("quotas") => return Answer::problem(422, "quotas are not supported yet"),
            _ => {
                let detail = format!(
                    "unknown word {word}; write scripts, journal, resources, keys or faults"
                );
                return Answer::problem(422, &detail);
            }
        });
    }
    ctx.shared.reset(&list);
    Answer::done()
}

fn journal(ctx: &Context, query: &str) -> Answer {
    let params: HashMap<String, String> = query
        .split('&')
        .filter(|p| !p.is_empty())
        .map(|p| p.split_once('=').unwrap_or((p, "")))
        .map(|(k, v)| (decode(k), decode(v)))
        .collect();
    let mut number = [("since", 0u64), ("limit", PAGE as u64)];
    for (name, value) in &mut number {
        if let Some(text) = params.get(*name) {
            match text.parse() {
                Ok(n) => *value = n,
                Err(_) => {
                    return Answer::problem(400, &format!("`{name}` is not a number: {text:?}"));
                }
            }
        }
    }
    let known = ["since", "limit", "token", "route"];
    if let Some(other) = params.keys().find(|k| !known.contains(&k.as_str())) {
        let detail = format!(
            "unknown parameter {other:?}; there are {}",
            known.join(", ")
        );
        return Answer::problem(400, &detail);
    }
    let limit = usize::try_from(number[1].1).unwrap_or(PAGE).min(PAGE);
    let (token, route) = (params.get("token"), params.get("route"));
    let core = ctx.shared.core();
    let matches = |e: &&crate::journal::Entry| {
        token.is_none_or(|t| e.token.as_ref() == Some(t))
            && route.is_none_or(|r| e.route.as_ref() == Some(r))
    };
    let page: Vec<_> = core
        .journal
        .since(number[0].1)
        .filter(matches)
        .take(limit)
        .cloned()
        .collect();
    let (next, dropped) = (core.journal.next_seq(), core.journal.dropped());
    drop(core);
    Answer::json(&json!({
        "anchor_unix_ns": ctx.shared.clock.anchor_unix_ns(),
        "now": ctx.shared.clock.now(),
        "dropped": dropped,
        "next_seq": next,
        "entries": page,
    }))
}

fn keys(ctx: &Context) -> Answer {
    let core = ctx.shared.core();
    let list: Vec<Value> = core
        .store
        .list()
        .into_iter()
        .map(|(key, done)| {
            let effects = core.resources.by_key.get(&key).copied().unwrap_or(0);
            json!({ "key": key, "state": if done { "done" } else { "in-flight" }, "effects": effects })
        })
        .collect();
    Answer::json(&json!({ "keys": list }))
}

fn resources(ctx: &Context, name: &str) -> Answer {
    let core = ctx.shared.core();
    if !core.routes.iter().any(|r| r.route.name == name) {
        return Answer::problem(404, &format!("no route is named {name:?}"));
    }
    Answer::json(&json!({ "resources": core.resources.of(name) }))
}

fn script(ctx: &Context, route: &str, scope: &str) -> Answer {
    let core = ctx.shared.core();
    let Some(state) = core.routes.iter().find(|r| r.route.name == route) else {
        return Answer::problem(404, &format!("no route is named {route:?}"));
    };
    let arrivals = state.counts.get(scope).copied().unwrap_or(0);
    let script = &state.route.script;
    let next = script.step_for(arrivals + 1);
    let progress = crate::handle::Progress::of(script, arrivals);
    Answer::json(&json!({
        "route": route,
        "scope": scope,
        "script": script.to_string(),
        "arrivals": arrivals,
        "next_step": next.map(|s| s + 1),
        "consumed": progress.consumed,
        "complete": progress.complete,
        "overruns": progress.overruns,
    }))
}

/// Percent-decoding; what is no escape stays as it is.
fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        let hex = text
            .get(i + 1..i + 3)
            .and_then(|h| u8::from_str_radix(h, 16).ok());
        match (bytes[i], hex) {
            (b'%', Some(b)) => {
                out.push(b);
                i += 3;
            }
            (b'+', _) => {
                out.push(b' ');
                i += 1;
            }
            (b, _) => {
                out.push(b);
                i += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
