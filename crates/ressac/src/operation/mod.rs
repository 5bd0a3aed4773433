//! One operation under way: the engine's, with its place at the partner guarded.

mod options;

use std::task::Waker;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;
use ressac_policy::{Decision, End, Operation, Outcome, OutcomeKind, Timestamp, VendorHints, Wait};

pub(crate) use self::options::Options;
use crate::attempt::Attempt;
use crate::classify::Context;
use crate::error::Facts;
use crate::key::IdempotencyKey;
use crate::observe::{self, Event};
use crate::partner::line::Spot;
use crate::partner::shared::Core;
use crate::partner::{Partner, Shared};

/// What to do now.
#[derive(Debug)]
pub(crate) enum Next {
    Send(Attempt),
    Wait(Wait),
    End(End),
}

/// An operation and its partner. Dropped before its end it is cancelled: an attempt in flight gives
/// its place back, whoever was called from the line calls the next, and nothing more is sent.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) partner: Partner,
    options: Options,
    started: Option<Started>,
}

#[derive(Debug)]
struct Started {
    operation: Operation,
    key: IdempotencyKey,
    spot: Option<Spot>,
    vendors: VendorHints,
    begun: Timestamp,
    /// When the attempt in flight began.
    sent: Timestamp,
    /// What the last attempt came to.
    after: Option<OutcomeKind>,
    wait: Option<Wait>,
    ended: bool,
}

impl Call {
    pub(crate) fn new(partner: Partner, options: Options) -> Self {
        Call {
            partner,
            options,
            started: None,
        }
    }

    /// Asks the engine. One lock.
    #[inline]
    pub(crate) fn poll(&mut self, waker: impl FnOnce() -> Waker) -> Next {
        let shared = &*self.partner.shared;
        let read = shared.time.now();
        let mut core = shared.core.lock();
        let now = core.moment(read);
        let started = start(&mut self.started, &mut self.options, shared, &mut core, now);
        let (decision, called) = core.poll(now, &mut started.operation, &mut started.spot, waker);
        drop(core);
        called.wake();
        started.take(shared, now, decision)
    }

    /// What became of the attempt. One lock.
    #[inline]
    pub(crate) fn settle(&mut self, judge: impl FnOnce(&Context) -> Outcome) -> Next {
        let shared = &*self.partner.shared;
        let Some(started) = &mut self.started else {
            return self.cancel();
        };
        // Judged outside the lock: it runs a caller's code.
        let context = Context::new(shared.time.now(), started.vendors);
        let outcome = judge(&context).took(context.now.since(started.sent));
        started.after = Some(outcome.kind);
        let heard = observe::is_heard(shared);
        let mut core = shared.core.lock();
        let now = core.moment(context.now);
        let judgement = heard.then(|| started.operation.judge(&outcome, core.engine.policy()));
        let (decision, called) = core.settle(now, &mut started.operation, &outcome);
        drop(core);
        called.wake();
        if let Some(judgement) = judgement {
            let event = Event::Outcome {
                partner: &shared.name,
                number: started.operation.attempts(),
                outcome: &outcome,
                judgement: &judgement,
            };
            observe::tell(shared, &event);
        }
        started.take(shared, now, decision)
    }

    /// The caller gave up. An operation that had ended stays as it was.
    #[inline(never)]
    pub(crate) fn cancel(&mut self) -> Next {
        let shared = &*self.partner.shared;
        let read = shared.time.now();
        let mut core = shared.core.lock();
        let now = core.moment(read);
        let started = start(&mut self.started, &mut self.options, shared, &mut core, now);
        let (decision, called) = core.cancel(now, &mut started.operation, &mut started.spot);
        drop(core);
        called.wake();
        started.take(shared, now, decision)
    }

    /// Still in line, then woken by this waker; false for one who has been called and must ask
    /// again. Who stands in no line has only the time to wait for.
    pub(crate) fn stay_in_line(&mut self, waker: &Waker) -> bool {
        match self.started.as_ref().and_then(|started| started.spot) {
            Some(spot) => self.partner.shared.core.lock().line.stay(spot, waker),
            None => true,
        }
    }

    /// For the error.
    pub(crate) fn facts(&self, end: End) -> Facts {
        let shared = &*self.partner.shared;
        let (wait, begun, key) = match &self.started {
            Some(started) => (started.wait, started.begun, started.key.clone()),
            None => (
                None,
                shared.time.now(),
                IdempotencyKey::from_parts(0, [0; 10]),
            ),
        };
        Facts {
            end,
            wait,
            elapsed: shared.time.now().since(begun),
            partner: shared.name.clone(),
            key,
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if self.started.as_ref().is_some_and(|started| !started.ended) {
            self.cancel();
        }
    }
}

impl Started {
    #[inline]
    fn take(&mut self, shared: &Shared, now: Timestamp, decision: Decision) -> Next {
        match decision {
            Decision::Send(attempt) => {
                self.sent = now;
                let attempt = Attempt {
                    number: attempt.number,
                    kind: attempt.kind,
                    timeout: attempt.timeout,
                    key: self.key.clone(),
                    after: self.after,
                };
                if observe::is_heard(shared) {
                    let partner = &shared.name;
                    observe::tell(
                        shared,
                        &Event::Attempt {
                            partner,
                            attempt: &attempt,
                        },
                    );
                }
                Next::Send(attempt)
            }
            Decision::Wait(wait) => {
                // The same wait, looked at again, is told once.
                let known = self.wait.is_some_and(|last| last.until == wait.until);
                if !known && observe::is_heard(shared) {
                    let (partner, left) = (&shared.name, wait.until.since(now));
                    observe::tell(
                        shared,
                        &Event::Wait {
                            partner,
                            wait: &wait,
                            left,
                        },
                    );
                }
                // The engine gives the numbers of a wait once.
                if !known {
                    self.wait = Some(wait);
                }
                Next::Wait(wait)
            }
            Decision::End(end) => {
                if !self.ended && observe::is_heard(shared) {
                    let (partner, elapsed) = (&shared.name, now.since(self.begun));
                    observe::tell(
                        shared,
                        &Event::End {
                            partner,
                            end: &end,
                            elapsed,
                        },
                    );
                }
                self.ended = true;
                Next::End(end)
            }
        }
    }
}

#[inline]
fn start<'a>(
    started: &'a mut Option<Started>,
    options: &mut Options,
    shared: &Shared,
    core: &mut Core,
    now: Timestamp,
) -> &'a mut Started {
    started.get_or_insert_with(|| {
        let policy = core.engine.policy();
        let spec = options.spec(shared.idempotency.as_ref(), now);
        let operation = Operation::new(&spec, policy, now);
        let vendors = policy.retry_after.vendors;
        let key = options.key.take();
        Started {
            operation,
            key: key.unwrap_or_else(|| made_key(&mut core.keys, now)),
            spot: None,
            vendors,
            begun: now,
            sent: now,
            after: None,
            wait: None,
            ended: false,
        }
    })
}

pub(crate) fn made_key(rng: &mut Xoshiro256PlusPlus, now: Timestamp) -> IdempotencyKey {
    let (high, low) = (rng.next_u64().to_le_bytes(), rng.next_u64().to_le_bytes());
    let mut random = [0; 10];
    random[..8].copy_from_slice(&high);
    random[8..].copy_from_slice(&low[..2]);
    IdempotencyKey::from_parts(now.as_nanos() / 1_000_000, random)
}
