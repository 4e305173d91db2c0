//! All SQL of the service: free functions over `&mut PgConnection`, one module an aggregate.
//!
//! Queries are checked against the schema at compile time (`.sqlx/` holds what an offline build needs). Absent is
//! `Ok(None)`; a state change is conditional and reports whether it took place. Nobody but this crate knows a column.

pub mod accounts;
pub mod assets;
pub mod blobs;
pub mod campaigns;
pub mod canvases;
pub mod connections;
pub mod deliveries;
pub mod element_collections;
pub mod elements;
pub mod error;
pub mod idempotency;
pub mod imports;
pub mod installation;
pub mod jobs;
pub mod ledger;
pub mod outbox;
pub mod pool;
pub mod purge;
pub mod recipe_runs;
pub mod recipes;
pub mod renditions;
pub mod storage;
pub mod tasks;
#[cfg(test)]
mod upgrade;

pub use error::{Error, Result};
pub use pool::{Connection, Transaction};
pub use sqlx::{PgConnection, PgPool};
