//! Keys: what is secret at rest, and what is derived.
//!
//! Two layers (decisions 2.5). The [`KeyRing`] comes from the environment and seals secrets in the database; its first key seals, every key
//! opens, so that keys rotate without downtime. One random [`InstallationKey`], itself sealed under the ring, is what token hashes, cursors,
//! preview tokens and model keys are [derived](DerivedKeys) from, so that rotating the ring changes none of them.
//!
//! All encryption is AES-256-GCM-SIV (RFC 8452): a repeated nonce reveals only that two equal plaintexts are equal, which makes random
//! nonces safe for any number of messages and a fixed nonce a deterministic AEAD.

mod derived;
mod ring;

pub use derived::{DerivedKeys, DeterministicSealer, InstallationKey};
pub use ring::{KeyRing, KeyRingError, OpenError};
