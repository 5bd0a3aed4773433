//! One attempt in flight: a task of its own that always says what became of it.

use std::sync::Arc;

use ressac_policy::{Outcome, OutcomeKind, Timestamp};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use uuid::Uuid;

use super::Context;
use crate::transport::{HttpTransport, Sent};

/// What became of an attempt.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) id: Uuid,
    pub(super) ended_at: u64,
    /// `None`: nothing was sent, since the message could not be read.
    pub(super) sent: Option<Sent>,
}

/// Starts the attempt, which must end `until` then, whatever went by while it was written down.
/// Whatever happens to its task, one [`Done`] comes.
pub(super) fn start(
    context: &Context,
    transport: &Arc<HttpTransport>,
    id: Uuid,
    until: Timestamp,
    done: mpsc::UnboundedSender<Done>,
) -> AbortHandle {
    let mut report = Report {
        id,
        context: context.clone(),
        done,
        said: false,
    };
    let transport = Arc::clone(transport);
    let context = context.clone();
    let task = tokio::spawn(async move {
        let sent = send(&context, &transport, id, until).await;
        report.say(sent);
    });
    task.abort_handle()
}

async fn send(
    context: &Context,
    transport: &HttpTransport,
    id: Uuid,
    until: Timestamp,
) -> Option<Sent> {
    match context.store.load(id).await {
        Ok(Some(message)) => {
            let left = until.since(context.clock.timestamp());
            if left.is_zero() {
                tracing::warn!(%id, "the store took as long as the attempt may; it is put back");
                return None;
            }
            let now = || context.clock.timestamp();
            Some(transport.send(&message, left, now).await)
        }
        Ok(None) => {
            tracing::error!(%id, "a message that was begun is not in the store");
            None
        }
        Err(error) => {
            tracing::warn!(%id, %error, "the message could not be read; it is put back unsent");
            None
        }
    }
}

/// Says what became of the attempt, at the latest when it is dropped: a task that panics or is cut
/// off may have sent something.
struct Report {
    id: Uuid,
    context: Context,
    done: mpsc::UnboundedSender<Done>,
    said: bool,
}

impl Report {
    fn say(&mut self, sent: Option<Sent>) {
        self.said = true;
        let done = Done {
            id: self.id,
            ended_at: self.context.store.now(),
            sent,
        };
        // The lane waits for every attempt before it ends; if it is gone, its successor recovers.
        let _ = self.done.send(done);
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        if !self.said {
            self.say(Some(crashed("the attempt was cut off by this gateway")));
        }
    }
}

/// An attempt of which nobody knows what it came to, because of us.
pub(super) fn crashed(note: &str) -> Sent {
    Sent {
        outcome: Outcome::new(OutcomeKind::Crash),
        note: note.to_owned(),
        reply_head: Vec::new(),
        reply_body: Vec::new(),
    }
}
