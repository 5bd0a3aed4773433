//! `outage = [{ from, to, clock, routes, do }]`.

use toml::de::DeTable;

use super::parse::known_routes;
use super::reader::{Doc, Res, Value};
use super::{Outage, OutageAction, OutageClock, Scenario};
use crate::notation;
use crate::step::{Action, Reply, Step, Times};

const KEYS: &[&str] = &["from", "to", "clock", "routes", "do"];

pub(super) fn parse(doc: Doc<'_>, v: &Value<'_>, scenario: &Scenario) -> Res<Vec<Outage>> {
    doc.array(v, "outage")?
        .iter()
        .map(|item| one(doc, item, scenario))
        .collect()
}

fn one(doc: Doc<'_>, item: &Value<'_>, scenario: &Scenario) -> Res<Outage> {
    let t = doc.table(item, "outage")?;
    doc.only(t, "outage", KEYS)?;
    let from = match t.get("from") {
        Some(v) => doc.duration(v, "from")?,
        None => std::time::Duration::ZERO,
    };
    let Some(to_value) = t.get("to") else {
        return doc.err(item.span(), "an outage without an end", "add `to = \"7s\"`");
    };
    let to = doc.duration(to_value, "to")?;
    if to <= from {
        return doc.err(
            to_value.span(),
            "the outage ends before it begins",
            "raise `to`",
        );
    }
    let clock = clock(doc, t)?;
    let routes = match t.get("routes") {
        None => None,
        Some(v) => {
            let names = doc.strings(v, "routes")?;
            known_routes(doc, v, &names, scenario)?;
            Some(names)
        }
    };
    let Some(v) = t.get("do") else {
        return doc.err(item.span(), "an outage without `do`", "add `do = \"503\"`");
    };
    let action = action(doc, v, routes.is_some())?;
    Ok(Outage {
        from,
        to,
        clock,
        routes,
        action,
    })
}

fn clock(doc: Doc<'_>, t: &DeTable<'_>) -> Res<OutageClock> {
    let Some(v) = t.get("clock") else {
        return Ok(OutageClock::Start);
    };
    match doc.str(v, "clock")? {
        "start" => Ok(OutageClock::Start),
        "first-request" => Ok(OutageClock::FirstRequest),
        "barrier" => Ok(OutageClock::Barrier),
        "armed" => Ok(OutageClock::Armed),
        other => {
            let what = format!("unknown clock `{other}`");
            doc.err(
                v.span(),
                what,
                "write start, first-request, barrier or armed",
            )
        }
    }
}

fn action(doc: Doc<'_>, v: &Value<'_>, has_routes: bool) -> Res<OutageAction> {
    match doc.str(v, "do")? {
        "down" if has_routes => doc.err(
            v.span(),
            "`down` refuses whole listeners, not routes",
            "remove `routes`, or write a step like \"503\"",
        ),
        "down" if !cfg!(target_os = "linux") => doc.err(
            v.span(),
            "`down` needs SO_REUSEPORT to keep its port, which is not used on this system",
            "write a step like \"503\" or \"rst@req\"",
        ),
        "down" => Ok(OutageAction::Down),
        text => Ok(OutageAction::Reply(step(doc, v, text, "an outage")?)),
    }
}

/// One step that takes no number: of an outage, a quota or a fault.
pub(super) fn step(doc: Doc<'_>, v: &Value<'_>, text: &str, whose: &str) -> Res<Box<Reply>> {
    let step = doc.notation(v, notation::parse_step(text))?;
    let mut reply = doc.bad(v, plain_step(step, whose))?;
    doc.files(v, std::iter::once(reply.as_mut()))?;
    Ok(reply)
}

/// The reply of a step that is not counted in arrivals.
pub(crate) fn plain_step(step: Step, whose: &str) -> Result<Box<Reply>, (String, String)> {
    if step.times != Times::N(1) {
        return Err((
            format!("{whose} is not counted in arrivals"),
            "remove `xN`".into(),
        ));
    }
    match step.action {
        Action::Pick(_) => Err((
            format!("`pick` in {whose}: only an arrival of a script has a draw"),
            "write one step".into(),
        )),
        Action::Reply(r) if r.create.is_some() => {
            Err((format!("{whose} has no effects"), "remove `create`".into()))
        }
        Action::Reply(r) => Ok(r),
    }
}
