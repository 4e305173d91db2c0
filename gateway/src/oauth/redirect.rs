//! Where the answer to an authorization request may be sent (docs/reference/oauth.md#redirect-addresses).
//!
//! **Guarantee.** An address in a request is one that the client registered, byte for byte; on a loopback address the port alone may
//! differ. No address has a user, a fragment, or a scheme that browsers give a meaning.
//!
//! **Reason.** Addresses are compared as they are written and never normalized: what two parsers read differently cannot match.

use domain::limits::REDIRECT_URI_MAX;
use url::Url;

/// Hosts that are this computer, as they have to be written.
const LOOPBACK: [&str; 3] = ["127.0.0.1", "[::1]", "localhost"];

/// The parts of an address, as they are written.
struct Written<'a> {
    scheme: &'a str,
    host: &'a str,
    /// The path and the query.
    rest: &'a str,
}

impl<'a> Written<'a> {
    /// Parts of an address without a user or a fragment; `None` for any other text.
    fn parse(uri: &'a str) -> Option<Self> {
        let is_plain = uri.bytes().all(|byte| byte.is_ascii_graphic() && !b"\\\"<>^`{|}#".contains(&byte));
        if uri.len() > REDIRECT_URI_MAX || !is_plain {
            return None;
        }
        let (scheme, after) = uri.split_once("://")?;
        let end = after.find(['/', '?']).unwrap_or(after.len());
        let (authority, rest) = after.split_at(end);
        let (host, port) = match authority.rfind(':').filter(|colon| !authority[*colon..].contains(']')) {
            Some(colon) => (&authority[..colon], Some(&authority[colon + 1..])),
            None => (authority, None),
        };
        let is_port = |port: &str| port.parse::<u16>().is_ok() && port.bytes().all(|byte| byte.is_ascii_digit());
        let fits = !host.is_empty() && !authority.contains('@') && port.is_none_or(is_port);
        // What follows must be an address for browsers, too.
        (fits && Url::parse(uri).is_ok()).then_some(Self { scheme, host, rest })
    }

    fn is_loopback(&self) -> bool {
        self.scheme == "http" && LOOPBACK.contains(&self.host)
    }

    /// The path and the query; no path is `/`.
    fn path(&self) -> &str {
        if self.rest.is_empty() { "/" } else { self.rest }
    }
}

/// Returns `true` if a client may have its answers sent to an address; `schemes` are the private ones that the operator allows.
pub fn is_usable(uri: &str, schemes: &[String]) -> bool {
    Written::parse(uri).is_some_and(|written| {
        written.scheme == "https" || written.is_loopback() || schemes.iter().any(|scheme| scheme == written.scheme)
    })
}

/// Returns `true` if an address in a request is a registered one.
pub fn matches(registered: &str, presented: &str) -> bool {
    let both_on_this_computer = || {
        let (registered, presented) = (Written::parse(registered)?, Written::parse(presented)?);
        let is_equal = registered.host == presented.host && registered.path() == presented.path();
        Some(registered.is_loopback() && presented.is_loopback() && is_equal)
    };
    registered == presented || both_on_this_computer().unwrap_or(false)
}

/// What kind of program gets the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A web server.
    Web,
    /// A program on the person's own computer.
    Loopback,
    /// A program on the person's own computer, by a private scheme.
    Private,
}

/// The kind of program at a usable address, and its host.
pub fn target(uri: &str) -> (Target, String) {
    let Some(written) = Written::parse(uri) else { return (Target::Web, String::new()) };
    let target = match written.scheme {
        _ if written.is_loopback() => Target::Loopback,
        "https" => Target::Web,
        _ => Target::Private,
    };
    // As browsers read it.
    let host = Url::parse(uri).ok().and_then(|url| url.host_str().map(str::to_owned));
    (target, host.unwrap_or_else(|| written.host.to_owned()))
}

