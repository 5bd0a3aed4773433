//! Faults that can be switched on by name: mistakes that proxies really make. Each is named in the
//! case that it must turn red.

use http::Method;
use ressac_http::{Failure, FailureKind, Sent};

/// The most that a fault without a count sends.
const ENDLESS: usize = 60;

/// At most one fault.
#[derive(Clone, Debug)]
pub(crate) struct Fault(Option<String>);

impl Fault {
    pub(crate) fn named(name: Option<&str>) -> Self {
        Self(name.map(str::to_owned))
    }

    pub(crate) fn is(&self, name: &str) -> bool {
        self.0.as_deref() == Some(name)
    }

    /// How often what the upstream refused is sent again without asking the engine.
    pub(crate) fn uncounted(&self) -> usize {
        match self.is("refused-uncounted") {
            true => ENDLESS,
            false => 0,
        }
    }

    /// Takes a failure for another one.
    pub(crate) fn mistake(&self, failure: &mut Failure, method: &Method) {
        let goaway = failure.message.contains("GOAWAY");
        let name = self.0.as_deref().unwrap_or_default();
        let taken_for = match (name, failure.kind) {
            ("refused-post-is-fatal", FailureKind::RefusedStream)
                if !goaway && method == Method::POST =>
            {
                (FailureKind::Reset, Sent::MaybeProcessed)
            }
            ("goaway-is-fatal", FailureKind::RefusedStream) if goaway => {
                (FailureKind::Reset, Sent::MaybeProcessed)
            }
            ("goaway-always-safe", FailureKind::Eof | FailureKind::Reset) if goaway => {
                (FailureKind::RefusedStream, Sent::NotProcessed)
            }
            ("tls-cut-is-fatal", FailureKind::Tls) => (FailureKind::Certificate, Sent::NotSent),
            ("retries-bad-certificate", FailureKind::Certificate) => {
                (FailureKind::Tls, Sent::NotSent)
            }
            _ => return,
        };
        (failure.kind, failure.sent) = taken_for;
    }
}

/// A GET to whoever answers, whatever certificate is shown.
#[cfg(feature = "library")]
pub(crate) async fn reached(url: &str) -> bool {
    crate::unverified::reached(url).await
}

/// Without a client that can be told to, there is no such fault.
#[cfg(not(feature = "library"))]
pub(crate) async fn reached(_: &str) -> bool {
    false
}
