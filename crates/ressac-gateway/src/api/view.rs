//! What the API shows: moments as RFC 3339, words as they stand everywhere, no secrets.

use ressac_store::{AttemptEntry, MessageRecord, MessageSummary, SeriesEnd};
use serde::Serialize;
use uuid::Uuid;

/// A message in a line.
#[derive(Debug, Serialize)]
pub(super) struct MessageView {
    id: Uuid,
    partner: String,
    state: &'static str,
    /// What a waiting message waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_for: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    due: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blame: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    processed: Option<String>,
    key: String,
    key_given: bool,
    attempts: u32,
    series: u32,
    accepted_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<String>,
}

impl MessageView {
    pub(super) fn of(message: &MessageSummary) -> Self {
        let some = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let waiting = message.state == ressac_store::State::Waiting;
        let because = if message.because.is_empty() {
            "turn"
        } else {
            message.because.as_str()
        };
        MessageView {
            id: message.id,
            partner: message.partner.clone(),
            state: message.state.as_str(),
            waiting_for: waiting.then(|| because.to_owned()),
            due: message.due.map(moment),
            reason: some(&message.reason),
            blame: some(&message.blame),
            processed: some(&message.processed),
            key: message.key.clone(),
            key_given: message.key_given,
            attempts: message.attempts,
            series: message.series,
            accepted_at: moment(message.accepted_at),
            deadline: message.deadline.map(moment),
            ended_at: message.ended_at.map(moment),
        }
    }
}

/// A message with its history.
#[derive(Debug, Serialize)]
pub(super) struct RecordView {
    #[serde(flatten)]
    summary: MessageView,
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body_bytes: u64,
    history: Vec<AttemptView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    earlier_series: Vec<SeriesView>,
}

#[derive(Debug, Serialize)]
struct AttemptView {
    series: u32,
    number: u32,
    started_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<String>,
    outcome: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "String::is_empty")]
    processed: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    blame: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint_ms: Option<u64>,
    #[serde(skip_serializing_if = "String::is_empty")]
    note: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    reply: String,
}

#[derive(Debug, Serialize)]
struct SeriesView {
    series: u32,
    ended_at: String,
    reason: String,
    blame: String,
    processed: String,
}

impl RecordView {
    pub(super) fn of(record: &MessageRecord) -> Self {
        RecordView {
            summary: MessageView::of(&record.summary),
            method: record.method.clone(),
            path: record.path.clone(),
            headers: record
                .headers
                .iter()
                .map(|(name, value)| (name.clone(), shown(name, value)))
                .collect(),
            body_bytes: record.body_len,
            history: record.attempts.iter().map(attempt).collect(),
            earlier_series: record.earlier.iter().map(series).collect(),
        }
    }
}

fn attempt(entry: &AttemptEntry) -> AttemptView {
    let record = &entry.record;
    let open = record.ended_at.is_none();
    let mut reply = record.reply_head.clone();
    if !record.reply_body.is_empty() {
        reply.push(b'\n');
        reply.extend_from_slice(&record.reply_body);
    }
    AttemptView {
        series: entry.series,
        number: record.number,
        started_at: moment(record.started_at),
        ended_at: record.ended_at.map(moment),
        outcome: if open {
            "open".to_owned()
        } else {
            record.kind.clone()
        },
        status: record.status,
        processed: record.processed.clone(),
        blame: record.blame.clone(),
        hint_ms: record.hint_ms,
        note: record.note.clone(),
        reply: String::from_utf8_lossy(&reply).into_owned(),
    }
}

fn series(end: &SeriesEnd) -> SeriesView {
    SeriesView {
        series: end.series,
        ended_at: moment(end.ended_at),
        reason: end.reason.clone(),
        blame: end.blame.clone(),
        processed: end.processed.clone(),
    }
}

/// A header's value for people; what may be a secret is not shown.
fn shown(name: &str, value: &[u8]) -> String {
    const SECRET: [&str; 11] = [
        "auth",
        "cookie",
        "token",
        "secret",
        "passw",
        "signature",
        "api-key",
        "apikey",
        "credential",
        "session",
        "private",
    ];
    let name = name.to_ascii_lowercase();
    if SECRET.iter().any(|word| name.contains(word)) {
        return "(not shown)".to_owned();
    }
    String::from_utf8_lossy(value).into_owned()
}

/// RFC 3339, with milliseconds.
pub(crate) fn moment(nanos: u64) -> String {
    let moment = jiff::Timestamp::from_nanosecond(i128::from(nanos)).unwrap_or_default();
    format!("{moment:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dm_1_secrets_are_not_shown() {
        for name in [
            "Authorization",
            "X-Api-Key",
            "Webhook-Signature",
            "Set-Cookie",
        ] {
            assert_eq!(shown(name, b"hush"), "(not shown)");
        }
        assert_eq!(shown("Content-Type", b"text/plain"), "text/plain");
    }

    #[test]
    fn moments_are_rfc_3339() {
        assert_eq!(
            moment(1_796_040_000_250_000_000),
            "2026-11-30T12:00:00.250Z"
        );
    }
}
