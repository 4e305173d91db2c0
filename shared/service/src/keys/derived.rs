//! The installation key and the keys derived from it.

use std::fmt;

use aes_gcm_siv::aead::{Aead as _, Payload};
use aes_gcm_siv::{Aes256GcmSiv, KeyInit as _, Nonce};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hkdf::Hkdf;
use hmac::{Hmac, Mac as _};
use sha2::Sha256;
use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

use super::AppKeys;
use crate::random;

/// HKDF salt: separates these keys from any other use of the same key material (RFC 5869, section 3.1).
const SALT: &[u8] = b"canvas-service installation key v1";
/// The nonce of deterministic encryption. AES-GCM-SIV with a fixed nonce is a deterministic AEAD (RFC 8452, section 1): equal input, equal
/// output, and that equality is all it reveals.
const FIXED_NONCE: [u8; 12] = [0; 12];

/// The random key of an installation: created by the first migration, stored encrypted under the [`KeyRing`](super::KeyRing),
/// wiped on drop. Changing it invalidates every token, cursor and preview link.
pub struct InstallationKey(Zeroizing<[u8; 32]>);

impl InstallationKey {
    /// A new random key.
    pub fn generate() -> Self {
        Self(Zeroizing::new(random::bytes()))
    }

    /// The key of these bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// The bytes, to be encrypted for storage.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for InstallationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InstallationKey([hidden])")
    }
}

/// The subkeys of the installation key, one for each purpose (HKDF-SHA256 with one label each), derived once.
pub struct DerivedKeys {
    token: Hmac<Sha256>,
    model: Hmac<Sha256>,
    content: Hmac<Sha256>,
    participant: Hmac<Sha256>,
    audit: Hmac<Sha256>,
    cursor: DeterministicCipher,
    preview: DeterministicCipher,
    sign_in: DeterministicCipher,
    client: DeterministicCipher,
    app: AppKeys,
}

/// In front of the hash of a secret with budgets.
const LIMITED: u8 = 1;

impl DerivedKeys {
    /// Derives every subkey of `installation`.
    pub fn derive(installation: &InstallationKey) -> Self {
        let root = Hkdf::<Sha256>::new(Some(SALT), installation.as_bytes());
        let subkey = |label: &str| {
            let mut key = Zeroizing::new([0; 32]);
            root.expand(label.as_bytes(), key.as_mut_slice())
                .expect("32 bytes are within the 8160 that HKDF-SHA256 can give");
            key
        };
        Self {
            token: keyed_hash(&subkey("token hash")),
            model: keyed_hash(&subkey("model key")),
            content: keyed_hash(&subkey("content tag")),
            participant: keyed_hash(&subkey("participant id")),
            audit: keyed_hash(&subkey("audit seal")),
            cursor: DeterministicCipher::new(&subkey("cursor")),
            preview: DeterministicCipher::new(&subkey("preview token")),
            sign_in: DeterministicCipher::new(&subkey("signin")),
            client: DeterministicCipher::new(&subkey("oauth client")),
            app: AppKeys::new(keyed_hash(&subkey("app secret hash")), keyed_hash(&subkey("app secret"))),
        }
    }

    /// The stored hash of a bearer secret: HMAC-SHA256 under a separate key. Secrets are random, so no slow hash is needed, and
    /// a copy of the database alone does not permit verifying guesses.
    pub fn token_hash(&self, secret: &str) -> [u8; 32] {
        self.token.clone().chain_update(secret).finalize().into_bytes().into()
    }

    /// Returns `true` if `hash` is the stored hash of `secret`, in constant time. That of a token with budgets has a mark in front,
    /// which earlier releases take for a part of another hash (docs/reference/authentication.md#budgets).
    pub fn verify_token(&self, secret: &str, hash: &[u8]) -> bool {
        let own = self.token_hash(secret);
        let hash = hash.strip_prefix(&[LIMITED]).filter(|rest| rest.len() == own.len()).unwrap_or(hash);
        own.ct_eq(hash).into()
    }

    /// The opaque public key of a model: a keyed hash of `identity` (an unambiguous encoding of account, connection and model)
    /// as 43 characters of base64url. Stable, and discloses nothing about the model (docs/reference/models.md#model-keys).
    pub fn model_key(&self, identity: &str) -> String {
        URL_SAFE_NO_PAD.encode(self.model.clone().chain_update(identity).finalize().into_bytes())
    }

