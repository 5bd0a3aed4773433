//! The arrival of a request: matched, numbered and journaled in one critical section (MO-1).

use std::sync::Arc;

use bytes::Bytes;

use crate::clock::nanos;
use crate::draw::draw;
use crate::fault::Hit;
use crate::journal::{Effect, Entry, Flag, Kind, TlsInfo};
use crate::quota::{QuotaState, Taken};
use crate::scenario::{OutageAction, Quota, Route, Scope};
use crate::state::{Core, Shared};
use crate::step::{Action, Reply};
use crate::store::normalize;
use crate::wire::RequestHead;

/// The most values of one scope.
const MAX_SCOPES: usize = 100_000;

/// Where a request came from, and when.
pub(crate) struct Origin<'a> {
    pub(crate) conn: u64,
    pub(crate) stream: Option<u32>,
    pub(crate) listener: &'a str,
    pub(crate) t_accept: u64,
    pub(crate) t_first: u64,
    pub(crate) tls: Option<&'a Arc<TlsInfo>>,
    /// Whether the head came as early data of TLS.
    pub(crate) early: bool,
}

/// What an arrival is to meet.
pub(crate) struct Arrival {
    /// The place of its entry in the journal.
    pub(crate) place: u64,
    pub(crate) generation: u64,
    pub(crate) token: String,
    pub(crate) key: Option<String>,
    /// What the quota says of itself, where it is to be announced.
    pub(crate) limits: Option<Limits>,
    pub(crate) plan: Plan,
}

/// What `RateLimit-Policy` and `RateLimit` say.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    pub(crate) policy: String,
    pub(crate) state: String,
}

/// What is known of an arrival when a rule looks at it.
pub(crate) struct Matched<'a> {
    pub(crate) token: &'a str,
    pub(crate) key: Option<&'a str>,
    pub(crate) conn: u64,
    pub(crate) now: u64,
}

pub(crate) enum Plan {
    /// A step of a route's script.
    Step {
        index: usize,
        route: Arc<Route>,
        scope: String,
        n: u64,
        step: usize,
        seed: u64,
    },
    /// An outage's reply, and the moment it ends.
    Outage {
        number: usize,
        reply: Box<Reply>,
        ends: u64,
    },
    /// A fault of the control API.
    Fault(Hit),
    /// The quota of the route is used up until this moment.
    Over { route: Arc<Route>, free_at: u64 },
    /// A resource is read or changed, without a script.
    Resource {
        route: Arc<Route>,
        id: Option<String>,
    },
    /// The listeners refuse; this connection was still open.
    Down,
    /// It met the end of a connection that was kept alive.
    Raced,
    /// After the script's end.
    Overrun {
        route: Arc<Route>,
        scope: String,
        n: u64,
    },
    /// Too many values of a scope.
    ScopeTableFull { route: Arc<Route> },
    /// It goes to the upstream.
    Upstream,
    /// No route takes it.
    NoRoute,
    /// There are no routes at all.
    Default,
}

impl Plan {
    /// The label of the route in metrics.
    pub(crate) fn route_name(&self) -> &str {
        match self {
            Self::Step { route, .. }
            | Self::Over { route, .. }
            | Self::Resource { route, .. }
            | Self::Overrun { route, .. }
            | Self::ScopeTableFull { route } => &route.name,
            Self::Outage { .. } | Self::Down => "outage",
            Self::Fault(_) => "fault",
            Self::Upstream => "upstream",
            Self::Raced | Self::NoRoute => "none",
            Self::Default => "default",
        }
    }
}

impl Shared {
    /// Takes an arrival in.
    pub(crate) fn arrive(&self, head: &RequestHead, origin: &Origin<'_>) -> Arrival {
        self.take_in(head, origin, false)
    }

    /// Takes in what meets the end of its connection: no step, no effect.
    pub(crate) fn arrive_raced(&self, head: &RequestHead, origin: &Origin<'_>) -> Arrival {
        self.take_in(head, origin, true)
    }

