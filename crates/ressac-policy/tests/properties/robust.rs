//! Nothing panics, equal inputs give equal decisions, and what is stored comes back.

use proptest::prelude::*;

use crate::machine::{Machine, Trace, wild_step};
use crate::policies::{any_policy, sound};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever the policy, whatever the order of calls: no panic, no overflow, no division by
    /// nothing; and the same again gives the same again.
    #[test]
    fn no_policy_and_no_order_of_calls_panics_and_equal_is_equal(
        policy in any_policy(),
        other in any_policy(),
        steps in proptest::collection::vec(wild_step(), 1..120),
        seed: u64,
    ) {
        let run = || -> Vec<Trace> {
            let mut machine = Machine::new(policy.clone(), seed);
            machine.other = other.clone();
            steps.iter().map(|step| machine.step(step)).collect()
        };
        prop_assert_eq!(run(), run());
    }

    /// A decision depends on state, now and the random word, on nothing else: a copy of the state
    /// that has never seen what led to it decides the same.
    #[test]
    fn a_copy_of_the_state_decides_the_same(
        policy in sound(),
        steps in proptest::collection::vec(wild_step(), 1..80),
        seed: u64,
    ) {
        let mut machine = Machine::new(policy, seed);
        for step in &steps {
            let mut copy = Machine {
                now: machine.now,
                partner: machine.partner.clone(),
                rng: machine.rng.clone(),
                operations: machine.operations.clone(),
                other: machine.other.clone(),
            };
            prop_assert_eq!(machine.step(step), copy.step(step));
            prop_assert_eq!(machine.partner.state(), copy.partner.state());
        }
    }
}

#[cfg(feature = "serde")]
mod stored {
    use super::*;
    use ressac_policy::{Operation, PartnerState};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(150))]

        /// What does not hang on an attempt in flight comes back equal; what does comes back as the
        /// same text.
        #[test]
        fn operations_and_partners_come_back_from_the_store(
            policy in any_policy(),
            steps in proptest::collection::vec(wild_step(), 1..80),
            seed: u64,
        ) {
            let mut machine = Machine::new(policy, seed);
            for step in &steps {
                machine.step(step);
            }
            for operation in &machine.operations {
                let text = serde_json::to_string(operation).unwrap();
                let back: Operation = serde_json::from_str(&text).unwrap();
                prop_assert_eq!(serde_json::to_string(&back).unwrap(), text.clone());
                if !text.contains("\"Sending\"") {
                    prop_assert_eq!(&back, operation);
                }
            }
            let state = machine.partner.state();
            let text = serde_json::to_string(state).unwrap();
            let back: PartnerState = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(serde_json::to_string(&back).unwrap(), text);
            if machine.partner.view(machine.now).in_flight == 0 {
                prop_assert_eq!(&back, state);
            }
        }
    }
}
