//! Recipes: the catalog and the private workflows of an account (docs/reference/recipes.md).

pub mod fork;
pub mod list;
pub mod read;
pub mod run;
