//! Device codes: the command line on a computer without a browser (row 43).

use std::collections::BTreeMap;

use e2e::api::text;
use e2e::{Client, Part, Person, Reply, Stack};
use reqwest::Method;
use serde_json::{Value, json};

use super::{Tokens, expect_invalid_grant, expect_oauth_error, parts, register, stack};

const CLI: &str = "canvas-cli";
const GRANT_TYPE: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// What a program got that asked for a code.
struct Waiting {
    device_code: String,
    user_code: String,
}

async fn ask(client: &Client, scope: &str) -> Waiting {
    let answer = client.form("/oauth/device", &[("client_id", CLI), ("scope", scope)]).await.ok();
    let part = |name: &str| answer[name].as_str().expect("a text").to_owned();
    Waiting { device_code: part("device_code"), user_code: part("user_code") }
}

async fn poll(client: &Client, device_code: &str) -> Reply {
    poll_as(client, device_code, CLI).await
}

async fn poll_as(client: &Client, device_code: &str, client_id: &str) -> Reply {
    let form = [("grant_type", GRANT_TYPE), ("client_id", client_id), ("device_code", device_code)];
    client.form("/oauth/token", &form).await
}

fn decide(person: &Person, user_code: &str, changes: Value) -> e2e::Call {
    let mut body = json!({"userCode": user_code, "decision": "allow"});
    body.as_object_mut().expect("members").extend(changes.as_object().cloned().expect("members"));
    person.send("/devices", &body)
}

/// Lets `seconds` pass for a device code.
async fn pass(stack: &Stack, device_code: &str, seconds: f64) {
    let id = uuid::Uuid::parse_str(parts(device_code).0).expect("an id");
    for sql in [
        "UPDATE oauth_devices SET until = until - make_interval(secs => $2), polled_at = polled_at - make_interval(secs => $2) WHERE id = $1",
        "UPDATE oauth_grants SET code_until = code_until - make_interval(secs => $2) WHERE id = $1",
    ] {
        sqlx::query(sql).bind(id).bind(seconds).execute(stack.pool()).await.expect("lets time pass");
    }
}

#[tokio::test]
async fn a_person_lets_the_command_line_in_by_typing_its_code() {
    let stack = &stack().await;
    let (client, account) = (stack.anonymous(), stack.account().await);
    let person = stack.person(&account).await;
    let answer =
        client.form("/oauth/device", &[("client_id", CLI), ("scope", "canvas:read asset:read video:generate")]).await;
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let answer = answer.ok();
    assert_eq!(text(&answer, "/verification_uri"), format!("{}/device", stack.origin(0)));
    assert_eq!((&answer["expires_in"], &answer["interval"]), (&json!(600), &json!(5)));
    assert_eq!(answer.get("verification_uri_complete"), None);
    let (device_code, user_code) = (text(&answer, "/device_code"), text(&answer, "/user_code"));
    assert!(user_code.len() == 9 && user_code.bytes().all(|it| b"BCDFGHJKLMNPQRSTVWXZ-".contains(&it)), "{user_code}");
    expect_oauth_error(&poll(&client, device_code).await, 400, "authorization_pending");
    // The person types it as they like.
    let typed = user_code.to_lowercase().replace('-', " ");
    let preview = person.send("/devices/preview", &json!({"userCode": typed})).await.ok();
    assert_eq!((&preview["clientId"], &preview["name"]), (&json!(CLI), &json!("Canvas command line")));
    assert_eq!(preview["scopes"], json!(["canvas:read", "asset:read", "video:generate"]));
    assert_eq!((preview["budgets"].as_array().map(Vec::len), &preview["address"]), (Some(2), &json!("127.0.0.1")));
    assert!(preview["askedAt"].is_string());
    let budgets = json!([{"unit": "credits", "period": "month", "max": 7}]);
    let changes = json!({"scopes": ["canvas:read", "asset:read"], "budgets": budgets, "expiresDays": 7});
    decide(&person, &typed, changes).await.expect(204);
    // Another gateway knows it, too.
    let tokens = Tokens::from(poll(&stack.anonymous_at(1), device_code).await.ok());
    let app = client.with_token(&tokens.access);
    let status = app.get("/auth/status").await.ok();
    assert_eq!(status["app"], json!({"clientId": CLI, "name": "Canvas command line"}));
    assert_eq!(
        (&status["agentLabel"], &status["scopes"]),
        (&json!("Canvas command line"), &json!(["canvas:read", "asset:read"]))
    );
    assert_eq!((&status["budgets"][0]["of"], &status["budgets"][0]["max"]), (&json!("app"), &json!(7)));
    let listed = person.get("/apps").await.ok()["apps"][0].clone();
    assert_eq!((&listed["kind"], &listed["id"]), (&json!("command_line"), &status["agentTokenId"]));
    let surface = "SELECT count(*) FROM tokens WHERE id = $1::uuid AND surface = 'cli'";
    assert_eq!(stack.count_of(surface, text(&listed, "/id")).await, 1);
    let allowed = person.get("/audit?event=app.allowed").await.ok()["entries"][0].clone();
    assert_eq!((&allowed["details"]["surface"], &allowed["details"]["expiresDays"]), (&json!("cli"), &json!(7)));
    // It is refreshed and revoked as every app.
    let form = [("grant_type", "refresh_token"), ("client_id", CLI), ("refresh_token", &tokens.refresh)];
    let refreshed = Tokens::from(client.form("/oauth/token", &form).await.ok());
    client.form("/oauth/revoke", &[("token", refreshed.access.as_str()), ("client_id", CLI)]).await.expect(200);
    client.with_token(&refreshed.access).get("/auth/status").await.expect(401);
}

