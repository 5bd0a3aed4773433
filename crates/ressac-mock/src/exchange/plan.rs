//! From what an arrival meets to the reply it gets.

use std::borrow::Cow;

use crate::arrive::{Arrival, Plan};
use crate::reply::Mark;
use crate::scenario::Route;
use crate::state::Shared;
use crate::step::{Body, Cut, End, Point, Reply};
use crate::wire::RequestHead;

impl Plan {
    /// Where a barrier of this arrival stands.
    pub(super) fn place(&self) -> crate::barrier::Place {
        match self {
            Self::Step { index, step, .. } => (*index, *step),
            Self::Outage { number, .. } => (usize::MAX, *number),
            _ => (usize::MAX, 0),
        }
    }
}

/// The reply, and what the mock says of itself in it.
pub(super) fn reply<'a>(
    shared: &Shared,
    head: &RequestHead,
    arrival: &'a Arrival,
) -> (Cow<'a, Reply>, Mark) {
    let marked = |line: String| Mark {
        line,
        ..Mark::default()
    };
    match &arrival.plan {
        Plan::Step { route, n, step, .. } => {
            let reply = arrival
                .plan
                .step_reply()
                .map_or(Cow::Owned(Reply::default()), Cow::Borrowed);
            let number = step + 1;
            let json = serde_json::json!({ "token": arrival.token, "n": n, "step": number });
            let mut mark = marked(format!("{};n={n};step={number}", route.name));
            mark.json = json.to_string();
            (reply, mark)
        }
        Plan::Outage {
            number,
            reply,
            ends,
        } => {
            let mut mark = marked(format!("outage={number}"));
            mark.auto = Some(
                ends.saturating_sub(shared.clock.now())
                    .div_ceil(1_000_000_000),
            );
            (Cow::Borrowed(reply.as_ref()), mark)
        }
        Plan::Down => {
            let end = Some(End::At(Cut::Rst, Point::Head));
            (
                Cow::Owned(Reply {
                    end,
                    ..Reply::default()
                }),
                Mark::default(),
            )
        }
        Plan::Overrun { route, scope, n } => loud("script-ended", ended(route, scope, *n)),
        Plan::ScopeTableFull { route } => {
            let text = format!("route {} has more than 100000 scope values\n", route.name);
            loud("scope-table-full", text)
        }
        Plan::NoRoute => {
            let text = format!("no route takes {} {}\n", head.method, head.path());
            let reply = Reply {
                body: Some(Body::Text(text)),
                ..Reply::status(404)
            };
            (Cow::Owned(reply), marked("no-route".to_owned()))
        }
        Plan::Default => (Cow::Owned(Reply::status(200)), marked("default".to_owned())),
    }
}

fn marked(line: String) -> Mark {
    Mark {
        line,
        json: "{}".to_owned(),
        ..Mark::default()
    }
}

fn ended(route: &Route, scope: &str, n: u64) -> String {
    let (name, length) = (&route.name, route.script.finite_len());
    format!(
        "the script of route {name} has ended: scope {scope:?}, script length {length}, \
         arrival {n}\n"
    )
}

/// 599: whatever went wrong in a test must not look like a partner's answer (MO-4).
fn loud(mark: &str, text: String) -> (Cow<'static, Reply>, Mark) {
    let body = Some(Body::Text(text));
    let reply = Reply {
        body,
        end: Some(End::Close),
        ..Reply::status(599)
    };
    (Cow::Owned(reply), marked(mark.to_owned()))
}