    /// The entity tag of content that `account` owns: a keyed hash of account and bytes, whose SHA-256 is `sha256`, as 43 characters of
    /// base64url. Equal bytes of one account have equal tags; those of two accounts cannot be told to be equal
    /// (docs/reference/assets.md#entity-tags). `account` contains no NUL.
    pub fn content_tag(&self, account: &str, sha256: &[u8]) -> String {
        let hash = self.content.clone().chain_update(account).chain_update([0]).chain_update(sha256);
        URL_SAFE_NO_PAD.encode(hash.finalize().into_bytes())
    }

    /// The public id of a token or session on a canvas, 22 characters of base64url: the same for every stream, and on another canvas
    /// another, so that nobody is followed from canvas to canvas by it.
    pub fn participant_id(&self, canvas: &str, token: &[u8; 16]) -> String {
        let hash = self.participant.clone().chain_update(token).chain_update(canvas).finalize().into_bytes();
        URL_SAFE_NO_PAD.encode(&hash[..16])
    }

    /// The seal of rows of the audit (docs/reference/administration.md#audit).
    pub fn audit_seal(&self, rows: &[u8]) -> [u8; 32] {
        self.audit.clone().chain_update(rows).finalize().into_bytes().into()
    }

    /// Encrypts list cursors.
    pub fn cursor(&self) -> &DeterministicCipher {
        &self.cursor
    }

    /// Encrypts the metadata of registered OAuth clients.
    pub fn client(&self) -> &DeterministicCipher {
        &self.client
    }

    /// The secrets of apps.
    pub fn app(&self) -> &AppKeys {
        &self.app
    }

    /// Encrypts preview tokens.
    pub fn preview(&self) -> &DeterministicCipher {
        &self.preview
    }

    /// Encrypts what a browser keeps of a sign-in in progress. Each one has random secrets, so that equal texts do not occur.
    pub fn sign_in(&self) -> &DeterministicCipher {
        &self.sign_in
    }
}

impl fmt::Debug for DerivedKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DerivedKeys([hidden])")
    }
}

fn keyed_hash(key: &[u8; 32]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("HMAC takes keys of every length")
}

/// Deterministic authenticated encryption: equal input gives equal text, so that the same asset has the same URL and browsers
/// can cache it.
pub struct DeterministicCipher(Aes256GcmSiv);

impl DeterministicCipher {
    fn new(key: &[u8; 32]) -> Self {
        Self(Aes256GcmSiv::new(key.into()))
    }

    /// Encrypts `bytes` as base64url. `context` is authenticated but not contained in the text, and required to open it.
    pub fn encrypt(&self, context: &str, bytes: &[u8]) -> String {
        let encrypted = self
            .0
            .encrypt(&Nonce::from(FIXED_NONCE), Payload { msg: bytes, aad: context.as_bytes() })
            .expect("a plaintext in memory is shorter than the 64 GiB that AES-GCM-SIV refuses");
        URL_SAFE_NO_PAD.encode(encrypted)
    }

    /// Decrypts a text that [`encrypt`](Self::encrypt) made for the same `context`; `None` for any other text.
    pub fn decrypt(&self, context: &str, text: &str) -> Option<Vec<u8>> {
        let encrypted = URL_SAFE_NO_PAD.decode(text).ok()?;
        self.0.decrypt(&Nonce::from(FIXED_NONCE), Payload { msg: &encrypted, aad: context.as_bytes() }).ok()
    }
}

