//! Collections of Elements (decisions 7.3).

pub mod create;
pub mod delete;
pub mod list;
pub mod rename;
