//! Elements and their versions (decisions 7).

mod body;
pub mod create;
pub mod list;
pub mod read;
mod sources;
pub mod update;
pub mod versions;
