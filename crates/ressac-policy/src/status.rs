//! A set of HTTP statuses, and the other words of `retry_on`.

use crate::outcome::OutcomeKind;

/// A set of HTTP statuses from 100 to 999. 128 bytes, no allocation.
///
/// ```
/// use ressac_policy::StatusSet;
///
/// const RETRY: StatusSet = StatusSet::of(&[429, 503]);
/// assert!(RETRY.contains(503) && !RETRY.contains(500));
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct StatusSet([u64; 16]);

impl StatusSet {
    /// No status.
    pub const EMPTY: StatusSet = StatusSet([0; 16]);

    /// These statuses; what is outside 100 to 999 is left out.
    #[must_use]
    pub const fn of(statuses: &[u16]) -> Self {
        let mut set = StatusSet::EMPTY;
        let mut index = 0;
        while index < statuses.len() {
            set = set.with(statuses[index]);
            index += 1;
        }
        set
    }

    /// With one more; unchanged if it is outside 100 to 999.
    #[must_use]
    pub const fn with(mut self, status: u16) -> Self {
        if status >= 100 && status <= 999 {
            self.0[status as usize / 64] |= 1 << (status % 64);
        }
        self
    }

    /// Is it in the set?
    #[must_use]
    pub const fn contains(&self, status: u16) -> bool {
        status < 1_024 && self.0[status as usize / 64] & (1 << (status % 64)) != 0
    }

    /// Is the set empty?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == StatusSet::EMPTY
    }

    /// All in it, smallest first.
    pub fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        (100..=999).filter(|status| self.contains(*status))
    }
}

impl Default for StatusSet {
    fn default() -> Self {
        StatusSet::EMPTY
    }
}

impl core::fmt::Debug for StatusSet {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// What `retry_on` lists: it *replaces* the yes-set of the built-in table.
///
/// ```
/// use ressac_policy::{OutcomeKind, RetryOn};
///
/// let list = RetryOn::EMPTY.with_word("reset").unwrap().with_status(503);
/// assert!(list.contains(OutcomeKind::Reset) && list.contains(OutcomeKind::Status(503)));
/// assert!(!list.contains(OutcomeKind::Timeout));
/// assert_eq!(RetryOn::EMPTY.with_word("sometimes"), None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetryOn {
    words: u8,
    /// The statuses listed.
    pub statuses: StatusSet,
}

impl RetryOn {
    /// Nothing is retried.
    pub const EMPTY: RetryOn = RetryOn {
        words: 0,
        statuses: StatusSet::EMPTY,
    };

    /// The words it takes, besides statuses.
    pub const WORDS: [&'static str; 8] = [
        "dns",
        "refused",
        "connect_timeout",
        "tls",
        "reset",
        "eof",
        "timeout",
        "truncated",
    ];

    /// With one of [`RetryOn::WORDS`]; `None` for any other word.
    #[must_use]
    pub fn with_word(mut self, word: &str) -> Option<Self> {
        let index = RetryOn::WORDS.iter().position(|known| *known == word)?;
        self.words |= 1 << index;
        Some(self)
    }

    /// With this status.
    #[must_use]
    pub const fn with_status(mut self, status: u16) -> Self {
        self.statuses = self.statuses.with(status);
        self
    }

    /// The words in it, in the order of [`RetryOn::WORDS`].
    pub fn words(&self) -> impl Iterator<Item = &'static str> + '_ {
        (0..)
            .zip(RetryOn::WORDS)
            .filter(|(index, _)| self.words & (1 << index) != 0)
            .map(|(_, w)| w)
    }

    /// Is an outcome of this kind on the list? A refused stream goes by `reset`.
    #[must_use]
    pub const fn contains(&self, kind: OutcomeKind) -> bool {
        let index = match kind {
            OutcomeKind::Status(status) => return self.statuses.contains(status),
            OutcomeKind::Dns => 0,
            OutcomeKind::Refused => 1,
            OutcomeKind::ConnectTimeout => 2,
            OutcomeKind::Tls => 3,
            OutcomeKind::Reset | OutcomeKind::RefusedStream => 4,
            OutcomeKind::Eof => 5,
            OutcomeKind::Timeout => 6,
            OutcomeKind::Truncated => 7,
            OutcomeKind::Success
            | OutcomeKind::Certificate
            | OutcomeKind::Invalid
            | OutcomeKind::Crash => return false,
        };
        self.words & (1 << index) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_edges_of_the_range() {
        let set = StatusSet::of(&[99, 100, 999, 1000, u16::MAX]);
        assert!(set.iter().eq([100, 999]));
        assert!(!set.contains(u16::MAX));
    }
}
