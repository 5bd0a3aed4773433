//! `[[route]]`.

use toml::de::DeTable;

use super::reader::{Doc, Res, Value};
use super::{ListenerSpec, PathPattern, Route, Scope};
use crate::step::{RetryAfter, Script};

const KEYS: &[&str] = &[
    "name",
    "method",
    "path",
    "scope",
    "listener",
    "token_header",
    "script",
    "step",
    "resource",
    "quota",
];
/// The most routes of one scenario.
const MAX_ROUTES: usize = 10_000;

pub(super) fn parse(doc: Doc<'_>, v: &Value<'_>, listeners: &[ListenerSpec]) -> Res<Vec<Route>> {
    let items = doc.array(v, "route")?;
    if items.len() > MAX_ROUTES {
        return doc.err(
            v.span(),
            "more than 10000 routes",
            "use {token} in one path",
        );
    }
    let mut names = std::collections::HashSet::new();
    let mut out = Vec::with_capacity(items.len());
    for item in items {
        let route = one(doc, item, listeners)?;
        if !names.insert(route.name.clone()) {
            let what = format!("two routes named `{}`", route.name);
            return doc.err(item.span(), what, "rename one");
        }
        out.push(route);
    }
    Ok(out)
}

fn one(doc: Doc<'_>, item: &Value<'_>, listeners: &[ListenerSpec]) -> Res<Route> {
    let t = doc.table(item, "route")?;
    doc.only(t, "[[route]]", KEYS)?;
    let (Some(name), Some(path)) = (t.get("name"), t.get("path")) else {
        return doc.err(item.span(), "a route needs `name` and `path`", "add both");
    };
    let name = name_of(doc, name)?;
    let path = doc.bad(path, PathPattern::parse(doc.str(path, "path")?))?;
    let token_header = match t.get("token_header") {
        None => None,
        Some(v) => {
            let h = doc.str(v, "token_header")?.to_owned();
            doc.bad(v, crate::notation::check_header(&h, ""))?;
            Some(h)
        }
    };
    let scope = scope(doc, t)?;
    if scope == Scope::Token && token_header.is_none() && !path.has_token() {
        let at = t.get("scope").map_or(item.span(), toml::Spanned::span);
        return doc.err(
            at,
            "scope `token` without a token",
            "put `{token}` into the path, or add `token_header`",
        );
    }
    let route = Route {
        name,
        methods: methods(doc, t)?,
        path,
        scope,
        token_header,
        listener: listener(doc, t, listeners)?,
        script: script(doc, item, t)?,
        resource_id: resource(doc, t)?,
        quota: match t.get("quota") {
            Some(v) => Some(super::quota::parse(doc, v)?),
            None => None,
        },
    };
    if let Some(v) = t.get("quota") {
        super::quota::check(doc, v, &route)?;
    }
    Ok(route)
}

fn name_of(doc: Doc<'_>, v: &Value<'_>) -> Res<String> {
    let name = doc.str(v, "name")?;
    let fine = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    if name.is_empty() || name.len() > 100 || !name.bytes().all(fine) {
        return doc.err(
            v.span(),
            format!("`{name}` cannot name a route: it goes into a header"),
            "use up to 100 letters, digits, `-`, `_` and `.`",
        );
    }
    Ok(name.to_owned())
}

fn methods(doc: Doc<'_>, t: &DeTable<'_>) -> Res<Vec<String>> {
    let Some(v) = t.get("method") else {
        return Ok(Vec::new());
    };
    let list = doc.strings(v, "method")?;
    for m in &list {
        if m.is_empty() || !m.bytes().all(|b| b.is_ascii_uppercase() || b == b'-') {
            let what = format!("`{m}` is no method");
            return doc.err(v.span(), what, "write it in capitals, like \"POST\"");
        }
    }
    Ok(list)
}

pub(super) fn scope(doc: Doc<'_>, t: &DeTable<'_>) -> Res<Scope> {
    let Some(v) = t.get("scope") else {
        return Ok(Scope::Global);
    };
    match doc.str(v, "scope")? {
        "global" => Ok(Scope::Global),
        "token" => Ok(Scope::Token),
        "key" => Ok(Scope::Key),
        "connection" => Ok(Scope::Connection),
        other => doc.err(
            v.span(),
            format!("unknown scope `{other}`"),
            "write global, token, key or connection",
        ),
    }
}

fn listener(doc: Doc<'_>, t: &DeTable<'_>, listeners: &[ListenerSpec]) -> Res<Option<String>> {
    let Some(v) = t.get("listener") else {
        return Ok(None);
    };
    let name = doc.str(v, "listener")?;
    if listeners.iter().any(|l| l.name == name) {
        return Ok(Some(name.to_owned()));
    }
    let what = format!("no listener is named `{name}`");
    doc.err(v.span(), what, "add a [[listener]] of that name")
}

fn resource(doc: Doc<'_>, t: &DeTable<'_>) -> Res<Option<String>> {
    let Some(v) = t.get("resource") else {
        return Ok(None);
    };
    let table = doc.table(v, "resource")?;
    doc.only(table, "resource", &["id"])?;
    let Some(id) = table.get("id") else {
        return doc.err(
            v.span(),
            "a resource without `id`",
            "add `id = \"pay_{n}\"`",
        );
    };
    let text = doc.str(id, "id")?;
    let fine = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    if !text.contains("{n}") || !text.replace("{n}", "").bytes().all(fine) || text.len() > 100 {
        return doc.err(
            id.span(),
            "an id needs `{n}`, and letters, digits, `-`, `_`, `.` besides",
            "write it like `pay_{n}`",
        );
    }
    Ok(Some(text.to_owned()))
}

fn script(doc: Doc<'_>, item: &Value<'_>, t: &DeTable<'_>) -> Res<Script> {
    let (mut script, at) = match (t.get("script"), t.get("step")) {
        (Some(v), None) => (doc.notation(v, doc.str(v, "script")?.parse::<Script>())?, v),
        (None, Some(v)) => (super::steps::parse(doc, v)?, v),
        (Some(_), Some(v)) => {
            return doc.err(
                v.span(),
                "a route with `script` and `step`",
                "keep one of them",
            );
        }
        (None, None) => {
            return doc.err(
                item.span(),
                "a route without a script",
                "add `script = \"200 x*\"`",
            );
        }
    };
    doc.bad(at, check_script(&script))?;
    doc.files(at, script.replies_mut())?;
    Ok(script)
}

/// What a script cannot say on a route, though a step can.
pub(crate) fn check_script(script: &Script) -> Result<(), (String, String)> {
    if script
        .replies()
        .any(|r| r.retry_after == Some(RetryAfter::Auto))
    {
        return Err((
            "`ra=auto` has nothing to count to on a route".into(),
            "use it in an outage or a quota, or write seconds".into(),
        ));
    }
    Ok(())
}
