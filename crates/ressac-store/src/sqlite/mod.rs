//! The outbox in one SQLite file: one process, one writer thread, many readers.

mod accept;
mod admin;
mod checkpoint;
mod deliver;
mod failure;
mod lease;
mod list;
mod migrate;
mod open;
mod options;
mod outbox;
mod queue;
mod read;
mod readers;
mod row;
mod stats;
mod store;
mod tx;
mod writer;

pub use options::SqliteOptions;
pub use store::SqliteStore;
