//! The images that guide a generation, as a start names them (docs/reference/images.md#references).

use domain::graph::Role;
use serde::Deserialize;

/// An item of `references`.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum ReferenceItem {
    /// A handle or URL alone.
    Image(String),
    /// A handle or URL with what it is for.
    WithRole {
        /// The handle or URL.
        handle: String,
        /// The role.
        role: Option<Role>,
    },
}

impl ReferenceItem {
    /// The handle or URL, and the role.
    pub fn parts(&self) -> (&str, Option<Role>) {
        match self {
            Self::Image(handle) => (handle, None),
            Self::WithRole { handle, role } => (handle, *role),
        }
    }
}
