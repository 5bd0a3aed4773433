//! What is carried from the gate to a call, and back.

use core::time::Duration;

use crate::time::Timestamp;
use crate::verdict::Health;

/// The leave to pass, to be shown again when the call is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pass {
    pub(super) generation: u32,
    pub(super) place: u8,
    pub(super) expires: Timestamp,
}

pub(super) const NO_PLACE: u8 = u8::MAX;

impl Pass {
    /// A pass that nobody remembers: its holder's word changes nothing.
    pub(crate) const LOST: Pass = Pass {
        generation: u32::MAX,
        place: NO_PLACE,
        expires: Timestamp::ZERO,
    };

    pub(crate) const fn is_probe(self) -> bool {
        self.place != NO_PLACE
    }
}

/// What a call tells the gate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) took: Duration,
    pub(crate) word: Word,
}

/// What a call says of the partner. Apart from [`Call`], so that it fits a register.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word {
    pub(crate) health: Health,
    /// It came with a hint that holds the partner.
    pub(crate) hinted: bool,
    /// A permanent failure that concerns the partner, not the message.
    pub(crate) suspect: bool,
}
