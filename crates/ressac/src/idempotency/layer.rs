//! The layer, and how it is told what to do.

use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use http::{HeaderName, Method, StatusCode};
use tokio::sync::Semaphore;
use tower_layer::Layer;

use super::service::Idempotency;
use super::settings::{SHORTEST_LEASE, Settings};
use super::store::IdempotencyStore;

/// Runs a handler once for an idempotency key, and answers repetitions with the first reply.
///
/// See the [module](super) for what it promises. Put it outside the handlers and inside whatever
/// refuses callers (authentication, rate limits): a 401 is no reply to keep.
///
/// ```
/// use std::time::Duration;
/// use axum::{Router, routing::post};
/// use ressac::idempotency::{IdempotencyLayer, MemoryStore};
///
/// let keys = IdempotencyLayer::new(MemoryStore::new())
///     .docs("https://api.acme.example/docs/idempotency")
///     .ttl(Duration::from_secs(48 * 3_600));
/// let app: Router = Router::new()
///     .route("/v1/payments", post(|| async { "paid" }))
///     .layer(keys);
/// ```
///
/// | setting | default |
/// |---|---|
/// | [`methods`](Self::methods) | `POST`, `PATCH` |
/// | [`optional`](Self::optional) | no: without a key 400 |
/// | [`caller`](Self::caller) | by a hash of `Authorization` |
/// | [`lease`](Self::lease), [`max_run`](Self::max_run) | 30 s, 10 min |
/// | [`ttl`](Self::ttl) | 24 h |
/// | [`request_limit`](Self::request_limit), [`request_time`](Self::request_time) | 2 MiB, 30 s |
/// | [`reply_limit`](Self::reply_limit) | 1 MiB |
/// | [`max_running`](Self::max_running) | 1024 |
/// | [`keep`](Self::keep) | [`keeps_by_default`](super::keeps_by_default) |
#[derive(Clone, Debug)]
pub struct IdempotencyLayer {
    shared: Shared,
}

/// What layer and services share.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    pub(super) settings: Arc<Settings>,
    pub(super) store: Arc<dyn IdempotencyStore>,
    pub(super) running: Arc<Semaphore>,
}

impl IdempotencyLayer {
    /// A layer with the defaults over this store.
    #[must_use]
    pub fn new(store: impl IdempotencyStore) -> Self {
        let settings = Settings::default();
        IdempotencyLayer {
            shared: Shared {
                running: Arc::new(Semaphore::new(settings.max_running)),
                settings: Arc::new(settings),
                store: Arc::new(store),
            },
        }
    }

    fn with(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(Arc::make_mut(&mut self.shared.settings));
        self
    }

    /// Which methods need a key. Others pass untouched, with or without one.
    #[must_use]
    pub fn methods(self, methods: impl IntoIterator<Item = Method>) -> Self {
        self.with(|settings| settings.methods = methods.into_iter().collect())
    }

    /// Lets a request without a key pass; it runs every time.
    #[must_use]
    pub fn optional(self) -> Self {
        self.with(|settings| settings.required = false)
    }

    /// The name of the header, `Idempotency-Key` by default (draft §2.1).
    #[must_use]
    pub fn header(self, name: HeaderName) -> Self {
        self.with(|settings| settings.header = name)
    }

    /// Says whose a key is. Two callers may use the same key without meeting; one never gets the
    /// other's reply.
    ///
    /// The answer must be the same on every attempt of one operation. The default, a hash of the
    /// `Authorization` header, is so for API keys and passwords. It is **not** so for tokens that are
    /// renewed or signed for each request: a retry with a new token would be another caller's, and
    /// its effect a second one. Then name the account instead, from what the authentication
    /// outside this layer found out. Callers without a name share one.
    ///
    /// ```
    /// use ressac::idempotency::{IdempotencyLayer, MemoryStore};
    ///
    /// #[derive(Clone)]
    /// struct Account(String);
    ///
    /// let keys = IdempotencyLayer::new(MemoryStore::new()).caller(|parts| {
    ///     let account = parts.extensions.get::<Account>();
    ///     account.map_or(String::new(), |account| account.0.clone())
    /// });
    /// ```
    #[must_use]
    pub fn caller<C, N>(self, caller: C) -> Self
    where
        C: Fn(&Parts) -> N + Send + Sync + 'static,
        N: Into<Vec<u8>>,
    {
        self.with(|settings| settings.caller = Arc::new(move |parts| caller(parts).into()))
    }

