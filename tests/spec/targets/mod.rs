//! Starts that add their targets, and connections into targets (docs/reference/jobs.md#new-targets).

mod fit;
mod refused;

use std::time::Duration;

use e2e::api::{key, text};
use e2e::{PATIENCE, Part, Reply, Stack, User, images};
use serde_json::{Value, json};

/// Left, top, width and height of a node.
type Sides = [f64; 4];

/// An account with credits, and a canvas that shows an image at the origin.
struct Setting {
    user: User,
    canvas: String,
    /// Handle of the node that shows the image.
    photo: String,
    /// Handle of the image.
    asset: String,
}

impl Setting {
    async fn new(stack: &Stack) -> Self {
        let user = stack.user().await;
        stack.grant(&user.uid, 100).await;
        let canvas = text(&user.make_canvas().await, "/id").to_owned();
        let asset = user.upload_into(&canvas, "image/png", images::png(64, 48)).await;
        let (photo, asset) = (text(&asset, "/node").to_owned(), text(&asset, "/handle").to_owned());
        Self { user, canvas, photo, asset }
    }

    async fn now(&self) -> Value {
        self.user.canvas(&self.canvas).await
    }

    /// A request for the present revision and under a new key; `more` replaces members, `null` removes one.
    async fn request(&self, base: Value, more: Value) -> Value {
        let mut request = json!({"canvasId": self.canvas, "baseRevision": self.now().await["revision"],
            "idempotencyKey": key()});
        for (field, value) in [base, more].iter().flat_map(|members| members.as_object().expect("an object")) {
            match value {
                Value::Null => drop(request.as_object_mut().expect("an object").remove(field)),
                value => request[field] = value.clone(),
            }
        }
        request
    }

    /// A start of a resize of the image, into a target near it.
    async fn resize(&self, more: Value) -> Reply {
        let base = json!({"inputs": [self.photo], "params": {"width": 32}, "place": {"near": self.photo}});
        self.user.send("/actions/resize/runs", &self.request(base, more).await).await
    }

    /// A start of image generation, into a target near the image.
    async fn image(&self, operation: &str, more: Value) -> Reply {
        let base = json!({"prompt": "A kite", "place": {"near": self.photo}});
        self.user.send(&format!("/images/{operation}"), &self.request(base, more).await).await
    }

    async fn apply(&self, operations: Value) -> Value {
        self.user.apply(&self.canvas, operations).await
    }

    /// Adds a node and returns its id.
    async fn node(&self, node: Value) -> String {
        let made = self.apply(json!([{"type": "node.create", "clientId": "made", "node": node}])).await;
        text(&made, "/resolvedIds/made").to_owned()
    }

    async fn section(&self, [x, y, width, height]: Sides) -> String {
        let position = json!({"x": x, "y": y});
        self.node(json!({"type": "sticky", "position": position, "width": width, "height": height,
            "metadata": {"section": true}}))
            .await
    }
}

/// The node of this id or handle.
fn node<'a>(canvas: &'a Value, id: &str) -> &'a Value {
    let id = id.trim_start_matches("node:");
    let nodes = canvas["nodes"].as_array().expect("nodes");
    nodes.iter().find(|node| node["id"] == id).unwrap_or_else(|| panic!("{id} is not there"))
}

fn sides(node: &Value) -> Sides {
    ["/position/x", "/position/y", "/width", "/height"]
        .map(|at| node.pointer(at).and_then(Value::as_f64).expect("a side"))
}

/// Handles of the targets of a job.
fn targets_of(job: &Value) -> Vec<String> {
    job["targets"].as_array().expect("targets").iter().map(|target| target.as_str().expect("a handle").into()).collect()
}

/// The connections into a node: from which handle, with which purpose and role.
fn into(canvas: &Value, to: &str) -> Vec<(String, String, Value)> {
    let all = canvas["connections"].as_array().expect("connections").iter();
    let into = all.filter(|connection| connection["to"] == to);
    into.map(|it| (text(it, "/from").to_owned(), text(it, "/purpose").to_owned(), it["role"].clone())).collect()
}

