//! What all starts of work share: the cap on their price, dry runs (docs/reference/jobs.md#spending-cap), and stale revisions
//! (docs/reference/conventions.md#stale-revisions). No worker runs.

use e2e::api::{key, text};
use e2e::{Reply, Stack, User, images};
use serde_json::{Value, json};

use crate::campaigns::legacy;

/// The largest cap.
const CAP_MAX: i64 = 9_007_199_254_740_991;

/// An account with credits, a canvas and an image.
struct Setting {
    user: User,
    canvas: String,
    image: String,
}

/// A start that is valid now: its path, and its body without a key.
#[derive(Clone, Debug)]
struct Start {
    path: &'static str,
    body: Value,
    price: i64,
    targets: Value,
}

impl Start {
    /// The body with other members; `null` removes one.
    fn with(&self, more: Value) -> Value {
        let mut body = self.body.clone();
        for (field, value) in more.as_object().expect("an object") {
            match value {
                Value::Null => drop(body.as_object_mut().expect("an object").remove(field)),
                value => body[field] = value.clone(),
            }
        }
        body
    }
}

impl Setting {
    async fn new(stack: &Stack, credits: i64) -> Self {
        let user = stack.user().await;
        if credits > 0 {
            stack.grant(&user.uid, credits).await;
        }
        let canvas = text(&user.make_canvas().await, "/id").to_owned();
        let image = text(&user.upload("image/png", images::png(8, 8)).await, "/handle").to_owned();
        Self { user, canvas, image }
    }

    /// Every kind of start, for new targets and the present revision.
    async fn starts(&self) -> Vec<Start> {
        let mut slots = Vec::new();
        for _ in 0..5 {
            slots.push(self.user.slot(&self.canvas).await);
        }
        let now = self.user.canvas(&self.canvas).await["revision"].clone();
        let node = |at: usize| format!("node:{}", slots[at]);
        let on = |more: Value| {
            let mut body = json!({"canvasId": self.canvas, "baseRevision": now});
            body.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
            body
        };
        let shots = json!([{"prompt": "Boots"}, {"prompt": "Boots from behind"}]);
        let start = |path, price, targets, body| Start { path, body, price, targets };
        vec![
            start(
                "/images/generate",
                2,
                json!([node(0), node(1)]),
                on(json!({"targetNodeIds": [slots[0], slots[1]], "prompt": "A chair"})),
            ),
            start(
                "/images/edit",
                1,
                json!([node(2)]),
                on(json!({"targetNodeId": slots[2], "prompt": "A chair", "source": self.image, "model": "sketch"})),
            ),
            start(
                "/images/variations",
                1,
                json!([node(3)]),
                on(json!({"targetNodeId": slots[3], "references": [self.image]})),
            ),
            start("/videos/generate", 1, json!([]), json!({"model": "animatic", "prompt": "A kite"})),
            start(
                "/recipes/ad-copy-and-banner/runs",
                1,
                json!([]),
                on(json!({"inputs": {"product": self.image, "offer": "Chairs"}})),
            ),
            start(
                "/actions/resize/runs",
                0,
                json!([node(4)]),
                on(json!({"targetNodeId": slots[4], "inputs": [self.image], "params": {"width": 4}})),
            ),
            start("/campaigns/start", 2, json!([]), on(json!({"plan": {"brief": "Boots", "shots": shots}}))),
        ]
    }

    /// The start with this path.
    async fn start(&self, path: &str) -> Start {
        self.starts().await.into_iter().find(|start| start.path == path).expect("a start")
    }

    async fn quote(&self, start: &Start) -> Value {
        timeless(self.user.send(start.path, &start.with(json!({"validateOnly": true}))).await.ok())
    }

    async fn balance(&self) -> i64 {
        self.user.get("/auth/status").await.ok()["creditBalance"].as_i64().expect("a balance")
    }

