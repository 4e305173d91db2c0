//! The HTTP process: validates, authorizes, commits, answers. It never decodes foreign pixels and never fetches foreign URLs.
//! Work is committed with its task and announced afterwards; the workers do it.

mod address;
mod admin;
mod admission;
mod audit;
mod boot;
mod cancel;
mod catalogue;
mod check_config;
mod clean;
mod command_line;
mod compression;
mod console;
#[cfg(test)]
mod counting;
mod credentials;
mod deliveries;
mod discovery;
mod docs;
mod documents;
mod extract;
mod failures;
mod ignored;
mod installation;
mod links;
mod live;
mod llms;
mod mcp;
mod models;
mod oauth;
mod observe;
mod openapi;
mod output;
mod place;
mod preview;
mod problem;
mod queues;
mod rates;
mod reference;
mod rendition;
mod reply;
mod router;
mod routes;
mod runs;
mod server;
mod source_health;
mod start;
mod state;
mod stored;
mod wait;

pub use command_line::main;
pub use router::documented;
