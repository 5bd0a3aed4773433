//! What a scraper reads. Label values come from closed sets: partners of the configuration, kinds,
//! reasons. Nothing is counted by reading the store.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct PartnerLabel {
    pub(crate) partner: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct AttemptLabel {
    pub(crate) partner: String,
    pub(crate) kind: &'static str,
    pub(crate) outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct EndLabel {
    pub(crate) partner: String,
    pub(crate) reason: &'static str,
    pub(crate) blame: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct WaitLabel {
    pub(crate) partner: String,
    pub(crate) because: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct IntakeLabel {
    pub(crate) result: &'static str,
}

/// Every metric of the gateway.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    pub(crate) attempts: Family<AttemptLabel, Counter>,
    pub(crate) ends: Family<EndLabel, Counter>,
    pub(crate) waits: Family<WaitLabel, Counter>,
    pub(crate) intake: Family<IntakeLabel, Counter>,
    pub(crate) gate: Family<PartnerLabel, Gauge>,
    pub(crate) in_flight: Family<PartnerLabel, Gauge>,
    pub(crate) tokens: Family<PartnerLabel, Gauge<f64, std::sync::atomic::AtomicU64>>,
    pub(crate) store_failures: Counter,
    pub(crate) attempt_seconds: Family<PartnerLabel, Histogram>,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("ressac");
        let attempts = Family::default();
        registry.register("attempts", "Attempts by kind and outcome", attempts.clone());
        let ends = Family::default();
        registry.register(
            "messages_ended",
            "Messages ended, by reason and blame",
            ends.clone(),
        );
        let waits = Family::default();
        registry.register(
            "waits",
            "Waits decided after a failed attempt, by what for",
            waits.clone(),
        );
        let intake = Family::default();
        registry.register("intake", "Messages offered, by result", intake.clone());
        let gate = Family::default();
        registry.register(
            "gate_state",
            "The partner's gate: 0 closed, 1 half-open, 2 open",
            gate.clone(),
        );
        let in_flight = Family::default();
        registry.register("in_flight", "Attempts in flight", in_flight.clone());
        let tokens = Family::default();
        registry.register(
            "budget_tokens",
            "Tokens of the retry budget",
            tokens.clone(),
        );
        let store_failures = Counter::default();
        registry.register(
            "store_failures",
            "Writes of the delivery engine that the store did not take and that are tried again",
            store_failures.clone(),
        );
        let attempt_seconds = Family::<PartnerLabel, Histogram>::new_with_constructor(|| {
            Histogram::new(exponential_buckets(0.001, 2.0, 20))
        });
        registry.register(
            "attempt_seconds",
            "Time of an attempt",
            attempt_seconds.clone(),
        );
        Metrics {
            registry,
            attempts,
            ends,
            waits,
            intake,
            gate,
            in_flight,
            tokens,
            store_failures,
            attempt_seconds,
        }
    }

    /// The OpenMetrics text.
    pub(crate) fn text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry)?;
        Ok(text)
    }
}
