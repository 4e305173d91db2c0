//! The routes of the console for people (docs/reference/console.md).

mod connections;
mod credit;
mod deletion;
mod deliveries;
mod members;
mod person;
mod routes;
mod tokens;
