//! The console (docs/reference/console.md).

mod administrators;
mod audit;
mod connections;
mod credit;
mod delegation;
mod deletion;
mod deliveries;
pub(crate) mod holder;
mod members;
mod names;
mod oidc;
mod pointers;
mod routes;
mod session;
mod shell;
mod tokens;
