//! The retry budget: how many retries a partner has to bear, whatever happens.
//!
//! # Why a budget and not only a maximum of retries?
//!
//! A maximum bounds one operation. In an outage *every* operation fails, and `retries = 5` turns a
//! thousand requests a second into six thousand: the partner that was getting up is pushed down
//! again. A budget bounds their sum: with a ratio of 0.1 a thousand requests a second allow a
//! hundred retries a second, all operations together.

use core::time::Duration;

use crate::policy::{BudgetConfig, Deposit};
use crate::ratio::ONE;
use crate::time::Timestamp;
use crate::window::Sliding;

/// A bucket of tokens, counted in millionths. A retry costs one token when it is sent.
///
/// * each first attempt (or each success, see [`Deposit`]) adds `ratio`;
/// * it starts with `reserve`, and holds at most `max(reserve, ratio × the first attempts of the
///   last window)`, so that a quiet day saves nothing for the outage after it;
/// * `trickle` adds a little by itself, so that a quiet client recovers.
///
/// In a total outage of length D at λ first attempts a second, attempts per first attempt stay at
/// or below `1 + ratio + (capacity before it + trickle × D) / (λ × D)`.
///
/// ```
/// use core::time::Duration;
/// use ressac_policy::{Budget, BudgetConfig, Timestamp};
///
/// let config = BudgetConfig { reserve: 1, trickle: None, ..BudgetConfig::default() };
/// let now = Timestamp::from_secs(0);
/// let mut budget = Budget::new(&config, now);
/// assert!(budget.withdraw(&config, now));
/// assert!(!budget.withdraw(&config, now));
/// for _ in 0..10 {
///     budget.on_first_attempt(&config, now);
/// }
/// assert!(budget.withdraw(&config, now));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Budget {
    tokens: u64,
    trickled_to: Timestamp,
    carried: u64,
    firsts: Sliding<u32>,
}

impl Budget {
    /// A bucket with its reserve.
    #[must_use]
    pub fn new(config: &BudgetConfig, now: Timestamp) -> Self {
        Budget {
            tokens: u64::from(config.reserve) * ONE,
            trickled_to: now,
            carried: 0,
            firsts: Sliding::new(config.window, now),
        }
    }

    /// Another configuration from now on. The tokens stay, as far as it lets them be saved.
    pub(crate) fn reload(&mut self, old: &BudgetConfig, new: &BudgetConfig, now: Timestamp) {
        self.trickle(old, now);
        self.trickled_to = self.trickled_to.max(now);
        self.carried = 0;
        if old.window != new.window {
            self.firsts = Sliding::new(new.window, now);
        }
    }

    /// Takes up what was stored: over another window where that has changed, and without waiting
    /// for a clock that was ahead.
    pub(crate) fn take_up(&mut self, config: &BudgetConfig, now: Timestamp) {
        if !self.firsts.fits(config.window, now) {
            self.firsts = Sliding::new(config.window, now);
        }
        self.trickled_to = self.trickled_to.min(now);
        self.carried = 0;
    }

    /// A first attempt is being sent.
    #[inline]
    pub fn on_first_attempt(&mut self, config: &BudgetConfig, now: Timestamp) {
        let firsts = self.firsts.add(now, 1);
        if config.deposit == Deposit::Request {
            self.put(config, firsts, u64::from(config.ratio.millionths()));
        }
    }

    /// The same, all inline; false, and nothing changed, where the window has to move on.
    #[inline]
    pub(crate) fn on_first_attempt_plainly(
        &mut self,
        config: &BudgetConfig,
        now: Timestamp,
    ) -> bool {
        if !self.firsts.is_current(now) {
            return false;
        }
        let firsts = self.firsts.add_here(1);
        if config.deposit == Deposit::Request {
            self.put(config, firsts, u64::from(config.ratio.millionths()));
        }
        true
    }

    /// An operation succeeded.
    #[inline]
    pub fn on_success(&mut self, config: &BudgetConfig, now: Timestamp) {
        if config.deposit == Deposit::Success {
            self.deposit(config, now, u64::from(config.ratio.millionths()));
        }
    }

