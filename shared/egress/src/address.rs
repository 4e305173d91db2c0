//! Public addresses.
//!
//! IPv4 uses a deny list, because the special ranges are a finished list (IANA IPv4 Special-Purpose Address Registry, plus
//! multicast, the reserved 240/4 and the one cloud metadata address outside them). IPv6 uses an allow list, because everything
//! IANA has assigned to the public internet is in 2000::/3: new, translated or tunneled ranges (IPv4-compatible, NAT64, Teredo,
//! 6to4) stay rejected without being listed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> IpNet {
    IpNet::new_assert(IpAddr::V4(Ipv4Addr::new(a, b, c, d)), prefix)
}

const fn v6(a: u16, b: u16, prefix: u8) -> IpNet {
    IpNet::new_assert(IpAddr::V6(Ipv6Addr::new(a, b, 0, 0, 0, 0, 0, 0)), prefix)
}

const V4_NOT_PUBLIC: [IpNet; 19] = [
    v4(0, 0, 0, 0, 8),        // "this network", unspecified (RFC 791)
    v4(10, 0, 0, 0, 8),       // private use (RFC 1918)
    v4(100, 64, 0, 0, 10),    // carrier-grade NAT (RFC 6598)
    v4(127, 0, 0, 0, 8),      // loopback (RFC 1122)
    v4(168, 63, 129, 16, 32), // Azure's platform services, reachable from every virtual machine there
    v4(169, 254, 0, 0, 16),   // link-local, cloud metadata (RFC 3927)
    v4(172, 16, 0, 0, 12),    // private use (RFC 1918)
    v4(192, 0, 0, 0, 24),     // IETF protocol assignments (RFC 6890)
    v4(192, 0, 2, 0, 24),     // documentation (RFC 5737)
    v4(192, 31, 196, 0, 24),  // AS112 (RFC 7535)
    v4(192, 52, 193, 0, 24),  // AMT (RFC 7450)
    v4(192, 88, 99, 0, 24),   // 6to4 relay anycast (RFC 7526)
    v4(192, 168, 0, 0, 16),   // private use (RFC 1918)
    v4(192, 175, 48, 0, 24),  // AS112 (RFC 7534)
    v4(198, 18, 0, 0, 15),    // benchmarking (RFC 2544)
    v4(198, 51, 100, 0, 24),  // documentation (RFC 5737)
    v4(203, 0, 113, 0, 24),   // documentation (RFC 5737)
    v4(224, 0, 0, 0, 4),      // multicast (RFC 5771)
    v4(240, 0, 0, 0, 4),      // reserved (RFC 1112), limited broadcast (RFC 919)
];

const V6_GLOBAL_UNICAST: IpNet = v6(0x2000, 0, 3); // RFC 4291 section 2.4

const V6_NOT_PUBLIC: [IpNet; 4] = [
    v6(0x2001, 0, 23),      // IETF protocol assignments, Teredo among them (RFC 2928, RFC 4380)
    v6(0x2001, 0x0db8, 32), // documentation (RFC 3849)
    v6(0x2002, 0, 16),      // 6to4, which embeds any IPv4 address (RFC 3056)
    v6(0x3fff, 0, 20),      // documentation (RFC 9637)
];

