//! The table of attacks on sign-in: each is refused in the way that its comment says.

use e2e::PATIENCE;
use futures_util::future::join_all;
use serde_json::{Value, json};
use testkit::openid::{CLIENT, OpenId};
use testkit::signer::{Signer, sign_with_secret, unsigned};

use super::{Begun, Site, begin, email, end, log_out, start_with, uid_of};

/// 1. An ID token without a signature, or with that of a shared secret: `refused`.
#[tokio::test]
async fn attack_01_algorithms_without_a_key() {
    let site = Site::start(json!({ "admit": "anyone" })).await;
    let header = |alg: &str| json!({ "alg": alg, "kid": "k1" });
    for alg in ["none", "HS256", "RS256"] {
        for secret in [b"".to_vec(), CLIENT.into(), site.openid.signer.modulus()] {
            let problem = site.refusal(|begun| {
                let claims = site.claims("ana", begun, email("ana"));
                if secret.is_empty() {
                    unsigned(&header(alg), &claims)
                } else {
                    sign_with_secret(&header(alg), &claims, &secret)
                }
            });
            assert_eq!(problem.await, "refused", "{alg}");
        }
    }
    assert_eq!(site.stack.count("SELECT count(*) FROM identities").await, 0);
    site.sign_in("ana", email("ana")).await.expect("a right token signs in");
}

/// 2. A token of another kind of key, or by the key of another provider under a known id: `refused`.
#[tokio::test]
async fn attack_02_another_key() {
    let site = Site::start(json!({ "admit": "anyone" })).await;
    let ours = Signer::p256("k1");
    site.openid.set_keys(&[&ours]);
    let stranger = Signer::p256("k1");
    for signer in [&site.openid.signer, &stranger] {
        let problem = site.refusal(|begun| signer.sign(&site.claims("ana", begun, email("ana"))));
        assert_eq!(problem.await, "refused");
    }
    let begun = site.begin().await;
    assert!(site.end(&begun, &ours.sign(&site.claims("ana", &begun, email("ana")))).await.is_ok());
}

/// 3. A token for another client: `refused`.
#[tokio::test]
async fn attack_03_another_client() {
    let site = Site::start(json!({ "admit": "anyone" })).await;
    for change in [
        json!({ "aud": "other" }),
        json!({ "aud": [CLIENT, "other"] }),
        json!({ "aud": [CLIENT, "other"], "azp": "other" }),
        json!({ "azp": "other" }),
        json!({ "aud": null }),
    ] {
        assert_eq!(site.sign_in("ana", change.clone()).await.err().as_deref(), Some("refused"), "{change}");
    }
}

/// 4. A nonce of nobody or of an earlier sign-in, and times that do not hold: `refused`.
#[tokio::test]
async fn attack_04_nonces_and_times() {
    let site = Site::start(json!({ "admit": "anyone" })).await;
    let earlier = site.begin().await;
    let now = std::time::UNIX_EPOCH.elapsed().expect("after 1970").as_secs();
    for change in [
        json!({ "nonce": "x" }),
        json!({ "nonce": null }),
        json!({ "nonce": earlier.nonce }),
        json!({ "exp": now - 120 }),
        json!({ "exp": null }),
        json!({ "iat": now + 120 }),
        json!({ "iat": null }),
        json!({ "nbf": now + 120 }),
        json!({ "sub": null }),
        json!({ "sub": "s".repeat(256) }),
        json!({ "at_hash": "AAAA" }),
    ] {
        assert_eq!(site.sign_in("ana", change.clone()).await.err().as_deref(), Some("refused"), "{change}");
    }
}

/// 5. An issuer that differs by a slash or by case: `refused`.
#[tokio::test]
async fn attack_05_almost_the_issuer() {
    let site = Site::start(json!({ "admit": "anyone" })).await;
    for issuer in [format!("{}/", site.openid.issuer), site.openid.issuer.to_uppercase()] {
        assert_eq!(site.sign_in("ana", json!({ "iss": issuer })).await.err().as_deref(), Some("refused"));
    }
}