    fn take_in(&self, head: &RequestHead, origin: &Origin<'_>, raced: bool) -> Arrival {
        let mut core = self.core();
        // Read inside the lock: times of arrival rise with the numbers.
        let now = self.clock.now();
        let first = core.clocks.first_request.is_none();
        core.clocks.first_request.get_or_insert(now);
        let found = core.find(head, origin.listener);
        let header = core
            .scenario
            .idempotency
            .as_ref()
            .map_or("Idempotency-Key", |i| &i.header);
        let key = head.header(header).map(normalize);
        let token = found.as_ref().map(|f| f.token.clone()).unwrap_or_default();
        let route = found
            .as_ref()
            .map(|f| core.routes[f.index].route.name.clone());
        let matched = Matched {
            token: &token,
            key: key.as_ref().map(|k| k.0.as_str()),
            conn: origin.conn,
            now,
        };
        let mut limits = None;
        let plan = match raced {
            true => Plan::Raced,
            false => core.plan(head, found, &matched, self.upstream.is_some(), &mut limits),
        };
        let mut entry = blank_entry(head, origin, now);
        entry.route = route;
        describe(&mut entry, &plan, &token, key.as_ref());
        core.metrics.foreign += u64::from(matches!(plan, Plan::NoRoute));
        if let Plan::Overrun { route, .. } = &plan {
            *core.metrics.overruns.entry(route.name.clone()).or_default() += 1;
        }
        core.metrics.in_flight += 1;
        let place = core.journal.push(entry);
        let generation = core.generation;
        drop(core);
        self.changed.send_replace(());
        if first {
            self.clocks_moved.send_replace(());
        }
        Arrival {
            place,
            generation,
            token,
            key: key.map(|k| k.0),
            limits,
            plan,
        }
    }

    /// Journals what never became a request; the place of its entry.
    pub(crate) fn note_broken(&self, kind: Kind, origin: &Origin<'_>) -> u64 {
        let head = RequestHead::unknown();
        let entry = Entry {
            kind,
            t_req_end: None,
            ..blank_entry(&head, origin, self.clock.now())
        };
        let place = self.core().journal.push(entry);
        self.changed.send_replace(());
        place
    }
}

/// The route that takes a request.
struct Found {
    index: usize,
    token: String,
    /// Whether it takes it only as the keeper of what was created there; the id, if one is named.
    resource: Option<Option<String>>,
}

impl Core {
    /// The first route that takes a request, and its token.
    fn find(&self, head: &RequestHead, listener: &str) -> Option<Found> {
        let path = head.path();
        let here = |r: &Route| r.listener.as_ref().is_none_or(|l| l == listener);
        let takes =
            |r: &Route| (r.methods.is_empty() || r.methods.contains(&head.method)) && here(r);
        let token = |r: &Route, captured: Option<&str>| {
            let named = r.token_header.as_deref().and_then(|h| head.header(h));
            captured.or(named).unwrap_or_default().to_owned()
        };
        let exact = self
            .by_path
            .get(path)
            .copied()
            .filter(|i| takes(&self.routes[*i].route));
        let candidates = exact.into_iter().chain(0..self.scenario.routes.len());
        for index in candidates {
            let route = &self.routes[index].route;
            if takes(route)
                && let Some(captured) = route.path.matches(path)
            {
                return Some(Found {
                    index,
                    token: token(route, captured),
                    resource: None,
                });
            }
        }
        self.find_resource(head, here, token)
    }

    /// The route under whose path a resource is read, replaced or removed.
    fn find_resource(
        &self,
        head: &RequestHead,
        here: impl Fn(&Route) -> bool,
        token: impl Fn(&Route, Option<&str>) -> String,
    ) -> Option<Found> {
        if !matches!(head.method.as_str(), "GET" | "HEAD" | "PUT" | "DELETE") {
            return None;
        }
        let path = head.path();
        let parent = path.rsplit_once('/');
        let reads = matches!(head.method.as_str(), "GET" | "HEAD");
        self.scenario
            .routes
            .iter()
            .enumerate()
            .find_map(|(index, r)| {
                if r.resource_id.is_none() || !here(r) {
                    return None;
                }
                let list = r.path.matches(path).filter(|_| reads);
                let one = parent.and_then(|(p, id)| Some((r.path.matches(p)?, id)));
                let (captured, id) = match (list, one) {
                    (Some(captured), _) => (captured, None),
                    (None, Some((captured, id))) => (captured, Some(id.to_owned())),
                    (None, None) => return None,
                };
                Some(Found {
                    index,
                    token: token(r, captured),
                    resource: Some(id),
                })
            })
    }