    /// A retry that succeeded gives its token back.
    pub fn give_back(&mut self, config: &BudgetConfig, now: Timestamp) {
        self.deposit(config, now, ONE);
    }

    /// Takes the token of a retry that is being sent; false, and nothing changed, without one.
    #[inline]
    pub fn withdraw(&mut self, config: &BudgetConfig, now: Timestamp) -> bool {
        self.trickle(config, now);
        if self.tokens < ONE {
            return false;
        }
        self.tokens -= ONE;
        true
    }

    /// The most that could be saved at this moment, in millionths of a token.
    #[must_use]
    pub fn capacity(&self, config: &BudgetConfig, now: Timestamp) -> u64 {
        capacity(config, self.firsts.peek(now))
    }

    /// What there is at this moment, in millionths of a token. Changes nothing.
    #[must_use]
    pub fn tokens(&self, config: &BudgetConfig, now: Timestamp) -> u64 {
        let elapsed = trickle_elapsed(self.trickled_to, now);
        let trickled = config
            .trickle
            .map_or(0, |rate| rate.accrued(elapsed, self.carried).0);
        self.tokens
            .saturating_add(trickled)
            .min(self.capacity(config, now))
    }

    /// The moment at which the trickle alone will have brought a whole token; now if there is one,
    /// [`Timestamp::MAX`] if it never will. A deposit can bring one earlier.
    #[must_use]
    pub fn ready_at(&self, config: &BudgetConfig, now: Timestamp) -> Timestamp {
        // Most often there is one, and what has trickled in since need not be worked out.
        if self.tokens >= ONE && self.capacity(config, now) >= ONE {
            return now;
        }
        let missing = ONE.saturating_sub(self.tokens(config, now));
        match config.trickle {
            _ if missing == 0 => now,
            Some(rate) if capacity(config, 0) >= ONE => now.plus_nanos(rate.time_for(missing)),
            _ => Timestamp::MAX,
        }
    }

    /// Is there a token, whatever has trickled in or slid out of the window since?
    #[inline]
    pub(crate) const fn has_token(&self, config: &BudgetConfig) -> bool {
        self.tokens >= ONE && config.reserve > 0
    }

    #[inline]
    fn deposit(&mut self, config: &BudgetConfig, now: Timestamp, millionths: u64) {
        let firsts = self.firsts.total(now);
        self.put(config, firsts, millionths);
    }

    #[inline]
    fn put(&mut self, config: &BudgetConfig, firsts: u32, millionths: u64) {
        let capacity = capacity(config, firsts);
        self.tokens = self.tokens.saturating_add(millionths).min(capacity);
    }

    /// Brings the trickle up to now. Whole millionths only: the rest is carried.
    #[inline(always)]
    fn trickle(&mut self, config: &BudgetConfig, now: Timestamp) {
        let elapsed = trickle_elapsed(self.trickled_to, now);
        let Some(rate) = config.trickle else {
            return self.deposit(config, now, 0);
        };
        let (whole, carried) = rate.accrued(elapsed, self.carried);
        self.carried = carried;
        self.trickled_to = self.trickled_to.max(now);
        self.deposit(config, now, whole);
    }
}

fn trickle_elapsed(since: Timestamp, now: Timestamp) -> u64 {
    now.as_nanos().saturating_sub(since.as_nanos())
}

#[inline]
fn capacity(config: &BudgetConfig, firsts: u32) -> u64 {
    let reserve = u64::from(config.reserve) * ONE;
    reserve.max(u64::from(firsts) * u64::from(config.ratio.millionths()))
}

