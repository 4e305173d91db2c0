//! Budgets of tokens and accounts (docs/reference/authentication.md#budgets).

use e2e::api::{key, text};
use e2e::{Person, Stack, User, images};
use reqwest::Method;
use serde_json::{Value, json};

use crate::campaigns::legacy;
use crate::console::holder::Holder;
use crate::tools::{board, tools_of};

/// Sets budgets of a token by the console: each `UNIT:PERIOD:MAX`.
async fn set(person: &Holder, token: &str, budgets: &[&str]) -> Value {
    let path = format!("/tokens/{token}/budgets");
    person.put(&path, &json!({"budgets": bodies(budgets)})).await.ok()["budgets"].clone()
}

fn bodies(budgets: &[&str]) -> Vec<Value> {
    let body = |text: &&str| {
        let parts: Vec<&str> = text.split(':').collect();
        json!({"unit": parts[0], "period": parts[1], "max": parts[2].parse::<i64>().expect("a number")})
    };
    budgets.iter().map(body).collect()
}

/// The budgets that `auth/status` shows: whose, unit, and what is spent and left.
async fn shown(user: &User) -> Vec<String> {
    let status = user.get("/auth/status").await.ok();
    let line = |it: &Value| format!("{} {} {} {}", text(it, "/of"), text(it, "/unit"), it["spent"], it["left"]);
    status["budgets"].as_array().expect("budgets").iter().map(line).collect()
}

/// A start of a video of the embedded runtime, which costs one credit.
fn video(more: Value) -> Value {
    let mut body = json!({"model": "animatic", "prompt": "a kite over the sea", "idempotencyKey": key()});
    body.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
    body
}

/// The details of a refusal.
async fn refused(user: &User, body: &Value) -> Value {
    let reply = user.send("/videos/generate", body).await;
    let details = reply.json()["error"]["details"].clone();
    reply.expect_error(402, "payment_required", &[]);
    details
}

#[tokio::test]
async fn every_start_counts_its_outputs_and_what_it_reserves() {
    let stack = &legacy().await;
    let person = Holder::new(stack).await;
    let user = &person.user;
    stack.grant(&user.uid, 100).await;
    set(&person, &user.token_id, &["credits:month:50", "outputs:day:50"]).await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let image = text(&user.upload("image/png", images::png(8, 8)).await, "/handle").to_owned();
    let at = async |mut body: Value| {
        body["canvasId"] = json!(canvas);
        body["baseRevision"] = user.canvas(&canvas).await["revision"].clone();
        body["idempotencyKey"] = json!(key());
        body
    };
    let (mut outputs, balance) = (0, async || user.get("/auth/status").await.ok()["creditBalance"].as_i64());
    let slots = [user.slot(&canvas).await, user.slot(&canvas).await];
    let shots = json!([{"prompt": "Boots"}, {"prompt": "Boots from above"}]);
    let offer = json!({"product": image, "offer": "Chairs, a fifth off until Sunday."});
    for (path, body, made) in [
        ("/images/generate", json!({"targetNodeIds": slots, "prompt": "A chair"}), 2),
        ("/images/generate", json!({"place": {"count": 3}, "prompt": "A chair"}), 3),
        ("/images/edit", json!({"place": {}, "source": image, "prompt": "A chair"}), 1),
        ("/images/variations", json!({"place": {"count": 2}, "source": image}), 2),
        ("/videos/generate", json!({"place": {}, "model": "animatic", "prompt": "A kite"}), 1),
        ("/recipes/ad-copy-and-banner/runs", json!({"inputs": offer}), 2),
        ("/campaigns/start", json!({"title": "Autumn", "plan": {"brief": "Boots", "shots": shots}}), 2),
    ] {
        let request = at(body).await;
        user.send(path, &request).await.expect(202);
        outputs += made;
        let spent = 100 - balance().await.expect("a balance");
        assert!(spent > 0);
        let expected =
            [format!("token credits {spent} {}", 50 - spent), format!("token outputs {outputs} {}", 50 - outputs)];
        assert_eq!(shown(user).await, expected, "{path}");
        user.send(path, &request).await.expect(202);
        assert_eq!(shown(user).await, expected, "a replay of {path} counts nothing");
    }
    let before = shown(user).await;
    user.start_resize(&canvas, json!({})).await;
    assert_eq!(shown(user).await, before, "an Action counts nothing");
}

