//! The tool adapter: Canvas Service as an MCP server (Model Context Protocol), for language models (docs/reference/tools.md).
//!
//! **Guarantee.** A tool is nothing but requests of the contract with the caller's own credential, so it can do no more than these
//! can: scopes, limits, idempotency and logs are those of the requests. A call that is repeated with the same arguments takes effect
//! once, except for those without a key in the contract, whose failures say so.
//!
//! **Mechanism.** A [`tool::Tool`] has typed arguments and a typed answer; their types are the schemas that a host sees. It sends
//! requests through a [`client::Client`]. Whoever mounts the server brings that client: the gateway hands in one that calls its own
//! router ([`http`]), a command line one that goes over the network ([`stdio`]). The key of a write is a digest of the tool and its
//! arguments ([`call::Call::key`]). A request that is refused becomes a result ([`failure`]) that says what to do next ([`remedy`]).
//!
//! The protocol itself is `rmcp`, which is imported in this crate alone.

mod answer;
mod call;
mod canvas_name;
mod catalogue;
mod completion;
mod correct;
mod failure;
mod fields;
mod funds;
pub mod http;
mod lines;
pub mod manifest;
mod message;
mod names;
mod place;
mod progress;
mod prompts;
mod remedy;
mod resources;
mod resubmit;
mod schema;
mod server;
pub mod skills;
mod stale;
mod stdio;
mod tool;
mod tools;
mod work;

use domain::account::Scope;

pub use message::MESSAGE_MAX;
pub use server::Server;
pub use stdio::{Root, serve as stdio};

/// The scopes that a tool needs: all of the first, and one of the second, unless it is empty. `None` if there is no such tool.
pub fn scopes_of(name: &str) -> Option<(&'static [Scope], &'static [Scope])> {
    catalogue::all(false).iter().find(|entry| entry.definition.name == name).map(catalogue::Entry::scopes)
}

/// The tools with their purposes, in the order of the list.
pub fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    catalogue::all(false).iter().map(|entry| {
        let definition = &entry.definition;
        (definition.name.as_ref(), definition.description.as_deref().unwrap_or_default())
    })
}