fn flow(from: &str) -> (String, String, Value) {
    (from.to_owned(), "flow".to_owned(), Value::Null)
}

fn overlap(a: Sides, b: Sides) -> bool {
    a[0] < b[0] + b[2] && b[0] < a[0] + a[2] && a[1] < b[1] + b[3] && b[1] < a[1] + a[3]
}

/// Asserts that no two nodes other than Sections overlap.
fn is_clear(canvas: &Value) {
    let nodes = canvas["nodes"].as_array().expect("nodes").iter();
    let frames: Vec<Sides> = nodes.filter(|node| node["metadata"]["section"] != true).map(sides).collect();
    for (at, a) in frames.iter().enumerate() {
        assert!(frames[at + 1..].iter().all(|b| !overlap(*a, *b)), "{frames:?}");
    }
}

#[tokio::test]
async fn actions_are_chained_without_a_scratch_node() {
    let stack = &Stack::with_workers().await;
    let setting = Setting::new(stack).await;
    let before = setting.now().await;
    let job = setting.resize(json!({"place": {"near": setting.photo, "title": "Small"}})).await.expect(202).json();
    let small = targets_of(&job).remove(0);
    // One revision, whose activity names the new node. By now the job may have ended, which is another one.
    let changes = format!("/canvases/{}/changes?since={}", setting.canvas, text(&before, "/revision"));
    let changes = setting.user.get(&changes).await.ok();
    let started = changes["activity"].as_array().and_then(|activity| activity.last()).expect("an entry");
    let id = small.trim_start_matches("node:");
    assert_eq!((&started["type"], &started["nodeIds"]), (&json!("job.started"), &json!([id])), "{changes}");
    assert_eq!(started["revision"], job["canvasRevision"]);
    assert_eq!(changes["changedNodeIds"], json!([id]));
    assert_eq!(changes["changedConnectionIds"].as_array().map(Vec::len), Some(1));
    let read = setting.now().await;
    let shown = node(&read, &small);
    assert_eq!(
        (&shown["title"], &shown["type"], &shown["metadata"]["job"]["id"]),
        (&json!("Small"), &json!("image"), &job["id"])
    );
    assert_eq!(into(&read, &small), [flow(&setting.photo)]);
    assert_eq!(setting.user.finished(&job).await["status"], "succeeded");
    let crop = json!({"inputs": [small], "params": {"width": 10, "height": 20}, "place": {"near": small}});
    let job = setting.user.send("/actions/crop/runs", &setting.request(crop, json!({})).await).await.expect(202).json();
    let cut = targets_of(&job).remove(0);
    let done = setting.user.finished(&job).await;
    assert_eq!((&done["status"], &done["images"][0]["nodeId"]), (&json!("succeeded"), &json!(cut)));
    let now = setting.now().await;
    assert_eq!(into(&now, &cut), [flow(&small)]);
    assert_eq!(node(&now, &cut)["asset"], done["images"][0]["assetId"]);
    assert_eq!(node(&now, &cut)["metadata"]["provenance"]["references"], json!([{"handle": small}]));
    is_clear(&now);
    let review = setting.user.get(&format!("/canvases/{}/review", setting.canvas)).await.ok();
    assert_eq!(review["validation"]["findings"], json!([]));
}

