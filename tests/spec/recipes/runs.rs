//! Recipe runs (docs/reference/recipes.md#run-a-recipe).

use serde_json::Value;
use testkit::providers::{SIMULATOR_KEY, Simulator, Vendor};

use super::catalogue::{file, publish};
use super::*;
use crate::jobs::events;

/// Makes a text and then an image from it.
const RECIPE: &str = "ad-copy-and-banner";
pub(super) const SECRET: &str = "a secret of the caller's own, long enough";

/// An account with credits, its canvas and an image.
pub(super) struct Setting {
    pub(super) user: User,
    pub(super) canvas: Value,
    pub(super) image: String,
}

impl Setting {
    pub(super) async fn new(stack: &Stack, credits: i64) -> Self {
        let user = stack.user().await;
        if credits > 0 {
            stack.grant(&user.uid, credits).await;
        }
        let canvas = user.make_canvas().await;
        let image = text(&user.upload("image/png", images::png(8, 8)).await, "/handle").to_owned();
        Self { user, canvas, image }
    }

    pub(super) async fn now(&self) -> Value {
        self.user.canvas(text(&self.canvas, "/handle")).await
    }

    /// A request for the current revision of the canvas. `more` is merged into it.
    async fn request(&self, more: Value) -> Value {
        let inputs = json!({"product": self.image, "offer": "Chairs, a fifth off until Sunday."});
        let body = json!({
            "canvasId": self.canvas["id"], "baseRevision": self.now().await["revision"], "idempotencyKey": key(),
            "inputs": inputs,
        });
        with(body, more)
    }

    async fn send(&self, request: &Value) -> Reply {
        self.send_to(RECIPE, request).await
    }

    async fn send_to(&self, recipe: &str, request: &Value) -> Reply {
        self.user.send(&format!("/recipes/{recipe}/runs"), request).await
    }

    pub(super) async fn start(&self, more: Value) -> Reply {
        self.send(&self.request(more).await).await
    }

    /// Starts a run of another Recipe. `more` has its inputs.
    pub(super) async fn start_of(&self, recipe: &str, more: Value) -> Reply {
        self.send_to(recipe, &self.request(more).await).await
    }

    async fn refused(&self, more: Value, fields: &[&str]) {
        let before = self.now().await;
        self.start(more).await.expect_error(422, "unprocessable_entity", fields);
        assert_eq!(self.now().await, before, "nothing was written");
    }

    pub(super) async fn balance(&self) -> i64 {
        self.user.get("/auth/status").await.ok()["creditBalance"].as_i64().expect("a balance")
    }
}

pub(super) fn statuses(run: &Value) -> Vec<&str> {
    run["outputs"].as_array().expect("outputs").iter().map(|output| text(output, "/status")).collect()
}

#[tokio::test]
async fn an_accepted_run_has_pending_outputs_on_its_canvas() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack, 5).await;
    let reply = setting.start(json!({})).await.expect(202);
    let run = reply.json();
    assert!(text(&run, "/id").starts_with("recipe-"), "{run}");
    assert_eq!(run["handle"], json!(format!("run:{}", text(&run, "/id"))));
    assert_eq!(reply.header("location"), Some(text(&run, "/pollUrl")));
    for (field, value) in [
        ("schemaVersion", json!(1)),
        ("kind", json!("recipe")),
        ("operation", json!("recipe")),
        ("status", json!("queued")),
        ("recipeId", json!(RECIPE)),
        ("recipeVersion", json!("1.0.0")),
        ("currentStep", json!("copy")),
        ("nextStep", json!("banner")),
        ("canvasId", setting.canvas["id"].clone()),
    ] {
        assert_eq!(run[field], value, "{field}");
    }
    assert_eq!(statuses(&run), ["pending", "pending"]);
    let canvas = setting.now().await;
    let nodes = nodes(&canvas);
    assert_eq!(nodes.len(), 6, "the instance was made");
    for output in run["outputs"].as_array().expect("outputs") {
        assert_eq!(nodes[text(output, "/nodeId")]["metadata"]["job"]["run"], run["handle"]);
    }
    assert_eq!(nodes[text(&run, "/inputs/0/nodeId")]["asset"], json!(setting.image));
    assert!(run["inputs"].as_array().is_some_and(|inputs| inputs.len() == 3), "the default counts: {run}");
    let read = setting.user.get(&format!("/canvases/{}", text(&setting.canvas, "/id"))).await.ok();
    assert_eq!(read["activity"][0]["type"], "recipe.started");
    let polled = setting.user.get(text(&run, "/pollUrl")).await.expect(202);
    assert!(polled.header("etag").is_some() && polled.header("retry-after").is_some());
    assert_eq!(polled.json(), run);
    let handle = setting.user.get(&format!("/runs/{}", text(&run, "/handle"))).await.expect(202);
    assert_eq!(handle.json(), run);
}

