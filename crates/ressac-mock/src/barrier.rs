//! Barriers: replies withheld until enough arrivals wait, then all released together.

use std::collections::HashMap;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::step::Barrier;

/// A step of a route, by index.
pub(crate) type Place = (usize, usize);

#[derive(Default)]
pub(crate) struct Barriers {
    groups: HashMap<Place, Group>,
    next_id: u64,
}

struct Group {
    id: u64,
    waiting: u32,
    deadline: Instant,
    release: watch::Sender<bool>,
}

/// What an arrival at a barrier meets.
pub(crate) enum Joined {
    /// It was the last one needed; all are released.
    Last,
    /// It waits.
    Wait(Waiting),
}

/// A place in a group.
#[derive(Debug, Clone)]
pub(crate) struct Waiting {
    pub(crate) deadline: Instant,
    pub(crate) released: watch::Receiver<bool>,
    place: Place,
    id: u64,
}

impl Barriers {
    pub(crate) fn join(&mut self, place: Place, barrier: Barrier) -> Joined {
        let next_id = self.next_id;
        let group = self.groups.entry(place).or_insert_with(|| Group {
            id: next_id,
            waiting: 0,
            deadline: Instant::now() + barrier.timeout,
            release: watch::Sender::new(false),
        });
        group.waiting += 1;
        if group.id == next_id {
            self.next_id += 1;
        }
        if group.waiting >= barrier.arrivals {
            group.release.send_replace(true);
            self.groups.remove(&place);
            return Joined::Last;
        }
        Joined::Wait(Waiting {
            deadline: group.deadline,
            released: group.release.subscribe(),
            place,
            id: group.id,
        })
    }

    /// The time ran out: releases the group, unless it was released already.
    pub(crate) fn expire(&mut self, waiting: &Waiting) {
        let ours = self
            .groups
            .get(&waiting.place)
            .is_some_and(|g| g.id == waiting.id);
        if ours && let Some(group) = self.groups.remove(&waiting.place) {
            group.release.send_replace(true);
        }
    }

    /// Drops all groups; who waits in them is cancelled by the reset.
    pub(crate) fn clear(&mut self) {
        self.groups.clear();
    }
}
