//! The beginning of TLS: carried out, or broken at the ClientHello.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::conn::Conn;
use super::end::{cut_fin, finish_fin, finish_rst};
use super::slot::Slot;
use super::stream::Stream;
use crate::journal::TlsInfo;
use crate::scenario::AcceptAction;
use crate::state::Shared;

/// The longest handshake.
const PATIENCE: Duration = Duration::from_secs(60);
/// The most early data that is taken.
pub(crate) const MAX_EARLY: u32 = 16 * 1024;

/// What a handshake came to.
pub(super) enum Secured {
    Yes(Conn),
    /// How the connection ended.
    No(&'static str),
}

/// Reads the ClientHello and then fails as asked. No TLS library has a part in it.
pub(super) async fn fail(shared: &Shared, mut conn: Conn, action: AcceptAction) -> &'static str {
    let read = tokio::time::timeout(PATIENCE, client_hello(&mut conn.stream)).await;
    if !matches!(read, Ok(Ok(()))) {
        finish_fin(conn).await;
        return "no-hello";
    }
    match action {
        AcceptAction::RstHello => {
            finish_rst(conn).await;
            "rst@hello"
        }
        AcceptAction::StallHello => {
            shared.silent(&mut conn).await;
            finish_fin(conn).await;
            "stall@hello"
        }
        AcceptAction::Alert(code) => {
            // TLSPlaintext: alert (21), 3.3, two bytes: fatal (2) and which (RFC 8446, 5.1, 6).
            let record = [21, 3, 3, 0, 2, 2, code];
            let _ = conn.stream.write_all(&record).await;
            cut_fin(conn).await;
            "alert"
        }
        _ => {
            cut_fin(conn).await;
            "fin@hello"
        }
    }
}

/// Reads the first record, whatever it is: a ClientHello is in it, or nothing is.
async fn client_hello(stream: &mut Stream) -> std::io::Result<()> {
    let mut head = [0; 5];
    stream.read_exact(&mut head).await?;
    let len = usize::from(u16::from_be_bytes([head[3], head[4]]));
    let mut rest = vec![0; len];
    stream.read_exact(&mut rest).await?;
    Ok(())
}

/// Carries the handshake out.
pub(super) async fn secure(shared: &Arc<Shared>, slot: &Slot, mut conn: Conn) -> Secured {
    let Stream::Plain(tcp) = std::mem::replace(&mut conn.stream, Stream::Gone) else {
        return Secured::No("tls");
    };
    let acceptor = match shared.tls().and_then(|tls| tls.acceptor(&slot.spec)) {
        Ok(acceptor) => acceptor,
        Err(e) => {
            tracing::error!(listener = %slot.name, error = %e, "no certificate");
            return Secured::No("tls");
        }
    };
    let number = conn.number;
    match tokio::time::timeout(PATIENCE, acceptor.accept(tcp)).await {
        Ok(Ok(stream)) => {
            conn.stream = Stream::Tls(Box::new(stream));
            begin(shared, &mut conn);
            Secured::Yes(conn)
        }
        Ok(Err(e)) => {
            let mut core = shared.core();
            core.journal
                .disconnected(number, |c| c.tls_error = Some(e.to_string()));
            Secured::No("tls")
        }
        Err(_) => Secured::No("tls-timeout"),
    }
}

/// Takes the early data, and notes what was agreed on.
fn begin(shared: &Shared, conn: &mut Conn) {
    use std::io::Read;

    let Stream::Tls(stream) = &mut conn.stream else {
        return;
    };
    let (_, session) = stream.get_mut();
    let mut early = Vec::new();
    if let Some(data) = session.early_data() {
        // It is in memory, and rustls keeps it below the limit.
        let _ = data.take(u64::from(MAX_EARLY)).read_to_end(&mut early);
    }
    let info = Arc::new(TlsInfo {
        version: match session.protocol_version() {
            Some(rustls::ProtocolVersion::TLSv1_2) => "TLS 1.2",
            Some(rustls::ProtocolVersion::TLSv1_3) => "TLS 1.3",
            _ => "unknown",
        },
        sni: session.server_name().map(str::to_owned),
        alpn: session
            .alpn_protocol()
            .map(|p| String::from_utf8_lossy(p).into_owned()),
        resumed: session.handshake_kind() == Some(rustls::HandshakeKind::Resumed),
    });
    conn.early = early.len();
    conn.buf.extend_from_slice(&early);
    conn.tls = Some(Arc::clone(&info));
    let mut core = shared.core();
    core.journal
        .disconnected(conn.number, |c| c.tls = Some(info));
}
