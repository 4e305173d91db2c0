//! Recipes: the catalogue and an account's private workflows (decisions 13).

pub mod fork;
pub mod list;
pub mod read;
pub mod sources;
