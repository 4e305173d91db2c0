//! The admin server of a process: `/healthz`, `/readyz` and `/metrics` on a port of its own, which is not for clients.
//!
//! `/healthz` says that the process can answer at all: nothing outside it counts, because restarting it would not mend a database.
//! `/readyz` says whether to send it work: 503 while a required component fails and from the moment stopping begins, 200 with `degraded`
//! while only components fail without which the contract still holds (Redis).

mod readiness;
mod server;

pub use readiness::{ComponentHandle, ComponentReport, Readiness, Report, Status, watch_component};
pub use server::serve;
