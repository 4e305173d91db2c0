//! Elements and their versions (decisions 7).

mod body;
pub mod create;
pub mod list;
pub mod read;
pub mod sources;
pub mod update;
pub mod versions;