/// Returns `true` if `address` is on the public internet. An IPv4-mapped IPv6 address is checked as the IPv4 address that the kernel
/// would connect to.
pub(crate) fn is_public(address: IpAddr) -> bool {
    let address = address.to_canonical();
    let listed = |blocks: &[IpNet]| blocks.iter().any(|block| block.contains(&address));
    match address {
        IpAddr::V4(_) => !listed(&V4_NOT_PUBLIC),
        IpAddr::V6(_) => V6_GLOBAL_UNICAST.contains(&address) && !listed(&V6_NOT_PUBLIC),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn public(text: &str) -> bool {
        is_public(text.parse().unwrap())
    }

    /// First and last address of each block, and the adjacent addresses that are public.
    const REFUSED: [(&str, &str, Option<&str>, Option<&str>); 30] = [
        ("0.0.0.0", "0.255.255.255", None, Some("1.0.0.0")),
        ("10.0.0.0", "10.255.255.255", Some("9.255.255.255"), Some("11.0.0.0")),
        ("100.64.0.0", "100.127.255.255", Some("100.63.255.255"), Some("100.128.0.0")),
        ("127.0.0.0", "127.255.255.255", Some("126.255.255.255"), Some("128.0.0.0")),
        ("168.63.129.16", "168.63.129.16", Some("168.63.129.15"), Some("168.63.129.17")),
        ("169.254.0.0", "169.254.255.255", Some("169.253.255.255"), Some("169.255.0.0")),
        ("172.16.0.0", "172.31.255.255", Some("172.15.255.255"), Some("172.32.0.0")),
        ("192.0.0.0", "192.0.0.255", Some("191.255.255.255"), Some("192.0.1.0")),
        ("192.0.2.0", "192.0.2.255", Some("192.0.1.255"), Some("192.0.3.0")),
        ("192.31.196.0", "192.31.196.255", Some("192.31.195.255"), Some("192.31.197.0")),
        ("192.52.193.0", "192.52.193.255", Some("192.52.192.255"), Some("192.52.194.0")),
        ("192.88.99.0", "192.88.99.255", Some("192.88.98.255"), Some("192.88.100.0")),
        ("192.168.0.0", "192.168.255.255", Some("192.167.255.255"), Some("192.169.0.0")),
        ("192.175.48.0", "192.175.48.255", Some("192.175.47.255"), Some("192.175.49.0")),
        ("198.18.0.0", "198.19.255.255", Some("198.17.255.255"), Some("198.20.0.0")),
        ("198.51.100.0", "198.51.100.255", Some("198.51.99.255"), Some("198.51.101.0")),
        ("203.0.113.0", "203.0.113.255", Some("203.0.112.255"), Some("203.0.114.0")),
        ("224.0.0.0", "239.255.255.255", Some("223.255.255.255"), None),
        ("240.0.0.0", "255.255.255.255", None, None),
        ("::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", None, Some("2000::")),
        (
            "2001::",
            "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff",
            Some("2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
            Some("2001:200::"),
        ),
        (
            "2001:db8::",
            "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
            Some("2001:db7:ffff:ffff:ffff:ffff:ffff:ffff"),
            Some("2001:db9::"),
        ),
        (
            "2002::",
            "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            Some("2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
            Some("2003::"),
        ),
        (
            "3fff::",
            "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff",
            Some("3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
            Some("3fff:1000::"),
        ),
        ("4000::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Some("3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"), None),
        ("fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", None, None),
        ("fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", None, None),
        ("ff00::", "ff0e::1", None, None),
        ("64:ff9b::", "64:ff9b::ffff:ffff", None, None),
        ("::ffff:10.0.0.0", "::ffff:10.255.255.255", Some("::ffff:9.255.255.255"), Some("::ffff:11.0.0.0")),
    ];

    #[test]
    fn every_listed_range_is_refused_to_its_edges_and_not_beyond() {
        for (first, last, below, above) in REFUSED {
            assert!(!public(first), "{first}");
            assert!(!public(last), "{last}");
            for neighbour in [below, above].into_iter().flatten() {
                assert!(public(neighbour), "{neighbour}");
            }
        }
    }

    #[test]
    fn addresses_that_embed_an_ipv4_address_never_pass_as_ipv6() {
        for text in [
            "::",
            "::1",
            "::127.0.0.1",
            "::8.8.8.8",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::ffff:0:8.8.8.8",
            "64:ff9b::8.8.8.8",
            "64:ff9b::169.254.169.254",
            "64:ff9b:1::10.0.0.1",
            "2001:0:4136:e378:8000:63bf:3fff:fdd2",
            "2002:7f00:1::",
            "2002:808:808::1",
            "100::1",
            "5f00::1",
            "fec0::1",
        ] {
            assert!(!public(text), "{text}");
        }
        assert!(public("::ffff:8.8.8.8"), "mapped, judged as 8.8.8.8");
        assert!(public("2606:4700:4700::1111"));
    }

    proptest! {
        #[test]
        fn the_standard_library_knows_no_private_address_that_we_call_public(bits: u32) {
            let v4 = Ipv4Addr::from_bits(bits);
            let special = v4.is_private() || v4.is_loopback() || v4.is_link_local() || v4.is_multicast()
                || v4.is_broadcast() || v4.is_documentation() || v4.is_unspecified();
            prop_assert!(!(special && is_public(v4.into())), "{}", v4);
            prop_assert_eq!(is_public(v4.into()), is_public(v4.to_ipv6_mapped().into()));
            prop_assert!(!is_public(v4.to_ipv6_compatible().into()));
        }
    }
}