#[tokio::test]
async fn four_variations_are_made_by_one_call() {
    let stack = &Stack::with_workers().await;
    let setting = Setting::new(stack).await;
    let more = json!({"prompt": null, "source": setting.photo, "place": {"near": setting.photo, "count": 4}});
    let job = setting.image("variations", more).await.expect(202).json();
    let made = targets_of(&job);
    assert_eq!((made.len(), &job["creditCost"]), (4, &json!(4)));
    let done = setting.user.finished(&job).await;
    assert_eq!((&done["status"], done["images"].as_array().map(Vec::len)), (&json!("succeeded"), Some(4)));
    let now = setting.now().await;
    let [left, _, width, _] = sides(node(&now, &setting.photo));
    let column: Vec<f64> = made.iter().map(|target| sides(node(&now, target))[0]).collect();
    assert_eq!(column, [left + width + 120.0; 4], "a column to the right of the image");
    for target in &made {
        assert!(node(&now, target)["asset"].is_string());
        assert_eq!(into(&now, target), [flow(&setting.photo)]);
    }
    is_clear(&now);
    // The `count` of the start says the same.
    let more = json!({"prompt": null, "source": setting.photo, "place": {"near": made[3]}, "count": 2});
    assert_eq!(targets_of(&setting.image("variations", more).await.expect(202).json()).len(), 2);
}

#[tokio::test]
async fn references_are_connected_with_their_roles() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack).await;
    let other = setting.user.upload_into(&setting.canvas, "image/png", images::png(8, 8)).await;
    let references = json!([{"handle": setting.photo, "role": "style"}, setting.asset, text(&other, "/node")]);
    let job = setting.image("generate", json!({"references": references})).await.expect(202).json();
    let target = targets_of(&job).remove(0);
    let reference = |from: &str, role: Value| (from.to_owned(), "reference".to_owned(), role);
    let expected = [reference(&setting.photo, json!("style")), reference(text(&other, "/node"), Value::Null)];
    assert_eq!(into(&setting.now().await, &target), expected, "none for the asset");
    assert_eq!(job["referenceInputs"].as_array().map(Vec::len), Some(3));
    let more = json!({"references": references, "connect": false});
    let target = targets_of(&setting.image("generate", more).await.expect(202).json()).remove(0);
    assert!(into(&setting.now().await, &target).is_empty());
    // A new target has no connections that could supply references.
    setting.image("edit", json!({})).await.expect_error(422, "unprocessable_entity", &["references"]);
}

#[tokio::test]
async fn targets_have_the_shape_of_their_results() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack).await;
    let shape = async |reply: Reply| {
        let [_, _, width, height] = sides(node(&setting.now().await, &targets_of(&reply.expect(202).json())[0]));
        width / height
    };
    let tall = json!({"params": {"width": 20, "height": 40, "fit": "fill"}});
    let shapes = [
        shape(setting.resize(tall).await).await,
        // The first size of the model is a square.
        shape(setting.image("generate", json!({"model": "sketch"})).await).await,
        // That of the image, 64 × 48.
        shape(setting.resize(json!({})).await).await,
        shape(setting.image("generate", json!({"size": "1920x1080", "model": "sketch"})).await).await,
    ];
    assert!(shapes.is_sorted_by(|a, b| a < b), "{shapes:?}");
}

