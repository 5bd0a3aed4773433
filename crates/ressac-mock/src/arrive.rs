//! The arrival of a request: matched, numbered and journaled in one critical section (MO-1).

use std::sync::Arc;

use bytes::Bytes;

use crate::draw::draw;
use crate::journal::{Effect, Entry, Flag, Kind};
use crate::scenario::{OutageAction, Route, Scope};
use crate::state::{Core, Shared};
use crate::step::{Action, Reply};
use crate::store::normalize;
use crate::wire::RequestHead;

/// The most values of one scope.
const MAX_SCOPES: usize = 100_000;

/// Where a request came from, and when.
pub(crate) struct Origin<'a> {
    pub(crate) conn: u64,
    pub(crate) listener: &'a str,
    pub(crate) t_accept: u64,
    pub(crate) t_first: u64,
}

/// What an arrival is to meet.
pub(crate) struct Arrival {
    pub(crate) seq: u64,
    pub(crate) generation: u64,
    pub(crate) token: String,
    pub(crate) key: Option<String>,
    pub(crate) plan: Plan,
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
    /// The listeners refuse; this connection was still open.
    Down,
    /// After the script's end.
    Overrun {
        route: Arc<Route>,
        scope: String,
        n: u64,
    },
    /// Too many values of a scope.
    ScopeTableFull { route: Arc<Route> },
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
            | Self::Overrun { route, .. }
            | Self::ScopeTableFull { route } => &route.name,
            Self::Outage { .. } | Self::Down => "outage",
            Self::NoRoute => "none",
            Self::Default => "default",
        }
    }
}

impl Shared {
    /// Takes an arrival in.
    pub(crate) fn arrive(&self, head: &RequestHead, origin: &Origin<'_>) -> Arrival {
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
        let token = found.as_ref().map(|f| f.1.clone()).unwrap_or_default();
        let route = found.as_ref().map(|f| core.routes[f.0].route.name.clone());
        let plan = core.plan(found, key.as_ref().map(|k| k.0.as_str()), origin.conn, now);
        let mut entry = blank_entry(head, origin, now);
        entry.route = route;
        describe(&mut entry, &plan, &token, key.as_ref());
        if let Plan::Overrun { route, .. } = &plan {
            *core.metrics.overruns.entry(route.name.clone()).or_default() += 1;
        }
        core.metrics.in_flight += 1;
        let seq = core.journal.push(entry);
        let generation = core.generation;
        drop(core);
        self.changed.send_replace(());
        if first {
            self.clocks_moved.send_replace(());
        }
        Arrival {
            seq,
            generation,
            token,
            key: key.map(|k| k.0),
            plan,
        }
    }

    /// Journals what never became a request.
    pub(crate) fn note_broken(&self, kind: Kind, origin: &Origin<'_>) -> u64 {
        let head = RequestHead::unknown();
        let entry = Entry {
            kind,
            ..blank_entry(&head, origin, self.clock.now())
        };
        let seq = self.core().journal.push(entry);
        self.changed.send_replace(());
        seq
    }
}

impl Core {
    /// The first route that takes a request, and its token.
    fn find(&self, head: &RequestHead, listener: &str) -> Option<(usize, String)> {
        let path = head.path();
        let takes = |r: &Route| {
            (r.methods.is_empty() || r.methods.contains(&head.method))
                && r.listener.as_ref().is_none_or(|l| l == listener)
        };
        let exact = self
            .by_path
            .get(path)
            .copied()
            .filter(|i| takes(&self.routes[*i].route));
        let candidates = exact.into_iter().chain(0..self.scenario.routes.len());
        for i in candidates {
            let route = &self.routes[i].route;
            if !takes(route) {
                continue;
            }
            let Some(captured) = route.path.matches(path) else {
                continue;
            };
            let named = route.token_header.as_deref().and_then(|h| head.header(h));
            let token = captured.or(named).unwrap_or_default().to_owned();
            return Some((i, token));
        }
        None
    }

    fn plan(
        &mut self,
        found: Option<(usize, String)>,
        key: Option<&str>,
        conn: u64,
        now: u64,
    ) -> Plan {
        let name = found
            .as_ref()
            .map(|(i, _)| self.routes[*i].route.name.as_str());
        if let Some((i, ends)) = self.clocks.hit(&self.scenario.outages, now, name) {
            return match &self.scenario.outages[i].action {
                OutageAction::Down => Plan::Down,
                OutageAction::Reply(r) => Plan::Outage {
                    number: i + 1,
                    reply: r.clone(),
                    ends,
                },
            };
        }
        let Some((index, token)) = found else {
            return if self.routes.is_empty() {
                Plan::Default
            } else {
                Plan::NoRoute
            };
        };
        let state = &mut self.routes[index];
        let route = Arc::clone(&state.route);
        let scope = match route.scope {
            Scope::Global => String::new(),
            Scope::Token => token,
            Scope::Key => key.unwrap_or_default().to_owned(),
            Scope::Connection => conn.to_string(),
        };
        if state.counts.len() >= MAX_SCOPES && !state.counts.contains_key(&scope) {
            return Plan::ScopeTableFull { route };
        }
        let count = state.counts.entry(scope.clone()).or_default();
        *count += 1;
        let n = *count;
        match route.script.step_for(n) {
            Some(step) => Plan::Step {
                index,
                route,
                scope,
                n,
                step,
                seed: self.scenario.seed,
            },
            None => Plan::Overrun { route, scope, n },
        }
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
        match self {
            Self::Step {
                route,
                scope,
                n,
                seed,
                ..
            } => draw(*seed, &route.name, scope, *n, "delay"),
            _ => 0.5,
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
        Plan::NoRoute => entry.flags.push(Flag::NoRoute),
        Plan::Down | Plan::Default => {}
    }
}

fn blank_entry(head: &RequestHead, origin: &Origin<'_>, now: u64) -> Entry {
    Entry {
        seq: 0,
        kind: Kind::Request,
        t_accept: origin.t_accept,
        t_first: origin.t_first,
        t_head: now,
        t_req_end: None,
        t_reply_before: None,
        t_reply_after: None,
        t_peer_close: None,
        conn: origin.conn,
        listener: origin.listener.to_owned(),
        proto: head.proto(),
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
        sent: None,
        retry_at: None,
        retry_date: None,
        effect: Effect::None,
        key: None,
        key_quoted: false,
        flags: Vec::new(),
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
        let shared = Shared::new(Scenario::parse(text).unwrap(), 10);
        let origin = Origin {
            conn: 1,
            listener: "plain",
            t_accept: 0,
            t_first: 0,
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
