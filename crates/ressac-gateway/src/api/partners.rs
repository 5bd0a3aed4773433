//! `/v1/partners`: how each partner stands.

use axum::Json;
use axum::extract::Path;
use ressac_policy::{Cause, GateState};
use serde::Serialize;

use super::State;
use super::problem::Problem;
use super::view::moment;
use crate::engine::LaneView;

#[derive(Debug, Serialize)]
pub(super) struct PartnersView {
    partners: Vec<PartnerView>,
}

#[derive(Debug, Serialize)]
struct PartnerView {
    partner: String,
    url: String,
    /// What it is spoken to in, as its setting says.
    http_version: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    breaker: Option<BreakerView>,
    /// Tokens of the retry budget; absent where it is off.
    #[serde(skip_serializing_if = "Option::is_none")]
    budget_tokens: Option<f64>,
    in_flight: u32,
    /// The share of rate and concurrency that the partner bears now.
    limit_share: f64,
    waiting: u64,
    sending: u64,
    delivered: u64,
    dead: u64,
    /// When the oldest message that still waits was accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest_waiting: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_attempt_not_before: Option<String>,
    #[serde(skip_serializing_if = "str::is_empty")]
    because: &'static str,
}

#[derive(Debug, Serialize)]
struct BreakerView {
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<ressac_policy::Cause>,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
    failures: u32,
    calls: u32,
}

pub(super) async fn list(axum::extract::State(api): State) -> Result<Json<PartnersView>, Problem> {
    let mut partners = Vec::with_capacity(api.partners.len());
    for (name, (settings, lane)) in &api.partners {
        let counts = api.context.store.counts(name).await?;
        let view = lane.view();
        let named = |view: &LaneView| !view.because.is_empty() && view.ready_at != u64::MAX;
        partners.push(PartnerView {
            partner: name.clone(),
            url: settings.url.to_string(),
            http_version: settings.client.version.as_str(),
            breaker: view.as_ref().map(breaker),
            budget_tokens: view.as_ref().and_then(|view| view.partner.tokens),
            in_flight: view.as_ref().map_or(0, |view| view.partner.in_flight),
            limit_share: view.as_ref().map_or(1.0, |view| view.partner.limit_share),
            waiting: counts.waiting,
            sending: counts.sending,
            delivered: counts.delivered,
            dead: counts.dead,
            oldest_waiting: counts.oldest_waiting.map(moment),
            next_attempt_not_before: view
                .as_ref()
                .filter(|view| named(view))
                .map(|view| moment(view.ready_at)),
            because: view.map_or("", |view| view.because),
        });
    }
    Ok(Json(PartnersView { partners }))
}

fn breaker(view: &LaneView) -> BreakerView {
    let (cause, until) = match view.partner.gate {
        GateState::Closed => (None, None),
        GateState::Open { until, cause } => (Some(cause), Some(moment(until.as_nanos()))),
        GateState::HalfOpen { cause } => (Some(cause), None),
    };
    BreakerView {
        state: view.partner.gate.as_str(),
        cause,
        until,
        failures: view.partner.failures,
        calls: view.partner.calls,
    }
}

/// Ends a suspension: the next attempt is a probe, now.
pub(super) async fn resume(
    axum::extract::State(api): State,
    Path(partner): Path<String>,
) -> Result<Json<serde_json::Value>, Problem> {
    let (_, lane) = api.partner(&partner)?;
    let gate = lane.view().map(|view| view.partner.gate);
    let suspended = matches!(
        gate,
        Some(
            GateState::Open {
                cause: Cause::Suspension,
                ..
            } | GateState::HalfOpen {
                cause: Cause::Suspension
            }
        )
    );
    // A hold is the partner's own word, and a breaker finds out by itself.
    if !suspended {
        return Err(Problem::new(
            http::StatusCode::CONFLICT,
            "not-suspended",
            "The partner is not suspended",
            "only a suspension needs an operator; holds and breakers end by themselves",
        ));
    }
    lane.resume();
    Ok(Json(
        serde_json::json!({ "partner": partner, "resumed": true }),
    ))
}
