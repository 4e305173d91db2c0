use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use serde_json::json;
use testkit::openid::OpenId;
use testkit::signer::Signer;

use super::*;
use crate::settings::in_file;

const ATTEMPT: Attempt<'static> =
    Attempt { redirect_uri: "http://127.0.0.1/callback", state: "s", nonce: "n", verifier: "v" };

fn client_of(openid: &OpenId, members: &Value) -> Provider {
    let mut provider = json!({ "id": "p", "issuer": openid.issuer, "clientId": testkit::openid::CLIENT });
    provider.as_object_mut().expect("an object").extend(members.as_object().expect("an object").clone());
    let settings = in_file(&json!([provider]).to_string()).expect("settings").remove(0);
    Provider::new(settings, Client::load(egress::Settings { allow: "", ca_file: None }).expect("a client"))
}

#[tokio::test]
async fn a_code_becomes_a_person() {
    let openid = OpenId::start().await;
    let provider = client_of(&openid, &json!({ "admit": "group:staff" }));
    let url = provider.start(&ATTEMPT).await.expect("a URL");
    let asked: std::collections::HashMap<_, _> = url.query_pairs().collect();
    assert_eq!((&*asked["client_id"], &*asked["state"], &*asked["nonce"]), ("canvas", "s", "n"));
    // RFC 7636: the challenge is the hash of the verifier, which only the token endpoint is told.
    assert_eq!(asked["code_challenge"], URL_SAFE_NO_PAD.encode(digest(&SHA256, b"v")));
    let code = openid.grant(&openid.signer.sign(&openid.claims("ana", "n")));
    let userinfo = json!({ "sub": "ana", "email": "ana@example.com", "email_verified": true, "groups": ["staff"] });
    openid.answers().userinfo.insert(code.clone(), userinfo);
    let person = provider.redeem(&ATTEMPT, &code).await.expect("a person");
    assert_eq!((person.subject.as_str(), person.verified_email()), ("ana", Some("ana@example.com")));
    assert!(person.is_admitted_by_rule(&provider.settings));
    let request = openid.answers().requests.iter().find(|request| request.starts_with("/token")).cloned();
    assert!(request.expect("a request").contains("code_verifier=v"));
    assert!(matches!(provider.redeem(&ATTEMPT, &code).await, Err(SignInError::Code)), "a code is good once");
    // Metadata and keys are kept.
    assert_eq!((openid.count("/.well-known/openid-configuration"), openid.count("/keys")), (1, 1));
}

#[tokio::test]
async fn userinfo_about_somebody_else_refuses_the_sign_in() {
    let openid = OpenId::start().await;
    let provider = client_of(&openid, &json!({}));
    let code = openid.grant(&openid.signer.sign(&openid.claims("ana", "n")));
    openid.answers().userinfo.insert(code.clone(), json!({ "sub": "bo", "email": "bo@example.com" }));
    let refused = provider.redeem(&ATTEMPT, &code).await;
    assert!(matches!(refused, Err(SignInError::Refused(Refusal::Userinfo))), "{refused:?}");
}

#[tokio::test]
async fn metadata_is_that_of_the_issuer_and_names_fit_endpoints() {
    for (member, value, is_misconfigured) in [
        ("issuer", json!("http://127.0.0.1/"), true),
        ("token_endpoint", json!("http://192.0.2.1/token"), true),
        ("jwks_uri", json!("http://169.254.169.254/keys"), true),
        ("userinfo_endpoint", json!("ftp://127.0.0.1/"), true),
        ("authorization_endpoint", json!("javascript:alert(1)"), true),
        ("authorization_endpoint", json!(null), false),
    ] {
        let openid = OpenId::start().await;
        openid.answers().metadata[member] = value;
        let refused = client_of(&openid, &json!({})).start(&ATTEMPT).await.expect_err(member);
        assert_eq!(matches!(refused, SignInError::Misconfigured), is_misconfigured, "{member}: {refused:?}");
    }
    // A name in the metadata gets no more trust than any other.
    let openid = OpenId::start().await;
    openid.answers().metadata["jwks_uri"] = json!("https://169.254.169.254/keys");
    let code = openid.grant(&openid.signer.sign(&openid.claims("ana", "n")));
    let refused = client_of(&openid, &json!({})).redeem(&ATTEMPT, &code).await;
    assert!(matches!(refused, Err(SignInError::Unavailable(FetchError::Send(_)))), "{refused:?}");
}

