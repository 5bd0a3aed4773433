//! Listening sockets, and a port that is kept while nobody listens on it.

use std::io;
use std::net::SocketAddr;

use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::net::TcpListener;

/// Connections the kernel may hold for us before `accept`.
const BACKLOG: i32 = 4096;
/// The receive buffer where a step may be `early`, so that a large body really blocks.
const SMALL_BUFFER: usize = 64 * 1024;

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
        bind_shared(&holder, addr)?;
        // Left on, it would let any ordinary server take a port that is down.
        holder.set_reuse_address(false)?;
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
        bind_shared(&socket, self.addr)?;
        listen(socket)
    }
}

fn new_socket(addr: SocketAddr) -> io::Result<Socket> {
    Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))
}

/// Binds beside others that share the port. SO_REUSEADDR lets a mock start again while connections
/// of the last one are in TIME_WAIT.
#[cfg(target_os = "linux")]
fn bind_shared(socket: &Socket, addr: SocketAddr) -> io::Result<()> {
    socket.set_reuse_port(true)?;
    socket.set_reuse_address(true)?;
    socket.bind(&addr.into())
}

#[cfg(not(target_os = "linux"))]
fn bind_shared(socket: &Socket, addr: SocketAddr) -> io::Result<()> {
    socket.bind(&addr.into())
}

fn listen(socket: Socket) -> io::Result<TcpListener> {
    socket.set_nonblocking(true)?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// Gives a connection, or those that a listener accepts from now on, a small receive buffer.
pub(super) fn small_buffer(socket: SockRef<'_>) {
    // Only the exactness of `early` suffers where the system refuses.
    if let Err(e) = socket.set_recv_buffer_size(SMALL_BUFFER) {
        tracing::warn!(error = %e, "cannot set a receive buffer of 64 KiB");
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::io::Read;

    #[tokio::test]
    async fn a_port_can_be_taken_again_while_old_connections_linger_and_by_nobody_else() {
        let (port, listener) = Port::open(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let addr = port.addr();
        let mut client = std::net::TcpStream::connect(addr).unwrap();
        // The side that closes first keeps the connection in TIME_WAIT.
        drop(listener.accept().await.unwrap());
        assert_eq!(client.read(&mut [0]).unwrap(), 0);
        drop((client, listener, port));
        let (port, listener) = Port::open(addr).expect("TIME_WAIT is in the way");
        assert!(
            std::net::TcpListener::bind(addr).is_err(),
            "while it listens"
        );
        assert!(
            Port::open(addr).is_err(),
            "another mock would split the connections"
        );
        drop(listener);
        assert!(
            std::net::TcpListener::bind(addr).is_err(),
            "while it is down"
        );
        assert!(port.listen().is_ok());
    }
}
