//! What is wrong with a request, field by field.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One invalid field of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Violation {
    /// Path of the field, such as `operations[3].node.width`, `params.height` or `webhook.url`.
    pub field: String,
    /// What the field must be. For people.
    pub message: String,
}

impl Violation {
    /// A violation of `field`.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}
