//! The words of the notation: those understood, and those refused by name.

/// Words understood, for suggestions.
pub(super) const KNOWN: &[&str] = &[
    "h", "body", "text", "json", "ra", "date", "hold", "cl", "close", "stall", "create", "barrier",
    "pick", "fin@head", "fin@req", "fin@hdr", "fin@body", "fin@end", "rst@head", "rst@req",
    "rst@hdr", "rst@body", "rst@end",
];

/// Words of the specification that this version does not carry out. They are refused, because a
/// fault that is silently left out makes a client look better than it is.
pub(crate) const UNSUPPORTED: &[&str] = &[
    "file",
    "gap",
    "drip",
    "drip-head",
    "chunked",
    "nolast",
    "badchunk",
    "until-close",
    "interim",
    "garbage",
    "early",
    "expect",
    "quiet-close",
    "idle",
    "idle-rst",
    "race",
    "pass",
    "refused-stream",
    "rst-stream",
    "end-stream",
    "goaway",
    "code",
    "fin@interim",
    "rst@interim",
];