/// The bound of the module's documentation: attempts per first attempt in a total outage.
/// `capacity` in tokens, `rate` in first attempts per second. `None` without a budget or traffic.
///
/// ```
/// use core::time::Duration;
/// use ressac_policy::{BudgetConfig, amplification_bound};
///
/// let config = BudgetConfig { trickle: None, ..BudgetConfig::default() };
/// // 100 a second for 5 s, a full reserve of ten tokens, but 100 saved from the last window.
/// let bound = amplification_bound(&config, 100.0, Duration::from_secs(5), 100.0);
/// assert!((bound - 1.3).abs() < 1e-9);
/// ```
#[must_use]
pub fn amplification_bound(
    config: &BudgetConfig,
    rate: f64,
    outage: Duration,
    capacity: f64,
) -> f64 {
    let ratio = match config.deposit {
        Deposit::Request => config.ratio.as_f64(),
        Deposit::Success => 0.0,
    };
    let trickle = config.trickle.map_or(0.0, |rate| rate.per_second_f64());
    let outage = outage.as_secs_f64();
    1.0 + ratio + (capacity + trickle * outage) / (rate * outage)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ratio::{Rate, Ratio};

    fn config() -> BudgetConfig {
        BudgetConfig::default()
    }

    fn secs(s: u64) -> Timestamp {
        Timestamp::from_secs(s)
    }

    #[test]
    fn bu_3_an_empty_budget_comes_back_by_itself() {
        let config = config();
        let mut budget = Budget::new(&config, secs(0));
        while budget.withdraw(&config, secs(0)) {}
        assert_eq!(budget.ready_at(&config, secs(0)), secs(10));
        assert!(!budget.withdraw(&config, Timestamp::from_millis(9_999)));
        assert!(budget.withdraw(&config, secs(10)));
    }

    #[test]
    fn bu_5_after_many_first_attempts_one_failure_finds_a_token() {
        let config = config();
        let mut budget = Budget::new(&config, secs(0));
        for _ in 0..1_000 {
            budget.on_first_attempt(&config, secs(1));
        }
        assert_eq!(budget.tokens(&config, secs(1)), 100 * ONE);
        assert!(budget.withdraw(&config, secs(1)));
    }

    #[test]
    fn bu_7_a_quiet_day_saves_no_more_than_the_reserve() {
        let config = config();
        let mut budget = Budget::new(&config, secs(0));
        for second in 0..1_000 {
            for _ in 0..100 {
                budget.on_first_attempt(&config, secs(second));
            }
        }
        assert!(budget.tokens(&config, secs(1_000)) <= 100 * ONE);
        assert_eq!(budget.tokens(&config, secs(86_400)), 10 * ONE);
    }

    #[test]
    fn tokens_are_exact_over_any_split_of_time() {
        let config = BudgetConfig {
            trickle: Rate::new(333_333, Duration::from_secs(1)),
            reserve: 1_000,
            ..config()
        };
        let mut budget = Budget::new(&config, secs(0));
        while budget.withdraw(&config, secs(0)) {}
        let mut now = 0;
        for step in 0..10_000u64 {
            now += 1 + step * 37 % 100_003;
            budget.trickle(&config, Timestamp::from_nanos(now));
        }
        assert_eq!(budget.tokens, now * 333_333 / 1_000_000_000);
    }

    #[test]
    fn a_clock_that_steps_back_makes_no_tokens() {
        let config = config();
        let mut budget = Budget::new(&config, secs(100));
        while budget.withdraw(&config, secs(100)) {}
        assert!(!budget.withdraw(&config, secs(50)));
        assert!(!budget.withdraw(&config, secs(100)));
        assert!(budget.withdraw(&config, secs(110)));
    }

    #[test]
    fn fed_by_success_it_dries_up_in_an_outage() {
        let config = BudgetConfig {
            deposit: Deposit::Success,
            trickle: None,
            ..config()
        };
        let mut budget = Budget::new(&config, secs(0));
        let mut spent = 0;
        for _ in 0..1_000 {
            budget.on_first_attempt(&config, secs(1));
            spent += u32::from(budget.withdraw(&config, secs(1)));
        }
        assert_eq!(spent, config.reserve);
        budget.on_success(&config, secs(2));
        assert_eq!(
            budget.tokens(&config, secs(2)),
            Ratio::from_millionths(100_000).of(ONE)
        );
    }
}
