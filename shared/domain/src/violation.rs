//! What is wrong with a request, field by field.

use serde::Serialize;
use utoipa::ToSchema;

/// One thing wrong with one field of a request (specification, Errors: `fields`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Violation {
    /// Path of the field: `operations[3].node.width`, `params.height`, `webhook.url`.
    pub field: String,
    /// What it should have been, for people.
    pub message: String,
}

impl Violation {
    /// A violation of `field`.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}
