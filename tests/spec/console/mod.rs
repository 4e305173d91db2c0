//! The console (docs/reference/console.md).

mod session;
mod shell;
