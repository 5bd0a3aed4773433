//! Listening sockets, and a port that is kept while nobody listens on it.

use std::io;
use std::net::SocketAddr;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpListener;

/// Connections the kernel may hold for us before `accept`.
const BACKLOG: i32 = 4096;

/// A port held by a socket that never listens, so that refusing connections does not give the
/// port away: SYNs are answered with RST, and no ordinary socket can bind it (`down`).
#[derive(Debug)]
pub(crate) struct Port {
    addr: SocketAddr,
    /// Kept open, never used.
    _holder: Option<Socket>,
}

impl Port {
    /// Takes a port (0: any) and listens on it.
    pub(crate) fn open(addr: SocketAddr) -> io::Result<(Self, TcpListener)> {
        if !cfg!(target_os = "linux") {
            let socket = new_socket(addr)?;
            socket.bind(&addr.into())?;
            let listener = listen(socket)?;
            return Ok((
                Self {
                    addr: listener.local_addr()?,
                    _holder: None,
                },
                listener,
            ));
        }
        if addr.port() != 0 {
            // SO_REUSEPORT would let two mocks share one port and split the connections.
            let probe = new_socket(addr)?;
            probe.set_reuse_address(true)?;
            probe.bind(&addr.into())?;
        }
        let holder = new_socket(addr)?;
        share_port(&holder)?;
        holder.bind(&addr.into())?;
        let addr = holder
            .local_addr()?
            .as_socket()
            .ok_or(io::ErrorKind::AddrNotAvailable)?;
        let port = Self {
            addr,
            _holder: Some(holder),
        };
        let listener = port.listen()?;
        Ok((port, listener))
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Listens again beside the holder.
    pub(crate) fn listen(&self) -> io::Result<TcpListener> {
        let socket = new_socket(self.addr)?;
        share_port(&socket)?;
        socket.bind(&self.addr.into())?;
        listen(socket)
    }
}

fn new_socket(addr: SocketAddr) -> io::Result<Socket> {
    Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))
}

#[cfg(target_os = "linux")]
fn share_port(socket: &Socket) -> io::Result<()> {
    socket.set_reuse_port(true)
}

#[cfg(not(target_os = "linux"))]
fn share_port(_: &Socket) -> io::Result<()> {
    Ok(())
}

fn listen(socket: Socket) -> io::Result<TcpListener> {
    socket.set_nonblocking(true)?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}
