//! What the end of a stream proves (RFC 9113 §8.7).

use std::io;

use h2::Reason;

use crate::failure::{FailureKind, Sent};

/// What an end before the reply's head proves, if bytes of the request went out.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Proof {
    pub(crate) kind: FailureKind,
    pub(crate) sent: Sent,
    /// For people.
    pub(crate) words: &'static str,
}

/// Only REFUSED_STREAM, and a GOAWAY whose last stream lies below, prove anything.
pub(crate) fn of_h2(error: &h2::Error) -> Proof {
    let maybe = |kind, words| Proof {
        kind,
        sent: Sent::MaybeProcessed,
        words,
    };
    let unprocessed = |words| Proof {
        kind: FailureKind::RefusedStream,
        sent: Sent::NotProcessed,
        words,
    };
    if let Some(error) = error.get_io() {
        return match error.kind() {
            // The second is h2's own word for an end of the connection.
            io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe => {
                maybe(FailureKind::Eof, "the connection ended before the reply")
            }
            _ => maybe(
                FailureKind::Reset,
                "the connection was reset before the reply",
            ),
        };
    }
    match (error.is_remote(), error.is_go_away()) {
        // h2 fails only those streams with the partner's GOAWAY that lie above its last one.
        (true, true) => unprocessed("the partner did not process it and said so (GOAWAY)"),
        (true, false) if error.reason() == Some(Reason::REFUSED_STREAM) => {
            unprocessed("the partner refused the stream")
        }
        (true, false) => maybe(FailureKind::Reset, "the partner reset the stream"),
        (false, _) if error.is_library() => {
            maybe(FailureKind::Malformed, "what came back is no HTTP/2 reply")
        }
        (false, _) => maybe(FailureKind::Reset, "the stream broke before the reply"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_our_own_proves_nothing() {
        let proof = of_h2(&Reason::REFUSED_STREAM.into());
        assert_eq!(proof.sent, Sent::MaybeProcessed);
    }
}
