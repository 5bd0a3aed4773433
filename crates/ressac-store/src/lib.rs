//! The outbox of Ressac: one trait, SQLite underneath.