#[tokio::test]
async fn a_device_code_is_good_for_one_app() {
    let stack = &stack().await;
    let (client, account) = (stack.anonymous(), stack.account().await);
    let person = stack.person(&account).await;
    let waiting = ask(&client, "").await;
    decide(&person, &waiting.user_code, json!({})).await.expect(204);
    // The code of a person who has decided waits no more, and is no authorization code.
    decide(&person, &waiting.user_code, json!({})).await.expect_error(422, "unprocessable_entity", &["userCode"]);
    let (id, secret) = parts(&waiting.device_code);
    let form = BTreeMap::from([
        ("grant_type", "authorization_code".to_owned()),
        ("client_id", CLI.to_owned()),
        ("code", format!("cbc_{id}.{secret}")),
        ("redirect_uri", "http://127.0.0.1/callback".to_owned()),
        ("code_verifier", super::VERIFIER.to_owned()),
    ]);
    let form: Vec<(&str, &str)> = form.iter().map(|(name, value)| (*name, value.as_str())).collect();
    expect_invalid_grant(&client.form("/oauth/token", &form).await);
    // At once by many: one app.
    let polls = futures_util::future::join_all((0..6).map(|_| poll(&client, &waiting.device_code))).await;
    let pairs: Vec<&Reply> = polls.iter().filter(|reply| reply.status == 200).collect();
    assert_eq!(pairs.len(), 1);
    // Who presents it again has it from somebody else, and ends the app.
    let tokens = Tokens::from(pairs[0].json());
    client.with_token(&tokens.access).get("/auth/status").await.expect(401);
    for wrong in ["", "x", &format!("cbd_{id}.{}", "A".repeat(43)), &format!("cbd_{}.{secret}", uuid::Uuid::now_v7())] {
        let reply = poll(&client, wrong).await;
        assert!(matches!(reply.status, 400), "{reply}");
    }
    client.with_token(&waiting.device_code).get("/auth/status").await.expect(401);
}

#[tokio::test]
async fn a_program_that_asks_too_often_is_told_and_one_that_waits_is_not() {
    let stack = &stack().await;
    let client = stack.anonymous();
    let waiting = ask(&client, "").await;
    let told = async |error: &str| expect_oauth_error(&poll(&client, &waiting.device_code).await, 400, error);
    told("authorization_pending").await;
    told("slow_down").await;
    // From now on every 10 seconds.
    pass(stack, &waiting.device_code, 8.0).await;
    told("slow_down").await;
    pass(stack, &waiting.device_code, 15.0).await;
    told("authorization_pending").await;
    pass(stack, &waiting.device_code, 600.0).await;
    told("expired_token").await;
    told("expired_token").await;
}

#[tokio::test]
async fn what_nobody_allows_in_time_grants_nothing() {
    let stack = &stack().await;
    let (client, account) = (stack.anonymous(), stack.account().await);
    let person = stack.person(&account).await;
    // Denied.
    let waiting = ask(&client, "").await;
    decide(&person, &waiting.user_code, json!({"decision": "deny"})).await.expect(204);
    expect_oauth_error(&poll(&client, &waiting.device_code).await, 400, "access_denied");
    assert_eq!(person.get("/audit?event=app.denied").await.ok()["entries"].as_array().map(Vec::len), Some(1));
    // Typed too late.
    let waiting = ask(&client, "").await;
    pass(stack, &waiting.device_code, 600.0).await;
    decide(&person, &waiting.user_code, json!({})).await.expect_error(422, "unprocessable_entity", &["userCode"]);
    // Allowed, and not asked for within a minute.
    let waiting = ask(&client, "").await;
    decide(&person, &waiting.user_code, json!({})).await.expect(204);
    pass(stack, &waiting.device_code, 61.0).await;
    expect_oauth_error(&poll(&client, &waiting.device_code).await, 400, "expired_token");
    // Allowed, and ended with the sessions of the account.
    let waiting = ask(&client, "").await;
    decide(&person, &waiting.user_code, json!({})).await.expect(204);
    stack.admin(&["admin", "session", "revoke", "--account", &account.uid]).await.expect_success();
    expect_oauth_error(&poll(&client, &waiting.device_code).await, 400, "expired_token");
    assert_eq!(
        stack.count_of("SELECT count(*) FROM tokens WHERE account_uid = $1 AND kind = 'oauth'", &account.uid).await,
        0
    );
}

