//! A request before it is sent.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use ::reqwest::{Body, Request, Response};
use http::{HeaderMap, HeaderName, HeaderValue};
use pin_project_lite::pin_project;
use serde::Serialize;

use super::client::Client;
use super::hook::Hook;
use super::{Error, send};
use crate::attempt::Attempt;
use crate::key::IdempotencyKey;
use crate::operation::Options;

/// A request, and what is said of its operation.
#[must_use = "a request does nothing until it is sent"]
#[derive(Debug)]
pub struct RequestBuilder {
    client: Client,
    inner: ::reqwest::RequestBuilder,
    options: Options,
    hook: Option<Hook>,
}

impl RequestBuilder {
    pub(super) fn new(client: Client, inner: ::reqwest::RequestBuilder) -> Self {
        RequestBuilder {
            client,
            inner,
            options: Options::default(),
            hook: None,
        }
    }

    fn map(
        mut self,
        change: impl FnOnce(::reqwest::RequestBuilder) -> ::reqwest::RequestBuilder,
    ) -> Self {
        self.inner = change(self.inner);
        self
    }

    /// With a header field.
    pub fn header<K, V>(self, key: K, value: V) -> Self
    where
        HeaderName: TryFrom<K>,
        <HeaderName as TryFrom<K>>::Error: Into<http::Error>,
        HeaderValue: TryFrom<V>,
        <HeaderValue as TryFrom<V>>::Error: Into<http::Error>,
    {
        self.map(|inner| inner.header(key, value))
    }

    /// With these header fields; they replace those of the same names.
    pub fn headers(self, headers: HeaderMap) -> Self {
        self.map(|inner| inner.headers(headers))
    }

    /// With a user name and a password.
    pub fn basic_auth<U: fmt::Display, P: fmt::Display>(
        self,
        user: U,
        password: Option<P>,
    ) -> Self {
        self.map(|inner| inner.basic_auth(user, password))
    }

    /// With a bearer token.
    pub fn bearer_auth<T: fmt::Display>(self, token: T) -> Self {
        self.map(|inner| inner.bearer_auth(token))
    }

    /// With a query string on top of the URL's.
    pub fn query<T: Serialize + ?Sized>(self, query: &T) -> Self {
        self.map(|inner| inner.query(query))
    }

    /// With a form as its body.
    pub fn form<T: Serialize + ?Sized>(self, form: &T) -> Self {
        self.map(|inner| inner.form(form))
    }

    /// With JSON as its body.
    pub fn json<T: Serialize + ?Sized>(self, json: &T) -> Self {
        self.map(|inner| inner.json(json))
    }

    /// With this body. Bytes and text are sent again with each attempt; a stream can be sent once:
    /// an attempt that fails before it has begun to leave may be followed by another, any later
    /// failure ends as `body_not_replayable`.
    pub fn body<T: Into<Body>>(self, body: T) -> Self {
        self.map(|inner| inner.body(body))
    }

    /// The longest that one attempt may take, its reply's body included. The policy's
    /// `attempt_timeout` counts where it is shorter.
    pub fn timeout(self, timeout: Duration) -> Self {
        self.map(|inner| inner.timeout(timeout))
    }

    /// Nothing is sent later than this after the start, whatever the policy's window says.
    pub const fn within(mut self, time: Duration) -> Self {
        self.options.within = Some(time);
        self
    }

    /// Repeating it does no harm though its method does not say so: a `POST` that only searches.
    pub const fn idempotent(mut self) -> Self {
        self.options.idempotent = true;
        self
    }

    /// With a key of the caller's, which the partner is said to honour: one that was stored before
    /// the call, or that names the business transaction. It goes in the header that the partner is
    /// configured with, else in `Idempotency-Key`.
    pub fn idempotency_key(mut self, key: IdempotencyKey) -> Self {
        self.options.key = Some(key);
        self
    }

    /// How long the partner remembers the key, where that is not its configuration's word.
    pub const fn key_ttl(mut self, ttl: Duration) -> Self {
        self.options.key_ttl = Some(ttl);
        self
    }

    /// Calls this before each attempt, with the request as it is about to leave: for what must be
    /// new in each of them, such as a signature with a timestamp or the attempt's number. What it
    /// changes holds for that attempt alone.
    ///
    /// It is for header fields. Method, URL, body and key decide whether the request may be sent
    /// again, and that was judged before: they must stay what they are. A stream's bytes are not
    /// there to be signed; those of any other body are. A later call replaces an earlier one.
    ///
    /// ```
    /// # async fn send(client: ressac::reqwest::Client) -> Result<(), ressac::reqwest::Error> {
    /// client
    ///     .put("https://api.acme.example/v1/orders/7")
    ///     .body("paid")
    ///     .before_attempt(|attempt, request| {
    ///         let number = attempt.number().into();
    ///         request.headers_mut().insert("ressac-attempt", number);
    ///     })
    ///     .send()
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn before_attempt(
        mut self,
        change: impl FnMut(&Attempt, &mut Request) + Send + Sync + 'static,
    ) -> Self {
        self.hook = Some(Hook::new(change));
        self
    }

    /// Sends it, again where that is safe and can help, until it is answered with success or the
    /// policy ends it. Dropping the future cancels it.
    ///
    /// # Errors
    ///
    /// [`Error`] says why it ended, what the partner may have done, and what to do; the reply, if
    /// there was one, stands inside.
    pub fn send(self) -> impl Future<Output = Result<Response, Error>> {
        self.send_up_to(None)
    }

    /// The same with the reply's body, up to `limit` bytes, as part of the attempt: a body that
    /// breaks off is a failure, and is tried again where that is safe. Of a longer body the rest is
    /// streamed.
    ///
    /// # Errors
    ///
    /// As [`RequestBuilder::send`].
    pub fn send_whole(self, limit: usize) -> impl Future<Output = Result<Response, Error>> {
        self.send_up_to(Some(limit))
    }

    fn send_up_to(self, limit: Option<usize>) -> impl Future<Output = Result<Response, Error>> {
        match self.inner.build() {
            Ok(request) => Sending::Begun {
                sending: send::send(self.client, request, self.options, self.hook, limit),
            },
            Err(error) => Sending::Refused {
                error: Some(send::not_begun(&self.client, self.options.key, error)),
            },
        }
    }
}

pin_project! {
    #[project = SendingParts]
    enum Sending<S> {
        Begun {
            #[pin]
            sending: S,
        },
        /// It could not be built.
        Refused { error: Option<Error> },
    }
}

impl<S: Future<Output = Result<Response, Error>>> Future for Sending<S> {
    type Output = Result<Response, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            SendingParts::Begun { sending } => sending.poll(cx),
            SendingParts::Refused { error } => match error.take() {
                Some(error) => Poll::Ready(Err(error)),
                None => Poll::Pending,
            },
        }
    }
}
