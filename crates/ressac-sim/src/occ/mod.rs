//! The model of the 2015 article "Exponential Backoff and Jitter" (AWS Architecture Blog): N
//! clients that all want to update one row under optimistic concurrency control.
//!
//! It models contention, not overload: the server takes no time and bears any load. Reading and
//! writing take four hops of |Normal(10 ms, 2 ms)| each; a write succeeds if nobody else has
//! written since the read. *Calls* counts writes; *time* is the moment of the last success.
//!
//! The article's policies are what they are, with the exponent starting at 1 (the first window
//! is twice the base). They are kept apart from the engine's: this scenario checks the event core
//! against published numbers, all others drive the engine.

mod reference;
mod run;

pub use reference::{CLIENTS, reference};
pub use run::{OccPolicy, OccRun, run};
