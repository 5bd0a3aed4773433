//! Properties that hold for every policy, every order of calls and every random word.
#![allow(missing_docs, clippy::unwrap_used)]

mod breaker;
mod budget;
mod machine;
mod policies;
mod robust;
mod rules;