    fn plan(
        &mut self,
        head: &RequestHead,
        found: Option<Found>,
        m: &Matched<'_>,
        upstream: bool,
        limits: &mut Option<Limits>,
    ) -> Plan {
        let name = found
            .as_ref()
            .map(|f| self.routes[f.index].route.name.as_str());
        if let Some((i, ends)) = self.clocks.hit(&self.scenario.outages, m.now, name) {
            return match &self.scenario.outages[i].action {
                OutageAction::Down => Plan::Down,
                OutageAction::Reply(r) => Plan::Outage {
                    number: i + 1,
                    reply: r.clone(),
                    ends,
                },
            };
        }
        if let Some(hit) = self.faults.hit(head, m, self.scenario.seed) {
            return Plan::Fault(hit);
        }
        let Some(found) = found else {
            return match (upstream, self.routes.is_empty()) {
                (true, _) => Plan::Upstream,
                (false, true) => Plan::Default,
                (false, false) => Plan::NoRoute,
            };
        };
        self.plan_route(found, m, limits)
    }

    fn plan_route(&mut self, found: Found, m: &Matched<'_>, limits: &mut Option<Limits>) -> Plan {
        let seed = self.scenario.seed;
        let state = &mut self.routes[found.index];
        let route = Arc::clone(&state.route);
        if let Some(id) = found.resource {
            return Plan::Resource { route, id };
        }
        if let Some(quota) = &route.quota {
            let scope = scope_value(quota.scope, m);
            if state.quotas.len() >= MAX_SCOPES && !state.quotas.contains_key(&scope) {
                return Plan::ScopeTableFull { route };
            }
            let used = state
                .quotas
                .entry(scope)
                .or_insert_with(|| QuotaState::new(quota));
            let taken = used.take(quota, m.now);
            *limits = quota
                .announce
                .then(|| announce(&route.name, quota, taken, m.now));
            if !taken.within {
                let free_at = taken.free_at;
                return Plan::Over { route, free_at };
            }
        }
        let scope = scope_value(route.scope, m);
        if state.counts.len() >= MAX_SCOPES && !state.counts.contains_key(&scope) {
            return Plan::ScopeTableFull { route };
        }
        let count = match state.counts.get_mut(&scope) {
            Some(count) => count,
            None => state.counts.entry(scope.clone()).or_default(),
        };
        *count += 1;
        let n = *count;
        match route.script.step_for(n) {
            Some(step) => Plan::Step {
                index: found.index,
                route,
                scope,
                n,
                step,
                seed,
            },
            None => Plan::Overrun { route, scope, n },
        }
    }
}

/// The header fields of draft-ietf-httpapi-ratelimit-headers.
fn announce(name: &str, quota: &Quota, taken: Taken, now: u64) -> Limits {
    let secs = |ns: u64| ns.div_ceil(1_000_000_000);
    let window = secs(nanos(quota.per)).max(1);
    let reset = match taken.left {
        0 => taken.free_at,
        _ => taken.full_at,
    };
    Limits {
        policy: format!("\"{name}\";q={};w={window}", quota.limit),
        state: format!(
            "\"{name}\";r={};t={}",
            taken.left,
            secs(reset.saturating_sub(now))
        ),
    }
}

fn scope_value(scope: Scope, m: &Matched<'_>) -> String {
    match scope {
        Scope::Global => String::new(),
        Scope::Token => m.token.to_owned(),
        Scope::Key => m.key.unwrap_or_default().to_owned(),
        Scope::Connection => m.conn.to_string(),
    }
}

impl Plan {
    /// The reply of the step that serves the arrival, drawn if the step leaves it to chance.
    pub(crate) fn step_reply(&self) -> Option<&Reply> {
        let Self::Step {
            route,
            scope,
            n,
            step,
            seed,
            ..
        } = self
        else {
            return None;
        };
        match &route.script.steps.get(*step)?.action {
            Action::Reply(r) => Some(r),
            Action::Pick(p) => Some(p.arm(draw(*seed, &route.name, scope, *n, "pick"))),
        }
    }

    /// The draw for a delay of this arrival.
    pub(crate) fn delay_draw(&self) -> f64 {
        let (seed, route, scope, n) = self.identity();
        draw(seed, route, scope, n, "delay")
    }