    /// Everything that a start could have changed.
    async fn state(&self, stack: &Stack) -> (Value, i64, [i64; 4]) {
        let counts = sqlx::query_as(
            "SELECT (SELECT count(*) FROM jobs WHERE account_uid = $1), (SELECT count(*) FROM recipe_runs WHERE account_uid = $1),
                    (SELECT count(*) FROM ledger WHERE account_uid = $1), (SELECT count(*) FROM idempotency_keys WHERE account_uid = $1)",
        );
        let (jobs, runs, ledger, keys) = counts.bind(&self.user.uid).fetch_one(stack.pool()).await.expect("counts");
        (self.user.canvas(&self.canvas).await, self.balance().await, [jobs, runs, ledger, keys])
    }
}

#[tokio::test]
async fn a_dry_run_quotes_what_the_start_then_does() {
    let stack = &legacy().await;
    let setting = Setting::new(stack, 100).await;
    for path in setting.starts().await.into_iter().map(|start| start.path) {
        let start = setting.start(path).await;
        let quote = setting.quote(&start).await;
        let model = match (start.path, start.price) {
            (_, 0) => None,
            ("/videos/generate", _) => Some("animatic"),
            _ => Some("sketch"),
        };
        assert_eq!((&quote["creditCost"], &quote["targets"]), (&json!(start.price), &start.targets), "{path}: {quote}");
        assert_eq!(quote.get("model").is_some(), model.is_some(), "{path}: {quote}");
        if let Some(model) = model {
            let listed = setting.user.get(&format!("/models?provider=managed&q={model}")).await.ok();
            let listed = &listed["models"][0];
            assert_eq!(quote["model"], json!({"id": listed["id"], "name": listed["name"]}), "{path}");
        }
        let reply = setting.user.send(path, &start.with(json!({"idempotencyKey": key()}))).await.expect(202).json();
        if path == "/campaigns/start" {
            assert_eq!(reply["run"]["shots"].as_array().map(Vec::len), Some(2), "{reply}");
            continue;
        }
        assert_eq!(reply["creditCost"], quote["creditCost"], "{path}");
        assert_eq!(reply["estimatedSeconds"], quote["estimatedSeconds"], "{path}");
        if !start.targets.as_array().expect("targets").is_empty() {
            assert_eq!(reply["targets"], quote["targets"], "{path}");
        }
    }
    // Two images, an edit, variations, a video, a Recipe and two shots.
    assert_eq!(setting.balance().await, 100 - 8);
}

/// A quote without what it says of the moment: since when no worker is there.
fn timeless(mut quote: Value) -> Value {
    quote.as_object_mut().expect("an object").remove("waitingFor");
    quote
}

#[tokio::test]
async fn a_dry_run_writes_nothing_and_waits_for_nobody() {
    let stack = &legacy().await;
    let setting = Setting::new(stack, 100).await;
    let starts = setting.starts().await;
    let before = setting.state(stack).await;
    // Whoever writes to the account or the canvas has locked its row.
    let mut writer = stack.pool().begin().await.expect("begins");
    for lock in [
        "SELECT FROM accounts WHERE uid = $1 FOR UPDATE",
        "SELECT FROM canvases WHERE owner_uid = $1 FOR UPDATE",
        "SELECT FROM nodes n JOIN canvases c ON c.key = n.canvas_key WHERE c.owner_uid = $1 FOR UPDATE",
    ] {
        sqlx::query(lock).bind(&setting.user.uid).execute(&mut *writer).await.expect("locks");
    }
    for start in &starts {
        let quote = setting.quote(start).await;
        assert_eq!(setting.quote(start).await, quote, "{}: the same again", start.path);
    }
    writer.rollback().await.expect("rolls back");
    assert_eq!(setting.state(stack).await, before);
}

