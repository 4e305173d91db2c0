//! Runs that are stopped by a cancel, by a cancel of a step or by a revoked token (docs/reference/recipes.md#cancel-a-run,
//! docs/reference/recipes.md#cancel-a-step, docs/reference/recipes.md#delegation).

use e2e::{Account, PATIENCE};
use testkit::Receiver;
use testkit::providers::{SIMULATOR_KEY, Simulator, Vendor};

use super::runs::{SECRET, Setting, statuses};
use super::*;
use crate::jobs::events_of;

/// The only event of a run. Its signature is checked.
async fn announced(receiver: &Receiver) -> Value {
    let requests = receiver.wait_for(1, PATIENCE).await;
    requests[0].verify_signature(SECRET).expect("is signed");
    assert_eq!(requests.len(), 1, "a step has no event of its own");
    serde_json::from_slice(&requests[0].body).expect("JSON")
}

/// A run whose first image is running at a provider and does not finish. Another image depends on it; a text, and an
/// image of that text, do not.
struct Painting {
    setting: Setting,
    receiver: Receiver,
    simulator: Simulator,
    run: Value,
}

impl Painting {
    async fn begin(stack: &Stack) -> Self {
        let (setting, receiver) = (Setting::new(stack, 5).await, stack.take_receiver());
        let simulator = Simulator::start(Vendor::Fal).await;
        simulator.take(PATIENCE * 10);
        stack.connect_to(&setting.user.uid, "fal", simulator.url(), SIMULATOR_KEY).await;
        let by = |model: &str, output: Value| with(output, json!({"model": model}));
        let outputs = json!([
            by("fal-ai/flux/schnell", output("hero", "image", &["brief"])),
            by("sketch", output("crop", "image", &["hero"])),
            by("outline", output("copy", "text", &["brief"])),
            by("sketch", output("banner", "image", &["copy"])),
        ]);
        let body = with(workflow(), json!({"inputs": [input("brief", "text")], "outputs": outputs}));
        let made = make_workflow(&setting.user, text(&setting.canvas, "/id"), &body).await.expect(201).json();
        let more = json!({
            "inputs": {"brief": "A kite over the sea."}, "webhook": {"url": receiver.url("/run"), "secret": SECRET},
        });
        let run = setting.start_of(text(&made, "/workflow/id"), more).await.expect(202).json();
        assert_eq!((&run["creditCost"], setting.balance().await), (&json!(2), 3), "two images are reserved");
        // The provider's run id is recorded once the run has been polled.
        let polled = async || (simulator.polls() > 0).then_some(());
        testkit::wait_for("the provider to be polled", PATIENCE, polled).await;
        let run = setting.user.get(text(&run, "/pollUrl")).await.expect(202).json();
        assert_eq!(
            (text(&run, "/status"), statuses(&run)),
            ("running", vec!["running", "pending", "pending", "pending"])
        );
        assert_eq!((text(&run, "/currentStep"), text(&run, "/nextStep")), ("hero", "crop"));
        Self { setting, receiver, simulator, run }
    }

    /// The path of the job of the provider's image.
    fn step(&self) -> String {
        format!("/runs/{}", text(&self.run, "/outputs/0/runHandle"))
    }

    /// Asserts that the step was canceled at the provider and stored nothing.
    async fn judge_step(&self) {
        let job = json!({"pollUrl": self.step()});
        let step = self.setting.user.finished(&job).await;
        assert_eq!((&step["status"], &step["creditCost"]), (&json!("canceled"), &json!(0)), "{step}");
        assert_eq!(
            (self.simulator.submits().len(), self.simulator.cancels()),
            (1, 1),
            "the provider was asked to stop"
        );
        let nodes = nodes(&self.setting.now().await);
        assert_eq!(nodes[text(&self.run, "/outputs/0/nodeId")]["asset"], Value::Null);
    }
}

