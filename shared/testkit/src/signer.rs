//! Keys that sign tokens, as a provider of identities has them, and wrong tokens, as an attacker makes them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _,
    RSA_PKCS1_SHA256, RSA_PSS_SHA256, RsaKeyPair,
};
use serde_json::{Value, json};

/// A key of 2048 bits that `openssl genpkey` made for tests; ring makes none.
const RSA: &[u8] = include_bytes!("rsa.pk8");

/// A private key with an id.
pub struct Signer {
    id: String,
    key: Key,
}

enum Key {
    Rsa(Box<RsaKeyPair>),
    P256(EcdsaKeyPair),
    P384(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl Signer {
    /// The RSA key, which all signers of this kind share.
    pub fn rsa(id: &str) -> Self {
        Self::new(id, Key::Rsa(Box::new(RsaKeyPair::from_pkcs8(RSA).expect("a key"))))
    }

    /// A new key on P-256.
    pub fn p256(id: &str) -> Self {
        let random = SystemRandom::new();
        let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).expect("a key");
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, key.as_ref(), &random);
        Self::new(id, Key::P256(key.expect("a key")))
    }

    /// A new key on P-384.
    pub fn p384(id: &str) -> Self {
        let random = SystemRandom::new();
        let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P384_SHA384_FIXED_SIGNING, &random).expect("a key");
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P384_SHA384_FIXED_SIGNING, key.as_ref(), &random);
        Self::new(id, Key::P384(key.expect("a key")))
    }

    /// A new Ed25519 key.
    pub fn ed25519(id: &str) -> Self {
        let key = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("a key");
        Self::new(id, Key::Ed25519(Ed25519KeyPair::from_pkcs8(key.as_ref()).expect("a key")))
    }

    fn new(id: &str, key: Key) -> Self {
        Self { id: id.to_owned(), key }
    }

    /// The public key (RFC 7517).
    pub fn jwk(&self) -> Value {
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let curve = |name: &str, point: &[u8]| {
            let (x, y) = point[1..].split_at(point.len() / 2);
            json!({ "kty": "EC", "crv": name, "x": encode(x), "y": encode(y) })
        };
        let mut jwk = match &self.key {
            Key::Rsa(key) => {
                let public = PublicKeyComponents::<Vec<u8>>::from(key.public());
                json!({ "kty": "RSA", "n": encode(&public.n), "e": encode(&public.e) })
            }
            Key::P256(key) => curve("P-256", key.public_key().as_ref()),
            Key::P384(key) => curve("P-384", key.public_key().as_ref()),
            Key::Ed25519(key) => json!({ "kty": "OKP", "crv": "Ed25519", "x": encode(key.public_key().as_ref()) }),
        };
        jwk["kid"] = self.id.as_str().into();
        jwk
    }

    /// The public key's modulus, which algorithms with a shared secret must not take for one; empty for other kinds.
    pub fn modulus(&self) -> Vec<u8> {
        match &self.key {
            Key::Rsa(key) => PublicKeyComponents::<Vec<u8>>::from(key.public()).n,
            _ => Vec::new(),
        }
    }

    /// A token with the header that fits the key.
    pub fn sign(&self, claims: &Value) -> String {
        let algorithm = match self.key {
            Key::Rsa(_) => "RS256",
            Key::P256(_) => "ES256",
            Key::P384(_) => "ES384",
            Key::Ed25519(_) => "EdDSA",
        };
        self.sign_with(&json!({ "alg": algorithm, "kid": self.id }), claims)
    }

    /// A token with any header. `PS256` in it changes the padding of an RSA signature.
    pub fn sign_with(&self, header: &Value, claims: &Value) -> String {
        token(header, claims, |message| {
            let random = SystemRandom::new();
            match &self.key {
                Key::Rsa(key) => {
                    let mut signature = vec![0; key.public().modulus_len()];
                    match header["alg"] == "PS256" {
                        true => key.sign(&RSA_PSS_SHA256, &random, message, &mut signature),
                        false => key.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature),
                    }
                    .expect("signs");
                    signature
                }
                Key::P256(key) | Key::P384(key) => key.sign(&random, message).expect("signs").as_ref().to_vec(),
                Key::Ed25519(key) => key.sign(message).as_ref().to_vec(),
            }
        })
    }
}

/// A token that a shared secret signs.
pub fn sign_with_secret(header: &Value, claims: &Value, secret: &[u8]) -> String {
    token(header, claims, |message| hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), message).as_ref().to_vec())
}

/// A token without a signature.
pub fn unsigned(header: &Value, claims: &Value) -> String {
    token(header, claims, |_| Vec::new())
}

fn token(header: &Value, claims: &Value, sign: impl FnOnce(&[u8]) -> Vec<u8>) -> String {
    let message = format!("{}.{}", encode(header), encode(claims));
    let signature = sign(message.as_bytes());
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
}

fn encode(part: &Value) -> String {
    URL_SAFE_NO_PAD.encode(part.to_string())
}
