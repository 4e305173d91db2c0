//! The only source of randomness.
//!
//! Everything comes from the thread's ChaCha generator, which the operating system seeds and reseeds. It is suitable for
//! secrets, and fast enough that nothing needs a second, weaker source.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// A new bearer secret: 32 random bytes as 43 characters of base64url.
pub fn token_secret() -> String {
    URL_SAFE_NO_PAD.encode(bytes::<32>())
}

/// A new secret of a capability link: 16 random bytes.
pub fn link_secret() -> [u8; 16] {
    bytes()
}

/// A new canvas revision: `r` and 16 random bytes as base64url, so that it is never reused and cannot be guessed from its
/// predecessor.
pub fn revision() -> String {
    format!("r{}", URL_SAFE_NO_PAD.encode(bytes::<16>()))
}

/// `N` random letters from `a` to `z`, for names that people and models repeat. They open nothing.
pub fn letters<const N: usize>() -> String {
    bytes::<N>().iter().map(|byte| char::from(b'a' + byte % 26)).collect()
}

/// `N` random letters of `alphabet`, for codes that people type.
pub fn code<const N: usize>(alphabet: &[u8]) -> String {
    (0..N).map(|_| char::from(alphabet[rand::random_range(0..alphabet.len())])).collect()
}

/// A uniformly distributed number in `[0, 1)`, for jitter.
pub fn fraction() -> f64 {
    rand::random()
}

/// A random number, to tell two things of the same name apart.
pub fn number() -> u32 {
    rand::random()
}

/// `N` random bytes, fit for keys and nonces.
pub(crate) fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    rand::fill(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_token_secret_is_43_characters_of_base64url() {
        let secret = token_secret();
        assert_eq!(secret.len(), 43);
        assert_eq!(URL_SAFE_NO_PAD.decode(secret).expect("base64url").len(), 32);
    }

    #[test]
    fn letters_are_those_from_a_to_z() {
        let letters = letters::<2000>();
        assert_eq!((letters.len(), letters.bytes().all(|byte| byte.is_ascii_lowercase())), (2000, true));
        assert_eq!(letters.chars().collect::<HashSet<_>>().len(), 26);
    }

    #[test]
    fn a_revision_is_r_and_16_bytes_of_base64url() {
        let revision = revision();
        let rest = revision.strip_prefix('r').expect("starts with r");
        assert_eq!(URL_SAFE_NO_PAD.decode(rest).expect("base64url").len(), 16);
    }

    #[test]
    fn revisions_and_secrets_do_not_repeat() {
        let made: HashSet<String> = (0..1000).flat_map(|_| [revision(), token_secret()]).collect();
        assert_eq!(made.len(), 2000);
    }

    #[test]
    fn fractions_stay_below_one() {
        assert!((0..1000).map(|_| fraction()).all(|fraction| (0.0..1.0).contains(&fraction)));
    }
}