#[tokio::test]
async fn a_run_is_canceled_while_a_provider_makes_its_image() {
    let stack = &Stack::with_workers().await;
    let painting = Painting::begin(stack).await;
    let (setting, path) = (&painting.setting, text(&painting.run, "/pollUrl"));
    let mut stream = setting.user.get(&format!("{path}/events")).streamed().await;
    let mut received = String::new();
    let mut more = async |received: &mut String| {
        let chunk = tokio::time::timeout(PATIENCE, stream.chunk()).await.expect("the stream continues or ends");
        let chunk = chunk.expect("a chunk");
        chunk.map(|chunk| received.push_str(std::str::from_utf8(&chunk).expect("UTF-8"))).is_some()
    };
    while !(received.contains("data:") && received.ends_with("\n\n")) {
        assert!(more(&mut received).await, "{received}");
    }
    for _ in 0..2 {
        let canceled = setting.user.delete(path).await.expect(200).json();
        assert_eq!((&canceled["status"], &canceled["currentStep"]), (&json!("canceled"), &json!("canceled")));
        assert_eq!(canceled["failure"]["code"], "recipe_run_canceled");
        assert_eq!(statuses(&canceled), ["canceled"; 4]);
        assert!(canceled["canceledAt"].is_string(), "{canceled}");
    }
    while more(&mut received).await {}
    let shown = events_of(&received);
    let states: Vec<&str> = shown.iter().map(|(_, run)| text(run, "/status")).collect();
    assert_eq!((states.first(), states.last()), (Some(&"running"), Some(&"canceled")), "{states:?}");
    painting.judge_step().await;
    assert_eq!(setting.balance().await, 5, "nothing was made or charged");
    let event = announced(&painting.receiver).await;
    assert_eq!((&event["type"], &event["data"]["run"]["id"]), (&json!("recipe_run.canceled"), &painting.run["id"]));
    let ended = setting.user.get(path).await.expect(200).json();
    assert_eq!(statuses(&ended), ["canceled"; 4], "no later step was started");
    assert!((1..4).all(|at| ended["outputs"][at].get("runHandle").is_none()), "{ended}");
}

#[tokio::test]
async fn a_run_whose_output_nodes_were_deleted_is_not_done() {
    let stack = &Stack::with_workers().await;
    let setting = Setting::new(stack, 5).await;
    let simulator = Simulator::start(Vendor::Fal).await;
    simulator.take(PATIENCE * 10);
    stack.connect_to(&setting.user.uid, "fal", simulator.url(), SIMULATOR_KEY).await;
    let hero = with(output("hero", "image", &["brief"]), json!({"model": "fal-ai/flux/schnell"}));
    let copy = with(output("copy", "text", &["brief"]), json!({"model": "outline"}));
    let body = with(workflow(), json!({"inputs": [input("brief", "text")], "outputs": [copy, hero]}));
    let made = make_workflow(&setting.user, text(&setting.canvas, "/id"), &body).await.expect(201).json();
    let more = json!({"inputs": {"brief": "A kite."}});
    let run = setting.start_of(text(&made, "/workflow/id"), more).await.expect(202).json();
    testkit::wait_for("the provider to be polled", PATIENCE, async || (simulator.polls() > 0).then_some(())).await;
    let nodes: Vec<&str> = (0..2).map(|at| text(&run, &format!("/outputs/{at}/nodeId"))).collect();
    let deletions: Vec<Value> = nodes.iter().map(|node| json!({"type": "node.delete", "nodeId": node})).collect();
    let path = format!("/canvases/{}/operations", text(&setting.canvas, "/id"));
    let batch = json!({"baseRevision": setting.now().await["revision"], "idempotencyKey": key(), "force": true,
                       "operations": deletions});
    setting.user.send(&path, &batch).await.ok();
    setting.user.delete(text(&run, "/pollUrl")).await.expect(200);
    let ended = setting.user.finished(&run).await;
    assert_eq!(statuses(&ended), ["succeeded", "canceled"], "{ended}");
    let review = &ended["completionReview"];
    assert_eq!((&review["status"], &review["doneClaimAllowed"]), (&json!("blocked"), &json!(false)), "{review}");
    let handles: Vec<String> = nodes.iter().map(|node| format!("node:{node}")).collect();
    assert_eq!(review["delivery"]["nonDurableOutputHandles"], json!(handles), "{review}");
}

