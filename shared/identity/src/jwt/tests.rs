use serde_json::{Value, json};
use testkit::signer::{Signer, sign_with_secret, unsigned};

use super::Refusal::{
    AccessTokenHash, Algorithm as WrongAlgorithm, Audience, Claim, Critical, Early, Expired, Form, Issuer, Key,
    Signature, TooLong,
};
use super::*;

const NOW: i64 = 1_800_000_000;

fn keys(signers: &[&Signer]) -> Keys {
    let keys: Vec<_> = signers.iter().map(|signer| signer.jwk()).collect();
    Keys::parse(&json!({ "keys": keys })).expect("a set")
}

fn verify(text: &str, keys: &Keys) -> Result<Verified, Refusal> {
    Token::parse(text)?.verify(keys)
}

fn claims() -> Value {
    json!({ "iss": "https://login.example", "aud": "canvas", "sub": "ana", "exp": NOW + 300, "iat": NOW })
}

#[test]
fn every_algorithm_is_verified_by_its_own_kind_of_key_alone() {
    let signers = [Signer::rsa("rsa"), Signer::p256("p256"), Signer::p384("p384"), Signer::ed25519("ed")];
    let all = keys(&signers.each_ref());
    for signer in &signers {
        let token = signer.sign(&claims());
        assert_eq!(verify(&token, &all).expect("verifies").claims["sub"], "ana");
        let stranger = keys(&[&Signer::p256("p256"), &Signer::p384("p384"), &Signer::ed25519("ed")]);
        let expected = if signer.jwk()["kty"] == "RSA" { Key } else { Signature };
        assert_eq!(verify(&token, &stranger).err(), Some(expected), "{}", signer.jwk());
    }
    let token = signers[0].sign_with(&json!({ "alg": "PS256", "kid": "rsa" }), &claims());
    assert!(verify(&token, &all).is_ok());
    for (signer, algorithm) in [(0, "ES256"), (1, "RS256"), (1, "ES384"), (2, "ES256"), (3, "RS256"), (0, "EdDSA")] {
        let header = json!({ "alg": algorithm, "kid": signers[signer].jwk()["kid"] });
        assert_eq!(verify(&signers[signer].sign_with(&header, &claims()), &all).err(), Some(Key), "{header}");
    }
}

#[test]
fn a_header_chooses_neither_none_nor_a_shared_secret_nor_an_extension() {
    let signer = Signer::rsa("k1");
    let set = keys(&[&signer]);
    let header = |alg: &str| json!({ "alg": alg, "kid": "k1" });
    for alg in ["none", "None", "", "HS256", "HS512", "RS1", "RS512", "rs256", "dir"] {
        let secrets = [b"secret".to_vec(), signer.modulus()];
        for token in [unsigned(&header(alg), &claims()), signer.sign_with(&header(alg), &claims())]
            .into_iter()
            .chain(secrets.iter().map(|secret| sign_with_secret(&header(alg), &claims(), secret)))
        {
            assert_eq!(verify(&token, &set).err(), Some(WrongAlgorithm), "{alg}");
        }
    }
    // The signature is missing, or that of a shared secret, under a permitted name.
    assert_eq!(verify(&unsigned(&header("RS256"), &claims()), &set).err(), Some(Signature));
    let token = sign_with_secret(&header("RS256"), &claims(), &signer.modulus());
    assert_eq!(verify(&token, &set).err(), Some(Signature));
    for crit in [json!(["b64"]), json!([]), json!("exp")] {
        let token = signer.sign_with(&json!({ "alg": "RS256", "kid": "k1", "crit": crit }), &claims());
        assert_eq!(verify(&token, &set).err(), Some(Critical));
    }
    // Keys in the header are nobody's.
    let own = Signer::p256("own");
    let token = own.sign_with(&json!({ "alg": "ES256", "kid": "own", "jwk": own.jwk() }), &claims());
    assert_eq!(verify(&token, &set).err(), Some(Key));
}

#[test]
fn the_form_is_three_parts_of_base64url_within_16_kib() {
    let signer = Signer::p256("k1");
    let set = keys(&[&signer]);
    let token = signer.sign(&claims());
    let parts: Vec<&str> = token.split('.').collect();
    for wrong in [
        String::new(),
        parts[0].to_owned(),
        format!("{}.{}", parts[0], parts[1]),
        format!("{token}.{}", parts[2]),
        format!("{token}="),
        format!(" {token}"),
        format!("{}.W10.{}", parts[0], parts[2]),
        format!("W10.{}.{}", parts[1], parts[2]),
    ] {
        assert_eq!(verify(&wrong, &set).err(), Some(Form), "{wrong}");
    }
    // Of the form, and of another content.
    let other = signer.sign(&json!({ "sub": "bo" }));
    let mixed = format!("{}.{}.{}", parts[0], other.split('.').nth(1).expect("claims"), parts[2]);
    assert_eq!(verify(&mixed, &set).err(), Some(Signature));
    for (length, expected) in [(TOKEN_MAX - 1, Form), (TOKEN_MAX, Form), (TOKEN_MAX + 1, TooLong)] {
        assert_eq!(verify(&"a".repeat(length), &set).err(), Some(expected));
    }
    let long = signer.sign(&json!({ "padding": "x".repeat(TOKEN_MAX / 2) }));
    assert!(verify(&long, &set).is_ok());
}

