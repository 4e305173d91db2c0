//! Administration by the admin subcommands (docs/reference/command-line.md, docs/reference/authentication.md#tokens).

use e2e::Stack;
use e2e::api::text;
use serde_json::{Value, json};
use uuid::Uuid;

#[tokio::test]
async fn an_account_is_created_with_its_credits() {
    let stack = &Stack::builder().shared().await;
    let email = format!("{}@example.com", Uuid::new_v4());
    let made = stack.admin(&["admin", "account", "create", "--email", &email]).await.expect_success();
    let uid = text(&made, "/uid");
    assert_eq!(made, json!({"uid": uid, "email": email, "creditBalance": 0}));
    let uid = format!("chosen_{}", Uuid::new_v4());
    let email = format!("{uid}@example.com");
    let create = ["admin", "account", "create", "--email", &email, "--uid", &uid, "--credits", "1000"];
    assert_eq!(stack.admin(&create).await.expect_success(), json!({"uid": uid, "email": email, "creditBalance": 1000}));
    for credits in ["-1", "1.5", "many", ""] {
        let create = ["admin", "account", "create", "--email", "x@example.com", "--credits", credits];
        stack.admin(&create).await.expect_refusal();
    }
}

#[tokio::test]
async fn a_uid_is_a_plain_id_and_an_account_unique() {
    let stack = &Stack::builder().shared().await;
    let create = async |email: &str, uid: &str| {
        stack.admin(&["admin", "account", "create", "--email", email, "--uid", uid]).await
    };
    let unique = Uuid::new_v4().simple().to_string();
    let longest = format!("{unique}{}", "u".repeat(180 - unique.len()));
    create(&format!("{unique}@example.com"), &longest).await.expect_success();
    for uid in [format!("{longest}u"), String::new(), "a:b".into(), "a b".into(), "ü".into()] {
        create("other@example.com", &uid).await.expect_refusal();
    }
    create("other@example.com", &longest).await.expect_refusal();
    let shouted = format!("{}@EXAMPLE.com", unique.to_uppercase());
    create(&shouted, &format!("{unique}-2")).await.expect_refusal();
    create("no-address", &format!("{unique}-3")).await.expect_refusal();
}

#[tokio::test]
async fn an_account_is_found_by_uid_or_email() {
    let stack = &Stack::builder().shared().await;
    let account = stack.account().await;
    for name in [&account.uid, &account.email, &account.email.to_uppercase()] {
        let disabled = stack.admin(&["admin", "account", "disable", "--account", name]).await.expect_success();
        assert_eq!(disabled, json!({"uid": account.uid, "enabled": false}));
        let enabled = stack.admin(&["admin", "account", "enable", "--account", name]).await.expect_success();
        assert_eq!(enabled, json!({"uid": account.uid, "enabled": true}));
    }
    for command in [&["account", "disable"][..], &["account", "enable"], &["token", "list"], &["session", "revoke"]] {
        let arguments = [&["admin"], command, &["--account", "nobody"]].concat();
        assert!(stack.admin(&arguments).await.expect_refusal().contains("nobody"));
    }
}

#[tokio::test]
async fn credits_are_granted_and_every_movement_is_in_the_ledger() {
    let stack = &Stack::builder().shared().await;
    let account = stack.account().await;
    let grant = async |amount: &str| {
        stack.admin(&["admin", "credits", "grant", "--account", &account.uid, "--amount", amount]).await
    };
    assert_eq!(grant("5").await.expect_success(), json!({"uid": account.uid, "creditBalance": 5}));
    assert_eq!(grant("2").await.expect_success()["creditBalance"], 7);
    for amount in ["0", "-1", "x", "99999999999999999999"] {
        grant(amount).await.expect_refusal();
    }
    let entries: Vec<(i64, String)> =
        sqlx::query_as("SELECT amount, reason FROM ledger WHERE account_uid = $1 ORDER BY id")
            .bind(&account.uid)
            .fetch_all(stack.pool())
            .await
            .expect("reads the ledger");
    assert_eq!(entries, [(5, "grant".to_owned()), (2, "grant".to_owned())]);
    let changed = sqlx::query("UPDATE ledger SET amount = 9 WHERE account_uid = $1").bind(&account.uid);
    assert!(changed.execute(stack.pool()).await.is_err(), "append-only");
}

