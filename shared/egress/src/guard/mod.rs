//! Checks of a URL's form, and of addresses (docs/reliability.md#egress-guard).

use std::net::IpAddr;
use std::sync::Arc;

use url::{Host, Url};

use crate::address::is_public;
use crate::allow::{AllowList, normal_name};

/// Names that mean this machine or its network, each with all its subdomains: `localhost` (RFC 6761), mDNS's `local` (RFC
/// 6762), ICANN's `internal`, `home.arpa` (RFC 8375).
const NOT_PUBLIC_SUFFIXES: [&str; 4] = ["localhost", "local", "internal", "home.arpa"];

/// The first port that is permitted, besides 443. Below it are services that are no HTTP servers and may act on what they read
/// before they notice, such as mail. Servers of applications listen above it (8443, for example).
const FIRST_PORT: u16 = 1024;

/// Decides which destinations are permitted for outbound calls. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    allow: Arc<AllowList>,
}

/// The reason why a URL is rejected. The text is shown to the caller: it names the rule, and discloses nothing about our network.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
pub enum UrlRefusal {
    /// Not a URL, or written in a way that parsers interpret differently: white space, control characters, backslashes, `%` in
    /// the authority, too few or too many slashes, a host that is not a DNS name.
    #[error("the URL is not well formed")]
    Malformed,
    /// A scheme other than https.
    #[error("the URL must use https")]
    Scheme,
    /// A user name or a password, even an empty one.
    #[error("the URL must not carry credentials")]
    UserInfo,
    /// A fragment, even an empty one.
    #[error("the URL must not carry a fragment")]
    Fragment,
    /// A port below 1024 other than 443.
    #[error("the URL must use port 443 or a port from 1024 on")]
    Port,
    /// An IP literal or a name that is not public.
    #[error("the URL must name a public host")]
    NotPublic,
}

impl Guard {
    /// A guard that permits public destinations and those in `allow`.
    #[must_use]
    pub fn new(allow: AllowList) -> Self {
        Self { allow: Arc::new(allow) }
    }

    /// Checks a URL by its form alone, without a lookup, and returns it in normal form: host in
    /// lower case, IDNA applied, IP literals canonical, no trailing dot. A public name may still
    /// resolve to an address that [`check_address`](Self::check_address) rejects;
    /// [`Client::send`](crate::Client::send) checks that.
    ///
    /// Only the `url` crate parses the URL. The text itself is examined only for what that parser
    /// silently repairs or drops (WHATWG URL section 4.4), and only to reject it. Two parsers can
    /// therefore not disagree about an accepted URL.
    ///
    /// # Errors
    ///
    /// The first rule that the URL violates.
    pub fn check_url(&self, text: &str) -> Result<Url, UrlRefusal> {
        let url = well_formed(text, &["https"])?;
        if self.lists(&url) {
            return Ok(url);
        }
        if url.port().is_some_and(|port| port < FIRST_PORT) {
            return Err(UrlRefusal::Port);
        }
        let is_public = match url.host() {
            Some(Host::Domain(name)) => is_public_name(name),
            Some(Host::Ipv4(address)) => self.check_address(address.into()),
            Some(Host::Ipv6(address)) => self.check_address(address.into()),
            None => false,
        };
        if is_public { Ok(url) } else { Err(UrlRefusal::NotPublic) }
    }

    /// Returns `true` if a connection to `address` is permitted: it is public, or a CIDR of the allow list contains it.
    #[must_use]
    pub fn check_address(&self, address: IpAddr) -> bool {
        is_public(address) || self.allow.admits_address(address)
    }

    /// Returns `true` if the allow list contains the URL's `host:port`, so that its addresses are not checked.
    pub(crate) fn lists(&self, url: &Url) -> bool {
        self.allow.admits_target(url)
    }
}

/// Checks the rules that apply to every destination with one of `schemes`, whoever chose it, and
/// returns the URL in normal form. Does not check whether the host is permitted.
pub(crate) fn well_formed(text: &str, schemes: &[&str]) -> Result<Url, UrlRefusal> {
    if text.chars().any(|c| c.is_whitespace() || c.is_control() || c == '\\') {
        return Err(UrlRefusal::Malformed);
    }
    let mut url = Url::parse(text).map_err(|_| UrlRefusal::Malformed)?;
    if !schemes.contains(&url.scheme()) {
        return Err(UrlRefusal::Scheme);
    }
    let authority = authority(text).filter(|it| !it.is_empty()).ok_or(UrlRefusal::Malformed)?;
    if authority.contains('@') || !url.username().is_empty() || url.password().is_some() {
        return Err(UrlRefusal::UserInfo);
    }
    if authority.contains('%') {
        return Err(UrlRefusal::Malformed);
    }
    if url.fragment().is_some() {
        return Err(UrlRefusal::Fragment);
    }
    if url.port() == Some(0) {
        return Err(UrlRefusal::Port);
    }
    if let Some(Host::Domain(name)) = url.host() {
        let normal = normal_name(name).ok_or(UrlRefusal::Malformed)?.to_owned();
        url.set_host(Some(&normal)).map_err(|_| UrlRefusal::Malformed)?;
    }
    Ok(url)
}

/// The authority as written. `None` when no `://` follows the scheme directly: the parser would have inserted slashes.
fn authority(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once("://")?;
    let is_scheme = scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http");
    is_scheme.then(|| rest.split(['/', '?', '#']).next().unwrap_or(rest))
}

/// Returns `true` if `name` (in normal form) can be public: more than one label, and under no suffix that is not public.
fn is_public_name(name: &str) -> bool {
    let under = |suffix: &str| name.strip_suffix(suffix).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    name.contains('.') && !NOT_PUBLIC_SUFFIXES.iter().any(|suffix| under(suffix))
}

#[cfg(test)]
mod tests;
