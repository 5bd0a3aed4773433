//! Many operations at one partner, driven by a list of steps in any order.

use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::select;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use ressac_policy::{
    Decision, Hint, HintSource, Operation, OperationSpec, Outcome, OutcomeKind, Partner, Policy,
    Processed, Reason, Timestamp,
};

/// One step. Operations are named by number, modulo how many there are.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Later(Duration),
    /// The clock steps back.
    Earlier(Duration),
    New(OperationSpec),
    Poll(usize),
    /// Polls it, and sleeps for as long as it says.
    Sleep(usize),
    /// Time goes on to its deadline, to the nanosecond.
    ToDeadline(usize),
    /// Of all that are due, one after the other.
    PollAll,
    Outcome(usize, Outcome),
    Cancel(usize),
    TakeBack(usize),
    Replay(usize),
    /// The shell forgets it, in flight or not.
    Lose(usize),
    Restart,
    Resume,
    Reload,
}

pub(crate) fn outcome() -> impl Strategy<Value = Outcome> {
    let kinds = vec![
        OutcomeKind::Success,
        OutcomeKind::Status(200),
        OutcomeKind::Status(208),
        OutcomeKind::Status(302),
        OutcomeKind::Status(401),
        OutcomeKind::Status(404),
        OutcomeKind::Status(409),
        OutcomeKind::Status(429),
        OutcomeKind::Status(500),
        OutcomeKind::Status(503),
        OutcomeKind::Status(u16::MAX),
        OutcomeKind::Dns,
        OutcomeKind::Refused,
        OutcomeKind::Certificate,
        OutcomeKind::Invalid,
        OutcomeKind::RefusedStream,
        OutcomeKind::RefusedStream,
        OutcomeKind::RefusedStream,
        OutcomeKind::Reset,
        OutcomeKind::Timeout,
        OutcomeKind::Truncated,
        OutcomeKind::Crash,
    ];
    let wait = prop_oneof![
        (0u64..300_000).prop_map(Duration::from_millis),
        select(vec![
            Duration::ZERO,
            Duration::from_nanos(1),
            Duration::from_secs(1_796_040_000),
            Duration::MAX
        ]),
    ];
    let hint = proptest::option::of(wait.prop_map(|wait| Hint {
        wait,
        source: HintSource::RetryAfter,
    }));
    (select(kinds), hint, 0u8..20, 0u64..20_000).prop_map(|(kind, hint, rare, took)| {
        let mut outcome = Outcome::new(kind)
            .with_hint(hint)
            .took(Duration::from_millis(took))
            .gave_up(rare == 0);
        if rare == 1 {
            outcome = outcome.proving(Processed::No);
        }
        outcome
    })
}

pub(crate) fn spec() -> impl Strategy<Value = OperationSpec> {
    (
        any::<bool>(),
        any::<bool>(),
        proptest::option::of((0u64..3_600_000).prop_map(Duration::from_millis)),
        0u8..5,
    )
        .prop_map(|(idempotent, keyed, key_ttl, stream)| OperationSpec {
            idempotent,
            keyed,
            key_ttl,
            repeatable_body: stream > 0,
            deliver_by: None,
        })
}

/// Steps of a shell that behaves: time goes on, and each attempt is answered once.
pub(crate) fn step() -> impl Strategy<Value = Step> {
    let which = 0usize..1_000;
    prop_oneof![
        4 => (0u64..20_000).prop_map(|ms| Step::Later(Duration::from_millis(ms))),
        3 => spec().prop_map(Step::New),
        2 => which.clone().prop_map(Step::Poll),
        3 => which.clone().prop_map(Step::Sleep),
        1 => which.clone().prop_map(Step::ToDeadline),
        3 => Just(Step::PollAll),
        8 => (which.clone(), outcome()).prop_map(|(i, o)| Step::Outcome(i, o)),
        1 => which.clone().prop_map(Step::Cancel),
        1 => which.clone().prop_map(Step::TakeBack),
        1 => which.prop_map(Step::Replay),
    ]
}

