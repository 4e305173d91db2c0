//! The only way out: the egress guard and the one outbound HTTP client.
//!
//! **Guarantee.** No URL that a caller hands in makes this service talk to an address that is not public,
//! unless the operator listed it; no answer costs more memory or time than the caller of [`Client::send`] allows.
//!
//! **Mechanism.** A URL is judged twice. [`Guard::check_url`] judges its form: at the request that brings it in, and
//! again in [`Client::send`], because a stored URL may predate a stricter [`AllowList`] and because the HTTP stack asks
//! no resolver about IP literals. The client's own resolver then judges every address a name resolves to, at every
//! connect, and hands exactly the judged addresses to the dialler, so nothing is looked up again in between.
//! [`Client::send`] returns redirects and never follows them, [`Client::download`] has each hop judged anew; proxy variables
//! are ignored, nothing is retried.
//!
//! **Reason.** Any of these left out is a way in (server-side request forgery): DNS rebinding, disguised literals,
//! redirects to `http://169.254.169.254`, an `HTTPS_PROXY` that resolves names on its own.

mod address;
mod allow;
mod cidr;
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
pub use download::{DownloadError, Downloaded, Wanted};
pub use error::{ClientError, SendError};
pub use guard::{Guard, UrlRefusal};
pub use operator::OperatorHost;
pub use setup::{Settings, SetupError};
