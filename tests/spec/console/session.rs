//! Sessions of people: signing in and out, what the cookie opens, and what writes need.

use e2e::api::{key, text};
use e2e::{Call, PATIENCE, Person, Stack};
use reqwest::Method;
use serde_json::{Value, json};
use testkit::wait_for;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The number that a query about `of` finds.
async fn number(stack: &Stack, sql: &'static str, of: &str) -> i64 {
    sqlx::query_scalar(sql).bind(of).fetch_one(stack.pool()).await.expect("counts")
}

/// Changes the row of `of`, as time does.
async fn change(stack: &Stack, sql: &'static str, of: &str) {
    sqlx::query(sql).bind(of).execute(stack.pool()).await.expect("changes");
}

#[tokio::test]
async fn a_link_signs_in_once() {
    let stack = &Stack::without_workers().await;
    let account = stack.account().await;
    let link = stack.signin_link(&account.email).await;
    let person = stack.signed_in(&json!({ "link": link })).await;
    let (id, _) = person.session.split_once('.').expect("id and secret");
    let name = account.email.split('@').next().expect("a name");
    let expected = json!({"id": account.uid, "email": account.email, "displayName": name});
    assert_eq!(person.signed_in["account"], expected);
    let session = &person.signed_in["session"];
    assert_eq!((text(session, "/id"), text(session, "/kind"), text(session, "/label")), (id, "full", name));
    assert_eq!(session["scopes"].as_array().map(Vec::len), Some(8));
    assert_eq!(person.get("/session").await.ok(), person.signed_in);
    stack.signing_in(&json!({ "link": link })).await.expect_error(401, "unauthorized", &[]);
    assert_eq!(person.at(stack, 1).get("/session").await.ok(), person.signed_in, "the session stays");
}

#[tokio::test]
async fn a_link_that_is_wrong_used_or_expired_is_one_refusal() {
    let stack = &Stack::without_workers().await;
    let account = stack.account().await;
    let (used, expired, disabled) = (
        stack.signin_link(&account.uid).await,
        stack.signin_link(&account.uid).await,
        stack.signin_link(&stack.account().await.uid).await,
    );
    stack.signed_in(&json!({ "link": used })).await;
    let id = |link: &str| link.split_once('.').expect("id and secret").0.to_owned();
    change(stack, "UPDATE signin_links SET expires_at = now() - interval '1 s' WHERE id = $1::uuid", &id(&expired))
        .await;
    let disable =
        "UPDATE accounts SET enabled = false WHERE uid = (SELECT account_uid FROM signin_links WHERE id = $1::uuid)";
    change(stack, disable, &id(&disabled)).await;
    let fresh = stack.signin_link(&account.uid).await;
    let mut messages = Vec::new();
    for link in [
        used,
        expired,
        disabled,
        format!("{}.{}", id(&fresh), "A".repeat(43)),
        format!("{}.{}", uuid::Uuid::now_v7(), "A".repeat(43)),
        "x".to_owned(),
        String::new(),
    ] {
        messages.push(stack.signing_in(&json!({ "link": link })).await.expect_error(401, "unauthorized", &[]));
        let preview = json!({"link": link, "preview": true});
        messages.push(stack.signing_in(&preview).await.expect_error(401, "unauthorized", &[]));
    }
    messages.dedup();
    assert_eq!(messages.len(), 1, "{messages:?}");
    stack.signed_in(&json!({ "link": fresh })).await;
}

#[tokio::test]
async fn a_link_tells_whom_it_signs_in_without_being_redeemed() {
    let stack = &Stack::without_workers().await;
    let account = stack.account().await;
    let link = stack.signin_link(&account.uid).await;
    for _ in 0..2 {
        let reply = stack.signing_in(&json!({"link": link, "preview": true})).await.expect(200);
        assert_eq!(reply.header("set-cookie"), None);
        let name = account.email.split('@').next();
        let expected = json!({"id": account.uid, "email": account.email, "displayName": name});
        assert_eq!(reply.json(), json!({ "account": expected }));
    }
    stack.signed_in(&json!({ "link": link })).await;
}

