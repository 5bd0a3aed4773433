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
            Self::Fault(hit) => (usize::MAX - 1, usize::try_from(hit.id).unwrap_or(0)),
            Self::Over { .. } => (usize::MAX - 2, 0),
            _ => (usize::MAX, 0),
        }
    }
}

impl Plan {
    /// The step as it was written down, where there is one.
    fn step(&self) -> Option<&Reply> {
        match self {
            Self::Step { .. } => self.step_reply(),
            Self::Outage { reply, .. } => Some(reply),
            Self::Fault(hit) => Some(&hit.reply),
            Self::Over { route, .. } => route.quota.as_ref().map(|q| q.over.as_ref()),
            _ => None,
        }
    }
}

impl Arrival {
    /// Whether the request goes to the upstream, whole.
    pub(super) fn passes(&self) -> bool {
        matches!(self.plan, Plan::Upstream) || self.plan.step().is_some_and(|r| r.pass)
    }

    /// Whether the step leaves the body unread.
    pub(super) fn leaves_unread(&self) -> bool {
        self.plan
            .step()
            .is_some_and(|r| r.early || r.ends_at_head())
    }
}

/// The reply, and what the mock says of itself in it.
pub(super) fn reply<'a>(
    shared: &Shared,
    head: &RequestHead,
    arrival: &'a Arrival,
) -> (Cow<'a, Reply>, Mark) {
    match &arrival.plan {
        Plan::Step { route, n, step, .. } => {
            let reply = arrival
                .plan
                .step_reply()
                .map_or(Cow::Owned(Reply::default()), Cow::Borrowed);
            let number = step + 1;
            let mut mark = marked(format!("{};n={n};step={number}", route.name));
            if reply.body.is_none() {
                let json = serde_json::json!({ "token": arrival.token, "n": n, "step": number });
                mark.json = json.to_string();
            }
            (reply, mark)
        }
        Plan::Outage {
            number,
            reply,
            ends,
        } => {
            let mut mark = marked(format!("outage={number}"));
            mark.auto = Some(seconds_to(shared, *ends));
            (Cow::Borrowed(reply.as_ref()), mark)
        }
        Plan::Fault(hit) => {
            let mut mark = marked(format!("fault={}", hit.id));
            mark.auto = Some(seconds_to(shared, hit.ends));
            (Cow::Borrowed(hit.reply.as_ref()), mark)
        }
        Plan::Over { route, free_at } => {
            let mut mark = marked(format!("{};over-quota", route.name));
            mark.auto = Some(seconds_to(shared, *free_at));
            let reply = route.quota.as_ref().map(|q| q.over.as_ref());
            (
                reply.map_or(Cow::Owned(Reply::status(429)), Cow::Borrowed),
                mark,
            )
        }
        Plan::Down => (Cow::Owned(cut(Cut::Rst)), Mark::default()),
        // The end of the connection is what it meets; that is carried out before.
        Plan::Raced => (Cow::Owned(cut(Cut::Fin)), Mark::default()),
        Plan::Resource { route, id } => super::resource::reply(shared, head, route, id.as_deref()),
        Plan::Upstream => {
            let reply = Reply {
                pass: true,
                ..Reply::default()
            };
            (Cow::Owned(reply), marked("upstream".to_owned()))
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

/// Whole seconds until a moment, rounded up.
fn seconds_to(shared: &Shared, at: u64) -> u64 {
    at.saturating_sub(shared.clock.now())
        .div_ceil(1_000_000_000)
}

fn cut(cut: Cut) -> Reply {
    Reply {
        end: Some(End::At(cut, Point::Head)),
        ..Reply::default()
    }
}

/// A step that means something on HTTP/2 only, on a connection that speaks HTTP/1.
pub(super) fn needs_http2(step: &Reply) -> (Cow<'static, Reply>, Mark) {
    loud(
        "needs-http2",
        format!("the step `{step}` can only be carried out on HTTP/2\n"),
    )
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
