//! What an adapter promises, as data: what a worker may do after a crash depends on it (reliability.md, Provider
//! submits).

use std::time::Duration;

/// What a provider does with a second submit under the same idempotency key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idempotency {
    /// It is begun, and charged, again.
    Ignored,
    /// It is refused, and the first one's id is not told: a second submit is safe, and its refusal means *unknown*.
    Rejected,
}

/// What a provider's protocol offers beyond submit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promises {
    /// Whether a submit may be repeated.
    pub idempotency: Idempotency,
    /// Whether a run whose submit's answer was lost can be found again ([`Provider::find`](crate::Provider::find)).
    pub finds: bool,
    /// Whether work that was begun can be stopped.
    pub cancels: bool,
    /// Whether the provider can call us when it is done. No adapter asks for it: a poll is needed all the same, and a
    /// self-hosted service commonly has no public address.
    pub calls_back: bool,
    /// Whether a submit may be answered with a run to poll.
    pub queues: bool,
    /// Whether a submit may be answered with the result itself, so that its answer may take as long as the work.
    pub inline: bool,
    /// Most bytes of one reference. A larger one is made smaller by whoever orders; it is refused here.
    pub picture_bytes_max: usize,
    /// The provider's advice: how long from submit, and from poll to poll.
    pub poll_every: Duration,
}