/// And of one that does not, on a machine that does not either.
pub(crate) fn wild_step() -> impl Strategy<Value = Step> {
    let far = select(vec![
        Duration::from_nanos(1),
        Duration::from_secs(86_400),
        Duration::from_secs(86_400 * 365 * 100),
        Duration::MAX,
    ]);
    prop_oneof![
        20 => step(),
        1 => far.prop_map(Step::Later),
        1 => (0u64..100_000_000).prop_map(|ms| Step::Earlier(Duration::from_millis(ms))),
        1 => (0usize..1_000).prop_map(Step::Lose),
        1 => Just(Step::Restart),
        1 => Just(Step::Resume),
        1 => Just(Step::Reload),
    ]
}

pub(crate) struct Machine {
    pub(crate) now: Timestamp,
    pub(crate) partner: Partner,
    pub(crate) rng: Xoshiro256PlusPlus,
    pub(crate) operations: Vec<Operation>,
    /// What a reload puts in force.
    pub(crate) other: Policy,
}

/// What a step came to: the operation and what was decided, for each it touched.
pub(crate) type Trace = Vec<(usize, Decision)>;

impl Machine {
    pub(crate) fn new(policy: Policy, seed: u64) -> Self {
        let now = Timestamp::from_secs(100_000);
        Machine {
            now,
            other: policy.clone(),
            partner: Partner::new(policy, now),
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            operations: Vec::new(),
        }
    }

    pub(crate) fn poll(&mut self, index: usize) -> Decision {
        self.operations[index].poll(self.now, &mut self.partner, &mut self.rng)
    }

    pub(crate) fn told(&mut self, index: usize, outcome: &Outcome) -> Decision {
        self.operations[index].on_outcome(self.now, outcome, &mut self.partner, &mut self.rng)
    }

    pub(crate) fn step(&mut self, step: &Step) -> Trace {
        let Machine { now, partner, .. } = self;
        match step {
            Step::Later(time) => *now = *now + *time,
            Step::Earlier(time) => {
                let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
                *now = Timestamp::from_nanos(now.as_nanos().saturating_sub(nanos));
            }
            Step::New(spec) => {
                let operation = Operation::new(spec, partner.policy(), *now);
                self.operations.push(operation);
            }
            Step::Restart => {
                let (policy, state) = (partner.policy().clone(), partner.state().clone());
                *partner = Partner::restore(policy, state, *now);
            }
            Step::Resume => partner.resume(*now),
            Step::Reload => {
                let old = partner.policy().clone();
                partner.set_policy(core::mem::replace(&mut self.other, old), *now);
            }
            Step::PollAll => {
                let all = 0..self.operations.len();
                return all.map(|index| (index, self.poll(index))).collect();
            }
            Step::Poll(which)
            | Step::Sleep(which)
            | Step::ToDeadline(which)
            | Step::Outcome(which, _)
            | Step::Cancel(which)
            | Step::TakeBack(which)
            | Step::Replay(which)
            | Step::Lose(which) => {
                let Some(index) = which.checked_rem(self.operations.len()) else {
                    return Trace::new();
                };
                return self.step_one(step, index);
            }
        }
        Trace::new()
    }

    fn step_one(&mut self, step: &Step, index: usize) -> Trace {
        let (now, partner, rng) = (self.now, &mut self.partner, &mut self.rng);
        let operation = &mut self.operations[index];
        let decision = match step {
            Step::Outcome(_, outcome) => operation.on_outcome(now, outcome, partner, rng),
            Step::Cancel(_) => operation.cancel(now, Reason::Cancelled, partner, rng),
            Step::TakeBack(_) => {
                operation.take_back(now, partner, rng);
                return Trace::new();
            }
            Step::Replay(_) => {
                if operation.ended().is_some() {
                    *operation = operation.replay(partner.policy(), None, now);
                }
                return Trace::new();
            }
            Step::ToDeadline(_) => {
                let deadline = operation.deadline();
                if !deadline.is_never() {
                    self.now = now.max(deadline);
                }
                return Trace::new();
            }
            Step::Lose(_) => {
                self.operations.swap_remove(index);
                return Trace::new();
            }
            _ => operation.poll(now, partner, rng),
        };
        if let (Step::Sleep(_), Decision::Wait(wait)) = (step, decision)
            && !wait.until.is_never()
        {
            self.now = now.max(wait.until);
        }
        vec![(index, decision)]
    }
}
