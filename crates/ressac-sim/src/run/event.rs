//! What can happen, in eight bytes.

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Arrival {
        client: u32,
    },
    /// A wait of an operation ends.
    Due {
        op: u32,
        tag: u32,
    },
    AtServer {
        op: u32,
        tag: u32,
    },
    Served {
        place: u32,
        epoch: u32,
    },
    Accepted {
        op: u32,
        tag: u32,
    },
    Failed {
        op: u32,
        tag: u32,
    },
    Rejected {
        op: u32,
        tag: u32,
    },
    /// The oldest time limit of those of equal length.
    Limit,
    OwnLimit {
        op: u32,
        tag: u32,
    },
    Wake {
        sender: u32,
    },
    FaultBegins {
        index: u32,
    },
    FaultEnds {
        index: u32,
    },
}

/// Kind and number in one word, the tag in the other: a smaller event is a faster queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packed {
    kind_and_id: u32,
    tag: u32,
}

const KIND_BITS: u32 = 4;
/// The most operations that can be under way at a time.
pub(super) const MOST: u32 = u32::MAX >> KIND_BITS;

impl Packed {
    #[inline]
    pub(super) fn of(event: Event) -> Packed {
        let (kind, id, tag) = match event {
            Event::Arrival { client } => (0, client, 0),
            Event::Due { op, tag } => (1, op, tag),
            Event::AtServer { op, tag } => (2, op, tag),
            Event::Served { place, epoch } => (3, place, epoch),
            Event::Accepted { op, tag } => (4, op, tag),
            Event::Failed { op, tag } => (5, op, tag),
            Event::Rejected { op, tag } => (6, op, tag),
            Event::Limit => (7, 0, 0),
            Event::OwnLimit { op, tag } => (8, op, tag),
            Event::Wake { sender } => (9, sender, 0),
            Event::FaultBegins { index } => (10, index, 0),
            Event::FaultEnds { index } => (11, index, 0),
        };
        debug_assert!(id <= MOST);
        Packed {
            kind_and_id: id << KIND_BITS | kind,
            tag,
        }
    }

    #[inline]
    pub(super) fn unpack(self) -> Event {
        let (op, tag) = (self.kind_and_id >> KIND_BITS, self.tag);
        match self.kind_and_id & ((1 << KIND_BITS) - 1) {
            0 => Event::Arrival { client: op },
            1 => Event::Due { op, tag },
            2 => Event::AtServer { op, tag },
            3 => Event::Served {
                place: op,
                epoch: tag,
            },
            4 => Event::Accepted { op, tag },
            5 => Event::Failed { op, tag },
            6 => Event::Rejected { op, tag },
            7 => Event::Limit,
            8 => Event::OwnLimit { op, tag },
            9 => Event::Wake { sender: op },
            10 => Event::FaultBegins { index: op },
            _ => Event::FaultEnds { index: op },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_survives_packing() {
        let (op, tag) = (MOST, u32::MAX);
        for event in [
            Event::Arrival { client: 3 },
            Event::Due { op, tag },
            Event::AtServer { op, tag },
            Event::Served {
                place: op,
                epoch: tag,
            },
            Event::Accepted { op, tag },
            Event::Failed { op, tag },
            Event::Rejected { op, tag },
            Event::Limit,
            Event::OwnLimit { op, tag },
            Event::Wake { sender: op },
            Event::FaultBegins { index: 1 },
            Event::FaultEnds { index: 1 },
        ] {
            assert_eq!(Packed::of(event).unpack(), event);
        }
        assert_eq!(size_of::<Packed>(), 8);
    }
}
