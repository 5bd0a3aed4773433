//! TLS listeners: handshakes broken byte for byte, and certificates that a stock verifier refuses.
#![allow(clippy::unwrap_used)]

mod raw;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use raw::{Ended, connect, eventually, get, read_n, read_to_end, silent, split, start};
use ressac_mock::{Flag, Mock, Wire};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

type TlsClient = StreamOwned<ClientConnection, TcpStream>;

fn config(mock: &Mock, alpn: &[&str]) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    let ca = CertificateDer::from_pem_slice(mock.ca_pem().as_bytes()).unwrap();
    roots.add(ca).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|p| p.as_bytes().to_vec()).collect();
    config
}

fn tls(config: &Arc<ClientConfig>, addr: SocketAddr) -> TlsClient {
    let name = ServerName::try_from("localhost").unwrap();
    let session = ClientConnection::new(Arc::clone(config), name).unwrap();
    StreamOwned::new(session, connect(addr))
}

fn addr(mock: &Mock, name: &str) -> SocketAddr {
    mock.listeners().iter().find(|l| l.0 == name).unwrap().1
}

/// A ClientHello in one record, as a library writes it, taken off the wire.
fn hello(mock: &Mock) -> Vec<u8> {
    let name = ServerName::try_from("localhost").unwrap();
    let mut session = ClientConnection::new(Arc::new(config(mock, &[])), name).unwrap();
    let mut out = Vec::new();
    session.write_tls(&mut out).unwrap();
    out
}

/// The body of a reply, read to the end of the session.
fn ask(stream: &mut TlsClient, request: &str) -> Vec<u8> {
    stream.write_all(request.as_bytes()).unwrap();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    all
}

#[test]
fn a_valid_certificate_is_accepted_and_the_session_is_journaled() {
    let mock = Mock::start_blocking();
    let h = mock.script("GET", "200 body=3 close");
    assert!(h.tls_url().starts_with(&mock.tls_url()) && mock.tls_url().starts_with("https://"));
    let config = Arc::new(config(&mock, &["http/1.1"]));
    let mut s = tls(&config, addr(&mock, "tls"));
    // `read_to_end` succeeds only if close_notify came before FIN.
    assert_eq!(split(&ask(&mut s, &get(&h.path()))).body, b"ABC");
    let e = h.wait_done_blocking(1, Duration::from_secs(10)).unwrap()[0].clone();
    let info = e.tls.unwrap();
    assert_eq!(
        (info.version, info.sni.as_deref()),
        ("TLS 1.3", Some("localhost"))
    );
    assert_eq!(
        (info.alpn.as_deref(), e.listener.as_str()),
        (Some("http/1.1"), "tls")
    );
    assert_eq!(
        mock.connections()[0].tls.as_ref().unwrap().version,
        "TLS 1.3"
    );
}

#[test]
fn a_cut_over_tls_has_no_close_notify() {
    let mock = Mock::start_blocking();
    let h = mock.script("GET", "200 body=100 fin@body+10, 200 body=100 rst@body+10");
    let config = Arc::new(config(&mock, &["http/1.1"]));
    for wire in [Wire::Fin, Wire::Rst] {
        let mut s = tls(&config, addr(&mock, "tls"));
        s.write_all(get(&h.path()).as_bytes()).unwrap();
        let mut all = Vec::new();
        let err = s.read_to_end(&mut all).unwrap_err();
        let want = match wire {
            Wire::Fin => std::io::ErrorKind::UnexpectedEof,
            _ => std::io::ErrorKind::ConnectionReset,
        };
        assert_eq!((split(&all).body.len(), err.kind()), (10, want));
    }
    let list = h.wait_done_blocking(2, Duration::from_secs(10)).unwrap();
    let wires: Vec<_> = list.iter().map(|e| e.sent.as_ref().unwrap().wire).collect();
    assert_eq!(wires, [Wire::Fin, Wire::Rst]);
}

#[test]
fn every_other_certificate_is_refused_for_its_reason() {
    for (kind, reason) in [
        ("expired", "Expired"),
        ("not-yet", "NotValidYet"),
        ("wrong-host", "NotValidForName"),
        ("untrusted", "UnknownIssuer"),
        ("self-signed", "UnknownIssuer"),
    ] {
        let mock = start(&format!(
            "[[listener]]\nname = \"t\"\ntls = {{ cert = \"{kind}\" }}\n\
             [[route]]\nname = \"r\"\npath = \"/r\"\nscript = \"200 x*\""
        ));
        let mut s = tls(&Arc::new(config(&mock, &[])), mock.addr());
        let err = s.write_all(get("/r").as_bytes()).unwrap_err().to_string();
        let alike = |text: &str| text.to_lowercase().replace([' ', '_'], "");
        let fits = match kind {
            "expired" => alike(&err).contains("expired"),
            "not-yet" => alike(&err).contains("notvalidyet"),
            "wrong-host" => alike(&err).contains("notvalidforname"),
            _ => alike(&err).contains("unknownissuer"),
        };
        assert!(fits, "{kind}: {err}, not {reason}");
        drop(s);
        eventually("the handshake is journaled", || {
            mock.connections()
                .first()
                .is_some_and(|c| c.end == Some("tls"))
        });
        let c = &mock.connections()[0];
        assert!(c.tls_error.is_some() && c.tls.is_none(), "{c:?}");
        assert!(mock.journal().is_empty(), "no request arrives");
    }
}