    /// What chance depends on: seed, route, value of the scope, number. An arrival that takes no
    /// number draws the same each time.
    pub(crate) fn identity(&self) -> (u64, &str, &str, u64) {
        match self {
            Self::Step {
                route,
                scope,
                n,
                seed,
                ..
            } => (*seed, &route.name, scope, *n),
            other => (0, other.route_name(), "", 0),
        }
    }
}

fn describe(entry: &mut Entry, plan: &Plan, token: &str, key: Option<&(String, bool)>) {
    entry.key = key.map(|k| k.0.clone());
    entry.key_quoted = key.is_some_and(|k| k.1);
    entry.token = (!token.is_empty()).then(|| token.to_owned());
    match plan {
        Plan::Step { scope, n, step, .. } => {
            entry.scope = Some(scope.clone());
            entry.n = Some(*n);
            entry.step = Some(*step as u64 + 1);
        }
        Plan::Overrun { scope, n, .. } => {
            entry.scope = Some(scope.clone());
            entry.n = Some(*n);
            entry.flags.push(Flag::Overrun);
        }
        Plan::ScopeTableFull { .. } => entry.flags.push(Flag::ScopeTableFull),
        Plan::Outage { number, .. } => entry.outage = Some(*number as u64),
        Plan::NoRoute => entry.flags.extend([Flag::NoRoute, Flag::Foreign]),
        Plan::Fault(hit) => {
            entry.fault = Some(hit.id);
            entry.flags.push(Flag::Fault);
        }
        Plan::Over { .. } => entry.flags.push(Flag::OverQuota),
        Plan::Resource { .. } => entry.flags.push(Flag::Resource),
        Plan::Raced => entry.flags.push(Flag::Raced),
        Plan::Down | Plan::Default | Plan::Upstream => {}
    }
}

fn blank_entry(head: &RequestHead, origin: &Origin<'_>, now: u64) -> Entry {
    Entry {
        seq: 0,
        kind: Kind::Request,
        t_accept: origin.t_accept,
        t_first: origin.t_first,
        t_head: now,
        // Without a body the head is the whole request.
        t_req_end: (!head.has_body()).then_some(now),
        t_reply_before: None,
        t_reply_after: None,
        t_peer_close: None,
        conn: origin.conn,
        stream: origin.stream,
        listener: origin.listener.to_owned(),
        proto: head.proto(),
        tls: origin.tls.cloned(),
        method: head.method.clone(),
        target: head.target.clone(),
        headers: head.headers.clone(),
        body_len: 0,
        body_sha256: None,
        body_head: Bytes::new(),
        route: None,
        scope: None,
        token: None,
        n: None,
        step: None,
        outage: None,
        fault: None,
        sent: None,
        retry_at: None,
        retry_date: None,
        effect: Effect::None,
        key: None,
        key_quoted: false,
        flags: match origin.early {
            true => vec![Flag::Early],
            false => Vec::new(),
        },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Scenario;

    #[test]
    fn mo_3_too_many_callers_are_told_and_none_is_forgotten() {
        let text = "version = 1\n[[route]]\nname = \"a\"\npath = \"/{token}\"\n\
                    scope = \"token\"\nscript = \"200 x2\"";
        let shared = Shared::new(Scenario::parse(text).unwrap(), 10, None);
        let origin = Origin {
            conn: 1,
            stream: None,
            listener: "plain",
            t_accept: 0,
            t_first: 0,
            tls: None,
            early: false,
        };
        let arrive = |i: usize| {
            let target = format!("/t{i}");
            let head = RequestHead {
                method: "GET".to_owned(),
                target,
                ..RequestHead::unknown()
            };
            shared.arrive(&head, &origin).plan
        };
        for i in 0..MAX_SCOPES {
            assert!(matches!(arrive(i), Plan::Step { n: 1, .. }));
        }
        assert!(matches!(arrive(MAX_SCOPES), Plan::ScopeTableFull { .. }));
        assert!(matches!(arrive(0), Plan::Step { n: 2, .. }));
        let core = shared.core();
        let flags: Vec<_> = core.journal.since(0).map(|e| e.flags.len()).collect();
        assert_eq!(flags, [0, 0, 0, 0, 0, 0, 0, 0, 1, 0]);
    }
}