#[tokio::test]
async fn a_start_over_a_budget_is_402_and_reserves_nothing() {
    let stack = &Stack::without_workers().await;
    let person = Holder::new(stack).await;
    let user = &person.user;
    stack.grant(&user.uid, 3).await;
    set(&person, &user.token_id, &["credits:day:2", "outputs:total:9"]).await;
    let first = video(json!({}));
    user.send("/videos/generate", &first).await.expect(202);
    user.send("/videos/generate", &video(json!({}))).await.expect(202);
    let third = video(json!({}));
    let details = refused(user, &third).await;
    let resets_at = text(&details, "/budget/resetsAt");
    assert!(resets_at.ends_with("T00:00:00.000Z"), "{details}");
    let budget = json!({
        "of": "token", "unit": "credits", "period": "day", "max": 2, "spent": 2, "left": 0, "resetsAt": resets_at,
        "reason": "exceeded",
    });
    assert_eq!(details, json!({"creditCost": 1, "budget": budget}));
    assert_eq!(refused(user, &video(json!({"validateOnly": true}))).await, details, "a dry run is judged alike");
    // maxCredits comes first, the balance last.
    let capped = refused(user, &video(json!({"maxCredits": 0}))).await;
    assert_eq!(capped, json!({"creditCost": 1, "maxCredits": 0}));
    assert_eq!(user.get("/auth/status").await.ok()["creditBalance"], 1);
    // A replay counts nothing, however little is left.
    assert_eq!(user.send("/videos/generate", &first).await.expect(202).json()["replayed"], true);
    assert_eq!(shown(user).await, ["token credits 2 0", "token outputs 2 7"]);
    // The refused start has not used its key.
    let raised = set(&person, &user.token_id, &["credits:day:9", "outputs:total:9"]).await;
    assert_eq!((&raised[0]["spent"], &raised[0]["left"], raised[0].get("reason")), (&json!(2), &json!(7), None));
    assert_ne!(user.send("/videos/generate", &third).await.expect(202).json()["replayed"], true);
    assert_eq!(refused(user, &video(json!({}))).await, json!({"creditCost": 1}), "the balance");
    set(&person, &user.token_id, &["outputs:total:3"]).await;
    assert_eq!(text(&refused(user, &video(json!({}))).await, "/budget/unit"), "outputs", "a budget before the balance");
}

#[tokio::test]
async fn what_is_canceled_returns_credit_and_no_output() {
    let stack = &Stack::without_workers().await;
    let person = Holder::new(stack).await;
    let user = &person.user;
    stack.grant(&user.uid, 9).await;
    set(&person, &user.token_id, &["credits:month:1", "outputs:month:3"]).await;
    for spent in 1..=3 {
        let job = user.send("/videos/generate", &video(json!({}))).await.expect(202).json();
        assert_eq!(shown(user).await, ["token credits 1 0".to_owned(), format!("token outputs {spent} {}", 3 - spent)]);
        user.delete(text(&job, "/pollUrl")).await.ok();
    }
    assert_eq!(shown(user).await, ["token credits 0 1", "token outputs 3 0"]);
    // A run returns what its steps have not taken.
    set(&person, &user.token_id, &["credits:month:5"]).await;
    let canvas = user.make_canvas().await;
    let image = text(&user.upload("image/png", images::png(8, 8)).await, "/handle").to_owned();
    let run = json!({
        "canvasId": canvas["id"], "baseRevision": canvas["revision"], "idempotencyKey": key(),
        "inputs": {"product": image, "offer": "Chairs, a fifth off until Sunday."},
    });
    let run = user.send("/recipes/ad-copy-and-banner/runs", &run).await.expect(202).json();
    assert_ne!(shown(user).await, ["token credits 0 5"]);
    user.delete(text(&run, "/pollUrl")).await.ok();
    assert_eq!(shown(user).await, ["token credits 0 5"]);
}