#[tokio::test]
async fn targets_belong_to_a_section_that_grows() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack).await;
    let section = setting.section([0.0, 1000.0, 760.0, 456.0]).await;
    let below = setting.node(json!({"type": "text", "position": {"x": 0, "y": 2300}})).await;
    let place = json!({"sectionId": format!("node:{section}"), "count": 4});
    let job = setting.image("generate", json!({"place": place})).await.expect(202).json();
    let now = setting.now().await;
    let frame = sides(node(&now, &section));
    assert_eq!(frame[..2], [0.0, 1000.0]);
    assert!(frame[2] > 760.0 && !overlap(frame, sides(node(&now, &below))), "{frame:?}");
    for target in targets_of(&job) {
        let target = node(&now, &target);
        assert_eq!(target["metadata"]["sectionId"], section.as_str());
        let [x, y, width, height] = sides(target);
        let inside =
            x > frame[0] && y > frame[1] && x + width < frame[0] + frame[2] && y + height < frame[1] + frame[3];
        assert!(inside, "{target} {frame:?}");
    }
    is_clear(&now);
    let changes = format!("/canvases/{}/changes?since={}", setting.canvas, text(&now, "/revision"));
    assert_eq!(setting.user.get(&changes).await.ok()["changedNodeIds"], json!([]));
    // Enclosed, it cannot grow any further: an agent's moves with its members.
    for (x, y) in [(frame[2] + 40.0, 1000.0), (0.0, frame[1] + frame[3] + 40.0), (-360.0, 1000.0), (0.0, 800.0)] {
        setting.node(json!({"type": "text", "position": {"x": x, "y": y}})).await;
    }
    let place = json!({"sectionId": section, "count": 4});
    setting.image("generate", json!({"place": place})).await.expect(202);
    let now = setting.now().await;
    assert_ne!(sides(node(&now, &section))[..2], frame[..2]);
    is_clear(&now);
    // A user's stays: the start is refused, and nothing is written.
    let account = e2e::Account { uid: setting.user.uid.clone(), email: format!("{}@example.com", setting.user.uid) };
    let person = stack.user_by(&account, "all", "browser").await;
    let [x, y] = [90_000, 0];
    let around = [(0, -200), (440, 0), (0, 440), (-360, 0)].map(
        |(dx, dy)| json!({"type": "node.create", "node": {"type": "text", "position": {"x": x + dx, "y": y + dy}}}),
    );
    let own = json!({"type": "sticky", "position": {"x": x, "y": y}, "width": 400, "height": 400, "metadata": {"section": true}});
    let made = person.apply(&setting.canvas, json!([{"type": "node.create", "clientId": "own", "node": own}])).await;
    setting.apply(json!(around)).await;
    let before = setting.now().await;
    let place = json!({"sectionId": text(&made, "/resolvedIds/own"), "count": 2});
    let refused = setting.image("generate", json!({"place": place})).await;
    refused.expect_error(422, "unprocessable_entity", &["place.sectionId"]);
    assert_eq!(setting.now().await, before);
}

#[tokio::test]
async fn a_wanted_position_is_taken_or_the_nearest_free_one() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack).await;
    let placed = async |y: f64| {
        let job = setting.resize(json!({"place": {"x": 5000, "y": y}})).await.expect(202).json();
        sides(node(&setting.now().await, &targets_of(&job)[0]))
    };
    let [x, y, _, height] = placed(-300.5).await;
    assert_eq!([x, y], [5000.0, -300.5]);
    let [x, y, _, _] = placed(-310.5).await;
    assert_eq!([x, y], [5000.0, -300.5 - 40.0 - height], "above it");
    is_clear(&setting.now().await);
}

#[tokio::test]
async fn a_dry_run_shows_the_places_that_the_start_then_takes() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack).await;
    let section = setting.section([0.0, 1000.0, 400.0, 400.0]).await;
    let before = setting.now().await;
    let place = json!({"sectionId": section, "count": 2, "title": "Kite"});
    let trial = json!({"place": place, "validateOnly": true, "idempotencyKey": null});
    let quote = setting.image("generate", trial.clone()).await.ok();
    assert_eq!((&quote["targets"], &quote["creditCost"]), (&json!([]), &json!(2)));
    let again = setting.image("generate", trial).await.ok();
    assert_eq!(again["newTargets"], quote["newTargets"], "the same again");
    assert_eq!(setting.now().await, before, "nothing is written");
    let job = setting.image("generate", json!({"place": place})).await.expect(202).json();
    let now = setting.now().await;
    let made = targets_of(&job).into_iter().map(|target| {
        let node = node(&now, &target);
        let mut shown = json!({"sectionId": section});
        for member in ["type", "title", "position", "width", "height"] {
            shown[member] = node[member].clone();
        }
        shown
    });
    assert_eq!(quote["newTargets"], made.collect::<Value>());
    // The photo is called as every upload without a name, which says nothing about the result.
    assert_eq!(text(node(&now, &setting.photo), "/title"), "upload.png");
    let action = setting.resize(json!({"validateOnly": true, "idempotencyKey": null})).await.ok();
    assert_eq!((&action["creditCost"], &action["newTargets"][0]["title"]), (&json!(0), &json!("image 1")));
    assert!(action["newTargets"][0].get("sectionId").is_none());
}

