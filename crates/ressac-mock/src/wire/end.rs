//! The two ends of a connection, told apart on purpose (MO-2).

use std::net::Shutdown;
use std::time::Duration;

use socket2::SockRef;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

use super::conn::Conn;
use super::pace::Pace;
use super::stream::Stream;
use crate::step::Cut;

/// The longest wait for a peer: to close after our FIN, to acknowledge before our RST.
const LINGER: Duration = Duration::from_secs(1);

/// FIN: ends our side, then reads and discards until the peer closes, at most a second. Closing
/// with unread bytes would send RST instead. Over TLS the end is announced (close_notify).
pub(crate) async fn finish_fin(mut conn: Conn) {
    // A peer that does not read must not keep this waiting.
    if !matches!(timeout(LINGER, conn.stream.shutdown()).await, Ok(Ok(()))) {
        return;
    }
    drain(&conn.stream, conn.pace.as_mut()).await;
}

/// FIN without a word of TLS before it: a cut.
pub(crate) async fn cut_fin(mut conn: Conn) {
    let Some(tcp) = conn.stream.tcp() else {
        return;
    };
    if SockRef::from(tcp).shutdown(Shutdown::Write).is_ok() {
        drain(&conn.stream, conn.pace.as_mut()).await;
    }
}

/// Reads and discards until the peer closes, at most a second.
async fn drain(stream: &Stream, mut pace: Option<&mut Pace>) {
    let Some(tcp) = stream.tcp() else {
        return;
    };
    let drain = async {
        let mut sink = [0; 4096];
        while tcp.readable().await.is_ok() {
            let room = match &mut pace {
                Some(pace) => pace.room().await.min(sink.len()),
                None => sink.len(),
            };
            match tcp.try_read(&mut sink[..room]) {
                Ok(0) => return,
                Ok(n) => {
                    if let Some(pace) = &mut pace {
                        pace.took(n);
                    }
                }
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    };
    // Either end of the wait closes the socket.
    let _ = timeout(LINGER, drain).await;
}

/// RST: waits until the peer's kernel has every byte, at most a second, then closes with linger 0.
/// Without the wait a slow reader loses most of what was sent. `false` if the wait ran out.
pub(crate) async fn finish_rst(conn: Conn) -> bool {
    let Some(tcp) = conn.stream.tcp() else {
        return false;
    };
    let deadline = Instant::now() + LINGER;
    let mut pause = Duration::from_micros(50);
    let acknowledged = loop {
        match unacknowledged(tcp) {
            Some(0) => break true,
            _ if Instant::now() >= deadline => break false,
            _ => sleep(pause).await,
        }
        pause = (pause * 2).min(Duration::from_millis(5));
    };
    // If this fails the peer sees FIN: as uncertain as lost bytes.
    let linger = tcp.set_zero_linger().is_ok();
    drop(conn);
    acknowledged && linger
}

/// The end of a connection that is taken away from whoever served it.
pub(super) fn end_now(stream: Stream, cut: Cut) {
    let Some(tcp) = stream.tcp() else {
        return;
    };
    match cut {
        Cut::Rst => {
            // If this fails the peer sees FIN.
            let _ = tcp.set_zero_linger();
        }
        Cut::Fin => {
            let half = SockRef::from(tcp).shutdown(Shutdown::Write).is_ok();
            if half && let Ok(runtime) = tokio::runtime::Handle::try_current() {
                runtime.spawn(async move { drain(&stream, None).await });
            }
        }
    }
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