#[tokio::test]
async fn a_model_of_a_saved_connection_counts_outputs_alone() {
    let stack = &Stack::without_workers().await;
    let person = Holder::new(stack).await;
    let user = &person.user;
    let own = stack.connect(&user.uid, "openai", "Studio").await;
    set(&person, &user.token_id, &["credits:total:0", "outputs:total:2"]).await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let start = async |more: Value| {
        let mut body = json!({
            "canvasId": canvas, "baseRevision": user.canvas(&canvas).await["revision"], "idempotencyKey": key(),
            "prompt": "A chair", "place": {}, "connectionId": own,
        });
        body.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
        user.send("/images/generate", &body).await
    };
    assert_eq!(start(json!({"place": {"count": 2}})).await.expect(202).json()["creditCost"], 0);
    let refusal = start(json!({})).await.expect(402).json();
    assert_eq!(refusal["error"]["details"]["creditCost"], 0);
    assert_eq!(text(&refusal, "/error/details/budget/unit"), "outputs");
    assert!(text(&refusal, "/error/message").contains("2 outputs in total"), "{refusal}");
}

#[tokio::test]
async fn the_budgets_of_an_account_hold_for_all_its_tokens_and_people() {
    let stack = &Stack::without_workers().await;
    let person = Holder::new(stack).await;
    let user = &person.user;
    stack.grant(&user.uid, 9).await;
    let budget = async |more: &[&str]| {
        stack.admin(&[&["admin", "account", "budget", "--account", &user.uid][..], more].concat()).await
    };
    assert_eq!(budget(&[]).await.expect_success(), json!({"uid": user.uid, "budgets": []}));
    let made = budget(&["--budget", "credits:total:2", "--budget", "outputs:day:5"]).await.expect_success();
    assert_eq!((&made["budgets"][0]["of"], &made["budgets"][0]["max"]), (&json!("account"), &json!(2)));
    assert_eq!(made["budgets"][0].get("resetsAt"), None);
    for wrong in ["", "none:day:1", "credits:week:1", "credits:day:-1", "credits:day:9007199254740992", "money:day:1"] {
        budget(&["--budget", wrong]).await.expect_refusal();
    }
    budget(&["--budget", "credits:day:1", "--budget", "credits:day:2"]).await.expect_refusal();
    user.send("/videos/generate", &video(json!({}))).await.expect(202);
    person.send(&Person::api("/videos/generate"), &video(json!({}))).await.expect(202);
    let details = refused(user, &video(json!({}))).await;
    assert_eq!(text(&details, "/budget/of"), "account");
    let reply = person.send(&Person::api("/videos/generate"), &video(json!({}))).await.expect(402);
    assert_eq!(reply.json()["error"]["details"], details);
    assert_eq!(shown(user).await, ["account credits 2 0", "account outputs 2 3"]);
    let credit = person.get("/credit").await.ok();
    assert_eq!((&credit["budgets"][0]["spent"], &credit["budgets"][1]["unit"]), (&json!(2), &json!("outputs")));
    // Nobody else is concerned, and no budget is left in the end.
    let other = stack.user().await;
    assert_eq!(shown(&other).await, [""; 0]);
    assert_eq!(budget(&["--budget", "none"]).await.expect_success()["budgets"], json!([]));
    user.send("/videos/generate", &video(json!({}))).await.expect(202);
}

