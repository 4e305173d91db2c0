//! The console (docs/reference/console.md).

mod connections;
mod credit;
mod deletion;
mod deliveries;
mod members;
mod person;
mod routes;
mod session;
mod shell;
mod tokens;
