//! What people and operators do: sign in, link identities, lose and confirm them.

use e2e::{Person, Stack};
use reqwest::Method;
use serde_json::{Value, json};
use testkit::openid::{CLIENT, OpenId};

use super::{Begun, Site, begin, email, log_out, start_with, uid_of};

#[tokio::test]
async fn a_provider_that_is_away_costs_its_own_button_alone() {
    let (main, away) = (OpenId::start().await, OpenId::start().await);
    let named = json!({ "name": "Acme", "admit": "anyone" });
    let stack = start_with(&[("main", &main, named), ("away", &away, json!({}))], 1).await;
    drop(away);
    let listed = stack.anonymous().get("/console/oidc").await.ok();
    let expected =
        json!({ "providers": [{ "id": "main", "name": "Acme" }, { "id": "away", "name": "Single sign-on" }] });
    assert_eq!(listed, expected);
    let reply = stack.anonymous().get("/console/oidc/away/start").await.expect(303);
    assert_eq!(reply.header("location"), Some("/signin?problem=provider_unavailable"));
    begin(&stack, "main").await;
    for path in ["/console/oidc/none/start", "/console/oidc/none/callback"] {
        stack.anonymous().get(path).await.expect_error(404, "not_found", &[]);
    }
}

#[tokio::test]
async fn a_sign_in_ends_within_its_browser_and_each_start_replaces_the_one_before() {
    let site = Site::start(json!({ "admit": "anyone" })).await;
    let (earlier, later) = (site.begin().await, site.begin().await);
    // The browser keeps the later cookie alone, so the earlier answer does not fit.
    let mixed = Begun { cookie: later.cookie.clone(), state: earlier.state.clone(), nonce: earlier.nonce.clone() };
    let token = site.openid.signer.sign(&site.claims("ana", &mixed, email("ana")));
    assert_eq!(site.end(&mixed, &token).await.err().as_deref(), Some("expired"));
    let token = site.openid.signer.sign(&site.claims("ana", &later, email("ana")));
    let person = site.end(&later, &token).await.expect("signs in");
    let session = person.get("/session").await.ok();
    assert_eq!(
        (&session["session"]["kind"], &session["account"]["email"]),
        (&json!("full"), &json!("ana@example.com"))
    );
    assert_eq!(site.stack.count("SELECT count(*) FROM session_logins").await, 1);
}

#[tokio::test]
async fn without_rules_accounts_are_signed_in_and_not_made() {
    let site = Site::start(json!({})).await;
    let account = site.stack.account().await;
    let claims = |email: &str| json!({ "email": email, "email_verified": "true" });
    assert_eq!(site.sign_in("eve", claims("eve@example.com")).await.err().as_deref(), Some("no_account"));
    let person = site.sign_in("ana", claims(&account.email)).await.expect("is linked");
    assert_eq!(uid_of(&person).await, account.uid);
    let listed = person.get("/identities").await.ok();
    assert_eq!(listed["identities"][0]["email"], json!(account.email), "{listed}");
    // Another address of the same person is the account's from now on, if it is free.
    let taken = site.stack.account().await;
    let person = site.sign_in("ana", claims(&taken.email)).await.expect("signs in");
    assert_eq!(person.get("/session").await.ok()["account"]["email"], json!(account.email));
    let person = site.sign_in("ana", claims("new@example.com")).await.expect("signs in");
    assert_eq!(person.get("/session").await.ok()["account"]["email"], json!("new@example.com"));
    // Without a link by email, the address alone opens nothing.
    let off = Site::start(json!({ "link": "off" })).await;
    let account = off.stack.account().await;
    assert_eq!(off.sign_in("ana", claims(&account.email)).await.err().as_deref(), Some("email_taken"));
}

#[tokio::test]
async fn claims_set_role_credit_and_quota_at_every_sign_in() {
    let settings = json!({
        "admit": "anyone", "adminGroups": ["ops"], "creditsClaim": "/plan/credits", "storageClaim": "quota", "newCredits": 5,
    });
    let site = Site::start(settings).await;
    let sign_in = async |groups: Value, credits: Value, quota: Value| {
        let mut claims = email("ana");
        claims["groups"] = groups;
        claims["plan"] = json!({ "credits": credits });
        claims["quota"] = quota;
        claims["name"] = json!("Ana\nB");
        uid_of(&site.sign_in("ana", claims).await.expect("signs in")).await
    };
    let row = async || {
        let sql = "SELECT role || ' ' || coalesce(role_from, '-') || ' ' || credit_balance || ' ' || coalesce(storage_max::text, '-')
                   FROM accounts WHERE purged_at IS NULL";
        sqlx::query_scalar::<_, String>(sql).fetch_one(site.stack.pool()).await.expect("reads")
    };
    let uid = sign_in(json!(["ops"]), json!(20), json!(1000)).await;
    assert_eq!(row().await, "admin main 20 1000");
    sign_in(json!("staff"), json!(30), json!("many")).await;
    assert_eq!(row().await, "member - 20 1000", "once a month, and a wrong type changes nothing");
    site.stack.execute("UPDATE accounts SET raised_for = raised_for - interval '1 month'").await;
    sign_in(json!({ "ops": {} }), json!(10), Value::Null).await;
    assert_eq!(row().await, "admin main 20 -", "never lowered; an absent quota is the default again");
    site.stack.execute("UPDATE accounts SET raised_for = raised_for - interval '1 month'").await;
    sign_in(json!(7), json!(25), json!(0)).await;
    assert_eq!(row().await, "admin main 25 0", "malformed groups change nothing");
    // What an operator set is the operator's.
    site.stack.execute("UPDATE accounts SET role_from = NULL").await;
    sign_in(json!([]), json!(25), json!(1)).await;
    assert_eq!(row().await, "admin - 25 1");
    site.stack.admin(&["admin", "account", "quota", "--account", &uid, "--bytes", "77"]).await.expect_success();
    sign_in(json!([]), json!(25), Value::Null).await;
    assert_eq!(row().await, "admin - 25 77");
}

