//! Signed tokens in the compact form (RFC 7515) and their claims (RFC 7519).
//!
//! **Guarantee.** [`Token::verify`] returns claims only when a key of the issuer signed them with an algorithm of that key. No token
//! chooses how it is verified: `none` and algorithms with a shared secret do not exist here.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{self, SHA256, SHA384, SHA512};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::keys::Keys;

/// Longest token that is read, in bytes.
pub const TOKEN_MAX: usize = 16 * 1024;
/// By how many seconds the clocks of two servers may differ.
const TOLERANCE: i64 = 60;

/// The claims of a token.
pub type Claims = Map<String, Value>;

/// An algorithm of signatures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    Rs256,
    Ps256,
    Es256,
    Es384,
    EdDsa,
}

impl Algorithm {
    pub const ALL: [Self; 5] = [Self::Rs256, Self::Ps256, Self::Es256, Self::Es384, Self::EdDsa];

    /// The name in `alg`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Ps256 => "PS256",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::EdDsa => "EdDSA",
        }
    }

    /// The algorithm of this name; `None` for every other name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.as_str() == name)
    }

    /// The left half of the hash of `text`, as `at_hash` has it (OpenID Connect Core 1.0, 3.1.3.6).
    fn half_hash(self, text: &str) -> String {
        let hash = match self {
            Self::Rs256 | Self::Ps256 | Self::Es256 => &SHA256,
            Self::Es384 => &SHA384,
            Self::EdDsa => &SHA512,
        };
        let digest = digest::digest(hash, text.as_bytes());
        URL_SAFE_NO_PAD.encode(&digest.as_ref()[..digest.as_ref().len() / 2])
    }
}

/// The reason why a token is refused. The texts are fixed, so that a log may have them.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
pub enum Refusal {
    #[error("the token is longer than 16 KiB")]
    TooLong,
    #[error("the token is not a signed token in the compact form")]
    Form,
    #[error("the algorithm of the token is none of RS256, PS256, ES256, ES384 and EdDSA")]
    Algorithm,
    #[error("the token has critical headers")]
    Critical,
    #[error("no key of the issuer fits the token")]
    Key,
    #[error("the signature is wrong")]
    Signature,
    #[error("the claim {0} is missing or has the wrong type")]
    Claim(&'static str),
    #[error("the issuer is another one")]
    Issuer,
    #[error("the token is for another client")]
    Audience,
    #[error("the token has expired")]
    Expired,
    #[error("the token is not valid yet")]
    Early,
    #[error("the nonce is another one")]
    Nonce,
    #[error("at_hash does not belong to the access token")]
    AccessTokenHash,
    #[error("userinfo is about somebody else")]
    Userinfo,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    kid: Option<String>,
    #[serde(default)]
    crit: Option<Value>,
}

/// A token that was read and is not verified.
pub struct Token<'a> {
    algorithm: Algorithm,
    key_id: Option<String>,
    signed: &'a str,
    signature: Vec<u8>,
    claims: Claims,
}

/// A token whose signature is verified.
#[derive(Debug)]
pub struct Verified {
    pub claims: Claims,
    algorithm: Algorithm,
}

impl<'a> Token<'a> {
    /// Reads a token.
    ///
    /// # Errors
    ///
    /// If it is too long or has another form, or if its header asks for what is not supported.
    pub fn parse(text: &'a str) -> Result<Self, Refusal> {
        if text.len() > TOKEN_MAX {
            return Err(Refusal::TooLong);
        }
        let (signed, signature) = text.rsplit_once('.').ok_or(Refusal::Form)?;
        let (header, claims) = signed.split_once('.').ok_or(Refusal::Form)?;
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| Refusal::Form);
        let header: Header = serde_json::from_slice(&decode(header)?).map_err(|_| Refusal::Form)?;
        let algorithm = Algorithm::from_name(&header.alg).ok_or(Refusal::Algorithm)?;
        if header.crit.is_some() {
            return Err(Refusal::Critical);
        }
        let claims = serde_json::from_slice(&decode(claims)?).map_err(|_| Refusal::Form)?;
        Ok(Self { algorithm, key_id: header.kid, signed, signature: decode(signature)?, claims })
    }

    /// The id of the key that the token says it is signed by.
    pub fn key_id(&self) -> Option<&str> {
        self.key_id.as_deref()
    }

    /// A claim, which anybody may have written. Only to find the keys that verify the token.
    pub fn unverified(&self, claim: &str) -> Option<&str> {
        self.claims.get(claim)?.as_str()
    }

    /// Verifies the signature.
    ///
    /// # Errors
    ///
    /// If none of `keys` fits, or if the signature is not of one that does.
    pub fn verify(self, keys: &Keys) -> Result<Verified, Refusal> {
        keys.verify(self.key_id.as_deref(), self.algorithm, self.signed.as_bytes(), &self.signature)?;
        Ok(Verified { claims: self.claims, algorithm: self.algorithm })
    }
}