#[tokio::test]
async fn a_client_shows_who_it_is_as_the_provider_supports() {
    let path = std::env::temp_dir().join(format!("canvas-identity-{}", std::process::id()));
    std::fs::write(&path, "a secret+\n").expect("a file");
    for (methods, members, expected) in [
        (json!(null), json!({ "clientSecretFile": path }), Some("Basic Y2FudmFzOmErc2VjcmV0JTJC")),
        (
            json!(["client_secret_basic", "client_secret_post"]),
            json!({ "clientSecretFile": path }),
            Some("Basic Y2FudmFzOmErc2VjcmV0JTJC"),
        ),
        (
            json!(["client_secret_post"]),
            json!({ "clientSecretFile": path }),
            Some("client_id=canvas&client_secret=a+secret%2B&"),
        ),
        (json!(["private_key_jwt"]), json!({ "clientSecretFile": path }), None),
        (json!(["none"]), json!({}), Some("client_id=canvas&grant_type")),
    ] {
        let openid = OpenId::start().await;
        openid.answers().metadata["token_endpoint_auth_methods_supported"] = methods.clone();
        let answered = client_of(&openid, &members).redeem(&ATTEMPT, "unknown").await;
        let requests = openid.answers().requests.join("\n");
        match expected {
            Some(expected) => assert!(requests.contains(expected), "{methods}: {requests}"),
            None => assert!(matches!(answered, Err(SignInError::Misconfigured)), "{methods}"),
        }
    }
    std::fs::remove_file(path).expect("removes");
}

#[tokio::test]
async fn errors_of_the_token_endpoint_are_told_apart() {
    let openid = OpenId::start().await;
    let provider = client_of(&openid, &json!({}));
    for (status, error, expected) in [
        (400, "invalid_grant", "Code"),
        (400, "access_denied", "Code"),
        (401, "invalid_client", "Misconfigured"),
        (400, "unauthorized_client", "Misconfigured"),
        (503, "temporarily_unavailable", "Unavailable"),
    ] {
        openid.answers().codes.insert("c".into(), (status, json!({ "error": error, "error_description": "<script>" })));
        let refused = provider.redeem(&ATTEMPT, "c").await.expect_err(error);
        assert!(format!("{refused:?}").starts_with(expected), "{error}: {refused:?}");
        assert!(!service::chain(&refused).contains("script"));
    }
}

#[tokio::test]
async fn a_logout_token_names_whom_it_ends() {
    let openid = OpenId::start().await;
    let provider = client_of(&openid, &json!({}));
    let token = |change: &dyn Fn(&mut Value)| {
        let mut claims = openid.claims("ana", "n");
        claims.as_object_mut().expect("an object").remove("nonce");
        claims["events"] = json!({ LOGOUT_EVENT: {} });
        change(&mut claims);
        openid.signer.sign(&claims)
    };
    let now = service::clock::now().timestamp();
    let logout = provider.logout(&token(&|_| ())).await.expect("holds");
    assert_eq!((logout.subject.as_deref(), logout.session), (Some("ana"), None));
    assert!((now - logout.issued_at).abs() < 10);
    assert!(provider.logout(&token(&|claims| claims["iat"] = json!(now - LOGOUT_MAX + 30))).await.is_ok());
    let changes: [&dyn Fn(&mut Value); 8] = [
        &|claims| claims["nonce"] = json!("n"),
        &|claims| claims["nonce"] = json!(null),
        &|claims| claims["aud"] = json!("other"),
        &|claims| claims["events"] = json!({}),
        &|claims| claims["events"] = json!({ LOGOUT_EVENT: true }),
        &|claims| claims["iat"] = json!(now - 3600),
        &|claims| claims["iat"] = json!(null),
        &|claims| drop(claims.as_object_mut().expect("an object").remove("sub")),
    ];
    for (place, change) in changes.into_iter().enumerate() {
        assert!(provider.logout(&token(change)).await.is_err(), "{place}");
    }
    assert!(provider.logout(&Signer::p256("k1").sign(&openid.claims("ana", "n"))).await.is_err());
}

#[tokio::test]
async fn a_check_tells_each_step() {
    let openid = OpenId::start().await;
    let provider = client_of(&openid, &json!({}));
    let steps = provider.check().await;
    assert!(steps.iter().all(|(_, outcome)| outcome.is_ok()), "{steps:?}");
    openid.answers().keys.0 = 500;
    let steps = provider.check().await;
    assert_eq!(
        steps.iter().filter(|(_, outcome)| outcome.is_err()).map(|(step, _)| *step).collect::<Vec<_>>(),
        ["keys"]
    );
    openid.answers().metadata["issuer"] = json!("https://other.example");
    assert!(matches!(&provider.check().await[..], [("discovery", Err(_))]));
}
