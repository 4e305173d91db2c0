//! Administrators (docs/reference/administration.md): who may, what they change, and what they never see.

use e2e::api::text;
use e2e::{Person, Reply, Stack};
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use super::holder::Holder;

/// A new account with the role, signed in.
async fn administrator(stack: &Stack) -> Holder {
    let account = stack.account().await;
    let made = ["admin", "account", "role", "--account", &account.email, "--role", "admin"];
    assert_eq!(stack.admin(&made).await.expect_success(), json!({"uid": account.uid, "role": "admin"}));
    Holder::with_account(stack, &account).await
}

async fn patch(person: &Person, path: &str, body: &Value) -> Reply {
    person.call(Method::PATCH, path).body("application/json", body.to_string()).await
}

/// Every operation for administrators, from their document: method, path with ids, and whether it takes a body.
async fn operations(admin: &Holder) -> Vec<(Method, String, bool)> {
    let document = admin.get("/admin/openapi.json").await.ok();
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("operations") {
            let path = path.strip_prefix("/console").expect("a route of the console");
            let id = "01991f2c-1a05-7c38-8e61-2f9d4b7a6c10";
            let path =
                path.split('/').map(|part| if part.starts_with('{') { id } else { part }).collect::<Vec<_>>().join("/");
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).expect("a method");
            operations.push((method, path, operation.get("requestBody").is_some()));
        }
    }
    assert!(operations.len() >= 16, "{operations:?}");
    operations
}

#[tokio::test]
async fn only_administrators_who_signed_in_lately_use_the_routes() {
    let stack = &Stack::without_workers().await;
    let (admin, member) = (administrator(stack).await, Holder::new(stack).await);
    let narrow = stack.signed_in(&json!({"token": admin.user.token})).await;
    let tired = administrator(stack).await;
    let age = "UPDATE tokens SET created_at = now() - interval '12 hours' WHERE id = $1::uuid";
    sqlx::query(age).bind(text(&tired.signed_in, "/session/id")).execute(stack.pool()).await.expect("ages");
    for (method, path, has_body) in operations(&admin).await {
        let call = |person: &Person| {
            let call = person.call(method.clone(), &path);
            if has_body { call.body("application/json", "{}") } else { call }
        };
        assert!(call(&member).await.expect_error(403, "forbidden", &[]).contains("administrators"), "{path}");
        assert!(call(&narrow).await.expect_error(403, "forbidden", &[]).contains("signed in by a token"), "{path}");
        let refused = call(&tired).await.expect(403).json();
        assert_eq!(refused["error"]["details"], json!({"reason": "sign_in_again"}), "{path}");
        let url = format!("{}/console{path}", stack.origin(0));
        let with_token = admin.user.call(method.clone(), &url).header("origin", &stack.origin(0));
        with_token.header("x-canvas-console", "1").await.expect_error(401, "unauthorized", &[]);
        if method != Method::GET {
            admin.request(method.clone(), &path).await.expect_error(403, "forbidden", &[]);
        }
    }
    // The role is read with each request, and the session shows it.
    assert_eq!(admin.get("/session").await.ok()["account"]["role"], "admin");
    assert_eq!(member.get("/session").await.ok()["account"]["role"], Value::Null);
    admin.get("/admin/health").await.ok();
    stack.admin(&["admin", "account", "role", "--account", &admin.email, "--role", "member"]).await.expect_success();
    admin.get("/admin/health").await.expect_error(403, "forbidden", &[]);
}