#[tokio::test]
async fn a_token_is_created_and_its_secret_shown_once() {
    let stack = &Stack::builder().shared().await;
    let account = stack.account().await;
    let create = ["admin", "token", "create", "--account", &account.email, "--label", "mine"];
    let made = stack.admin(&[&create[..], &["--scopes", "canvas:write,canvas:read"]].concat()).await.expect_success();
    let (id, token) = (text(&made, "/id"), text(&made, "/token"));
    assert!(token.starts_with(&format!("cba_{id}.")));
    assert_eq!(made["scopes"], json!(["canvas:read", "canvas:write"]));
    assert_eq!(made["expiresAt"], Value::Null);
    let secret = token.split_once('.').expect("a dot").1;
    let listed = stack.admin(&["admin", "token", "list", "--account", &account.uid]).await.expect_success();
    assert!(!listed.to_string().contains(secret));
    let kept: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM tokens WHERE position(convert_to($1, 'UTF8') IN secret_hash) > 0 OR length(secret_hash) <> 32",
    )
    .bind(secret)
    .fetch_one(stack.pool())
    .await
    .expect("looks at the hashes");
    assert_eq!(kept, 0, "only a keyed hash is kept");
    let all = [&create[..], &["--scopes", "all", "--surface", "tool"]].concat();
    let all = stack.admin(&all).await.expect_success();
    assert_eq!(all["scopes"].as_array().map(Vec::len), Some(8));
}

#[tokio::test]
async fn scopes_must_be_known_and_have_their_dependencies() {
    let stack = &Stack::builder().shared().await;
    let account = stack.account().await;
    let create = async |scopes: &str| {
        let token = ["admin", "token", "create", "--account", &account.uid, "--label", "l", "--scopes", scopes];
        stack.admin(&token).await
    };
    for (good, bad) in [
        ("canvas:read,canvas:write", "canvas:write"),
        ("element:read,element:write", "element:write"),
        ("canvas:read,canvas:write,asset:read,image:generate", "canvas:read,canvas:write,image:generate"),
        ("canvas:read,canvas:write,asset:read,image:generate", "canvas:read,asset:read,image:generate"),
        ("canvas:read,asset:read,video:generate", "asset:read,video:generate"),
        ("canvas:read,asset:read,video:generate", "canvas:read,video:generate"),
    ] {
        create(good).await.expect_success();
        create(bad).await.expect_refusal();
    }
    for bad in ["", "canvas:delete", "canvas:read,", "All", "canvas:read canvas:write"] {
        create(bad).await.expect_refusal();
    }
}

#[tokio::test]
async fn a_label_has_at_most_80_characters() {
    let stack = &Stack::builder().shared().await;
    let account = stack.account().await;
    let create = async |label: &str| {
        let token = ["admin", "token", "create", "--account", &account.uid, "--scopes", "all", "--label", label];
        stack.admin(&token).await
    };
    create(&"ü".repeat(80)).await.expect_success();
    create("-x --label").await.expect_success();
    create(&"x".repeat(81)).await.expect_refusal();
    create("").await.expect_refusal();
}

#[tokio::test]
async fn a_token_lives_at_most_90_days() {
    let stack = &Stack::builder().shared().await;
    let account = stack.account().await;
    let create = async |days: &str| {
        let token = ["admin", "token", "create", "--account", &account.uid, "--scopes", "all", "--label", "l"];
        stack.admin(&[&token[..], &["--expires-days", days]].concat()).await
    };
    for days in ["1", "90"] {
        let made = create(days).await.expect_success();
        let expires = text(&made, "/expiresAt");
        assert!(
            expires.len() == 24 && expires.ends_with('Z') && &expires[19..20] == ".",
            "in UTC with milliseconds: {expires}"
        );
    }
    for days in ["0", "91", "-1", "1.5", "never"] {
        create(days).await.expect_refusal();
    }
    let surface = ["admin", "token", "create", "--account", &account.uid, "--scopes", "all", "--label", "l"];
    stack.admin(&[&surface[..], &["--surface", "spaceship"]].concat()).await.expect_refusal();
    stack.admin(&[&surface[..], &["--surface", "-s"]].concat()).await.expect_refusal();
}