#[tokio::test]
async fn a_session_that_a_token_signed_in_has_its_budgets() {
    let stack = &Stack::without_workers().await;
    let narrow = Holder::narrow(stack).await;
    let user = &narrow.user;
    stack.grant(&user.uid, 9).await;
    let account = e2e::Account { uid: user.uid.clone(), email: narrow.email.clone() };
    let person = Holder::with_account(stack, &account).await;
    set(&person, &user.token_id, &["outputs:total:2"]).await;
    // The session was signed in before and still works.
    narrow.send(&Person::api("/videos/generate"), &video(json!({}))).await.expect(202);
    let later = stack.signed_in(&json!({"token": user.token})).await;
    later.send(&Person::api("/videos/generate"), &video(json!({}))).await.expect(202);
    narrow.send(&Person::api("/videos/generate"), &video(json!({}))).await.expect(402);
    user.send("/videos/generate", &video(json!({}))).await.expect(402);
    person.send(&Person::api("/videos/generate"), &video(json!({}))).await.expect(202);
    assert_eq!(shown(user).await, ["token outputs 2 0"]);
    // It cannot change them.
    let path = format!("/tokens/{}/budgets", user.token_id);
    narrow.put(&path, &json!({"budgets": []})).await.expect_error(403, "forbidden", &[]);
}

#[tokio::test]
async fn a_token_is_created_with_budgets_and_they_are_listed() {
    let stack = &Stack::without_workers().await;
    let person = Holder::new(stack).await;
    let create = |budgets: Value| json!({"label": "l", "scopes": ["canvas:read"], "budgets": budgets});
    let made =
        person.send("/tokens", &create(json!(bodies(&["credits:month:0", "outputs:day:7"])))).await.expect(201).json();
    assert_eq!((&made["token"]["budgets"][0]["left"], &made["token"]["budgets"][1]["max"]), (&json!(0), &json!(7)));
    let user = stack.anonymous().with_token(text(&made, "/secret"));
    assert_eq!(user.get("/auth/status").await.ok()["budgets"], made["token"]["budgets"]);
    let listed = person.get("/tokens").await.ok();
    assert_eq!(listed["tokens"][0]["budgets"], made["token"]["budgets"]);
    assert_eq!(listed["tokens"][1]["budgets"], json!([]));
    let create = [
        "admin",
        "token",
        "create",
        "--account",
        &person.user.uid,
        "--label",
        "l",
        "--scopes",
        "all",
        "--budget",
        "credits:day:3",
        "--budget",
        "outputs:total:4",
    ];
    let by_command = stack.admin(&create).await.expect_success();
    assert_eq!((&by_command["budgets"][0]["max"], &by_command["budgets"][1]["unit"]), (&json!(3), &json!("outputs")));
    let listed = stack.admin(&["admin", "token", "list", "--account", &person.user.uid]).await.expect_success();
    assert_eq!(listed["tokens"][2]["budgets"], by_command["budgets"]);
}

