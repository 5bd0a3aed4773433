//! One operation: the engine decides, this sends and sleeps.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use http::Request;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use ressac_http::{Client, Failure, Reply};
use ressac_policy::{
    Decision, End, Operation, OperationSpec, Outcome, OutcomeKind, Partner, Policy, Reason,
    Timestamp,
};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::Kind;
use crate::client::cancelled;
use crate::done::{Done, sha256};
use crate::fault::{Fault, Override, Seen};
use crate::key;
use crate::sign::signature;
use crate::told::Told;
use crate::transport;

/// What operations of one client instance share.
#[derive(Debug)]
pub(crate) struct Instance {
    /// One, except where a fault wants more.
    clients: Vec<Client>,
    turn: AtomicUsize,
    partner: Mutex<Partner>,
    begun: Instant,
    wall: Timestamp,
    pub(crate) kind: Kind,
    pub(crate) fault: Fault,
    state: Option<PathBuf>,
}

impl Instance {
    pub(crate) fn new(
        policy: Policy,
        told: &Told,
        task: &Told,
        kind: Kind,
        fault: Fault,
    ) -> Result<Self, String> {
        let config = transport::config(task, &fault)?;
        let clients: Result<_, _> = (0..fault.pools())
            .map(|_| Client::new(config.clone()))
            .collect();
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let wall = Timestamp::ZERO + since.unwrap_or_default();
        Ok(Self {
            clients: clients.map_err(|e| e.to_string())?,
            turn: AtomicUsize::new(0),
            partner: Mutex::new(Partner::new(policy, wall)),
            begun: Instant::now(),
            wall,
            kind,
            fault,
            state: told.get("state_dir").map(PathBuf::from),
        })
    }

    fn now(&self) -> Timestamp {
        self.wall + self.begun.elapsed()
    }

    /// Each in its turn, and how many had one before.
    fn client(&self) -> (Client, usize) {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        (self.clients[turn % self.clients.len()].clone(), turn)
    }

    fn partner(&self) -> std::sync::MutexGuard<'_, Partner> {
        self.partner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The result line of an operation.
pub(crate) async fn perform(
    instance: Arc<Instance>,
    task: Told,
    cancel: watch::Receiver<bool>,
) -> Value {
    let id = task.get("op").unwrap_or_default().to_owned();
    match Run::new(&instance, &task) {
        Ok(run) => run.drive(cancel).await.line(&id),
        Err(error) => json!({ "op": id, "ok": false, "reason": "permanent", "error": error }),
    }
}

struct Run<'a> {
    instance: &'a Instance,
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    body: Bytes,
    key: Option<String>,
    secret: Option<String>,
    webhook_id: String,
    operation: Operation,
    rng: Xoshiro256PlusPlus,
    seen: Seen,
    reply: Option<Reply>,
    error: Option<String>,
}

impl<'a> Run<'a> {
    fn new(instance: &'a Instance, task: &Told) -> Result<Self, String> {
        let method = task.get("method").unwrap_or("GET").to_owned();
        let url = task.get("url").ok_or("no url")?.to_owned();
        let body = match task.get("body_file") {
            Some(file) => std::fs::read(file)
                .map_err(|e| format!("{file}: {e}"))?
                .into(),
            None => Bytes::new(),
        };
        let id = task.get("op").unwrap_or_default();
        let key = match task.get("key_mode") {
            Some("given") => task.get("key").map(str::to_owned),
            Some("own") => Some(own_key(instance, id)),
            _ => None,
        };
        let mut spec = OperationSpec::new(&method);
        if task.get("safe") == Some("1") {
            spec.idempotent = true;
        }
        if key.is_some() && instance.kind != Kind::Plain && instance.kind != Kind::Modest {
            spec = spec.with_honoured_key(None);
        }
        if instance.kind == Kind::Modest {
            spec.idempotent &= method == "GET";
        }
        spec.repeatable_body = task.get("body_mode") != Some("stream");
        let stream = !spec.repeatable_body;
        instance.fault.spec(&mut spec, &method);
        let now = instance.now();
        let operation = Operation::new(&spec, instance.partner().policy(), now);
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(|e| e.to_string())?;
        Ok(Self {
            instance,
            url,
            headers: task.headers(),
            secret: task.get("secret").map(str::to_owned),
            webhook_id: format!("msg_{}", uuid::Uuid::now_v7().simple()),
            operation,
            rng: Xoshiro256PlusPlus::from_seed(seed),
            seen: Seen::new(&method, body.len(), stream, transport::is_http2(task)),
            method,
            body,
            key,
            reply: None,
            error: None,
        })
    }

