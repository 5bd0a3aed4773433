//! The HTTP client that knows what was sent: not sent, not processed, maybe processed.
//!
//! Most clients answer a failed request with an error that reads "connection reset". Whether the
//! order was placed, nobody can tell, and a retry is a guess. [`Client`] makes one attempt and
//! returns a [`Reply`], or a [`Failure`] with what is *proven* about the request ([`Sent`]):
//!
//! | what happened | proof |
//! |---|---|
//! | name not resolved, refused, no connection in time, TLS handshake cut | [`Sent::NotSent`] |
//! | the connection died before a byte of the request was written | [`Sent::NotSent`] |
//! | the partner refused our certificate | [`Sent::NotProcessed`] |
//! | HTTP/2 REFUSED_STREAM, or a GOAWAY whose last stream lies below ours | [`Sent::NotProcessed`] |
//! | end, reset or silence after bytes were written; any other RST_STREAM; a GOAWAY that covers us | [`Sent::MaybeProcessed`] |
//! | the reply's head came, its body is not whole | [`Sent::ProcessedInPart`] |
//!
//! What is not proven is *maybe*. In particular a connection that ends without a reply proves
//! nothing: measured against servers that read the whole request first, and against servers that
//! read none of it, the error is the same.
//!
//! Everything a partner controls has a limit: [`ClientConfig`].

mod address;
mod answer;
mod attempt;
mod cidr;
mod client;
mod config;
mod connect;
mod dial;
mod expect;
mod failure;
mod http1;
mod http2;
mod link;
mod outcome;
mod pool;
mod reply;
mod resolve;
mod shared;
mod stream;
mod target;
mod tls;
mod verdict;
mod wire;

pub use address::AddressPolicy;
pub use cidr::{Cidr, CidrError};
pub use client::Client;
pub use config::{
    ClientCertificate, ClientConfig, ConfigError, ExpectContinue, TlsConfig, Version,
};
pub use connect::{Dialled, Dialler};
pub use dial::Watch;
pub use failure::{Failure, FailureKind, ReplyHead, Sent};
pub use link::{Begun, Counts, Http2};
pub use reply::Reply;
pub use target::{InvalidRequest, parse_header, parse_url};
