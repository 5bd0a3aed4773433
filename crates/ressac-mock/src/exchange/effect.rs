//! `create`: consulting the store and committing the effect, in one critical section per key.

use sha2::{Digest, Sha256};

use super::{Exchange, problem};
use crate::arrive::Plan;
use crate::journal::{Effect, Flag};
use crate::reply::{Content, Mark};
use crate::scenario::{FingerprintPart, Idempotency, Route};
use crate::state::Core;
use crate::step::{Create, Reply};
use crate::store::{Begin, Fingerprint};
use crate::wire::{BodyInfo, Woken};

/// What `create` came to.
pub(super) enum Made {
    /// No effect, and the step's own reply.
    Nothing,
    /// An effect; this is the reply that was stored.
    Fresh(Content),
    /// An effect of before; its reply again.
    Replay(Content),
    /// The store refuses.
    Refused(Content),
}

/// A key held in flight by this arrival.
struct Held<'k> {
    key: &'k str,
    ticket: u64,
}

impl Exchange<'_> {
    /// Consults the store and commits. An error is a wait that was cancelled.
    pub(super) async fn effect(
        &mut self,
        reply: &Reply,
        create: Create,
        mark: Mark,
        body: &BodyInfo,
    ) -> Result<Made, Woken> {
        let Plan::Step { route, .. } = &self.arrival.plan else {
            return Ok(Made::Nothing);
        };
        let mut held = None;
        {
            let mut core = self.shared.core();
            if core.generation != self.arrival.generation {
                return Err(Woken::Cancelled);
            }
            let cfg = core.scenario.idempotency.clone();
            match (&cfg, self.arrival.key.as_deref()) {
                (Some(cfg), Some(key)) => {
                    let fp = self.fingerprint(cfg, body);
                    let now = self.shared.clock.now();
                    match core.store.begin(cfg, key, fp, now) {
                        Begin::Fresh(ticket) => held = Some(Held { key, ticket }),
                        found => return Ok(self.found(&mut core, route, found)),
                    }
                }
                (Some(cfg), None) if cfg.required.contains(&route.name) => {
                    return Ok(Made::Refused(missing_key(cfg)));
                }
                _ => {}
            }
            match create {
                Create::Now => {
                    return Ok(self.commit(&mut core, route, reply, mark, body, held.as_ref()));
                }
                Create::Abandon => return Ok(Made::Nothing),
                Create::Slow(_) => {}
            }
        }
        if let Create::Slow(t) = create {
            // The effect belongs to the request, not to the connection: a peer that goes away
            // does not stop it, a reset does.
            let until = tokio::time::Instant::now() + t;
            let generation = self.arrival.generation;
            tokio::select! {
                _ = self.reset.wait_for(|g| *g != generation) => return Err(Woken::Cancelled),
                () = tokio::time::sleep_until(until) => {}
            }
        }
        let mut core = self.shared.core();
        if core.generation != self.arrival.generation {
            return Err(Woken::Cancelled);
        }
        Ok(self.commit(&mut core, route, reply, mark, body, held.as_ref()))
    }

    fn found(&self, core: &mut Core, route: &Route, found: Begin) -> Made {
        let effect = match &found {
            Begin::Replay(_) => Effect::Replayed,
            _ => Effect::None,
        };
        self.note_effect(core, route, effect);
        match found {
            Begin::Replay(content) => Made::Replay(content),
            Begin::InFlight(secs) => {
                let mut content = problem(
                    409,
                    "key-in-flight",
                    "A request is outstanding for this Idempotency-Key",
                    "a request with the same key is being processed",
                );
                content
                    .headers
                    .push(("Retry-After".to_owned(), secs.to_string()));
                content.hint = Some(crate::reply::Hint {
                    ns: secs.saturating_mul(1_000_000_000),
                    absolute: false,
                    date: None,
                });
                Made::Refused(content)
            }
            Begin::Mismatch => Made::Refused(problem(
                422,
                "key-reused",
                "Idempotency-Key is already used",
                "the key was used with another method, path or body",
            )),
            Begin::Full | Begin::Fresh(_) => Made::Refused(problem(
                599,
                "key-table-full",
                "Too many keys in flight",
                "max_keys of the scenario is reached, and none of them is finished",
            )),
        }
    }

    /// Counts the effect, makes the resource and stores the reply.
    fn commit(
        &self,
        core: &mut Core,
        route: &Route,
        reply: &Reply,
        mut mark: Mark,
        body: &BodyInfo,
        held: Option<&Held<'_>>,
    ) -> Made {
        let (token, key) = (self.arrival.token.as_str(), self.arrival.key.as_deref());
        if held.is_some_and(|h| !core.store.holds(h.key, h.ticket)) {
            return self.found(core, route, Begin::InFlight(1));
        }
        if !core.resources.has_room(token, key) {
            return Made::Refused(problem(
                599,
                "resource-table-full",
                "Too many resources",
                "the mock keeps 100000 resources, tokens and keys; reset it",
            ));
        }
        let now = self.shared.clock.now();
        match self.head.method.as_str() {
            "POST" => {
                let content = body_text(body);
                let made = crate::resources::New {
                    token,
                    key,
                    at: now,
                    content,
                };
                let template = route.resource_id.as_deref();
                let id = core.resources.make(&route.name, template, made);
                mark.location = Some(format!("{}/{id}", self.head.path().trim_end_matches('/')));
                mark.json = with_id(&mark.json, &id);
            }
            "PUT" | "DELETE" => {
                if let Some(id) = self.head.path().rsplit('/').next() {
                    let new = (self.head.method == "PUT").then(|| body_text(body));
                    core.resources.change(None, id, new);
                }
            }
            _ => {}
        }
        core.resources.count(token, key);
        self.note_effect(core, route, Effect::Created);
        let content = Content::make(reply, &mark);
        if let Some(held) = held {
            core.store
                .commit(held.key, held.ticket, content.clone(), now);
        }
        Made::Fresh(content)
    }

    fn note_effect(&self, core: &mut Core, route: &Route, effect: Effect) {
        let label = match effect {
            Effect::Created => "created",
            Effect::Replayed => "replayed",
            Effect::None => "none",
        };
        *core
            .metrics
            .effects
            .entry((route.name.clone(), label))
            .or_default() += 1;
        core.journal
            .update(self.arrival.place, |e| e.effect = effect);
    }

    /// Replaces or removes a resource, without a script: one effect of the operation's token.
    pub(super) fn change(&self, route: &Route, id: &str, body: &BodyInfo) {
        let new = match self.head.method.as_str() {
            "PUT" => Some(body_text(body)),
            "DELETE" => None,
            _ => return,
        };
        let mut core = self.shared.core();
        if core.generation == self.arrival.generation
            && core.resources.change(Some(&route.name), id, new)
        {
            let key = self.arrival.key.as_deref();
            if core.resources.has_room(&self.arrival.token, key) {
                core.resources.count(&self.arrival.token, key);
            }
            self.note_effect(&mut core, route, Effect::Created);
        }
    }

    /// Asks the upstream. An error is a wait that was cancelled.
    pub(super) async fn pass(
        &mut self,
        reply: &Reply,
        body: Option<&BodyInfo>,
    ) -> Result<Made, Woken> {
        let Some(upstream) = &self.shared.upstream else {
            return Ok(Made::Refused(problem(
                599,
                "no-upstream",
                "There is no upstream",
                "a step says `pass`; start the mock with --upstream",
            )));
        };
        let generation = self.arrival.generation;
        let empty = bytes::Bytes::new();
        let content = body.map_or(&empty, |b| &b.head);
        let got = tokio::select! {
            _ = self.reset.wait_for(|g| *g != generation) => return Err(Woken::Cancelled),
            got = upstream.send(self.head, content) => got,
        };
        match got {
            Ok(mut content) => {
                content.headers.extend(reply.headers.iter().cloned());
                content.status = reply.status.unwrap_or(content.status);
                Ok(Made::Fresh(content))
            }
            Err(why) => {
                self.shared
                    .note(self.arrival.place, |e| e.flags.push(Flag::UpstreamFailed));
                let title = "The upstream gave no reply";
                Ok(Made::Refused(problem(502, "upstream-failed", title, &why)))
            }
        }
    }

    fn fingerprint(&self, cfg: &Idempotency, body: &BodyInfo) -> Fingerprint {
        let mut h = Sha256::new();
        for part in &cfg.fingerprint {
            match part {
                FingerprintPart::Method => h.update(self.head.method.as_bytes()),
                FingerprintPart::Path => h.update(self.head.path().as_bytes()),
                FingerprintPart::Body => h.update(body.sha256),
            }
            h.update([0]);
        }
        h.finalize().into()
    }
}

fn missing_key(cfg: &Idempotency) -> Content {
    let title = format!("{} is missing", cfg.header);
    let detail = "this operation requires an idempotency key";
    problem(400, "key-missing", &title, detail)
}

/// The first of a body as text, which is what a resource keeps of it.
fn body_text(body: &BodyInfo) -> String {
    String::from_utf8_lossy(&body.head[..body.head.len().min(super::KEEP_BODY)]).into_owned()
}

/// The default JSON of a step with the id of the resource in front.
fn with_id(json: &str, id: &str) -> String {
    match json.strip_prefix('{') {
        Some(rest) => format!("{{\"id\":\"{id}\",{rest}"),
        None => json.to_owned(),
    }
}
