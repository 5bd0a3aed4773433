//! `RetryLayer` over hyper's client, against servers that fail on real sockets.
#![cfg(all(feature = "tower", feature = "hyper-util", feature = "http2"))]
#![allow(clippy::unwrap_used)]

mod bodies;
mod http1;
mod http2;
mod readiness;
mod support;
