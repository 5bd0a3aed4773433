//! Which route takes an arrival, and which rule hits it first.

use std::sync::Arc;

use super::{Limits, MAX_SCOPES, Matched, Plan};
use crate::clock::nanos;
use crate::quota::{QuotaState, Taken};
use crate::scenario::{OutageAction, Quota, Route, Scope};
use crate::state::Core;
use crate::wire::RequestHead;

/// The route that takes a request.
pub(super) struct Found {
    pub(super) index: usize,
    pub(super) token: String,
    /// Whether it takes it only as the keeper of what was created there; the id, if one is named.
    resource: Option<Option<String>>,
}

impl Core {
    /// The first route that takes a request, and its token.
    pub(super) fn find(&self, head: &RequestHead, listener: &str) -> Option<Found> {
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

    pub(super) fn plan(
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
