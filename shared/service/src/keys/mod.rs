//! Keys: secrets at rest, and derived keys.
//!
//! Two layers (docs/adr/0007-master-key-ring.md). The [`KeyRing`] comes from the environment and encrypts secrets in the database.
//! Its first key encrypts and every key decrypts, so that keys rotate without downtime. One random [`InstallationKey`], itself encrypted
//! under the ring, is the source from which the keys for token hashes, cursors, preview tokens and model keys are
//! [derived](DerivedKeys), so that rotating the ring changes none of them.
//!
//! All encryption is AES-256-GCM-SIV (RFC 8452): a repeated nonce reveals only that two equal plaintexts are equal. Random
//! nonces are therefore safe for any number of messages, and a fixed nonce gives a deterministic AEAD.

mod app;
mod derived;
mod ring;

pub use app::{AppKeys, AppSecret, code_challenge};
pub use derived::{DerivedKeys, DeterministicCipher, InstallationKey};
pub use ring::{DecryptError, KeyRing, KeyRingError};