#[tokio::test]
async fn an_image_that_is_canceled_by_itself_fails_the_run_at_the_end() {
    let stack = &Stack::with_workers().await;
    let painting = Painting::begin(stack).await;
    let setting = &painting.setting;
    setting.user.delete(&painting.step()).await.expect(202);
    let run = setting.user.finished(&painting.run).await;
    // Steps that do not depend on it are still made.
    assert_eq!(statuses(&run), ["canceled", "canceled", "succeeded", "succeeded"], "{run}");
    let failure = &run["failure"];
    assert_eq!((&run["status"], &failure["code"]), (&json!("failed"), &json!("recipe_step_failed")), "{run}");
    assert_eq!((&failure["outputKey"], &failure["retryable"]), (&json!("hero"), &json!(false)), "{run}");
    assert!(run.get("canceledAt").is_none() && run["outputs"][0].get("failure").is_none(), "{run}");
    assert_eq!((&run["creditCost"], setting.balance().await), (&json!(1), 4), "only the banner is charged");
    painting.judge_step().await;
    let event = announced(&painting.receiver).await;
    assert_eq!((&event["type"], &event["data"]["run"]["failure"]), (&json!("recipe_run.failed"), failure));
}

#[tokio::test]
async fn a_canceled_run_takes_its_empty_outputs_along() {
    let stack = &Stack::with_workers().await;
    let painting = Painting::begin(stack).await;
    let (setting, run) = (&painting.setting, &painting.run);
    let outputs: Vec<String> = (0..4).map(|at| text(run, &format!("/outputs/{at}/nodeId")).to_owned()).collect();
    let before = setting.now().await;
    let path = format!("{}?removeTargets=true", text(run, "/pollUrl"));
    // Nodes are deleted, so the token needs the scope for that.
    let account = Account { uid: setting.user.uid.clone(), email: String::new() };
    let manager = stack.user_of(&account, "canvas:read,job:manage").await;
    let refused = manager.delete(&path).await;
    assert!(refused.json()["error"]["message"].as_str().is_some_and(|it| it.contains("canvas:write")));
    refused.expect_error(403, "forbidden", &[]);
    assert_eq!(setting.now().await, before);
    let canceled = setting.user.delete(&path).await.expect(200).json();
    let missing = &canceled["completionReview"]["delivery"]["nonDurableOutputHandles"];
    assert_eq!((&canceled["status"], missing), (&json!("canceled"), &json!([])), "{canceled}");
    // The image that a provider still makes goes when its job has stopped.
    let step = setting.user.finished(&json!({"pollUrl": painting.step()})).await;
    assert_eq!(step["status"], "canceled");
    let now = setting.now().await;
    let left = nodes(&now);
    assert!(outputs.iter().all(|output| !left.contains_key(output.as_str())), "{now}");
    assert_eq!(left.len() + 4, nodes(&before).len(), "the rest of the instance stays");
    let since = text(&before, "/revision");
    let id = text(&setting.canvas, "/id");
    let changes = setting.user.get(&format!("/canvases/{id}/changes?since={since}")).await.ok();
    let mut deleted: Vec<&str> =
        changes["deletedNodeIds"].as_array().expect("ids").iter().filter_map(Value::as_str).collect();
    let mut expected: Vec<&str> = outputs.iter().map(String::as_str).collect();
    deleted.sort_unstable();
    expected.sort_unstable();
    assert_eq!(deleted, expected, "{changes}");
    setting.user.delete(&path).await.expect(200);
    assert_eq!(setting.now().await, now, "a repetition changes nothing");
    // What was made stays.
    let setting = Setting::new(stack, 5).await;
    let done = setting.user.finished(&setting.start(json!({})).await.expect(202).json()).await;
    let before = setting.now().await;
    let path = format!("{}?removeTargets=true", text(&done, "/pollUrl"));
    assert_eq!(setting.user.delete(&path).await.expect(200).json(), done);
    assert_eq!(setting.now().await, before);
}

#[tokio::test]
async fn a_run_that_is_over_is_not_canceled() {
    let stack = &Stack::with_workers().await;
    let setting = Setting::new(stack, 5).await;
    let run = setting.start(json!({})).await.expect(202).json();
    let done = setting.user.finished(&run).await;
    let step = setting.user.get(&format!("/runs/{}", text(&done, "/outputs/1/runHandle"))).await.ok();
    for record in [&done, &step] {
        assert_eq!(record["status"], "succeeded", "{record}");
        assert_eq!(setting.user.delete(text(record, "/pollUrl")).await.ok()["status"], "succeeded");
    }
    assert_eq!(setting.user.get(text(&run, "/pollUrl")).await.ok(), done, "unchanged");
    assert_eq!(setting.balance().await, 4);
}

