//! The operator's allow list: `CANVAS_EGRESS_ALLOW` (docs/reference/webhooks.md#allow-list).

use std::net::IpAddr;

use ipnet::IpNet;
use url::{Host, Url};

/// Targets that an operator permits although they are not public. Plain http cannot be permitted.
///
/// - A `host:port` is compared with host and port of the parsed URL. The addresses that it resolves to are not checked.
/// - A CIDR is compared with the address: a literal in the URL, or each address that a name resolves to. It does not permit a
///   *name* that is rejected by its form (`hooks.internal`); list that as `host:port`.
///
/// The default permits nothing. There are no built-in names.
#[derive(Clone, Debug, Default)]
pub struct AllowList {
    blocks: Vec<IpNet>,
    targets: Vec<(Host, u16)>,
}

/// The reason why an allow list is rejected; the text names the entry.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum AllowListError {
    /// An entry with a `/` is not a CIDR, or has bits set beyond its prefix.
    #[error("`{0}` is not a CIDR block such as 10.20.0.0/16 (no bits may be set beyond the prefix)")]
    Block(String),
    /// An entry without a `/` is not a `host:port`.
    #[error("`{0}` is not host:port such as hooks.corp.example:8443")]
    Target(String),
}

impl AllowList {
    /// Parses comma-separated CIDRs and `host:port` entries. White space around entries and empty entries are ignored, so that
    /// an unset variable and a trailing comma are no errors. An IPv6 host is written in brackets.
    ///
    /// # Errors
    ///
    /// The first entry that is neither, so that a mistake is reported at the start and not at the first delivery.
    pub fn parse(text: &str) -> Result<Self, AllowListError> {
        let mut list = Self::default();
        for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            if entry.contains('/') {
                list.blocks.push(parse_block(entry).ok_or_else(|| AllowListError::Block(entry.to_owned()))?);
            } else {
                list.targets.push(parse_target(entry).ok_or_else(|| AllowListError::Target(entry.to_owned()))?);
            }
        }
        Ok(list)
    }

    /// Returns `true` if a CIDR contains `address`. An IPv4-mapped address is compared as the IPv4 address that it stands for.
    pub(crate) fn admits_address(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.blocks.iter().any(|block| block.contains(&address))
    }

    /// Returns `true` if a `host:port` equals that of `url`.
    pub(crate) fn admits_target(&self, url: &Url) -> bool {
        let (Some(host), Some(port)) = (url.host(), url.port_or_known_default()) else {
            return false;
        };
        self.targets.iter().any(|(listed, listed_port)| *listed == host && *listed_port == port)
    }
}

/// Parses `network/prefix` (RFC 4632 section 3.1, RFC 4291 section 2.3). `None` when the text is not a CIDR, when bits beyond the
/// prefix are set (more likely a mistake than an intention), or when the network is IPv4-mapped: addresses are compared in
/// canonical form, so such a block would never match.
fn parse_block(entry: &str) -> Option<IpNet> {
    let (network, prefix) = entry.split_once('/')?;
    // Parsed by the standard library: `IpNet` accepts leading zeros, which other programs read as octal.
    let network: IpAddr = network.parse().ok()?;
    let block = IpNet::new(network, prefix.parse().ok()?).ok()?;
    (block.network() == network && network.to_canonical() == network).then_some(block)
}

/// Parses the host like that of a URL, so that both are compared in the same normal form.
fn parse_target(entry: &str) -> Option<(Host, u16)> {
    let (host, port) = entry.rsplit_once(':')?;
    let port: u16 = port.parse().ok().filter(|port| *port != 0)?;
    let host = match Host::parse(host).ok()? {
        Host::Domain(name) => Host::Domain(normal_name(&name)?.to_owned()),
        literal => literal,
    };
    Some((host, port))
}

