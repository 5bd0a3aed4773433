//! What an error proves, read from the errors below it.
//!
//! The order counts: whatever says "never started" comes before the reset that caused it.

use std::error::Error;
use std::io;

use ressac_policy::Outcome;
#[cfg(any(
    feature = "http2",
    feature = "rustls",
    feature = "hyper-util",
    feature = "reqwest"
))]
use ressac_policy::OutcomeKind;
#[cfg(any(feature = "http2", feature = "hyper-util", feature = "reqwest"))]
use ressac_policy::Processed;

use super::{io as by_io, outcomes};

/// No chain of errors is longer than this; one that runs in a circle ends here.
const LONGEST: usize = 32;

/// What an error proves, by the first of itself and the errors below it that is known: those of
/// `std::io`, and of hyper, h2 and rustls where their features are on. Nothing known proves nothing.
///
/// ```
/// use ressac::{OutcomeKind, outcomes};
///
/// let reset = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
/// let error: Box<dyn std::error::Error> = Box::new(std::io::Error::other(reset));
/// assert_eq!(outcomes::of_error(&*error).kind, OutcomeKind::Reset);
/// ```
#[must_use]
pub fn of_error(error: &(dyn Error + 'static)) -> Outcome {
    find(error, of_link).unwrap_or_else(outcomes::transient)
}

/// The same for an error that comes from connecting: nothing of the request was sent.
#[cfg(any(feature = "hyper-util", feature = "reqwest"))]
pub(crate) fn of_connect_error(error: &(dyn Error + 'static)) -> Outcome {
    let outcome = find(error, of_connect_link);
    let refused = Outcome::new(OutcomeKind::Refused);
    outcome.unwrap_or(refused).proving(Processed::No)
}

/// Looks at each error of the chain, and at what an I/O error wraps, which `source` leaves out.
fn find<T>(
    error: &(dyn Error + 'static),
    look: impl Fn(&(dyn Error + 'static)) -> Option<T>,
) -> Option<T> {
    let mut link = Some(error);
    for _ in 0..LONGEST {
        let current = link?;
        if let Some(found) = look(current) {
            return Some(found);
        }
        let wrapped = current
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        link = match wrapped {
            Some(wrapped) => Some(wrapped),
            None => current.source(),
        };
    }
    None
}

fn of_link(error: &(dyn Error + 'static)) -> Option<Outcome> {
    #[cfg(feature = "hyper")]
    if let Some(error) = error.downcast_ref::<::hyper::Error>()
        && let Some(outcome) = super::hyper::of_hyper(error)
    {
        return Some(outcome);
    }
    #[cfg(feature = "http2")]
    if let Some(error) = error.downcast_ref::<h2::Error>()
        && let Some(outcome) = of_h2(error)
    {
        return Some(outcome);
    }
    #[cfg(feature = "rustls")]
    if let Some(error) = error.downcast_ref::<rustls::Error>() {
        // Not from connecting: the session broke with the request under way.
        return Some(Outcome::new(if is_certificate(error) {
            OutcomeKind::Certificate
        } else {
            OutcomeKind::Reset
        }));
    }
    let error = error.downcast_ref::<io::Error>()?;
    // What it wraps says more than its kind.
    match error.get_ref() {
        Some(wrapped) if find(wrapped, of_link).is_some() => None,
        _ => by_io::of_kind(error.kind()),
    }
}

#[cfg(any(feature = "hyper-util", feature = "reqwest"))]
fn of_connect_link(error: &(dyn Error + 'static)) -> Option<Outcome> {
    let new = |kind| Some(Outcome::new(kind));
    #[cfg(feature = "rustls")]
    if let Some(error) = error.downcast_ref::<rustls::Error>() {
        return new(if is_certificate(error) {
            OutcomeKind::Certificate
        } else {
            OutcomeKind::Tls
        });
    }
    if let Some(error) = error.downcast_ref::<io::Error>() {
        if error
            .get_ref()
            .is_some_and(|wrapped| find(wrapped, of_connect_link).is_some())
        {
            return None;
        }
        return match error.kind() {
            io::ErrorKind::TimedOut => new(OutcomeKind::ConnectTimeout),
            // A TCP connect is refused; what is cut has been connected, for TLS.
            io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData => new(OutcomeKind::Tls),
            io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted => {
                new(OutcomeKind::Refused)
            }
            kind => by_io::of_kind(kind),
        };
    }
    // Private types; their whole text is what there is to know them by.
    match error.to_string().as_str() {
        "dns error" => new(OutcomeKind::Dns),
        "tcp connect timeout" | "operation timed out" | "deadline has elapsed" => {
            new(OutcomeKind::ConnectTimeout)
        }
        _ => None,
    }
}

/// RFC 9113 §8.7: what was refused, or lies above the last stream of a `GOAWAY`, was not processed.
#[cfg(feature = "http2")]
fn of_h2(error: &h2::Error) -> Option<Outcome> {
    let refused =
        error.is_reset() && error.is_remote() && error.reason() == Some(h2::Reason::REFUSED_STREAM);
    // h2 fails only those streams with the peer's GOAWAY that lie above its last one.
    let gone = error.is_go_away() && error.is_remote();
    if refused || gone {
        return Some(Outcome::new(OutcomeKind::RefusedStream).proving(Processed::No));
    }
    // An I/O error is the next in the chain, or its own kind.
    match error.get_io() {
        Some(io) => by_io::of_kind(io.kind()),
        None => Some(Outcome::new(OutcomeKind::Reset)),
    }
}

/// Was a certificate refused, ours or theirs? Everything else about TLS may be better next time.
#[cfg(feature = "rustls")]
fn is_certificate(error: &rustls::Error) -> bool {
    use rustls::AlertDescription as Alert;
    match error {
        rustls::Error::InvalidCertificate(_)
        | rustls::Error::InvalidCertRevocationList(_)
        | rustls::Error::NoCertificatesPresented
        | rustls::Error::UnsupportedNameType => true,
        rustls::Error::AlertReceived(alert) => matches!(
            alert,
            Alert::NoCertificate
                | Alert::BadCertificate
                | Alert::UnsupportedCertificate
                | Alert::CertificateRevoked
                | Alert::CertificateExpired
                | Alert::CertificateUnknown
                | Alert::UnknownCA
                | Alert::AccessDenied
                | Alert::CertificateRequired
                | Alert::UnrecognisedName
        ),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::*;

    #[derive(Debug)]
    struct Outer(io::Error);

    impl fmt::Display for Outer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("outer")
        }
    }

    impl Error for Outer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn what_an_io_error_wraps_counts_before_its_kind() {
        let reset = io::Error::from(io::ErrorKind::ConnectionReset);
        let wrapped = Outer(io::Error::other(Outer(reset)));
        assert_eq!(of_error(&wrapped).kind, ressac_policy::OutcomeKind::Reset);
    }

    #[test]
    fn what_nobody_knows_proves_nothing() {
        assert_eq!(of_error(&fmt::Error), outcomes::transient());
        assert_eq!(
            of_error(&Outer(io::Error::other(fmt::Error))).processed,
            None
        );
    }
}
