//! From a name to a connection: look up, check, dial, shake hands.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_rustls::TlsConnector;

use crate::address::AddressPolicy;
use crate::config::Version;
use crate::failure::{Failure, FailureKind};
use crate::resolve::Resolver;
use crate::target::{Host, Origin};
use crate::tls::{self, Connector};
use crate::wire::{Transport, Wire};

/// How long one address may keep the next one waiting (RFC 8305 §8 advises 250 ms).
const STAGGER: Duration = Duration::from_millis(250);

/// Addresses of one name that are tried.
const MOST_ADDRESSES: usize = 8;

/// A connection that stands, TLS included. It is read and written as HTTP sees it; a [`Watch`]
/// tells what the socket saw.
///
/// [`Watch`]: crate::Watch
#[derive(Debug)]
pub struct Dialled {
    pub(crate) transport: Transport,
    pub(crate) wire: Wire,
    pub(crate) remote: SocketAddr,
    /// Whether HTTP/2 is spoken on it.
    pub(crate) http2: bool,
}

/// Makes connections as a [`Client`](crate::Client) does, for a caller that speaks HTTP on them
/// itself: a proxy that passes a reply on as it comes, where the client gives it whole.
///
/// What the end of a request on such a connection proves is told by [`Failure::of_http1`] and
/// [`Http2::broken`](crate::Http2::broken), as by a [`Client`](crate::Client).
///
/// ```
/// use std::time::Duration;
/// use ressac_http::{ClientConfig, Dialler, FailureKind, Sent, parse_url};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // A port that nobody listens on.
/// let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
/// let partner = parse_url(&format!("http://127.0.0.1:{port}/"))?;
///
/// let dialler = Dialler::new(&ClientConfig::default())?;
/// let failure = dialler.dial(&partner, Duration::from_secs(10)).await.unwrap_err();
/// assert_eq!(failure.kind, FailureKind::Refused);
/// assert_eq!(failure.sent, Sent::NotSent);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Dialler {
    pub(crate) policy: AddressPolicy,
    pub(crate) tls: Connector,
    pub(crate) version: Version,
    pub(crate) resolver: Arc<Resolver>,
}

impl Dialler {
    /// Connects to `origin` before `deadline`. Whatever fails here, nothing of the request was
    /// sent.
    pub(crate) async fn connect(
        &self,
        origin: &Origin,
        deadline: Instant,
    ) -> Result<Dialled, Failure> {
        let addresses = match timeout_at(deadline, self.resolve(origin)).await {
            Ok(found) => found?,
            Err(_) => {
                let message = format!("the name of {origin} was not resolved in time");
                return Err(Failure::not_sent(FailureKind::Dns, message));
            }
        };
        check(origin, &self.policy, &addresses)?;
        let socket = match timeout_at(deadline, dial(&addresses)).await {
            Ok(Ok(socket)) => socket,
            Ok(Err(error)) => return Err(dial_failure(origin, &error)),
            Err(_) => return Err(too_slow(origin, "TCP connection")),
        };
        let unreachable = |error: io::Error| dial_failure(origin, &error);
        let remote = socket.peer_addr().map_err(unreachable)?;
        socket.set_nodelay(true).map_err(unreachable)?;
        let wire = Wire::new(socket);
        if !origin.tls {
            return Ok(Dialled {
                transport: Transport::Plain(wire.clone()),
                wire,
                remote,
                http2: self.version == Version::Http2,
            });
        }
        let shaken = timeout_at(deadline, handshake(origin, &self.tls, wire.clone())).await;
        let transport = match shaken {
            Ok(done) => done.map_err(|failure| failure.at(remote))?,
            Err(_) => return Err(too_slow(origin, "TLS handshake").at(remote)),
        };
        let http2 = transport.protocol() == Some(tls::HTTP2);
        if self.version == Version::Http2 && !http2 {
            let message = format!("{origin} did not choose HTTP/2 in the TLS handshake");
            return Err(Failure::not_sent(FailureKind::Tls, message).at(remote));
        }
        Ok(Dialled {
            transport,
            wire,
            remote,
            http2,
        })
    }

    async fn resolve(&self, origin: &Origin) -> Result<Vec<SocketAddr>, Failure> {
        let name = match &origin.host {
            Host::Ip(address) => return Ok(vec![SocketAddr::new(*address, origin.port)]),
            Host::Name(name) => name.as_str(),
        };
        let unknown = |message| Failure::not_sent(FailureKind::Dns, message);
        let found = self.resolver.lookup(name).await.map_err(|reason| {
            unknown(format!("the name of {origin} was not resolved: {reason}"))
        })?;
        if found.is_empty() {
            return Err(unknown(format!("the name of {origin} has no address")));
        }
        Ok(found
            .into_iter()
            .map(|address| SocketAddr::new(address, origin.port))
            .collect())
    }
}

/// One forbidden address refuses the name: whoever controls it could else have the check pass on
/// one and the connection made to another.
fn check(origin: &Origin, policy: &AddressPolicy, addresses: &[SocketAddr]) -> Result<(), Failure> {
    match addresses
        .iter()
        .find(|address| !policy.allows(address.ip()))
    {
        None => Ok(()),
        Some(refused) => Err(Failure::not_sent(
            FailureKind::AddressNotAllowed,
            format!(
                "{origin} leads to {}, which is not a public address and is on no allow list",
                refused.ip()
            ),
        )),
    }
}