#[tokio::test]
async fn accounts_are_found_created_invited_and_changed() {
    let stack = &Stack::without_workers().await;
    let admin = administrator(stack).await;
    let unique = Uuid::new_v4().simple().to_string();
    let email = format!("ida.{unique}@example.com");
    let wanted = json!({"email": email, "displayName": "Ida", "credits": 5, "invite": true});
    let made = admin.send("/admin/accounts", &wanted).await.expect(201).json();
    let uid = text(&made, "/account/id").to_owned();
    let path = format!("/admin/accounts/{uid}");
    let account = admin.get(&path).await.ok()["account"].clone();
    assert_eq!(account, made["account"]);
    assert_eq!(
        (&account["creditBalance"], &account["role"], &account["enabled"]),
        (&json!(5), &json!("member"), &json!(true))
    );
    assert_eq!((text(&account, "/displayName"), &account["storage"]["default"]), ("Ida", &json!(true)));
    // A second invitation replaces none. Neither works once somebody has used the account: whoever made one may have kept it.
    let again =
        admin.send("/admin/accounts", &json!({"email": email.to_uppercase(), "invite": true})).await.expect(200).json();
    admin.send("/admin/accounts", &json!({"email": email})).await.expect_error(409, "conflict", &[]);
    let link = text(&again, "/invitation/url").split_once('#').expect("a fragment").1.to_owned();
    let invited = stack.signed_in(&json!({ "link": link })).await;
    let kept = text(&made, "/invitation/url").split_once('#').expect("a fragment").1;
    for body in [json!({"link": kept}), json!({"link": kept, "preview": true})] {
        stack.signing_in(&body).await.expect(401);
    }
    let invite = json!({"email": email, "invite": true});
    admin.send("/admin/accounts", &invite).await.expect_error(409, "conflict", &[]);
    // Search and filters.
    let found = async |query: &str| -> Vec<String> {
        let list = admin.get(&format!("/admin/accounts?{query}")).await.ok();
        list["accounts"].as_array().expect("a list").iter().map(|it| text(it, "/id").to_owned()).collect()
    };
    assert_eq!(found(&format!("q=IDA.{unique}")).await, std::slice::from_ref(&uid));
    assert!(found(&format!("q={unique}&role=admin")).await.is_empty());
    assert!(found("q=%25").await.is_empty(), "it is no pattern");
    // Disabling is in force at the next request.
    invited.get("/session").await.ok();
    let disabled = patch(&admin, &path, &json!({"enabled": false})).await.ok();
    assert_eq!(disabled["account"]["enabled"], false);
    invited.at(stack, 1).get("/session").await.expect_error(401, "unauthorized", &[]);
    assert_eq!(found(&format!("q={unique}&status=disabled")).await, std::slice::from_ref(&uid));
    patch(&admin, &path, &json!({"enabled": true, "role": "admin", "displayName": "", "storageMax": 1000})).await.ok();
    let changed = admin.get(&path).await.ok()["account"].clone();
    assert_eq!(text(&changed, "/displayName"), format!("ida.{unique}"));
    assert_eq!((&changed["role"], &changed["storage"]["max"]), (&json!("admin"), &json!(1000)));
    let unlimited = patch(&admin, &path, &json!({"storageMax": 0})).await.ok();
    assert_eq!(unlimited["account"]["storage"], json!({"bytes": 0, "default": false}));
    let restored = patch(&admin, &path, &json!({"storageDefault": true})).await.ok();
    assert_eq!(restored["account"]["storage"]["default"], true);
    // Its sessions and tokens end together.
    let token = invited.send("/tokens", &json!({"label": "t", "scopes": ["canvas:read"]})).await.expect(201).json();
    let id = text(&token, "/token/id").to_owned();
    let listed = admin.get(&format!("{path}/tokens")).await.ok();
    assert_eq!((listed["tokens"].as_array().map(Vec::len), text(&listed, "/tokens/0/id")), (Some(1), id.as_str()));
    assert!(!listed.to_string().contains(text(&token, "/secret")));
    admin.delete(&format!("{path}/tokens/{id}")).await.expect(204);
    admin.delete(&format!("{path}/tokens/{}", Uuid::nil())).await.expect_error(404, "not_found", &[]);
    admin.delete(&format!("{path}/sessions")).await.expect(204);
    invited.get("/session").await.expect_error(401, "unauthorized", &[]);
    for (method, rest) in [(Method::GET, ""), (Method::GET, "/tokens"), (Method::DELETE, "/sessions")] {
        admin.call(method, &format!("/admin/accounts/nobody{rest}")).await.expect_error(404, "not_found", &[]);
    }
    let audit = admin.get(&format!("/admin/audit?account={uid}&limit=100")).await.ok();
    let events: Vec<&str> = audit["entries"].as_array().expect("a list").iter().map(|it| text(it, "/event")).collect();
    for event in [
        "account.created",
        "account.renamed",
        "account.role",
        "account.disabled",
        "account.enabled",
        "account.quota",
        "token.revoked",
        "session.all",
        "signin.link",
    ] {
        assert!(events.contains(&event), "{event}: {events:?}");
    }
}

