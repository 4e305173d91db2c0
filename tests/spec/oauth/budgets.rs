//! What an app may spend.

use e2e::api::{key, text};
use e2e::{Client, Stack};
use serde_json::{Value, json};

use super::{Flow, Tokens, decide, parts, query, stack, told};

/// `UNIT:PERIOD:MAX`, as it is sent.
fn bodies(budgets: &[&str]) -> Value {
    let body = |text: &&str| {
        let parts: Vec<&str> = text.split(':').collect();
        json!({"unit": parts[0], "period": parts[1], "max": parts[2].parse::<i64>().expect("a number")})
    };
    budgets.iter().map(body).collect()
}

/// Budgets as they are shown: whose, what, and what is spent and left.
fn shown(budgets: &Value) -> Vec<String> {
    let line = |it: &Value| {
        let part = |name: &str| text(it, name).to_owned();
        format!("{} {} {} {} {}", part("/of"), part("/unit"), part("/period"), it["spent"], it["left"])
    };
    budgets.as_array().expect("budgets").iter().map(line).collect()
}

impl Flow {
    /// An app whose person decides with these changes.
    async fn decided(&self, scopes: &str, changes: Value) -> Tokens {
        let answer = decide(&self.person, &query(&self.client_id, &[("scope", Some(scopes))]), changes).await.ok();
        self.exchange(&told(&answer)["code"], &[]).await.ok().into()
    }

    fn of(&self, app: &Tokens) -> Client {
        self.client.with_token(&app.access)
    }
}

const GENERATE: &str = "canvas:read canvas:write asset:read image:generate video:generate";

/// A start of a video of the embedded runtime, which costs one credit.
fn video() -> Value {
    json!({"model": "animatic", "prompt": "a kite over the sea", "idempotencyKey": key()})
}

async fn grant(stack: &Stack, app: &Client, amount: i64) {
    let status = app.get("/auth/status").await.ok();
    stack.grant(text(&status, "/uid"), amount).await;
}

#[tokio::test]
async fn an_app_that_generates_has_budgets_unless_the_person_decides_otherwise() {
    let stack = &stack().await;
    let flow = Flow::new(stack).await;
    let preview = async |scopes: &str| {
        let asked = query(&flow.client_id, &[("scope", Some(scopes))]);
        flow.person.send("/authorizations/preview", &json!({"query": asked})).await.ok()["request"]["budgets"].clone()
    };
    let budgets_of = async |app: &Tokens| shown(&flow.of(app).get("/auth/status").await.ok()["budgets"]);
    let preset = ["credits:month:100", "outputs:day:100"];
    let of_preset = ["app credits month 0 100", "app outputs day 0 100"];
    for scopes in [GENERATE, "canvas:read asset:read video:generate", ""] {
        assert_eq!(preview(scopes).await, bodies(&preset), "{scopes}");
    }
    assert_eq!(preview("canvas:read").await, json!([]));
    // As the page does, as a client that does not know budgets, with less, and without any.
    let app = flow.decided(GENERATE, json!({"budgets": bodies(&preset)})).await;
    assert_eq!(budgets_of(&app).await, of_preset);
    let app = flow.decided(GENERATE, json!({})).await;
    assert_eq!(budgets_of(&app).await, of_preset);
    let app = flow.decided(GENERATE, json!({"scopes": ["canvas:read"]})).await;
    assert_eq!(budgets_of(&app).await, [""; 0]);
    let app = flow.decided(GENERATE, json!({"budgets": []})).await;
    assert_eq!(budgets_of(&app).await, [""; 0]);
    let app = flow.decided("canvas:read", json!({"budgets": bodies(&["outputs:total:0"])})).await;
    assert_eq!(budgets_of(&app).await, ["app outputs total 0 0"]);
    let listed = flow.person.get("/apps").await.ok()["apps"].clone();
    let all: Vec<_> = listed.as_array().expect("apps").iter().map(|app| shown(&app["budgets"])).collect();
    let none: [&str; 0] = [];
    assert_eq!(all, [&["app outputs total 0 0"][..], &none, &none, &of_preset, &of_preset]);
}

#[tokio::test]
async fn an_app_spends_no_more_than_its_budget() {
    let stack = &stack().await;
    let flow = Flow::new(stack).await;
    let budgets = bodies(&["credits:day:2", "outputs:month:9"]);
    let tokens = flow.decided(GENERATE, json!({"budgets": budgets})).await;
    let app = flow.of(&tokens);
    grant(stack, &app, 10).await;
    app.send("/videos/generate", &video()).await.expect(202);
    app.send("/videos/generate", &video()).await.expect(202);
    let refused = async |app: &Client| {
        let reply = app.send("/videos/generate", &video()).await;
        let details = reply.json()["error"]["details"].clone();
        reply.expect_error(402, "payment_required", &[]);
        details
    };
    let details = refused(&app).await;
    let budget = json!({
        "of": "app", "unit": "credits", "period": "day", "max": 2, "spent": 2, "left": 0,
        "resetsAt": text(&details, "/budget/resetsAt"), "reason": "exceeded",
    });
    assert_eq!(details, json!({"creditCost": 1, "budget": budget}));
    // It is the budget of the app, whichever of its access tokens is used, and of no other app.
    let refreshed = Tokens::from(flow.refresh(&tokens.refresh, &[]).await.ok());
    assert_eq!(refused(&flow.of(&refreshed)).await, details);
    let other = flow.of(&flow.decided(GENERATE, json!({"budgets": budgets})).await);
    other.send("/videos/generate", &video()).await.expect(202);
    // The person raises it, in force for the next start; what is spent stays counted.
    let path = format!("/apps/{}/budgets", parts(&tokens.access).0);
    let raised = flow.person.put(&path, &json!({"budgets": bodies(&["credits:day:3", "outputs:total:7"])})).await.ok();
    let expected = ["app credits day 2 1", "app outputs total 0 7"];
    assert_eq!(shown(&raised["budgets"]), expected);
    assert_eq!(shown(&app.get("/auth/status").await.ok()["budgets"]), expected);
    app.send("/videos/generate", &video()).await.expect(202);
    refused(&app).await;
    flow.person.put(&path, &json!({"budgets": []})).await.ok();
    app.send("/videos/generate", &video()).await.expect(202);
    let listed = stack.admin(&["admin", "app", "list", "--account", &uid(&app).await]).await.expect_success();
    assert_eq!(shown(&listed["apps"][0]["budgets"]), ["app credits day 1 1", "app outputs month 1 8"]);
}

