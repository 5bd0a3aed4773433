//! Who is waited for while a reply is withheld: a connection, or one stream of it.

use std::future::Future;

use tokio::sync::watch;
use tokio::time::Instant;

/// Why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Woken {
    /// Its time had come.
    Due,
    /// The mock was reset.
    Cancelled,
    /// The peer closed its side. Only told once nothing is left to wait for.
    PeerClosed,
    /// The peer reset the connection or the stream.
    PeerReset,
}

/// Resolves at a moment; without one, never.
pub(crate) async fn at(moment: Option<Instant>) {
    match moment {
        Some(t) => tokio::time::sleep_until(t).await,
        None => std::future::pending().await,
    }
}

/// Waits that notice the peer.
pub(crate) trait Peer {
    /// Waits until a moment (`None`: for ever), a reset of the mock, or the end of the peer.
    ///
    /// A peer that only closes its sending side may still read, so with a moment to come the wait
    /// goes on; `closed` is called when that is seen.
    fn wait(
        &mut self,
        until: Option<Instant>,
        reset: &mut watch::Receiver<u64>,
        generation: u64,
        closed: impl FnMut() + Send,
    ) -> impl Future<Output = Woken> + Send;
}
