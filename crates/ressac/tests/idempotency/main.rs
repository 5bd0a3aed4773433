//! The idempotency layer in front of a real axum server, over real sockets.
#![cfg(feature = "idempotency")]
#![allow(clippy::unwrap_used)]

mod effects;
mod example;
mod lease;
mod limits;
mod protocol;
#[cfg(feature = "idempotency-sqlite")]
mod sqlite;
mod support;