/// 6. Keys without end: 256 KiB are read, and new ids fetch them once a minute.
#[tokio::test]
async fn attack_06_keys_without_end() {
    let site = Site::start(json!({ "admit": "anyone" })).await;
    let good = site.openid.answers().keys.clone();
    site.openid.answers().keys = (200, vec![b' '; 1 << 20]);
    assert_eq!(site.failure("ana").await, "provider_unavailable");
    let many: Vec<Value> = (0..1000)
        .map(|number| {
            let mut key = site.openid.signer.jwk();
            key["kid"] = format!("k{number}").into();
            key
        })
        .collect();
    site.openid.answers().keys = (200, json!({ "keys": many }).to_string().into_bytes());
    assert_eq!(site.failure("ana").await, "provider_unavailable");
    site.openid.answers().keys = good;
    site.sign_in("ana", email("ana")).await.expect("signs in");
    let before = site.openid.count("/keys");
    for number in 0..50 {
        let header = json!({ "alg": "RS256", "kid": format!("new{number}") });
        let problem =
            site.refusal(|begun| site.openid.signer.sign_with(&header, &site.claims("ana", begun, email("ana"))));
        assert_eq!(problem.await, "refused");
    }
    assert_eq!(site.openid.count("/keys"), before, "within a minute");
}

/// 7. The victim opens the callback of a sign-in that the attacker began: `expired`, and no session.
#[tokio::test]
async fn attack_07_somebody_else_s_callback() {
    let site = Site::start(json!({ "admit": "anyone" })).await;
    let begun = site.begin().await;
    let code = site.openid.grant(&site.openid.signer.sign(&site.claims("eve", &begun, email("eve"))));
    let query = format!("code={code}&state={}", begun.state);
    let other = site.begin().await;
    for cookie in ["", "__Host-canvas-signin=AAAA", &other.cookie, &format!("{}; {}", begun.cookie, other.cookie)] {
        let victim = Begun { cookie: cookie.to_owned(), state: String::new(), nonce: String::new() };
        assert_eq!(end(&site.stack, "main", &victim, &query).await.err().as_deref(), Some("expired"), "{cookie}");
    }
    assert_eq!(site.openid.count("/token"), 0, "the code is not even redeemed");
    assert!(end(&site.stack, "main", &begun, &query).await.is_ok());
}

/// 8. A callback twice, with the path of another provider, or by another issuer: `expired` or `refused`.
#[tokio::test]
async fn attack_08_replays_and_mix_ups() {
    let (main, other) = (OpenId::start().await, OpenId::start().await);
    other.answers().metadata["authorization_response_iss_parameter_supported"] = json!(true);
    let admit = json!({ "admit": "anyone" });
    let stack = start_with(&[("main", &main, admit.clone()), ("other", &other, admit)], 1).await;
    let begun = begin(&stack, "main").await;
    let mut claims = main.claims("ana", &begun.nonce);
    claims["email"] = json!("ana@example.com");
    claims["email_verified"] = json!(true);
    let query = format!("code={}&state={}", main.grant(&main.signer.sign(&claims)), begun.state);
    assert_eq!(end(&stack, "other", &begun, &query).await.err().as_deref(), Some("expired"));
    let foreign = format!("{query}&iss={}", other.issuer);
    assert_eq!(end(&stack, "main", &begun, &foreign).await.err().as_deref(), Some("refused"));
    let twice = format!("{query}&iss={0}&iss={0}", main.issuer);
    assert_eq!(end(&stack, "main", &begun, &twice).await.err().as_deref(), Some("refused"));
    let named = format!("{query}&iss={}", main.issuer);
    assert!(end(&stack, "main", &begun, &named).await.is_ok());
    assert_eq!(end(&stack, "main", &begun, &named).await.err().as_deref(), Some("refused"), "a code is good once");
    // The metadata promises an issuer, so an answer without one is not from there.
    let begun = begin(&stack, "other").await;
    let code = other.grant(&other.signer.sign(&other.claims("ana", &begun.nonce)));
    let query = format!("code={code}&state={}", begun.state);
    assert_eq!(end(&stack, "other", &begun, &query).await.err().as_deref(), Some("refused"));
}

