//! Recipe runs whose worker dies during a step or between two steps (docs/reference/jobs.md#crash-guarantees,
//! docs/reference/recipes.md#steps).

use e2e::api::{key, text};
use e2e::{Part, SETTLING, Stack, User, checker, images};
use serde_json::{Value, json};
use testkit::providers::{SIMULATOR_KEY, Simulator, Vendor, written};

use super::{mortal, start};

/// Makes a text and then an image from it.
const RECIPE: &str = "ad-copy-and-banner";

/// During the step of the text, between the two steps, during the step of the image, and after its result is committed.
const FAILPOINTS: [&str; 5] =
    ["recipe.writing", "recipe.stepped", "generation.submitting", "generation.stored", "job.committed"];

/// The progress events of a run before it ends: text made, image started, image made.
const STEPS: usize = 3;

/// Starts a run on a canvas of its own.
async fn run(user: &User) -> Value {
    let canvas = user.make_canvas().await;
    let image = user.upload("image/png", images::png(8, 8)).await;
    let request = json!({
        "canvasId": canvas["id"], "baseRevision": canvas["revision"], "idempotencyKey": key(),
        "inputs": {"product": image["handle"], "offer": "Chairs, a fifth off until Sunday."},
    });
    user.send(&format!("/recipes/{RECIPE}/runs"), &request).await.expect(202).json()
}

/// Asserts that the run succeeded and that each of its steps ran once.
async fn judge(stack: &Stack, user: &User, run: &Value, what: &str) {
    let end = user.finished(run).await;
    assert_eq!((&end["status"], &end["creditCost"]), (&json!("succeeded"), &run["creditCost"]), "{what}: {end}");
    assert!(end["outputs"].as_array().expect("outputs").iter().all(|output| output["status"] == "succeeded"));
    let children = stack.count("SELECT count(*) FROM jobs WHERE recipe_run IS NOT NULL").await;
    let images = stack.count("SELECT count(*) FROM recipe_runs").await;
    assert_eq!(children, images, "{what}: one job for the image of each run");
    checker::settled(stack, SETTLING).await;
    assert_eq!(checker::invariants(stack).await, [""; 0], "{what}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_whose_worker_dies_anywhere_takes_each_step_once() {
    let stack = start(mortal()).await;
    let user = stack.user().await;
    stack.grant(&user.uid, 100).await;
    for failpoint in FAILPOINTS {
        stack.restart_with(Part::IMAGE_WORKER, &[("CANVAS_FAILPOINTS", &format!("{failpoint}=kill"))]).await;
        let run = run(&user).await;
        assert_eq!(stack.ended(Part::IMAGE_WORKER).await.code(), None, "{failpoint}: killed");
        stack.restart(Part::IMAGE_WORKER).await;
        judge(&stack, &user, &run, failpoint).await;
    }
    // The worker also dies after every step of a single run, which no other worker has begun.
    stack.kill(Part::IMAGE_WORKER);
    let run = run(&user).await;
    for _ in 0..STEPS {
        let (hold, held) = stack.make_hold("recipe.stepped");
        stack.restart_with(Part::IMAGE_WORKER, &[("CANVAS_FAILPOINTS", &held)]).await;
        hold.reached().await;
        stack.kill(Part::IMAGE_WORKER);
    }
    stack.restart(Part::IMAGE_WORKER).await;
    judge(&stack, &user, &run, "after every step").await;
}

/// The failpoints of a text of a provider, and how many requests the provider has received by then.
const TEXT_FAILPOINTS: [(&str, usize); 2] = [("recipe.writing", 0), ("recipe.written", 1)];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_is_asked_for_a_text_once_wherever_the_worker_dies() {
    let stack = start(mortal()).await;
    let user = stack.user().await;
    let simulator = Simulator::start(Vendor::OpenAi).await;
    stack.connect_to(&user.uid, "openai", simulator.url(), SIMULATOR_KEY).await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let workflow = json!({
        "name": "Names", "idempotencyKey": key(),
        "inputs": [{"key": "thing", "label": "Thing", "type": "text", "useAsDefault": false}],
        "outputs": [{
            "key": "names", "label": "Names", "type": "text", "prompt": "Names for {{thing}}", "inputKeys": ["thing"],
            "model": "gpt-5.6-luna"
        }]
    });
    let made = user.send(&format!("/canvases/{canvas}/workflows"), &workflow).await.expect(201).json();
    let path = format!("/recipes/{}/runs", text(&made, "/workflow/id"));
    let run = async || {
        let revision = user.canvas(&canvas).await["revision"].clone();
        let inputs = json!({"thing": "a kite"});
        let request = json!({"canvasId": canvas, "baseRevision": revision, "idempotencyKey": key(), "inputs": inputs});
        user.send(&path, &request).await.expect(202).json()
    };
    for (failpoint, submits) in TEXT_FAILPOINTS {
        stack.restart_with(Part::IMAGE_WORKER, &[("CANVAS_FAILPOINTS", &format!("{failpoint}=kill"))]).await;
        let run = run().await;
        assert_eq!(stack.ended(Part::IMAGE_WORKER).await.code(), None, "{failpoint}: killed");
        stack.restart(Part::IMAGE_WORKER).await;
        let end = user.finished(&run).await;
        let failure = &end["failure"];
        assert_eq!((&end["status"], &failure["code"]), (&json!("failed"), &json!("recipe_step_failed")), "{end}");
        assert_eq!((&failure["outputKey"], &failure["retryable"]), (&json!("names"), &json!(true)), "{end}");
        assert_eq!(simulator.submits().len(), submits, "{failpoint}");
    }
    let end = user.finished(&run().await).await;
    assert_eq!((&end["status"], &end["creditCost"]), (&json!("succeeded"), &json!(0)), "{end}");
    assert_eq!(end["outputs"][0]["value"], json!(written("Names for a kite")));
    assert_eq!(simulator.submits().len(), 2, "one submit for each worker that asked");
    checker::settled(&stack, SETTLING).await;
    assert_eq!(checker::invariants(&stack).await, [""; 0]);
}