#[tokio::test]
async fn a_dry_run_needs_no_key_and_ignores_one() {
    let stack = &legacy().await;
    let setting = Setting::new(stack, 100).await;
    for path in setting.starts().await.into_iter().map(|start| start.path) {
        let start = setting.start(path).await;
        let quote = setting.quote(&start).await;
        for ignored in [json!(7), json!("short"), json!("k".repeat(201)), json!({"a": []})] {
            let body = start.with(json!({"validateOnly": true, "idempotencyKey": ignored}));
            assert_eq!(timeless(setting.user.send(path, &body).await.ok()), quote, "{path}: {ignored}");
        }
        // A key is neither taken nor looked up.
        let key = key();
        let trial = start.with(json!({"validateOnly": true, "idempotencyKey": key}));
        setting.user.send(path, &trial).await.expect(200);
        let started = setting.user.send(path, &start.with(json!({"idempotencyKey": key}))).await.expect(202).json();
        assert!(started.get("replayed").is_none(), "{path}: {started}");
        let again = setting.start(path).await;
        let trial = again.with(json!({"validateOnly": true, "idempotencyKey": key}));
        setting.user.send(path, &trial).await.expect(200);
    }
}

#[tokio::test]
async fn a_dry_run_is_refused_as_the_start_is() {
    let stack = &legacy().await;
    let setting = Setting::new(stack, 100).await;
    let stale = setting.user.canvas(&setting.canvas).await["revision"].clone();
    let starts = setting.starts().await;
    let target = |start: &Start, node: &str| match start.body.get("targetNodeId") {
        Some(_) => json!({"targetNodeId": node}),
        None => json!({"targetNodeIds": [node]}),
    };
    for start in &starts {
        let has = |field: &str| start.body.get(field).is_some();
        let mut refused = vec![(404, json!({"canvasId": "absent"}))];
        if has("baseRevision") {
            refused.push((409, json!({"baseRevision": stale})));
        }
        if has("targetNodeId") || has("targetNodeIds") {
            refused.push((422, target(start, "absent")));
        }
        if has("prompt") {
            refused.push((422, json!({"model": "absent"})));
            refused.push((400, json!({"prompt": ""})));
        }
        if start.path.starts_with("/images") {
            refused.push((422, json!({"elements": ["element:absent@v1"]})));
            refused.push((422, json!({"references": ["asset:absent"]})));
        }
        if has("inputs") && start.path.starts_with("/recipes") {
            refused.push((422, json!({"inputs": {"absent": "x"}})));
        }
        refused.push((400, json!({"unknown": 1})));
        for (status, wrong) in refused {
            let answer = async |more: Value| {
                let mut body = start.with(wrong.clone());
                body.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
                setting.user.send(start.path, &body).await.expect(status).json()
            };
            let (tried, started) = (answer(json!({"validateOnly": true})), answer(json!({"idempotencyKey": key()})));
            assert_eq!(tried.await, started.await, "{}: {wrong}", start.path);
        }
    }
    // A node that other work fills.
    let taken = setting.user.slot(&setting.canvas).await;
    let request = setting.user.resize_request(&setting.canvas, &taken, &setting.image).await;
    setting.user.send("/actions/resize/runs", &request).await.expect(202);
    for start in setting.starts().await.iter().filter(|start| start.targets != json!([])) {
        let mut more = target(start, &taken);
        more["validateOnly"] = json!(true);
        setting.user.send(start.path, &start.with(more)).await.expect_error(409, "conflict", &[]);
    }
}

#[tokio::test]
async fn a_dry_run_needs_the_scopes_and_the_role_of_the_start() {
    let stack = &legacy().await;
    let setting = Setting::new(stack, 100).await;
    let reader = stack.user_of(&account(&setting.user), "canvas:read,asset:read").await;
    let (viewer, stranger) = (stack.user().await, stack.user().await);
    stack.grant(&viewer.uid, 10).await;
    stack.share(&setting.user, &setting.canvas, &viewer.uid, "viewer").await;
    for start in setting.starts().await {
        let trial = start.with(json!({"validateOnly": true}));
        reader.send(start.path, &trial).await.expect_error(403, "forbidden", &[]);
        if start.body.get("canvasId").is_none() {
            continue;
        }
        let handle = format!("canvas:{}:{}", setting.user.uid, setting.canvas);
        let trial = start.with(json!({"validateOnly": true, "canvasId": handle}));
        viewer.send(start.path, &trial).await.expect_error(403, "forbidden", &[]);
        stranger.send(start.path, &trial).await.expect_error(404, "not_found", &[]);
    }
}