/// 9. Text in the answer of a provider: nothing of it is shown.
#[tokio::test]
async fn attack_09_texts_of_a_provider() {
    let site = Site::start(json!({})).await;
    for (error, problem) in [
        ("access_denied", "refused"),
        ("<script>", "refused"),
        ("server_error", "provider_unavailable"),
        ("unauthorized_client", "misconfigured"),
    ] {
        let begun = site.begin().await;
        let query = format!("error={error}&error_description=<script>alert(1)</script>&state={}", begun.state);
        assert_eq!(end(&site.stack, "main", &begun, &query).await.err().as_deref(), Some(problem));
    }
    assert_eq!(site.openid.count("/token"), 0);
}

/// 10. An address to go on to in a request: there is no such parameter.
#[tokio::test]
async fn attack_10_open_redirects() {
    let site = Site::start(json!({ "admit": "anyone" })).await;
    let start = "/console/oidc/main/start?next=//evil.example&redirect_uri=https://evil.example&return=/x";
    let reply = site.stack.anonymous().get(start).await.expect(303);
    let location = reply.header("location").expect("a location");
    assert!(location.starts_with(&format!("{}/authorize?", site.openid.issuer)) && !location.contains("evil"));
    let begun = site.begin().await;
    let code = site.openid.grant(&site.openid.signer.sign(&site.claims("ana", &begun, email("ana"))));
    let query = format!("code={code}&state={}&next=//evil.example", begun.state);
    assert!(end(&site.stack, "main", &begun, &query).await.is_ok(), "to /signin/done");
}

/// 11. The victim's email, which the provider has not verified: `email_unverified`, and no link.
#[tokio::test]
async fn attack_11_unverified_emails() {
    let site = Site::start(json!({ "admit": "anyone" })).await;
    let victim = site.stack.account().await;
    for verified in [json!(false), json!("false"), json!(null), json!(1), json!("yes")] {
        let change = json!({ "email": victim.email, "email_verified": verified });
        assert_eq!(site.sign_in("eve", change).await.err().as_deref(), Some("email_unverified"), "{verified}");
    }
    assert_eq!(site.stack.count("SELECT count(*) FROM identities").await, 0);
}

/// 12. The verified email of an account that has an identity: `email_taken`.
#[tokio::test]
async fn attack_12_recycled_emails() {
    let (main, other) = (OpenId::start().await, OpenId::start().await);
    let stack = start_with(&[("main", &main, json!({})), ("other", &other, json!({ "admit": "anyone" }))], 1).await;
    let victim = stack.account().await;
    let sign_in = async |id: &str, openid: &OpenId, subject: &str| {
        let begun = begin(&stack, id).await;
        let mut claims = openid.claims(subject, &begun.nonce);
        claims["email"] = victim.email.to_uppercase().into();
        claims["email_verified"] = json!(true);
        let code = openid.grant(&openid.signer.sign(&claims));
        end(&stack, id, &begun, &format!("code={code}&state={}", begun.state)).await
    };
    let person = sign_in("main", &main, "victim").await.expect("the first identity is linked");
    assert_eq!(uid_of(&person).await, victim.uid);
    assert_eq!(sign_in("main", &main, "heir of the address").await.err().as_deref(), Some("email_taken"));
    assert_eq!(sign_in("other", &other, "eve").await.err().as_deref(), Some("email_taken"));
    sign_in("main", &main, "victim").await.expect("the first identity stays");
}

/// 13. The verified email of an administrator without an identity: `email_taken`, and no link.
#[tokio::test]
async fn attack_13_administrators() {
    let site = Site::start(json!({})).await;
    let victim = site.stack.account().await;
    sqlx::query("UPDATE accounts SET role = 'admin' WHERE uid = $1")
        .bind(&victim.uid)
        .execute(site.stack.pool())
        .await
        .expect("changes");
    let change = json!({ "email": victim.email, "email_verified": true });
    assert_eq!(site.sign_in("eve", change).await.err().as_deref(), Some("email_taken"));
}

