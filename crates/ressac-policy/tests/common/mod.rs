//! A world of virtual time: one partner, one generator, and a now that only the story moves.
#![allow(missing_docs, dead_code, unreachable_pub)]

use std::time::Duration;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use ressac_policy::{
    Attempt, Because, Decision, End, Hint, HintSource, Operation, OperationSpec, Outcome,
    OutcomeKind, Partner, Policy, Reason, Timestamp, Wait,
};

pub const START: Timestamp = Timestamp::from_secs(1_000);

pub fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub fn hint(seconds: u64) -> Option<Hint> {
    Some(Hint {
        wait: secs(seconds),
        source: HintSource::RetryAfter,
    })
}

pub fn status(status: u16) -> Outcome {
    Outcome::status(status)
}

pub fn told(code: u16, seconds: u64) -> Outcome {
    Outcome::status(code).with_hint(hint(seconds))
}

pub fn kind(kind: OutcomeKind) -> Outcome {
    Outcome::new(kind)
}

pub struct World {
    pub now: Timestamp,
    pub partner: Partner,
    pub rng: Xoshiro256PlusPlus,
}

impl World {
    pub fn new(policy: Policy) -> Self {
        World {
            now: START,
            partner: Partner::new(policy, START),
            rng: Xoshiro256PlusPlus::seed_from_u64(7),
        }
    }

    pub fn seeded(policy: Policy, seed: u64) -> Self {
        World {
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            ..World::new(policy)
        }
    }

    pub fn get(&self) -> Operation {
        self.operation(&OperationSpec::new("GET"))
    }

    pub fn operation(&self, spec: &OperationSpec) -> Operation {
        Operation::new(spec, self.partner.policy(), self.now)
    }

    pub fn later(&mut self, time: Duration) -> &mut Self {
        self.now = self.now + time;
        self
    }

    pub fn poll(&mut self, operation: &mut Operation) -> Decision {
        operation.poll(self.now, &mut self.partner, &mut self.rng)
    }

    pub fn told(&mut self, operation: &mut Operation, outcome: Outcome) -> Decision {
        operation.on_outcome(self.now, &outcome, &mut self.partner, &mut self.rng)
    }

    pub fn cancel(&mut self, operation: &mut Operation) -> Decision {
        operation.cancel(
            self.now,
            Reason::Cancelled,
            &mut self.partner,
            &mut self.rng,
        )
    }

    /// It must be sent now.
    #[track_caller]
    pub fn send(&mut self, operation: &mut Operation) -> Attempt {
        match self.poll(operation) {
            Decision::Send(attempt) => attempt,
            other => panic!("not sent: {other:?}"),
        }
    }

    /// It must wait now.
    #[track_caller]
    pub fn waits(&mut self, operation: &mut Operation) -> Wait {
        match self.poll(operation) {
            Decision::Wait(wait) => wait,
            other => panic!("does not wait: {other:?}"),
        }
    }

    /// One attempt of a new GET, with what becomes of it.
    #[track_caller]
    pub fn one(&mut self, outcome: Outcome) -> (Operation, Decision) {
        let mut operation = self.get();
        self.send(&mut operation);
        let decision = self.told(&mut operation, outcome);
        (operation, decision)
    }

    /// Drives it to its end, jumping over waits; gives the moments at which it was sent.
    pub fn drive(
        &mut self,
        operation: &mut Operation,
        mut outcome: impl FnMut(Attempt) -> Outcome,
    ) -> (End, Vec<Timestamp>) {
        let mut sent = Vec::new();
        for _ in 0..100_000 {
            match self.poll(operation) {
                Decision::Send(attempt) => {
                    sent.push(self.now);
                    let outcome = outcome(attempt);
                    self.told(operation, outcome);
                }
                Decision::Wait(wait) => {
                    assert!(wait.until > self.now, "a wait into the past: {wait:?}");
                    self.now = wait.until;
                }
                Decision::End(end) => return (end, sent),
            }
        }
        panic!("no end after 100 000 steps");
    }

    pub fn gate(&self) -> &'static str {
        self.partner.view(self.now).gate.as_str()
    }
}

#[track_caller]
pub fn wait_of(decision: Decision) -> Wait {
    match decision {
        Decision::Wait(wait) => wait,
        other => panic!("not a wait: {other:?}"),
    }
}

#[track_caller]
pub fn end_of(decision: Decision) -> End {
    match decision {
        Decision::End(end) => end,
        other => panic!("not an end: {other:?}"),
    }
}

#[track_caller]
pub fn ended(decision: Decision, reason: Reason) {
    assert_eq!(end_of(decision).reason, reason);
}

#[track_caller]
pub fn because(decision: Decision, because: Because) {
    assert_eq!(wait_of(decision).because, because);
}

/// Nothing but retries, backoff and window: breaker, budget and limits off.
pub fn bare(policy: Policy) -> Policy {
    Policy {
        breaker: None,
        budget: None,
        suspend_after: None,
        limit: ressac_policy::LimitConfig {
            concurrency: None,
            rate: None,
            ..policy.limit
        },
        ..policy
    }
}
