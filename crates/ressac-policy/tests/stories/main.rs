//! Stories in virtual time. Each name begins with the id of the known fault, or says the rule.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;

mod breaker;
mod budget;
mod hints;
mod lifecycle;
mod limiter;
mod order;
mod suspension;
mod verdict;
mod window;