#[tokio::test]
async fn an_equal_start_is_replayed_and_adds_nothing() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack).await;
    let request = setting
        .request(json!({"prompt": "A kite", "source": setting.photo, "place": {"near": setting.photo}}), json!({}))
        .await;
    let send = async |more: Value| {
        let mut body = request.clone();
        body.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
        setting.user.send("/images/generate", &body).await
    };
    let job = send(json!({})).await.expect(202).json();
    let now = setting.now().await;
    let plain = setting.photo.trim_start_matches("node:");
    for equal in [json!({}), json!({"place": {"near": plain, "count": 1}, "connect": true}), json!({"count": 1})] {
        let again = send(equal).await.expect(202).json();
        assert_eq!((&again["replayed"], &again["targets"]), (&json!(true), &job["targets"]));
    }
    for other in [json!({"place": {}}), json!({"connect": false}), json!({"place": {"near": plain, "title": "T"}})] {
        send(other).await.expect_error(409, "conflict", &[]);
    }
    assert_eq!(setting.now().await["nodes"].as_array().map(Vec::len), now["nodes"].as_array().map(Vec::len));
}

#[tokio::test]
async fn of_two_starts_at_once_one_is_accepted() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack).await;
    let other = setting.user.at(stack, 1);
    let base = json!({"inputs": [setting.photo], "params": {"width": 32}, "place": {"near": setting.photo}});
    let (first, second) = (setting.request(base.clone(), json!({})).await, setting.request(base, json!({})).await);
    let path = "/actions/resize/runs";
    let (a, b) =
        tokio::join!(async { setting.user.send(path, &first).await }, async { other.send(path, &second).await });
    let mut statuses = [a.status, b.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [202, 409]);
    let loser = if a.status == 409 { first } else { second };
    let mut again = loser;
    again["baseRevision"] = setting.now().await["revision"].clone();
    setting.user.send(path, &again).await.expect(202);
    let now = setting.now().await;
    assert_eq!(now["nodes"].as_array().map(Vec::len), Some(3));
    is_clear(&now);
}

#[tokio::test]
async fn targets_that_exist_are_connected_on_request_and_once() {
    let stack = &Stack::with_workers().await;
    let setting = Setting::new(stack).await;
    let target = setting.user.slot(&setting.canvas).await;
    let handle = format!("node:{target}");
    let into_target = json!({"place": null, "targetNodeId": target});
    let job = setting.resize(into_target.clone()).await.expect(202).json();
    assert!(into(&setting.now().await, &handle).is_empty(), "not by default");
    setting.user.finished(&job).await;
    let references = json!([{"handle": setting.photo, "role": "fit"}]);
    let mut connected = into_target.clone();
    connected["connect"] = json!(true);
    connected["references"] = references;
    for _ in 0..2 {
        let job = setting.image("generate", connected.clone()).await.expect(202).json();
        let expected = (setting.photo.clone(), "reference".to_owned(), json!("fit"));
        assert_eq!(into(&setting.now().await, &handle), [expected]);
        setting.user.finished(&job).await;
    }
    // An image that is varied in its own node is not connected to itself.
    let mut itself = into_target;
    itself["connect"] = json!(true);
    itself["source"] = json!(handle);
    setting.image("edit", itself).await.expect(202);
    assert_eq!(into(&setting.now().await, &handle).len(), 1);
}