#[tokio::test]
async fn what_is_wrong_with_budgets_is_reported_by_its_fields() {
    let stack = &Stack::without_workers().await;
    let person = Holder::new(stack).await;
    let (token, other) = (&person.user.token_id, stack.user().await);
    let path = format!("/tokens/{token}/budgets");
    let one = |unit: &str, period: &str, max: Value| json!([{"unit": unit, "period": period, "max": max}]);
    for max in [0_i64, 9_007_199_254_740_991] {
        person.put(&path, &json!({"budgets": one("credits", "day", json!(max))})).await.ok();
    }
    let twice = json!([one("credits", "day", json!(1))[0], one("credits", "day", json!(2))[0]]);
    let nine = vec![one("credits", "day", json!(1))[0].clone(); 9];
    for (budgets, fields) in [
        (one("credits", "day", json!(-1)), &["budgets[0].max"][..]),
        (one("credits", "day", json!(9_007_199_254_740_992_i64)), &["budgets[0].max"]),
        (one("credits", "day", json!(1.5)), &["budgets[0].max"]),
        (one("credits", "week", json!(1)), &["budgets[0].period"]),
        (one("money", "day", json!(1)), &["budgets[0].unit"]),
        (json!([{"unit": "credits"}]), &["budgets[0].period", "budgets[0].max"]),
        (twice, &["budgets[1]"]),
        (json!(nine), &["budgets"]),
        (json!(null), &["budgets"]),
    ] {
        let body = json!({"budgets": budgets});
        person.put(&path, &body).await.expect_error(400, "input_validation_error", fields);
        let body = json!({"label": "l", "scopes": ["canvas:read"], "budgets": budgets});
        person.send("/tokens", &body).await.expect_error(400, "input_validation_error", fields);
    }
    person.put(&path, &json!({})).await.expect_error(400, "input_validation_error", &["budgets"]);
    let theirs = format!("/tokens/{}/budgets", other.token_id);
    person.put(&theirs, &json!({"budgets": []})).await.expect_error(404, "not_found", &[]);
    let session = person.get("/session").await.ok();
    let of_session = format!("/tokens/{}/budgets", text(&session, "/session/id"));
    person.put(&of_session, &json!({"budgets": []})).await.expect_error(404, "not_found", &[]);
    // A token has no way to them.
    person.user.call(Method::PUT, &path).body("application/json", r#"{"budgets":[]}"#).await.expect(404);
}

#[tokio::test]
async fn who_sets_budgets_is_in_the_audit() {
    let stack = &Stack::without_workers().await;
    let person = Holder::new(stack).await;
    let token = &person.user.token_id;
    set(&person, token, &["credits:day:5", "outputs:total:7"]).await;
    let refused = json!({"budgets": [{"unit": "credits", "period": "day", "max": -1}]});
    person.put(&format!("/tokens/{token}/budgets"), &refused).await.expect(400);
    set(&person, token, &[]).await;
    let budget = ["admin", "account", "budget", "--account", &person.user.uid, "--budget", "credits:month:9"];
    stack.admin(&budget).await.expect_success();
    let entries = async |event: &str| {
        let read = person.get(&format!("/audit?event={event}")).await.ok();
        read["entries"].as_array().expect("entries").clone()
    };
    let limits = entries("token.limits").await;
    let details: Vec<&Value> = limits.iter().map(|entry| &entry["details"]).collect();
    let first = json!({"token": token, "budgets": ["credits:day:5", "outputs:total:7"]});
    assert_eq!(details, [&json!({"token": token, "budgets": []}), &first]);
    assert_eq!(text(&limits[0], "/actor/via"), "session");
    let of_account = entries("account.budget").await;
    assert_eq!(of_account[0]["details"], json!({"budgets": ["credits:month:9"]}));
    assert_eq!((of_account.len(), text(&of_account[0], "/actor/via")), (1, "command"));
}

#[tokio::test]
async fn a_tool_is_told_its_budgets_and_when_to_come_back() {
    let stack = &Stack::without_workers().await;
    let person = Holder::new(stack).await;
    let user = &person.user;
    stack.grant(&user.uid, 9).await;
    let tools = tools_of(user).await;
    assert_eq!(tools.ok("status", json!({})).await.get("budgets"), None);
    set(&person, &user.token_id, &["outputs:total:1"]).await;
    let budgets = tools.ok("status", json!({})).await["budgets"].clone();
    assert_eq!((&budgets[0]["unit"], &budgets[0]["left"]), (&json!("outputs"), &json!(1)));
    let (canvas, revision, _) = board(&tools).await;
    let arguments = json!({"mode": "generate", "canvas": canvas, "revision": revision, "prompt": "a boot", "count": 2});
    let failure = tools.call("image_generate", arguments).await.fails("payment_required");
    assert_eq!(failure["retry"], json!({"when": "never"}), "{failure}");
    assert_eq!((&failure["error"]["details"]["budget"]["left"], &failure["next"]), (&json!(1), &json!([])));
    assert!(text(&failure, "/error/message").contains("1 output in total"), "{failure}");
    let shell = stack.shell(user);
    let who = shell.run(&["whoami"]).await.expect(0).stdout;
    assert!(who.contains("budgets  1 output in total, of the token: 1 left\n"), "{who}");
}
