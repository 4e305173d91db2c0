//! The dispatcher against a real database and broker, and receivers that misbehave.

mod deliver;
mod harness;
mod isolate;
mod survive;
