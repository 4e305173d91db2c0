//! Address blocks in CIDR notation (RFC 4632 section 3.1, RFC 4291 section 2.3).

use std::net::IpAddr;

/// A block of addresses: all that share the first `prefix` bits of `network`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cidr {
    network: IpAddr,
    prefix: u8,
}

impl Cidr {
    /// A block of the built-in tables; `prefix` must fit the family.
    pub(crate) const fn new(network: IpAddr, prefix: u8) -> Self {
        Self { network, prefix }
    }

    /// Reads `network/prefix`. `None` when it is no such text, when bits beyond the prefix are set (more likely a typo
    /// than an intention), or when the network is IPv4-mapped: addresses are compared in canonical form, so such a block
    /// would silently match nothing.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (network, prefix) = text.split_once('/')?;
        let network: IpAddr = network.parse().ok()?;
        let prefix: u8 = prefix.parse().ok()?;
        let (width, trailing_zeros) = match network {
            IpAddr::V4(v4) => (u32::BITS, v4.to_bits().trailing_zeros()),
            IpAddr::V6(v6) => (u128::BITS, v6.to_bits().trailing_zeros()),
        };
        let host_bits = width.checked_sub(u32::from(prefix))?;
        let mapped = network.to_canonical() != network;
        (trailing_zeros >= host_bits && !mapped).then_some(Self { network, prefix })
    }

    /// Whether the block holds `address`. The families are compared apart: an IPv4-mapped address has to be made
    /// canonical first.
    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        let shared_bits = match (self.network, address) {
            (IpAddr::V4(a), IpAddr::V4(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
            (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
            _ => return false,
        };
        shared_bits >= u32::from(self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_holds_its_first_and_last_address_and_neither_neighbour() {
        for (block, first, last, below, above) in [
            ("10.0.0.0/8", "10.0.0.0", "10.255.255.255", "9.255.255.255", "11.0.0.0"),
            ("192.0.2.8/30", "192.0.2.8", "192.0.2.11", "192.0.2.7", "192.0.2.12"),
            ("192.0.2.8/32", "192.0.2.8", "192.0.2.8", "192.0.2.7", "192.0.2.9"),
            ("fd00::/8", "fd00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "fcff::", "fe00::"),
            ("::1/128", "::1", "::1", "::", "::2"),
        ] {
            let cidr = Cidr::parse(block).unwrap();
            assert!(cidr.contains(first.parse().unwrap()), "{block} {first}");
            assert!(cidr.contains(last.parse().unwrap()), "{block} {last}");
            assert!(!cidr.contains(below.parse().unwrap()), "{block} {below}");
            assert!(!cidr.contains(above.parse().unwrap()), "{block} {above}");
        }
    }

    #[test]
    fn a_zero_prefix_holds_its_whole_family_and_nothing_of_the_other() {
        let v4 = Cidr::parse("0.0.0.0/0").unwrap();
        assert!(v4.contains("255.255.255.255".parse().unwrap()));
        assert!(!v4.contains("::1".parse().unwrap()));
        let v6 = Cidr::parse("::/0").unwrap();
        assert!(v6.contains("fe80::1".parse().unwrap()));
        assert!(!v6.contains("10.0.0.1".parse().unwrap()));
    }

    #[test]
    fn malformed_blocks_are_refused() {
        for text in [
            "10.0.0.0",
            "10.0.0.0/",
            "/8",
            "10.0.0.0/33",
            "10.0.0.1/8",
            "10.0.0/8",
            "::/129",
            "fd00::1/8",
            "10.0.0.0/-1",
            "10.0.0.0/8/8",
            "::ffff:10.0.0.0/104",
            "[fd00::]/8",
            "host/8",
        ] {
            assert_eq!(Cidr::parse(text), None, "{text}");
        }
    }
}
