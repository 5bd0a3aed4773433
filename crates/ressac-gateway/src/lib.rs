//! Durable delivery: an API that accepts, lanes that deliver.
//!
//! ```text
//!  POST /v1/partners/acme/messages ──► api ──► store.accept ──► 202        (one fsync for many)
//!                                               │ nudge
//!                                               ▼
//!                            engine: one lane per partner, owner of its `Partner` state
//!                              poll ─► store.begin ─► transport ─► outcome ─► store.settle
//! ```
//!
//! No retry logic lives here: a lane asks [`ressac_policy::Operation`] what to do, and does it.

mod api;
mod clock;
mod configured;
mod engine;
mod gateway;
mod metrics;
mod retention;
mod serve;
mod settings;
mod transport;

pub use clock::BootClock;
pub use configured::StartError;
pub use gateway::{Gateway, GatewayError, StopReport};
pub use settings::{Idempotency, PartnerSettings, Settings};