#[tokio::test]
async fn inputs_are_named_by_node_id_key_or_label() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack, 5).await;
    let recipe = setting.user.get(&format!("/recipes/{RECIPE}")).await.ok()["recipe"].clone();
    let inputs = json!({
        text(&recipe, "/inputs/0/nodeId"): setting.image, "OFFER!": "A fifth off", "audience": "Friends",
    });
    let run = setting.start(json!({"inputs": inputs})).await.expect(202).json();
    let summaries: Vec<_> =
        run["inputs"].as_array().expect("inputs").iter().map(|input| text(input, "/summary")).collect();
    assert_eq!(summaries, [setting.image.as_str(), "A fifth off", "Friends"]);
    assert_eq!(run["inputs"][0]["sourceHandle"], json!(setting.image));
}

#[tokio::test]
async fn what_is_wrong_with_an_input_is_reported_by_its_name() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack, 5).await;
    let image = json!(setting.image);
    for (inputs, fields) in [
        (json!({}), &["inputs.product", "inputs.offer"][..]),
        (json!({"product": image, "offer": "o", "other": "x"}), &["inputs.other"]),
        (json!({"product": "a red chair", "offer": "o"}), &["inputs.product"]),
        (json!({"product": image, "offer": image}), &["inputs.offer"]),
        (json!({"product": "asset:absent", "offer": "node:absent"}), &["inputs.product", "inputs.offer"]),
        (json!({"product": image, "offer": "o", "Offer": "p"}), &["inputs.offer"]),
    ] {
        setting.refused(json!({"inputs": inputs}), fields).await;
    }
    let long = json!({"product": image, "offer": "o".repeat(8001)});
    setting.start(json!({"inputs": long})).await.expect_error(400, "input_validation_error", &["inputs.offer"]);
    let most = json!({"product": image, "offer": "o".repeat(8000)});
    setting.start(json!({"inputs": most})).await.expect(202);
}

#[tokio::test]
async fn what_no_model_can_do_is_422() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack, 5).await;
    setting.refused(json!({"model": "no-such-model"}), &["model"]).await;
    let malformed = setting.start(json!({"model": "model:short"})).await;
    malformed.expect_error(400, "input_validation_error", &["model"]);
    setting.refused(json!({"size": "7x7"}), &["size"]).await;
    setting.refused(json!({"quality": "high"}), &["quality"]).await;
    setting.refused(json!({"version": "1.0.9"}), &["version"]).await;
    setting.start(json!({"model": "sketch", "size": "1536x1024", "version": "1.0.0"})).await.expect(202);
}

#[tokio::test]
async fn a_workflow_whose_model_is_gone_is_not_run() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack, 5).await;
    let user = &setting.user;
    let connection = stack.connect_to(&user.uid, "fal", "http://127.0.0.1:9", SIMULATOR_KEY).await;
    let outputs = json!([
        output("copy", "text", &["brief"]),
        with(output("hero", "image", &["copy"]), json!({"model": "fal-ai/flux/schnell"}))
    ]);
    let body = with(workflow(), json!({"outputs": outputs}));
    let made = make_workflow(user, text(&setting.canvas, "/id"), &body).await.expect(201).json();
    stack.admin(&["admin", "connection", "delete", &connection]).await.expect_success();
    let before = setting.now().await;
    let inputs = json!({"inputs": {"brief": "a kite", "pack": setting.image}});
    let refused = setting.start_of(text(&made, "/workflow/id"), inputs).await;
    refused.expect_error(422, "unprocessable_entity", &["model"]);
    assert_eq!((setting.now().await, setting.balance().await), (before, 5), "nothing was written");
}

