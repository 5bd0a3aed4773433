//! What is read for people: pages, records, counts.

use uuid::Uuid;

use super::{AttemptEntry, Class, SeriesEnd, State};

/// One message in a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageSummary {
    /// Its id.
    pub id: Uuid,
    /// Its place in the order of acceptance.
    pub seq: u64,
    /// The partner.
    pub partner: String,
    /// The ordered stream it belongs to.
    pub lane: Option<String>,
    /// Its idempotency key.
    pub key: String,
    /// Whether the caller gave the key.
    pub key_given: bool,
    /// Where it stands.
    pub state: State,
    /// The queue it stands in, or stood in last.
    pub class: Class,
    /// When it is due; only while it waits.
    pub due: Option<u64>,
    /// What it waits for; empty where nothing was said.
    pub because: String,
    /// The end of its window, ns since the Unix epoch.
    pub deadline: Option<u64>,
    /// When it was accepted, ns since the Unix epoch.
    pub accepted_at: u64,
    /// When it was delivered or died.
    pub ended_at: Option<u64>,
    /// Why it ended.
    pub reason: Option<String>,
    /// Who is to blame for its end.
    pub blame: Option<String>,
    /// The worst `processed` over its attempts, once it has ended.
    pub processed: Option<String>,
    /// The series, from 1; each replay starts a new one.
    pub series: u32,
    /// Attempts begun in this series.
    pub attempts: u32,
}

/// One message with its history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageRecord {
    /// The line of it.
    pub summary: MessageSummary,
    /// HTTP method.
    pub method: String,
    /// Path with query.
    pub path: String,
    /// Headers in order.
    pub headers: Vec<(String, Vec<u8>)>,
    /// Size of the body in bytes.
    pub body_len: u64,
    /// The policy engine's operation.
    pub operation: Vec<u8>,
    /// Every attempt in order, of all series: at most the newest thousand.
    pub attempts: Vec<AttemptEntry>,
    /// How earlier series ended.
    pub earlier: Vec<SeriesEnd>,
}

/// Which messages to list. The default is all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only those in this state.
    pub state: Option<State>,
    /// Only those to this partner.
    pub partner: Option<String>,
    /// Only those that ended for this reason.
    pub reason: Option<String>,
}

/// One page of a list, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The messages.
    pub items: Vec<MessageSummary>,
    /// Where the next page begins; `None` = this was the last. With a filter by reason a page may be
    /// short, even empty, and still have a next one: the work for one page is bounded.
    pub next: Option<String>,
}

/// How many messages a partner has, from counters that are kept, not from a scan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Waiting.
    pub waiting: u64,
    /// Being sent.
    pub sending: u64,
    /// Delivered and not yet pruned.
    pub delivered: u64,
    /// Dead.
    pub dead: u64,
    /// When the oldest waiting message was accepted, ns since the Unix epoch.
    pub oldest_waiting: Option<u64>,
}

/// A partner with its counts and its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartnerStatus {
    /// The partner.
    pub partner: String,
    /// How many messages.
    pub counts: Counts,
    /// The instance that holds the lease, if any. The lease may have run out: see `until`.
    pub owner: Option<String>,
    /// The current epoch.
    pub epoch: u64,
    /// When the lease ends, ns since the Unix epoch.
    pub until: u64,
}

/// Figures of the store itself, read without touching the database. All counted since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Transactions committed.
    pub commits: u64,
    /// Transactions that failed and were rolled back.
    pub failed_commits: u64,
    /// Commands that rode in them.
    pub commands: u64,
    /// The most commands that rode in one.
    pub largest_batch: u64,
    /// Commands waiting now.
    pub queued: u64,
    /// Pages in the write-ahead log after the last commit.
    pub wal_pages: u64,
    /// Checkpoints run.
    pub checkpoints: u64,
    /// Size of the database in bytes after the last commit, without its log.
    pub bytes: u64,
}
