//! Connections that no pool has had in its hands.

use std::sync::atomic::{AtomicBool, Ordering};

use ::reqwest::{Client, Response};
use http::Version;
use ressac_policy::OutcomeKind;

use crate::attempt::Attempt;

/// A client without a pool: each request has a connection of its own.
#[derive(Debug)]
pub(super) struct Fresh {
    client: Client,
    /// The partner was last heard to speak HTTP/1: only then can a pool hold many connections. Over
    /// HTTP/2 one carries all, and one for each retry would be a storm of its own.
    http1: AtomicBool,
}

impl Fresh {
    pub(super) const fn new(client: Client) -> Fresh {
        Fresh {
            client,
            http1: AtomicBool::new(false),
        }
    }

    /// The client for this attempt, where it must not meet a pooled connection: the one before it
    /// broke, and those that lay beside it may be as dead; or its answer asks for another one
    /// (RFC 9110 §15.5.9, §15.5.20).
    pub(super) fn client_for(&self, attempt: &Attempt) -> Option<&Client> {
        let wanted = matches!(
            attempt.after(),
            Some(
                OutcomeKind::Reset
                    | OutcomeKind::Eof
                    | OutcomeKind::Truncated
                    | OutcomeKind::Status(408 | 421)
            )
        );
        (wanted && self.http1.load(Ordering::Relaxed)).then_some(&self.client)
    }

    /// Learns the version of the partner's HTTP.
    pub(super) fn hear(&self, reply: &Response) {
        let http1 = reply.version() != Version::HTTP_2;
        // Written only where it changes: all attempts to a partner read it.
        if self.http1.load(Ordering::Relaxed) != http1 {
            self.http1.store(http1, Ordering::Relaxed);
        }
    }
}
