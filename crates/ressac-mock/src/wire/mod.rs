//! HTTP/1.1 by hand: sockets, request heads, bodies, exact ends.

mod accept;
mod body;
mod conn;
mod end;
mod head;
mod socket;

pub(crate) use accept::run as run_listener;
pub(crate) use body::{BodyError, BodyInfo};
pub(crate) use conn::{Conn, NoHead, Woken};
pub(crate) use end::{finish_fin, finish_rst};
pub(crate) use head::RequestHead;
pub(crate) use socket::Port;
