//! Accepts per second.
fn main() {}
