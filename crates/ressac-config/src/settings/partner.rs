//! The settings of `[partner.NAME]`.

use super::{By, Setting, Shape};

const fn setting(
    name: &'static str,
    shape: Shape,
    default: &'static str,
    range: &'static str,
    doc: &'static str,
) -> Setting {
    Setting {
        name,
        shape,
        word: None,
        range,
        default,
        doc,
        by: By::Gateway,
    }
}

/// All of them, in the order of the reference page.
pub(crate) const PARTNER: &[Setting] = &[
    setting(
        "url",
        Shape::Text,
        "required",
        "http or https; no user, password, query or fragment; not the gateway's own address",
        "Where the partner is. The path of a message is put after it.",
    ),
    setting(
        "policy",
        Shape::Text,
        "durable",
        "a policy of the file, or `durable`",
        "The policy of all messages to it.",
    ),
    setting(
        "idempotency.header",
        Shape::Text,
        "required with `idempotency`",
        "a header name without a meaning of its own",
        "The partner is said to honour an idempotency key in this header, which makes writes \
         replayable.",
    ),
    setting(
        "idempotency.ttl",
        Shape::Duration,
        "24h",
        "above 0",
        "How long the partner remembers a key. After it, a write that may have arrived is not \
         sent again.",
    ),
    setting(
        "idempotency.quoted",
        Shape::Flag,
        "false",
        "",
        "Send the key as a quoted structured string instead of bare.",
    ),
    setting(
        "headers",
        Shape::Headers,
        "{}",
        "at most 64; values of visible characters",
        "Headers put on every attempt. A value `env:NAME` is read from the environment, \
         `file:PATH` from \
         a file; neither is ever printed.",
    ),
    setting(
        "ca_file",
        Shape::Text,
        "the system's roots",
        "a file",
        "Certificates (PEM) that are trusted for this partner besides the system's.",
    ),
    setting(
        "http_version",
        Shape::Words(&["auto", "1.1", "2"]),
        "auto",
        "",
        "What is spoken. `auto`: over https what the partner chooses in the TLS handshake, over \
         http HTTP/1.1. `1.1`, `2`: nothing else; HTTP/2 over http is by prior knowledge (h2c).",
    ),
];
