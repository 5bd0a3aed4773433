//! What a caller does to each attempt before it leaves.

use std::fmt;

use ::reqwest::Request;

use crate::attempt::Attempt;

type Change = Box<dyn FnMut(&Attempt, &mut Request) + Send + Sync>;

/// Changes the request of one attempt.
pub(super) struct Hook(Change);

impl Hook {
    pub(super) fn new(change: impl FnMut(&Attempt, &mut Request) + Send + Sync + 'static) -> Hook {
        Hook(Box::new(change))
    }

    pub(super) fn change(&mut self, attempt: &Attempt, request: &mut Request) {
        (self.0)(attempt, request);
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hook")
    }
}
