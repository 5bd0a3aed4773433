//! The settings of `[gateway]`.

use super::{By, Setting, Shape};

const fn setting(
    name: &'static str,
    shape: Shape,
    word: Option<&'static str>,
    default: &'static str,
    range: &'static str,
    doc: &'static str,
) -> Setting {
    Setting {
        name,
        shape,
        word,
        range,
        default,
        doc,
        by: By::Gateway,
    }
}

/// All of them, in the order of the reference page.
pub(crate) const GATEWAY: &[Setting] = &[
    setting(
        "listen",
        Shape::Text,
        None,
        "127.0.0.1:7070",
        "a loopback address and a port",
        "Where the gateway takes messages. There are no tokens yet, so it listens to this \
         machine only.",
    ),
    setting(
        "store",
        Shape::Text,
        None,
        "sqlite:ressac.db",
        "`sqlite:PATH`",
        "Where accepted messages lie.",
    ),
    setting(
        "max_body",
        Shape::Size,
        None,
        "10MB",
        "1B to 512MiB",
        "The largest message that is taken.",
    ),
    setting(
        "max_store",
        Shape::Size,
        Some("off"),
        "off",
        "at least 1MiB, and twice max_body",
        "The store may grow to this size; then nothing more is accepted until there is room.",
    ),
    setting(
        "keep",
        Shape::Duration,
        Some("off"),
        "30d",
        "1h to 3650d",
        "How long a delivered message stays to be looked at, with its history. Its key is free \
         again afterwards: keep messages longer than any caller repeats a key. Dead letters stay.",
    ),
    setting(
        "stop_timeout",
        Shape::Duration,
        None,
        "10s",
        "0s to 1h",
        "How long a graceful stop waits for the attempts in flight.",
    ),
    setting(
        "addresses",
        Shape::Words(&["any", "public"]),
        None,
        "any",
        "",
        "Which addresses a partner's name may have: any, or none that is private, local or \
         reserved.",
    ),
];