/// 14. Other claims that name the victim: they are never read.
#[tokio::test]
async fn attack_14_names_of_the_victim() {
    let site = Site::start(json!({})).await;
    let victim = site.stack.account().await;
    let names = json!({
        "preferred_username": victim.email, "upn": victim.email, "uid": victim.uid, "name": victim.email,
        "emails": [victim.email], "email_verified": true,
    });
    assert_eq!(site.sign_in(&victim.uid, names).await.err().as_deref(), Some("no_account"));
    assert_eq!(site.sign_in(&victim.email, json!({})).await.err().as_deref(), Some("no_account"));
}

/// 15. Fifty first sign-ins at once: one account, one identity, one grant of credit.
#[tokio::test]
async fn attack_15_many_first_sign_ins_at_once() {
    let site = Site::with(json!({ "admit": "anyone", "newCredits": 7, "creditsClaim": "credits" }), 2).await;
    let mut change = email("ana");
    change["credits"] = json!(10);
    let all = join_all((0..50).map(|_| site.sign_in("ana", change.clone()))).await;
    assert!(all.iter().all(Result::is_ok), "{:?}", all.iter().filter_map(|one| one.as_ref().err()).collect::<Vec<_>>());
    for (sql, expected) in [
        ("SELECT count(*) FROM accounts", 1),
        ("SELECT count(*) FROM identities", 1),
        ("SELECT sum(amount)::bigint FROM ledger", 10),
        ("SELECT credit_balance FROM accounts", 10),
    ] {
        assert_eq!(site.stack.count(sql).await, expected, "{sql}");
    }
}

/// 16. The person has left the group: `not_admitted`, and everything of the account ends at once, on every gateway.
#[tokio::test]
async fn attack_16_a_lost_group() {
    let site = Site::with(json!({ "admit": "group:staff" }), 2).await;
    let staff = |groups: Value| {
        let mut claims = email("ana");
        claims["groups"] = groups;
        claims
    };
    let person = site.sign_in("ana", staff(json!(["staff"]))).await.expect("is admitted");
    let uid = uid_of(&person).await;
    let account = e2e::Account { uid: uid.clone(), email: "ana@example.com".to_owned() };
    let user = site.stack.user_of(&account, "all").await.at(&site.stack, 1);
    user.get("/auth/status").await.ok();
    let mut stream = user.get("/events?runs=mine").streamed().await;
    assert_eq!(site.sign_in("ana", staff(json!([]))).await.err().as_deref(), Some("not_admitted"));
    user.get("/auth/status").await.expect_error(401, "unauthorized", &[]);
    person.at(&site.stack, 1).get("/session").await.expect_error(401, "unauthorized", &[]);
    let ended = async { while stream.chunk().await.is_ok_and(|chunk| chunk.is_some()) {} };
    tokio::time::timeout(PATIENCE, ended).await.expect("the stream ends");
    // A stranger of another group gets nothing, and leaves nothing.
    assert_eq!(site.sign_in("eve", email("eve")).await.err().as_deref(), Some("not_admitted"));
    assert_eq!(site.stack.count("SELECT count(*) FROM identities").await, 1);
    site.sign_in("ana", staff(json!("staff"))).await.expect("the next admitted sign-in enables the account");
    user.get("/auth/status").await.ok();
}

/// 17. The operator disabled the account: an admitted sign-in is `disabled`, and it stays so.
#[tokio::test]
async fn attack_17_a_disabled_account() {
    let site = Site::start(json!({ "admit": "group:staff" })).await;
    let mut claims = email("ana");
    claims["groups"] = json!(["staff"]);
    let person = site.sign_in("ana", claims.clone()).await.expect("is admitted");
    let uid = uid_of(&person).await;
    site.stack.admin(&["admin", "account", "disable", "--account", &uid]).await.expect_success();
    for _ in 0..2 {
        assert_eq!(site.sign_in("ana", claims.clone()).await.err().as_deref(), Some("disabled"));
    }
    assert_eq!(site.sign_in("ana", email("ana")).await.err().as_deref(), Some("not_admitted"));
    assert_eq!(site.sign_in("ana", claims.clone()).await.err().as_deref(), Some("disabled"), "not by the sign-in");
    site.stack.admin(&["admin", "account", "enable", "--account", &uid]).await.expect_success();
    site.sign_in("ana", claims).await.expect("the operator enabled it");
}