#[tokio::test]
async fn people_link_and_unlink_identities_soon_after_they_signed_in() {
    let site = Site::start(json!({ "link": "off" })).await;
    let person = site.stack.person(&site.stack.account().await).await;
    let link = async |person: &Person, subject: &str| {
        let reply = person.call(Method::POST, "/oidc/main/link").await.expect(200);
        let url = url::Url::parse(reply.json()["url"].as_str().expect("a URL")).expect("a URL");
        let asked = |name: &str| url.query_pairs().find(|(known, _)| known == name).expect("asks").1.into_owned();
        let cookie = reply.header("set-cookie").expect("a cookie").split(';').next().expect("a pair").to_owned();
        let begun = Begun { cookie, state: asked("state"), nonce: asked("nonce") };
        site.end(&begun, &site.openid.signer.sign(&site.claims(subject, &begun, json!({}))))
            .await
            .err()
            .expect("no session")
    };
    assert_eq!(link(&person, "ana").await, "/settings/signin");
    assert_eq!(link(&person, "ana").await, "/settings/signin", "again");
    let signed_in = site.sign_in("ana", json!({})).await.expect("the identity signs in");
    assert_eq!(uid_of(&signed_in).await, uid_of(&person).await);
    let other = site.stack.person(&site.stack.account().await).await;
    assert_eq!(link(&other, "ana").await, "identity_taken");
    let listed = person.get("/identities").await.ok();
    let id = listed["identities"][0]["id"].as_str().expect("an id").to_owned();
    other.delete(&format!("/identities/{id}")).await.expect_error(404, "not_found", &[]);
    // Fifteen minutes later.
    site.stack.execute("UPDATE tokens SET created_at = created_at - interval '15 min' WHERE kind = 'session'").await;
    for call in [person.call(Method::POST, "/oidc/main/link"), person.delete(&format!("/identities/{id}"))] {
        assert!(call.await.expect_error(403, "forbidden", &[]).contains("15 minutes"));
    }
    site.stack.execute("UPDATE tokens SET created_at = created_at + interval '1 min' WHERE kind = 'session'").await;
    person.delete(&format!("/identities/{id}")).await.expect(204);
    assert_eq!(site.sign_in("ana", json!({})).await.err().as_deref(), Some("no_account"));
    // The session that began it must still be there at the end.
    let reply = person.call(Method::POST, "/oidc/main/link").await.expect(200);
    let url = url::Url::parse(reply.json()["url"].as_str().expect("a URL")).expect("a URL");
    let asked = |name: &str| url.query_pairs().find(|(known, _)| known == name).expect("asks").1.into_owned();
    let cookie = reply.header("set-cookie").expect("a cookie").split(';').next().expect("a pair").to_owned();
    let begun = Begun { cookie, state: asked("state"), nonce: asked("nonce") };
    person.delete("/session").await.expect(204);
    let token = site.openid.signer.sign(&site.claims("ana", &begun, json!({})));
    assert_eq!(site.end(&begun, &token).await.err().as_deref(), Some("expired"));
}

#[tokio::test]
async fn an_account_has_at_most_20_identities() {
    let site = Site::start(json!({})).await;
    let account = site.stack.account().await;
    let person = site.stack.person(&account).await;
    let link = |subject: String| {
        let account = account.uid.clone();
        let stack = &site.stack;
        async move { stack.admin(&["admin", "identity", "link", "--account", &account, "--subject", &subject]).await }
    };
    for number in 0..19 {
        link(format!("s{number}")).await.expect_success();
    }
    person.call(Method::POST, "/oidc/main/link").await.expect(200);
    link("s19".into()).await.expect_success();
    person.call(Method::POST, "/oidc/main/link").await.expect_error(409, "conflict", &[]);
    link("s20".into()).await.expect_refusal();
    link("s19".into()).await.expect_success();
}

