//! A tower layer that repeats requests by a partner's policy: for hyper's client, for axum as a
//! client, for tonic's channels.
//!
//! [`RetryLayer`] makes one request one *operation*. Everything is decided by the [`Partner`] that
//! is handed in, the same that closures and the reqwest client use; a service has no policy of its
//! own.
//!
//! ```
//! use std::sync::atomic::{AtomicU32, Ordering};
//!
//! use bytes::Bytes;
//! use http::{Request, Response};
//! use http_body_util::Full;
//! use ressac::tower::{ReplayBody, RetryLayer};
//! use ressac::{End, Partner, Policy};
//! use tower::{Layer, ServiceExt, service_fn};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! // In a program this is hyper-util's client, with `ReplayBody` for its body, or a tonic channel.
//! static CALLS: AtomicU32 = AtomicU32::new(0);
//! let transport = service_fn(|_request: Request<ReplayBody>| async {
//!     let status = if CALLS.fetch_add(1, Ordering::Relaxed) == 0 { 503 } else { 200 };
//!     Response::builder().status(status).body(Full::<Bytes>::default())
//! });
//!
//! let acme = Partner::new(Policy::sync());
//! let client = RetryLayer::new(acme).layer(transport);
//! let request = Request::get("http://api.acme.example/rates").body(Full::<Bytes>::default())?;
//! let reply = client.oneshot(request).await?;
//! assert_eq!(reply.status(), 200);
//! assert_eq!(reply.extensions().get::<End>().map(|end| end.attempts), Some(2));
//! # Ok(())
//! # }
//! ```
//!
//! # What is repeated
//!
//! * `GET`, `PUT` and their like (RFC 9110 §9.2.2) after any failure that another attempt can mend.
//! * `POST` and `PATCH` only where it is proven that the request was not processed (never
//!   connected; never started by hyper; `REFUSED_STREAM`, or a stream above the last of a `GOAWAY`, RFC 9113 §8.7; 429), or under
//!   an idempotency key that the [partner honours](crate::Idempotency), which the layer then sends.
//! * What you say may be: by [`RetryLayer::idempotent`], or for one request by [`Idempotent`] in its
//!   extensions. gRPC calls are all `POST`.
//!
//! # Bodies
//!
//! The request's body is read up to [`RetryLayer::body_limit`] before the first attempt, trailers
//! included, and sent again from memory. A longer one is streamed: sent once, and again only if
//! nothing of it was taken (the connection failed). Where a retry is needed after that, the
//! operation ends as `body_not_replayable`.
//!
//! The reply's body is not touched: the operation ends with the reply's head, and so does the attempt's
//! time limit. What breaks later is an error of the body, and nothing is sent again.
//!
//! # How it ends
//!
//! A reply is a reply, also a 503 after the last attempt: it is returned as it came. What the
//! operation came to stands in its extensions as [`End`](crate::End), with reason, blame and attempts. Without a
//! reply the error is a [`RetryError`](crate::RetryError) of [`Failure`].
//!
//! # Where it stands
//!
//! Outside of what makes a connection, inside of what should see one call: metrics of operations,
//! a limit of the whole. The client's own retries must be off (hyper-util's
//! `retry_canceled_requests` only repeats what was never sent, and may stay on).
//!
//! # gRPC
//!
//! See [`grpc`] for what each status means. tonic's body is made from ours:
//!
//! ```no_run
//! use http::Request;
//! use ressac::tower::{ReplayBody, RetryLayer};
//! use tonic::transport::Endpoint;
//! use tower::ServiceBuilder;
//!
//! # fn channel(acme: ressac::Partner) {
//! let channel = ServiceBuilder::new()
//!     .layer(RetryLayer::new(acme))
//!     .map_request(|request: Request<ReplayBody>| request.map(tonic::body::Body::new))
//!     .service(Endpoint::from_static("http://api.acme.example").connect_lazy());
//! // A generated client takes it: `RatesClient::new(channel)`.
//! # tonic::client::Grpc::new(channel).max_decoding_message_size(1);
//! # }
//! ```
//!
//! A call is repeated after a lost connection or `UNAVAILABLE` only where you say that it may be:
//! by [`RetryLayer::idempotent`] over the path, or by [`Idempotent`] in the extensions of a
//! `tonic::Request`.
//!
//! [`Partner`]: crate::Partner

mod body;
mod capture;
mod drain;
mod failure;
pub mod grpc;
mod judge;
mod layer;
mod service;

pub use body::ReplayBody;
pub use failure::Failure;
pub use layer::{Idempotent, RetryLayer};
pub use service::{Retry, RetryFuture};