/// 18. Logout tokens that do not hold: 400. One that is sent again ends no later session.
#[tokio::test]
async fn attack_18_logout_tokens() {
    let site = Site::with(json!({ "admit": "anyone" }), 2).await;
    let mut claims = email("ana");
    claims["sid"] = json!("s1");
    let person = site.sign_in("ana", claims.clone()).await.expect("signs in");
    let now = std::time::UNIX_EPOCH.elapsed().expect("after 1970").as_secs();
    let token = |change: Value| {
        let begun = Begun { cookie: String::new(), state: String::new(), nonce: String::new() };
        let mut all = json!({ "nonce": null, "events": { "http://schemas.openid.net/event/backchannel-logout": {} } });
        all.as_object_mut().expect("an object").extend(change.as_object().expect("an object").clone());
        site.openid.signer.sign(&site.claims("ana", &begun, all))
    };
    for change in [
        json!({ "nonce": "n" }),
        json!({ "aud": "other" }),
        json!({ "iss": "https://other.example" }),
        json!({ "iat": now - 3600 }),
        json!({ "events": {} }),
        json!({ "sub": null }),
    ] {
        assert_eq!(log_out(&site.stack, &token(change.clone())).await, 400, "{change}");
    }
    assert_eq!(log_out(&site.stack, "x").await, 400);
    person.get("/session").await.ok();
    assert_eq!(log_out(&site.stack, &token(json!({ "sid": "s2" }))).await, 200, "another session of the provider");
    person.get("/session").await.ok();
    let account = e2e::Account { uid: uid_of(&person).await, email: "ana@example.com".to_owned() };
    let user = site.stack.user_of(&account, "all").await;
    let ending = token(json!({ "sid": "s1", "sub": null }));
    assert_eq!(log_out(&site.stack, &ending).await, 200);
    person.at(&site.stack, 1).get("/session").await.expect_error(401, "unauthorized", &[]);
    user.get("/auth/status").await.ok();
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    let later = site.sign_in("ana", claims).await.expect("signs in again");
    assert_eq!(log_out(&site.stack, &ending).await, 200, "again");
    later.get("/session").await.ok();
    assert_eq!(log_out(&site.stack, &token(json!({}))).await, 200, "the person, whatever the session");
    later.get("/session").await.expect_error(401, "unauthorized", &[]);
}

/// 19. A provider that names an address of the network: the guard refuses it.
#[tokio::test]
async fn attack_19_addresses_of_the_network() {
    for (member, value, problem) in [
        ("jwks_uri", "https://169.254.169.254/keys", "provider_unavailable"),
        ("token_endpoint", "https://10.0.0.1/token", "provider_unavailable"),
        ("jwks_uri", "http://169.254.169.254/keys", "misconfigured"),
        ("token_endpoint", "http://192.168.1.1/token", "misconfigured"),
    ] {
        let openid = OpenId::start().await;
        openid.answers().metadata[member] = value.into();
        let stack = start_with(&[("main", &openid, json!({ "admit": "anyone" }))], 1).await;
        let reply = stack.anonymous().get("/console/oidc/main/start").await.expect(303);
        let location = reply.header("location").expect("a location");
        if problem == "misconfigured" {
            assert_eq!(location, "/signin?problem=misconfigured", "{value}");
            continue;
        }
        let begun = begin(&stack, "main").await;
        let code = openid.grant(&openid.signer.sign(&openid.claims("ana", &begun.nonce)));
        let query = format!("code={code}&state={}", begun.state);
        assert_eq!(end(&stack, "main", &begun, &query).await.err().as_deref(), Some(problem), "{value}");
    }
    // A redirect is an answer, and nobody follows it.
    let site = Site::start(json!({ "admit": "anyone" })).await;
    site.openid.answers().redirects.insert("/keys".into(), "http://169.254.169.254/".into());
    assert_eq!(site.failure("ana").await, "provider_unavailable");
    site.openid.answers().redirects.clear();
    site.sign_in("ana", email("ana")).await.expect("signs in");
}