#[tokio::test]
async fn an_equal_run_is_replayed_and_starts_nothing() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack, 5).await;
    let request = setting.request(json!({})).await;
    let run = setting.send(&request).await.expect(202).json();
    let spelled = with(request.clone(), json!({"canvasId": setting.canvas["handle"]}));
    let other = setting.user.at(stack, 1);
    let again = other.send(&format!("/recipes/recipe:{RECIPE}/runs"), &spelled).await.expect(202).json();
    assert_eq!((&again["id"], &again["replayed"]), (&run["id"], &json!(true)));
    assert_eq!(nodes(&setting.now().await).len(), 6, "one instance");
    let changed = with(request, json!({"size": "1024x1024"}));
    setting.send(&changed).await.expect_error(409, "conflict", &[]);
    let stale = setting.request(json!({"baseRevision": setting.canvas["revision"]})).await;
    setting.send(&stale).await.expect(409);
}

#[tokio::test]
async fn a_run_reserves_its_steps_and_a_cancel_returns_them() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack, 0).await;
    let request = setting.request(json!({})).await;
    let before = setting.now().await;
    setting.send(&request).await.expect_error(402, "payment_required", &[]);
    assert_eq!(setting.now().await, before);
    stack.grant(&setting.user.uid, 1).await;
    let run = setting.send(&request).await.expect(202).json();
    assert_eq!((&run["creditCost"], setting.balance().await), (&json!(1), 0));
    let path = text(&run, "/pollUrl").to_owned();
    for _ in 0..2 {
        let canceled = setting.user.delete(&path).await.expect(200).json();
        assert_eq!((&canceled["status"], &canceled["creditCost"]), (&json!("canceled"), &json!(0)));
        assert_eq!(canceled["failure"]["code"], "recipe_run_canceled");
        assert_eq!(statuses(&canceled), ["canceled", "canceled"]);
    }
    assert_eq!(setting.balance().await, 1);
    setting.user.get(&path).await.expect(200);
}

#[tokio::test]
async fn a_run_is_no_job_and_nobody_elses() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack, 5).await;
    let run = setting.start(json!({})).await.expect(202).json();
    let uuid = text(&run, "/id").trim_start_matches("recipe-").to_owned();
    for path in [format!("/jobs/{uuid}"), format!("/runs/{uuid}"), format!("/runs/recipe-{}", key())] {
        setting.user.get(&path).await.expect_error(404, "not_found", &[]);
    }
    let other = stack.user().await;
    let path = format!("/runs/{}", text(&run, "/id"));
    other.get(&path).await.expect_error(404, "not_found", &[]);
    other.delete(&path).await.expect_error(404, "not_found", &[]);
}

#[tokio::test]
async fn an_instance_is_run_with_what_its_ports_hold() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack, 5).await;
    let fork = fork_onto(&setting.user, RECIPE, &setting.canvas, json!({})).await.expect(201).json();
    let id = |name: &str| text(&fork, &format!("/resolvedIds/{name}")).to_owned();
    let instance = json!({"instanceNodeId": id("recipe"), "inputs": {"product": setting.image}});
    setting.refused(instance.clone(), &["inputs.offer"]).await;
    let edits = json!([
        {"type": "node.update", "nodeId": id("input-offer"), "patch": {"metadata": {"content": "From the port"}}},
        {"type": "node.update", "nodeId": id("output-copy"), "patch": {"metadata": {"prompt": "Say {{offer}}"}}},
    ]);
    setting.user.apply(text(&setting.canvas, "/id"), edits).await;
    let run = setting.start(instance.clone()).await.expect(202).json();
    assert_eq!(run["recipeInstanceNodeId"], json!(id("recipe")));
    assert_eq!(run["inputs"][1]["summary"], "From the port");
    assert_eq!(run["targets"], json!([format!("node:{}", id("output-copy")), format!("node:{}", id("output-banner"))]));
    assert_eq!(nodes(&setting.now().await).len(), 6, "no second instance");
    // State is checked before meaning (docs/reference/conventions.md#order-of-checks).
    let wrong = json!({"instanceNodeId": id("recipe"), "version": "9.9.9", "inputs": {"nothing": "of the kind"}});
    for run in [instance, wrong] {
        setting.start(run).await.expect_error(409, "conflict", &[]);
    }
}

