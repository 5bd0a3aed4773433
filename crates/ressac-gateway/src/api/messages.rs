//! `/v1/messages`: look, replay, discard.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Query};
use http::StatusCode;
use ressac_policy::{Operation, Reason, Timestamp};
use ressac_store::{Counts, Discard, Filter, MAX_PAGE, MessageRecord, Replay};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::problem::Problem;
use super::view::{MessageView, RecordView};
use super::{Api, State};
use crate::engine::{decode, encode};
use crate::metrics::EndLabel;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Look {
    state: Option<String>,
    partner: Option<String>,
    reason: Option<String>,
    cursor: Option<String>,
    limit: Option<usize>,
}

#[derive(Debug, Serialize)]
pub(super) struct PageView {
    messages: Vec<MessageView>,
    /// Give it as `cursor` for the next page; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

pub(super) async fn list(
    axum::extract::State(api): State,
    query: Result<Query<Look>, axum::extract::rejection::QueryRejection>,
) -> Result<Json<PageView>, Problem> {
    let Query(look) =
        query.map_err(|error| Problem::bad_request("query-not-valid", error.body_text()))?;
    let state = look.state.as_deref().map(state).transpose()?;
    if let Some(word) = look.reason.as_deref()
        && Reason::from_word(word).is_none()
    {
        let words: Vec<_> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
        let detail = format!("reason must be one of: {}", words.join(" "));
        return Err(Problem::bad_request("query-not-valid", detail));
    }
    if let Some(name) = look.partner.as_deref()
        && !api.partners.contains_key(name)
        && api.context.store.counts(name).await? == Counts::default()
    {
        return Err(Problem::unknown_partner(name));
    }
    let filter = Filter {
        state,
        partner: look.partner,
        reason: look.reason,
    };
    let limit = look.limit.unwrap_or(100).clamp(1, MAX_PAGE);
    let page = api
        .context
        .store
        .list(&filter, look.cursor.as_deref(), limit)
        .await?;
    Ok(Json(PageView {
        messages: page.items.iter().map(MessageView::of).collect(),
        next: page.next,
    }))
}

fn state(word: &str) -> Result<ressac_store::State, Problem> {
    ressac_store::State::ALL
        .into_iter()
        .find(|state| state.as_str() == word)
        .ok_or_else(|| {
            Problem::bad_request(
                "query-not-valid",
                "state must be waiting, sending, delivered or dead",
            )
        })
}

pub(super) async fn show(
    axum::extract::State(api): State,
    Path(id): Path<String>,
) -> Result<Json<RecordView>, Problem> {
    Ok(Json(RecordView::of(&find(&api, &id).await?.0)))
}

async fn find(api: &Api, id: &str) -> Result<(MessageRecord, Uuid), Problem> {
    let id = Uuid::parse_str(id).map_err(|_| Problem::unknown_message())?;
    let record = api
        .context
        .store
        .get(id)
        .await?
        .ok_or_else(Problem::unknown_message)?;
    Ok((record, id))
}

/// A new series of attempts for a dead letter, with its old key.
pub(super) async fn replay(
    axum::extract::State(api): State,
    Path(id): Path<String>,
) -> Result<(StatusCode, Json<MessageView>), Problem> {
    let (record, id) = find(&api, &id).await?;
    let (settings, lane) = api
        .partner(&record.summary.partner)
        .map_err(|_| gone(&record))?;
    let old: Operation = decode(&record.operation)
        .ok_or_else(|| Problem::internal("the stored operation cannot be read"))?;
    if record.summary.reason.as_deref() == Some(Reason::Discarded.as_str()) {
        return Err(discarded());
    }
    let now = api.context.clock.timestamp();
    let operation = old.replay(&settings.policy, deliver_by(&record, now)?, now);
    let deadline = operation.deadline();
    let replay = Replay {
        id,
        due: now.as_nanos(),
        deadline: (!deadline.is_never()).then(|| deadline.as_nanos()),
        operation: encode(&operation),
    };
    let (store, lane) = (Arc::clone(&api.context.store), Arc::clone(lane));
    // A task of its own: the lane must hear of it though the caller hangs up.
    let task = tokio::spawn(async move {
        let result = store.replay(replay).await;
        lane.on_changed();
        result
    });
    let message = task
        .await
        .map_err(|error| Problem::internal(error.to_string()))??;
    tracing::info!(%id, partner = message.partner, series = message.series, "replayed");
    Ok((StatusCode::ACCEPTED, Json(MessageView::of(&message))))
}

/// The moment that was asked for at intake holds for a replay too.
fn deliver_by(record: &MessageRecord, now: Timestamp) -> Result<Option<Timestamp>, Problem> {
    let Some(moment) = super::request::stored_deliver_by(&record.headers, now) else {
        return Ok(None);
    };
    if moment > now {
        return Ok(Some(moment));
    }
    Err(Problem::new(
        StatusCode::CONFLICT,
        "deliver-by-passed",
        "The message was to be delivered by a moment that has passed",
        "nothing of it may be sent any more; hand it over again as a new message if it still counts",
    ))
}

fn discarded() -> Problem {
    Problem::new(
        StatusCode::CONFLICT,
        "discarded",
        "The message was discarded",
        "what an operator threw away is never sent again; hand it over as a new message",
    )
}

fn gone(record: &MessageRecord) -> Problem {
    Problem::new(
        StatusCode::CONFLICT,
        "partner-gone",
        "The partner is not configured any more",
        format!(
            "put the partner {:?} back into ressac.toml",
            record.summary.partner
        ),
    )
}

/// Ends a waiting message or a dead letter for good.
pub(super) async fn discard(
    axum::extract::State(api): State,
    Path(id): Path<String>,
) -> Result<Json<MessageView>, Problem> {
    let (record, id) = find(&api, &id).await?;
    let processed = decode(&record.operation).map_or("maybe", |operation: Operation| {
        operation.processed().as_str()
    });
    let discard = Discard {
        id,
        force: false,
        blame: "ours".to_owned(),
        processed: processed.to_owned(),
        operation: None,
    };
    let message = api.context.store.discard(discard).await?;
    if let Ok((_, lane)) = api.partner(&message.partner) {
        lane.on_changed();
        let label = EndLabel {
            partner: message.partner.clone(),
            reason: Reason::Discarded.as_str(),
            blame: "ours",
        };
        api.context.metrics.ends.get_or_create(&label).inc();
    }
    tracing::info!(%id, partner = message.partner, "discarded");
    Ok(Json(MessageView::of(&message)))
}