#[test]
fn handshakes_break_at_the_client_hello_byte_for_byte() {
    let mock = start(
        "[[listener]]\nname = \"t\"\ntls = true\naccept = \"fin@hello, rst@hello, \
         alert=handshake_failure, alert=unrecognized_name, stall@hello, rst, ok x*\"",
    );
    let hello = hello(&mock);
    let begin = || {
        let mut s = connect(mock.addr());
        // Nothing happens before the whole hello was read.
        s.write_all(&hello[..hello.len() - 1]).unwrap();
        assert!(silent(&mut s, Duration::from_millis(50)));
        s.write_all(&hello[hello.len() - 1..]).unwrap();
        s
    };
    assert_eq!(read_to_end(&mut begin()), (vec![], Ended::Fin));
    assert_eq!(read_to_end(&mut begin()), (vec![], Ended::Rst));
    for code in [40, 112] {
        assert_eq!(
            read_to_end(&mut begin()),
            (vec![21, 3, 3, 0, 2, 2, code], Ended::Fin)
        );
    }
    let mut stalled = begin();
    assert!(silent(&mut stalled, Duration::from_millis(150)));
    assert_eq!(read_to_end(&mut connect(mock.addr())), (vec![], Ended::Rst));
    // And then it works: a handshake record comes back.
    let mut s = begin_whole(&mock, &hello);
    assert_eq!(read_n(&mut s, 3), [22, 3, 3]);
    let words: Vec<_> = mock.connections().into_iter().map(|c| c.accept).collect();
    assert_eq!(words[2], "alert=handshake_failure");
    assert_eq!(words.len(), 7);
}

fn begin_whole(mock: &Mock, hello: &[u8]) -> TcpStream {
    let mut s = connect(mock.addr());
    s.write_all(hello).unwrap();
    s
}

#[test]
fn early_data_is_marked() {
    let mock = Mock::start_blocking();
    let h = mock.script("GET", "425 close, 200 close x*");
    let mut config = config(&mock, &["http/1.1"]);
    config.enable_early_data = true;
    let config = Arc::new(config);
    let target = addr(&mock, "tls");
    let first = ask(&mut tls(&config, target), &get(&h.path()));
    assert_eq!(split(&first).status, 425);
    let mut s = tls(&config, target);
    let request = get(&h.path());
    s.conn
        .early_data()
        .unwrap()
        .write_all(request.as_bytes())
        .unwrap();
    let mut all = Vec::new();
    s.read_to_end(&mut all).unwrap();
    assert!(s.conn.is_early_data_accepted());
    assert_eq!(split(&all).status, 200);
    let list = h.wait_done_blocking(2, Duration::from_secs(10)).unwrap();
    assert_eq!(
        (list[0].flags.len(), list[1].flags.as_slice()),
        (0, &[Flag::Early][..])
    );
    assert!(list[1].tls.as_ref().unwrap().resumed);
}

#[test]
fn each_mock_has_an_authority_of_its_own() {
    let (a, b) = (Mock::start_blocking(), Mock::start_blocking());
    assert_ne!(a.ca_pem(), b.ca_pem());
    let h = b.script("GET", "200 close");
    let mut s = tls(&Arc::new(config(&a, &[])), addr(&b, "tls"));
    assert!(s.write_all(get(&h.path()).as_bytes()).is_err());
}

#[test]
fn http2_is_chosen_by_alpn_and_can_be_left_out() {
    let mock = start(
        "[[listener]]\nname = \"both\"\ntls = true\n\
         [[listener]]\nname = \"one\"\ntls = true\nspeak = [\"http/1.1\"]",
    );
    let config = Arc::new(config(&mock, &["h2", "http/1.1"]));
    let mut s = tls(&config, addr(&mock, "both"));
    s.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
        .unwrap();
    // GET / in three indexed fields, as the end of headers and of the stream.
    s.write_all(&[0, 0, 3, 1, 5, 0, 0, 0, 1, 0x82, 0x87, 0x84])
        .unwrap();
    assert_eq!(s.conn.alpn_protocol(), Some(&b"h2"[..]));
    loop {
        let mut head = [0; 9];
        s.read_exact(&mut head).unwrap();
        let mut body = vec![0; usize::from(u16::from_be_bytes([head[1], head[2]]))];
        s.read_exact(&mut body).unwrap();
        if head[3] == 1 {
            assert!(body.starts_with(b"\0\x07:status\x03200"), "{body:?}");
            break;
        }
    }
    let e = mock.journal()[0].clone();
    assert_eq!(
        (e.proto, e.tls.unwrap().alpn.as_deref()),
        ("HTTP/2", Some("h2"))
    );
    let mut s = tls(&config, addr(&mock, "one"));
    let request = get("/").replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
    assert_eq!(split(&ask(&mut s, &request)).status, 200);
    assert_eq!(s.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
}
