//! How many requests a second the mock answers on loopback, clients on the same machine included.
//!
//! `cargo run --release -p ressac-mock --example rate [CONNECTIONS]`

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use ressac_mock::Mock;

/// How long each kind of script is measured.
const TIME: Duration = Duration::from_secs(3);

fn main() -> std::io::Result<()> {
    let connections = std::env::args()
        .nth(1)
        .and_then(|a| a.parse().ok())
        .unwrap_or(16);
    let mut out = std::io::stdout().lock();
    for script in ["503 ra=2 x*", "200 body=1024 x*", "201 create x*"] {
        // The number of resources is limited, so each measurement has its own mock.
        let mock = Mock::start_blocking();
        let route = mock.script("POST", script);
        let request = format!(
            "POST {} HTTP/1.1\r\nHost: m\r\nIdempotency-Key: k\r\nContent-Length: 2\r\n\r\n{{}}",
            route.path()
        );
        let addr = mock.addr();
        let total: u64 = std::thread::scope(|s| {
            let one = |_| s.spawn(|| client(addr, request.as_bytes()));
            let threads: Vec<_> = (0..connections).map(one).collect();
            threads
                .into_iter()
                .map(|t| t.join().unwrap_or(Ok(0)).unwrap_or(0))
                .sum()
        });
        let rate = total as f64 / TIME.as_secs_f64();
        writeln!(
            out,
            "{script:20} {connections} connections: {rate:.0} requests/s"
        )?;
    }
    Ok(())
}

/// One request after another; returns how many were answered.
fn client(addr: SocketAddr, request: &[u8]) -> std::io::Result<u64> {
    let mut socket = TcpStream::connect(addr)?;
    socket.set_nodelay(true)?;
    let begun = Instant::now();
    let mut count = 0;
    let mut buf = [0; 4096];
    while begun.elapsed() < TIME {
        socket.write_all(request)?;
        // Every reply of these scripts fits into one read on loopback.
        if socket.read(&mut buf)? == 0 {
            break;
        }
        count += 1;
    }
    Ok(count)
}
