//! Elements and their versions (docs/reference/elements.md).

mod body;
pub mod create;
pub mod list;
pub mod read;
pub mod update;
pub mod versions;
