//! Who waits at a client for its partner's leave: first attempts and retries, each in order.

use std::collections::VecDeque;

/// Of nine turns that both could take, first attempts have seven: the gateway's shares.
const TURNS: u32 = 9;
const FIRST: u32 = 7;

/// Two lines of operations.
#[derive(Clone, Debug, Default)]
pub(super) struct Lines {
    queues: [VecDeque<u32>; 2],
    turn: u32,
}

/// Which line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    First = 0,
    Retry = 1,
}

impl Lines {
    pub(super) fn join(&mut self, line: Line, op: u32) {
        self.queues[line as usize].push_back(op);
    }

    /// Puts back at the head what was taken.
    pub(super) fn put_back(&mut self, line: Line, op: u32) {
        self.queues[line as usize].push_front(op);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queues.iter().all(VecDeque::is_empty)
    }

    /// The next in the order of the shares, of the lines that are not blocked.
    pub(super) fn take(&mut self, blocked: [bool; 2]) -> Option<(Line, u32)> {
        let open = |line: Line| !blocked[line as usize] && !self.queues[line as usize].is_empty();
        let line = match (open(Line::First), open(Line::Retry)) {
            (false, false) => return None,
            (true, false) => Line::First,
            (false, true) => Line::Retry,
            (true, true) => {
                self.turn = (self.turn + FIRST) % TURNS;
                if self.turn < FIRST {
                    Line::First
                } else {
                    Line::Retry
                }
            }
        };
        let op = self.queues[line as usize].pop_front()?;
        Some((line, op))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_attempts_have_seven_turns_of_nine() {
        let mut lines = Lines::default();
        for op in 0..1_000 {
            lines.join(Line::First, op);
            lines.join(Line::Retry, op);
        }
        let firsts = (0..900).filter(|_| lines.take([false; 2]).unwrap().0 == Line::First);
        assert_eq!(firsts.count(), 700);
        assert_eq!(lines.take([true, false]).unwrap().0, Line::Retry);
        assert_eq!(lines.take([true, true]), None);
    }
}
