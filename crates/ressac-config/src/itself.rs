//! A partner that is the gateway itself: each delivery would make a new message, without end.

use std::net::{IpAddr, SocketAddr};

use http::Uri;

use crate::diagnostic::Diagnostic;
use crate::model::PartnerConfig;
use crate::source::Place;

/// An error if the partner's URL leads to where the gateway listens.
pub(crate) fn check(
    partner: &PartnerConfig,
    listen: SocketAddr,
    place: Option<&Place>,
) -> Option<Diagnostic> {
    let url_place = partner.url_place.as_ref()?;
    if !leads_to(&partner.url, listen) {
        return None;
    }
    let title = format!("partner `{}` is the gateway itself", partner.name);
    let mut error = Diagnostic::error("contradiction", title).at(
        url_place,
        "each delivery would make a new message, without end",
    );
    error = match place {
        Some(place) => error.at(place, "the gateway listens here"),
        None => error.help(format!("the gateway listens on {listen} by default")),
    };
    Some(error.help("write the address of the partner, or another `listen` of [gateway]"))
}

fn leads_to(url: &Uri, listen: SocketAddr) -> bool {
    let usual = match url.scheme_str() {
        Some("https") => 443,
        _ => 80,
    };
    // A port that is not chosen yet is nobody's.
    let port = url.port_u16().unwrap_or(usual);
    let host = url.host().map(canonical);
    port == listen.port() && port != 0 && host == Some(canonical(&listen.ip().to_string()))
}

/// One name for each way to say "this machine": its names, its first addresses, the wildcards.
fn canonical(host: &str) -> String {
    let plain = host.trim_start_matches('[').trim_end_matches(']');
    let name = plain
        .strip_suffix('.')
        .unwrap_or(plain)
        .to_ascii_lowercase();
    let is_this_machine = match name.parse::<IpAddr>().map(|ip| ip.to_canonical()) {
        Ok(IpAddr::V4(ip)) => ip.octets() == [127, 0, 0, 1] || ip.is_unspecified(),
        Ok(IpAddr::V6(ip)) => ip.is_loopback() || ip.is_unspecified(),
        Err(_) => name == "localhost" || name.ends_with(".localhost"),
    };
    match (is_this_machine, name.parse::<IpAddr>()) {
        (true, _) => "localhost".to_owned(),
        (false, Ok(ip)) => ip.to_canonical().to_string(),
        (false, Err(_)) => name,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_way_to_say_this_machine_counts() {
        let leads =
            |url: &str, listen: &str| leads_to(&url.parse().unwrap(), listen.parse().unwrap());
        for listen in ["127.0.0.1:7070", "[::1]:7070", "[::ffff:127.0.0.1]:7070"] {
            for host in [
                "localhost",
                "LOCALHOST.",
                "acme.localhost",
                "127.0.0.1",
                "[::1]",
                "[::ffff:127.0.0.1]",
                "0.0.0.0",
            ] {
                assert!(
                    leads(&format!("http://{host}:7070/v1"), listen),
                    "{host} {listen}"
                );
            }
        }
        assert!(leads("http://127.8.8.8:7070", "127.8.8.8:7070"));
        assert!(leads("http://localhost", "127.0.0.1:80"));
        assert!(leads("https://localhost", "127.0.0.1:443"));
        for (url, listen) in [
            ("http://localhost:7071", "127.0.0.1:7070"),
            ("http://localhost", "127.0.0.1:7070"),
            ("http://127.0.0.1:7070", "127.8.8.8:7070"),
            ("http://acme.example:7070", "127.0.0.1:7070"),
        ] {
            assert!(!leads(url, listen), "{url} {listen}");
        }
    }
}