#[tokio::test]
async fn two_tabs_that_redeem_a_link_at_once_get_one_session() {
    let stack = &Stack::without_workers().await;
    let account = stack.account().await;
    let link = stack.signin_link(&account.uid).await;
    let body = json!({ "link": link });
    // The account's row is locked until every attempt has found the link unused.
    let mut holder = stack.pool().begin().await.expect("begins");
    sqlx::query("SELECT FROM accounts WHERE uid = $1 FOR UPDATE")
        .bind(&account.uid)
        .execute(&mut *holder)
        .await
        .expect("locks");
    let redeeming = futures_util::future::join_all((0..8).map(|_| async { stack.signing_in(&body).await.status }));
    let release = async {
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE $1";
        let all_wait =
            async || (number(stack, waiting, "SELECT uid FROM accounts%FOR NO KEY UPDATE").await == 8).then_some(());
        wait_for("all attempts to wait", PATIENCE, all_wait).await;
        holder.rollback().await.expect("ends");
    };
    let (mut statuses, ()) = tokio::join!(redeeming, release);
    statuses.sort_unstable();
    assert_eq!(statuses, [&[201][..], &[401; 7]].concat());
    let sessions = "SELECT count(*) FROM tokens WHERE account_uid = $1 AND kind = 'session'";
    assert_eq!(number(stack, sessions, &account.uid).await, 1);
}

#[tokio::test]
async fn a_link_lives_1_to_1440_minutes() {
    let stack = &Stack::without_workers().await;
    let account = stack.account().await;
    let link = async |minutes: &str| {
        stack.admin(&["admin", "session", "link", "--account", &account.uid, &format!("--minutes={minutes}")]).await
    };
    for minutes in ["1", "1440"] {
        let made = link(minutes).await.expect_success();
        let left = "SELECT extract(epoch FROM $1::timestamptz - now())::bigint";
        let left = number(stack, left, text(&made, "/expiresAt")).await;
        let wanted = minutes.parse::<i64>().expect("a number") * 60;
        assert!((wanted - 60..=wanted).contains(&left), "{left} of {wanted}");
    }
    for minutes in ["0", "1441", "-1", "soon", "1.5"] {
        let refused = link(minutes).await.expect_refusal();
        assert!(refused.contains("from 1 to 1440"), "{refused}");
    }
    stack.admin(&["admin", "session", "link", "--account", "nobody@example.com"]).await.expect_refusal();
}

#[tokio::test]
async fn a_token_signs_in_with_its_scopes_and_its_life() {
    let stack = &Stack::without_workers().await;
    let account = stack.account().await;
    let user = stack.user_of(&account, "canvas:read,canvas:write").await;
    let person = stack.signed_in(&json!({ "token": user.token })).await;
    let session = &person.signed_in["session"];
    assert_eq!(session["kind"], "narrow");
    assert_eq!(session["scopes"], json!(["canvas:read", "canvas:write"]));
    assert_eq!(session["label"], "e2e");
    person.get(&Person::api("/canvases")).await.ok();
    person.get(&Person::api("/assets")).await.expect_error(403, "forbidden", &[]);
    for path in ["/sessions"] {
        let message = person.get(path).await.expect_error(403, "forbidden", &[]);
        assert!(message.contains("sign in without a token"), "{message}");
    }
    person.delete("/sessions").await.expect_error(403, "forbidden", &[]);
    stack.admin(&["admin", "token", "revoke", &user.token_id]).await.expect_success();
    for gateway in [0, 1] {
        person.at(stack, gateway).get("/session").await.expect_error(401, "unauthorized", &[]);
    }
    stack.signing_in(&json!({ "token": user.token })).await.expect_error(401, "unauthorized", &[]);
}

#[tokio::test]
async fn what_to_sign_in_with_is_one_of_two() {
    let stack = &Stack::without_workers().await;
    let account = stack.account().await;
    let (link, user) = (stack.signin_link(&account.uid).await, stack.user_of(&account, "all").await);
    for (body, field) in [
        (json!({}), "link"),
        (json!({"link": link, "token": user.token}), "token"),
        (json!({"token": user.token, "preview": true}), "preview"),
        (json!({"link": link, "preview": false}), "preview"),
        (json!({"link": 1}), "link"),
        (json!({"link": null}), "link"),
        (json!({"link": "x".repeat(201)}), "link"),
        (json!({"token": "x".repeat(201)}), "token"),
        (json!({"link": link, "remember": true}), "remember"),
    ] {
        stack.signing_in(&body).await.expect_error(400, "input_validation_error", &[field]);
    }
    stack.signing_in(&json!({ "link": "x".repeat(200) })).await.expect_error(401, "unauthorized", &[]);
    stack.signed_in(&json!({ "link": link })).await;
}

