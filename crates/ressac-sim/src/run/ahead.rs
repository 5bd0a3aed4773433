//! Looking ahead: with a million clients each event waits for memory, one miss after another. The
//! next few events are known; touching what they need, all together, lets the misses overlap.

use std::hint::black_box;

use ressac_policy::Timestamp;

use super::Run;
use super::event::Event;

/// Fewer clients are in the cache anyway.
pub(super) const FITS_THE_CACHE: usize = 50_000;

impl Run<'_> {
    /// Touches the clients and operations of a new batch of events. Changes nothing.
    #[inline]
    pub(super) fn look_ahead(&mut self) {
        let (batch, events) = self.queue.batch();
        if batch == self.looked_at {
            return;
        }
        self.looked_at = batch;
        let now = Timestamp::from_nanos(self.now);
        let mut touched = 0;
        let mut clients = [0u32; 64];
        let mut count = 0;
        for packed in events.take(clients.len()) {
            let client = match packed.unpack() {
                Event::Arrival { client } => client,
                Event::Due { op, .. }
                | Event::Accepted { op, .. }
                | Event::Failed { op, .. }
                | Event::Rejected { op, .. }
                | Event::AtServer { op, .. } => {
                    let Some(slot) = self.slots.get(op as usize) else {
                        continue;
                    };
                    touched ^= slot.operation.deadline().as_nanos();
                    touched ^= u64::from(slot.operation.attempts());
                    slot.sender
                }
                _ => continue,
            };
            clients[count] = client;
            count += 1;
        }
        for client in &clients[..count] {
            if let Some(sender) = self.senders.get(*client as usize) {
                touched ^= sender.partner.readiness(now).at.as_nanos();
                touched ^= sender.partner.budget_readiness(now).at.as_nanos();
                touched ^= sender.wake;
            }
        }
        black_box(touched);
    }
}
