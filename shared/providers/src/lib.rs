//! Image, video and text providers: third-party APIs and self-hosted servers behind one
//! trait.
//!
//! **Guarantee.** A submit has exactly one of four outcomes, and the caller can act on it without
//! knowing the provider: done, accepted (there is a run to poll), refused (no work was started), or
//! unknown (work may have been started). This crate never repeats a submit. Every error maps to a
//! failure code (`docs/reference/jobs.md#failure-codes`). A key is sent only to the origin that it
//! belongs to, and appears in no error, log or `Debug` text.
//!
//! **Mechanism.** An adapter ([`Protocol`](protocol::Protocol)) does no I/O: it converts an
//! [`Order`] to requests, and answers to outcomes. Only [`Provider`] sends requests, through
//! `shared/egress`, so only it decides what a lost answer means. Models and the names of their
//! parameters are data ([`Catalogue`]).
//!
//! **Reason.** No third party honors an idempotency key, so work that may have been accepted must
//! never be submitted again, because it would be charged twice
//! (`docs/adr/0006-provider-submits.md`). Vendors retire models monthly, so it must be possible to
//! add or remove a model without a new build.

mod call_error;
mod calls;
mod capabilities;
pub mod catalogue;
mod encode;
mod incoming;
mod key;
mod order;
mod outcome;
mod protocol;
mod protocols;
mod provider;
mod setup;
mod text;

pub use call_error::{CallError, Class};
pub use calls::Calls;
pub use capabilities::{Idempotency, ProtocolCapabilities};
pub use catalogue::{Catalogue, CatalogueError, Entry};
pub use incoming::Incoming;
pub use key::ApiKey;
pub use order::{MASK_BYTES_MAX, MaskForm, Media, Order, OrderImage, Shape, VARIATION_PROMPT, instruction};
pub use outcome::{Artifact, Cancellation, Output, Polled, Run, Submission};
pub use protocols::ManagedProtocol;
pub use provider::{Deadlines, Endpoint, PreparedSubmit, Provider, ProviderError, base_url};
pub use setup::{Server, Settings, Setup, SetupError};
pub use text::TextOrder;