fn account(user: &User) -> e2e::Account {
    e2e::Account { uid: user.uid.clone(), email: format!("{}@example.com", user.uid) }
}

#[tokio::test]
async fn a_price_over_the_cap_is_402_and_reserves_nothing() {
    let stack = &legacy().await;
    let setting = Setting::new(stack, 100).await;
    for path in setting.starts().await.into_iter().map(|start| start.path) {
        let start = setting.start(path).await;
        let before = setting.state(stack).await;
        let key = key();
        if start.price > 0 {
            for more in [json!({"validateOnly": true}), json!({"idempotencyKey": key})] {
                let mut body = start.with(more);
                body["maxCredits"] = json!(start.price - 1);
                let refused = setting.user.send(path, &body).await.expect(402).json();
                assert_eq!(refused["error"]["code"], "payment_required", "{path}");
                let details = json!({"creditCost": start.price, "maxCredits": start.price - 1});
                assert_eq!(refused["error"]["details"], details, "{path}");
                assert!(refused["error"].get("fields").is_none(), "{path}: {refused}");
            }
            assert_eq!(setting.state(stack).await, before, "{path}");
        }
        for max in [start.price, start.price + 1] {
            let trial = start.with(json!({"validateOnly": true, "maxCredits": max}));
            setting.user.send(path, &trial).await.expect(200);
        }
        // The refused start did not take its key.
        let body = start.with(json!({"idempotencyKey": key, "maxCredits": start.price}));
        setting.user.send(path, &body).await.expect(202);
        assert_eq!(setting.balance().await, before.1 - start.price, "{path}");
    }
}

#[tokio::test]
async fn a_price_over_the_balance_is_402_and_named() {
    let stack = &legacy().await;
    let (poor, free) = (Setting::new(stack, 1).await, Setting::new(stack, 0).await);
    for path in ["/images/generate", "/campaigns/start"] {
        let start = poor.start(path).await;
        let before = poor.state(stack).await;
        for more in [json!({"validateOnly": true}), json!({"idempotencyKey": key(), "maxCredits": 2})] {
            let refused = poor.user.send(path, &start.with(more)).await.expect(402).json();
            assert_eq!(refused["error"]["details"], json!({"creditCost": 2}), "{path}");
        }
        // The cap is judged first.
        let capped = start.with(json!({"validateOnly": true, "maxCredits": 1}));
        let refused = poor.user.send(path, &capped).await.expect(402).json();
        assert_eq!(refused["error"]["details"], json!({"creditCost": 2, "maxCredits": 1}), "{path}");
        assert_eq!(poor.state(stack).await, before, "{path}");
    }
    for start in free.starts().await {
        let trial = free.user.send(start.path, &start.with(json!({"validateOnly": true}))).await;
        trial.expect(if start.price == 0 { 200 } else { 402 });
    }
}

#[tokio::test]
async fn a_quote_names_nodes_that_exist() {
    let stack = &legacy().await;
    let setting = Setting::new(stack, 10).await;
    let run = setting.start("/recipes/ad-copy-and-banner/runs").await;
    let fork = run.with(json!({"idempotencyKey": key(), "inputs": null}));
    let fork = setting.user.send("/recipes/ad-copy-and-banner/fork", &fork).await.expect(201).json();
    let mut instance = fork["canvas"]["nodes"].as_array().expect("nodes").iter();
    let instance = instance.rfind(|node| node["metadata"]["recipe"]["role"] == "instance");
    let instance = instance.expect("an instance").clone();
    let outputs = instance["metadata"]["recipe"]["outputs"].as_array().expect("outputs").iter();
    let outputs: Vec<String> = outputs.map(|port| format!("node:{}", text(port, "/nodeId"))).collect();
    let now = setting.user.canvas(&setting.canvas).await["revision"].clone();
    let body = run.with(json!({"baseRevision": now, "instanceNodeId": instance["id"]}));
    let on_instance = Start { body, ..run };
    let quote = setting.quote(&on_instance).await;
    assert_eq!((&quote["targets"], &quote["creditCost"]), (&json!(outputs), &json!(1)));
    let started = on_instance.with(json!({"idempotencyKey": key()}));
    let started = setting.user.send(on_instance.path, &started).await.expect(202).json();
    assert_eq!(started["targets"], quote["targets"]);
}