/// The name without the trailing dot of an absolute name, or `None` when it cannot be a DNS name (RFC 1035 section 2.3.4, plus
/// `_`, which occurs in real host names). `name` comes from the URL parser: lower case, IDNA applied.
pub(crate) fn normal_name(name: &str) -> Option<&str> {
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_label = |label: &str| {
        (1..=63).contains(&label.len()) && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    (name.len() <= 253 && name.split('.').all(is_label)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admits(list: &str, url: &str) -> bool {
        AllowList::parse(list).unwrap().admits_target(&Url::parse(url).unwrap())
    }

    #[test]
    fn an_empty_list_admits_nothing() {
        for text in ["", " ", ",", " , ,"] {
            let list = AllowList::parse(text).unwrap();
            assert!(!list.admits_address("10.0.0.1".parse().unwrap()));
            assert!(!list.admits_target(&Url::parse("https://localhost/").unwrap()));
        }
    }

    #[test]
    fn a_target_is_compared_by_host_and_port_in_normal_form() {
        assert!(admits("receiver:8443", "https://receiver:8443/hook"));
        assert!(admits("Receiver.:8443", "https://RECEIVER:8443"));
        assert!(admits("receiver:443", "https://receiver/"));
        assert!(admits("bücher.example:443", "https://xn--bcher-kva.example/"));
        assert!(admits("127.0.0.1:8443", "https://2130706433:8443/"));
        assert!(admits("[::1]:8443", "https://[0:0::1]:8443/"));
        assert!(!admits("receiver:8443", "https://receiver/"));
        assert!(!admits("receiver:8443", "https://receiver:8444/"));
        assert!(!admits("receiver:8443", "https://other.receiver:8443/"));
        assert!(!admits("receiver:8443", "https://receiver.other:8443/"));
    }

    #[test]
    fn a_block_is_compared_by_canonical_address() {
        let list = AllowList::parse(" 10.1.0.0/16 , fd00::/8,").unwrap();
        assert!(list.admits_address("10.1.255.255".parse().unwrap()));
        assert!(list.admits_address("::ffff:10.1.0.0".parse().unwrap()));
        assert!(list.admits_address("fd12::1".parse().unwrap()));
        assert!(!list.admits_address("10.2.0.0".parse().unwrap()));
        assert!(!list.admits_address("fe80::1".parse().unwrap()));
        let list = AllowList::parse("0.0.0.0/0").unwrap();
        assert!(list.admits_address("255.255.255.255".parse().unwrap()));
        assert!(!list.admits_address("::1".parse().unwrap()));
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
            "010.0.0.0/8",
            "::/129",
            "fd00::1/8",
            "10.0.0.0/-1",
            "10.0.0.0/8/8",
            "::ffff:10.0.0.0/104",
            "[fd00::]/8",
            "host/8",
        ] {
            assert_eq!(parse_block(text), None, "{text}");
        }
    }

    #[test]
    fn a_malformed_entry_is_named() {
        for text in ["10.0.0.1/8", "10.0.0.0/33", "https://host:443", "host:443/path"] {
            assert_eq!(AllowList::parse(&format!("a:1,{text}")).unwrap_err(), AllowListError::Block(text.to_owned()));
        }
        for text in [
            "host",
            "host:",
            "host:0",
            "host:65536",
            ":443",
            "*:443",
            "*.example.com:443",
            "::1",
            "a b:443",
            "a..b:443",
        ] {
            assert_eq!(AllowList::parse(text).unwrap_err(), AllowListError::Target(text.to_owned()));
        }
        assert!(AllowList::parse("*").unwrap_err().to_string().contains("`*`"));
    }

    #[test]
    fn a_name_is_held_to_the_lengths_of_dns() {
        let label = "a".repeat(63);
        assert!(normal_name(&label).is_some());
        assert!(normal_name(&"a".repeat(64)).is_none());
        let longest = format!("{label}.{label}.{label}.{}", "a".repeat(61));
        assert_eq!(longest.len(), 253);
        assert!(normal_name(&longest).is_some());
        assert!(normal_name(&format!("{longest}a")).is_none());
        for name in ["", ".", "a..", ".a", "a..b", "a*b", "a b"] {
            assert_eq!(normal_name(name), None, "{name}");
        }
        assert_eq!(normal_name("a.b."), Some("a.b"));
    }
}