#[tokio::test]
async fn what_is_wrong_with_an_account_is_told() {
    let stack = &Stack::without_workers().await;
    let (admin, other) = (administrator(stack).await, Holder::new(stack).await);
    for (body, fields) in [
        (json!({}), &["email"][..]),
        (json!({"email": "x"}), &["email"]),
        (json!({"email": "a b@c"}), &["email"]),
        (json!({"email": "a@b", "credits": -1}), &["credits"]),
        (json!({"email": "a@b", "credits": 1_000_000_000_001_i64}), &["credits"]),
        (json!({"email": "a@b", "displayName": "x".repeat(81)}), &["displayName"]),
        (json!({"email": "a@b", "role": "owner"}), &["role"]),
        (json!({"email": "a@b", "invite": false}), &["invite"]),
        (json!({"email": "a@b", "more": 1}), &["more"]),
    ] {
        admin.send("/admin/accounts", &body).await.expect_error(400, "input_validation_error", fields);
    }
    let path = format!("/admin/accounts/{}", other.user.uid);
    for (body, fields) in [
        (json!({"storageMax": -1}), &["storageMax"][..]),
        (json!({"storageMax": 1, "storageDefault": true}), &["storageMax", "storageDefault"]),
        (json!({"displayName": "a@b"}), &["displayName"]),
    ] {
        patch(&admin, &path, &body).await.expect_error(400, "input_validation_error", fields);
    }
    let own = format!("/admin/accounts/{}", admin.user.uid);
    for body in [json!({"enabled": false}), json!({"role": "member"})] {
        patch(&admin, &own, &body).await.expect_error(409, "conflict", &[]);
    }
    patch(&admin, &own, &json!({"enabled": true, "role": "admin"})).await.ok();
    for query in ["status=x", "role=owner", "limit=0", "limit=101", "cursor=x"] {
        let field = query.split('=').next().expect("a name");
        admin.get(&format!("/admin/accounts?{query}")).await.expect_error(400, "input_validation_error", &[field]);
    }
    let longest = "q".repeat(254);
    admin.get(&format!("/admin/accounts?q={longest}")).await.ok();
    admin.get(&format!("/admin/accounts?q={longest}q")).await.expect_error(400, "input_validation_error", &["q"]);
}

#[tokio::test]
async fn credit_moves_once_for_a_key_and_never_below_0() {
    let stack = &Stack::without_workers().await;
    let (admin, other) = (administrator(stack).await, Holder::new(stack).await);
    let path = format!("/admin/accounts/{}/credits", other.user.uid);
    let give = async |amount: i64, key: &str| {
        admin.send(&path, &json!({"amount": amount, "note": "a gift", "idempotencyKey": key})).await
    };
    assert_eq!(give(10, "a").await.ok(), json!({"creditBalance": 10}));
    assert_eq!(give(10, "a").await.ok(), json!({"creditBalance": 10}));
    give(11, "a").await.expect_error(409, "conflict", &[]);
    assert_eq!(give(-4, "b").await.ok(), json!({"creditBalance": 6}));
    give(-7, "c").await.expect_error(422, "unprocessable_entity", &["amount"]);
    assert_eq!(give(-6, "c").await.ok(), json!({"creditBalance": 0}));
    let both = tokio::join!(give(1, "d"), give(1, "d"));
    assert_eq!((both.0.ok(), both.1.ok()), (json!({"creditBalance": 1}), json!({"creditBalance": 1})));
    let credit = other.get("/credit").await.ok();
    let notes: Vec<&Value> = credit["entries"].as_array().expect("a list").iter().map(|it| &it["note"]).collect();
    assert_eq!(notes, ["a gift"; 4]);
    for (body, fields) in [
        (json!({"amount": 0, "idempotencyKey": "k"}), &["amount"][..]),
        (json!({"amount": 1_000_000_000_001_i64, "idempotencyKey": "k"}), &["amount"]),
        (json!({"amount": 1}), &["idempotencyKey"]),
        (json!({"amount": 1, "idempotencyKey": ""}), &["idempotencyKey"]),
        (json!({"amount": 1, "idempotencyKey": "k".repeat(201)}), &["idempotencyKey"]),
        (json!({"amount": 1, "idempotencyKey": "k", "note": "n".repeat(201)}), &["note"]),
        (json!({"amount": 1, "idempotencyKey": "k", "note": "a\nb"}), &["note"]),
    ] {
        admin.send(&path, &body).await.expect_error(400, "input_validation_error", fields);
    }
    let longest = json!({"amount": 1, "idempotencyKey": "k".repeat(200), "note": "n".repeat(200)});
    admin.send(&path, &longest).await.ok();
    let nobody = admin.send("/admin/accounts/nobody/credits", &json!({"amount": 1, "idempotencyKey": "k"})).await;
    nobody.expect_error(404, "not_found", &[]);
}

