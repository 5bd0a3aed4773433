//! What can go wrong with a store, told so that the reader knows what to do.

use std::path::PathBuf;

use crate::types::State;

/// Why a store did not do what it was asked. Nothing was half-applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// More is queued than the store takes at once. Try again a moment later.
    #[error("the store is busy: its write queue is full; try again in a moment")]
    Busy,
    /// The store was closed, or its writer stopped.
    #[error("the store is closed")]
    Closed,
    /// The file is damaged.
    #[error(
        "the store {} is damaged: {detail}. Restore a backup, or move the file and its -wal aside \
         to start with an empty store; keep it, messages may still be read from it",
        path.display()
    )]
    Corrupt {
        /// The file of the store.
        path: PathBuf,
        /// What was found.
        detail: String,
    },
    /// The file belongs to another application.
    #[error("{} is not a Ressac store: {detail}. Name another file", path.display())]
    Foreign {
        /// The file that was named.
        path: PathBuf,
        /// What was found.
        detail: String,
    },
    /// The size limit is reached, or the disk is full. What was accepted before is intact.
    #[error(
        "the store is full: {detail}. Free space, prune delivered messages, or raise the limit"
    )]
    Full {
        /// What is full.
        detail: String,
    },
    /// Our own fault.
    #[error("the store failed on its own account: {detail}")]
    Internal {
        /// What happened.
        detail: String,
    },
    /// A value that no store takes.
    #[error("invalid {field}: {problem}")]
    Invalid {
        /// The field that is wrong.
        field: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// The file system failed. What was accepted before is intact.
    #[error("the store cannot use its file: {detail}. Check the disk and the permissions")]
    Io {
        /// What happened.
        detail: String,
    },
    /// The partner now belongs to another owner, or the lease ran out.
    #[error("the lease on partner \"{partner}\" with epoch {epoch} is lost (epoch now: {current})")]
    LeaseLost {
        /// The partner.
        partner: String,
        /// The epoch the caller held.
        epoch: u64,
        /// The epoch that is current.
        current: u64,
    },
    /// Another process has the store open.
    #[error(
        "the store {} is in use by another process{holder}. One process owns a SQLite store: stop \
         the other one, or name another file",
        path.display()
    )]
    Locked {
        /// The file of the store.
        path: PathBuf,
        /// " (process 123)" where that is known, else empty.
        holder: String,
    },
    /// The file was written by a newer Ressac.
    #[error(
        "the store {} has schema {found}, this Ressac knows {known}. Use the newer Ressac",
        path.display()
    )]
    Newer {
        /// The file of the store.
        path: PathBuf,
        /// The schema of the file.
        found: u32,
        /// The newest schema known here.
        known: u32,
    },
    /// The state of the message does not allow what was asked.
    #[error("refused: {0}")]
    Refused(#[from] Refusal),
    /// A setting would let an acknowledged write be lost.
    #[error("refusing to start: {setting} is {found}, it must be {wanted} or writes may be lost")]
    Unsafe {
        /// The setting.
        setting: &'static str,
        /// What it is.
        found: String,
        /// What it must be.
        wanted: &'static str,
    },
}

/// Why one message of a batch, or one operator's wish, was refused. The others are not touched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The attempt given is not the one that is open.
    #[error("attempt {given} is not the open one ({open})")]
    Attempt {
        /// The number given.
        given: u32,
        /// The last number begun in this series; 0 = none.
        open: u32,
    },
    /// The message is being sent and no attempt was given to close.
    #[error("attempt {open} is open: settle it with its record, or put it back")]
    AttemptOpen {
        /// The attempt that is open.
        open: u32,
    },
    /// An earlier message of its lane is unfinished.
    #[error("an earlier message of its lane is unfinished")]
    Behind,
    /// A value that no store takes.
    #[error("{0}")]
    Invalid(String),
    /// No such message, or it belongs to another partner.
    #[error("no such message")]
    NotFound,
    /// The message is in a state that does not allow it.
    #[error("the message is {0}")]
    State(State),
}