#[tokio::test]
async fn a_cap_is_a_whole_number_from_0() {
    let stack = &legacy().await;
    let setting = Setting::new(stack, 10).await;
    for start in setting.starts().await {
        for wrong in [json!(-1), json!(1.5), json!(CAP_MAX + 1), json!("1"), json!([1]), Value::Bool(true)] {
            let mut body = start.with(json!({"idempotencyKey": key()}));
            body["maxCredits"] = wrong.clone();
            let fields = &["maxCredits"];
            setting.user.send(start.path, &body).await.expect_error(400, "input_validation_error", fields);
            body["validateOnly"] = json!(true);
            setting.user.send(start.path, &body).await.expect_error(400, "input_validation_error", fields);
        }
        let mut null = start.with(json!({"idempotencyKey": key()}));
        null["maxCredits"] = Value::Null;
        setting.user.send(start.path, &null).await.expect_error(400, "input_validation_error", &["maxCredits"]);
        for right in [json!(CAP_MAX), json!(2.0)] {
            let body = start.with(json!({"validateOnly": true, "maxCredits": right}));
            setting.user.send(start.path, &body).await.expect(200);
        }
        let free = start.with(json!({"validateOnly": true, "maxCredits": 0}));
        setting.user.send(start.path, &free).await.expect(if start.price == 0 { 200 } else { 402 });
    }
}

#[tokio::test]
async fn what_is_no_start_needs_no_key_only_if_it_says_so() {
    let stack = &legacy().await;
    let setting = Setting::new(stack, 10).await;
    for start in setting.starts().await {
        let refuse = async |more: Value, fields: &[&str]| {
            let reply = setting.user.send(start.path, &start.with(more)).await;
            reply.expect_error(400, "input_validation_error", fields);
        };
        refuse(json!({}), &["idempotencyKey"]).await;
        refuse(json!({"validateOnly": false}), &["idempotencyKey"]).await;
        refuse(json!({"idempotencyKey": "short", "validateOnly": false}), &["idempotencyKey"]).await;
        refuse(json!({"idempotencyKey": key(), "validateOnly": "true"}), &["validateOnly"]).await;
        refuse(json!({"idempotencyKey": key(), "validateOnly": 1}), &["validateOnly"]).await;
        refuse(json!({"validateOnly": "true"}), &["validateOnly"]).await;
    }
}

#[tokio::test]
async fn a_cap_belongs_to_the_request_of_a_key() {
    let stack = &legacy().await;
    let setting = Setting::new(stack, 100).await;
    for path in setting.starts().await.into_iter().map(|start| start.path) {
        let start = setting.start(path).await;
        let key = key();
        let send = async |more: Value| {
            let mut body = start.with(json!({"idempotencyKey": key}));
            body.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
            setting.user.send(path, &body).await
        };
        send(json!({"maxCredits": 5})).await.expect(202);
        let balance = setting.balance().await;
        // A replay starts nothing; `false` is what a request without the member says.
        for more in [json!({"maxCredits": 5}), json!({"maxCredits": 5.0, "validateOnly": false})] {
            assert_eq!(send(more).await.expect(202).json()["replayed"], true, "{path}");
        }
        for more in [json!({}), json!({"maxCredits": 4}), json!({"maxCredits": 0})] {
            send(more).await.expect_error(409, "conflict", &[]);
        }
        assert_eq!(setting.balance().await, balance, "{path}");
    }
}

