//! The harness of the end-to-end tests: real processes on real services, driven from outside.
//!
//! **Guarantee.** A [`Stack`] shares nothing with any other: its own database, RabbitMQ virtual host, blob directory and
//! ports; its processes end with it. What a test does to one part of it (kill, stop, hold, restart) concerns nobody else.
//! **Mechanism.** The binaries that `cargo build --workspace` made are started with the environment an operator would
//! give them, waited for by `/readyz`, and spoken to over HTTP ([`Client`]) and by the admin subcommands ([`Account`]).
//! Where HTTP cannot tell, the database is asked.
//! **Reason.** The specification describes behaviour seen from outside, so that is where it is tested: the suites in
//! `spec/` read like its chapters. A stack takes a second or two, so the behaviours of a chapter share one ([`suite!`]);
//! each works with accounts of its own.
//!
//! Only tests use it, so it panics where a library would return an error.

mod account;
pub mod api;
mod backlog;
mod broker;
pub mod checker;
mod client;
pub mod collector;
pub mod contract;
mod ground;
pub mod load;
mod part;
pub mod pictures;
mod process;
mod seed;
mod services;
mod stack;
mod suite;
mod vhost;
mod work;

#[cfg(test)]
mod bounds;

pub use account::{Account, Admin, User};
pub use client::{API_ROOT, Call, Client, Reply};
pub use ground::Networks;
pub use load::{Load, Plan, SETTLING};
pub use part::{Kind, Part};
pub use process::{binary, process_command};
pub use seed::Chance;
pub use services::{Service, Services};
pub use stack::{Builder, Hold, Stack};
pub use suite::{Behaviour, run};
pub use work::Work;

/// How long a test waits for what should come within a second or two: long, because the machine may be busy.
pub const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);
