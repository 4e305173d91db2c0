//! Outbound calls: the egress guard and the only outbound HTTP client.
//!
//! **Guarantee.** No URL from a request makes this service connect to an address that is not public, unless the operator listed
//! it. No response costs more memory or time than the caller of [`Client::send`] permits.
//!
//! **Mechanism.** A URL is checked twice. [`Guard::check_url`] checks its form, at the request that contains it and again in
//! [`Client::send`], because a stored URL may be older than a stricter [`AllowList`] and because the HTTP stack does not use
//! the resolver for IP literals. The client's own resolver then checks every address that a name resolves to, at every connect,
//! and passes exactly the checked addresses to the connector, so nothing is looked up again in between. [`Client::send`]
//! returns redirects and never follows them; [`Client::download`] has each hop checked again. Proxy variables are ignored, and
//! nothing is retried.
//!
//! **Reason.** Leaving out any of these permits server-side request forgery: DNS rebinding, disguised literals, redirects to
//! `http://169.254.169.254`, an `HTTPS_PROXY` that resolves names itself.

mod address;
mod allow;
mod client;
mod download;
mod error;
mod guard;
mod operator;
mod resolve;
mod setup;
mod tls;

pub use allow::{AllowList, AllowListError};
pub use client::{Body, Client, ClientConfig, Inbound, Opened, Outbound};
pub use download::{Allowance, DownloadError, DownloadRequest, Downloaded};
pub use error::{ClientError, SendError};
pub use guard::{Guard, UrlRefusal};
pub use operator::OperatorHost;
pub use setup::{Settings, SetupError};
