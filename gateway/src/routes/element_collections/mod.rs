//! Collections of Elements (docs/reference/elements.md#collection-endpoints).

pub mod create;
pub mod delete;
pub mod list;
pub mod rename;
