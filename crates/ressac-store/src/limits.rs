//! A limit on every size a stranger controls.

/// Longest name of a partner, a lane or an instance, in bytes.
pub const MAX_NAME: usize = 255;
/// Longest idempotency key, in bytes.
pub const MAX_KEY: usize = 512;
/// Longest path with query, in bytes.
pub const MAX_PATH: usize = 16 * 1024;
/// All header names and values of a message together, in bytes.
pub const MAX_HEADERS: usize = 128 * 1024;
/// Largest stored operation or partner snapshot, in bytes.
pub const MAX_OPERATION: usize = 256 * 1024;
/// Most messages in one `begin`, `settle` or `put_back`.
pub const MAX_ITEMS: usize = 1_000;
/// Most messages on one page of [`due`](crate::Outbox::due) or [`list`](crate::Outbox::list); a larger
/// wish is cut to this.
pub const MAX_PAGE: usize = 1_000;
/// Longest word (kind, reason, blame …) in bytes; longer ones are cut.
pub const MAX_WORD: usize = 64;
/// Longest note on an attempt in bytes; longer ones are cut.
pub const MAX_NOTE: usize = 1_024;
/// Largest excerpt of a reply's head, and of its body, in bytes; longer ones are cut.
pub const MAX_EXCERPT: usize = 8 * 1024;

/// Cuts text to at most `max` bytes without splitting a character.
pub(crate) fn cut(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

/// Cuts bytes to at most `max`.
pub(crate) fn cut_bytes(bytes: &[u8], max: usize) -> &[u8] {
    &bytes[..bytes.len().min(max)]
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn a_cut_never_splits_a_character() {
        assert_eq!(cut("aé", 2), "a");
        assert_eq!(cut("aé", 3), "aé");
        assert_eq!(cut("", 3), "");
    }
}
