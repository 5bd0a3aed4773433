//! Raw bytes to another address, later, slower or cut.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout};

use super::conn::Conn;
use super::end::{cut_fin, finish_rst};
use super::stream::Stream;
use crate::clock::nanos;
use crate::scenario::{TcpFaults, TcpSpec};
use crate::state::Shared;
use crate::step::Cut;

/// Bytes read at once.
const PIECE: usize = 16 * 1024;
/// The most bytes on their way in one direction.
const IN_FLIGHT: usize = 1024 * 1024;
/// The longest wait for the other side.
const CONNECT: Duration = Duration::from_secs(10);

/// Forwards until both sides have closed; how it ended, for journal and metrics.
pub(super) async fn run(shared: &Shared, spec: &TcpSpec, mut conn: Conn) -> &'static str {
    let mut far = match timeout(CONNECT, TcpStream::connect(&spec.to)).await {
        Ok(Ok(far)) => far,
        _ => {
            finish_rst(conn).await;
            return "upstream";
        }
    };
    // A tunnel that waits for more bytes would add a latency nobody asked for.
    let _ = far.set_nodelay(true);
    let until = shared.clock.instant(nanos(spec.ttl));
    let Stream::Plain(near) = &mut conn.stream else {
        return "upstream";
    };
    let end = {
        let (near_read, near_write) = near.split();
        let (far_read, far_write) = far.split();
        let up = flow(near_read, far_write, spec.request, until);
        let down = flow(far_read, near_write, spec.reply, until);
        tokio::pin!(up, down);
        let (mut up_done, mut down_done) = (false, false);
        loop {
            let got = tokio::select! {
                got = &mut up, if !up_done => { up_done = true; got }
                got = &mut down, if !down_done => { down_done = true; got }
            };
            match got {
                Ok(None) if up_done && down_done => break Ok(None),
                Ok(None) => {}
                other => break other,
            }
        }
    };
    match end {
        Ok(None) => "peer",
        Ok(Some(Cut::Fin)) => {
            cut_fin(conn).await;
            "fin"
        }
        Ok(Some(Cut::Rst)) => {
            finish_rst(conn).await;
            "rst"
        }
        Err(_) => {
            // What one side suffered, the other one sees.
            finish_rst(conn).await;
            "broken"
        }
    }
}

/// One direction: `None` when the sender has closed and all has arrived, or the cut that was
/// reached.
async fn flow(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    faults: TcpFaults,
    until: Instant,
) -> io::Result<Option<Cut>> {
    let mut queue: VecDeque<(Instant, Bytes)> = VecDeque::new();
    let (mut queued, mut sent, mut eof) = (0, 0, false);
    let mut free = Instant::now();
    let mut buf = vec![0; PIECE];
    loop {
        let now = Instant::now();
        let f = if now < until {
            faults
        } else {
            TcpFaults::default()
        };
        if let Some((cut, n)) = f.cut
            && sent >= n
        {
            return Ok(Some(cut));
        }
        if eof && queue.is_empty() {
            to.shutdown().await?;
            return Ok(None);
        }
        let due = queue.front().map(|(at, _)| (*at).max(free));
        tokio::select! {
            got = from.read(&mut buf), if !eof && queued < IN_FLIGHT => match got? {
                0 => eof = true,
                n => {
                    queued += n;
                    let at = Instant::now() + f.latency;
                    queue.push_back((at, Bytes::copy_from_slice(&buf[..n])));
                }
            },
            () = sleep_until(due.unwrap_or(now)), if due.is_some() => {
                let Some((at, mut bytes)) = queue.pop_front() else { continue };
                let left = f.cut.map_or(u64::MAX, |(_, n)| n - sent);
                // Twenty pieces a second, so that a slow line is slow, not jerky.
                let most = f.rate.map_or(u64::MAX, |r| (r / 20).max(1)).min(left);
                let now_size = usize::try_from(most).unwrap_or(usize::MAX).min(bytes.len());
                let piece = bytes.split_to(now_size);
                if !bytes.is_empty() {
                    queue.push_front((at, bytes));
                }
                to.write_all(&piece).await?;
                queued -= piece.len();
                sent += piece.len() as u64;
                if let Some(rate) = f.rate {
                    let took = Duration::from_secs_f64(piece.len() as f64 / rate as f64);
                    free = free.max(Instant::now()) + took;
                }
            }
        }
    }
}