#[tokio::test]
async fn tokens_need_a_sign_in_of_their_owner_from_time_to_time() {
    let site = Site::with(json!({ "confirmDays": 30 }), 1).await;
    let account = site.stack.account().await;
    let user = site.stack.user_of(&account, "all").await;
    assert_eq!(user.get("/auth/status").await.ok().get("confirmBy"), None, "without an identity they need none");
    let claims = json!({ "email": account.email, "email_verified": true });
    let person = site.sign_in("ana", claims.clone()).await.expect("signs in");
    assert!(user.get("/auth/status").await.ok()["confirmBy"].is_string());
    assert!(person.get("/identities").await.ok()["confirmBy"].is_string());
    let expire = "UPDATE accounts SET confirm_by = now() WHERE confirm_by IS NOT NULL";
    site.stack.execute(expire).await;
    user.get("/auth/status").await.expect_error(401, "unauthorized", &[]);
    site.stack.signing_in(&json!({ "token": user.token })).await.expect_error(401, "unauthorized", &[]);
    person.get("/session").await.ok();
    site.sign_in("ana", claims).await.expect("signs in");
    user.get("/auth/status").await.ok();
    // So does the operator's link.
    site.stack.execute(expire).await;
    site.stack.person(&account).await;
    user.get("/auth/status").await.ok();
    // Without a provider nobody could sign in with one.
    site.stack.execute(expire).await;
    site.stack.restart_with(e2e::Part::GATEWAY, &[("CANVAS_OIDC_FILE", "")]).await;
    assert_eq!(user.get("/auth/status").await.ok().get("confirmBy"), None);
}

#[tokio::test]
async fn the_operator_links_lists_and_unlinks_identities_and_checks_providers() {
    let site = Site::start(json!({})).await;
    let account = site.stack.account().await;
    let admin = async |arguments: &[&str]| {
        let OpenId { issuer, .. } = &site.openid;
        let env =
            [("CANVAS_OIDC_FILE", ""), ("CANVAS_OIDC_ISSUER", issuer.as_str()), ("CANVAS_OIDC_CLIENT_ID", CLIENT)];
        site.stack.admin_in(arguments, "", &env).await
    };
    let uid = account.uid.as_str();
    let linked = admin(&["admin", "identity", "link", "--account", uid, "--subject", "ana"]).await.expect_success();
    let id = linked["id"].as_str().expect("an id");
    let listed = admin(&["admin", "identity", "list", "--account", &account.email]).await.expect_success();
    assert_eq!((&listed["identities"][0]["id"], &listed["identities"][0]["subject"]), (&linked["id"], &json!("ana")));
    let person = site.sign_in("ana", json!({})).await.expect("signs in");
    assert_eq!(uid_of(&person).await, uid);
    let other = site.stack.account().await;
    let taken = admin(&["admin", "identity", "link", "--account", &other.uid, "--subject", "ana"]).await;
    assert!(taken.expect_refusal().contains("another account"));
    admin(&["admin", "identity", "unlink", "--account", &other.uid, id]).await.expect_refusal();
    admin(&["admin", "identity", "unlink", "--account", uid, id]).await.expect_success();
    assert_eq!(site.sign_in("ana", json!({})).await.err().as_deref(), Some("no_account"));
    let long = "s".repeat(256);
    for (provider, subject) in [("none", "x"), ("main", ""), ("main", &long)] {
        let arguments = ["admin", "identity", "link", "--account", uid, "--provider", provider, "--subject", subject];
        admin(&arguments).await.expect_refusal();
    }
    let checked = admin(&["admin", "signin", "check"]).await.expect_success();
    assert_eq!((&checked["ok"], &checked["providers"][0]["steps"]["keys"]["ok"]), (&json!(true), &json!(true)));
    site.openid.answers().keys.0 = 500;
    let checked = admin(&["admin", "signin", "check", "main"]).await.expect_success();
    assert_eq!((&checked["ok"], &checked["providers"][0]["steps"]["keys"]["ok"]), (&json!(false), &json!(false)));
    admin(&["admin", "signin", "check", "none"]).await.expect_refusal();
}

#[tokio::test]
async fn the_operator_can_allow_no_sign_in_by_a_token() {
    let stack = Stack::builder().env("CANVAS_SIGNIN_TOKENS", 0).start().await;
    let account = stack.account().await;
    let user = stack.user_of(&account, "all").await;
    stack.signing_in(&json!({ "token": user.token })).await.expect_error(403, "forbidden", &[]);
    stack.person(&account).await.get("/session").await.ok();
}

#[tokio::test]
async fn a_back_channel_logout_ends_streams() {
    let site = Site::start(json!({ "admit": "anyone" })).await;
    let person = site.sign_in("ana", email("ana")).await.expect("signs in");
    let mut stream = person.get(&Person::api("/events?runs=mine")).streamed().await;
    let begun = Begun { cookie: String::new(), state: String::new(), nonce: String::new() };
    let events = json!({ "nonce": null, "events": { "http://schemas.openid.net/event/backchannel-logout": {} } });
    let token = site.openid.signer.sign(&site.claims("ana", &begun, events));
    assert_eq!(log_out(&site.stack, &token).await, 200);
    let ended = async { while stream.chunk().await.is_ok_and(|chunk| chunk.is_some()) {} };
    tokio::time::timeout(std::time::Duration::from_secs(5), ended).await.expect("the stream ends within 5 s");
}