#[tokio::test]
async fn device_codes_are_for_the_command_line_and_a_person_alone() {
    let stack = &stack().await;
    let client = stack.anonymous();
    let registered = register(stack, super::REDIRECT).await;
    for (id, status, error) in [(registered.as_str(), 400, "unauthorized_client"), ("x", 401, "invalid_client")] {
        expect_oauth_error(&client.form("/oauth/device", &[("client_id", id)]).await, status, error);
    }
    // A page would ask from the address of the person who is shown it.
    for (name, value) in [("origin", "https://evil.example"), ("sec-fetch-site", "same-origin")] {
        let asked = client.form("/oauth/device", &[("client_id", CLI)]).header(name, value).await;
        assert_eq!(asked.header("access-control-allow-origin"), None);
        expect_oauth_error(&asked, 400, "invalid_request");
    }
    expect_oauth_error(&client.form("/oauth/device", &[("scope", "")]).await, 400, "invalid_request");
    for scope in ["canvas:admin", "canvas:write"] {
        let form = [("client_id", CLI), ("scope", scope)];
        expect_oauth_error(&client.form("/oauth/device", &form).await, 400, "invalid_scope");
    }
    let waiting = ask(&client, "").await;
    expect_oauth_error(&poll_as(&client, &waiting.device_code, &registered).await, 400, "unauthorized_client");
    let narrow = stack.signed_in(&json!({"token": stack.user().await.token})).await;
    decide(&narrow, &waiting.user_code, json!({})).await.expect_error(403, "forbidden", &[]);
    let preview = json!({"userCode": waiting.user_code});
    narrow.send("/devices/preview", &preview).await.expect_error(403, "forbidden", &[]);
    let person = stack.person(&stack.account().await).await;
    let body = json!({"userCode": waiting.user_code, "decision": "allow"}).to_string();
    let foreign = person.request(Method::POST, "/devices").body("application/json", body);
    foreign.header("origin", "https://evil.example").await.expect_error(403, "forbidden", &[]);
    for (changes, fields) in [
        (json!({"userCode": "BCDF"}), &["userCode"][..]),
        (json!({"userCode": "ABCDEFGH"}), &["userCode"]),
        (json!({"userCode": "B".repeat(41)}), &["userCode"]),
        (json!({"decision": "maybe"}), &["decision"]),
        (json!({"scopes": ["canvas:write"]}), &["scopes"]),
        (json!({"budgets": [{"unit": "credits", "period": "day", "max": -1}]}), &["budgets[0].max"]),
        (json!({"expiresDays": 0}), &["expiresDays"]),
        (json!({"expiresDays": 91}), &["expiresDays"]),
        (json!({"canvases": "all"}), &["canvases"]),
    ] {
        decide(&person, &waiting.user_code, changes).await.expect_error(400, "input_validation_error", fields);
    }
    expect_oauth_error(&poll(&client, &waiting.device_code).await, 400, "authorization_pending");
    // The page is that of the application, and takes no code from its address.
    assert_eq!(client.navigate("/device?user_code=BCDFGHJK").await.0, client.navigate("/oauth/authorize").await.0);
}

