//! Extractors: from the request to typed, permitted values, in the order of docs/reference/conventions.md#order-of-checks.

pub mod accept;
pub mod caller;
pub mod canvas;
pub mod check;
pub mod header;
pub mod idempotency;
pub mod json;
pub mod names;
pub mod owner;
pub mod page;
pub mod path;
pub mod prefer;
pub mod query;
mod schema;
