//! Sets of public keys (RFC 7517).

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::Instant;
use url::Url;

use crate::fetch::{Failed, FetchError, Fetcher};
use crate::jwt::{Algorithm, Refusal};

/// How long fetched keys are used.
const KEPT: Duration = Duration::from_secs(60 * 60);
/// The least time between two fetches because of an unknown id.
const PAUSE: Duration = Duration::from_secs(60);

/// Public keys of one issuer.
#[derive(Debug)]
pub struct Keys(Vec<Key>);

#[derive(Debug)]
struct Key {
    id: Option<String>,
    /// The only algorithm it may be used with.
    algorithm: Option<String>,
    material: Material,
}

#[derive(Debug)]
enum Material {
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    /// The uncompressed point.
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

#[derive(Deserialize)]
struct KeySet {
    keys: Vec<Value>,
}

#[derive(Deserialize)]
struct WrittenKey {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl Keys {
    /// Reads a set. Keys that are of another kind, for encryption or malformed are left out (RFC 7517, section 5). `None` if this is no
    /// set.
    pub fn parse(document: &Value) -> Option<Self> {
        let set = KeySet::deserialize(document).ok()?;
        Some(Self(set.keys.iter().filter_map(Key::parse).collect()))
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Whether there is a key of this id. Without an id, whether there is any.
    fn know(&self, id: Option<&str>) -> bool {
        self.0.iter().any(|key| id.is_none() || key.id.as_deref() == id)
    }

    /// Verifies a signature by the key of `id`; without an id, by the only key that fits the algorithm.
    pub(crate) fn verify(
        &self,
        id: Option<&str>,
        algorithm: Algorithm,
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), Refusal> {
        let mut fitting = self.0.iter().filter(|key| (id.is_none() || key.id.as_deref() == id) && key.fits(algorithm));
        let key = fitting.next().ok_or(Refusal::Key)?;
        if fitting.next().is_some() {
            return Err(Refusal::Key);
        }
        if key.verifies(algorithm, message, signature) { Ok(()) } else { Err(Refusal::Signature) }
    }
}

impl Key {
    fn parse(value: &Value) -> Option<Self> {
        let key = WrittenKey::deserialize(value).ok()?;
        if key.purpose.is_some_and(|purpose| purpose != "sig") {
            return None;
        }
        let decode = |text: Option<String>| URL_SAFE_NO_PAD.decode(text?).ok();
        let point = |length: usize, x: Option<String>, y: Option<String>| {
            let (x, y) = (decode(x)?, decode(y)?);
            (x.len() == length && y.len() == length).then(|| [&[4], &x[..], &y[..]].concat())
        };
        let material = match (key.kty.as_str(), key.crv.as_deref()) {
            // A number may have leading zeros, which ring refuses.
            ("RSA", _) => Material::Rsa {
                modulus: decode(key.n)?.into_iter().skip_while(|byte| *byte == 0).collect(),
                exponent: decode(key.e)?.into_iter().skip_while(|byte| *byte == 0).collect(),
            },
            ("EC", Some("P-256")) => Material::P256(point(32, key.x, key.y)?),
            ("EC", Some("P-384")) => Material::P384(point(48, key.x, key.y)?),
            ("OKP", Some("Ed25519")) => Material::Ed25519(decode(key.x)?),
            _ => return None,
        };
        Some(Self { id: key.kid, algorithm: key.alg, material })
    }

    fn fits(&self, algorithm: Algorithm) -> bool {
        let is_its_kind = match self.material {
            Material::Rsa { .. } => matches!(algorithm, Algorithm::Rs256 | Algorithm::Ps256),
            Material::P256(_) => algorithm == Algorithm::Es256,
            Material::P384(_) => algorithm == Algorithm::Es384,
            Material::Ed25519(_) => algorithm == Algorithm::EdDsa,
        };
        is_its_kind && self.algorithm.as_deref().is_none_or(|own| own == algorithm.as_str())
    }

    fn verifies(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        let verified = match &self.material {
            Material::Rsa { modulus, exponent } => {
                let padding = match algorithm {
                    Algorithm::Ps256 => &signature::RSA_PSS_2048_8192_SHA256,
                    _ => &signature::RSA_PKCS1_2048_8192_SHA256,
                };
                RsaPublicKeyComponents { n: modulus, e: exponent }.verify(padding, message, signature)
            }
            Material::P256(point) => {
                UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_FIXED, point).verify(message, signature)
            }
            Material::P384(point) => {
                UnparsedPublicKey::new(&signature::ECDSA_P384_SHA384_FIXED, point).verify(message, signature)
            }
            Material::Ed25519(point) => UnparsedPublicKey::new(&signature::ED25519, point).verify(message, signature),
        };
        verified.is_ok()
    }
}

/// The keys at a URL, kept for an hour. Of concurrent callers one fetches, and the others wait for it.
#[derive(Debug, Default)]
pub struct RemoteKeys(Mutex<(Option<Fetched>, Failed)>);

#[derive(Debug)]
struct Fetched {
    url: Url,
    keys: Arc<Keys>,
    at: Instant,
    /// When they were last asked for, also in vain.
    asked: Instant,
}

impl RemoteKeys {
    /// The keys at `url`, to verify a token of this key id. A set without the id is fetched again, once a minute at most.
    ///
    /// # Errors
    ///
    /// If they must be fetched and cannot be.
    pub async fn get(&self, fetcher: &Fetcher, url: &Url, id: Option<&str>) -> Result<Arc<Keys>, FetchError> {
        let (kept, failed) = &mut *self.0.lock().await;
        let usable = |fetched: &&mut Fetched| fetched.url == *url && fetched.at.elapsed() < KEPT;
        if let Some(fetched) = kept.as_mut().filter(usable) {
            if fetched.keys.know(id) || fetched.asked.elapsed() < PAUSE {
                return Ok(Arc::clone(&fetched.keys));
            }
            fetched.asked = Instant::now();
        }
        let keys = failed.remember(async {
            Keys::parse(&fetcher.get(url, None).await?.document).map(Arc::new).ok_or(FetchError::Form)
        });
        let keys = keys.await?;
        let now = Instant::now();
        *kept = Some(Fetched { url: url.clone(), keys: Arc::clone(&keys), at: now, asked: now });
        Ok(keys)
    }
}

#[cfg(test)]
mod tests;
