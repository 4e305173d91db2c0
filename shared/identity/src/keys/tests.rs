use egress::{Client, Settings};
use serde_json::json;
use testkit::openid::OpenId;
use testkit::signer::Signer;

use super::*;
use crate::jwt::Token;

fn verifies(keys: &Keys, token: &str) -> Result<(), Refusal> {
    Token::parse(token).expect("a token").verify(keys).map(drop)
}

#[test]
fn a_key_is_used_for_what_it_is_for_alone() {
    let signer = Signer::rsa("k1");
    let token = signer.sign(&json!({}));
    for (change, expected) in [
        (json!({}), Ok(())),
        (json!({ "use": "sig", "alg": "RS256" }), Ok(())),
        (json!({ "use": "enc" }), Err(Refusal::Key)),
        (json!({ "alg": "PS256" }), Err(Refusal::Key)),
        (json!({ "alg": "RS512" }), Err(Refusal::Key)),
        (json!({ "kid": "k2" }), Err(Refusal::Key)),
        (json!({ "kty": "EC" }), Err(Refusal::Key)),
        (json!({ "n": "!" }), Err(Refusal::Key)),
        (json!({ "e": "AQ" }), Err(Refusal::Signature)),
    ] {
        let mut jwk = signer.jwk();
        jwk.as_object_mut().expect("an object").extend(change.as_object().expect("an object").clone());
        // Keys that nobody knows are left out.
        let set = json!({ "keys": [jwk, { "kty": "oct", "k": "AA" }, 7, { "kty": "EC", "crv": "P-521" }] });
        assert_eq!(verifies(&Keys::parse(&set).expect("a set"), &token), expected, "{change}");
    }
    for wrong in [json!(null), json!([]), json!({}), json!({ "keys": {} })] {
        assert!(Keys::parse(&wrong).is_none(), "{wrong}");
    }
}

#[test]
fn without_an_id_the_only_key_that_fits_verifies() {
    let (one, other, elliptic) = (Signer::p256("a"), Signer::p256("b"), Signer::p384("c"));
    let token = one.sign_with(&json!({ "alg": "ES256" }), &json!({}));
    let set = |signers: &[&Signer]| {
        let keys: Vec<_> = signers.iter().map(|signer| signer.jwk()).collect();
        Keys::parse(&json!({ "keys": keys })).expect("a set")
    };
    assert_eq!(verifies(&set(&[&one, &elliptic]), &token), Ok(()));
    assert_eq!(verifies(&set(&[&one, &other]), &token), Err(Refusal::Key));
    assert_eq!(verifies(&set(&[&other]), &token), Err(Refusal::Signature));
}

/// Lets time pass, and nothing else: while sockets are waited for, the clock runs.
async fn advance(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

#[tokio::test]
async fn keys_are_kept_and_an_unknown_id_fetches_them_once_a_minute() {
    let provider = OpenId::start().await;
    let client = Client::load(Settings { allow: "", ca_file: None }).expect("a client");
    let url = Url::parse(&format!("{}/keys", provider.issuer)).expect("a URL");
    let operator = egress::OperatorHost::from_url(&url);
    let fetcher = Fetcher::new(client, operator, 256 * 1024);
    let remote = RemoteKeys::default();
    let get = async |id: &str| remote.get(&fetcher, &url, Some(id)).await.map(|keys| keys.know(Some(id)));
    assert!(get("k1").await.expect("keys"));
    for number in 0..1000 {
        assert!(!get(&format!("new{number}")).await.expect("keys"));
    }
    assert_eq!(provider.count("/keys"), 1);
    advance(PAUSE).await;
    assert!(get("k1").await.expect("keys"), "a known id fetches nothing");
    assert_eq!(provider.count("/keys"), 1);
    provider.set_keys(&[&Signer::p256("new1")]);
    assert!(get("new1").await.expect("keys"), "a new key is found");
    assert!(!get("k1").await.expect("keys"), "a removed one is gone");
    assert_eq!(provider.count("/keys"), 2);
    // A failure counts as a fetch, and what is known stays known.
    advance(PAUSE).await;
    provider.answers().keys.0 = 500;
    assert!(get("k1").await.is_err());
    assert!(!get("k1").await.expect("keys"));
    assert!(get("new1").await.expect("keys"));
    assert_eq!(provider.count("/keys"), 3);
    // After an hour they are unknown.
    advance(KEPT).await;
    assert!(matches!(get("new1").await, Err(FetchError::Status(_))));
    assert!(matches!(get("new1").await, Err(FetchError::Again)), "a failure is remembered for a second");
    assert_eq!(provider.count("/keys"), 4);
    advance(Duration::from_secs(1)).await;
    assert!(matches!(get("new1").await, Err(FetchError::Status(_))));
    assert_eq!(provider.count("/keys"), 5);
}

#[tokio::test]
async fn an_answer_is_bounded_and_no_redirect_is_followed() {
    let provider = OpenId::start().await;
    let client = || Client::load(Settings { allow: "", ca_file: None }).expect("a client");
    let url = Url::parse(&format!("{}/keys", provider.issuer)).expect("a URL");
    let body = provider.answers().keys.1.len();
    let get = async |limit: usize, operator: bool| {
        let operator = egress::OperatorHost::from_url(&url).filter(|_| operator);
        Fetcher::new(client(), operator, limit).get(&url, None).await.map(drop)
    };
    assert!(get(body, true).await.is_ok());
    assert!(matches!(get(body - 1, true).await, Err(FetchError::TooLarge)));
    assert!(matches!(get(body, false).await, Err(FetchError::Send(_))), "the guard refuses loopback");
    provider.answers().redirects.insert("/keys".into(), "http://169.254.169.254/".into());
    assert!(matches!(get(body, true).await, Err(FetchError::Status(status)) if status.as_u16() == 302));
}
