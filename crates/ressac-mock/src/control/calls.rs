//! The calls themselves.

use std::net::SocketAddr;

use serde_json::{Map, Value, json};

use super::answer::Answer;
use super::query::decode;
use super::{Context, journal, listeners};
use crate::fault::Fault;
use crate::scenario::{ListenerSpec, Scenario, ScenarioError};
use crate::state::Reset;
use crate::wire::RequestHead;

pub(super) fn answer(ctx: &Context, head: &RequestHead, body: &[u8]) -> Answer {
    let path = head.path();
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
        ["journal"] => only(head, "GET", || either(journal::page(ctx, head))),
        ["journal", "stream"] => Answer::problem(405, "this call is GET"),
        ["listeners", name, "down"] => only(head, "POST", || {
            either(listeners::down(ctx, &decode(name), body))
        }),
        ["listeners", name, "up"] => {
            only(head, "POST", || either(listeners::up(ctx, &decode(name))))
        }
        ["connections", "close"] => only(head, "POST", || either(listeners::close(ctx, body))),
        ["faults"] if head.method == "GET" => faults(ctx),
        ["faults"] => only(head, "POST", || add_fault(ctx, body)),
        ["faults", id] => only(head, "DELETE", || remove_fault(ctx, id)),
        ["keys"] => only(head, "GET", || keys(ctx)),
        ["resources", name] => only(head, "GET", || resources(ctx, &decode(name))),
        ["scripts", route] => only(head, "GET", || script(ctx, &decode(route), "")),
        ["scripts", route, scope] => {
            only(head, "GET", || script(ctx, &decode(route), &decode(scope)))
        }
        _ => Answer::problem(404, &format!("there is no call `{call}`")),
    }
}

fn either(r: Result<Answer, Answer>) -> Answer {
    r.unwrap_or_else(|problem| problem)
}

fn faults(ctx: &Context) -> Answer {
    let now = ctx.shared.clock.now();
    let list = ctx.shared.core().faults.list(now);
    Answer::json(&json!({ "faults": list }))
}

fn add_fault(ctx: &Context, body: &[u8]) -> Answer {
    let added = Fault::from_json(body).and_then(|f| ctx.shared.add_fault(f));
    match added {
        Ok(id) => Answer::created(&json!({ "id": id })),
        Err(why) => Answer::problem(422, &why),
    }
}

fn remove_fault(ctx: &Context, id: &str) -> Answer {
    let gone = id
        .parse()
        .is_ok_and(|id| ctx.shared.core().faults.remove(id));
    match gone {
        true => Answer::done(),
        false => Answer::problem(404, &format!("there is no fault {id:?}")),
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
    Answer::json(&ports_json(&ctx.ports))
}

/// Where a mock can be reached.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ports {
    /// Name, address and URL of each listener.
    pub(crate) listeners: Vec<(String, SocketAddr, String)>,
    pub(crate) control: Option<SocketAddr>,
    /// Where the authority's certificate lies.
    pub(crate) ca: Option<std::path::PathBuf>,
}

/// The object of `GET ports` and of the ports file.
pub(crate) fn ports_json(ports: &Ports) -> Value {
    let place = |a: &SocketAddr, url: &str| json!({ "addr": a.to_string(), "url": url });
    let named: Map<String, Value> = ports
        .listeners
        .iter()
        .map(|(n, a, url)| (n.clone(), place(a, url)))
        .collect();
    let control = ports.control.map(|a| place(&a, &format!("http://{a}")));
    let ca = ports.ca.as_ref().map(|p| p.display().to_string());
    json!({ "listeners": named, "control": control, "ca": ca })
}

fn put_scenario(ctx: &Context, body: &[u8]) -> Answer {
    let Ok(text) = std::str::from_utf8(body) else {
        return Answer::problem(422, "the scenario is not UTF-8");
    };
    // Whoever calls is not at the machine: no file is read for them.
    let scenario = match Scenario::read(text, None) {
        Ok(s) => s,
        Err(e) => return scenario_problem(&e),
    };
    if let Err(detail) = same_listeners(ctx, &scenario) {
        return Answer::problem(422, &detail);
    }
    if ctx.shared.upstream.is_none()
        && let Some(route) = scenario.passing_route()
    {
        let detail = format!("route {route} says `pass`, and the mock has no upstream");
        return Answer::problem(422, &detail);
    }
    ctx.shared.replace(scenario);
    Answer::done()
}

/// The sockets stay open, so a scenario that wants others cannot be taken.
fn same_listeners(ctx: &Context, scenario: &Scenario) -> Result<(), String> {
    let open = ctx.shared.listeners();
    let names = |of: &mut dyn Iterator<Item = &str>| of.collect::<Vec<_>>().join(", ");
    let asked = &scenario.listeners;
    if open.len() != asked.len() || open.iter().zip(asked).any(|(o, a)| o.spec.name != a.name) {
        return Err(format!(
            "the listeners are {} and stay open; the scenario has {}",
            names(&mut open.iter().map(|o| o.spec.name.as_str())),
            names(&mut asked.iter().map(|a| a.name.as_str())),
        ));
    }
    let differs = open.iter().zip(asked).find(|(o, a)| {
        let accept = o.spec.accept.clone();
        o.spec
            != ListenerSpec {
                accept,
                ..(*a).clone()
            }
    });
    match differs {
        Some((o, _)) => Err(format!(
            "listener {} stays as it was started; only its accept script can change",
            o.spec.name
        )),
        None => Ok(()),
    }
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
            Some("quotas") => Reset::Quotas,
            _ => {
                let detail = format!(
                    "unknown word {word}; write scripts, journal, resources, keys, quotas or faults"
                );
                return Answer::problem(422, &detail);
            }
        });
    }
    ctx.shared.reset(&list);
    Answer::done()
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
