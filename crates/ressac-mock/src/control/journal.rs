//! The journal, by pages and live.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

use super::Context;
use super::answer::Answer;
use super::query::Query;
use crate::journal::{Connection, Entry};
use crate::state::ended;
use crate::wire::{Conn, RequestHead, finish_fin};

/// Entries of one page of the journal.
const PAGE: u64 = 1000;

const KNOWN: &[&str] = &["since", "limit", "token", "route", "kind"];

/// Which entries are asked for.
struct Filter {
    since: u64,
    token: Option<String>,
    route: Option<String>,
    /// Arrivals and connections, or one of them.
    arrivals: bool,
    connections: bool,
}

impl Filter {
    fn of(query: &Query) -> Result<Self, Answer> {
        let own = |name| query.text(name).map(str::to_owned);
        let (token, route) = (own("token"), own("route"));
        // A connection has neither token nor route.
        let named = token.is_some() || route.is_some();
        let (arrivals, connections) = match query.text("kind") {
            None => (true, !named),
            Some("request") => (true, false),
            Some("connection") => (false, true),
            Some(other) => {
                let detail = format!("unknown kind {other:?}; write request or connection");
                return Err(Answer::problem(400, &detail));
            }
        };
        Ok(Self {
            since: query.number("since", 0)?,
            token,
            route,
            arrivals,
            connections,
        })
    }

    fn wants(&self, e: &Entry) -> bool {
        self.arrivals
            && (self.token.is_none() || self.token == e.token)
            && (self.route.is_none() || self.route == e.route)
    }
}

/// `GET journal`.
pub(super) fn page(ctx: &Context, head: &RequestHead) -> Result<Answer, Answer> {
    let query = Query::of(&head.target, KNOWN)?;
    let filter = Filter::of(&query)?;
    let limit = usize::try_from(query.number("limit", PAGE)?.min(PAGE)).unwrap_or(usize::MAX);
    let core = ctx.shared.core();
    let arrivals = core.journal.since(filter.since).filter(|e| filter.wants(e));
    let arrivals: Vec<Entry> = arrivals.take(limit).cloned().collect();
    let connections = core.journal.connections(filter.since);
    let connections = connections.filter(|_| filter.connections).take(limit);
    let connections: Vec<Connection> = connections.cloned().collect();
    let (next, dropped) = (core.journal.next_seq(), core.journal.dropped());
    drop(core);
    Ok(Answer::json(&json!({
        "anchor_unix_ns": ctx.shared.clock.anchor_unix_ns(),
        "now": ctx.shared.clock.now(),
        "dropped": dropped,
        "next_seq": next,
        "entries": arrivals,
        "connections": connections,
    })))
}

/// `GET journal/stream`: one JSON object in a line for each entry, once it is finished.
pub(super) async fn stream(ctx: &Context, mut conn: Conn, head: &RequestHead) {
    let filter = match Query::of(&head.target, KNOWN).and_then(|q| Filter::of(&q)) {
        Ok(filter) => filter,
        Err(answer) => {
            super::write(conn, &answer, false).await;
            return;
        }
    };
    let begin = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n\
                  Cache-Control: no-store\r\nTransfer-Encoding: chunked\r\n\
                  Connection: close\r\n\r\n";
    if conn.write(begin, &mut 0).await.is_err() {
        return;
    }
    let mut changed = ctx.shared.changed.subscribe();
    let mut shutdown = ctx.shared.shutdown.subscribe();
    let mut cursor = Cursor {
        since: filter.since,
        open: BTreeSet::new(),
    };
    loop {
        changed.mark_unchanged();
        for line in cursor.next(ctx, &filter) {
            let chunk = format!("{:x}\r\n{line}\n\r\n", line.len() + 1);
            if conn.write(chunk.as_bytes(), &mut 0).await.is_err() {
                return;
            }
        }
        tokio::select! {
            () = ended(&mut shutdown) => break,
            _ = changed.changed() => {}
            // Whoever listens sends nothing more: bytes or the end, it is over.
            _ = conn.stream.read_u8() => break,
        }
    }
    if conn.write(b"0\r\n\r\n", &mut 0).await.is_ok() {
        finish_fin(conn).await;
    }
}

/// How far a stream has come.
struct Cursor {
    since: u64,
    /// Entries passed by that were not finished.
    open: BTreeSet<u64>,
}

impl Cursor {
    /// The lines that are due.
    fn next(&mut self, ctx: &Context, filter: &Filter) -> Vec<String> {
        let core = ctx.shared.core();
        let from = self.open.first().map_or(self.since, |s| s - 1);
        let mut due: Vec<(u64, Value)> = Vec::new();
        let mut still = BTreeSet::new();
        let mut see = |seq: u64, done: bool, value: &dyn Fn() -> Value| {
            if seq <= self.since && !self.open.contains(&seq) {
                return;
            }
            match done {
                true => due.push((seq, value())),
                false => drop(still.insert(seq)),
            }
        };
        for e in core.journal.since(from).filter(|e| filter.wants(e)) {
            see(e.seq, e.is_done(), &|| json!(e));
        }
        if filter.connections {
            for c in core.journal.connections(from) {
                see(c.seq, c.end.is_some(), &|| json!(c));
            }
        }
        self.since = self.since.max(core.journal.next_seq() - 1);
        drop(core);
        self.open = still;
        due.sort_by_key(|d| d.0);
        due.into_iter().map(|d| d.1.to_string()).collect()
    }
}
