//! Recipes: the catalogue and an account's private workflows (decisions 13).

pub mod fork;
pub mod list;
mod ports;
pub mod read;
pub mod run;
pub mod sources;
pub mod steps;