    /// Keeps the keys of several layers over one store apart: where two services share it, or where
    /// routers are nested, since a nested router sees only the rest of the path.
    #[must_use]
    pub fn namespace(self, name: &str) -> Self {
        self.with(|settings| settings.namespace = name.into())
    }

    /// How long a mark outlives its process: so long after a crash a retry is answered 409. While
    /// the handler runs the lease is renewed at a third. At least 10 ms.
    ///
    /// It need not be longer than the slowest handler; it must be longer than any pause of the whole
    /// process (a machine that swaps or is moved), or a retry may run beside the first request.
    #[must_use]
    pub fn lease(self, lease: Duration) -> Self {
        self.with(|settings| settings.lease = lease.max(SHORTEST_LEASE))
    }

    /// How long a handler may run, its reply's body included. One that hangs would hold its key for
    /// ever, so after this time its future is dropped and its caller answered 503. Its key stays marked until
    /// the lease ends, since nobody knows what it had done.
    #[must_use]
    pub fn max_run(self, max_run: Duration) -> Self {
        self.with(|settings| settings.max_run = max_run)
    }

    /// How many handlers with a key may run at once, those of callers who have gone included. One
    /// more is answered 503. From 1 to 65 535.
    #[must_use]
    pub fn max_running(mut self, most: usize) -> Self {
        let most = most.clamp(1, usize::from(u16::MAX));
        self.shared.running = Arc::new(Semaphore::new(most));
        self.with(|settings| settings.max_running = most)
    }

    /// How long a reply is kept for its key, from its end. After that the key is new again. Clients
    /// must know it (draft §2.3): publish it.
    #[must_use]
    pub fn ttl(self, ttl: Duration) -> Self {
        self.with(|settings| settings.ttl = ttl)
    }

    /// The longest request body, in bytes. It is read whole before anything runs; a longer one is
    /// answered 413, and its key is as it was.
    #[must_use]
    pub fn request_limit(self, bytes: usize) -> Self {
        self.with(|settings| settings.request_limit = bytes)
    }

    /// How long the request body may take to arrive; then 408, and its key is as it was.
    #[must_use]
    pub fn request_time(self, time: Duration) -> Self {
        self.with(|settings| settings.request_time = time)
    }

    /// The longest reply body that is kept, in bytes. A longer one goes to its caller whole, as it
    /// comes. What is kept for its key is a note: a repetition is answered 409 without
    /// `Retry-After`, with the first status and `Location`, and nothing runs again.
    #[must_use]
    pub fn reply_limit(self, bytes: usize) -> Self {
        self.with(|settings| settings.reply_limit = bytes)
    }

    /// Which replies are kept, by status. For others the key is let go when the head of the reply
    /// is here. See [`keeps_by_default`](super::keeps_by_default).
    ///
    /// ```
    /// use http::StatusCode;
    /// use ressac::idempotency::{IdempotencyLayer, MemoryStore, keeps_by_default};
    ///
    /// // A form that answers with "see other".
    /// let keys = IdempotencyLayer::new(MemoryStore::new())
    ///     .keep(|status| status == StatusCode::SEE_OTHER || keeps_by_default(status));
    /// ```
    #[must_use]
    pub fn keep(self, keep: impl Fn(StatusCode) -> bool + Send + Sync + 'static) -> Self {
        self.with(|settings| settings.keep = Arc::new(keep))
    }

    /// Where your documentation of keys is: the `type` of each problem, and a `Link` beside it
    /// (draft §2.7 wants one). By default the draft's own page.
    #[must_use]
    pub fn docs(self, url: &str) -> Self {
        self.with(|settings| settings.docs = url.into())
    }

    /// Waits until no handler with a key runs any more, those of callers who have gone included.
    /// Meanwhile new requests with a key are answered 503.
    ///
    /// Call it after the server has stopped taking connections and before the runtime ends: what is
    /// still running then is dropped, as in a crash.
    pub async fn drain(&self) {
        let all = u32::try_from(self.shared.settings.max_running).unwrap_or(u32::MAX);
        // An error means a closed semaphore, which this one never is.
        let _all = self.shared.running.acquire_many(all).await;
    }
}

impl<S> Layer<S> for IdempotencyLayer {
    type Service = Idempotency<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Idempotency::new(inner, self.shared.clone())
    }
}
