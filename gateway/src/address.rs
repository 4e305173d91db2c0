//! The address that a request counts for (docs/reference/conventions.md#client-address).
//!
//! **Guarantee.** No client chooses its address: what it writes into `X-Forwarded-For` is left of what the proxies append, and the
//! search from the right ends at the first entry that no trusted proxy wrote.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use http::{Extensions, HeaderMap, HeaderName};
use ipnet::IpNet;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The address of a client: an IPv4 address, or the first address of an IPv6 /64, because one customer has at least a /64. In the
/// extensions of each request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientAddress(IpAddr);

impl ClientAddress {
    /// The address of a request that `peer` sent: that of the peer, or, if the peer is a trusted proxy, the right-most entry of
    /// `X-Forwarded-For` that is not one. An entry that is no address ends the search at the last proxy.
    pub fn from_request(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> Self {
        let mut lines: Vec<&[u8]> = headers.get_all(FORWARDED_FOR).iter().map(|line| line.as_bytes()).collect();
        lines.reverse();
        let mut entries = lines.iter().flat_map(|line| line.rsplit(|byte| *byte == b','));
        let mut address = peer;
        while is_trusted(address, trusted)
            && let Some(forwarded) = entries.next().and_then(parse_entry)
        {
            address = forwarded;
        }
        Self::from(address)
    }

    /// The address of the request with these extensions. Requests that come from no connection share one address.
    pub fn from_extensions(extensions: &Extensions) -> Self {
        extensions.get().copied().unwrap_or(Self(IpAddr::V4(Ipv4Addr::UNSPECIFIED)))
    }
}

/// Returns `true` if `address` is in one of the blocks. An IPv4-mapped address is compared as the IPv4 address.
pub fn is_trusted(address: IpAddr, trusted: &[IpNet]) -> bool {
    let address = address.to_canonical();
    trusted.iter().any(|block| block.contains(&address))
}

/// An address, with or without a port; an IPv6 address also in brackets.
fn parse_entry(entry: &[u8]) -> Option<IpAddr> {
    let entry = std::str::from_utf8(entry).ok()?.trim();
    let bracketed = || entry.strip_prefix('[')?.strip_suffix(']')?.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
    let with_port = || Some(entry.parse::<SocketAddr>().ok()?.ip());
    entry.parse().ok().or_else(bracketed).or_else(with_port)
}

impl From<IpAddr> for ClientAddress {
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
            v4 => v4,
        })
    }
}

impl From<ClientAddress> for IpAddr {
    fn from(ClientAddress(address): ClientAddress) -> Self {
        address
    }
}

