//! The rules of a retry, for any sound policy and any order of events.

use std::time::Duration;

use proptest::prelude::*;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use ressac_policy::{AttemptKind, Because, Decision, Hint, Mode, Policy, Timestamp, Wait};

use crate::machine::{Machine, Step, step};
use crate::policies::{sound, sound_backoff};

/// What is known of an operation from outside.
#[derive(Clone, Copy, Default)]
struct Shadow {
    series: u32,
    sent: [u32; 4],
    last: Option<AttemptKind>,
    in_flight: bool,
    /// Not before this moment, by the hint on its last failure.
    floor: Timestamp,
}

fn slot(kind: AttemptKind) -> usize {
    match kind {
        AttemptKind::First => 0,
        AttemptKind::Retry => 1,
        AttemptKind::Probe => 2,
        AttemptKind::Free => 3,
    }
}

/// What of a hint is obeyed: synchronous up to the maximum.
fn obeyed(policy: &Policy, hint: Hint, left: Duration) -> Duration {
    match policy.mode {
        Mode::Durable => hint.wait,
        Mode::Synchronous => hint.wait.min(policy.retry_after.max.unwrap_or(left)),
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn check_wait(
    policy: &Policy,
    machine: &Machine,
    index: usize,
    hint: Option<Hint>,
    wait: &Wait,
) -> Result<(), TestCaseError> {
    let operation = &machine.operations[index];
    let waited = nanos(wait.until.since(machine.now));
    let ceiling = nanos(policy.backoff.ceiling(operation.retries()));
    match wait.because {
        Because::Backoff => {
            prop_assert!(hint.is_none());
            prop_assert!(
                waited <= nanos(policy.backoff.cap),
                "above the cap: {wait:?}"
            );
        }
        Because::RetryAfter => {
            let left = operation.deadline().since(machine.now);
            let floor = nanos(obeyed(policy, hint.unwrap(), left));
            let spread = policy.retry_after.spread.of(floor);
            prop_assert!(waited >= floor, "below the floor {floor}: {wait:?}");
            prop_assert!(
                waited <= floor.saturating_add(ceiling.max(spread)),
                "{wait:?}"
            );
        }
        _ => {}
    }
    prop_assert!(
        wait.until < operation.deadline()
            || wait.because == Because::Turn
            || wait.because == Because::Suspension,
        "past the window: {wait:?}"
    );
    Ok(())
}

fn check_send(
    policy: &Policy,
    machine: &Machine,
    index: usize,
    shadow: &Shadow,
    timeout: Duration,
) -> Result<(), TestCaseError> {
    let operation = &machine.operations[index];
    prop_assert!(machine.now < operation.deadline(), "sent after the window");
    prop_assert!(machine.now + timeout <= operation.deadline().max(machine.now));
    prop_assert!(timeout <= policy.attempt_timeout);
    prop_assert!(machine.now >= shadow.floor, "earlier than Retry-After");
    let [firsts, retries, probes, free] = shadow.sent;
    prop_assert_eq!(firsts, 1);
    prop_assert!(free <= 1);
    let counted = match policy.mode {
        Mode::Synchronous => firsts + retries + probes + free,
        Mode::Durable => firsts + retries,
    };
    prop_assert!(
        counted <= policy.retries + 1,
        "{:?} of {}",
        shadow.sent,
        policy.retries
    );
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]

    #[test]
    fn attempts_window_and_hints(
        policy in sound(),
        steps in proptest::collection::vec(step(), 1..200),
        seed: u64,
    ) {
        let mut machine = Machine::new(policy.clone(), seed);
        let mut shadows: Vec<Shadow> = Vec::new();
        for step in &steps {
            let deciding = match step {
                Step::Outcome(which, outcome) => which
                    .checked_rem(machine.operations.len())
                    .filter(|index| shadows[*index].in_flight)
                    .map(|_| outcome),
                _ => None,
            };
            if let (Step::TakeBack(which), false) = (step, machine.operations.is_empty()) {
                let shadow = &mut shadows[which % machine.operations.len()];
                if let Some(kind) = shadow.last.filter(|_| shadow.in_flight) {
                    shadow.sent[slot(kind)] -= 1;
                    shadow.in_flight = false;
                }
            }
            // Polled one at a time, so that each is judged by the state it was decided in.
            let polls = match step {
                Step::PollAll => 0..machine.operations.len(),
                _ => 0..0,
            };
            let mut trace = Vec::new();
            for index in polls.clone() {
                trace.push((index, machine.poll(index)));
            }
            if polls.is_empty() {
                trace = machine.step(step);
            }
            shadows.resize(machine.operations.len(), Shadow::default());
            for (shadow, operation) in shadows.iter_mut().zip(&machine.operations) {
                if shadow.series != operation.series() {
                    *shadow = Shadow { series: operation.series(), ..Shadow::default() };
                }
            }
            for (index, decision) in trace {
                match decision {
                    Decision::Send(attempt) => {
                        let shadow = &mut shadows[index];
                        shadow.sent[slot(attempt.kind)] += 1;
                        shadow.last = Some(attempt.kind);
                        shadow.in_flight = true;
                        check_send(&policy, &machine, index, shadow, attempt.timeout)?;
                    }
                    Decision::Wait(wait) => {
                        if let Some(outcome) = deciding {
                            check_wait(&policy, &machine, index, outcome.hint, &wait)?;
                            let left = machine.operations[index].deadline().since(machine.now);
                            let hint = outcome.hint.filter(|_| wait.because == Because::RetryAfter);
                            shadows[index].floor = hint.map_or(Timestamp::ZERO, |hint| {
                                machine.now + obeyed(&policy, hint, left)
                            });
                            shadows[index].in_flight = false;
                        }
                    }
                    Decision::End(end) => {
                        shadows[index].in_flight = false;
                        prop_assert_eq!(machine.operations[index].ended(), Some(end));
                        prop_assert_eq!(machine.poll(index), Decision::End(end));
                    }
                }
            }
        }
    }

    #[test]
    fn bo_1_to_bo_7_no_backoff_is_above_the_cap(
        backoff in sound_backoff(),
        retry in prop_oneof![0u32..100, any::<u32>()],
        previous in any::<u64>(),
        seed: u64,
    ) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let ceiling = backoff.ceiling(retry);
        prop_assert!(ceiling <= backoff.cap);
        prop_assert!(ceiling >= backoff.base.min(backoff.cap));
        prop_assert!(backoff.ceiling(retry.saturating_add(1)) >= ceiling);
        let wait = backoff.draw(retry, Duration::from_nanos(previous), &mut rng);
        prop_assert!(wait <= backoff.cap);
        prop_assert!(wait >= backoff.shortest(retry).min(backoff.cap));
    }
}
