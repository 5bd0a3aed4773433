//! Sockets and HTTP/1.1 by hand: request heads, bodies, exact ends.

mod accept;
mod body;
mod closing;
mod conn;
mod end;
mod head;
mod hello;
mod pace;
mod peer;
mod slot;
mod socket;
mod stream;
mod tape;
mod tunnel;

pub(crate) use accept::run as run_listener;
pub(crate) use body::{BodyError, BodyInfo, Sink};
pub(crate) use closing::Closing;
pub(crate) use conn::{Conn, IO_TIMEOUT, NoHead};
pub(crate) use end::{cut_fin, finish_fin, finish_rst};
pub(crate) use head::{BodyKind, MAX_BODY, MAX_HEAD, RequestHead, Version};
pub(crate) use hello::MAX_EARLY;
pub(crate) use pace::Pace;
pub(crate) use peer::{Peer, Woken, at};
pub(crate) use slot::Slot;
pub(crate) use socket::Port;
pub(crate) use stream::Stream;
pub use tape::Tape;
