//! A range of addresses, as in `10.0.0.0/8`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A range of IP addresses in CIDR form (RFC 4632, RFC 4291 §2.3). A bare address is a range of
/// one.
///
/// ```
/// use ressac_http::Cidr;
///
/// let range: Cidr = "10.0.0.0/8".parse()?;
/// assert!(range.contains("10.255.0.1".parse().unwrap()));
/// assert!("10.0.0.0/33".parse::<Cidr>().is_err());
/// assert!("10.0.0.1/8".parse::<Cidr>().is_err(), "bits set to the right of the prefix");
/// # Ok::<(), ressac_http::CidrError>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Cidr {
    network: IpAddr,
    length: u8,
}

impl Cidr {
    /// Whether the address lies in the range. IPv4 and IPv6 never mix here.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.network, address) {
            (IpAddr::V4(network), IpAddr::V4(a)) => Self::holds_v4(network, self.length, a),
            (IpAddr::V6(network), IpAddr::V6(a)) => Self::holds_v6(network, self.length, a),
            _ => false,
        }
    }

    pub(crate) fn holds_v4(network: Ipv4Addr, length: u8, address: Ipv4Addr) -> bool {
        let differ = network.to_bits() ^ address.to_bits();
        differ
            .checked_shr(32 - u32::from(length.min(32)))
            .unwrap_or(0)
            == 0
    }

    pub(crate) fn holds_v6(network: Ipv6Addr, length: u8, address: Ipv6Addr) -> bool {
        let differ = network.to_bits() ^ address.to_bits();
        differ
            .checked_shr(128 - u32::from(length.min(128)))
            .unwrap_or(0)
            == 0
    }
}

impl FromStr for Cidr {
    type Err = CidrError;

    fn from_str(text: &str) -> Result<Self, CidrError> {
        let bad = |why: &'static str| CidrError {
            text: text.chars().take(64).collect(),
            why,
        };
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let network: IpAddr = address.parse().map_err(|_| bad("that is no IP address"))?;
        let longest = if network.is_ipv4() { 32 } else { 128 };
        let length = match length {
            None => longest,
            Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => digits
                .parse()
                .ok()
                .filter(|length| *length <= longest)
                .ok_or_else(|| bad("the prefix is longer than the address"))?,
            Some(_) => return Err(bad("the prefix length is no number")),
        };
        let host_bits_clear = match network {
            IpAddr::V4(v4) => v4.to_bits().checked_shl(u32::from(length)).unwrap_or(0) == 0,
            IpAddr::V6(v6) => v6.to_bits().checked_shl(u32::from(length)).unwrap_or(0) == 0,
        };
        if !host_bits_clear {
            return Err(bad("the address has bits set beyond the prefix"));
        }
        Ok(Self { network, length })
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.length)
    }
}

/// Why a text is no range of addresses.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{text:?} is no address range such as 10.0.0.0/8: {why}")]
pub struct CidrError {
    text: String,
    why: &'static str,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn holds(range: &str, address: &str) -> bool {
        range
            .parse::<Cidr>()
            .unwrap()
            .contains(address.parse().unwrap())
    }

    #[test]
    fn edges_of_a_range() {
        assert!(holds("0.0.0.0/0", "255.255.255.255"));
        assert!(holds("::/0", "ffff::1"));
        assert!(holds("10.0.0.7", "10.0.0.7"));
        assert!(!holds("10.0.0.7", "10.0.0.8"));
        assert!(holds("100.64.0.0/10", "100.127.255.255"));
        assert!(!holds("100.64.0.0/10", "100.128.0.0"));
        assert!(holds("fd00::/8", "fdff::1"));
        assert!(!holds("0.0.0.0/0", "::1"));
    }

    #[test]
    fn what_is_no_range_is_refused_with_the_reason() {
        for (text, why) in [
            ("10.0.0.0/33", "longer"),
            ("10.0.0.0/999", "longer"),
            ("10.0.0.0/", "longer"),
            ("10.0.0.0/+8", "no number"),
            ("10.0.0.1/8", "bits set"),
            ("::1/64", "bits set"),
            ("ten/8", "no IP address"),
            ("", "no IP address"),
        ] {
            let error = text.parse::<Cidr>().unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn shown_as_written() {
        assert_eq!(
            "10.0.0.0/8".parse::<Cidr>().unwrap().to_string(),
            "10.0.0.0/8"
        );
    }
}
