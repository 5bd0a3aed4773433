//! `POST /v1/partners/{partner}/messages`: accepted means stored, and stored means on the disk.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, Request};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderValue, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use ressac_policy::{Operation, OperationSpec};
use ressac_store::{AcceptOutcome, MessageSummary, NewMessage, fingerprint};
use uuid::Uuid;

use super::problem::Problem;
use super::request::Instructions;
use super::view::MessageView;
use super::{Api, BODY_SHARE, BODY_SHARES, State};
use crate::engine::{LaneHandle, encode};
use crate::metrics::IntakeLabel;
use crate::settings::PartnerSettings;

pub(super) async fn accept(
    axum::extract::State(api): State,
    Path(partner): Path<String>,
    request: Request,
) -> Response {
    let result = try_accept(&api, &partner, request).await;
    let word = match &result {
        Ok(Taken {
            replayed: false, ..
        }) => "accepted",
        Ok(Taken { replayed: true, .. }) => "existing",
        Err(_) => "refused",
    };
    api.context
        .metrics
        .intake
        .get_or_create(&IntakeLabel { result: word })
        .inc();
    match result {
        Ok(taken) => taken.into_response(),
        Err(problem) => problem.into_response(),
    }
}

/// A message that is in the store.
struct Taken {
    message: MessageSummary,
    /// It had been there before, under the same key.
    replayed: bool,
}

impl IntoResponse for Taken {
    fn into_response(self) -> Response {
        let location = format!("/v1/messages/{}", self.message.id);
        let view = MessageView::of(&self.message);
        let mut response = (StatusCode::ACCEPTED, Json(view)).into_response();
        let headers = response.headers_mut();
        if let Ok(location) = HeaderValue::from_str(&location) {
            headers.insert(LOCATION, location);
        }
        if self.replayed {
            headers.insert("idempotent-replayed", HeaderValue::from_static("true"));
        }
        response
    }
}

async fn try_accept(api: &Api, partner: &str, request: Request) -> Result<Taken, Problem> {
    let (settings, lane) = api.partner(partner)?;
    if api.stopping.load(Ordering::Acquire) {
        return Err(Problem::stopping());
    }
    let (head, body) = request.into_parts();
    let now = api.context.clock.timestamp();
    let instructions = Instructions::read(&head.headers, now)?;
    let _room = allowance(api, &head.headers)?;
    let body = read_body(&head.headers, body, api.max_body).await?;
    let message = message(settings, instructions, &head.headers, body, now);
    let given = message.key.clone();
    match store(api, lane, message).await? {
        AcceptOutcome::Accepted(message) => Ok(Taken {
            message,
            replayed: false,
        }),
        AcceptOutcome::Existing(message) => Ok(Taken {
            message,
            replayed: true,
        }),
        AcceptOutcome::KeyConflict { id } => Err(Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "key-reused",
            "This key belongs to another message",
            format!(
                "the key {given:?} was used for {id} with another method, path, type or body; \
                 a new message needs a new key"
            ),
        )),
    }
}

/// Stores the message and tells its lane. A task of its own, which the caller's hanging up does not
/// end: what is in the store must not wait unknown to its lane.
async fn store(
    api: &Api,
    lane: &Arc<LaneHandle>,
    message: NewMessage,
) -> Result<AcceptOutcome, Problem> {
    let (store, lane) = (Arc::clone(&api.context.store), Arc::clone(lane));
    let task = tokio::spawn(async move {
        let outcome = store.accept(message).await;
        if let Ok(AcceptOutcome::Accepted(_) | AcceptOutcome::Existing(_)) = &outcome {
            lane.on_accepted();
        }
        outcome
    });
    Ok(task
        .await
        .map_err(|error| Problem::internal(error.to_string()))??)
}

/// Bodies under way take from one allowance, so that many large ones together stay bounded.
fn allowance<'a>(
    api: &'a Api,
    headers: &HeaderMap,
) -> Result<tokio::sync::SemaphorePermit<'a>, Problem> {
    let announced = headers
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    let bytes = announced.unwrap_or(api.max_body).min(api.max_body);
    let shares = u32::try_from(bytes / BODY_SHARE + 1).unwrap_or(u32::MAX);
    let shares = shares.min(BODY_SHARES as u32);
    api.bodies.try_acquire_many(shares).map_err(|_| {
        Problem::unavailable(
            "store-busy",
            "too many large messages are coming in at once",
            1,
        )
    })
}

/// The body, unless it is too large; what is announced as too large is not read at all.
async fn read_body(headers: &HeaderMap, body: Body, limit: usize) -> Result<Bytes, Problem> {
    let announced = headers
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok());
    if announced
        .and_then(|text| text.parse::<u64>().ok())
        .is_some_and(|n| n > limit as u64)
    {
        return Err(Problem::too_large(limit));
    }
    match Limited::new(body, limit).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Problem::too_large(limit)),
        Err(_) => Err(Problem::bad_request(
            "body-cut",
            "the body ended early; nothing was stored",
        )),
    }
}

fn message(
    partner: &PartnerSettings,
    instructions: Instructions,
    headers: &HeaderMap,
    body: Bytes,
    now: ressac_policy::Timestamp,
) -> NewMessage {
    let method = instructions.method.as_str();
    let mut spec = OperationSpec::new(method);
    if let Some(promise) = &partner.idempotency {
        spec = spec.with_honoured_key(promise.ttl);
    }
    spec.deliver_by = instructions.deliver_by;
    let operation = Operation::new(&spec, &partner.policy, now);
    let id = Uuid::now_v7();
    let key_given = instructions.key.is_some();
    let content_type = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    NewMessage {
        id,
        partner: partner.name.clone(),
        lane: None,
        // Made once, before the first attempt, and stored: the same bytes on every attempt.
        key: instructions.key.unwrap_or_else(|| id.to_string()),
        key_given,
        fingerprint: fingerprint(method, &instructions.path, content_type, &body),
        method: method.to_owned(),
        path: instructions.path,
        headers: instructions.travelling,
        body,
        accepted_at: now.as_nanos(),
        due: now.as_nanos(),
        deadline: (!operation.deadline().is_never()).then(|| operation.deadline().as_nanos()),
        operation: encode(&operation),
    }
}
