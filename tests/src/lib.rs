//! The harness of the end-to-end tests: real processes with real services, tested from outside.
//!
//! **Guarantee.** A [`Stack`] shares nothing with any other: it has its own database, RabbitMQ virtual host, blob directory and
//! ports, and its processes end with it. Killing, stopping, holding or restarting a part affects no other stack.
//! **Mechanism.** The binaries of `cargo build --workspace` are started with the environment that an operator would set. The
//! harness waits for `/readyz` and uses HTTP ([`Client`]) and the admin subcommands ([`Account`]). Where HTTP does not show
//! something, tests query the database.
//! **Reason.** The documents describe behavior that is visible from outside, so `spec/` tests it there. Because a stack takes a
//! second or two to start, tests share stacks ([`Builder::shared`]), each with accounts of its own.
//!
//! Only tests use this crate, so it panics where a library would return an error.

mod account;
pub mod answers;
pub mod api;
mod backlog;
mod broker;
pub mod checker;
mod client;
pub mod collector;
mod console;
pub mod contract;
pub mod figures;
pub mod films;
mod ground;
pub mod images;
pub mod load;
mod part;
mod process;
mod seed;
mod services;
mod shared;
mod shell;
mod stack;
pub mod tools;
mod vhost;
mod work;

#[cfg(test)]
mod bounds;
#[cfg(test)]
mod documents;

pub use account::{Account, Admin, User};
pub use client::{API_ROOT, Call, Client, Reply};
pub use console::Person;
pub use ground::Networks;
pub use load::{Load, Plan, SETTLING};
pub use part::{Kind, Part};
pub use process::{binary, process_command};
pub use seed::Chance;
pub use services::{Service, Services};
pub use shared::own;
pub use shell::{Ran, Shell};
pub use stack::{Builder, Hold, Stack};
pub use work::Work;

/// The time for which a test waits for something that should take a second or two. Long, because the machine can be busy.
pub const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);
