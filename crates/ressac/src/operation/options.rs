//! What the caller says of an operation before it begins.

use std::time::Duration;

use ressac_policy::{OperationSpec, Timestamp};

use crate::key::IdempotencyKey;
use crate::partner::Idempotency;

/// Of an operation whose caller says nothing: it must not be repeated where it may have been done.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    pub(crate) idempotent: bool,
    pub(crate) keyed: bool,
    /// `None`: as the partner has it.
    pub(crate) key_ttl: Option<Duration>,
    pub(crate) key: Option<IdempotencyKey>,
    pub(crate) body_once: bool,
    pub(crate) deliver_by: Option<Timestamp>,
    pub(crate) within: Option<Duration>,
    /// The closure keeps to the attempt's time limit itself.
    pub(crate) own_limit: bool,
}

impl Options {
    #[inline]
    pub(crate) fn spec(&self, idempotency: Option<&Idempotency>, now: Timestamp) -> OperationSpec {
        let within = self.within.map(|within| now + within);
        let deliver_by = match (self.deliver_by, within) {
            (Some(moment), Some(other)) => Some(moment.min(other)),
            (moment, other) => moment.or(other),
        };
        OperationSpec {
            idempotent: self.idempotent,
            keyed: self.keyed,
            key_ttl: self.key_ttl.or(idempotency.and_then(|own| own.ttl)),
            repeatable_body: !self.body_once,
            deliver_by,
        }
    }
}