async fn uid(app: &Client) -> String {
    text(&app.get("/auth/status").await.ok(), "/uid").to_owned()
}

#[tokio::test]
async fn budgets_of_an_app_follow_the_rules_of_budgets() {
    let stack = &stack().await;
    let (flow, other) = (Flow::new(stack).await, Flow::new(stack).await);
    let app = flow.app().await;
    let path = format!("/apps/{}/budgets", parts(&app.access).0);
    let asked = query(&flow.client_id, &[]);
    for (budgets, fields) in [
        (json!([{"unit": "credits", "period": "day", "max": -1}]), &["budgets[0].max"][..]),
        (json!([{"unit": "credits", "period": "day", "max": 9007199254740992_i64}]), &["budgets[0].max"]),
        (json!([{"unit": "money", "period": "day", "max": 1}]), &["budgets[0].unit"]),
        (json!([{"unit": "credits", "period": "week", "max": 1}]), &["budgets[0].period"]),
        (bodies(&["credits:day:1", "outputs:day:1", "credits:day:2"]), &["budgets[2]"]),
        (bodies(&["credits:day:1"; 9]), &["budgets"]),
        (json!({}), &["budgets"]),
    ] {
        let body = json!({"budgets": budgets});
        flow.person.put(&path, &body).await.expect_error(400, "input_validation_error", fields);
        decide(&flow.person, &asked, body).await.expect_error(400, "input_validation_error", fields);
    }
    let all = ["credits:day:0", "credits:month:1", "credits:total:2", "outputs:day:3", "outputs:month:4"];
    let most = bodies(&[&all[..], &["outputs:total:9007199254740991"]].concat());
    flow.person.put(&path, &json!({"budgets": most})).await.ok();
    flow.decided("canvas:read", json!({"budgets": most})).await;
    flow.person.put(&path, &json!({})).await.expect_error(400, "input_validation_error", &["budgets"]);
    // Of another account, of no app, of a token, and of an app that has ended.
    let none = json!({"budgets": []});
    other.person.put(&path, &none).await.expect_error(404, "not_found", &[]);
    let nobody = format!("/apps/{}/budgets", uuid::Uuid::now_v7());
    flow.person.put(&nobody, &none).await.expect_error(404, "not_found", &[]);
    flow.person.put("/apps/x/budgets", &none).await.expect_error(400, "input_validation_error", &["appId"]);
    let of_token = format!("/tokens/{}/budgets", parts(&app.access).0);
    flow.person.put(&of_token, &none).await.expect_error(404, "not_found", &[]);
    flow.person.delete(&format!("/apps/{}", parts(&app.access).0)).await.expect(204);
    flow.person.put(&path, &none).await.expect_error(404, "not_found", &[]);
}

#[tokio::test]
async fn the_audit_has_the_budgets_of_apps_and_a_code_that_is_not_exchanged_leaves_none() {
    let stack = &stack().await;
    let flow = Flow::new(stack).await;
    let app = flow.decided(GENERATE, json!({"budgets": bodies(&["credits:day:5"])})).await;
    let id = parts(&app.access).0;
    flow.person.put(&format!("/apps/{id}/budgets"), &json!({"budgets": bodies(&["outputs:day:7"])})).await.ok();
    let entries = flow.person.get("/audit?event=app.").await.ok()["entries"].clone();
    assert_eq!(entries[0]["details"], json!({"app": id, "budgets": ["outputs:day:7"]}));
    assert_eq!((text(&entries[0], "/event"), text(&entries[1], "/event")), ("app.limits", "app.allowed"));
    assert_eq!(entries[1]["details"]["budgets"], json!(["credits:day:5"]));
    // A code that was not exchanged leaves none.
    let account = uid(&flow.of(&app)).await;
    let budgets = async || stack.count_of("SELECT count(*) FROM budgets WHERE account_uid = $1", &account).await;
    decide(&flow.person, &query(&flow.client_id, &[]), json!({})).await.ok();
    assert_eq!(budgets().await, 3);
    let past = "UPDATE oauth_grants SET code_until = code_until - interval '2 hours' WHERE generation = 0 AND account_uid = $1";
    sqlx::query(past).bind(&account).execute(stack.pool()).await.expect("lets time pass");
    let mut connection = stack.pool().acquire().await.expect("connects");
    db::oauth::sweep(&mut connection, 100).await.expect("sweeps");
    assert_eq!(budgets().await, 1);
}