#[tokio::test]
async fn an_image_output_shows_its_image_whole_within_its_box_on_request() {
    let stack = &Stack::with_workers().await;
    let setting = Setting::new(stack, 5).await;
    let fork = fork_onto(&setting.user, RECIPE, &setting.canvas, json!({})).await.expect(201).json();
    let (instance, banner) = (&fork["resolvedIds"]["recipe"], text(&fork, "/resolvedIds/output-banner").to_owned());
    let resize = json!([{"type": "node.update", "nodeId": banner, "patch": {"width": 900, "height": 128}}]);
    setting.user.apply(text(&setting.canvas, "/id"), resize).await;
    let mut sizes = Vec::new();
    for more in [json!({}), json!({"fit": true})] {
        let run = setting.start(with(json!({"instanceNodeId": instance}), more)).await.expect(202).json();
        let done = setting.user.finished(&run).await;
        assert_eq!(done["status"], "succeeded", "{done}");
        let canvas = setting.now().await;
        let node = nodes(&canvas)[&banner].clone();
        let asset = text(&node, "/asset");
        let asset = setting.user.get(&format!("/assets/{asset}")).await.ok()["asset"].clone();
        let side = |name: &str| asset[name].as_f64().expect("a side");
        let whole = (100.0 * side("width") / side("height")).round();
        sizes.push((node["width"].as_f64(), node["height"].as_f64(), whole));
    }
    let [plain, fitted] = [sizes[0], sizes[1]];
    assert_eq!((plain.0, plain.1), (Some(900.0), Some(128.0)), "not by default");
    // 100 units above the strip with the title.
    assert_eq!((fitted.0, fitted.1), (Some(fitted.2), Some(128.0)));
}

#[tokio::test]
async fn what_is_no_instance_of_the_recipe_is_422() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack, 5).await;
    let fork = fork_onto(&setting.user, "storyboard", &setting.canvas, json!({})).await.expect(201).json();
    for node in [text(&fork, "/resolvedIds/recipe"), "absent"] {
        setting.refused(json!({"instanceNodeId": node}), &["instanceNodeId"]).await;
    }
}

#[tokio::test]
async fn a_run_makes_its_text_and_then_its_image() {
    let stack = &Stack::with_workers().await;
    let setting = Setting::new(stack, 5).await;
    let receiver = stack.take_receiver();
    let webhook = json!({"url": receiver.url("/run"), "secret": SECRET});
    let run = setting.start(json!({"webhook": webhook})).await.expect(202).json();
    let done = setting.user.finished(&run).await;
    assert_eq!((&done["status"], statuses(&done)), (&json!("succeeded"), vec!["succeeded"; 2]), "{done}");
    assert_eq!((&done["creditCost"], setting.balance().await), (&json!(1), 4));
    let [copy, banner] = [&done["outputs"][0], &done["outputs"][1]];
    let canvas = setting.now().await;
    let nodes = nodes(&canvas);
    let (written, shown) = (&nodes[text(copy, "/nodeId")], &nodes[text(banner, "/nodeId")]);
    assert_eq!(written["metadata"]["content"], copy["value"]);
    assert_eq!(shown["asset"], banner["assetId"]);
    for node in [written, shown] {
        assert_eq!(node["metadata"]["provenance"]["kind"], "recipe", "{node}");
    }
    let child = setting.user.get(&format!("/runs/{}", text(banner, "/runHandle"))).await.expect(200).json();
    assert_eq!((&child["status"], &child["operation"]), (&json!("succeeded"), &json!("edit")));
    let read = setting.user.get(&format!("/canvases/{}", text(&setting.canvas, "/id"))).await.ok();
    let activity: Vec<_> = read["activity"].as_array().expect("activity").iter().map(|it| text(it, "/type")).collect();
    assert_eq!(activity, ["recipe.finished", "recipe.started", "canvas.created"], "steps have none of their own");
    let request = &receiver.wait_for(1, e2e::PATIENCE).await[0];
    request.verify_signature(SECRET).expect("is signed");
    let event: Value = serde_json::from_slice(&request.body).expect("JSON");
    assert_eq!((&event["type"], &event["data"]["run"]["id"]), (&json!("recipe_run.succeeded"), &done["id"]));
    assert!(event["data"]["run"]["outputs"][0].get("value").is_none(), "texts are not in the callback");
    assert_eq!(event["data"]["run"]["outputs"][1]["assetId"], banner["assetId"]);
}

