//! Image, video and text providers: seven third-party APIs and the operator's own server, behind one small trait.
//!
//! **Guarantee.** A submit ends in exactly one of four ways, and the caller can act on it without knowing the provider:
//! done, accepted (there is a run to poll), refused (nothing was begun), or unknown (it may have been begun). Nothing
//! here ever repeats a submit. Every fault is one of the failure codes of decisions 12.5. A key leaves only to the
//! origin that it belongs to, and stands in no error, log or `Debug` text.
//!
//! **Mechanism.** An adapter ([`Protocol`](protocol::Protocol)) does no I/O: it turns an [`Order`] into requests and
//! answers into outcomes. [`Provider`] is the one place that sends, through `shared/egress`, and so the one place that
//! decides what a lost answer means. Which models there are, and how their parameters are called on the wire, is data
//! ([`Catalogue`]).
//!
//! **Reason.** Money: none of the third parties honours an idempotency key, so what may have been accepted must never
//! be sent again (decisions 12.5). And vendors retire models monthly: a model must come and go without a new build.

mod calls;
pub mod catalogue;
mod encode;
mod fault;
mod incoming;
mod key;
mod order;
mod outcome;
mod promises;
mod protocol;
mod protocols;
mod provider;
mod setup;
mod text;

pub use calls::Calls;
pub use catalogue::{Catalogue, CatalogueError, Entry};
pub use fault::{Class, Fault};
pub use incoming::Incoming;
pub use key::ApiKey;
pub use order::{Media, Order, Picture, Shape, VARIATION_PROMPT, instruction};
pub use outcome::{Artifact, Cancellation, Output, Polled, Run, Submission};
pub use promises::{Idempotency, Promises};
pub use protocols::ManagedProtocol;
pub use provider::{Deadlines, Endpoint, Provider, ProviderError, base_url};
pub use setup::{Server, Settings, Setup, SetupError};
pub use text::TextOrder;