/// A run whose token was revoked while the worker of its image was held.
struct Revoked {
    stack: Stack,
    /// Uses another token of the same account.
    setting: Setting,
    receiver: Receiver,
    run: Value,
}

impl Revoked {
    async fn at(failpoint: &str) -> Self {
        let stack = Stack::builder().image_workers(1).dispatchers(1).receivers(1).hold(failpoint).start().await;
        let (setting, receiver) = (Setting::new(&stack, 5).await, stack.take_receiver());
        let webhook = json!({"url": receiver.url("/run"), "secret": SECRET});
        let run = setting.start(json!({"webhook": webhook})).await.expect(202).json();
        stack.hold(failpoint).reached().await;
        let account = Account { uid: setting.user.uid.clone(), email: String::new() };
        let other = stack.user_of(&account, "all").await;
        stack.admin(&["admin", "token", "revoke", &setting.user.token_id]).await.expect_success();
        Self { setting: Setting { user: other, ..setting }, stack, receiver, run }
    }

    /// Asserts that the run ends with the failure of a revocation.
    async fn judge_run(&self) -> Value {
        let ended = self.setting.user.finished(&self.run).await;
        let failure = &ended["failure"];
        assert_eq!((&ended["status"], &failure["code"]), (&json!("failed"), &json!("delegation_revoked")), "{ended}");
        assert_eq!(statuses(&ended), ["succeeded", "canceled"], "earlier outputs are kept");
        let event = announced(&self.receiver).await;
        let run = &event["data"]["run"];
        assert_eq!((&event["type"], &run["id"]), (&json!("recipe_run.failed"), &self.run["id"]));
        assert_eq!((&run["status"], &run["failure"]), (&json!("failed"), failure));
        ended
    }

    /// Asserts that the image's job is over, and that nothing is shown, stored or charged. Returns its record.
    async fn judge_step(&self, ended: &Value) -> Value {
        let (user, canvas) = (&self.setting.user, text(&self.setting.canvas, "/id"));
        let banner = &ended["outputs"][1];
        let job = json!({"pollUrl": format!("/runs/{}", text(banner, "/runHandle"))});
        let step = user.finished(&job).await;
        assert!(step.get("images").is_none() && step["creditCost"] == 0, "{step}");
        assert_eq!(nodes(&self.setting.now().await)[text(banner, "/nodeId")]["asset"], Value::Null);
        assert_eq!(user.get(&format!("/assets?canvasId={canvas}")).await.ok()["assets"], json!([]));
        assert_eq!(self.setting.balance().await, 5);
        assert_eq!(user.get(text(&self.run, "/pollUrl")).await.ok()["creditCost"], 0);
        let review = user.get(&format!("/canvases/{canvas}/review")).await.ok();
        assert_eq!(
            review["validation"]["completionReview"]["outputs"]["pendingCount"], 0,
            "no output is pending: {review}"
        );
        step
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_is_revoked_in_the_middle_ends_its_run() {
    let failpoint = "generation.submitting";
    let revoked = Revoked::at(failpoint).await;
    // The run ends although the worker is still held.
    let ended = revoked.judge_run().await;
    let (user, path) = (&revoked.setting.user, text(&revoked.run, "/pollUrl"));
    let read = testkit::wait_for("the run's webhook to be over", PATIENCE, async || {
        Some(user.get(path).await.expect(200)).filter(|reply| reply.json()["webhook"]["status"] == "delivered")
    })
    .await;
    assert_eq!(read.json()["creditCost"], 1, "the reservation for the image is still held");
    revoked.stack.hold(failpoint).release();
    let step = revoked.judge_step(&ended).await;
    assert!(matches!(text(&step, "/status"), "canceled" | "failed"), "{step}");
    // The end of the image's job changed the run's record, so the earlier `ETag` no longer matches.
    user.get(path).header("if-none-match", read.header("etag").expect("a tag")).await.expect(200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_image_that_was_made_when_the_token_was_revoked_is_not_placed() {
    let failpoint = "generation.stored";
    let revoked = Revoked::at(failpoint).await;
    revoked.stack.hold(failpoint).release();
    let ended = revoked.judge_run().await;
    let step = revoked.judge_step(&ended).await;
    let failure = &step["failure"]["code"];
    assert_eq!((&step["status"], failure), (&json!("failed"), &json!("output_finalization_failed")), "{step}");
}
