//! ressac.toml: parse it, point at the line that is wrong, lint it, explain it.