#[tokio::test]
async fn an_account_has_at_most_20_active_tokens() {
    let stack = &Stack::builder().shared().await;
    let account = stack.account().await;
    let mut users = Vec::new();
    for _ in 0..20 {
        users.push(stack.user_of(&account, "canvas:read").await);
    }
    let create = ["admin", "token", "create", "--account", &account.uid, "--label", "l", "--scopes", "canvas:read"];
    assert!(stack.admin(&create).await.expect_refusal().contains("20"));
    // Revoked and expired tokens do not count toward the limit.
    stack.admin(&["admin", "token", "revoke", &users[0].token_id]).await.expect_success();
    stack.admin(&create).await.expect_success();
    stack.admin(&create).await.expect_refusal();
    sqlx::query("UPDATE tokens SET expires_at = now() - interval '1 second' WHERE id = $1::uuid")
        .bind(&users[1].token_id)
        .execute(stack.pool())
        .await
        .expect("lets time pass");
    stack.admin(&create).await.expect_success();
}

#[tokio::test]
async fn tokens_are_listed_with_what_became_of_them() {
    let stack = &Stack::builder().shared().await;
    let account = stack.account().await;
    let used = stack.user_by(&account, "canvas:read", "cli").await;
    let unused = stack.user_of(&account, "all").await;
    used.get("/auth/status").await.ok();
    let revoked = stack.admin(&["admin", "token", "revoke", &unused.token_id]).await.expect_success();
    assert_eq!(revoked["id"], unused.token_id.as_str());
    let list = async || {
        let listed = stack.admin(&["admin", "token", "list", "--account", &account.uid]).await.expect_success();
        listed["tokens"].as_array().expect("a list").clone()
    };
    // The time of use is recorded asynchronously.
    testkit::wait_for("the use to be noted", e2e::PATIENCE, async || {
        let tokens = list().await;
        tokens.iter().any(|token| token["lastUsedAt"].is_string()).then_some(())
    })
    .await;
    let tokens = list().await;
    let entry = |id: &str| tokens.iter().find(|token| token["id"] == id).expect("is listed");
    let one = entry(&used.token_id);
    assert_eq!(
        (&one["label"], &one["surface"], &one["scopes"]),
        (&json!("e2e"), &json!("cli"), &json!(["canvas:read"]))
    );
    assert!(one["createdAt"].is_string() && one["expiresAt"].is_null() && one["revokedAt"].is_null());
    let two = entry(&unused.token_id);
    assert_eq!((&two["revokedAt"], &two["lastUsedAt"]), (&revoked["revokedAt"], &Value::Null));
    // Revocation is irreversible and idempotent: the first time is kept.
    let again = stack.admin(&["admin", "token", "revoke", &unused.token_id]).await.expect_success();
    assert_eq!(again["revokedAt"], revoked["revokedAt"]);
    for unknown in [Uuid::new_v4().to_string(), "x".to_owned()] {
        stack.admin(&["admin", "token", "revoke", &unknown]).await.expect_refusal();
    }
}

#[tokio::test]
async fn a_session_is_revoked_with_all_tokens_under_it() {
    let stack = &Stack::builder().shared().await;
    let account = stack.account().await;
    let revoke =
        async || stack.admin(&["admin", "session", "revoke", "--account", &account.uid]).await.expect_success();
    assert_eq!(revoke().await, json!({"uid": account.uid, "revokedSessions": 0}), "no token, no session yet");
    stack.user_of(&account, "all").await;
    stack.user_of(&account, "all").await;
    assert_eq!(revoke().await["revokedSessions"], 1, "two tokens hang on one session");
    assert_eq!(revoke().await["revokedSessions"], 0);
}