#[tokio::test]
async fn new_targets_are_owned_by_who_starts() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack).await;
    let account = e2e::Account { uid: setting.user.uid.clone(), email: format!("{}@example.com", setting.user.uid) };
    for surface in ["api", "browser", "cli"] {
        let user = stack.user_by(&account, "all", surface).await;
        let base = json!({"inputs": [setting.photo], "params": {"width": 32}, "place": {}});
        let job = user.send("/actions/resize/runs", &setting.request(base, json!({})).await).await.expect(202).json();
        let owner = node(&setting.now().await, &targets_of(&job)[0])["metadata"]["createdBy"].clone();
        // As of a node that an operation creates.
        let made =
            user.apply(&setting.canvas, json!([{"type": "node.create", "clientId": "n", "node": {"type": "text"}}]));
        let made = made.await;
        let expected = &node(&made["canvas"], text(&made, "/resolvedIds/n"))["metadata"]["createdBy"];
        assert_eq!(owner, *expected, "{surface}");
    }
}

#[tokio::test]
async fn a_start_that_waits_for_its_canvas_delays_no_other_canvas() {
    let stack = &Stack::builder().gateways(2).start().await;
    let setting = Setting::new(stack).await;
    let other = text(&setting.user.make_canvas().await, "/id").to_owned();
    let slot = setting.user.slot(&setting.canvas).await;
    let first = setting.user.resize_request(&setting.canvas, &slot, &setting.asset).await;
    // So large that the memory for graphs suffices for one of the two canvases at a time.
    let large = sqlx::query("UPDATE canvases SET graph_bytes = 60000000 WHERE owner_uid = $1").bind(&setting.user.uid);
    large.execute(stack.pool()).await.expect("writes");
    let mut holder = stack.pool().begin().await.expect("begins");
    let lock = sqlx::query("SELECT FROM canvases WHERE owner_uid = $1 AND id = $2 FOR UPDATE");
    lock.bind(&setting.user.uid).bind(&setting.canvas).execute(&mut *holder).await.expect("locks");
    let reading = async {
        // Both starts are at their canvas by then, the second behind the first.
        tokio::time::sleep(Duration::from_secs(1)).await;
        // A read that waits for the starts ends with them, after ten seconds. On two busy cores it takes some seconds anyway.
        let read = tokio::time::timeout(Duration::from_secs(6), setting.user.canvas(&other));
        read.await.expect("the other canvas is read at once");
        holder.rollback().await.expect("rolls back");
    };
    let first = async { setting.user.send("/actions/resize/runs", &first).await };
    let second = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        setting.resize(json!({})).await
    };
    // On a slow machine, the starts may give up the wait for the canvas.
    let _ = tokio::join!(first, second, reading);
}

#[tokio::test]
async fn a_start_that_dies_leaves_nothing_behind() {
    let stack = &Stack::builder().start().await;
    let setting = Setting::new(stack).await;
    let request =
        setting.request(json!({"prompt": "A kite", "source": setting.photo, "place": {"count": 4}}), json!({})).await;
    // The start has written its nodes when it waits to record the change.
    let mut writer = stack.pool().begin().await.expect("begins");
    sqlx::query("LOCK TABLE canvas_changes IN ACCESS EXCLUSIVE MODE").execute(&mut *writer).await.expect("locks");
    let call = setting.user.send("/images/generate", &request);
    let sent = tokio::spawn(async move { call.attempt().await.is_err() });
    let waits = "SELECT count(*) FROM pg_locks
                 WHERE relation = 'canvas_changes'::regclass AND NOT granted
                       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    testkit::wait_for("the start to wait", PATIENCE, async || (stack.count(waits).await > 0).then_some(())).await;
    stack.kill(Part::GATEWAY);
    assert!(sent.await.expect("ends"), "the connection breaks");
    writer.rollback().await.expect("rolls back");
    stack.restart(Part::GATEWAY).await;
    let now = setting.now().await;
    assert_eq!((now["nodes"].as_array().map(Vec::len), &now["connections"]), (Some(1), &json!([])));
    assert_eq!(now["revision"], request["baseRevision"]);
    assert_eq!(stack.count("SELECT count(*) FROM jobs").await, 0);
    // The key was not taken.
    let job = setting.user.send("/images/generate", &request).await.expect(202).json();
    assert!(job.get("replayed").is_none() && targets_of(&job).len() == 4, "{job}");
}