#[tokio::test]
async fn a_dry_run_counts_as_the_job_that_it_would_start() {
    let stack = &Stack::builder().env("CANVAS_ACTIVE_JOBS", 1).start().await;
    let setting = Setting::new(stack, 10).await;
    let start = setting.start("/images/generate").await;
    setting.quote(&start).await;
    setting
        .user
        .send("/videos/generate", &json!({"model": "animatic", "prompt": "A kite", "idempotencyKey": key()}))
        .await
        .expect(202);
    let trial = start.with(json!({"validateOnly": true}));
    setting.user.send(start.path, &trial).await.expect_error(429, "rate_limited", &[]);
}

const RECIPE: &str = "/recipes/ad-copy-and-banner";

async fn send(setting: &Setting, prefer: &str, path: &str, body: &Value) -> Reply {
    setting.user.post(path).header("prefer", prefer).body("application/json", body.to_string()).await
}

async fn revision(setting: &Setting) -> Value {
    setting.user.canvas(&setting.canvas).await["revision"].clone()
}

/// Asserts that a lenient start conflicts, and names these nodes.
async fn conflicts(setting: &Setting, path: &str, body: &Value, nodes: &[&str]) {
    let before = setting.user.canvas(&setting.canvas).await;
    let refused = send(setting, "handling=lenient", path, body).await.expect(409);
    assert_eq!(refused.header("preference-applied"), None);
    let details = &refused.json()["error"]["details"];
    let mut nodes = nodes.to_vec();
    nodes.sort_unstable();
    assert_eq!(
        (&details["currentRevision"], &details["changedNodeIds"]),
        (&before["revision"], &json!(nodes)),
        "{body}"
    );
    assert_eq!(setting.user.canvas(&setting.canvas).await, before);
}

#[tokio::test]
async fn every_start_accepts_a_stale_base_when_nothing_that_it_uses_changed() {
    let stack = &legacy().await;
    let setting = Setting::new(stack, 100).await;
    let mut starts: Vec<(String, Value, u16)> = Vec::new();
    for start in setting.starts().await.into_iter().filter(|start| start.path != "/videos/generate") {
        starts.push((start.path.to_owned(), start.with(json!({"idempotencyKey": key()})), 202));
    }
    let fork = json!({"canvasId": setting.canvas, "baseRevision": revision(&setting).await, "idempotencyKey": key()});
    starts.push((format!("{RECIPE}/fork"), fork, 201));
    setting.user.slot(&setting.canvas).await;
    // All of them are based on one revision, so that each is stale for the one before it as well.
    for (path, body, status) in starts {
        let refused = send(&setting, "handling=strict", &path, &body).await.expect(409).json();
        assert_eq!(refused["error"]["details"]["changedNodeIds"], json!([]), "{path}");
        if status == 202 {
            let mut trial = body.clone();
            trial["validateOnly"] = json!(true);
            let quote = send(&setting, "wait=1, handling=lenient", &path, &trial).await.expect(200);
            assert_eq!(quote.header("preference-applied"), Some("handling=lenient"), "{path}");
            send(&setting, "handling=strict", &path, &trial).await.expect_error(409, "conflict", &[]);
        }
        let reply = send(&setting, "handling=lenient", &path, &body).await.expect(status);
        assert_eq!(reply.header("preference-applied"), Some("handling=lenient"), "{path}");
        let replay = send(&setting, "handling=strict", &path, &body).await;
        assert_eq!((replay.status, replay.header("preference-applied")), (if status == 201 { 200 } else { 202 }, None));
        assert_eq!(replay.json()["replayed"], true, "{path}");
    }
}

