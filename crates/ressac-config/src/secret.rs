//! A value that no log, error or dump shows.

use std::fmt;

/// A header value that may be a password. Its `Debug` shows nothing of it, and it has no `Display`.
///
/// ```
/// let secret = ressac_config::Secret::new("Bearer 123");
/// assert_eq!(format!("{secret:?}"), "[redacted]");
/// assert_eq!(secret.expose(), "Bearer 123");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a value.
    #[must_use]
    pub fn new(value: impl Into<String>) -> Self {
        Secret(value.into())
    }

    /// The value itself: for the wire, and nothing else.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}