/// `uri` with more parameters in its query.
pub fn with_parameters<'a>(uri: &str, parameters: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(parameters).finish();
    let separator = if uri.contains('?') { '&' } else { '?' };
    format!("{uri}{separator}{query}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_usable(uri: &str) -> bool {
        super::is_usable(uri, &["cursor".to_owned()])
    }

    #[test]
    fn an_address_is_https_or_on_this_computer_or_of_an_allowed_scheme() {
        for good in [
            "https://app.example/callback",
            "https://app.example",
            "https://app.example:8443/cb?x=1",
            "http://127.0.0.1:33418",
            "http://127.0.0.1/",
            "http://localhost/callback",
            "http://[::1]:80/callback",
            "cursor://anysphere.cursor-mcp/oauth/callback",
        ] {
            assert!(is_usable(good), "{good}");
        }
        let longest = format!("https://app.example/{}", "a".repeat(REDIRECT_URI_MAX - 20));
        assert!(is_usable(&longest) && !is_usable(&format!("{longest}a")));
        for wrong in [
            "",
            "callback",
            "/callback",
            "javascript:alert(1)",
            "javascript://app.example/%0aalert(1)",
            "data:text/html,x",
            "file:///etc/passwd",
            "http://192.168.1.5/",
            "http://app.example/callback",
            "http://localhost.evil.example/cb",
            "http://127.0.0.1.nip.io/",
            "http://[::ffff:127.0.0.1]/",
            "http://127.1/",
            "http://2130706433/",
            "http://LOCALHOST/",
            "http://127.0.0.1@evil.example/",
            "https://user@app.example/",
            "https://app.example/#x",
            "https://app.example\\@evil.example/",
            "https://app.example/ x",
            "https:app.example",
            "https:///callback",
            "https://app.example:port/",
            "https://app.example:+80/",
            "https://app.example:99999/",
            "HTTPS://app.example/",
            "cursor:callback",
            "cursor:///callback",
            "vscode://host/callback",
            "https://äpp.example/",
        ] {
            assert!(!is_usable(wrong), "{wrong}");
        }
    }

    #[test]
    fn an_address_matches_byte_for_byte_but_for_the_port_of_this_computer() {
        for (registered, presented) in [
            ("https://app.example/cb", "https://app.example/cb"),
            ("http://127.0.0.1:33418", "http://127.0.0.1:5000/"),
            ("http://localhost/callback", "http://localhost:51234/callback"),
            ("http://[::1]/cb?a=1", "http://[::1]:9/cb?a=1"),
            ("cursor://host/cb", "cursor://host/cb"),
        ] {
            assert!(matches(registered, presented), "{registered} {presented}");
        }
        for (registered, presented) in [
            ("https://app.example/cb", "https://app.example/cb/"),
            ("https://app.example/cb", "https://app.example/cb2"),
            ("https://app.example/cb", "https://app.example/c"),
            ("https://app.example/cb", "https://app.example/%63b"),
            ("https://app.example/cb", "https://app.example/%2e%2e/cb"),
            ("https://app.example/cb", "https://App.example/cb"),
            ("https://app.example/cb", "https://app.example:443/cb"),
            ("https://app.example/cb", "https://user@app.example/cb"),
            ("https://app.example/cb", "https://app.example/cb#x"),
            ("https://app.example/cb", "https://app.example/cb?x=1"),
            ("https://app.example/cb", "http://app.example/cb"),
            ("http://127.0.0.1/cb", "http://localhost/cb"),
            ("http://127.0.0.1/cb", "http://127.0.0.1.evil.example/cb"),
            ("http://127.0.0.1/cb", "http://127.0.0.1:80@evil.example/cb"),
            ("http://127.0.0.1/cb", "http://127.0.0.1:1/cb/../x"),
            ("http://127.0.0.1/cb", "https://127.0.0.1/cb"),
            ("cursor://host/cb", "cursor://host:1/cb"),
        ] {
            assert!(!matches(registered, presented), "{registered} {presented}");
        }
    }

    /// Compares with what a parser of URLs says, for every combination of parts.
    #[test]
    fn matching_agrees_with_a_second_implementation() {
        let schemes = ["http", "https", "cursor"];
        let hosts = ["127.0.0.1", "[::1]", "localhost", "app.example", "127.0.0.1.nip.io", "localhost.example"];
        let ports = ["", ":1", ":8080", ":443"];
        let paths = ["", "/", "/cb", "/cb/", "/cb?x=1", "/c%62", "/a/../cb"];
        let mut uris = Vec::new();
        for scheme in schemes {
            for host in hosts {
                for port in ports {
                    uris.extend(paths.iter().map(|path| format!("{scheme}://{host}{port}{path}")));
                }
            }
        }
        let second = |registered: &str, presented: &str| {
            let loopback = |uri: &str| {
                let url = Url::parse(uri).ok()?;
                let host = url.host_str()?.to_owned();
                let is_loopback =
                    url.scheme() == "http" && ["127.0.0.1", "[::1]", "localhost"].contains(&host.as_str());
                // The path as it is written.
                let written =
                    uri.splitn(4, '/').nth(3).map(|rest| format!("/{rest}")).unwrap_or_else(|| "/".to_owned());
                is_loopback.then_some((host, written))
            };
            registered == presented || (loopback(registered).is_some() && loopback(registered) == loopback(presented))
        };
        for registered in &uris {
            for presented in &uris {
                assert_eq!(matches(registered, presented), second(registered, presented), "{registered} {presented}");
            }
        }
    }

    #[test]
    fn a_target_is_told_with_its_host() {
        for (uri, kind, host) in [
            ("https://claude.ai/api/mcp/auth_callback", Target::Web, "claude.ai"),
            ("http://localhost:1/cb", Target::Loopback, "localhost"),
            ("cursor://anysphere.cursor-mcp/cb", Target::Private, "anysphere.cursor-mcp"),
            ("https://Claude.AI/", Target::Web, "claude.ai"),
        ] {
            assert_eq!(target(uri), (kind, host.to_owned()), "{uri}");
        }
    }

    #[test]
    fn parameters_are_added_to_a_query() {
        let parameters = || [("code", "a b&c"), ("state", "ü")];
        assert_eq!(
            with_parameters("https://a.example/cb", parameters()),
            "https://a.example/cb?code=a+b%26c&state=%C3%BC"
        );
        assert_eq!(
            with_parameters("https://a.example/cb?x=1", parameters()),
            "https://a.example/cb?x=1&code=a+b%26c&state=%C3%BC"
        );
    }
}