#[tokio::test]
async fn a_start_whose_target_was_taken_since_is_a_conflict() {
    let stack = &legacy().await;
    let setting = Setting::new(stack, 100).await;
    let (user, canvas) = (&setting.user, setting.canvas.as_str());
    let target = user.slot(canvas).await;
    let base = revision(&setting).await;
    let action = json!({"canvasId": canvas, "baseRevision": base, "idempotencyKey": key(), "targetNodeId": target,
        "inputs": [setting.image], "params": {"width": 4}});
    send(&setting, "handling=lenient", "/actions/resize/runs", &action).await.expect(202);
    let image = json!({"canvasId": canvas, "baseRevision": base, "idempotencyKey": key(), "prompt": "A chair"});
    let mut one = image.clone();
    one["targetNodeId"] = json!(target);
    conflicts(&setting, "/images/generate", &one, &[&target]).await;
    let mut several = image;
    several["targetNodeIds"] = json!([user.slot(canvas).await, target]);
    // The first target did not exist at the base revision.
    let new = text(&several, "/targetNodeIds/0").to_owned();
    conflicts(&setting, "/images/generate", &several, &[&target, &new]).await;
    let mut again = action;
    again["idempotencyKey"] = json!(key());
    conflicts(&setting, "/actions/resize/runs", &again, &[&target]).await;
}

#[tokio::test]
async fn a_start_conflicts_with_a_change_of_what_it_uses() {
    let stack = &legacy().await;
    let setting = Setting::new(stack, 100).await;
    let (user, canvas) = (&setting.user, setting.canvas.as_str());
    user.upload_into(canvas, "image/png", images::png(8, 8)).await;
    let image = text(&user.canvas(canvas).await, "/nodes/0/id").to_owned();
    let prompt =
        json!([{"type": "node.create", "clientId": "p", "node": {"type": "text", "metadata": {"content": "A chair"}}}]);
    let prompt = text(&user.apply(canvas, prompt).await, "/resolvedIds/p").to_owned();
    let handle = format!("node:{image}");
    let retitle = |node: &str| json!({"type": "node.update", "nodeId": node, "patch": {"title": key()}});
    let link = |to: &str| json!({"type": "connection.create", "clientId": "l", "fromNodeId": image, "toNodeId": to, "purpose": "reference"});
    for (path, uses, changed) in [
        ("/actions/resize/runs", json!({"inputs": [handle], "params": {"width": 4}}), Some(&image)),
        ("/actions/resize/runs", json!({"inputs": [setting.image], "params": {"width": 4}}), None),
        ("/images/generate", json!({"promptNodeId": prompt}), Some(&prompt)),
        ("/images/generate", json!({"prompt": "A chair", "references": [handle]}), Some(&image)),
        ("/images/edit", json!({"prompt": "A chair", "source": handle}), Some(&image)),
        ("/images/variations", json!({"references": [{"handle": handle}]}), Some(&image)),
        ("/images/variations", json!({"references": [setting.image]}), None),
    ] {
        let target = user.slot(canvas).await;
        let mut body = json!({"canvasId": canvas, "baseRevision": revision(&setting).await, "idempotencyKey": key(), "targetNodeId": target});
        body.as_object_mut().expect("an object").extend(uses.as_object().expect("an object").clone());
        user.apply(canvas, json!([retitle(&image), retitle(&prompt)])).await;
        match changed {
            Some(node) => conflicts(&setting, path, &body, &[node]).await,
            None => drop(send(&setting, "handling=lenient", path, &body).await.expect(202)),
        }
    }
    // Reference connections count where the request names no references.
    for (is_linked, names_references, change, conflict) in [
        (true, false, "link", true),
        (true, false, "unlink", true),
        (true, false, "source", true),
        (false, false, "link", true),
        (true, true, "unlink", false),
        (false, false, "other", false),
    ] {
        let target = user.slot(canvas).await;
        let made = match is_linked {
            true => user.apply(canvas, json!([link(&target)])).await,
            false => json!(null),
        };
        let mut body = json!({"canvasId": canvas, "baseRevision": revision(&setting).await, "idempotencyKey": key(),
            "targetNodeId": target, "prompt": "A chair"});
        if names_references {
            body["references"] = json!([setting.image]);
        }
        let other = user.slot(canvas).await;
        body["baseRevision"] = revision(&setting).await;
        let (operation, named) = match (change, is_linked) {
            ("link", false) => (link(&target), vec![target.as_str()]),
            ("link", true) => {
                (json!({"type": "connection.create", "fromNodeId": prompt, "toNodeId": target}), vec![target.as_str()])
            }
            ("unlink", _) => {
                (json!({"type": "connection.delete", "connectionId": made["resolvedIds"]["l"]}), vec![target.as_str()])
            }
            ("source", _) => (retitle(&image), vec![image.as_str()]),
            _ => (link(&other), vec![]),
        };
        user.apply(canvas, json!([operation])).await;
        match conflict {
            true => conflicts(&setting, "/images/generate", &body, &named).await,
            false => drop(send(&setting, "handling=lenient", "/images/generate", &body).await.expect(202)),
        }
    }
}

