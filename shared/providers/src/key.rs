//! The credential for a provider.

use std::fmt;

use http::HeaderValue;
use zeroize::Zeroizing;

/// A credential. It is wiped when dropped, hidden from `Debug`, and has no `Display`.
#[derive(Clone)]
pub struct ApiKey(Zeroizing<String>);

impl ApiKey {
    /// Takes a key; `None` when it cannot be sent in a header (empty, or not visible ASCII).
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = Zeroizing::new(text.into());
        (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())).then_some(Self(text))
    }

    /// A header value of `prefix` and the key, marked as sensitive so that no HTTP library logs it.
    pub(crate) fn header(&self, prefix: &str) -> HeaderValue {
        let text = Zeroizing::new(format!("{prefix}{}", self.0.as_str()));
        let mut value = HeaderValue::from_str(&text).expect("prefix and key are visible ASCII");
        value.set_sensitive(true);
        value
    }

    /// Removes the key from `text`, because providers quote wrong keys in error messages.
    pub(crate) fn scrub(&self, text: &str) -> String {
        text.replace(self.0.as_str(), "[hidden]")
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_never_shown() {
        let key = ApiKey::new("sk-secret").unwrap();
        assert_eq!(format!("{key:?}"), "[hidden]");
        assert_eq!(format!("{:?}", key.header("Bearer ")), "Sensitive");
        assert_eq!(key.scrub("Incorrect key: sk-secret."), "Incorrect key: [hidden].");
    }

    #[test]
    fn what_cannot_stand_in_a_header_is_no_key() {
        for text in ["", "a b", "a\n", "ключ"] {
            assert!(ApiKey::new(text).is_none(), "{text:?}");
        }
    }
}