#[tokio::test]
async fn a_step_that_fails_leaves_what_does_not_need_it() {
    let stack = &Stack::with_workers().await;
    let setting = Setting::new(stack, 5).await;
    let (user, receiver) = (&setting.user, stack.take_receiver());
    let simulator = Simulator::start(Vendor::OpenAi).await;
    stack.connect_to(&user.uid, "openai", simulator.url(), SIMULATOR_KEY).await;
    let output = |name: &str, kind: &str, from: &str, model: &str| {
        let prompt = format!("A {name} of {{{{{from}}}}}");
        json!({"key": name, "label": name, "type": kind, "prompt": prompt, "inputKeys": [from], "model": model})
    };
    let workflow = json!({
        "name": "Two ways", "idempotencyKey": key(),
        "inputs": [{"key": "brief", "label": "Brief", "type": "text", "useAsDefault": false}],
        "outputs": [
            output("hero", "image", "brief", "gpt-image-2"), output("crop", "image", "hero", "sketch"),
            output("copy", "text", "brief", "outline"), output("banner", "image", "copy", "sketch"),
        ],
    });
    let canvas = text(&setting.canvas, "/id");
    let made = user.send(&format!("/canvases/{canvas}/workflows"), &workflow).await.expect(201).json();
    // The simulator rejects a prompt that contains this marker, here as the value of an input.
    let webhook = json!({"url": receiver.url("/"), "secret": SECRET});
    let request = setting.request(json!({"inputs": {"brief": "a kite [[sim:content]]"}, "webhook": webhook})).await;
    let started = setting.send_to(text(&made, "/workflow/id"), &request).await.expect(202).json();
    let run = user.finished(&started).await;
    assert_eq!(statuses(&run), ["failed", "canceled", "succeeded", "succeeded"], "{run}");
    assert_eq!(
        (&run["status"], &run["failure"]["code"], &run["failure"]["outputKey"]),
        (&json!("failed"), &json!("recipe_step_failed"), &json!("hero"))
    );
    assert_eq!((&run["creditCost"], setting.balance().await), (&json!(1), 4), "only finished outputs are charged");
    let nodes = nodes(&setting.now().await);
    let shown = |at: usize| nodes[text(&run, &format!("/outputs/{at}/nodeId"))]["asset"].clone();
    assert_eq!((shown(0), shown(1), shown(3)), (Value::Null, Value::Null, run["outputs"][3]["assetId"].clone()));
    assert!(run["outputs"][2]["value"].is_string() && run["outputs"][3]["assetId"].is_string(), "{run}");
    let event: Value = serde_json::from_slice(&receiver.wait_for(1, e2e::PATIENCE).await[0].body).expect("JSON");
    assert_eq!(event["type"], "recipe_run.failed");
}

#[tokio::test]
async fn a_fork_is_run_by_its_instance() {
    let stack = &Stack::with_workers().await;
    let setting = Setting::new(stack, 5).await;
    let fork = fork_onto(&setting.user, RECIPE, &setting.canvas, json!({})).await.expect(201).json();
    let instance = format!("node:{}", text(&fork, "/resolvedIds/recipe"));
    for _ in 0..2 {
        let run = setting.start(json!({"instanceNodeId": instance})).await.expect(202).json();
        let done = setting.user.finished(&run).await;
        assert_eq!((&done["status"], &done["recipeInstanceNodeHandle"]), (&json!("succeeded"), &json!(instance)));
    }
    assert_eq!((nodes(&setting.now().await).len(), setting.balance().await), (6, 3));
}

