//! The two ends of a connection, told apart on purpose (MO-2).

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

use super::conn::Conn;

/// The longest wait for a peer: to close after our FIN, to acknowledge before our RST.
const LINGER: Duration = Duration::from_secs(1);

/// FIN: ends our side, then reads and discards until the peer closes, at most a second. Closing
/// with unread bytes would send RST instead.
pub(crate) async fn finish_fin(mut conn: Conn) {
    if conn.stream.shutdown().await.is_err() {
        return;
    }
    let drain = async {
        let mut sink = [0; 4096];
        while matches!(conn.stream.read(&mut sink).await, Ok(n) if n > 0) {}
    };
    // Either end of the wait closes the socket.
    let _ = timeout(LINGER, drain).await;
}

/// RST: waits until the peer's kernel has every byte, at most a second, then closes with linger 0.
/// Without the wait a slow reader loses most of what was sent. `false` if the wait ran out.
pub(crate) async fn finish_rst(conn: Conn) -> bool {
    let deadline = Instant::now() + LINGER;
    let mut pause = Duration::from_micros(50);
    let acknowledged = loop {
        match unacknowledged(&conn.stream) {
            Some(0) => break true,
            _ if Instant::now() >= deadline => break false,
            _ => sleep(pause).await,
        }
        pause = (pause * 2).min(Duration::from_millis(5));
    };
    // If this fails the peer sees FIN: as uncertain as lost bytes.
    let linger = conn.stream.set_zero_linger().is_ok();
    drop(conn);
    acknowledged && linger
}

/// Bytes that were sent and not acknowledged; `None` where the system cannot say.
#[cfg(all(
    any(target_os = "linux", target_os = "android"),
    not(any(
        target_arch = "mips",
        target_arch = "mips64",
        target_arch = "powerpc",
        target_arch = "powerpc64",
        target_arch = "sparc64"
    ))
))]
#[allow(unsafe_code)]
fn unacknowledged(stream: &TcpStream) -> Option<i32> {
    /// `SIOCOUTQ` of `linux/sockios.h`, the same number as `TIOCOUTQ` on these architectures.
    const SIOCOUTQ: rustix::ioctl::Opcode = 0x5411;
    // SAFETY: for a TCP socket the kernel answers SIOCOUTQ by writing exactly one C int through the
    // pointer (tcp(7), "Ioctls"; `tcp_ioctl`), and reads nothing. `Getter` passes a pointer to an
    // `i32` that lives through the call and reads it only if the call succeeded. `stream` keeps
    // the descriptor open and is a TCP socket by its type.
    unsafe { rustix::ioctl::ioctl(stream, rustix::ioctl::Getter::<SIOCOUTQ, i32>::new()) }.ok()
}

/// Bytes that were sent and not acknowledged; `None` where the system cannot say.
#[cfg(not(all(
    any(target_os = "linux", target_os = "android"),
    not(any(
        target_arch = "mips",
        target_arch = "mips64",
        target_arch = "powerpc",
        target_arch = "powerpc64",
        target_arch = "sparc64"
    ))
)))]
fn unacknowledged(_: &TcpStream) -> Option<i32> {
    None
}