#[tokio::test]
async fn a_sign_in_has_at_most_4_kibibytes() {
    let stack = &Stack::without_workers().await;
    let body = json!({ "link": "x" }).to_string();
    let of = |bytes: usize| format!("{body}{}", " ".repeat(bytes - body.len()));
    let sign_in = || stack.sign_in_without_body();
    for (bytes, status) in [(4095, 401), (4096, 401), (4097, 413)] {
        sign_in().body("application/json", of(bytes)).await.expect(status);
        sign_in().chunked("application/json", of(bytes).into_bytes()).await.expect(status);
    }
}

#[tokio::test]
async fn slow_sign_ins_delay_nobody() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let origin = stack.origin(0);
    let head = |length: &str| {
        format!(
            "POST /console/session HTTP/1.1\r\nhost: e2e\r\norigin: {origin}\r\nx-canvas-console: 1\r\n\
             content-type: application/json\r\n{length}\r\n\r\n"
        )
    };
    let begin = async |head: String| {
        let mut connection = tokio::net::TcpStream::connect(stack.authority(0)).await.expect("connects");
        connection.write_all(head.as_bytes()).await.expect("sends");
        connection
    };
    let mut slow = Vec::new();
    for _ in 0..140 {
        slow.push(begin(head("transfer-encoding: chunked")).await);
    }
    for connection in &mut slow {
        connection.write_all(b"400\r\n{").await.expect("sends a part of a chunk");
    }
    let large = format!("{{\"title\": \"slow\"}}{}", " ".repeat(100 * 1024));
    for body in ["{}".to_owned(), large] {
        let began = std::time::Instant::now();
        user.post("/canvases").body("application/json", body).await.expect(201);
        assert!(began.elapsed() < std::time::Duration::from_secs(2), "{:?}", began.elapsed());
    }
    let mut declared = begin(head("content-length: 1048576")).await;
    let mut answer = [0; 12];
    let read = tokio::time::timeout(PATIENCE, declared.read_exact(&mut answer)).await;
    read.expect("is answered without a body").expect("reads");
    assert_eq!(String::from_utf8_lossy(&answer), "HTTP/1.1 413");
}

#[tokio::test]
async fn a_cookie_opens_the_console_alone() {
    let stack = &Stack::without_workers().await;
    let person = stack.person(&stack.account().await).await;
    let cookie = format!("__Host-canvas={}", person.session);
    let anonymous = stack.anonymous();
    anonymous.get("/auth/status").header("cookie", &cookie).await.expect_error(401, "unauthorized", &[]);
    let bearer = anonymous.with_token(&format!("cba_{}", person.session));
    bearer.get("/auth/status").await.expect_error(401, "unauthorized", &[]);
    bearer.get("/auth/status").header("cookie", &cookie).await.expect_error(401, "unauthorized", &[]);
    // Two cookies of the name, as a foreign page on a sibling host could plant one.
    let twice = anonymous.get("/console/session").header("cookie", &format!("{cookie}; {cookie}"));
    twice.await.expect_error(401, "unauthorized", &[]);
    anonymous.get("/console/session").header("cookie", &cookie).await.ok();
}

#[tokio::test]
async fn a_bearer_token_does_not_open_the_console() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    for path in ["/console/session", "/console/sessions", "/console/api/canvas-agent/v1/canvases"] {
        user.get(path).await.expect_error(401, "unauthorized", &[]);
        let cookie = format!("__Host-canvas={}", user.token.strip_prefix("cba_").expect("a token"));
        stack.anonymous().get(path).header("cookie", &cookie).await.expect_error(401, "unauthorized", &[]);
    }
}

#[tokio::test]
async fn a_session_reads_and_writes_canvases_as_a_person() {
    let stack = &Stack::without_workers().await;
    let account = stack.account().await;
    let (person, user) = (stack.person(&account).await, stack.user_of(&account, "all").await);
    let made = person.send(&Person::api("/canvases"), &json!({"title": "Mine"})).await.expect(201).json();
    let id = text(&made, "/canvas/id").to_owned();
    let create = json!({"type": "node.create", "node": {"type": "text", "title": "A", "position": {"x": 0, "y": 0}, "metadata": {"content": "x"}}});
    let batch = json!({"baseRevision": made["canvas"]["revision"], "idempotencyKey": key(), "operations": [create]});
    person.send(&Person::api(&format!("/canvases/{id}/operations")), &batch).await.ok();
    let read = user.get(&format!("/canvases/{id}")).await.ok()["canvas"].clone();
    assert_eq!(read["nodes"][0]["metadata"]["createdBy"], "user");
    let entry = &user.get(&format!("/canvases/{id}")).await.ok()["activity"][0];
    assert_eq!(
        entry["actor"],
        json!({"ownerUid": account.uid, "surface": "browser", "label": account.email.split('@').next()})
    );
    // The key is the account's, whatever the way in.
    let replay = user.send(&format!("/canvases/{id}/operations"), &batch).await.ok();
    assert_eq!(replay["canvas"]["revision"], read["revision"]);
    person.get(&Person::api("/nowhere")).await.expect_error(404, "not_found", &[]);
    person.get("/nowhere").await.expect_error(404, "not_found", &[]);
    person.call(Method::PUT, &Person::api("/canvases")).await.expect(405);
}