#[tokio::test]
async fn an_account_types_ten_wrong_codes_an_hour() {
    let stack = &stack().await;
    let (client, account) = (stack.anonymous(), stack.account().await);
    let person = stack.person(&account).await;
    let waiting = ask(&client, "").await;
    // One that is no code at all does not count.
    person.send("/devices/preview", &json!({"userCode": "A"})).await.expect(400);
    for n in 0..10 {
        let wrong = json!({"userCode": format!("BBBBBBB{}", &"BCDFGHJKLM"[n..=n])});
        person.send("/devices/preview", &wrong).await.expect_error(422, "unprocessable_entity", &["userCode"]);
        assert!(n > 0 || person.send("/devices/preview", &json!({"userCode": waiting.user_code})).await.status == 200);
    }
    // Not even the right one, by no gateway.
    for path in ["/devices/preview", "/devices"] {
        let mut body = json!({"userCode": waiting.user_code});
        if path == "/devices" {
            body["decision"] = json!("allow");
        }
        let reply = person.send(path, &body).await;
        let seconds: u64 = reply.header("retry-after").and_then(|it| it.parse().ok()).expect("seconds");
        assert!((3500..=3600).contains(&seconds), "{seconds}");
        reply.expect_error(429, "rate_limited", &[]);
    }
    // Others may, and the account may in an hour from the first.
    let other = stack.person(&stack.account().await).await;
    other.send("/devices/preview", &json!({"userCode": waiting.user_code})).await.expect(200);
    let past = "UPDATE device_misses SET at = at - interval '1 hour' WHERE ctid = (
                    SELECT ctid FROM device_misses WHERE account_uid = $1 ORDER BY at LIMIT 1)";
    sqlx::query(past).bind(&account.uid).execute(stack.pool()).await.expect("lets time pass");
    person.send("/devices/preview", &json!({"userCode": waiting.user_code})).await.expect(200);
    let mut connection = stack.pool().acquire().await.expect("connects");
    let misses = "UPDATE device_misses SET at = at - interval '1 hour' WHERE account_uid = $1";
    sqlx::query(misses).bind(&account.uid).execute(stack.pool()).await.expect("lets time pass");
    db::devices::sweep(&mut connection).await.expect("sweeps");
    assert_eq!(stack.count_of("SELECT count(*) FROM device_misses WHERE account_uid = $1", &account.uid).await, 0);
    // A code is kept for ten minutes after its end, to say that it has ended.
    let kept = "SELECT count(*) FROM oauth_devices WHERE id = $1::uuid";
    for (seconds, count) in [(600.0 + 590.0, 1), (11.0, 0)] {
        pass(stack, &waiting.device_code, seconds).await;
        db::devices::sweep(&mut connection).await.expect("sweeps");
        assert_eq!(stack.count_of(kept, parts(&waiting.device_code).0).await, count);
    }
}

#[tokio::test]
async fn strangers_fill_no_table_with_device_codes() {
    let stack = &Stack::builder().env("CANVAS_FAILED_AUTH_PER_MINUTE", 1000).shared().await;
    let client = stack.anonymous().from_address([127, 0, 0, 95]);
    stack.execute("DELETE FROM oauth_devices").await;
    stack
        .execute(
            "INSERT INTO oauth_devices (id, secret_hash, user_code, scopes, address, until, interval_seconds)
             SELECT gen_random_uuid(), '', 'filler ' || n, '{}', '192.0.2.1', now() + interval '10 minutes', 5 FROM generate_series(1, 999) n",
        )
        .await;
    let form = [("client_id", CLI)];
    client.form("/oauth/device", &form).await.expect(200);
    let full = client.form("/oauth/device", &form).await;
    assert_eq!(full.header("retry-after"), Some("60"));
    expect_oauth_error(&full, 503, "temporarily_unavailable");
    // One that was decided, or has ended, waits no more.
    stack.execute("UPDATE oauth_devices SET is_allowed = false WHERE user_code = 'filler 1'").await;
    client.form("/oauth/device", &form).await.expect(200);
    client.form("/oauth/device", &form).await.expect(503);
    stack.execute("UPDATE oauth_devices SET until = now() WHERE user_code = 'filler 2'").await;
    client.form("/oauth/device", &form).await.expect(200);
    // An address asks for five a minute.
    let refused = client.form("/oauth/device", &form).await;
    assert!(refused.header("retry-after").is_some());
    expect_oauth_error(&refused, 429, "temporarily_unavailable");
    stack.execute("DELETE FROM oauth_devices").await;
    let other = stack.anonymous().from_address([127, 0, 0, 96]);
    other.form("/oauth/device", &form).await.expect(200);
}

#[tokio::test]
async fn a_gateway_that_is_killed_forgets_no_device_code_and_no_decision() {
    let stack = &Stack::builder().gateways(2).start().await;
    let (account, other) = (stack.account().await, stack.anonymous_at(1));
    let person = stack.person(&account).await;
    let waiting = ask(&stack.anonymous(), "").await;
    stack.kill(Part::GATEWAY);
    expect_oauth_error(&poll(&other, &waiting.device_code).await, 400, "authorization_pending");
    stack.restart(Part::GATEWAY).await;
    decide(&person, &waiting.user_code, json!({})).await.expect(204);
    stack.kill(Part::GATEWAY);
    let tokens = Tokens::from(poll(&other, &waiting.device_code).await.ok());
    other.with_token(&tokens.access).get("/auth/status").await.expect(200);
}
