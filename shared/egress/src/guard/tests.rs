use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::UrlRefusal::{Fragment, Malformed, NotPublic, Port, Scheme, UserInfo};
use super::*;

fn guard(allow: &str) -> Guard {
    Guard::new(AllowList::parse(allow).unwrap())
}

fn check(text: &str) -> Result<String, UrlRefusal> {
    guard("").check_url(text).map(String::from)
}

#[test]
fn public_urls_pass_in_normal_form() {
    for (text, normal) in [
        ("https://example.com", "https://example.com/"),
        ("https://example.com/a?b=c%20d", "https://example.com/a?b=c%20d"),
        ("HTTPS://EXAMPLE.com:443/", "https://example.com/"),
        ("https://example.com.:8443/x", "https://example.com:8443/x"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://ｅｘａｍｐｌｅ.com/", "https://example.com/"),
        ("https://example。com/", "https://example.com/"),
        ("https://a_b.example.com/", "https://a_b.example.com/"),
        ("https://localhost.example.com/", "https://localhost.example.com/"),
        ("https://notlocal.example/", "https://notlocal.example/"),
        ("https://mylocalhost.com/", "https://mylocalhost.com/"),
        ("https://xhome.arpa/", "https://xhome.arpa/"),
        ("https://8.8.8.8/", "https://8.8.8.8/"),
        ("https://134744072/", "https://8.8.8.8/"),
        ("https://[2606:4700:4700::1111]:65535/", "https://[2606:4700:4700::1111]:65535/"),
        ("https://[::ffff:8.8.8.8]/", "https://[::ffff:808:808]/"),
        ("https://example.com/@:%23%40", "https://example.com/@:%23%40"),
        ("https://example.com:1024/", "https://example.com:1024/"),
    ] {
        assert_eq!(check(text).as_deref(), Ok(normal), "{text}");
    }
}

#[test]
fn urls_that_parsers_read_differently_are_malformed() {
    for text in [
        "",
        "https",
        "https://",
        "https:///",
        "https:///example.com/",
        "https:example.com",
        "https:/example.com",
        "https:\\\\example.com\\",
        "https://example.com\\@127.0.0.1/",
        "https://example.com/\\",
        "https://example.com/?\\",
        " https://example.com/",
        "https://example.com/ ",
        "https://example.com/a b",
        "https://exam\tple.com/",
        "https://exam\nple.com/",
        "https://example.com/\r\nHost:x",
        "https://example.com/\0",
        "https://example.com/\u{7f}",
        "https://example.com/\u{85}",
        "https://example.com\u{3000}/",
        "https://example.com/\u{a0}",
        "https://%65xample.com/",
        "https://%31%32%37.0.0.1/",
        "https://example.com%00/",
        "https://[fe80::1%25eth0]/",
        "https://[fe80::1%eth0]/",
        "https://[::1/",
        "https://[::1]x/",
        "https://::1/",
        "https://example.com:65536/",
        "https://example.com:x/",
        "https://example..com/",
        "https://.example.com/",
        "https://example.com../",
        "https://./",
        "https://../",
        "https://256.0.0.1/",
        "https://1.2.3.4.5/",
        "https://0x100000000/",
        "https://foo.0x4/",
        "https://exa*mple.com/",
        "https://exa,mple.com/",
        "https://exa<mple.com/",
        "//example.com/",
        "example.com",
    ] {
        assert_eq!(check(text), Err(Malformed), "{text:?}");
    }
    let label = "a".repeat(64);
    assert_eq!(check(&format!("https://{label}.com/")), Err(Malformed));
}

#[test]
fn only_https_without_credentials_fragment_or_a_low_port_passes() {
    for (text, refusal) in [
        ("http://example.com/", Scheme),
        ("ftp://example.com/", Scheme),
        ("file:///etc/passwd", Scheme),
        ("data:text/plain,x", Scheme),
        ("httpss://example.com/", Scheme),
        ("https://user@example.com/", UserInfo),
        ("https://user:secret@example.com/", UserInfo),
        ("https://:secret@example.com/", UserInfo),
        ("https://@example.com/", UserInfo),
        ("https://:@example.com/", UserInfo),
        ("https://example.com@127.0.0.1/", UserInfo),
        ("https://a%40b@example.com/", UserInfo),
        ("https://example.com/#", Fragment),
        ("https://example.com#x", Fragment),
        ("https://example.com/?q#x", Fragment),
        ("https://example.com:0/", Port),
        ("https://example.com:00/", Port),
        ("https://example.com:1/", Port),
        ("https://example.com:25/", Port),
        ("https://example.com:80/", Port),
        ("https://example.com:442/", Port),
        ("https://example.com:444/", Port),
        ("https://example.com:1023/", Port),
        ("https://8.8.8.8:22/", Port),
    ] {
        assert_eq!(check(text), Err(refusal), "{text}");
    }
}

#[test]
fn names_and_literals_that_are_not_public_are_refused_in_every_disguise() {
    for host in [
        // Host names.
        "localhost",
        "LOCALHOST",
        "localhost.",
        "ｌｏｃａｌｈｏｓｔ",
        "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ",
        "local\u{ad}host",
        "local\u{200b}host",
        "foo.localhost",
        "foo.LocalHost.",
        "printer.local",
        "printer。local",
        "metadata.google.internal",
        "a.internal.",
        "home.arpa",
        "nas.home.arpa",
        "intranet",
        "intranet.",
        "com",
        // IPv4 in dotted form, one of each kind.
        "0.0.0.0",
        "10.0.0.1",
        "100.64.0.1",
        "127.0.0.1",
        "127.0.0.1.",
        "168.63.129.16",
        "169.254.169.254",
        "172.16.0.1",
        "192.168.0.1",
        "198.18.0.1",
        "224.0.0.1",
        "255.255.255.255",
        // The same addresses in other spellings.
        "2130706433",
        "0x7f000001",
        "0X7F000001",
        "0x7f.0.0.1",
        "017700000001",
        "0177.0.0.1",
        "127.1",
        "127.0.1",
        "0",
        "0x",
        "0x0",
        "10.1",
        "0xa9fea9fe",
        "0251.0376.0251.0376",
        "169.254.43518",
        "１２７.０.０.１",
        "127。0。0。1",
        "①②⑦.0.0.1",
        // IPv6.
        "[::]",
        "[::1]",
        "[0:0:0:0:0:0:0:1]",
        "[::127.0.0.1]",
        "[::ffff:127.0.0.1]",
        "[::FFFF:7f00:1]",
        "[::ffff:0:8.8.8.8]",
        "[64:ff9b::8.8.8.8]",
        "[64:ff9b:1::1]",
        "[2001::1]",
        "[2001:db8::1]",
        "[2002:7f00:1::]",
        "[3fff::1]",
        "[fc00::1]",
        "[fd00:ec2::254]",
        "[fe80::1]",
        "[fec0::1]",
        "[ff02::1]",
    ] {
        for text in [format!("https://{host}/"), format!("https://{host}:8443/x?y")] {
            assert_eq!(check(&text), Err(NotPublic), "{text}");
        }
    }
}

#[test]
fn a_listed_target_passes_by_form_with_that_port_alone() {
    let guard = guard("receiver:8443,127.0.0.1:9443,hooks.internal:443");
    for text in ["https://receiver:8443/", "https://RECEIVER.:8443/", "https://127.1:9443/", "https://hooks.internal/"]
    {
        assert!(guard.check_url(text).is_ok(), "{text}");
    }
    for text in
        ["https://receiver/", "https://127.0.0.1:8443/", "https://hooks.internal:8443/", "https://a.hooks.internal/"]
    {
        assert_eq!(guard.check_url(text), Err(NotPublic), "{text}");
    }
    assert!(!guard.check_address("127.0.0.1".parse().unwrap()), "a target admits no address");
}

#[test]
fn a_listed_target_may_have_any_port_and_a_listed_block_no_other_than_the_public_ones() {
    let guard = guard("receiver:80,hooks.example:81,10.20.0.0/16");
    for text in ["https://receiver:80/", "https://hooks.example:81/", "https://10.20.0.1:8080/"] {
        assert!(guard.check_url(text).is_ok(), "{text}");
    }
    for text in ["https://hooks.example:82/", "https://10.20.0.1:80/", "https://receiver:81/"] {
        assert_eq!(guard.check_url(text), Err(Port), "{text}");
    }
}

#[test]
fn a_listed_target_is_held_to_every_other_rule() {
    let guard = guard("receiver:8443,receiver:80");
    assert_eq!(guard.check_url("http://receiver:8443/"), Err(Scheme));
    assert_eq!(guard.check_url("http://receiver/"), Err(Scheme));
    assert_eq!(guard.check_url("https://a@receiver:8443/"), Err(UserInfo));
    assert_eq!(guard.check_url("https://receiver:8443/#"), Err(Fragment));
}

#[test]
fn a_listed_block_admits_literals_and_addresses_but_no_private_name() {
    let guard = guard("10.20.0.0/16,fd00:1::/32");
    for text in ["https://10.20.0.1/", "https://[::ffff:10.20.255.255]/", "https://[fd00:1::1]:8443/"] {
        assert!(guard.check_url(text).is_ok(), "{text}");
    }
    for text in ["https://10.21.0.1/", "https://[fd00:2::1]/", "https://hooks.internal/", "https://receiver/"] {
        assert_eq!(guard.check_url(text), Err(NotPublic), "{text}");
    }
    assert!(guard.check_address("10.20.3.4".parse().unwrap()));
    assert!(!guard.check_address("10.19.255.255".parse().unwrap()));
}

#[test]
fn a_refusal_tells_the_caller_a_rule_and_no_address() {
    let refusal = guard("").check_url("https://10.20.30.40/").unwrap_err();
    assert_eq!(refusal.to_string(), "the URL must name a public host");
}

/// An IPv4 address in one of the spellings that URL parsers or `inet_aton` accept.
fn spelling(address: Ipv4Addr, form: usize) -> String {
    let [a, b, c, d] = address.octets();
    let bits = address.to_bits();
    match form {
        0 => address.to_string(),
        1 => bits.to_string(),
        2 => format!("{bits:#x}"),
        3 => format!("0{bits:o}"),
        4 => format!("{a:#x}.{b}.0{c:o}.{d}"),
        5 => format!("{a}.{}", bits & 0x00ff_ffff),
        6 => format!("{a}.{b}.{}", bits & 0xffff),
        7 => format!("{address}."),
        8 => address.to_string().chars().map(fullwidth).collect(),
        9 => format!("[{}]", address.to_ipv6_mapped()),
        10 => format!("[{}]", address.to_ipv6_compatible()),
        11 => format!("[64:ff9b::{address}]"),
        12 => address.to_string().bytes().map(|byte| format!("%{byte:02x}")).collect(),
        _ => format!("[2002:{a:02x}{b:02x}:{c:02x}{d:02x}::1]"),
    }
}

fn fullwidth(c: char) -> char {
    match c {
        '0'..='9' => char::from_u32(u32::from(c) - u32::from('0') + 0xff10).unwrap(),
        _ => '\u{ff0e}',
    }
}

/// Addresses that are not public, each kind equally likely, written independently of our tables.
fn not_public_v4() -> impl Strategy<Value = Ipv4Addr> {
    let low = any::<u32>();
    (
        prop_oneof![
            Just((0x0000_0000, 8)),
            Just((0x0a00_0000, 8)),
            Just((0x6440_0000, 10)),
            Just((0x7f00_0000, 8)),
            Just((0xa9fe_0000, 16)),
            Just((0xac10_0000, 12)),
            Just((0xc0a8_0000, 16)),
            Just((0xc612_0000, 15)),
            Just((0xe000_0000, 3)),
        ],
        low,
    )
        .prop_map(|((network, prefix), low): ((u32, u32), u32)| {
            Ipv4Addr::from_bits(network | low & (u32::MAX >> prefix))
        })
}

proptest! {
    #[test]
    fn no_spelling_of_a_private_address_passes(address in not_public_v4(), form in 0_usize..14, port in 1_u16..) {
        let text = format!("https://{}:{port}/hook", spelling(address, form));
        prop_assert!(guard("").check_url(&text).is_err(), "{}", text);
    }

    #[test]
    fn whatever_passes_is_plain_https_to_a_public_host(
        text in prop_oneof![
            ".{0,40}",
            "[hH]ttps:[/\\\\]{0,3}[0-9a-fxX.:@%\\[\\]#０-９。]{1,24}[/?#]?",
            "https://(localhost|a\\.local|[a-z]{1,4}\\.internal|0x7f|127|\\[::ffff:7f00:1\\])[.:0-9a-z]{0,6}/?",
        ],
    ) {
        if let Ok(url) = guard("").check_url(&text) {
            prop_assert_eq!(url.scheme(), "https");
            prop_assert!(url.username().is_empty() && url.password().is_none() && url.fragment().is_none());
            prop_assert!(url.port().is_none_or(|port| port >= 1024), "{}", url);
            match url.host().unwrap() {
                Host::Ipv4(v4) => prop_assert!(is_public(v4.into()), "{}", url),
                Host::Ipv6(v6) => prop_assert!(is_public(v6.into()), "{}", url),
                Host::Domain(name) => {
                    prop_assert!(name.contains('.') && name.parse::<Ipv4Addr>().is_err(), "{}", url);
                    prop_assert!(![".localhost", ".local", ".internal", ".home.arpa", "."].iter().any(|s| name.ends_with(s)), "{}", url);
                }
            }
            // The normal form is stored, so it must get the same result when it is sent.
            prop_assert_eq!(guard("").check_url(url.as_str()), Ok(url));
        }
    }

    #[test]
    fn a_literal_passes_exactly_when_its_address_is_public(bits: u128, v4: u32) {
        for address in [IpAddr::V6(Ipv6Addr::from_bits(bits)), IpAddr::V6(Ipv6Addr::from_bits(bits >> 3 | 1 << 125)), IpAddr::V4(Ipv4Addr::from_bits(v4))] {
            let host = match address {
                IpAddr::V4(v4) => v4.to_string(),
                IpAddr::V6(v6) => format!("[{v6}]"),
            };
            prop_assert_eq!(guard("").check_url(&format!("https://{host}/")).is_ok(), is_public(address), "{}", host);
        }
    }
}
