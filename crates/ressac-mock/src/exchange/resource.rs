//! Resources that are read, replaced and removed without a script.

use std::borrow::Cow;

use crate::reply::Mark;
use crate::scenario::Route;
use crate::state::Shared;
use crate::step::{Body, Reply};
use crate::wire::RequestHead;

/// The reply to a request for what was created on a route; `id`: which of it.
///
/// What PUT and DELETE change is changed in [`super::Exchange::change`], once the whole request was
/// read.
pub(super) fn reply(
    shared: &Shared,
    head: &RequestHead,
    route: &Route,
    id: Option<&str>,
) -> (Cow<'static, Reply>, Mark) {
    let core = shared.core();
    let found = match id {
        None => Some(serde_json::json!({ "resources": core.resources.of(&route.name) })),
        Some(id) => core
            .resources
            .get(&route.name, id)
            .map(|r| serde_json::json!(r)),
    };
    drop(core);
    let (status, body) = match (found, head.method.as_str()) {
        (None, _) => (
            404,
            serde_json::json!({ "title": "Not found", "status": 404, "detail": "no such resource" }),
        ),
        (Some(_), "DELETE") => (204, serde_json::Value::Null),
        (Some(json), _) => (200, json),
    };
    let reply = Reply {
        body: (status != 204).then(|| Body::Json(body.to_string())),
        ..Reply::status(status)
    };
    let mark = Mark {
        line: format!("{};resource", route.name),
        json: "{}".to_owned(),
        ..Mark::default()
    };
    (Cow::Owned(reply), mark)
}
