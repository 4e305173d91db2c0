//! The key ring of the master keys.

use std::fmt;
use std::sync::Arc;

use aes_gcm_siv::aead::{Aead as _, Payload};
use aes_gcm_siv::{Aes256GcmSiv, KeyInit as _, Nonce};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use thiserror::Error;
use zeroize::Zeroizing;

use crate::random;

/// The version prefix of every encrypted text, which allows for a later format.
const VERSION: &str = "v1";
/// Bytes of an AES-GCM-SIV nonce (RFC 8452, section 4).
const NONCE_BYTES: usize = 12;
/// The maximum length of a key id.
const KEY_ID_MAX: usize = 32;

/// Master keys by id: the first encrypts, every one decrypts. Cheap to clone; `Debug` shows only ids.
#[derive(Clone)]
pub struct KeyRing {
    keys: Arc<[MasterKey]>,
}

#[derive(Clone)]
struct MasterKey {
    id: String,
    cipher: Aes256GcmSiv,
}

/// The reason why a key ring was rejected. Entries are counted from 1; no key material is shown.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum KeyRingError {
    /// An entry is not of the form `id:base64`.
    #[error("entry {0} is not of the form id:base64")]
    Form(usize),
    /// A key id is empty, too long or has characters outside `[A-Za-z0-9_-]`.
    #[error("the id of entry {0} is not 1 to 32 characters of A-Z, a-z, 0-9, _ and -")]
    Id(usize),
    /// A key is not base64 of exactly 32 bytes.
    #[error("the key of entry {0} is not base64 of exactly 32 bytes")]
    Key(usize),
    /// Two entries have the same id.
    #[error("the id of entry {0} is used by an earlier entry")]
    Duplicate(usize),
}

/// The reason why an encrypted text could not be decrypted.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum DecryptError {
    /// The text does not have the form of an encrypted text.
    #[error("the encrypted text is malformed")]
    Malformed,
    /// The key it was encrypted under is not in the ring.
    #[error("the key {0:?} is not in the key ring")]
    UnknownKey(String),
    /// The text was altered, or encrypted for another context or under another key of the same id.
    #[error("the encrypted text does not belong to this key and context")]
    Refused,
}

impl KeyRing {
    /// Parses `id:base64[,id:base64…]`: keys of 32 bytes, unique ids of 1 to 32 characters `[A-Za-z0-9_-]`.
    ///
    /// # Errors
    ///
    /// [`KeyRingError`] names the invalid entry and never its key.
    pub fn parse(text: &str) -> Result<Self, KeyRingError> {
        let mut keys: Vec<MasterKey> = Vec::new();
        for (number, entry) in (1..).zip(text.split(',')) {
            let (id, key) = entry.trim().split_once(':').ok_or(KeyRingError::Form(number))?;
            if id.is_empty() || id.len() > KEY_ID_MAX || !id.bytes().all(is_id_byte) {
                return Err(KeyRingError::Id(number));
            }
            if keys.iter().any(|known| known.id == id) {
                return Err(KeyRingError::Duplicate(number));
            }
            let key = Zeroizing::new(STANDARD.decode(key).map_err(|_| KeyRingError::Key(number))?);
            let cipher = Aes256GcmSiv::new_from_slice(&key).map_err(|_| KeyRingError::Key(number))?;
            keys.push(MasterKey { id: id.to_owned(), cipher });
        }
        Ok(Self { keys: keys.into() })
    }

    /// The keys of this ring and then those of `other`, which only open.
    ///
    /// # Errors
    ///
    /// An id that both rings have.
    pub fn followed_by(&self, other: &Self) -> Result<Self, String> {
        match other.keys.iter().find(|theirs| self.keys.iter().any(|own| own.id == theirs.id)) {
            Some(theirs) => Err(theirs.id.clone()),
            None => Ok(Self { keys: self.keys.iter().chain(&*other.keys).cloned().collect() }),
        }
    }

    /// The id of the key that encrypts.
    pub fn primary(&self) -> &str {
        &self.encryption_key().id
    }