#[tokio::test]
async fn work_of_others_is_listed_without_what_it_makes_and_canceled() {
    let stack = &Stack::without_workers().await;
    let (admin, other) = (administrator(stack).await, Holder::new(stack).await);
    let canvas = other.user.make_canvas().await;
    let handle = format!("canvas:{}:{}", other.user.uid, text(&canvas, "/id"));
    let job = other.user.start_resize(&handle, json!({})).await;
    let listed = admin.get(&format!("/admin/jobs?account={}&status=active", other.user.uid)).await.ok();
    assert_eq!(listed["jobs"].as_array().map(Vec::len), Some(1), "{listed}");
    let entry = &listed["jobs"][0];
    assert_eq!((text(entry, "/account"), text(entry, "/status")), (other.user.uid.as_str(), "queued"));
    assert!(!listed.to_string().contains("canvas"), "no canvas is named: {listed}");
    let id = text(entry, "/id").to_owned();
    assert!(text(&job, "/pollUrl").ends_with(id.strip_prefix("job:").expect("a handle")));
    let canceled = admin.call(Method::POST, &format!("/admin/jobs/{id}/cancel")).await.expect(202).json();
    assert_eq!(canceled, json!({"id": id, "status": "canceled"}));
    admin.call(Method::POST, &format!("/admin/jobs/{id}/cancel")).await.expect(202);
    let events = other.get("/audit?event=work.").await.ok();
    assert_eq!(events["entries"].as_array().map(Vec::len), Some(1), "once: {events}");
    let actor = &events["entries"][0]["actor"];
    assert_eq!((text(actor, "/account/id"), &actor["account"]["email"]), (admin.user.uid.as_str(), &Value::Null));
    assert!(
        admin.get(&format!("/admin/jobs?account={}&status=active", other.user.uid)).await.ok()["jobs"] == json!([])
    );
    let unknown = format!("/admin/jobs/{}/cancel", Uuid::nil());
    admin.call(Method::POST, &unknown).await.expect_error(404, "not_found", &[]);
    admin.call(Method::POST, "/admin/jobs/x/cancel").await.expect_error(400, "input_validation_error", &["jobId"]);
    admin.get("/admin/jobs?status=x").await.expect_error(400, "input_validation_error", &["status"]);
}

#[tokio::test]
async fn recipes_are_published_and_health_is_read() {
    let stack = &Stack::without_workers().await;
    let admin = administrator(stack).await;
    let id = format!("r-{}", Uuid::new_v4());
    let name = format!("Recipe {id}");
    let file = json!({
        "id": id, "name": name, "category": "Marketing & Ads", "summary": "s", "tags": ["t"],
        "inputs": [{"key": "a", "label": "A", "description": "d", "type": "text", "useAsDefault": false}],
        "outputs": [{"key": "b", "label": "B", "description": "d", "type": "text", "prompt": "{{a}}", "inputKeys": ["a"]}],
    });
    let published = admin.send("/admin/recipes", &file).await.expect(201).json();
    assert_eq!(
        admin.send("/admin/recipes", &file).await.expect(201).json(),
        published,
        "an equal file is no new version"
    );
    let listed = admin.get("/admin/recipes?limit=100").await.ok();
    let found = listed["recipes"].as_array().expect("a list").iter().find(|it| it["id"] == published["id"]);
    assert_eq!(
        (&found.expect("is listed")["name"], &found.expect("is listed")["version"]),
        (&json!(name), &published["version"])
    );
    admin.send("/admin/recipes", &json!({"name": ""})).await.expect(400);
    let health = admin.get("/admin/health").await.ok();
    assert_eq!(health["components"], json!([{"name": "database", "ok": true}, {"name": "redis", "ok": true}]));
    assert!(health["queues"].as_array().is_some_and(|queues| !queues.is_empty()));
    assert!(health["versions"]["schema"].as_i64() >= Some(56), "{health}");
}

