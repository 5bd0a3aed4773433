//! How an attempt goes out. HTTP for now; AS2 will stand beside it.

mod http;

pub(crate) use self::http::{HttpTransport, Sent};
