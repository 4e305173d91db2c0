//! All SQL of the service: free functions over `&mut PgConnection`, with one module for each aggregate.
//!
//! Queries are checked against the schema at compile time; `.sqlx/` holds what an offline build needs. Each is one literal, which
//! can be pasted into psql. An absent row is `Ok(None)`. A state change is conditional and reports whether it took effect. No
//! other crate knows a column.

pub mod account_list;
pub mod accounts;
pub mod assets;
pub mod audit;
pub mod blobs;
pub mod budgets;
pub mod campaigns;
pub mod canvases;
pub mod connections;
pub mod deadline;
pub mod deliveries;
mod detach;
pub mod devices;
pub mod element_collections;
pub mod elements;
pub mod error;
pub mod idempotency;
pub mod identities;
pub mod imports;
pub mod installation;
pub mod jobs;
pub mod kept;
pub mod ledger;
pub mod links;
pub mod oauth;
mod outage;
pub mod pool;
pub mod purge;
pub mod recipe_runs;
pub mod recipes;
pub mod renditions;
pub mod roles;
pub mod runs;
pub mod sessions;
pub mod set_aside;
pub mod storage;
pub mod streams;
pub mod tasks;
pub mod tokens;
#[cfg(test)]
mod upgrade;
pub mod workers;

pub use error::{Error, Result};
pub use pool::{Connection, Transaction};
pub use sqlx::{PgConnection, PgPool};