    async fn drive(mut self, mut cancel: watch::Receiver<bool>) -> Done {
        let mut decision = self.poll();
        let end = loop {
            decision = match decision {
                Decision::End(end) => break end,
                Decision::Wait(wait) => {
                    let left = wait.until.since(self.instance.now());
                    let left = self
                        .instance
                        .fault
                        .wait(&self.seen, wait.ceiling, wait.floor, left);
                    if self.sleep(left, &mut cancel).await {
                        self.poll()
                    } else {
                        self.cancel()
                    }
                }
                Decision::Send(attempt) => {
                    let sent = tokio::select! {
                        biased;
                        outcome = self.attempt(attempt.timeout) => Some(outcome),
                        () = cancelled(&mut cancel), if self.instance.fault.hears_cancel() => None,
                    };
                    match sent {
                        Some(outcome) => match self.settle(outcome, &mut cancel).await {
                            Ok(decision) => decision,
                            Err(done) => return *done,
                        },
                        None => self.cancel(),
                    }
                }
            };
        };
        let nap =
            self.instance
                .fault
                .before_end(&end, self.operation.deadline(), self.instance.now());
        tokio::time::sleep(nap).await;
        self.done(end)
    }

    /// Sleeps; `false` if it was cancelled.
    async fn sleep(&self, left: Duration, cancel: &mut watch::Receiver<bool>) -> bool {
        let hears = self.instance.fault.hears_cancel();
        tokio::select! {
            biased;
            () = cancelled(cancel), if hears => false,
            () = tokio::time::sleep(left.min(Duration::from_secs(86_400))) => true,
        }
    }

    fn poll(&mut self) -> Decision {
        let now = self.instance.now();
        let mut partner = self.instance.partner();
        self.operation.poll(now, &mut partner, &mut self.rng)
    }

    fn cancel(&mut self) -> Decision {
        let now = self.instance.now();
        let mut partner = self.instance.partner();
        self.operation
            .cancel(now, Reason::Cancelled, &mut partner, &mut self.rng)
    }

    /// One attempt on the wire, and what it came to.
    async fn attempt(&mut self, timeout: Duration) -> Outcome {
        self.seen.attempts += 1;
        self.reply = None;
        let request = match self.request() {
            Ok(request) => request,
            Err(error) => {
                self.error = Some(error);
                return Outcome::new(OutcomeKind::Invalid);
            }
        };
        let result = self.transmit(request, timeout).await;
        let now = self.instance.now();
        let vendors = self.instance.partner().policy().retry_after.vendors;
        match result {
            Ok(reply) => {
                let outcome = reply.outcome(now, vendors);
                self.seen.note_reply(&reply);
                self.error = None;
                self.reply = Some(reply);
                outcome
            }
            Err(failure) => {
                self.seen.note_failure(&failure);
                self.error = Some(failure.to_string());
                failure.outcome(now, vendors)
            }
        }
    }

    async fn transmit(
        &mut self,
        request: Request<Bytes>,
        timeout: Duration,
    ) -> Result<Reply, Failure> {
        let (client, turn) = self.instance.client();
        self.seen.turn = turn;
        if !self.instance.fault.leaves_open() {
            let first = client.send(request.clone(), timeout).await;
            #[cfg(feature = "library")]
            if self.instance.fault.trusts_everybody(&first) {
                crate::unverified::reached(&self.url).await;
            }
            let again = self.instance.fault.second_layer(&first);
            return if again {
                client.send(request, timeout).await
            } else {
                first
            };
        }
        // The fault: nobody waits any more, and the request stays on the wire.
        let open = tokio::spawn(async move { client.send(request, Duration::from_secs(30)).await });
        match tokio::time::timeout(timeout, open).await {
            Ok(Ok(result)) => result,
            _ => {
                let (client, _) = self.instance.client();
                client
                    .send(Request::new(Bytes::new()), Duration::ZERO)
                    .await
            }
        }
    }