    /// Encrypts `plaintext` under the primary key as `v1.<key id>.<base64url(nonce || ciphertext)>`.
    ///
    /// `context` names where the text belongs (such as `webhook:<id>`). It is authenticated and not stored, so an encrypted text
    /// copied to another place does not open there.
    pub fn encrypt(&self, context: &str, plaintext: &[u8]) -> String {
        let key = self.encryption_key();
        let nonce: [u8; NONCE_BYTES] = random::bytes();
        let ciphertext = key
            .cipher
            .encrypt(&Nonce::from(nonce), Payload { msg: plaintext, aad: context.as_bytes() })
            .expect("a plaintext in memory is shorter than the 64 GiB that AES-GCM-SIV refuses");
        let mut encrypted = Vec::with_capacity(NONCE_BYTES + ciphertext.len());
        encrypted.extend_from_slice(&nonce);
        encrypted.extend_from_slice(&ciphertext);
        format!("{VERSION}.{}.{}", key.id, URL_SAFE_NO_PAD.encode(encrypted))
    }

    /// Decrypts a text that [`encrypt`](Self::encrypt) made for the same `context` under any key of the ring. The plaintext is wiped on
    /// drop.
    ///
    /// # Errors
    ///
    /// [`DecryptError`] when the text is malformed, its key is not in the ring, or it was altered or encrypted for another context.
    pub fn decrypt(&self, context: &str, encrypted: &str) -> Result<Zeroizing<Vec<u8>>, DecryptError> {
        let (id, body) = split(encrypted).ok_or(DecryptError::Malformed)?;
        let body = URL_SAFE_NO_PAD.decode(body).map_err(|_| DecryptError::Malformed)?;
        let (nonce, ciphertext) = body.split_first_chunk::<NONCE_BYTES>().ok_or(DecryptError::Malformed)?;
        let key = self.keys.iter().find(|key| key.id == id).ok_or_else(|| DecryptError::UnknownKey(id.to_owned()))?;
        key.cipher
            .decrypt(&Nonce::from(*nonce), Payload { msg: ciphertext, aad: context.as_bytes() })
            .map(Zeroizing::new)
            .map_err(|_| DecryptError::Refused)
    }

    /// The id of the key that `encrypted` was encrypted under; `None` when it is not an encrypted text. Used to find texts under an old
    /// key.
    pub fn key_id(encrypted: &str) -> Option<&str> {
        split(encrypted).map(|(id, _)| id)
    }

    fn encryption_key(&self) -> &MasterKey {
        self.keys.first().expect("parse refuses an empty ring: splitting any text gives at least one entry")
    }
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.keys.iter().map(|key| &key.id)).finish()
    }
}

