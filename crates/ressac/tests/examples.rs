//! The examples run, and their own assertions hold.
#![allow(missing_docs, clippy::unwrap_used)]

#[cfg(feature = "reqwest")]
#[path = "../examples/layers.rs"]
mod layers;
#[cfg(feature = "reqwest")]
#[path = "../examples/payment.rs"]
mod payment;
#[path = "../examples/shutdown.rs"]
mod shutdown;
#[path = "../examples/worker.rs"]
mod worker;

#[cfg(feature = "reqwest")]
#[test]
fn vr_5_two_layers_do_not_multiply() {
    layers::main().unwrap();
}

#[cfg(feature = "reqwest")]
#[test]
fn a_payment_is_made_once() {
    payment::main().unwrap();
}

#[test]
fn a_shutdown_is_heard_at_once() {
    shutdown::main().unwrap();
}

#[test]
fn workers_share_a_partner() {
    worker::main().unwrap();
}
