//! Which addresses may be connected to.
//!
//! A caller who can choose a URL can otherwise choose our metadata service, our database, our own
//! admin port. So the check is made on addresses, after the lookup, and only the address that was
//! checked is dialled: a second lookup could answer differently.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::cidr::Cidr;

/// Which addresses a [`Client`](crate::Client) may connect to.
///
/// ```
/// use ressac_http::AddressPolicy;
///
/// let policy = AddressPolicy::public_only(["10.20.0.0/16".parse()?]);
/// assert!(policy.allows("93.184.215.14".parse()?));
/// assert!(policy.allows("10.20.1.1".parse()?));
/// assert!(!policy.allows("10.21.1.1".parse()?));
/// assert!(!policy.allows("169.254.169.254".parse()?));
/// assert!(!policy.allows("::ffff:127.0.0.1".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum AddressPolicy {
    /// Any address: for URLs that the operator wrote.
    #[default]
    Any,
    /// Only addresses of the public internet, and what is listed: for URLs that somebody else
    /// wrote. A name with one forbidden address is refused whole.
    PublicOnly {
        /// Ranges that are allowed though they are not public.
        allow: Vec<Cidr>,
    },
}

impl AddressPolicy {
    /// Public addresses, and those in `allow`.
    pub fn public_only(allow: impl IntoIterator<Item = Cidr>) -> Self {
        Self::PublicOnly {
            allow: allow.into_iter().collect(),
        }
    }

    /// Whether this address may be connected to. IPv4 inside IPv6 (mapped, NAT64) is judged as
    /// the IPv4 address it leads to.
    pub fn allows(&self, address: IpAddr) -> bool {
        match self {
            Self::Any => true,
            Self::PublicOnly { allow } => {
                let reached = reached(address);
                let listed = |a: IpAddr| allow.iter().any(|range| range.contains(a));
                is_public(reached) || listed(reached) || listed(address)
            }
        }
    }
}

/// The IPv4 special-purpose ranges (the IANA registry, RFC 6890) that are not the public
/// internet, and one public address that is not what it seems.
const NOT_PUBLIC_V4: &[(Ipv4Addr, u8)] = &[
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    // Azure's host agent answers here, from inside only.
    (Ipv4Addr::new(168, 63, 129, 16), 32),
    // Link-local, with the metadata service of most clouds.
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

/// The only part of IPv6 given out for public use; loopback, ULA, link-local, site-local,
/// multicast and the IPv4 forms all lie outside.
const GLOBAL_V6: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// What inside [`GLOBAL_V6`] is not public after all.
const NOT_PUBLIC_V6: &[(Ipv6Addr, u8)] = &[
    // Protocol assignments, with Teredo, which carries an IPv4 address.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    // 6to4 carries an IPv4 address and is out of use (RFC 7526).
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// The well-known NAT64 prefix (RFC 6052): the last 32 bits are the IPv4 address it leads to.
const NAT64: (Ipv6Addr, u8) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !NOT_PUBLIC_V4.iter().any(|range| in_v4(v4, *range)),
        IpAddr::V6(v6) => {
            in_v6(v6, GLOBAL_V6) && !NOT_PUBLIC_V6.iter().any(|range| in_v6(v6, *range))
        }
    }
}

/// The address a packet ends up at.
fn reached(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else {
        return address;
    };
    if let Some(v4) = v6.to_ipv4_mapped() {
        return IpAddr::V4(v4);
    }
    if in_v6(v6, NAT64) {
        let [.., a, b, c, d] = v6.octets();
        return IpAddr::V4(Ipv4Addr::new(a, b, c, d));
    }
    address
}

fn in_v4(address: Ipv4Addr, (network, length): (Ipv4Addr, u8)) -> bool {
    Cidr::holds_v4(network, length, address)
}

fn in_v6(address: Ipv6Addr, (network, length): (Ipv6Addr, u8)) -> bool {
    Cidr::holds_v6(network, length, address)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn public(text: &str) -> bool {
        AddressPolicy::public_only([]).allows(text.parse().unwrap())
    }

    #[test]
    fn ht_1_every_form_of_an_inner_address_is_refused() {
        for text in [
            "127.0.0.1",
            "127.255.255.254",
            "0.0.0.0",
            "10.1.1.5",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "100.64.0.1",
            "100.100.100.200",
            "100.127.255.255",
            "169.254.169.254",
            "168.63.129.16",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.7",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:7f00:1",
            "::7f00:1",
            "::ffff:169.254.169.254",
            "::ffff:0:127.0.0.1",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::1",
            "2001:0:4136:e378:8000:63bf:3fff:fdd2",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::1",
            "100::1",
            "2001:db8::1",
            "3fff::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "5f00::1",
        ] {
            assert!(!public(text), "{text} was let through");
        }
    }

    #[test]
    fn public_addresses_pass_also_through_nat64() {
        for text in [
            "1.1.1.1",
            "93.184.215.14",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "2606:4700:4700::1111",
            "2a00:1450:4001:81b::200e",
            "::ffff:1.1.1.1",
            "64:ff9b::1.1.1.1",
        ] {
            assert!(public(text), "{text} was refused");
        }
    }

    #[test]
    fn an_allowed_range_opens_that_range_only_in_every_form() {
        let policy = AddressPolicy::public_only(["10.0.0.0/8".parse().unwrap()]);
        assert!(policy.allows("10.1.1.5".parse().unwrap()));
        assert!(policy.allows("::ffff:10.1.1.5".parse().unwrap()));
        assert!(policy.allows("64:ff9b::10.1.1.5".parse().unwrap()));
        assert!(!policy.allows("169.254.169.254".parse().unwrap()));
        assert!(!policy.allows("192.168.0.1".parse().unwrap()));

        let ula = AddressPolicy::public_only(["fd12::/16".parse().unwrap()]);
        assert!(ula.allows("fd12::1".parse().unwrap()));
        assert!(!ula.allows("fd13::1".parse().unwrap()));
    }

    #[test]
    fn any_is_any() {
        assert!(AddressPolicy::Any.allows("127.0.0.1".parse().unwrap()));
    }
}
