//! The HTTP process: validates, authorizes, commits, answers. It never decodes foreign pixels and never fetches foreign
//! URLs; work is committed together with the outbox row that announces it, and done by the workers.

mod admin;
mod boot;
mod catalogue;
mod command_line;
#[cfg(test)]
mod counting;
mod credentials;
mod documents;
mod extract;
mod installation;
mod models;
mod observe;
mod openapi;
mod preview;
mod problem;
mod rendition;
mod reply;
mod router;
mod routes;
mod server;
mod start;
mod state;
mod stored;
mod turnstile;
mod wait;

pub use command_line::main;
pub use router::documented;
