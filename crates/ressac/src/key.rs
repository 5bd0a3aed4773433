//! The idempotency key of an operation.

use std::fmt;
use std::sync::Arc;

use uuid::Uuid;

/// The longest key taken from a caller, in bytes. Stripe's limit, and the shortest of those known.
const LONGEST: usize = 255;

/// One per operation, made before its first attempt; the same bytes on every attempt.
///
/// A UUID v7 unless the caller gives one. Its text ([`Display`](fmt::Display)) is what goes on the
/// wire, bare; [`IdempotencyKey::quoted`] is the structured string of
/// draft-ietf-httpapi-idempotency-key-header.
///
/// ```
/// use ressac::IdempotencyKey;
///
/// let key = IdempotencyKey::new("order-4711")?;
/// assert_eq!(key.to_string(), "order-4711");
/// assert_eq!(key.quoted(), "\"order-4711\"");
/// assert!(IdempotencyKey::new("two words").is_err());
/// # Ok::<(), ressac::KeyError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(Repr);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Repr {
    Made(Uuid),
    Given(Arc<str>),
}

impl IdempotencyKey {
    /// A key of the caller's: 1 to 255 visible ASCII characters, without `"` and `\`, so that it can
    /// be sent bare and quoted.
    ///
    /// # Errors
    ///
    /// [`KeyError`] for anything else.
    pub fn new(text: impl Into<Arc<str>>) -> Result<Self, KeyError> {
        let text = text.into();
        if text.is_empty() || text.len() > LONGEST {
            return Err(KeyError::Length(text.len()));
        }
        let bad = |byte: &u8| !byte.is_ascii_graphic() || matches!(byte, b'"' | b'\\');
        if let Some(position) = text.as_bytes().iter().position(bad) {
            return Err(KeyError::Character(position));
        }
        Ok(IdempotencyKey(Repr::Given(text)))
    }

    pub(crate) fn from_parts(unix_millis: u64, random: [u8; 10]) -> Self {
        let uuid = uuid::Builder::from_unix_timestamp_millis(unix_millis, &random).into_uuid();
        IdempotencyKey(Repr::Made(uuid))
    }

    /// The key as a structured string (RFC 9651 §3.3.3): in double quotes.
    #[must_use]
    pub fn quoted(&self) -> String {
        format!("\"{self}\"")
    }
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Made(uuid) => fmt::Display::fmt(uuid, f),
            Repr::Given(text) => f.write_str(text),
        }
    }
}

impl std::str::FromStr for IdempotencyKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        IdempotencyKey::new(text)
    }
}

/// Why a caller's key was refused. The key itself is not repeated: it may be secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyError {
    /// It has so many bytes, and not 1 to 255.
    Length(usize),
    /// The byte at this position is not a visible ASCII character, or it is `"` or `\`.
    Character(usize),
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyError::Length(bytes) => write!(
                f,
                "the idempotency key has {bytes} bytes; give one of 1 to {LONGEST}"
            ),
            KeyError::Character(position) => write!(
                f,
                "the idempotency key has a character at byte {position} that cannot be sent; use \
                 visible ASCII without \" and \\"
            ),
        }
    }
}

impl std::error::Error for KeyError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_made_key_is_a_uuid_of_version_7() {
        let key = IdempotencyKey::from_parts(0x0123_4567_89ab, [0xff; 10]).to_string();
        assert_eq!(key, "01234567-89ab-7fff-bfff-ffffffffffff");
    }

    #[test]
    fn what_cannot_be_sent_is_refused_and_not_repeated() {
        assert_eq!(IdempotencyKey::new(""), Err(KeyError::Length(0)));
        assert_eq!(
            IdempotencyKey::new("x".repeat(256)),
            Err(KeyError::Length(256))
        );
        for (text, position) in [("a\r\nb", 1), ("secret\"", 6), ("x\\", 1), ("caf\u{e9}", 3)] {
            let refused = IdempotencyKey::new(text);
            assert_eq!(refused, Err(KeyError::Character(position)), "{text:?}");
            assert!(!refused.unwrap_err().to_string().contains(text));
        }
    }
}
