//! The client.

use std::sync::Arc;
use std::time::Duration;

use ::reqwest::{ClientBuilder, IntoUrl, Method, Request};
use http::HeaderName;

use super::fresh::Fresh;
use super::request::RequestBuilder;
use super::{Error, send};
use crate::operation::Options;
use crate::partner::Partner;

/// The longest that connecting may take where the client is made here: always below the attempt's
/// own limit, or a slow connect could not be told from a slow answer.
const LONGEST_CONNECT: Duration = Duration::from_secs(5);

/// Idle connections are closed before their peers close them: Node's limit is 5 s, and a request
/// that meets a closing connection is in doubt.
const POOL_IDLE: Duration = Duration::from_secs(4);

/// A reqwest client whose calls go through a [`Partner`].
///
/// One for each partner: budget and breaker are about one system. A clone is the same client.
#[derive(Clone, Debug)]
pub struct Client {
    pub(super) inner: ::reqwest::Client,
    /// Where an attempt goes that must not meet a pooled connection.
    pub(super) fresh: Option<Arc<Fresh>>,
    pub(super) partner: Partner,
    /// Where a key goes.
    pub(super) key_header: HeaderName,
}

impl Client {
    /// A client with reqwest's defaults but these: it follows no redirect, does not retry by
    /// itself, limits connecting to half an attempt (5 s at most) and closes idle connections after
    /// 4 s.
    ///
    /// # Errors
    ///
    /// As [`ClientBuilder::build`]: TLS could not be set up.
    pub fn new(partner: Partner) -> Result<Self, ::reqwest::Error> {
        Client::with(partner, |builder| builder)
    }

    /// The same, with settings of your own on top. reqwest's retries stay off.
    ///
    /// `configure` is called twice: the second client has no pool, and takes an attempt that follows
    /// a broken connection. What the two must share, a cookie jar for example, is to be made outside.
    ///
    /// ```
    /// use ressac::reqwest::Client;
    /// use ressac::{Partner, Policy};
    ///
    /// let client = Client::with(Partner::new(Policy::sync()), |builder| {
    ///     builder.user_agent("shop/1.0").https_only(true)
    /// })?;
    /// # drop(client);
    /// # Ok::<(), reqwest::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`ClientBuilder::build`].
    pub fn with(
        partner: Partner,
        configure: impl Fn(ClientBuilder) -> ClientBuilder,
    ) -> Result<Self, ::reqwest::Error> {
        let configured =
            || configure(Client::builder_for(&partner)).retry(::reqwest::retry::never());
        let inner = configured().build()?;
        let unpooled = configured().pool_max_idle_per_host(0).build()?;
        Ok(Client::from_reqwest(inner, partner).with_unpooled(unpooled))
    }

    /// What [`Client::new`] starts from, for a client that is built elsewhere: no redirects, no
    /// retries, a `connect_timeout` below the partner's `attempt_timeout`, idle connections closed
    /// after 4 s.
    ///
    /// With feature `rustls` it also makes ring the process's provider of cryptography, where there
    /// is none yet: reqwest itself, as it is used here, has none.
    pub fn builder_for(partner: &Partner) -> ClientBuilder {
        #[cfg(feature = "rustls")]
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            // Where another thread was quicker there is one now.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let attempt_timeout = partner.policy().attempt_timeout;
        ::reqwest::Client::builder()
            .redirect(::reqwest::redirect::Policy::none())
            .retry(::reqwest::retry::never())
            .connect_timeout((attempt_timeout / 2).min(LONGEST_CONNECT))
            .pool_idle_timeout(POOL_IDLE)
    }

    /// A client of your own; best from [`Client::builder_for`]. It must have
    /// `retry(reqwest::retry::never())`, or reqwest sends again behind the policy's back, and a
    /// `connect_timeout` below the policy's `attempt_timeout`, or a request that was never sent is
    /// taken for one that may have been processed. Best with [`Client::with_unpooled`] too.
    #[must_use]
    pub fn from_reqwest(inner: ::reqwest::Client, partner: Partner) -> Self {
        const DEFAULT: HeaderName = HeaderName::from_static("idempotency-key");
        let configured = partner
            .idempotency()
            .and_then(|own| own.header.parse().ok());
        Client {
            inner,
            fresh: None,
            partner,
            key_header: configured.unwrap_or(DEFAULT),
        }
    }

    /// With a second client, set up as the first but for `pool_max_idle_per_host(0)`.
    ///
    /// After a restart of the partner every idle connection is dead, and reqwest's pool hands each
    /// retry the next of them. An attempt that follows a connection that broke, or a 408 or 421,
    /// goes out by the second client, on a connection of its own. Not over HTTP/2, where one
    /// connection carries all requests and is replaced when it is lost. [`Client::new`] and
    /// [`Client::with`] do this themselves.
    ///
    /// ```
    /// use ressac::reqwest::Client;
    /// use ressac::{Partner, Policy};
    ///
    /// let partner = Partner::new(Policy::sync());
    /// let builder = || Client::builder_for(&partner).user_agent("shop/1.0");
    /// let (pooled, unpooled) = (builder().build()?, builder().pool_max_idle_per_host(0).build()?);
    /// let client = Client::from_reqwest(pooled, partner).with_unpooled(unpooled);
    /// # drop(client);
    /// # Ok::<(), reqwest::Error>(())
    /// ```
    #[must_use]
    pub fn with_unpooled(mut self, unpooled: ::reqwest::Client) -> Self {
        self.fresh = Some(Arc::new(Fresh::new(unpooled)));
        self
    }

    /// The partner it calls.
    #[must_use]
    pub fn partner(&self) -> &Partner {
        &self.partner
    }

    /// reqwest's client, without a policy.
    #[must_use]
    pub fn inner(&self) -> &::reqwest::Client {
        &self.inner
    }

    /// A request of any method.
    pub fn request<U: IntoUrl>(&self, method: Method, url: U) -> RequestBuilder {
        RequestBuilder::new(self.clone(), self.inner.request(method, url))
    }

    /// A `GET`.
    pub fn get<U: IntoUrl>(&self, url: U) -> RequestBuilder {
        self.request(Method::GET, url)
    }

    /// A `HEAD`.
    pub fn head<U: IntoUrl>(&self, url: U) -> RequestBuilder {
        self.request(Method::HEAD, url)
    }

    /// A `POST`.
    pub fn post<U: IntoUrl>(&self, url: U) -> RequestBuilder {
        self.request(Method::POST, url)
    }

    /// A `PUT`.
    pub fn put<U: IntoUrl>(&self, url: U) -> RequestBuilder {
        self.request(Method::PUT, url)
    }

    /// A `PATCH`.
    pub fn patch<U: IntoUrl>(&self, url: U) -> RequestBuilder {
        self.request(Method::PATCH, url)
    }

    /// A `DELETE`.
    pub fn delete<U: IntoUrl>(&self, url: U) -> RequestBuilder {
        self.request(Method::DELETE, url)
    }

    /// Sends a request that was built elsewhere, as one operation.
    ///
    /// # Errors
    ///
    /// As [`RequestBuilder::send`].
    pub fn execute(
        &self,
        request: Request,
    ) -> impl Future<Output = Result<::reqwest::Response, Error>> + use<> {
        send::send(self.clone(), request, Options::default(), None, None)
    }
}