#[tokio::test]
async fn a_canvas_is_shared_and_unshared() {
    let stack = &Stack::builder().shared().await;
    let (owner, other) = (stack.user().await, stack.account().await);
    let canvas = owner.make_canvas().await;
    let handle = text(&canvas, "/handle");
    let share = async |canvas: &str, with: &str, role: &str| {
        stack.admin(&["admin", "share", "--canvas", canvas, "--with", with, "--role", role]).await
    };
    for role in ["viewer", "editor", "editor", "none", "none"] {
        let shared = share(handle, &other.email, role).await.expect_success();
        assert_eq!(shared, json!({"canvas": handle, "account": other.uid, "role": role}));
    }
    share(handle, &other.uid, "owner").await.expect_refusal();
    share(handle, "nobody", "viewer").await.expect_refusal();
    share(handle, &owner.uid, "viewer").await.expect_refusal();
    share("canvas:nobody:absent", &other.uid, "viewer").await.expect_refusal();
    share(text(&canvas, "/id"), &other.uid, "viewer").await.expect_refusal();
}

#[tokio::test]
async fn keys_are_counted_and_rewrapped() {
    let stack = &Stack::builder().start().await;
    let status = stack.admin(&["admin", "keys", "status"]).await.expect_success();
    assert_eq!(text(&status, "/primary"), "e2e");
    // The installation key itself is encrypted under the key ring.
    assert!(status["sealed"]["e2e"].as_i64() >= Some(1), "{status}");
    let rewrapped = stack.admin(&["admin", "keys", "rewrap"]).await.expect_success();
    assert_eq!(rewrapped, status, "everything hung on the first key already");
}

#[tokio::test]
async fn the_installation_key_moves_to_a_ring_of_its_own() {
    let stack = &Stack::builder().start().await;
    const OWN: [(&str, &str); 1] = [("CANVAS_INSTALLATION_KEYS", "own:ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=")];
    let account = stack.account().await;
    let create = ["admin", "token", "create", "--account", &account.uid, "--label", "t", "--scopes", "canvas:read"];
    let before = stack.admin(&["admin", "keys", "status"]).await.expect_success();
    let count = before["sealed"]["e2e"].as_i64().expect("a count");
    // The master keys open it until it is encrypted under its own ring.
    stack.admin_in(&create, "", &OWN).await.expect_success();
    let moved = stack.admin_in(&["admin", "keys", "rewrap"], "", &OWN).await.expect_success();
    assert_eq!(moved["sealed"]["own"], 1);
    assert_eq!(moved["sealed"]["e2e"].as_i64().unwrap_or(0), count - 1, "the other secrets stay where they are");
    for arguments in [&create[..], &["migrate"]] {
        let refusal = stack.admin(arguments).await.expect_refusal();
        assert!(refusal.contains("CANVAS_INSTALLATION_KEYS"), "without its ring: {refusal}");
    }
    stack.admin_in(&["migrate"], "", &OWN).await.expect_success();
    let made = stack.admin_in(&create, "", &OWN).await.expect_success();
    stack.anonymous().with_token(text(&made, "/token")).get("/canvases").await.ok();
}

#[tokio::test]
async fn a_recipe_is_published_from_standard_input() {
    let stack = &Stack::builder().shared().await;
    // A container image has neither a shell nor a writable place for a file.
    let id = format!("r-{}", Uuid::new_v4());
    let recipe = json!({
        "id": id, "name": "Published", "category": "Marketing & Ads",
        "inputs": [{"key": "a", "label": "A", "description": "d", "type": "text", "useAsDefault": false}],
        "outputs": [{"key": "b", "label": "B", "description": "d", "type": "text", "prompt": "{{a}}", "inputKeys": ["a"]}],
    });
    let publish = async |input: &str| stack.admin_with_input(&["admin", "recipe", "publish", "-"], input).await;
    let published = publish(&recipe.to_string()).await.expect_success();
    assert_eq!(published, json!({"id": id, "handle": format!("recipe:{id}"), "version": "1.0.0"}));
    for no_recipe in ["", "no JSON", "{}"] {
        publish(no_recipe).await.expect_refusal();
    }
}

