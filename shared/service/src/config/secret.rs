//! A value that may be used and not shown.

use std::fmt;

use zeroize::Zeroizing;

/// A text that carries a credential: wiped when dropped, hidden from `Debug`, without `Display`.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Hides `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// The text itself, for the client that connects with it. It must reach no log and no error message.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}