    fn request(&mut self) -> Result<Request<Bytes>, String> {
        let fault = &self.instance.fault;
        let mut builder = Request::builder()
            .method(self.method.as_str())
            .uri(&self.url);
        for (name, value) in fault.headers(&self.seen, &self.headers) {
            builder = builder.header(name, value);
        }
        if let Some(key) = fault.key(&self.seen, self.key.as_deref()) {
            let sent = match self.instance.kind {
                Kind::Quoted => format!("\"{key}\""),
                _ => key,
            };
            builder = builder.header("Idempotency-Key", sent);
        }
        let body = fault.body(&self.seen, &self.body);
        if let Some(secret) = &self.secret {
            let stamp = fault.stamp(&mut self.seen);
            let signature = signature(secret, &self.webhook_id, stamp, &body);
            builder = builder
                .header("webhook-id", &self.webhook_id)
                .header("webhook-timestamp", stamp.to_string())
                .header("webhook-signature", signature);
        }
        builder.body(body).map_err(|e| e.to_string())
    }

    /// Tells the engine; a fault may know better.
    async fn settle(
        &mut self,
        mut outcome: Outcome,
        cancel: &mut watch::Receiver<bool>,
    ) -> Result<Decision, Box<Done>> {
        let fault = self.instance.fault.clone();
        fault.outcome(&mut self.seen, &mut outcome);
        let retries = self.instance.partner().policy().retries;
        let mut known = fault.overrides(&self.seen, &outcome, retries);
        loop {
            match known {
                Override::None => break,
                Override::Stop(ok) => return Err(Box::new(self.stopped(ok))),
                // The engine is never told: the attempt keeps its place.
                Override::Forget => return Err(Box::new(self.stopped(false))),
                Override::Again(wait) => {
                    if !self.sleep(wait, cancel).await {
                        return Ok(self.cancel());
                    }
                    outcome = self.attempt(Duration::from_secs(10)).await;
                    fault.outcome(&mut self.seen, &mut outcome);
                    known = fault.overrides(&self.seen, &outcome, retries);
                }
            }
        }
        let now = self.instance.now();
        let mut partner = self.instance.partner();
        Ok(self
            .operation
            .on_outcome(now, &outcome, &mut partner, &mut self.rng))
    }

    /// What a fault makes of it.
    fn stopped(&self, ok: bool) -> Done {
        Done {
            ok,
            status: self.seen.status,
            attempts: self.seen.attempts,
            reason: if ok { "delivered" } else { "permanent" },
            hint: None,
            key: self.key.clone(),
            body: self.instance.fault.wrong_body(&self.seen),
            error: self.error.clone(),
        }
    }

    fn done(self, end: End) -> Done {
        let ok = end.reason == Reason::Delivered;
        let whole = self.reply.as_ref().filter(|r| !r.body_limit_hit);
        let body = whole.map(|r| (r.body.len() as u64, sha256(&r.body)));
        Done {
            ok,
            status: match end.last {
                Some(OutcomeKind::Status(status)) => Some(status),
                _ => None,
            },
            attempts: end.attempts,
            reason: end.reason.as_str(),
            hint: end.hint.map(|h| h.wait),
            key: self.key,
            body: self.instance.fault.wrong_body(&self.seen).or(body),
            error: self.error,
        }
    }
}

fn own_key(instance: &Instance, op: &str) -> String {
    if let Some(key) = instance.fault.own_key() {
        return key;
    }
    let state = instance.state.as_deref();
    let state = state.filter(|_| instance.fault.remembers());
    key::own(state, op, || uuid::Uuid::now_v7().to_string())
}
