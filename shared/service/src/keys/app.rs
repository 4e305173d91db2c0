//! The secrets of apps that people authorized (docs/reference/oauth.md#refresh).
//!
//! **Guarantee.** Each pair of an access and a refresh token follows from the refresh token before it: who repeats a refresh gets the same
//! pair. Who has the database and not a refresh token can derive nothing. A refresh token that was replaced is still recognized, although
//! nothing about it is stored.
//!
//! **Mechanism.** The secrets of a pair are HMACs of the presented secret. A refresh secret holds its generation, random bytes and an HMAC
//! of both, so that its age can be told from it. That alone never grants anything: the current one is also compared by its stored hash.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac as _};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// What a secret is for. Each kind has hashes of its own, so that none is good for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppSecret {
    /// An access token.
    Access,
    /// A refresh token.
    Refresh,
    /// An authorization code.
    Code,
    /// A device code.
    Device,
}

impl AppSecret {
    const fn label(self) -> &'static [u8] {
        match self {
            Self::Access => b"access\0",
            Self::Refresh => b"refresh\0",
            Self::Code => b"code\0",
            Self::Device => b"device\0",
        }
    }
}

/// Bytes of the parts of a refresh secret: its generation, what is random, and the HMAC of both.
const GENERATION_BYTES: usize = 4;
const BODY_BYTES: usize = 16;
const SECRET_BYTES: usize = 32;

/// The keys of these secrets.
pub struct AppKeys {
    hash: Hmac<Sha256>,
    derive: Hmac<Sha256>,
}

impl AppKeys {
    pub(super) fn new(hash: Hmac<Sha256>, derive: Hmac<Sha256>) -> Self {
        Self { hash, derive }
    }

    /// The stored hash of a secret.
    pub fn hash(&self, kind: AppSecret, secret: &str) -> [u8; 32] {
        self.hash.clone().chain_update(kind.label()).chain_update(secret).finalize().into_bytes().into()
    }

    /// Returns `true` if `hash` is the stored hash of `secret`, in constant time.
    pub fn verify(&self, kind: AppSecret, secret: &str, hash: &[u8]) -> bool {
        self.hash(kind, secret).ct_eq(hash).into()
    }

    /// The secrets of the access and of the refresh token of a generation of `app`, which follow from the secret that is exchanged for
    /// them.
    pub fn pair(&self, app: &[u8; 16], generation: u32, exchanged: &str) -> (String, String) {
        let derived = |kind| self.derived(kind, app, generation, exchanged.as_bytes());
        let mut refresh = [0; SECRET_BYTES];
        refresh[..GENERATION_BYTES].copy_from_slice(&generation.to_be_bytes());
        refresh[GENERATION_BYTES..BODY_BYTES]
            .copy_from_slice(&derived(AppSecret::Refresh)[..BODY_BYTES - GENERATION_BYTES]);
        let tag = self.tag(app, &refresh[..BODY_BYTES]);
        refresh[BODY_BYTES..].copy_from_slice(&tag);
        (URL_SAFE_NO_PAD.encode(derived(AppSecret::Access)), URL_SAFE_NO_PAD.encode(refresh))
    }

    /// The generation of a refresh secret that was made for `app`; `None` for any other text.
    pub fn generation(&self, app: &[u8; 16], refresh: &str) -> Option<u32> {
        let bytes: [u8; SECRET_BYTES] = URL_SAFE_NO_PAD.decode(refresh).ok()?.try_into().ok()?;
        let (body, tag) = bytes.split_at(BODY_BYTES);
        let is_ours: bool = self.tag(app, body).ct_eq(tag).into();
        let generation = body.first_chunk::<GENERATION_BYTES>().copied().map(u32::from_be_bytes);
        generation.filter(|_| is_ours)
    }

    fn derived(&self, kind: AppSecret, app: &[u8; 16], generation: u32, exchanged: &[u8]) -> [u8; 32] {
        let hash = self.derive.clone().chain_update(kind.label()).chain_update(app);
        hash.chain_update(generation.to_be_bytes()).chain_update(exchanged).finalize().into_bytes().into()
    }

    fn tag(&self, app: &[u8; 16], body: &[u8]) -> [u8; SECRET_BYTES - BODY_BYTES] {
        let hash: [u8; 32] = self
            .derive
            .clone()
            .chain_update(b"tag\0")
            .chain_update(app)
            .chain_update(body)
            .finalize()
            .into_bytes()
            .into();
        *hash.first_chunk().expect("the hash has 32 bytes")
    }
}

/// The S256 challenge of a code verifier (RFC 7636, section 4.2).
pub fn code_challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(verifier))
}

#[cfg(test)]
mod tests {
    use super::super::{DerivedKeys, InstallationKey};
    use super::*;

    const APP: [u8; 16] = [7; 16];

    fn derived_from(byte: u8) -> DerivedKeys {
        DerivedKeys::derive(&InstallationKey::from_bytes([byte; 32]))
    }

    #[test]
    fn a_pair_follows_from_what_is_exchanged_for_it() {
        let keys = derived_from(1);
        let pair = keys.app().pair(&APP, 1, "code");
        assert_eq!(pair, derived_from(1).app().pair(&APP, 1, "code"));
        assert!([&pair.0, &pair.1].iter().all(|secret| secret.len() == 43));
        for other in [
            keys.app().pair(&APP, 2, "code"),
            keys.app().pair(&[8; 16], 1, "code"),
            keys.app().pair(&APP, 1, "other"),
            derived_from(2).app().pair(&APP, 1, "code"),
        ] {
            assert!(other.0 != pair.0 && other.1 != pair.1);
        }
    }

    #[test]
    fn the_generation_of_a_refresh_token_is_known_from_it_alone() {
        let keys = derived_from(1);
        let (access, refresh) = keys.app().pair(&APP, 70_000, "before");
        assert_eq!(keys.app().generation(&APP, &refresh), Some(70_000));
        assert_eq!(keys.app().generation(&[8; 16], &refresh), None, "of another app");
        assert_eq!(derived_from(2).app().generation(&APP, &refresh), None, "of another installation");
        for position in 0..refresh.len() {
            let other = if refresh.as_bytes()[position] == b'A' { "B" } else { "A" };
            let changed = format!("{}{other}{}", &refresh[..position], &refresh[position + 1..]);
            assert_eq!(keys.app().generation(&APP, &changed), None, "{position}");
        }
        for wrong in [access.as_str(), "", "!", &refresh[1..]] {
            assert_eq!(keys.app().generation(&APP, wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_secret_is_good_for_one_purpose() {
        let keys = derived_from(1);
        let hash = keys.app().hash(AppSecret::Access, "secret");
        assert!(keys.app().verify(AppSecret::Access, "secret", &hash));
        assert!(!keys.app().verify(AppSecret::Access, "Secret", &hash));
        assert!(!keys.app().verify(AppSecret::Access, "secret", &[]));
        assert!(!keys.app().verify(AppSecret::Refresh, "secret", &hash));
        assert!(!keys.app().verify(AppSecret::Code, "secret", &hash));
        assert!(!keys.app().verify(AppSecret::Device, "secret", &hash));
        assert!(!keys.verify_token("secret", &hash), "an earlier release accepts no access token");
    }

    /// Appendix B of RFC 7636.
    #[test]
    fn a_challenge_is_that_of_the_standard() {
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert_eq!(code_challenge(verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }
}
