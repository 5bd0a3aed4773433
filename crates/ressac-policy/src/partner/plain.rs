//! What happens most, all inline: nothing stands before an attempt, and it succeeds.
//!
//! Each of these says what the whole way says, or that it cannot tell; the test below holds the
//! two against each other.

use core::time::Duration;

use super::{Partner, Ticket};
use crate::decision::AttemptKind;
use crate::policy::{Deposit, Mode};
use crate::time::Timestamp;

impl Partner {
    /// Nothing stands before an attempt: the usual case, seen at a glance. Where this is false
    /// [`Partner::readiness`] knows why, and may still find that one can go.
    #[inline]
    pub(crate) fn is_clear(&self) -> bool {
        self.state.gate.is_clear() && self.state.limiter.is_clear(&self.policy.limit)
    }

    /// Takes the place of an attempt; the partner must be clear.
    #[inline]
    pub(crate) fn admit_clear(&mut self) -> Ticket {
        Ticket {
            pass: self.state.gate.pass(),
            epoch: self.state.limiter.take_place(),
        }
    }

    /// Is there a token, seen at a glance? Where this is false [`Partner::budget_readiness`] knows.
    #[inline]
    pub(crate) fn has_token(&self) -> bool {
        match (&self.state.budget, &self.policy.budget) {
            (Some(budget), Some(config)) => budget.has_token(config),
            _ => true,
        }
    }

    /// [`Partner::deposit_first`], all inline; false, and nothing changed, where it takes more.
    #[inline]
    pub(crate) fn deposit_plainly(&mut self, now: Timestamp) -> bool {
        match (&mut self.state.budget, &self.policy.budget) {
            (Some(budget), Some(config)) => budget.on_first_attempt_plainly(config, now),
            _ => true,
        }
    }

    /// An attempt has succeeded at a partner that is well: [`Partner::settle`] for what is most
    /// often said, all inline. False, and nothing changed, where there is more to it.
    #[inline]
    pub(crate) fn settle_plainly(
        &mut self,
        now: Timestamp,
        ticket: Ticket,
        kind: AttemptKind,
        took: Duration,
    ) -> bool {
        let fed = self.policy.budget.as_ref().is_some_and(|budget| {
            budget.deposit == Deposit::Success
                || kind == AttemptKind::Retry && self.policy.mode == Mode::Durable
        });
        if fed || self.state.suspects != 0 || !self.state.limiter.is_whole() {
            return false;
        }
        let enabled = self.policy.breaker.is_some();
        let config = &self.gate_config;
        if !self
            .state
            .gate
            .count_good(config, enabled, now, ticket.pass, took)
        {
            return false;
        }
        self.state.limiter.release(ticket.epoch);
        true
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    use super::*;
    use crate::outcome::{Outcome, Processed};
    use crate::partner::Ended;
    use crate::policy::{BreakerConfig, BudgetConfig, CallWindow, Policy};
    use crate::ratio::{Rate, Ratio};

    /// Policies that each shut the short way off, or do not.
    fn policy(which: u8) -> Policy {
        let mut policy = if which & 1 == 0 {
            Policy::sync()
        } else {
            Policy::durable()
        };
        let breaker = policy.breaker.as_mut().unwrap();
        match which / 2 {
            0 => breaker.slow_rate = Some(Ratio::from_millionths(500_000)),
            1 => breaker.window = CallWindow::Count(7),
            2 => policy.breaker = None,
            3 => policy.budget = None,
            4 => policy.budget.as_mut().unwrap().deposit = Deposit::Success,
            5 => policy.limit.rate = Some(Rate::per_second(100)),
            6 => policy.limit.concurrency = Some(2),
            7 => {
                policy.budget = Some(BudgetConfig {
                    reserve: 0,
                    ..BudgetConfig::default()
                })
            }
            _ => {
                policy.breaker = Some(BreakerConfig {
                    min_calls: 3,
                    ..BreakerConfig::default()
                })
            }
        }
        policy
    }

    /// Both ways through the same calls: one partner by the short way where it can, its twin by
    /// the whole way always.
    fn compare(policy: Policy, calls: &[(u64, u16, u64)]) -> usize {
        let mut now = Timestamp::from_secs(1_000);
        let mut short = Partner::new(policy, now);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut shortcuts = 0;
        for (step, status, took) in calls {
            now = now + Duration::from_millis(*step);
            let mut whole = short.clone();
            if short.has_token() {
                assert!(short.budget_readiness(now).at <= now);
            }
            if short.readiness(now).at > now {
                assert!(!short.is_clear());
                continue;
            }
            if !short.deposit_plainly(now) {
                short.deposit_first(now);
            }
            whole.deposit_first(now);
            let ticket = whole.admit(now, 1_000_000_000);
            if short.is_clear() {
                assert_eq!(short.admit_clear(), ticket);
            } else {
                assert_eq!(short.admit(now, 1_000_000_000), ticket);
            }
            assert_eq!(short.state(), whole.state());

            let outcome = Outcome::status(*status).took(Duration::from_millis(*took));
            let judgement = short.policy().rules.judge(&outcome, false, Processed::No);
            let kind = if took % 2 == 0 {
                AttemptKind::First
            } else {
                AttemptKind::Retry
            };
            let ended = Ended {
                ticket,
                kind,
                outcome: &outcome,
                judgement: &judgement,
                deadline: Timestamp::MAX,
            };
            let mut same = rng.clone();
            whole.settle(now, &ended, &mut same);
            if *status == 200 && short.settle_plainly(now, ticket, kind, outcome.took) {
                shortcuts += 1;
            } else {
                short.settle(now, &ended, &mut rng);
            }
            assert_eq!(short.state(), whole.state());
        }
        shortcuts
    }

    proptest! {
        #[test]
        fn the_short_way_and_the_whole_way_agree(
            which in 0u8..18,
            calls in proptest::collection::vec(
                (
                    prop_oneof![3 => 0u64..50, 1 => 0u64..20_000],
                    prop_oneof![6 => Just(200u16), 1 => Just(503), 1 => Just(429), 1 => Just(401)],
                    prop_oneof![3 => 0u64..100, 1 => 0u64..10_000],
                ),
                1..200,
            ),
        ) {
            compare(policy(which), &calls);
        }
    }

    #[test]
    fn the_short_way_is_the_usual_one() {
        for built_in in [Policy::sync(), Policy::durable()] {
            // A new slot of a window begins with a call the whole way round.
            assert!(compare(built_in, &[(1, 200, 0); 5_000]) > 4_900);
        }
    }
}