/// An IPv4 address, or an IPv6 network with its prefix.
impl fmt::Display for ClientAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            IpAddr::V4(address) => address.fmt(f),
            IpAddr::V6(address) => write!(f, "{address}/64"),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    /// The address by the lines of a header, in which `?` is a byte that is no UTF-8.
    fn address(trusted: &str, peer: &str, lines: &[&str]) -> String {
        let trusted: Vec<IpNet> = trusted.split_whitespace().map(|block| block.parse().expect("a block")).collect();
        let mut headers = HeaderMap::new();
        for line in lines {
            let line: Vec<u8> = line.bytes().map(|byte| if byte == b'?' { 0xff } else { byte }).collect();
            headers.append(FORWARDED_FOR, HeaderValue::from_bytes(&line).expect("a value"));
        }
        ClientAddress::from_request(peer.parse().expect("an address"), &headers, &trusted).to_string()
    }

    #[test]
    fn from_a_peer_that_is_no_proxy_the_header_is_ignored() {
        for trusted in ["", "10.0.0.0/8", "192.0.2.2/32 192.0.2.0/32"] {
            for lines in [&[][..], &["1.2.3.4"], &["10.0.0.1"], &["1.2.3.4", "10.0.0.2"]] {
                assert_eq!(address(trusted, "192.0.2.1", lines), "192.0.2.1", "{trusted} {lines:?}");
            }
        }
    }

    #[test]
    fn behind_proxies_it_is_the_right_most_entry_that_is_none() {
        const TRUSTED: &str = "10.0.0.0/8 fd00::/8";
        for (lines, expected) in [
            // No header, and headers that end at once: the proxy itself.
            (&[][..], "10.0.0.1"),
            (&[""], "10.0.0.1"),
            (&["1.2.3.4,"], "10.0.0.1"),
            (&["1.2.3.4, unknown"], "10.0.0.1"),
            (&["1.2.3.4, _hidden"], "10.0.0.1"),
            (&["1.2.3.4 5.6.7.8"], "10.0.0.1"),
            (&["1.2.3.4, 999.1.1.1"], "10.0.0.1"),
            (&["1.2.3.4, 010.1.1.1"], "10.0.0.1"),
            (&["1.2.3.4, ?"], "10.0.0.1"),
            // One entry; entries that the client has written before it.
            (&["1.2.3.4"], "1.2.3.4"),
            (&[" 1.2.3.4\t"], "1.2.3.4"),
            (&["5.6.7.8, 1.2.3.4"], "1.2.3.4"),
            (&["10.0.0.9, 1.2.3.4"], "1.2.3.4"),
            (&["?, unknown,,1.2.3.4"], "1.2.3.4"),
            // Chains of proxies, in one line and in several.
            (&["1.2.3.4, 10.0.0.2"], "1.2.3.4"),
            (&["5.6.7.8, 1.2.3.4, 10.0.0.3, fd00::1, 10.0.0.2"], "1.2.3.4"),
            (&["5.6.7.8", "1.2.3.4", "10.0.0.3, 10.0.0.2"], "1.2.3.4"),
            (&["5.6.7.8", "10.0.0.3", "1.2.3.4"], "1.2.3.4"),
            (&["1.2.3.4, unknown, 10.0.0.2"], "10.0.0.2"),
            (&["1.2.3.4", "", "10.0.0.2"], "10.0.0.2"),
            // Nobody but proxies.
            (&["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
            // Ports, brackets, IPv6.
            (&["1.2.3.4:5678"], "1.2.3.4"),
            (&["1.2.3.4:567890"], "10.0.0.1"),
            (&["2001:db8:1:2:3:4:5:6"], "2001:db8:1:2::/64"),
            (&["[2001:db8:1:2:3:4:5:6]"], "2001:db8:1:2::/64"),
            (&["[2001:db8:1:2:3:4:5:6]:443"], "2001:db8:1:2::/64"),
            (&["1.2.3.4, [2001:db8::1"], "10.0.0.1"),
            (&["1.2.3.4, [1.1.1.1]"], "10.0.0.1"),
            (&["1.2.3.4, fe80::1%eth0"], "10.0.0.1"),
            (&["1.2.3.4, [fd00::2]:80, ::ffff:10.0.0.2"], "1.2.3.4"),
            (&["::ffff:1.2.3.4"], "1.2.3.4"),
        ] {
            assert_eq!(address(TRUSTED, "10.0.0.1", lines), expected, "{lines:?}");
            assert_eq!(address(TRUSTED, "::ffff:10.0.0.1", lines), expected, "{lines:?}");
        }
    }

    #[test]
    fn an_ipv6_address_counts_as_its_network() {
        let from = |address: &str| ClientAddress::from(address.parse::<IpAddr>().expect("an address"));
        assert_eq!(from("2001:db8:1:2::"), from("2001:db8:1:2:ffff:ffff:ffff:ffff"));
        assert_ne!(from("2001:db8:1:2::"), from("2001:db8:1:3::"));
        assert_eq!(from("::ffff:192.0.2.1"), from("192.0.2.1"));
        assert_ne!(from("192.0.2.1"), from("192.0.2.2"));
    }
}