fn is_id_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// The key id and the body of an encrypted text.
fn split(encrypted: &str) -> Option<(&str, &str)> {
    let (id, body) = encrypted.strip_prefix(VERSION)?.strip_prefix('.')?.split_once('.')?;
    (!id.is_empty()).then_some((id, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: &str, byte: u8) -> String {
        format!("{id}:{}", STANDARD.encode([byte; 32]))
    }

    fn ring(text: &str) -> KeyRing {
        KeyRing::parse(text).expect("a valid ring")
    }

    #[test]
    fn what_is_encrypted_is_decrypted_in_its_context() {
        let ring = ring(&entry("k1", 1));
        let encrypted = ring.encrypt("webhook:1", b"whsec");
        assert!(encrypted.starts_with("v1.k1."), "{encrypted}");
        assert_eq!(ring.decrypt("webhook:1", &encrypted).expect("opens").as_slice(), b"whsec");
    }

    #[test]
    fn equal_plaintexts_have_different_ciphertexts() {
        let ring = ring(&entry("k1", 1));
        assert_ne!(ring.encrypt("context", b"same"), ring.encrypt("context", b"same"));
    }

    #[test]
    fn another_context_an_altered_text_and_another_key_of_the_id_are_refused() {
        let ours = ring(&entry("k1", 1));
        let encrypted = ours.encrypt("webhook:1", b"whsec");
        assert_eq!(ours.decrypt("webhook:2", &encrypted), Err(DecryptError::Refused));
        assert_eq!(ring(&entry("k1", 2)).decrypt("webhook:1", &encrypted), Err(DecryptError::Refused));
        // A character in the middle encodes six full bits, so changing it changes the bytes.
        let middle = encrypted.len() - 10;
        let other = if &encrypted[middle..=middle] == "A" { "B" } else { "A" };
        let altered = format!("{}{other}{}", &encrypted[..middle], &encrypted[middle + 1..]);
        assert_eq!(ours.decrypt("webhook:1", &altered), Err(DecryptError::Refused));
    }

    #[test]
    fn a_rotated_ring_encrypts_under_the_new_key_and_still_decrypts_the_old_one() {
        let (old, new) = (entry("2024", 1), entry("2025", 2));
        let encrypted = ring(&old).encrypt("context", b"secret");
        let rotated = ring(&format!("{new},{old}"));
        assert_eq!(rotated.primary(), "2025");
        assert_eq!(rotated.decrypt("context", &encrypted).expect("opens").as_slice(), b"secret");
        let encrypted_again = rotated.encrypt("context", b"secret");
        assert_eq!((KeyRing::key_id(&encrypted), KeyRing::key_id(&encrypted_again)), (Some("2024"), Some("2025")));
        assert_eq!(ring(&new).decrypt("context", &encrypted), Err(DecryptError::UnknownKey("2024".to_owned())));
    }

    #[test]
    fn a_ring_followed_by_another_decrypts_what_both_encrypted_and_encrypts_under_its_own_key() {
        let (own, other) = (ring(&entry("i1", 1)), ring(&entry("k1", 2)));
        let both = own.followed_by(&other).expect("the ids differ");
        for encrypted in [own.encrypt("place", b"x"), other.encrypt("place", b"x")] {
            assert_eq!(both.decrypt("place", &encrypted).expect("opens").as_slice(), b"x");
        }
        assert_eq!(both.primary(), "i1");
        assert_eq!(both.followed_by(&other).expect_err("an id twice"), "k1");
    }

    #[test]
    fn malformed_texts_are_distinguished_from_refused_ones() {
        let ring = ring(&entry("k1", 1));
        for encrypted in ["", "v1", "v1.k1", "v1..AAAA", "v2.k1.AAAA", "v1.k1.AAAA", "v1.k1.not base64", "v1.k1."] {
            assert_eq!(ring.decrypt("context", encrypted), Err(DecryptError::Malformed), "{encrypted}");
        }
        assert_eq!(KeyRing::key_id("plain text"), None);
    }

    #[test]
    fn a_wrong_ring_is_refused_naming_the_entry() {
        let long = "i".repeat(KEY_ID_MAX + 1);
        let short_key = format!("k1:{}", STANDARD.encode([1; 31]));
        let long_key = format!("k1:{}", STANDARD.encode([1; 33]));
        for (text, error) in [
            (String::new(), KeyRingError::Form(1)),
            (STANDARD.encode([1; 32]), KeyRingError::Form(1)),
            (format!("{},", entry("k1", 1)), KeyRingError::Form(2)),
            (entry("", 1), KeyRingError::Id(1)),
            (entry("k.1", 1), KeyRingError::Id(1)),
            (entry(&long, 1), KeyRingError::Id(1)),
            (short_key, KeyRingError::Key(1)),
            (long_key, KeyRingError::Key(1)),
            ("k1:***".to_owned(), KeyRingError::Key(1)),
            (format!("{},{}", entry("k1", 1), entry("k1", 2)), KeyRingError::Duplicate(2)),
        ] {
            assert_eq!(KeyRing::parse(&text).expect_err("wrong"), error, "{text}");
        }
        assert!(KeyRing::parse(&entry(&long[1..], 1)).is_ok());
    }

    #[test]
    fn debug_shows_ids_alone() {
        assert_eq!(format!("{:?}", ring(&format!("{},{}", entry("a", 1), entry("b", 2)))), r#"["a", "b"]"#);
    }
}
