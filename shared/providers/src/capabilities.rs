//! The capabilities of a protocol, as data. They determine what a worker may do after a crash
//! (`docs/reliability.md#provider-submits`).

use std::time::Duration;

/// The effect of a second submit with the same idempotency key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idempotency {
    /// The work starts, and is charged, again.
    Ignored,
    /// It is rejected without the id of the first one. A second submit is safe, and its rejection
    /// means that the outcome is *unknown*.
    Rejected,
}

/// Features of a provider's protocol beyond submit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtocolCapabilities {
    /// Idempotency of a submit.
    pub idempotency: Idempotency,
    /// `true` if a run can be found again after the answer to its submit was lost
    /// ([`Provider::find`](crate::Provider::find)).
    pub finds: bool,
    /// `true` if started work can be canceled.
    pub cancels: bool,
    /// `true` if the provider offers a callback at the end. No adapter uses one: polling is needed in any case, and a
    /// self-hosted service often has no public address.
    pub calls_back: bool,
    /// `true` if the answer to a submit can be a run to poll.
    pub queues: bool,
    /// `true` if the answer to a submit can be the result itself, so that it takes as long as the
    /// work.
    pub inline: bool,
    /// The maximum size of a reference in bytes. The caller must reduce larger ones; they are
    /// rejected here.
    pub image_bytes_max: usize,
    /// The recommended interval from submit to poll and between polls.
    pub poll_every: Duration,
}