/// The first address that answers. Each gets a head start before the next.
async fn dial(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut waiting = alternate(addresses).into_iter();
    let mut dials = JoinSet::new();
    let mut worst: Option<io::Error> = None;
    loop {
        let more = waiting
            .next()
            .map(|address| dials.spawn(TcpStream::connect(address)))
            .is_some();
        tokio::select! {
            ended = dials.join_next() => match ended {
                Some(Ok(Ok(socket))) => return Ok(socket),
                Some(Ok(Err(error))) => worst = Some(more_telling(worst, error)),
                Some(Err(_)) => {}
                None => return Err(worst.unwrap_or_else(|| io::ErrorKind::NotFound.into())),
            },
            () = sleep(STAGGER), if more => {}
        }
    }
}

/// IPv6 and IPv4 in turn, beginning with the resolver's first choice (RFC 8305 §4).
fn alternate(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let Some(first) = addresses.first() else {
        return Vec::new();
    };
    let (like_first, other): (Vec<SocketAddr>, Vec<SocketAddr>) = addresses
        .iter()
        .partition(|address| address.is_ipv4() == first.is_ipv4());
    let mut other = other.into_iter();
    let mut order = Vec::with_capacity(addresses.len());
    for address in like_first {
        order.push(address);
        order.extend(other.next());
    }
    order.extend(other);
    order.truncate(MOST_ADDRESSES);
    order
}

/// A refusal says more about the partner than "no route", which is what IPv6 often gets.
fn more_telling(known: Option<io::Error>, new: io::Error) -> io::Error {
    match known {
        Some(known) if known.kind() == io::ErrorKind::ConnectionRefused => known,
        _ => new,
    }
}

async fn handshake(origin: &Origin, tls: &Connector, wire: Wire) -> Result<Transport, Failure> {
    let config = tls.as_ref().map_err(|reason| {
        Failure::not_sent(
            FailureKind::Invalid,
            format!("no TLS to {origin}: {reason}"),
        )
    })?;
    let name = tls::server_name(&origin.host).ok_or_else(|| {
        let message = format!("{origin} is no name that a certificate can have");
        Failure::not_sent(FailureKind::Invalid, message)
    })?;
    match TlsConnector::from(Arc::clone(config))
        .connect(name, wire)
        .await
    {
        Ok(stream) => Ok(Transport::Tls(Box::new(stream))),
        Err(error) => {
            let kind = tls::handshake_failure(&error);
            let what = match kind {
                FailureKind::Certificate => "certificate refused in the TLS handshake",
                _ => "TLS handshake failed",
            };
            Err(Failure::not_sent(
                kind,
                format!("{what} with {origin}: {error}"),
            ))
        }
    }
}

fn dial_failure(origin: &Origin, error: &io::Error) -> Failure {
    let kind = match error.kind() {
        io::ErrorKind::ConnectionRefused => FailureKind::Refused,
        io::ErrorKind::TimedOut => FailureKind::ConnectTimeout,
        _ => FailureKind::Unreachable,
    };
    Failure::not_sent(kind, format!("no connection to {origin}: {error}"))
}

pub(crate) fn too_slow(origin: &Origin, what: &str) -> Failure {
    Failure::not_sent(
        FailureKind::ConnectTimeout,
        format!("no {what} to {origin} in time"),
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn socket(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn origin() -> Origin {
        Origin {
            tls: false,
            host: Host::Name("acme.example".into()),
            port: 80,
        }
    }

    #[test]
    fn ht_2_one_forbidden_address_refuses_the_name() {
        let policy = AddressPolicy::public_only(["10.0.0.0/8".parse().unwrap()]);
        let inner = socket("10.1.1.5:80");
        let metadata = socket("169.254.169.254:80");
        assert!(check(&origin(), &policy, &[inner]).is_ok());
        for addresses in [[inner, metadata], [metadata, inner]] {
            let failure = check(&origin(), &policy, &addresses).unwrap_err();
            assert_eq!(failure.kind, FailureKind::AddressNotAllowed);
            assert!(failure.message.contains("169.254.169.254"), "{failure}");
        }
    }

    #[test]
    fn families_take_turns_and_the_number_is_bounded() {
        let list = [
            socket("[2a00::1]:1"),
            socket("[2a00::2]:1"),
            socket("1.1.1.1:1"),
        ];
        assert_eq!(alternate(&list), [list[0], list[2], list[1]]);
        assert_eq!(alternate(&[socket("1.1.1.1:1"); 100]).len(), MOST_ADDRESSES);
        assert!(alternate(&[]).is_empty());
    }

    #[tokio::test]
    async fn a_dead_first_address_does_not_hide_a_live_second() {
        let live = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let dead = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let gone = dead.local_addr().unwrap();
        drop(dead);
        let socket = dial(&[gone, live.local_addr().unwrap()]).await.unwrap();
        assert_eq!(socket.peer_addr().unwrap(), live.local_addr().unwrap());
    }

    #[test]
    fn canonical_addresses_name_the_host() {
        let mapped: std::net::IpAddr = "::ffff:127.0.0.1".parse().unwrap();
        assert!(tls::server_name(&Host::Ip(mapped)).is_some());
    }
}
