//! The tests every store must pass.
