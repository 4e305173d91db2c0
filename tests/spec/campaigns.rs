//! Legacy campaigns (docs/reference/campaigns.md).

use e2e::api::{key, text};
use e2e::{PATIENCE, Reply, Stack, User};
use serde_json::{Value, json};

/// A stack with the routes of legacy campaigns.
pub async fn legacy() -> Stack {
    Stack::builder().env("CANVAS_LEGACY_CAMPAIGNS", 1).shared().await
}

/// A user with credit for the embedded runtime.
async fn rich(stack: &Stack) -> User {
    let user = stack.user().await;
    stack.admin(&["admin", "credits", "grant", "--account", &user.uid, "--amount", "100"]).await.expect_success();
    user
}

/// Every response is marked as deprecated, without a sunset date.
#[track_caller]
fn deprecated(reply: Reply) -> Reply {
    assert!(reply.header("deprecation").is_some_and(|date| date.starts_with('@')), "{reply}");
    assert!(reply.header("link").is_some_and(|link| link.contains("rel=\"deprecation\"")), "{reply}");
    assert_eq!(reply.header("sunset"), None);
    reply
}

async fn start_request(user: &User, canvas: &str, shots: usize) -> Value {
    let shots: Vec<Value> = (1..=shots).map(|shot| json!({"prompt": format!("Boots, view {shot}")})).collect();
    let now = user.canvas(canvas).await;
    json!({
        "canvasId": canvas, "baseRevision": now["revision"], "idempotencyKey": key(), "title": "Autumn",
        "plan": {"brief": "Boots", "shots": shots},
    })
}

async fn start(user: &User, canvas: &str, shots: usize) -> Value {
    let request = start_request(user, canvas, shots).await;
    deprecated(user.send("/campaigns/start", &request).await.expect(202)).json()["run"].clone()
}

#[tokio::test]
async fn a_plan_writes_nothing() {
    let stack = &legacy().await;
    let user = rich(stack).await;
    let canvas = user.make_canvas().await;
    let request = json!({"canvasId": canvas["id"], "brief": "Red boots in the rain", "shotCount": 8});
    let planned = deprecated(user.send("/campaigns/plan", &request).await).ok();
    let shots = planned["plan"]["shots"].as_array().expect("shots");
    assert_eq!((shots.len(), &planned["plan"]["brief"]), (8, &json!("Red boots in the rain")));
    assert!(shots.iter().all(|shot| text(shot, "/prompt").contains("Red boots in the rain")));
    assert_eq!(user.send("/campaigns/plan", &request).await.ok(), planned, "the same brief, the same plan");
    assert_eq!(user.canvas(text(&canvas, "/id")).await, canvas);
}

#[tokio::test]
async fn a_start_makes_a_target_and_a_job_for_each_shot() {
    let stack = &legacy().await;
    let user = rich(stack).await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let request = start_request(&user, &canvas, 3).await;
    let started = deprecated(user.send("/campaigns/start", &request).await.expect(202));
    let location = started.header("location").expect("a location").to_owned();
    let run = started.json()["run"].clone();
    assert_eq!((text(&run, "/status"), text(&run, "/title"), text(&run, "/brief")), ("queued", "Autumn", "Boots"));
    assert_eq!(run["canvasId"], format!("canvas:{}:{canvas}", user.uid));
    let shots = run["shots"].as_array().expect("shots");
    assert_eq!(shots.len(), 3);
    let nodes = user.canvas(&canvas).await["nodes"].as_array().cloned().expect("nodes");
    for (shot, node) in shots.iter().zip(&nodes) {
        assert_eq!((text(shot, "/status"), text(node, "/type")), ("queued", "image"));
        assert_eq!((&node["metadata"]["job"]["run"], shot.get("assetId")), (&shot["runHandle"], None));
        let job = user.get(&format!("/runs/{}", text(shot, "/runHandle"))).await.expect(202).json();
        assert_eq!((&job["operation"], &job["targets"]), (&json!("generate"), &json!([node["handle"]])));
    }
    let review = user.get(&format!("/canvases/{canvas}/review")).await.ok();
    assert_eq!(review["validation"]["findings"], json!([]));
    let again = user.send("/campaigns/start", &request).await.expect(202).json();
    assert_eq!((started.json().get("replayed"), &again["replayed"]), (None, &json!(true)));
    assert_eq!((&again["run"]["id"], &user.get(&location).await.ok()["run"]["id"]), (&run["id"], &run["id"]));
    assert_eq!(user.canvas(&canvas).await["nodes"].as_array().map(Vec::len), Some(3), "a replay starts nothing");
    let mut stale = start_request(&user, &canvas, 1).await;
    stale["baseRevision"] = request["baseRevision"].clone();
    user.send("/campaigns/start", &stale).await.expect_error(409, "conflict", &[]);
    // Without a title, and with the one that it then has.
    let mut untitled = start_request(&user, &canvas, 1).await;
    untitled.as_object_mut().expect("an object").remove("title");
    let first = user.send("/campaigns/start", &untitled).await.expect(202).json();
    untitled["title"] = first["run"]["title"].clone();
    let again = user.send("/campaigns/start", &untitled).await.expect(202).json();
    assert_eq!((&again["run"]["id"], &again["replayed"]), (&first["run"]["id"], &json!(true)));
    untitled["canvasId"] = json!("absent");
    user.send("/campaigns/start", &untitled).await.expect_error(404, "not_found", &[]);
}

