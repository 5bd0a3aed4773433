//! What is journaled of an arrival at once.

use bytes::Bytes;

use super::{Origin, Plan};
use crate::journal::{Effect, Entry, Flag, Kind};
use crate::wire::RequestHead;

pub(super) fn describe(entry: &mut Entry, plan: &Plan, token: &str, key: Option<&(String, bool)>) {
    entry.key = key.map(|k| k.0.clone());
    entry.key_quoted = key.is_some_and(|k| k.1);
    entry.token = (!token.is_empty()).then(|| token.to_owned());
    match plan {
        Plan::Step { scope, n, step, .. } => {
            entry.scope = Some(scope.clone());
            entry.n = Some(*n);
            entry.step = Some(*step as u64 + 1);
        }
        Plan::Overrun { scope, n, .. } => {
            entry.scope = Some(scope.clone());
            entry.n = Some(*n);
            entry.flags.push(Flag::Overrun);
        }
        Plan::ScopeTableFull { .. } => entry.flags.push(Flag::ScopeTableFull),
        Plan::Outage { number, .. } => entry.outage = Some(*number as u64),
        Plan::NoRoute => entry.flags.extend([Flag::NoRoute, Flag::Foreign]),
        Plan::Fault(hit) => {
            entry.fault = Some(hit.id);
            entry.flags.push(Flag::Fault);
        }
        Plan::Over { .. } => entry.flags.push(Flag::OverQuota),
        Plan::Resource { .. } => entry.flags.push(Flag::Resource),
        Plan::Raced => entry.flags.push(Flag::Raced),
        Plan::Down | Plan::Default | Plan::Upstream => {}
    }
}

pub(super) fn blank_entry(head: &RequestHead, origin: &Origin<'_>, now: u64) -> Entry {
    Entry {
        seq: 0,
        kind: Kind::Request,
        t_accept: origin.t_accept,
        t_first: origin.t_first,
        t_head: now,
        // Without a body the head is the whole request.
        t_req_end: (!head.has_body()).then_some(now),
        t_reply_before: None,
        t_reply_after: None,
        t_peer_close: None,
        conn: origin.conn,
        stream: origin.stream,
        listener: origin.listener.to_owned(),
        proto: head.proto(),
        tls: origin.tls.cloned(),
        method: head.method.clone(),
        target: head.target.clone(),
        headers: head.headers.clone(),
        body_len: 0,
        body_sha256: None,
        body_head: Bytes::new(),
        route: None,
        scope: None,
        token: None,
        n: None,
        step: None,
        outage: None,
        fault: None,
        sent: None,
        retry_at: None,
        retry_date: None,
        effect: Effect::None,
        key: None,
        key_quoted: false,
        flags: match origin.early {
            true => vec![Flag::Early],
            false => Vec::new(),
        },
    }
}