#[tokio::test]
async fn a_write_needs_the_origin_the_header_and_the_same_site() {
    let stack = &Stack::without_workers().await;
    let person = stack.person(&stack.account().await).await;
    let cookie = format!("__Host-canvas={}", person.session);
    let origin = stack.origin(0);
    let body = json!({"title": "x"});
    let send = async |path: &str, headers: &[(&str, &str)]| {
        let call = stack.anonymous().send(&format!("/console{path}"), &body).header("cookie", &cookie);
        headers.iter().fold(call, |call, (name, value)| call.header(name, value)).await
    };
    let canvases = Person::api("/canvases");
    for headers in [
        &[][..],
        &[("origin", origin.as_str())],
        &[("x-canvas-console", "1")],
        &[("origin", "https://evil.example"), ("x-canvas-console", "1")],
        &[("origin", "null"), ("x-canvas-console", "1")],
        &[("origin", &origin), ("x-canvas-console", "1"), ("sec-fetch-site", "cross-site")],
        &[("origin", &origin), ("x-canvas-console", "1"), ("sec-fetch-site", "same-site")],
        &[("origin", &origin), ("x-canvas-console", "yes")],
    ] {
        for path in [canvases.as_str(), "/session"] {
            send(path, headers).await.expect_error(403, "forbidden", &[]);
        }
    }
    let good = [("origin", origin.as_str()), ("x-canvas-console", "1"), ("sec-fetch-site", "same-origin")];
    send(&canvases, &good).await.expect(201);
    assert_eq!(person.get(&canvases).await.ok()["canvases"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn a_request_for_another_account_is_refused() {
    let stack = &Stack::without_workers().await;
    let (account, other) = (stack.account().await, stack.account().await);
    let (person, user) = (stack.person(&account).await, stack.user_of(&account, "all").await);
    let canvases = Person::api("/canvases");
    let naming = |call: Call, named: &[&str]| named.iter().fold(call, |call, uid| call.header("x-canvas-account", uid));
    let create = || person.send(&canvases, &json!({"title": "x"}));
    for named in
        [&[other.uid.as_str()][..], &[""], &["a b"], &["\u{e9}"], &[&account.email], &[&account.uid, &other.uid]]
    {
        for call in
            [create(), person.get(&canvases), person.get("/session"), person.delete("/session"), person.get("/tokens")]
        {
            let refused = naming(call, named).await;
            assert_eq!((refused.header("set-cookie"), refused.header("clear-site-data")), (None, None));
            let message = refused.expect_error(401, "unauthorized", &[]);
            assert_eq!(message, "the session belongs to another account");
        }
    }
    assert_eq!(person.get(&canvases).await.ok()["canvases"], json!([]));
    create().await.expect(201);
    naming(create(), &[&account.uid]).await.expect(201);
    assert_eq!(naming(person.get("/session"), &[&account.uid]).await.ok(), person.signed_in);
    // A token names its account itself.
    naming(user.get("/auth/status"), &[&other.uid]).await.ok();
}

#[tokio::test]
async fn the_console_has_no_cors() {
    let stack = &Stack::without_workers().await;
    let origin = stack.origin(0);
    let preflight =
        stack.anonymous().call(Method::OPTIONS, "/console/session").header("origin", "https://evil.example");
    let answer = preflight.header("access-control-request-method", "POST").attempt().await.expect("is answered");
    assert_eq!(answer.header("access-control-allow-origin"), None);
    let read = stack.anonymous().get("/console/session").header("origin", &origin).await;
    assert_eq!(read.header("access-control-allow-origin"), None);
}

#[tokio::test]
async fn the_eleventh_session_ends_the_oldest() {
    let stack = &Stack::without_workers().await;
    let account = stack.account().await;
    let mut people = Vec::new();
    for _ in 0..10 {
        people.push(stack.person(&account).await);
    }
    for person in &people {
        person.get("/session").await.ok();
    }
    let latest = stack.person(&account).await;
    people[0].get("/session").await.expect_error(401, "unauthorized", &[]);
    people[1].get("/session").await.ok();
    let sessions = latest.get("/sessions").await.ok();
    let sessions = sessions["sessions"].as_array().expect("a list");
    assert_eq!(sessions.len(), 10);
    assert_eq!(sessions[0]["id"], latest.signed_in["session"]["id"]);
    let current: Vec<bool> = sessions.iter().map(|session| session["current"] == true).collect();
    assert_eq!(current, [&[true][..], &[false; 9]].concat());
}

#[tokio::test]
async fn a_session_that_ended_with_its_token_takes_no_place() {
    let stack = &Stack::without_workers().await;
    let account = stack.account().await;
    let first = stack.person(&account).await;
    let agent = stack.user_of(&account, "canvas:read").await;
    for _ in 0..9 {
        stack.signed_in(&json!({ "token": agent.token })).await;
    }
    stack.admin(&["admin", "token", "revoke", &agent.token_id]).await.expect_success();
    let second = stack.person(&account).await;
    first.get("/session").await.ok();
    assert_eq!(second.get("/sessions").await.ok()["sessions"].as_array().map(Vec::len), Some(2));
}

#[tokio::test]
async fn sessions_do_not_count_as_tokens() {
    let stack = &Stack::without_workers().await;
    let account = stack.account().await;
    for _ in 0..3 {
        stack.person(&account).await;
    }
    for _ in 0..20 {
        stack.user_of(&account, "canvas:read").await;
    }
    let create = ["admin", "token", "create", "--label", "x", "--scopes", "all", "--account", &account.uid];
    stack.admin(&create).await.expect_refusal();
    stack.person(&account).await;
    let listed = stack.admin(&["admin", "token", "list", "--account", &account.uid]).await.expect_success();
    assert_eq!(listed["tokens"].as_array().map(Vec::len), Some(20));
    let session = stack.person(&account).await.signed_in;
    stack.admin(&["admin", "token", "revoke", text(&session, "/session/id")]).await.expect_refusal();
}

#[tokio::test]
async fn signing_out_ends_the_session_and_not_its_work() {
    let stack = &Stack::without_workers().await;
    let account = stack.account().await;
    let (person, other) = (stack.person(&account).await, stack.person(&account).await);
    let out = person.delete("/session").await.expect(204);
    assert_eq!(out.header("clear-site-data"), Some("\"cache\", \"storage\""));
    assert!(
        out.header("set-cookie")
            .is_some_and(|cookie| cookie.starts_with("__Host-canvas=;") && cookie.contains("Max-Age=0"))
    );
    for gateway in [0, 1] {
        person.at(stack, gateway).get("/session").await.expect_error(401, "unauthorized", &[]);
    }
    other.get("/session").await.ok();
    let revoked = "SELECT count(*) FROM tokens WHERE kind = 'session' AND revoked_at IS NOT NULL AND account_uid = $1";
    assert_eq!(number(stack, revoked, &account.uid).await, 0, "its delegation stays");
}

#[tokio::test]
async fn signing_out_everywhere_ends_all_sessions_and_no_token() {
    let stack = &Stack::without_workers().await;
    let account = stack.account().await;
    let user = stack.user_of(&account, "all").await;
    let (person, other) = (stack.person(&account).await, stack.person(&account).await);
    let narrow = stack.signed_in(&json!({ "token": user.token })).await;
    person.delete("/sessions").await.expect(204);
    for ended in [&person, &other, &narrow] {
        ended.get("/session").await.expect_error(401, "unauthorized", &[]);
    }
    user.get("/auth/status").await.ok();
    // The operator's command ends sessions and tokens.
    let person = stack.person(&account).await;
    stack.admin(&["admin", "session", "revoke", "--account", &account.uid]).await.expect_success();
    person.get("/session").await.expect_error(401, "unauthorized", &[]);
    user.get("/auth/status").await.expect_error(401, "unauthorized", &[]);
}

#[tokio::test]
async fn a_session_of_another_account_cannot_be_ended() {
    let stack = &Stack::without_workers().await;
    let (mine, theirs) = (stack.person(&stack.account().await).await, stack.person(&stack.account().await).await);
    let id = text(&theirs.signed_in, "/session/id");
    mine.delete(&format!("/sessions/{id}")).await.expect_error(404, "not_found", &[]);
    mine.delete("/sessions/x").await.expect_error(400, "input_validation_error", &["sessionId"]);
    theirs.get("/session").await.ok();
    theirs.delete(&format!("/sessions/{id}")).await.expect(204);
    theirs.get("/session").await.expect_error(401, "unauthorized", &[]);
}

#[tokio::test]
async fn a_session_obeys_its_account() {
    let stack = &Stack::without_workers().await;
    let account = stack.account().await;
    let person = stack.person(&account).await;
    for (change, status) in [("disable", 401), ("enable", 200)] {
        stack.admin(&["admin", "account", change, "--account", &account.uid]).await.expect_success();
        for gateway in [0, 1] {
            person.at(stack, gateway).get("/session").await.expect(status);
        }
    }
}

#[tokio::test]
async fn an_unused_session_ends() {
    let stack = &Stack::without_workers().await;
    let person = stack.person(&stack.account().await).await;
    let id = text(&person.signed_in, "/session/id").to_owned();
    let left = "SELECT extract(epoch FROM idle_until - now())::bigint FROM tokens WHERE id = $1::uuid";
    assert!((43_000..=43_200).contains(&number(stack, left, &id).await));
    let long_ago = "UPDATE tokens SET idle_until = now() + interval '1 minute', last_used_at = now() - interval '1 hour' WHERE id = $1::uuid";
    change(stack, long_ago, &id).await;
    person.get("/session").await.ok();
    let renewed = async || (number(stack, left, &id).await > 43_000).then_some(());
    wait_for("its use to be recorded", PATIENCE, renewed).await;
    change(stack, "UPDATE tokens SET idle_until = now() WHERE id = $1::uuid", &id).await;
    person.get("/session").await.expect_error(401, "unauthorized", &[]);
    let person = stack.person(&stack.account().await).await;
    let life = "SELECT extract(epoch FROM expires_at - created_at)::bigint / 3600 FROM tokens WHERE id = $1::uuid";
    assert_eq!(number(stack, life, text(&person.signed_in, "/session/id")).await, 30 * 24);
}

#[tokio::test]
async fn an_open_wait_ends_with_its_session() {
    let stack = &Stack::without_workers().await;
    let account = stack.account().await;
    stack.grant(&account.uid, 100).await;
    let person = stack.person(&account).await;
    let start = json!({"title": "x"});
    let canvas = person.send(&Person::api("/canvases"), &start).await.expect(201).json()["canvas"].clone();
    let create = json!({"type": "node.create", "node": {"type": "image", "title": "A", "position": {"x": 0, "y": 0}}});
    let batch = json!({"baseRevision": canvas["revision"], "idempotencyKey": key(), "operations": [create]});
    let path = Person::api(&format!("/canvases/{}/operations", text(&canvas, "/id")));
    let done: Value = person.send(&path, &batch).await.ok();
    let generate = json!({
        "canvasId": canvas["id"], "baseRevision": done["canvas"]["revision"], "idempotencyKey": key(), "prompt": "a harbour",
        "targetNodeIds": [done["canvas"]["nodes"][0]["id"]],
    });
    let job = person.send(&Person::api("/images/generate"), &generate).await.expect(202).json();
    let events = Person::api(&format!("/events?canvas={}", text(&canvas, "/id")));
    let mut stream = person.get(&events).streamed().await;
    let wait = person.get(text(&job, "/pollUrl")).header("prefer", "wait=30");
    let (waited, out) = tokio::join!(wait, async {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        person.at(stack, 1).delete("/session").await
    });
    out.expect(204);
    waited.expect_error(401, "unauthorized", &[]);
    let mut received = String::new();
    while let Some(chunk) = stream.chunk().await.expect("the stream ends well") {
        received.push_str(std::str::from_utf8(&chunk).expect("UTF-8"));
    }
    let present = format!(r#""label":"{}","surface":"browser""#, account.email.split('@').next().expect("a name"));
    assert!(received.contains("event: canvas") && received.contains(&present), "{received}");
}

#[tokio::test]
async fn the_document_of_the_console_is_served() {
    let stack = &Stack::without_workers().await;
    let document = stack.anonymous().get("/console/openapi.json").await.ok();
    let committed: Value = serde_json::from_str(include_str!("../../../gateway/console.json")).expect("JSON");
    assert_eq!(document["paths"], committed["paths"]);
}