#[tokio::test]
async fn a_run_conflicts_with_a_change_of_its_instance() {
    let stack = &legacy().await;
    let setting = Setting::new(stack, 100).await;
    let (user, canvas) = (&setting.user, setting.canvas.as_str());
    let source =
        json!([{"type": "node.create", "clientId": "t", "node": {"type": "text", "metadata": {"content": "Chairs"}}}]);
    let source = text(&user.apply(canvas, source).await, "/resolvedIds/t").to_owned();
    let fork = json!({"canvasId": canvas, "baseRevision": revision(&setting).await, "idempotencyKey": key()});
    let fork = user.send(&format!("{RECIPE}/fork"), &fork).await.expect(201).json();
    let nodes = fork["canvas"]["nodes"].as_array().expect("nodes").clone();
    let port = |role: &str, key: &str| {
        let is_it = |node: &&Value| {
            let note = &node["metadata"]["recipe"];
            note["role"] == role && (key.is_empty() || note["key"] == key)
        };
        text(nodes.iter().find(is_it).unwrap_or_else(|| panic!("a port {role} {key}: {nodes:?}")), "/id").to_owned()
    };
    let (instance, offer, output) = (port("instance", ""), port("input", "offer"), port("output", ""));
    let link = json!({"type": "connection.create", "clientId": "l", "fromNodeId": source, "toNodeId": offer});
    let link = user.apply(canvas, json!([link])).await["resolvedIds"]["l"].clone();
    let retitle = |node: &str| json!({"type": "node.update", "nodeId": node, "patch": {"title": key()}});
    let path = format!("{RECIPE}/runs");
    let inputs = |offer: Value| json!({"product": setting.image, "offer": offer});
    for (change, uses, named) in [
        (retitle(&instance), json!({"instanceNodeId": instance, "inputs": inputs(json!("Chairs"))}), vec![&instance]),
        (retitle(&offer), json!({"instanceNodeId": instance, "inputs": inputs(json!("Chairs"))}), vec![&offer]),
        (retitle(&output), json!({"instanceNodeId": instance, "inputs": inputs(json!("Chairs"))}), vec![&output]),
        (retitle(&source), json!({"instanceNodeId": instance, "inputs": {"product": setting.image}}), vec![&source]),
        (
            json!({"type": "connection.update", "connectionId": link, "purpose": "list"}),
            json!({"instanceNodeId": instance, "inputs": {"product": setting.image}}),
            vec![&offer, &source],
        ),
        (retitle(&source), json!({"inputs": inputs(json!(format!("node:{source}")))}), vec![&source]),
    ] {
        let mut body = json!({"canvasId": canvas, "baseRevision": revision(&setting).await, "idempotencyKey": key()});
        body.as_object_mut().expect("an object").extend(uses.as_object().expect("an object").clone());
        user.apply(canvas, json!([change])).await;
        let named: Vec<&str> = named.into_iter().map(String::as_str).collect();
        conflicts(&setting, &path, &body, &named).await;
    }
    // A new instance depends on no other.
    let body = json!({"canvasId": canvas, "baseRevision": revision(&setting).await, "idempotencyKey": key(), "inputs": inputs(json!("Chairs"))});
    user.apply(canvas, json!([retitle(&instance), retitle(&source)])).await;
    let reply = send(&setting, "handling=lenient", &path, &body).await.expect(202);
    assert_eq!(reply.header("preference-applied"), Some("handling=lenient"));
}
