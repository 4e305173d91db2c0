//! The vocabulary of the service: ids and handles, limits, resources, requests, job states and messages.
//!
//! Everything here is a value: no I/O, no clock, no knowledge of HTTP, SQL or the broker. A type that is part of the
//! public contract carries its serialization and its OpenAPI schema, so that one definition is validated, served and
//! documented.

pub mod account;
pub mod action;
pub mod alt;
pub mod asset;
pub mod budget;
pub mod campaign;
pub mod canvas;
pub mod channel;
pub mod constant;
mod counted;
pub mod element;
pub mod event;
pub mod graph;
pub mod id;
pub mod idempotency;
pub mod import;
pub mod job;
pub mod known;
pub mod limits;
pub mod lineage;
pub mod link;
pub mod message;
pub mod metadata;
pub mod model;
pub mod operation;
pub mod origin;
pub mod page;
pub mod problem;
pub mod queue;
pub mod recipe;
pub mod refs;
pub mod review;
pub mod stored;
pub mod stream;
pub mod timestamp;
pub mod violation;
pub mod webhook;

pub use counted::counted;
pub use timestamp::Timestamp;
pub use violation::Violation;

/// Path prefix of every endpoint.
pub const API_ROOT: &str = "/api/canvas-agent/v1";
