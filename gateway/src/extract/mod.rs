//! From the request to typed, permitted values. The order of checks is decisions 1.2.

pub mod caller;
pub mod canvas;
pub mod idempotency;
pub mod json;
pub mod owner;
pub mod page;
pub mod path;
pub mod prefer;
pub mod query;
mod schema;
