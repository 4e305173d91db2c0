//! Jobs on a real database.

mod fixture;

mod endings;
mod progress;
mod retention;
