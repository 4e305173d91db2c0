//! The admin server of a process: `/healthz`, `/readyz` and `/metrics` on a separate port, which is not for clients
//! (docs/reference/configuration.md#probes).
//!
//! `/healthz` reports that the process can answer at all. Nothing outside the process counts, because a restart would not
//! repair a database. `/readyz` reports whether to send it work: 503 while a required component fails and from the beginning of
//! the shutdown on; 200 with `degraded` while only components fail that the API can do without (Redis).

mod readiness;
mod server;

pub use readiness::{ComponentHandle, ComponentReport, Readiness, Report, Status, watch_component};
pub use server::serve;