#[test]
fn claims_hold_or_the_token_is_refused() {
    let signer = Signer::p256("k1");
    let set = keys(&[&signer]);
    let check = |change: &dyn Fn(&mut Value)| {
        let mut claims = claims();
        change(&mut claims);
        let verified = verify(&signer.sign(&claims), &set)?;
        verified.check_issuer("https://login.example")?;
        verified.check_audience("canvas")?;
        verified.check_times(NOW)?;
        verified.text("sub", 255).map(str::to_owned)
    };
    let set = |member: &'static str, value: Value| move |claims: &mut Value| claims[member] = value.clone();
    type Change = Box<dyn Fn(&mut Value)>;
    let rows: Vec<(&str, Change, Result<(), Refusal>)> = vec![
        ("as is", Box::new(|_: &mut Value| ()), Ok(())),
        ("iss slash", Box::new(set("iss", json!("https://login.example/"))), Err(Issuer)),
        ("iss case", Box::new(set("iss", json!("https://LOGIN.example"))), Err(Issuer)),
        ("iss null", Box::new(set("iss", Value::Null)), Err(Issuer)),
        ("aud other", Box::new(set("aud", json!("other"))), Err(Audience)),
        ("aud prefix", Box::new(set("aud", json!("canvas2"))), Err(Audience)),
        ("aud null", Box::new(set("aud", Value::Null)), Err(Audience)),
        ("aud one of one", Box::new(set("aud", json!(["canvas"]))), Ok(())),
        ("aud one of two", Box::new(set("aud", json!(["canvas", "other"]))), Err(Audience)),
        ("azp other", Box::new(set("azp", json!("other"))), Err(Audience)),
        ("azp ours", Box::new(set("azp", json!("canvas"))), Ok(())),
        (
            "aud two, azp ours",
            Box::new(|claims: &mut Value| {
                claims["aud"] = json!(["other", "canvas"]);
                claims["azp"] = json!("canvas");
            }),
            Ok(()),
        ),
        ("exp 59 s ago", Box::new(set("exp", json!(NOW - 59))), Ok(())),
        ("exp 60 s ago", Box::new(set("exp", json!(NOW - 60))), Err(Expired)),
        ("exp text", Box::new(set("exp", json!("soon"))), Err(Claim("exp"))),
        (
            "exp null",
            Box::new(|claims: &mut Value| drop(claims.as_object_mut().expect("an object").remove("exp"))),
            Err(Claim("exp")),
        ),
        ("exp fraction", Box::new(set("exp", json!(NOW as f64 + 0.5))), Ok(())),
        ("iat in 60 s", Box::new(set("iat", json!(NOW + 60))), Ok(())),
        ("iat in 61 s", Box::new(set("iat", json!(NOW + 61))), Err(Early)),
        ("iat text", Box::new(set("iat", json!("now"))), Err(Claim("iat"))),
        ("nbf in 60 s", Box::new(set("nbf", json!(NOW + 60))), Ok(())),
        ("nbf in 61 s", Box::new(set("nbf", json!(NOW + 61))), Err(Early)),
        ("sub empty", Box::new(set("sub", json!(""))), Err(Claim("sub"))),
        ("sub number", Box::new(set("sub", json!(7))), Err(Claim("sub"))),
        ("sub of 255", Box::new(set("sub", json!("ä".repeat(255)))), Ok(())),
        ("sub of 256", Box::new(set("sub", json!("a".repeat(256)))), Err(Claim("sub"))),
    ];
    for (name, change, expected) in rows {
        assert_eq!(check(&*change).map(drop), expected, "{name}");
    }
}

#[test]
fn an_access_token_belongs_to_the_hash_of_its_id_token() {
    // OpenID Connect Core 1.0, A.3: the hash of this access token under RS256.
    const ACCESS: &str = "jHkWEdUXMU1BwAsC4vtUsZwnvTvxEhV6oVzsB0AuXQM";
    let hash = Algorithm::Rs256.half_hash(ACCESS);
    assert_eq!(hash, Algorithm::Es256.half_hash(ACCESS));
    assert_ne!(hash, Algorithm::Es384.half_hash(ACCESS));
    assert_eq!(
        (hash.len(), Algorithm::Es384.half_hash(ACCESS).len(), Algorithm::EdDsa.half_hash(ACCESS).len()),
        (22, 32, 43)
    );
    let signer = Signer::rsa("k1");
    let set = keys(&[&signer]);
    let check = |at_hash: Option<Value>, access: Option<&str>| {
        let mut claims = claims();
        if let Some(at_hash) = at_hash {
            claims["at_hash"] = at_hash;
        }
        verify(&signer.sign(&claims), &set).expect("verifies").check_access_token(access)
    };
    assert_eq!(check(None, Some(ACCESS)), Ok(()));
    assert_eq!(check(None, None), Ok(()));
    assert_eq!(check(Some(json!(hash)), Some(ACCESS)), Ok(()));
    for (at_hash, access) in
        [(json!(hash), Some("other")), (json!(hash), None), (json!("x"), Some(ACCESS)), (json!(null), None)]
    {
        assert_eq!(check(Some(at_hash), access), Err(AccessTokenHash));
    }
}