#[tokio::test]
async fn misuse_of_the_command_line_exits_2_and_a_refused_value_1() {
    let stack = &Stack::builder().shared().await;
    for misuse in [
        &[][..],
        &["dance"],
        &["admin"],
        &["admin", "account"],
        &["admin", "account", "create"],
        &["admin", "account", "create", "--email"],
        &["admin", "account", "create", "--email", "a@example.com", "--colour", "red"],
        &["admin", "token", "create", "--account", "a"],
        &["admin", "token", "revoke"],
        &["admin", "credits", "grant", "--account", "a"],
        &["admin", "share", "--canvas", "canvas:a:b"],
        &["admin", "keys", "burn"],
        &["admin", "connection", "create", "--account", "a", "--provider", "fal", "--name", "n"],
        &["admin", "connection", "delete"],
        &["serve", "now"],
    ] {
        stack.admin(misuse).await.expect_misuse();
    }
    for refused in [
        &["admin", "token", "revoke", "7"][..],
        &["admin", "credits", "grant", "--account", "nobody", "--amount", "1"],
        &["admin", "webhook", "list", "--status", "lost"],
        &["admin", "webhook", "list", "--account", "nobody"],
        &["admin", "webhook", "replay", "webhook:7"],
        &["admin", "connection", "list", "--account", "nobody"],
        &["admin", "connection", "delete", "7"],
    ] {
        stack.admin(refused).await.expect_refusal();
    }
    let list = ["admin", "webhook", "list", "--account", &stack.account().await.uid];
    assert_eq!(stack.admin(&list).await.expect_success()["deliveries"], json!([]));
}

#[tokio::test]
async fn the_audit_is_exported_and_verified() {
    let stack = &Stack::builder().start().await;
    let account = stack.account().await;
    let verify = async || stack.admin(&["admin", "audit", "verify"]).await.expect_success();
    let exported = async |arguments: &[&str]| -> Vec<Value> {
        let done = stack.admin(arguments).await;
        assert_eq!((done.code, done.stderr.as_str()), (0, ""));
        done.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    };
    let verified = verify().await;
    assert_eq!((&verified["ok"], &verified["firstBroken"]), (&json!(true), &Value::Null), "{verified}");
    assert!(verified["rows"].as_u64() >= Some(1) && verified["seals"].as_u64() >= Some(1), "{verified}");
    assert_eq!(text(&verified, "/head").len(), 64);
    let forge = async |sql: &'static str| {
        let mut transaction = stack.pool().begin().await.expect("begins");
        sqlx::raw_sql("SET LOCAL session_replication_role = replica").execute(&mut *transaction).await.expect("sets");
        sqlx::raw_sql(sql).execute(&mut *transaction).await.expect("changes");
        transaction.commit().await.expect("commits");
    };
    forge("UPDATE audit SET event = 'account.enabled' WHERE id = (SELECT min(id) FROM audit)").await;
    let broken = verify().await;
    assert_eq!((&broken["ok"], &broken["firstBroken"]), (&json!(false), &json!({"seal": 1})), "{broken}");
    let export = ["admin", "audit", "export", "--account", &account.email, "--event", "account."];
    let lines = exported(&export).await;
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(
        (text(&lines[0], "/account/email"), text(&lines[0], "/actor/id")),
        (account.email.as_str(), "admin account")
    );
    let lines = exported(&["admin", "audit", "export", "--event", "audit."]).await;
    assert_eq!(
        lines.iter().map(|line| text(line, "/event")).collect::<Vec<_>>(),
        ["audit.exported"; 2],
        "this one, too"
    );
    for wrong in [["--from", "yesterday"], ["--to", "1"], ["--account", "nobody"], ["--actor", "nobody"]] {
        stack.admin(&[&["admin", "audit", "export"], &wrong[..]].concat()).await.expect_refusal();
    }
}