impl fmt::Debug for DeterministicCipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DeterministicCipher([hidden])")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn derived_from(byte: u8) -> DerivedKeys {
        DerivedKeys::derive(&InstallationKey::from_bytes([byte; 32]))
    }

    #[test]
    fn a_token_verifies_against_its_own_hash_only() {
        let keys = derived_from(1);
        let hash = keys.token_hash("secret");
        assert!(keys.verify_token("secret", &hash));
        assert!(!keys.verify_token("Secret", &hash));
        assert!(!keys.verify_token("secret", &hash[..31]));
        assert!(!keys.verify_token("secret", &[]));
        let marked = [&[LIMITED], &hash[..]].concat();
        assert!(keys.verify_token("secret", &marked) && !keys.verify_token("Secret", &marked));
        assert!(!keys.verify_token("secret", &[&[LIMITED], &marked[..]].concat()));
        assert!(!keys.verify_token("secret", &[&[LIMITED + 1], &hash[..]].concat()));
        assert!(!derived_from(2).verify_token("secret", &hash));
    }

    #[test]
    fn every_purpose_has_a_key_of_its_own() {
        let keys = derived_from(1);
        assert_ne!(URL_SAFE_NO_PAD.encode(keys.token_hash("x")), keys.model_key("x"));
        assert_ne!(URL_SAFE_NO_PAD.encode(keys.token_hash("x\0y")), keys.content_tag("x", b"y"));
        let cursor = keys.cursor().encrypt("context", b"position");
        assert_ne!(cursor, keys.preview().encrypt("context", b"position"));
        assert_eq!(keys.preview().decrypt("context", &cursor), None);
    }

    /// Derived keys must not change with an upgrade: a change here would invalidate every token and link.
    #[test]
    fn derivation_never_changes() {
        let keys = derived_from(7);
        assert_eq!(URL_SAFE_NO_PAD.encode(keys.token_hash("secret")), "lYJVsHV05HEwwlGonpR5tPo4kUys822xMEGL0_hNlzU");
        assert_eq!(keys.model_key("identity"), "XNcwJLfo3gZCDNZXxlvwFfvkpsENszivtO1G7VD82wo");
        assert_eq!(keys.cursor().encrypt("context", b"position"), "80jGZWnFmB8ZxiiqTFVSNiSBq6FDB--O");
        assert_eq!(keys.preview().encrypt("context", b"asset"), "n_9TVOQP8uPTL-fdVnwrB5bNws9Y");
        assert_eq!(keys.client().encrypt("context", b"client"), "4TWMttb217FEfON6vB_RkGc3A3omTg");
    }

    #[test]
    fn a_participant_id_depends_on_key_canvas_and_token() {
        let keys = derived_from(1);
        let id = keys.participant_id("canvas:ana:a", &[7; 16]);
        assert_eq!(id, derived_from(1).participant_id("canvas:ana:a", &[7; 16]));
        assert_eq!(id.len(), 22);
        for other in [
            keys.participant_id("canvas:ana:b", &[7; 16]),
            keys.participant_id("canvas:ana:a", &[8; 16]),
            derived_from(2).participant_id("canvas:ana:a", &[7; 16]),
        ] {
            assert_ne!(id, other);
        }
    }

    #[test]
    fn a_content_tag_depends_on_key_account_and_bytes() {
        let keys = derived_from(1);
        let tag = keys.content_tag("ana", &[7; 32]);
        assert_eq!(tag, derived_from(1).content_tag("ana", &[7; 32]));
        assert_eq!(tag.len(), 43);
        for other in [
            keys.content_tag("ben", &[7; 32]),
            keys.content_tag("ana", &[8; 32]),
            derived_from(2).content_tag("ana", &[7; 32]),
        ] {
            assert_ne!(tag, other);
        }
    }

    #[test]
    fn deterministic_encryption_gives_equal_texts_that_are_decrypted_in_their_context_alone() {
        let keys = derived_from(1);
        let encrypted = keys.preview().encrypt("assets", b"asset and expiry");
        assert_eq!(encrypted, derived_from(1).preview().encrypt("assets", b"asset and expiry"));
        assert_eq!(keys.preview().decrypt("assets", &encrypted).as_deref(), Some(b"asset and expiry".as_slice()));
        assert_eq!(keys.preview().decrypt("other", &encrypted), None);
        assert_eq!(derived_from(2).preview().decrypt("assets", &encrypted), None);
        for tampered in [&encrypted[1..], &encrypted[..encrypted.len() - 1], "", "!", &format!("{encrypted}AAAA")] {
            assert_eq!(keys.preview().decrypt("assets", tampered), None, "{tampered}");
        }
    }

    #[test]
    fn generated_keys_differ_and_survive_their_bytes() {
        let key = InstallationKey::generate();
        assert_ne!(key.as_bytes(), InstallationKey::generate().as_bytes());
        assert_eq!(InstallationKey::from_bytes(*key.as_bytes()).as_bytes(), key.as_bytes());
    }

    #[test]
    fn debug_hides_every_key() {
        let installation = InstallationKey::from_bytes([7; 32]);
        assert_eq!(format!("{installation:?}"), "InstallationKey([hidden])");
        assert_eq!(format!("{:?}", DerivedKeys::derive(&installation)), "DerivedKeys([hidden])");
    }
}
