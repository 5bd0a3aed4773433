//! The arrival of a request: matched, numbered and journaled in one critical section (MO-1).

mod entry;
mod find;

use std::sync::Arc;

use crate::draw::draw;
use crate::fault::Hit;
use crate::journal::{Entry, Kind, TlsInfo};
use crate::scenario::Route;
use crate::state::Shared;
use crate::step::{Action, Reply};
use crate::store::normalize;
use crate::wire::RequestHead;
use entry::{blank_entry, describe};

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
        let found = core.find(head, origin.listener);
        let foreign = self.tokens.as_ref().is_some_and(|known| {
            let token = found.as_ref().map(|f| f.token.as_str());
            token.is_none_or(|t| !known.contains(t))
        });
        let first = !foreign && core.clocks.first_request.is_none();
        if first {
            core.clocks.first_request = Some(now);
        }
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
        let plan = match (raced, foreign) {
            (true, _) => Plan::Raced,
            (false, true) => Plan::NoRoute,
            (false, false) => {
                core.plan(head, found, &matched, self.upstream.is_some(), &mut limits)
            }
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Scenario;
    use crate::state::Extras;

    #[test]
    fn mo_3_too_many_callers_are_told_and_none_is_forgotten() {
        let text = "version = 1\n[[route]]\nname = \"a\"\npath = \"/{token}\"\n\
                    scope = \"token\"\nscript = \"200 x2\"";
        let shared = Shared::new(Scenario::parse(text).unwrap(), 10, Extras::default());
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
