//! From what is told to a policy of the engine.

use std::time::Duration;

use ressac_config::parse_duration;
use ressac_policy::{
    BreakerConfig, BudgetConfig, CallWindow, Jitter, LimitConfig, OverMax, Policy, Rate, Ratio,
    VendorHints,
};

use crate::told::Told;

/// The policy of a part. What is not told is as in the engine's own synchronous policy, but for
/// what the suite wants off.
pub(crate) fn policy(told: Told) -> Policy {
    let mut policy = Policy::sync();
    policy.retries = match told.number("attempts") {
        Some(attempts) => (attempts as u32).saturating_sub(1),
        None => 3,
    };
    set(&mut policy.backoff.base, told.millis("base_ms"));
    set(&mut policy.backoff.cap, told.millis("cap_ms"));
    set(&mut policy.backoff.factor, told.number("factor"));
    set(
        &mut policy.backoff.jitter,
        told.get("jitter").and_then(|word| jitter(&word)),
    );
    policy.window = told.millis("deadline_ms").or(policy.window);
    // Long bodies pass through.
    policy.attempt_timeout = told
        .millis("attempt_timeout_ms")
        .unwrap_or(Duration::from_secs(30));
    if let Some(max) = told.millis("retry_after_max_ms") {
        policy.retry_after.max = Some(max);
    }
    if told.get("retry_after_over_max").as_deref() == Some("give_up") {
        policy.retry_after.over_max = OverMax::GiveUp;
    }
    policy.retry_after.vendors = VendorHints::ALL;
    policy.budget = told.pairs("budget").and_then(|pairs| budget(&pairs));
    policy.breaker = told.pairs("breaker").and_then(|pairs| breaker(&pairs));
    policy.limit = LimitConfig {
        concurrency: None,
        decrease: Ratio::ONE,
        ..LimitConfig::default()
    };
    policy
}

fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

fn jitter(word: &str) -> Option<Jitter> {
    Some(match word {
        "none" => Jitter::None,
        "full" => Jitter::Full,
        "equal" => Jitter::Equal,
        "decorrelated" => Jitter::Decorrelated,
        _ => return None,
    })
}

fn budget(pairs: &[(String, String)]) -> Option<BudgetConfig> {
    let mut config = BudgetConfig::default();
    for (name, value) in pairs {
        match name.as_str() {
            "ratio" => config.ratio = Ratio::from_f64(value.parse().ok()?)?,
            "window" => config.window = parse_duration(value).ok()?,
            "reserve" => config.reserve = value.parse().ok()?,
            "trickle" => {
                let tokens: f64 = value.trim_end_matches("/s").parse().ok()?;
                config.trickle = Rate::new((tokens * 1e6) as u64, Duration::from_secs(1));
            }
            _ => {}
        }
    }
    Some(config)
}

fn breaker(pairs: &[(String, String)]) -> Option<BreakerConfig> {
    let mut config = BreakerConfig {
        consecutive: None,
        ..BreakerConfig::default()
    };
    for (name, value) in pairs {
        match name.as_str() {
            "failure_rate" => config.failure_rate = Ratio::from_f64(value.parse().ok()?),
            "min_calls" => config.min_calls = value.parse().ok()?,
            "window" => config.window = CallWindow::Time(parse_duration(value).ok()?),
            "open" => config.open = parse_duration(value).ok()?,
            "probes" => config.probes = value.parse().ok()?,
            _ => {}
        }
    }
    Some(config)
}