impl Verified {
    /// Checks that `iss` is `issuer`, byte for byte.
    ///
    /// # Errors
    ///
    /// [`Refusal::Issuer`].
    pub fn check_issuer(&self, issuer: &str) -> Result<(), Refusal> {
        if self.claims.get("iss").and_then(Value::as_str) == Some(issuer) { Ok(()) } else { Err(Refusal::Issuer) }
    }

    /// Checks that the token is for `audience`, and that `azp` is it as well when the token has one or is for several.
    ///
    /// # Errors
    ///
    /// [`Refusal::Audience`].
    pub fn check_audience(&self, audience: &str) -> Result<(), Refusal> {
        let is_ours = |value: &Value| value.as_str() == Some(audience);
        let (is_for_us, are_several) = match self.claims.get("aud") {
            Some(Value::Array(all)) => (all.iter().any(is_ours), all.len() > 1),
            Some(one) => (is_ours(one), false),
            None => (false, false),
        };
        let is_authorized = match self.claims.get("azp") {
            Some(party) => is_ours(party),
            None => !are_several,
        };
        if is_for_us && is_authorized { Ok(()) } else { Err(Refusal::Audience) }
    }

    /// Checks `exp`, and `iat` and `nbf` where the token has them, against `now`, in seconds since 1970.
    ///
    /// # Errors
    ///
    /// If the token has no `exp`, has expired, or is not valid yet.
    pub fn check_times(&self, now: i64) -> Result<(), Refusal> {
        if self.time("exp")?.ok_or(Refusal::Claim("exp"))? <= now - TOLERANCE {
            return Err(Refusal::Expired);
        }
        for claim in ["iat", "nbf"] {
            if self.time(claim)?.is_some_and(|time| time > now + TOLERANCE) {
                return Err(Refusal::Early);
            }
        }
        Ok(())
    }

    /// A time, in seconds since 1970. Fractions are dropped.
    ///
    /// # Errors
    ///
    /// If it is no number.
    pub fn time(&self, claim: &'static str) -> Result<Option<i64>, Refusal> {
        let Some(value) = self.claims.get(claim) else { return Ok(None) };
        // A time has at most 53 bits, so the conversion cannot go wrong unnoticed.
        let whole = value.as_i64().or_else(|| value.as_f64().map(|time| time.floor() as i64));
        whole.map(Some).ok_or(Refusal::Claim(claim))
    }

    /// Checks that `at_hash` belongs to the access token, if the token has one.
    ///
    /// # Errors
    ///
    /// [`Refusal::AccessTokenHash`].
    pub fn check_access_token(&self, access_token: Option<&str>) -> Result<(), Refusal> {
        let Some(hash) = self.claims.get("at_hash") else { return Ok(()) };
        let right = access_token.map(|token| self.algorithm.half_hash(token));
        if right.is_some() && hash.as_str() == right.as_deref() { Ok(()) } else { Err(Refusal::AccessTokenHash) }
    }

    /// A claim that is a text of 1 to `max` characters.
    ///
    /// # Errors
    ///
    /// If it is anything else.
    pub fn text(&self, claim: &'static str, max: usize) -> Result<&str, Refusal> {
        let text = self.claims.get(claim).and_then(Value::as_str);
        text.filter(|text| (1..=max).contains(&text.chars().count())).ok_or(Refusal::Claim(claim))
    }
}

#[cfg(test)]
mod tests;
