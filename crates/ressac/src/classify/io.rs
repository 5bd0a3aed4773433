//! What an I/O error proves.

use std::io::{Error, ErrorKind};

use ressac_policy::{Outcome, OutcomeKind, Processed};

use super::{Classify, Context, outcomes};

/// Refusals are proof that nothing was sent; a reset, a broken pipe, an early end and a timeout prove
/// nothing: they look the same after the partner has done everything. What another attempt cannot
/// mend (no permission, not found, disk full) is permanent.
impl Classify for Error {
    fn outcome(&self, _: &Context) -> Outcome {
        of_kind(self.kind()).unwrap_or_else(outcomes::permanent)
    }
}

/// `None` where the kind alone says nothing about a connection.
pub(super) fn of_kind(kind: ErrorKind) -> Option<Outcome> {
    let outcome = match kind {
        // Only `connect` ends so.
        ErrorKind::ConnectionRefused
        | ErrorKind::HostUnreachable
        | ErrorKind::NetworkUnreachable
        | ErrorKind::NetworkDown
        | ErrorKind::AddrNotAvailable => Outcome::new(OutcomeKind::Refused).proving(Processed::No),
        ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::BrokenPipe
        | ErrorKind::NotConnected
        | ErrorKind::Interrupted
        | ErrorKind::WriteZero => Outcome::new(OutcomeKind::Reset),
        ErrorKind::UnexpectedEof => Outcome::new(OutcomeKind::Eof),
        // A blocking socket's own time limit ends as `WouldBlock` on Unix.
        ErrorKind::TimedOut | ErrorKind::WouldBlock => Outcome::new(OutcomeKind::Timeout),
        _ => return None,
    };
    Some(outcome)
}

#[cfg(test)]
mod tests {
    use ressac_policy::{Timestamp, VendorHints};

    use super::*;

    #[test]
    fn vr_3_only_refusals_prove_that_nothing_was_sent() {
        let context = Context::new(Timestamp::ZERO, VendorHints::NONE);
        let outcome = |kind: ErrorKind| {
            let outcome = Error::from(kind).outcome(&context);
            (outcome.kind, outcome.processed)
        };
        let no = Some(Processed::No);
        assert_eq!(
            outcome(ErrorKind::ConnectionRefused),
            (OutcomeKind::Refused, no)
        );
        assert_eq!(
            outcome(ErrorKind::HostUnreachable),
            (OutcomeKind::Refused, no)
        );
        assert_eq!(
            outcome(ErrorKind::ConnectionReset),
            (OutcomeKind::Reset, None)
        );
        assert_eq!(outcome(ErrorKind::BrokenPipe), (OutcomeKind::Reset, None));
        assert_eq!(outcome(ErrorKind::UnexpectedEof), (OutcomeKind::Eof, None));
        assert_eq!(outcome(ErrorKind::TimedOut), (OutcomeKind::Timeout, None));
        let permanent = outcomes::permanent();
        assert_eq!(
            outcome(ErrorKind::NotFound),
            (permanent.kind, permanent.processed)
        );
        assert_eq!(
            outcome(ErrorKind::StorageFull),
            (permanent.kind, permanent.processed)
        );
    }
}