#[tokio::test]
async fn an_editor_runs_on_a_shared_canvas() {
    let stack = &Stack::with_workers().await;
    let (owner, viewer) = (stack.user().await, stack.user().await);
    let setting = Setting { canvas: owner.make_canvas().await, ..Setting::new(stack, 5).await };
    let (id, editor) = (text(&setting.canvas, "/id"), &setting.user);
    stack.share(&owner, id, &editor.uid, "editor").await;
    stack.share(&owner, id, &viewer.uid, "viewer").await;
    let request = setting.request(json!({"canvasId": setting.canvas["handle"]})).await;
    let path = format!("/recipes/{RECIPE}/runs");
    viewer.send(&path, &request).await.expect_error(403, "forbidden", &[]);
    let plain = with(request.clone(), json!({"canvasId": id}));
    editor.send(&path, &plain).await.expect_error(404, "not_found", &[]);
    let run = editor.send(&path, &request).await.expect(202).json();
    let done = editor.finished(&run).await;
    assert_eq!((&done["status"], &done["canvasHandle"]), (&json!("succeeded"), &setting.canvas["handle"]), "{done}");
    // The owner of the canvas owns the outputs and can read them.
    let image = text(&done, "/outputs/1/assetId");
    assert!(image.starts_with(&format!("asset:{}:", owner.uid)), "{image}");
    assert_eq!(nodes(&owner.canvas(id).await)[text(&done, "/outputs/1/nodeId")]["asset"], json!(image));
    let read = owner.get(&format!("/canvases/{id}")).await.ok();
    let activity = &read["activity"][0];
    assert_eq!((&activity["type"], &activity["actor"]["ownerUid"]), (&json!("recipe.finished"), &json!(editor.uid)));
    // The run belongs to the editor, who is charged for it.
    assert_eq!((&done["creditCost"], setting.balance().await), (&json!(1), 4));
    assert_eq!(owner.get("/auth/status").await.ok()["creditBalance"], 0);
    for other in [&owner, &viewer] {
        other.get(text(&run, "/pollUrl")).await.expect_error(404, "not_found", &[]);
        other.delete(text(&run, "/pollUrl")).await.expect_error(404, "not_found", &[]);
    }
}

#[tokio::test]
async fn a_run_is_of_the_version_it_names_or_of_its_instance_or_of_the_newest() {
    let stack = &Stack::with_workers().await;
    let setting = Setting::new(stack, 0).await;
    let id = format!("r-{}", key());
    let published = async |place: &str| {
        let file = file(&id, &format!("{place}: at most 3 words / Copy\n\n{{{{a}}}}"));
        publish(stack, &file).await.expect_success()["version"].clone()
    };
    let (old, new) = (("1.0.0", "Lisbon"), ("1.0.1", "Oslo"));
    assert_eq!(published(old.1).await, old.0);
    let fork = fork_onto(&setting.user, &id, &setting.canvas, json!({})).await.expect(201).json();
    assert_eq!(published(new.1).await, new.0);
    let instance = json!({"instanceNodeId": fork["resolvedIds"]["recipe"]});
    let of_version = |base: &Value, version: &str| with(base.clone(), json!({"version": version}));
    for (more, (version, place), other) in [
        (json!({}), new, old),
        (json!({"version": new.0}), new, old),
        (json!({"version": old.0}), old, new),
        (instance.clone(), old, new),
        (of_version(&instance, old.0), old, new),
    ] {
        let asked = with(json!({"inputs": {"a": "a kite"}}), more);
        let done = setting.user.finished(&setting.start_of(&id, asked.clone()).await.expect(202).json()).await;
        assert_eq!((&done["status"], &done["recipeVersion"]), (&json!("succeeded"), &json!(version)), "{asked}");
        let written = text(&done, "/outputs/0/value");
        assert!(written.contains(place) && !written.contains(other.1), "{asked}: {written}");
    }
    let before = setting.now().await;
    let contrary = setting.start_of(&id, with(of_version(&instance, new.0), json!({"inputs": {"a": "a kite"}}))).await;
    contrary.expect_error(422, "unprocessable_entity", &["version"]);
    assert_eq!(setting.now().await, before, "nothing was written");
}