#[tokio::test]
async fn a_campaign_is_read_listed_and_reviewed_by_its_account_alone() {
    let stack = &legacy().await;
    let (user, stranger) = (rich(stack).await, stack.user().await);
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let other = text(&user.make_canvas().await, "/id").to_owned();
    let (first, second) = (start(&user, &canvas, 2).await, start(&user, &other, 1).await);
    let ids = |reply: Value| {
        let runs = reply["runs"].as_array().cloned().expect("runs");
        assert!(reply.get("page").is_none());
        runs.into_iter().map(|run| run["id"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(ids(deprecated(user.get("/campaigns").await).ok()), [second["id"].clone(), first["id"].clone()]);
    assert_eq!(ids(user.get(&format!("/campaigns?canvasId={canvas}")).await.ok()), [first["id"].clone()]);
    assert_eq!(ids(stranger.get("/campaigns").await.ok()), [Value::Null; 0]);
    let path = format!("/campaigns/{}", text(&first, "/id"));
    assert_eq!(deprecated(user.get(&path).await).ok()["run"], first);
    deprecated(user.get(&path).header("accept", "*/*;q=0").await).expect_error(406, "request_failed", &[]);
    deprecated(stranger.get(&path).await).expect_error(404, "not_found", &[]);
    stranger.get(&format!("/campaigns?canvasId=canvas:{}:{canvas}", user.uid)).await.expect_error(
        404,
        "not_found",
        &[],
    );
    user.get("/campaigns/absent").await.expect_error(404, "not_found", &[]);
    let shot = |index: usize| first["shots"][index]["id"].clone();
    let decisions =
        json!({"decisions": [{"shotId": shot(0), "decision": "approve"}, {"shotId": shot(1), "decision": "reject"}]});
    let reviewed = user.send(&format!("{path}/review"), &decisions).await.ok();
    assert_eq!(reviewed["run"]["shots"][0]["decision"], "approve");
    assert_eq!(reviewed["run"]["shots"][1]["decision"], "reject");
    assert_eq!(user.get(&path).await.ok()["run"], reviewed["run"]);
    let unknown =
        json!({"decisions": [{"shotId": shot(0), "decision": "reject"}, {"shotId": "absent", "decision": "reject"}]});
    let refused = user.send(&format!("{path}/review"), &unknown).await;
    refused.expect_error(422, "unprocessable_entity", &["decisions[1].shotId"]);
    assert_eq!(user.get(&path).await.ok()["run"], reviewed["run"], "no decision was stored");
    stranger.send(&format!("{path}/review"), &decisions).await.expect_error(404, "not_found", &[]);
}

#[tokio::test]
async fn a_canceled_campaign_stops_and_stays_so() {
    let stack = &legacy().await;
    let user = rich(stack).await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let before = user.get("/auth/status").await.ok()["creditBalance"].clone();
    let run = start(&user, &canvas, 2).await;
    let path = format!("/campaigns/{}", text(&run, "/id"));
    let canceled = deprecated(user.delete(&path).await).ok();
    assert_eq!(canceled["run"]["status"], "canceled");
    let shots = canceled["run"]["shots"].as_array().expect("shots");
    assert!(shots.len() == 2 && shots.iter().all(|shot| shot["status"] == "canceled"), "{shots:?}");
    assert_eq!(user.delete(&path).await.ok(), canceled, "a finished one is unchanged");
    assert_eq!(user.get("/auth/status").await.ok()["creditBalance"], before, "the reservation was returned");
}

#[tokio::test]
async fn a_canceled_shot_takes_its_empty_node_along() {
    let stack = &legacy().await;
    let user = rich(stack).await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let run = start(&user, &canvas, 3).await;
    let mut shots = Vec::new();
    for shot in run["shots"].as_array().expect("shots") {
        let job = user.get(&format!("/runs/{}", text(shot, "/runHandle"))).await.expect(202).json();
        shots.push((text(shot, "/runHandle").to_owned(), text(&job, "/targets/0").to_owned()));
    }
    let node = |at: usize| shots[at].1.trim_start_matches("node:").to_owned();
    let changes = async |since: &Value| {
        user.get(&format!("/canvases/{canvas}/changes?since={}", since.as_str().expect("a revision"))).await.ok()
    };
    let connect = json!([{"type": "connection.create", "fromNodeId": node(1), "toNodeId": node(0)}]);
    user.apply(&canvas, connect).await;
    let before = user.canvas(&canvas).await["revision"].clone();
    // A job that ends in this request: one revision frees nothing and deletes the node with its connection.
    let path = format!("/runs/{}", shots[0].0);
    let canceled = user.delete(&format!("{path}?removeTargets=true")).await.ok();
    assert_eq!(canceled["status"], "canceled");
    assert_eq!(canceled["completionReview"]["delivery"]["nonDurableOutputHandles"], json!([]));
    let since = changes(&before).await;
    assert_eq!((&since["deletedNodeIds"], &since["changedNodeIds"]), (&json!([node(0)]), &json!([])));
    assert_eq!(since["deletedConnectionIds"].as_array().map(Vec::len), Some(1));
    assert_eq!(since["activity"].as_array().map(Vec::len), Some(1), "one revision: {since}");
    let after = user.canvas(&canvas).await;
    assert_eq!((&after["revision"], after["nodes"].as_array().map(Vec::len)), (&canceled["canvasRevision"], Some(2)));
    assert_eq!(user.delete(&format!("{path}?removeTargets=true")).await.ok(), canceled, "a repetition");
    assert_eq!(user.canvas(&canvas).await, after);
    // A job that ended before.
    let path = format!("/jobs/{}", shots[1].0.replace("run:", "job:"));
    let canceled = user.delete(&format!("{path}?removeTargets=false")).await.ok();
    assert_eq!(user.canvas(&canvas).await["nodes"].as_array().map(Vec::len), Some(2));
    assert_eq!(user.delete(&format!("{path}?removeTargets=true")).await.ok(), canceled, "the record is unchanged");
    let since = changes(&canceled["canvasRevision"]).await;
    assert_eq!(
        (&since["deletedNodeIds"], &since["activity"][0]["summary"]),
        (&json!([node(1)]), &json!("removed 1 empty target"))
    );
    // A node that was restored since was not made for the job.
    let path = format!("/runs/{}", shots[2].0);
    user.delete(&path).await.expect(200);
    user.apply(&canvas, json!([{"type": "node.delete", "nodeId": node(2)}])).await;
    user.apply(&canvas, json!([{"type": "node.restore", "nodeId": node(2)}])).await;
    user.delete(&format!("{path}?removeTargets=true")).await.expect(200);
    assert_eq!(user.canvas(&canvas).await["nodes"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn a_campaign_succeeds_when_every_shot_shows_its_image() {
    let stack = &Stack::builder().env("CANVAS_LEGACY_CAMPAIGNS", 1).image_workers(1).start().await;
    let user = rich(stack).await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let started = start(&user, &canvas, 2).await;
    let path = format!("/campaigns/{}", text(&started, "/id"));
    let run = testkit::wait_for("the end of a campaign", PATIENCE, async || {
        let run = user.get(&path).await.ok()["run"].clone();
        assert!(matches!(text(&run, "/status"), "queued" | "running" | "succeeded"), "{run}");
        Some(run).filter(|run| run["status"] == "succeeded")
    })
    .await;
    let shots = run["shots"].as_array().expect("shots");
    assert_eq!(shots.len(), 2);
    let nodes = user.canvas(&canvas).await["nodes"].as_array().cloned().expect("nodes");
    for ((shot, before), node) in shots.iter().zip(started["shots"].as_array().expect("shots")).zip(&nodes) {
        assert_eq!((&shot["id"], &shot["runHandle"]), (&before["id"], &before["runHandle"]));
        assert_eq!((&shot["status"], &shot["assetId"]), (&json!("succeeded"), &node["asset"]));
        let job = user.get(&format!("/runs/{}", text(shot, "/runHandle"))).await.ok();
        let image = json!([job["images"][0]["assetId"], job["images"][0]["nodeId"]]);
        assert_eq!(image, json!([shot["assetId"], node["handle"]]));
        let asset = user.get(&format!("/assets/{}", text(shot, "/assetId"))).await.ok();
        assert_eq!(asset["asset"]["handle"], shot["assetId"]);
    }
    assert_ne!(shots[0]["assetId"], shots[1]["assetId"]);
    assert_eq!(user.get("/auth/status").await.ok()["creditBalance"], 98, "one credit for each shot");
    let listed = user.get(&format!("/campaigns?canvasId={canvas}")).await.ok();
    assert_eq!(listed, json!({"runs": [run]}));
    assert_eq!(user.delete(&path).await.ok()["run"], run, "a finished one is unchanged");
}

#[tokio::test]
async fn every_shot_counts_as_an_active_job() {
    let stack = &Stack::builder().env("CANVAS_LEGACY_CAMPAIGNS", 1).env("CANVAS_ACTIVE_JOBS", 3).start().await;
    let (user, other) = (rich(stack).await, rich(stack).await);
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    start(&user, &canvas, 2).await;
    let before = user.canvas(&canvas).await;
    let mut over = start_request(&user, &canvas, 2).await;
    let refused = deprecated(user.send("/campaigns/start", &over).await);
    assert!(refused.header("retry-after").is_some(), "{refused}");
    refused.expect_error(429, "rate_limited", &[]);
    assert_eq!(user.canvas(&canvas).await, before, "all shots are started or none");
    // One start fills the account to its limit. The rejected start did not consume its key.
    over["plan"]["shots"].as_array_mut().expect("shots").truncate(1);
    user.send("/campaigns/start", &over).await.expect(202);
    let full = start_request(&user, &canvas, 1).await;
    user.send("/campaigns/start", &full).await.expect_error(429, "rate_limited", &[]);
    let theirs = text(&other.make_canvas().await, "/id").to_owned();
    let four = start_request(&other, &theirs, 4).await;
    other.send("/campaigns/start", &four).await.expect_error(429, "rate_limited", &[]);
    start(&other, &theirs, 3).await;
}

#[tokio::test]
async fn a_start_without_credit_is_402_and_changes_nothing() {
    let stack = &legacy().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let request = start_request(&user, text(&canvas, "/id"), 1).await;
    user.send("/campaigns/start", &request).await.expect_error(402, "payment_required", &[]);
    assert_eq!(user.canvas(text(&canvas, "/id")).await, canvas);
    assert_eq!(user.get("/campaigns").await.ok(), json!({"runs": []}));
}

#[tokio::test]
async fn bodies_are_judged() {
    let stack = &legacy().await;
    let user = rich(stack).await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    for (count, status) in [(0, 400), (1, 200), (8, 200), (9, 400)] {
        let request = json!({"canvasId": canvas, "brief": "b", "shotCount": count});
        user.send("/campaigns/plan", &request).await.expect(status);
    }
    let absent = json!({"canvasId": "absent", "brief": "b", "shotCount": 1});
    user.send("/campaigns/plan", &absent).await.expect_error(404, "not_found", &[]);
    for shots in [0, 9] {
        let request = start_request(&user, &canvas, shots).await;
        user.send("/campaigns/start", &request).await.expect_error(400, "input_validation_error", &["plan.shots"]);
    }
    let run = start(&user, &canvas, 1).await;
    // The first model of the account is then one of a vendor whose prompts are short.
    stack.connect_to(&user.uid, "runway", "https://127.0.0.1:9", "key").await;
    for (length, field) in [(1000, None), (1001, Some("plan.shots[0].prompt"))] {
        let mut request = start_request(&user, &canvas, 1).await;
        request["plan"]["shots"][0]["prompt"] = "p".repeat(length).into();
        request["validateOnly"] = true.into();
        let answer = user.send("/campaigns/start", &request).await;
        match field {
            None => drop(answer.expect(200)),
            Some(field) => drop(answer.expect_error(422, "unprocessable_entity", &[field])),
        }
    }
    let path = format!("/campaigns/{}/review", text(&run, "/id"));
    for wrong in [json!({}), json!({"decisions": []}), json!({"decisions": [{"shotId": "a", "decision": "maybe"}]})] {
        user.send(&path, &wrong).await.expect(400);
    }
    let refused = user.send("/campaigns/a%20b/review", &json!({"decisions": []})).await;
    refused.expect_error(400, "input_validation_error", &["decisions", "runId"]);
}

#[tokio::test]
async fn mutations_are_gone_and_reads_work() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    assert_eq!(deprecated(user.get("/campaigns").await).ok(), json!({"runs": []}));
    let id = "0198c5a0-0000-7000-8000-000000000001";
    deprecated(user.get(&format!("/campaigns/{id}")).await).expect_error(404, "not_found", &[]);
    // The retirement is reported after the credential and its scopes are checked, and before the body is read.
    for path in ["/campaigns/plan".to_owned(), "/campaigns/start".to_owned(), format!("/campaigns/{id}/review")] {
        deprecated(user.post(&path).await).expect_error(410, "gone", &[]);
        deprecated(stack.anonymous().post(&path).await).expect(401);
    }
    deprecated(user.delete(&format!("/campaigns/{id}")).await).expect_error(410, "gone", &[]);
    let reader = stack.user_with("canvas:read").await;
    deprecated(reader.post("/campaigns/plan").await).expect(403);
}
