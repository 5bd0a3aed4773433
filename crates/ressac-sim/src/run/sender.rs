//! The clients at work: each drives the engine as a shell does.

use std::sync::Arc;
use std::time::Duration;

use ressac_policy::{
    AttemptKind, Because, Decision, End, Hint, HintSource, Operation, Outcome, OutcomeKind, Reason,
    Timestamp, Wait,
};

use super::event::{Event, MOST};
use super::line::{Line, Lines};
use super::server::Answer;
use super::{NOBODY, Run, Slot};
use crate::model::nanos;

impl Run<'_> {
    /// A new operation at a client, and its first decision.
    pub(super) fn create(&mut self, sender: u32, parent: u32, parent_tag: u32) {
        if parent == NOBODY {
            self.record.born(self.now);
        }
        let operation = Operation::new(&self.spec, &self.policy, self.moment());
        let op = self.place(operation, sender);
        let slot = &mut self.slots[op as usize];
        (slot.parent, slot.parent_tag) = (parent, parent_tag);
        self.poll(op);
        self.dispatch(sender);
    }

    fn place(&mut self, operation: Operation, sender: u32) -> u32 {
        let (born, told, sent) = (self.now, 0, 0);
        if let Some(op) = self.free.pop() {
            let slot = &mut self.slots[op as usize];
            (slot.operation, slot.sender) = (operation, sender);
            (slot.born, slot.told, slot.sent) = (born, told, sent);
            return op;
        }
        let op = self.slots.len() as u32;
        assert!(op < MOST, "more operations under way than can be numbered");
        self.slots.push(Slot {
            operation,
            born,
            told,
            sent,
            tag: 0,
            sender,
            parent: NOBODY,
            parent_tag: 0,
        });
        op
    }

    fn poll(&mut self, op: u32) {
        let now = self.moment();
        let slot = &mut self.slots[op as usize];
        let sender = &mut self.senders[slot.sender as usize];
        let decision = slot
            .operation
            .poll(now, &mut sender.partner, &mut sender.random);
        self.follow(op, decision);
    }

    /// Does what the engine has decided.
    fn follow(&mut self, op: u32, decision: Decision) {
        match decision {
            Decision::Send(attempt) => {
                self.transmit(op, attempt.number, attempt.kind, attempt.timeout);
            }
            Decision::Wait(wait) => match wait.because {
                Because::Turn | Because::Backoff | Because::RetryAfter => {
                    let tag = self.slots[op as usize].tag;
                    self.at(wait.until.as_nanos(), Event::Due { op, tag });
                }
                _ => self.queue_up(op, wait),
            },
            Decision::End(end) => self.finish(op, end),
        }
    }

    /// Waits for its partner's leave, behind those who came before.
    fn queue_up(&mut self, op: u32, wait: Wait) {
        let slot = &self.slots[op as usize];
        let (sender, line) = (slot.sender, line_of(&slot.operation));
        let lines = self.senders[sender as usize].lines.get_or_insert_default();
        lines.join(line, op);
        self.wake_at(sender, wait.until);
    }

    fn wake_at(&mut self, sender: u32, at: Timestamp) {
        let pending = &mut self.senders[sender as usize].wake;
        if !at.is_never() && at.as_nanos() < *pending {
            *pending = at.as_nanos();
            self.at(at.as_nanos(), Event::Wake { sender });
        }
    }

    pub(super) fn wake(&mut self, sender: u32) {
        let pending = &mut self.senders[sender as usize].wake;
        if *pending <= self.now {
            *pending = u64::MAX;
            self.dispatch(sender);
        }
    }

    /// Asks those who wait, until the partner takes no more.
    fn dispatch(&mut self, sender: u32) {
        let at = sender as usize;
        if self.senders[at].lines.as_ref().is_none_or(|l| l.is_empty()) {
            return;
        }
        let Some(mut lines) = self.senders[at].lines.take() else {
            return;
        };
        let mut blocked = [false; 2];
        while let Some((line, op)) = lines.take(blocked) {
            let now = self.moment();
            let sender = &mut self.senders[at];
            let slot = &mut self.slots[op as usize];
            let decision = slot
                .operation
                .poll(now, &mut sender.partner, &mut sender.random);
            match decision {
                Decision::Wait(wait) => {
                    lines.put_back(line, op);
                    blocked[line as usize] = true;
                    self.wake_at(at as u32, wait.until);
                }
                decision => self.follow(op, decision),
            }
        }
        self.put_back_lines(at, lines);
    }

    /// While the lines were out, an operation that ended may have begun another.
    fn put_back_lines(&mut self, sender: usize, mut lines: Box<Lines>) {
        if let Some(mut newer) = self.senders[sender].lines.take() {
            while let Some((line, op)) = newer.take([false; 2]) {
                lines.join(line, op);
            }
        }
        self.senders[sender].lines = Some(lines);
    }

    fn transmit(&mut self, op: u32, number: u32, kind: AttemptKind, timeout: Duration) {
        let slot = &mut self.slots[op as usize];
        slot.tag = slot.tag.wrapping_add(1);
        slot.sent = self.now;
        let (tag, sender) = (slot.tag, slot.sender);
        let early = self.now < slot.told;
        let instances = self.world.clients.instances;
        let below = sender + instances;
        let calls_server = below as usize >= self.senders.len();
        if calls_server {
            self.record.attempt(self.now, number, kind, early);
        }
        let timeout = nanos(timeout);
        let limit = self.now.saturating_add(timeout);
        if timeout != self.timeout {
            self.at(limit, Event::OwnLimit { op, tag });
        } else if limit < self.horizon {
            if self.limits.is_empty() {
                self.at(limit, Event::Limit);
            }
            self.limits.push_back((limit, op, tag));
        }
        if !calls_server {
            self.create(below, op, tag);
        } else if self.half_trip == 0 {
            self.arrive(op, tag);
        } else {
            self.at(self.now + self.half_trip, Event::AtServer { op, tag });
        }
    }

    pub(super) fn due(&mut self, op: u32, tag: u32) {
        let slot = &self.slots[op as usize];
        if slot.tag == tag {
            let sender = slot.sender;
            self.poll(op);
            self.dispatch(sender);
        }
    }

    /// The server's answer has come.
    pub(super) fn answered(&mut self, op: u32, tag: u32, answer: Answer) {
        let slot = &mut self.slots[op as usize];
        if slot.tag != tag {
            self.record.late(self.now);
            return;
        }
        let took = Duration::from_nanos(self.now - slot.sent);
        let rejection = &self.world.server.rejection;
        let outcome = match answer {
            Answer::Done => Outcome::status(200),
            Answer::Failed => Outcome::status(503),
            Answer::Rejected => {
                let hint = rejection.retry_after.map(|wait| {
                    slot.told = self.now + nanos(wait);
                    Hint {
                        wait,
                        source: HintSource::RetryAfter,
                    }
                });
                let heard = hint.filter(|_| self.world.clients.hears_hints);
                Outcome::status(rejection.status).with_hint(heard)
            }
        };
        self.settle(op, &outcome.took(took));
    }

    fn settle(&mut self, op: u32, outcome: &Outcome) {
        let now = self.moment();
        let slot = &mut self.slots[op as usize];
        slot.tag = slot.tag.wrapping_add(1);
        let at = slot.sender as usize;
        let sender = &mut self.senders[at];
        let keeping = self.keeping.as_ref().filter(|_| outcome.is_success());
        if let Some(keeping) = keeping {
            sender.partner.set_policy(Arc::clone(keeping), now);
        }
        let decision =
            slot.operation
                .on_outcome(now, outcome, &mut sender.partner, &mut sender.random);
        if keeping.is_some() {
            sender.partner.set_policy(Arc::clone(&self.policy), now);
        }
        self.follow(op, decision);
        self.dispatch(at as u32);
    }

    /// The oldest attempt's time limit has come; those that have ended are swept out with it.
    pub(super) fn limits_pass(&mut self) {
        while let Some((limit, op, tag)) = self.limits.front().copied() {
            let open = self.slots[op as usize].tag == tag;
            if limit > self.now && open {
                self.at(limit, Event::Limit);
                return;
            }
            self.limits.pop_front();
            if open {
                self.limit_passes(op, tag);
            }
        }
    }

    pub(super) fn limit_passes(&mut self, op: u32, tag: u32) {
        let slot = &self.slots[op as usize];
        if slot.tag == tag {
            let took = Duration::from_nanos(self.now - slot.sent);
            self.record.timed_out(self.now);
            self.settle(op, &Outcome::new(OutcomeKind::Timeout).took(took));
        }
    }

    fn finish(&mut self, op: u32, end: End) {
        let slot = &mut self.slots[op as usize];
        // Nothing of it is awaited any more.
        slot.tag = slot.tag.wrapping_add(2) & !1;
        let (born, sender) = (slot.born, slot.sender);
        let (parent, parent_tag) = (slot.parent, slot.parent_tag);
        self.free.push(op);
        if parent == NOBODY {
            self.record.ended(self.now, born, end.reason);
            self.think(sender);
            return;
        }
        let above = &self.slots[parent as usize];
        if above.tag != parent_tag {
            return;
        }
        let took = Duration::from_nanos(self.now - above.sent);
        let outcome = if end.reason == Reason::Delivered {
            Outcome::status(200)
        } else {
            Outcome::status(503).gave_up(self.world.clients.marks)
        };
        self.settle(parent, &outcome.took(took));
    }
}

fn line_of(operation: &Operation) -> Line {
    if operation.is_fresh() {
        Line::First
    } else {
        Line::Retry
    }
}