#[tokio::test]
async fn an_event_stream_follows_a_run_to_its_end() {
    let stack = &Stack::with_workers().await;
    let setting = Setting::new(stack, 5).await;
    let run = setting.start(json!({})).await.expect(202).json();
    let shown = events(&setting.user, &run).await;
    assert!(shown.iter().all(|(event, it)| event == "run" && it["id"] == run["id"]), "{shown:?}");
    let rank = |status: &str| {
        let known = ["queued", "pending", "running", "succeeded"].iter().position(|known| *known == status);
        known.unwrap_or_else(|| panic!("{status}"))
    };
    for of in ["/status", "/outputs/0/status", "/outputs/1/status"] {
        let states: Vec<&str> = shown.iter().map(|(_, run)| text(run, of)).collect();
        assert!(states.is_sorted_by_key(|state| rank(state)), "{of}: {states:?}");
        assert_eq!(states.last(), Some(&"succeeded"), "{of}");
    }
    let (_, last) = shown.last().expect("an event");
    assert_eq!(*last, setting.user.get(text(&run, "/pollUrl")).await.ok(), "the same record");
    assert_eq!(
        events(&setting.user, &run).await,
        [("run".to_owned(), last.clone())],
        "the stream of a finished run has only the terminal event"
    );
}

#[tokio::test]
async fn a_new_instance_is_near_a_node_or_in_a_section() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack, 10).await;
    let id = text(&setting.canvas, "/id");
    let section = json!({"type": "sticky", "position": {"x": 0, "y": 0}, "metadata": {"section": true}});
    let content = json!([
        {"type": "node.create", "clientId": "s", "node": section},
        {"type": "node.create", "node": {"type": "text", "position": {"x": 9000, "y": 0}}},
    ]);
    let ids = setting.user.apply(id, content).await["resolvedIds"].clone();
    let place = json!({"sectionId": ids["s"]});
    let trial = with(place.clone(), json!({"validateOnly": true}));
    let quote = setting.start(trial).await.ok();
    assert_eq!(quote["targets"], json!([]));
    let run = setting.start(place).await.expect(202).json();
    let now = nodes(&setting.now().await);
    let instance = text(&run, "/recipeInstanceNodeId");
    assert_eq!(now[instance]["metadata"]["sectionId"], ids["s"]);
    let made = run["targets"].as_array().expect("targets").iter().map(|target| {
        let node = &now[target.as_str().expect("a handle").trim_start_matches("node:")];
        let shown =
            ["type", "title", "position", "width", "height"].map(|member| (member.to_owned(), node[member].clone()));
        with(Value::Object(shown.into_iter().collect()), json!({"sectionId": ids["s"]}))
    });
    assert_eq!(quote["newTargets"], made.collect::<Value>());
    let run = setting.start(json!({"near": ids["s"]})).await.expect(202).json();
    let now = nodes(&setting.now().await);
    let frame = super::fork::bounds([&now[text(&ids, "/s")]].into_iter());
    let instance = &now[text(&run, "/recipeInstanceNodeId")];
    assert!(instance["metadata"].get("sectionId").is_none());
    assert!(
        super::fork::bounds([instance].into_iter())[0] > frame[2]
            && super::fork::bounds([instance].into_iter())[2] < 9000.0
    );
    setting.refused(json!({"near": "absent", "sectionId": "absent"}), &["near", "sectionId"]).await;
    let both = json!({"instanceNodeId": instance["id"], "near": ids["s"], "sectionId": ids["s"]});
    setting.start(both).await.expect_error(400, "input_validation_error", &["near", "sectionId"]);
}
