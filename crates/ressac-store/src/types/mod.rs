//! The plain data that goes into and comes out of a store.

mod attempt;
mod delivery;
mod message;
mod read;

pub use attempt::{AttemptEntry, AttemptRecord, LateSettle, SeriesEnd};
pub use delivery::{
    Begin, Discard, DueCursor, DueMessage, ItemResult, Lease, NewState, PutBack, Replay, Settle,
};
pub use message::{AcceptOutcome, Class, MessageContent, NewMessage, State};
pub use read::{Counts, Filter, MessageRecord, MessageSummary, Page, PartnerStatus, Stats};
