//! The layer, and how it is told what to do.

use std::fmt;
use std::sync::Arc;

use http::request::Parts;
use tower_layer::Layer;

use super::service::Retry;
use crate::partner::Partner;

/// In a request's extensions: it may be repeated without harm, whatever its method.
///
/// ```
/// use ressac::tower::Idempotent;
///
/// let mut request = http::Request::post("http://api.acme.example/search").body(())?;
/// request.extensions_mut().insert(Idempotent);
/// # Ok::<(), http::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Idempotent;

type Says = Arc<dyn Fn(&Parts) -> bool + Send + Sync>;

/// Makes each request an operation at a partner. See the [module](super).
///
/// A request says more in its extensions: [`Idempotent`], or an
/// [`IdempotencyKey`](crate::IdempotencyKey) of the caller's, sent in the header that the partner
/// names ([`crate::Idempotency`]; `Idempotency-Key` where it names none). A key in the header itself
/// goes out as it stands.
///
/// ```
/// use ressac::tower::RetryLayer;
/// use ressac::{Partner, Policy};
///
/// let acme = Partner::new(Policy::sync());
/// let layer = RetryLayer::new(acme)
///     .body_limit(256 * 1024)
///     // gRPC calls that only read.
///     .idempotent(|parts| parts.uri.path().starts_with("/acme.Rates/Get"));
/// # drop(layer);
/// ```
#[derive(Clone)]
pub struct RetryLayer {
    pub(super) partner: Partner,
    pub(super) body_limit: usize,
    pub(super) says: Option<Says>,
}

impl RetryLayer {
    /// For this partner. A body limit of 1 MiB.
    #[must_use]
    pub fn new(partner: Partner) -> Self {
        RetryLayer {
            partner,
            body_limit: 1 << 20,
            says: None,
        }
    }

    /// How many bytes of a request's body are kept for further attempts. A longer one is sent once.
    #[must_use]
    pub fn body_limit(mut self, bytes: usize) -> Self {
        self.body_limit = bytes;
        self
    }

    /// Which requests may be repeated without harm, besides those whose method says so. Looked at
    /// once, before the first attempt.
    #[must_use]
    pub fn idempotent(mut self, says: impl Fn(&Parts) -> bool + Send + Sync + 'static) -> Self {
        self.says = Some(Arc::new(says));
        self
    }
}

impl fmt::Debug for RetryLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryLayer")
            .field("partner", &self.partner)
            .field("body_limit", &self.body_limit)
            .finish_non_exhaustive()
    }
}

impl<S> Layer<S> for RetryLayer {
    type Service = Retry<S>;

    fn layer(&self, inner: S) -> Retry<S> {
        Retry::new(inner, self.clone())
    }
}
