//! What all starts of work share: the cap on their price, and dry runs (docs/reference/jobs.md#spending-cap). No worker runs.

use e2e::api::{key, text};
use e2e::{Stack, User, pictures, suite};
use serde_json::{Value, json};

suite! {
    starts on Stack::builder().env("CANVAS_LEGACY_CAMPAIGNS", 1);
    a_dry_run_quotes_what_the_start_then_does,
    a_dry_run_writes_nothing_and_waits_for_nobody,
    a_dry_run_needs_no_key_and_ignores_one,
    a_dry_run_is_refused_as_the_start_is,
    a_dry_run_needs_the_scopes_and_the_role_of_the_start,
    a_price_over_the_cap_is_402_and_reserves_nothing,
    a_price_over_the_balance_is_402_and_named,
    a_quote_names_nodes_that_exist,
    a_cap_is_a_whole_number_from_0,
    what_is_no_start_needs_no_key_only_if_it_says_so,
    a_cap_belongs_to_the_request_of_a_key,
}

suite! {
    starts_capped on Stack::builder().env("CANVAS_ACTIVE_JOBS", 1);
    a_dry_run_counts_as_the_job_that_it_would_start,
}

/// The largest cap.
const CAP_MAX: i64 = 9_007_199_254_740_991;

/// An account with credits, a canvas and a picture.
pub(crate) struct Setting {
    pub(crate) user: User,
    pub(crate) canvas: String,
    pub(crate) picture: String,
}

/// A start that is valid now: its path, and its body without a key.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    pub(crate) path: &'static str,
    body: Value,
    price: i64,
    targets: Value,
}

impl Start {
    /// The body with other members; `null` removes one.
    pub(crate) fn with(&self, more: Value) -> Value {
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
    pub(crate) async fn of(stack: &Stack, credits: i64) -> Self {
        let user = stack.user().await;
        if credits > 0 {
            stack.grant(&user.uid, credits).await;
        }
        let canvas = text(&user.make_canvas().await, "/id").to_owned();
        let picture = text(&user.upload("image/png", pictures::png(8, 8)).await, "/handle").to_owned();
        Self { user, canvas, picture }
    }

    /// Every kind of start, for new targets and the present revision.
    pub(crate) async fn starts(&self) -> Vec<Start> {
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
                on(json!({"targetNodeId": slots[2], "prompt": "A chair", "source": self.picture, "model": "sketch"})),
            ),
            start(
                "/images/variations",
                1,
                json!([node(3)]),
                on(json!({"targetNodeId": slots[3], "references": [self.picture]})),
            ),
            start("/videos/generate", 1, json!([]), json!({"model": "animatic", "prompt": "A kite"})),
            start(
                "/recipes/ad-copy-and-banner/runs",
                1,
                json!([]),
                on(json!({"inputs": {"product": self.picture, "offer": "Chairs"}})),
            ),
            start(
                "/actions/resize/runs",
                0,
                json!([node(4)]),
                on(json!({"targetNodeId": slots[4], "inputs": [self.picture], "params": {"width": 4}})),
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

async fn a_dry_run_quotes_what_the_start_then_does(stack: &Stack) {
    let setting = Setting::of(stack, 100).await;
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

async fn a_dry_run_writes_nothing_and_waits_for_nobody(stack: &Stack) {
    let setting = Setting::of(stack, 100).await;
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

async fn a_dry_run_needs_no_key_and_ignores_one(stack: &Stack) {
    let setting = Setting::of(stack, 100).await;
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

async fn a_dry_run_is_refused_as_the_start_is(stack: &Stack) {
    let setting = Setting::of(stack, 100).await;
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
    let request = setting.user.resize_request(&setting.canvas, &taken, &setting.picture).await;
    setting.user.send("/actions/resize/runs", &request).await.expect(202);
    for start in setting.starts().await.iter().filter(|start| start.targets != json!([])) {
        let mut more = target(start, &taken);
        more["validateOnly"] = json!(true);
        setting.user.send(start.path, &start.with(more)).await.expect_error(409, "conflict", &[]);
    }
}

async fn a_dry_run_needs_the_scopes_and_the_role_of_the_start(stack: &Stack) {
    let setting = Setting::of(stack, 100).await;
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

async fn a_price_over_the_cap_is_402_and_reserves_nothing(stack: &Stack) {
    let setting = Setting::of(stack, 100).await;
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

async fn a_price_over_the_balance_is_402_and_named(stack: &Stack) {
    let (poor, free) = (Setting::of(stack, 1).await, Setting::of(stack, 0).await);
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

async fn a_quote_names_nodes_that_exist(stack: &Stack) {
    let setting = Setting::of(stack, 10).await;
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

async fn a_cap_is_a_whole_number_from_0(stack: &Stack) {
    let setting = Setting::of(stack, 10).await;
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

async fn what_is_no_start_needs_no_key_only_if_it_says_so(stack: &Stack) {
    let setting = Setting::of(stack, 10).await;
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

async fn a_cap_belongs_to_the_request_of_a_key(stack: &Stack) {
    let setting = Setting::of(stack, 100).await;
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

async fn a_dry_run_counts_as_the_job_that_it_would_start(stack: &Stack) {
    let setting = Setting::of(stack, 10).await;
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
