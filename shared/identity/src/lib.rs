//! Who somebody is, by the word of a provider: signed tokens, and sign-in by OpenID Connect (docs/reference/signin.md).
//!
//! - [`jwt`]: signed tokens (RFC 7515, RFC 7519), verified by the keys of their issuer;
//! - [`keys`]: those keys, as sets (RFC 7517) that are written down or fetched;
//! - [`fetch`]: documents of other servers, through the egress guard;
//! - [`settings`]: the providers that the operator configured;
//! - [`provider`]: a provider's metadata, its token endpoint and its tokens;
//! - [`person`]: what the claims of a person mean.
//!
//! It knows no database and no route.
//!
//! Signatures are verified by `ring`, which the TLS library brings anyway. The checks of a token around its signature are rules of
//! this service, so a library of tokens would leave them to be written here all the same.

pub mod fetch;
pub mod jwt;
pub mod keys;
pub mod person;
pub mod provider;
pub mod settings;
