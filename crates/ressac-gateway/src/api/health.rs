//! For orchestrators and scrapers.

use std::sync::atomic::Ordering;

use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;

use super::State;
use super::problem::Problem;

/// The process answers.
pub(super) async fn live() -> &'static str {
    "ok\n"
}

/// Every lane owns its partner, the store answers, and no stop has begun.
pub(super) async fn ready(axum::extract::State(api): State) -> Result<&'static str, Problem> {
    if api.stopping.load(Ordering::Acquire) {
        return Err(Problem::stopping());
    }
    if let Some((name, _)) = api
        .partners
        .iter()
        .find(|(_, (_, lane))| lane.view().is_none())
    {
        let detail = format!("the lane of {name} has not started");
        return Err(Problem::unavailable("not-ready", detail, 1));
    }
    api.context.store.counts("").await?;
    Ok("ready\n")
}

pub(super) async fn metrics(axum::extract::State(api): State) -> Response {
    match api.context.metrics.text() {
        Ok(text) => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ([(CONTENT_TYPE, kind)], text).into_response()
        }
        Err(_) => Problem::internal("the metrics could not be written").into_response(),
    }
}