#[tokio::test]
async fn deliveries_of_all_accounts_are_replayed() {
    let stack = &Stack::without_workers().await;
    let admin = administrator(stack).await;
    let nil = Uuid::nil().to_string();
    let skipped = admin.send("/admin/deliveries/replay", &json!({"ids": [nil]})).await.expect(202).json();
    assert_eq!(skipped, json!({"replayed": [], "skipped": [format!("webhook:{nil}")]}));
    let none = admin.send("/admin/deliveries/replay", &json!({"account": admin.user.uid})).await.expect(202).json();
    assert_eq!(none, json!({"replayed": [], "skipped": []}));
    let many = vec![nil.clone(); 100];
    admin.send("/admin/deliveries/replay", &json!({"ids": many})).await.expect(202);
    for (body, fields) in [
        (json!({}), &["ids", "account"][..]),
        (json!({"ids": []}), &["ids"]),
        (json!({"ids": vec![nil.clone(); 101]}), &["ids"]),
        (json!({"ids": ["x"]}), &["ids[0]"]),
        (json!({"ids": [nil], "account": "a"}), &["ids", "account"]),
        (json!({"ids": [nil], "since": "2026-01-01T00:00:00Z"}), &["since"]),
        (json!({"account": "a", "since": "yesterday"}), &["since"]),
    ] {
        let refused = admin.send("/admin/deliveries/replay", &body).await;
        refused.expect_error(400, "input_validation_error", fields);
    }
    assert!(admin.get(&format!("/admin/deliveries?account={}", admin.user.uid)).await.ok()["deliveries"] == json!([]));
    admin.get("/admin/deliveries?status=x").await.expect_error(400, "input_validation_error", &["status"]);
}

#[tokio::test]
async fn the_whole_audit_is_read_in_pages_and_as_lines() {
    let stack = &Stack::without_workers().await;
    let (admin, other) = (administrator(stack).await, Holder::new(stack).await);
    let of_other = format!("/admin/audit?account={}", other.user.uid);
    let page = admin.get(&of_other).await.ok();
    let entries = page["entries"].as_array().expect("a list");
    let signed_in = entries.iter().find(|it| it["event"] == "signin.ok").expect("is there");
    assert_eq!(text(signed_in, "/actor/account/email"), other.email);
    assert!(signed_in["address"].is_string());
    let by_actor = admin.get(&format!("/admin/audit?actor={}&event=signin.", other.user.uid)).await.ok();
    assert_eq!(by_actor["entries"], json!([signed_in]));
    let lines = admin.get(&of_other).header("accept", "application/x-ndjson").await.expect(200);
    assert_eq!(lines.header("content-type"), Some("application/x-ndjson"));
    let lines: Vec<Value> =
        String::from_utf8_lossy(&lines.body).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(&lines, entries);
    let exported = admin.get(&format!("/admin/audit?event=audit.exported&actor={}", admin.user.uid)).await.ok();
    assert_eq!(exported["entries"].as_array().map(Vec::len), Some(1), "{exported}");
    admin.get("/admin/audit?account=a%20b").await.expect_error(400, "input_validation_error", &["account"]);
}

#[tokio::test]
async fn the_commands_list_accounts_and_set_roles() {
    let stack = &Stack::without_workers().await;
    let account = stack.account().await;
    let list = async |more: &[&str]| {
        stack.admin(&[&["admin", "account", "list", "--query", &account.email], more].concat()).await
    };
    let listed = list(&[]).await.expect_success();
    assert_eq!(
        (listed["accounts"].as_array().map(Vec::len), text(&listed, "/accounts/0/id")),
        (Some(1), account.uid.as_str())
    );
    assert_eq!(list(&["--role", "admin"]).await.expect_success(), json!({"accounts": []}));
    list(&["--role", "owner"]).await.expect_refusal();
    let role = async |name: &str, role: &str| {
        stack.admin(&["admin", "account", "role", "--account", name, "--role", role]).await
    };
    role(&account.uid, "admin").await.expect_success();
    role(&account.uid, "admin").await.expect_success();
    role(&account.uid, "owner").await.expect_refusal();
    role("nobody", "admin").await.expect_refusal();
    assert_eq!(list(&["--role", "admin"]).await.expect_success()["accounts"][0]["role"], "admin");
    let written = "SELECT count(*) FROM audit WHERE account_uid = $1 AND event = 'account.role'";
    assert_eq!(stack.count_of(written, &account.uid).await, 1);
}
