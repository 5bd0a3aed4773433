//! A client that feels like reqwest's own, and sends a payment once.
//!
//! ```
//! use ressac::reqwest::Client;
//! use ressac::{Idempotency, Partner, Policy};
//!
//! # async fn pay() -> Result<(), Box<dyn std::error::Error>> {
//! let acme = Partner::builder(Policy::sync())
//!     .name("acme")
//!     .idempotency(Idempotency::header("Idempotency-Key"))
//!     .build()?;
//! let client = Client::new(acme)?;
//! let receipt = client
//!     .post("https://api.acme.example/v1/payments")
//!     .json(&[("amount", 1999)])
//!     .send()
//!     .await?
//!     .text()
//!     .await?;
//! # drop(receipt);
//! # Ok(())
//! # }
//! ```
//!
//! # What is different from reqwest
//!
//! * [`RequestBuilder::send`] is one *operation*: attempts, waits and all. It returns a reply of 2xx;
//!   any other end is an [`Error`] that says why, with the reply inside
//!   ([`Error::reply`](crate::RetryError::reply)).
//! * `timeout` limits one attempt, and so does the policy's `attempt_timeout`; the smaller counts,
//!   and what the policy's window leaves. As in reqwest it includes the reading of the body.
//! * Redirects are not followed, and reqwest's own retries are off, unless you hand in a client
//!   of your own ([`Client::from_reqwest`]).
//! * A `POST` or `PATCH` is repeated only where that is provably safe, or under a key that the
//!   partner honours.
//! * The body of a successful reply is streamed, after the operation has ended. If it breaks off
//!   there, reading it fails and nothing is sent again; [`RequestBuilder::send_whole`] makes it part
//!   of the attempt.
//! * Every attempt is the same request. What must be new in each, a signature with a timestamp for
//!   example, is set by [`RequestBuilder::before_attempt`].
//! * An attempt that follows a broken HTTP/1 connection goes out on a new one, whatever the pool
//!   holds ([`Client::with_unpooled`]).

mod body;
mod client;
mod drain;
mod fresh;
mod hook;
#[cfg(feature = "reqwest-middleware")]
mod middleware;
mod request;
mod send;

pub use self::client::Client;
#[cfg(feature = "reqwest-middleware")]
pub use self::middleware::RetryMiddleware;
pub use self::request::RequestBuilder;

/// Why a request was not answered with success.
pub type Error = crate::RetryError<::reqwest::Error, ::reqwest::Response>;
