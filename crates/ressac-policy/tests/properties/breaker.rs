//! Half-open: never more than `probes` out, and always a way back to closed.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use ressac_policy::{
    BreakerConfig, Cause, Decision, GateState, OperationSpec, Outcome, OutcomeKind, Policy,
    Timestamp,
};

use crate::machine::{Machine, Step, outcome, step};
use crate::policies::{sound, sound_breaker};

/// Steps under which attempts are lost as well, and failures are common.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    let failures =
        (0usize..1_000).prop_map(|i| Step::Outcome(i, Outcome::new(OutcomeKind::Refused)));
    let good = (0usize..1_000).prop_map(|i| Step::Outcome(i, Outcome::success()));
    let one = prop_oneof![
        10 => step(),
        6 => failures,
        3 => good,
        2 => (0usize..1_000, outcome()).prop_map(|(i, o)| Step::Outcome(i, o)),
        1 => (0usize..1_000).prop_map(Step::Lose),
        1 => Just(Step::Restart),
    ];
    proptest::collection::vec(one, 1..200)
}

fn policy() -> impl Strategy<Value = Policy> {
    (sound(), sound_breaker()).prop_map(|(policy, breaker)| Policy {
        breaker: Some(breaker),
        budget: None,
        ..policy
    })
}

fn most_probes(config: &BreakerConfig, state: GateState) -> usize {
    match state {
        GateState::HalfOpen {
            cause: Cause::Breaker,
        } => usize::from(config.probes),
        _ => 1,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]

    #[test]
    fn br_1_never_more_than_the_probes_are_out(
        policy in policy(),
        steps in steps(),
        seed: u64,
    ) {
        let config = policy.breaker.unwrap();
        let mut machine = Machine::new(policy, seed);
        // Until when each probe of this half-open keeps its place.
        let mut out: BTreeMap<usize, Timestamp> = BTreeMap::new();
        for step in &steps {
            // One poll at a time, so that each admission is seen; losing renumbers, so it is done
            // by never answering.
            let polls: Vec<usize> = match step {
                Step::PollAll => (0..machine.operations.len()).collect(),
                Step::Poll(which) | Step::Sleep(which) => {
                    which.checked_rem(machine.operations.len()).into_iter().collect()
                }
                Step::Lose(_) => continue,
                _ => {
                    let restarted = matches!(step, Step::Restart);
                    for (index, _) in machine.step(step) {
                        out.remove(&index);
                    }
                    if let (Step::TakeBack(which), false) = (step, machine.operations.is_empty()) {
                        out.remove(&(which % machine.operations.len()));
                    }
                    let state = machine.partner.view(machine.now).gate;
                    if restarted || !matches!(state, GateState::HalfOpen { .. }) {
                        out.clear();
                    }
                    continue;
                }
            };
            for index in polls {
                let decision = machine.poll(index);
                let state = machine.partner.view(machine.now).gate;
                if let (Decision::Send(attempt), GateState::HalfOpen { .. }) = (decision, state) {
                    let limit = attempt.timeout + Duration::from_secs(1);
                    let keeps = machine.now + config.probe_timeout.max(limit);
                    out.insert(index, keeps);
                    let now = machine.now;
                    let count = out.values().filter(|keeps| **keeps > now).count();
                    prop_assert!(count <= most_probes(&config, state), "{count} out, {state:?}");
                }
            }
        }
    }

    /// However it came about, time and good outcomes close it again, in a bounded number of steps.
    #[test]
    fn br_2_and_br_6_it_is_never_stuck(policy in policy(), steps in steps(), seed: u64) {
        let mut machine = Machine::new(policy, seed);
        for step in &steps {
            machine.step(step);
        }
        for _ in 0..40 {
            if machine.partner.view(machine.now).gate == GateState::Closed {
                break;
            }
            let ready = machine.partner.readiness(machine.now);
            prop_assert!(!ready.at.is_never(), "{ready:?}");
            machine.now = machine.now.max(ready.at);
            machine.step(&Step::New(OperationSpec::new("GET")));
            let last = machine.operations.len() - 1;
            let decision = machine.poll(last);
            prop_assert!(matches!(decision, Decision::Send(_)), "{decision:?}");
            machine.told(last, &Outcome::success());
        }
        prop_assert_eq!(machine.partner.view(machine.now).gate, GateState::Closed);
    }
}
