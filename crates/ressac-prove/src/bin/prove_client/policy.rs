//! From what is told to a policy of the engine.

use std::time::Duration;

use ressac_policy::{
    Backoff, BreakerConfig, BudgetConfig, Deposit, Jitter, LimitConfig, OverMax, Policy, Rate,
    Ratio, RetryOn, VendorHints,
};

use crate::Kind;
use crate::fault::Fault;
use crate::told::Told;

/// The policy of a part.
pub(crate) fn policy(told: &Told, kind: Kind, fault: &Fault) -> Policy {
    let sync = Policy::sync();
    if kind == Kind::Plain {
        return Policy {
            retries: 0,
            breaker: None,
            budget: None,
            ..sync
        };
    }
    let mut policy = Policy {
        retries: told
            .number("attempts")
            .map_or(3, |n| (n as u32).saturating_sub(1)),
        backoff: backoff(told),
        window: Some(
            told.millis("deadline_ms")
                .unwrap_or(Duration::from_secs(300)),
        ),
        attempt_timeout: told
            .millis("attempt_timeout_ms")
            .unwrap_or(Duration::from_secs(30)),
        budget: told.get("budget").and_then(budget),
        breaker: told.get("breaker").and_then(breaker),
        limit: LimitConfig {
            concurrency: None,
            decrease: Ratio::ONE,
            ..LimitConfig::default()
        },
        ..sync
    };
    if let Some(max) = told.millis("retry_after_max_ms") {
        policy.retry_after.max = Some(max);
    }
    if told.get("retry_after_over_max") == Some("give_up") {
        policy.retry_after.over_max = OverMax::GiveUp;
    }
    policy.retry_after.vendors = VendorHints::ALL;
    policy.rules.retry_on = told.get("retry_on").map(retry_on);
    if kind == Kind::Modest {
        policy.retries = 2;
        policy.budget = Some(BudgetConfig::default());
        policy.rules.retry_on = Some(RetryOn::EMPTY.with_status(503));
        policy.retry_after.vendors = VendorHints::NONE;
    }
    fault.policy(&mut policy, told);
    policy
}

fn backoff(told: &Told) -> Backoff {
    let default = Backoff::default();
    Backoff {
        base: told.millis("base_ms").unwrap_or(default.base),
        cap: told.millis("cap_ms").unwrap_or(default.cap),
        factor: told.number("factor").unwrap_or(default.factor),
        jitter: match told.get("jitter") {
            Some("none") => Jitter::None,
            Some("equal") => Jitter::Equal,
            Some("decorrelated") => Jitter::Decorrelated,
            _ => Jitter::Full,
        },
    }
}

fn retry_on(text: &str) -> RetryOn {
    text.split(',')
        .fold(RetryOn::EMPTY, |set, word| match word.parse() {
            Ok(status) => set.with_status(status),
            Err(_) => set.with_word(word).unwrap_or(set),
        })
}

/// `a=b,c=d`.
fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split(',').filter_map(|pair| pair.split_once('='))
}

fn span(text: &str) -> Option<Duration> {
    ressac_config::parse_duration(text).ok()
}

fn per_second(text: &str) -> Option<Rate> {
    let count: f64 = text.trim_end_matches("/s").parse().ok()?;
    Rate::new((count * 1e6) as u64, Duration::from_secs(1))
}

fn budget(text: &str) -> Option<BudgetConfig> {
    if text == "off" {
        return None;
    }
    let mut config = BudgetConfig {
        deposit: Deposit::Request,
        ..BudgetConfig::default()
    };
    for (name, value) in pairs(text) {
        match name {
            "ratio" => config.ratio = Ratio::from_f64(value.parse().ok()?)?,
            "window" => config.window = span(value)?,
            "reserve" => config.reserve = value.parse().ok()?,
            "trickle" => config.trickle = per_second(value),
            _ => {}
        }
    }
    Some(config)
}

fn breaker(text: &str) -> Option<BreakerConfig> {
    if text == "off" {
        return None;
    }
    let mut config = BreakerConfig {
        consecutive: None,
        ..BreakerConfig::default()
    };
    for (name, value) in pairs(text) {
        match name {
            "failure_rate" => config.failure_rate = Ratio::from_f64(value.parse().ok()?),
            "min_calls" => config.min_calls = value.parse().ok()?,
            "window" => config.window = ressac_policy::CallWindow::Time(span(value)?),
            "open" => config.open = span(value)?,
            "probes" => config.probes = value.parse().ok()?,
            _ => {}
        }
    }
    Some(config)
}
