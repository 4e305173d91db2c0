//! Images: which starts are accepted (docs/reference/images.md). Without workers, accepted jobs stay queued.

mod credit;
mod guidance;
mod invalid;
mod masks;
mod models;
mod setting;
mod unprocessable;

use e2e::Stack;
use e2e::api::{key, text};
use futures_util::future::join_all;
use serde_json::{Value, json};
use uuid::Uuid;

use self::setting::Setting;

#[tokio::test]
async fn a_generation_is_accepted_as_202_with_its_record() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack).await;
    let user = &setting.user;
    let before = user.canvas(&setting.canvas).await;
    for operation in ["generate", "edit", "variations"] {
        let target = user.slot(&setting.canvas).await;
        let more = json!({"targetNodeId": format!("node:{target}"), "source": setting.asset});
        let reply = setting.start(operation, more).await.expect(202);
        let job = reply.json();
        let uuid = text(&job, "/rawId");
        assert!(Uuid::parse_str(uuid).is_ok());
        assert_eq!((text(&job, "/id"), text(&job, "/run")), (&*format!("job:{uuid}"), &*format!("run:{uuid}")));
        assert_eq!(text(&job, "/pollUrl"), format!("/api/canvas-agent/v1/runs/{uuid}"));
        assert_eq!(reply.header("location"), Some(text(&job, "/pollUrl")));
        assert_eq!(
            (&job["kind"], &job["operation"], &job["status"]),
            (&json!("image"), &json!(operation), &json!("queued"))
        );
        assert_eq!(job["targets"], json!([format!("node:{target}")]));
        assert_eq!(job["references"], json!([setting.asset]));
        assert_eq!(job["referenceInputs"], json!([{"handle": setting.asset}]));
        assert_eq!(text(&job, "/canvasId"), format!("canvas:{}:{}", user.uid, setting.canvas));
        assert_eq!(text(&job, "/canvasUrl"), format!("{}/c/{}/{}", stack.origin(0), user.uid, setting.canvas));
        assert_ne!(job["canvasRevision"], before["revision"]);
        assert!(job["estimatedSeconds"].as_i64() >= Some(1) && job["creditCost"].as_i64() >= Some(1), "{job}");
        assert!(job["timing"]["createdAt"].is_string() && job["timing"]["queuedAt"].is_string());
        for absent in ["images", "failure", "actionId", "actionVersion", "completionReview", "webhook", "replayed"] {
            assert!(job.get(absent).is_none(), "{absent}: {job}");
        }
        let read = user.get(text(&job, "/pollUrl")).await.expect(202);
        assert_eq!((read.header("retry-after"), read.json()), (Some("1"), job.clone()));
        assert_eq!(user.get(&format!("/jobs/{}", text(&job, "/id"))).await.expect(202).json(), job);

        let read = user.get(&format!("/canvases/{}", setting.canvas)).await.ok();
        assert_eq!(read["canvas"]["revision"], job["canvasRevision"]);
        let started = &read["activity"][0];
        assert_eq!((&started["type"], &started["nodeIds"]), (&json!("job.started"), &json!([target])));
        assert!(!text(started, "/summary").contains("chair"), "no prompt text: {started}");
        let node = setting.read(&target).await;
        assert_eq!(
            (&node["metadata"]["job"]["id"], &node["metadata"]["job"]["status"]),
            (&job["id"], &json!("queued"))
        );
        assert!(node.get("asset").is_none() && node["metadata"].get("provenance").is_none(), "{node}");
    }
}

#[tokio::test]
async fn several_targets_are_one_job_and_one_revision() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack).await;
    let mut targets = vec![setting.target.clone()];
    for _ in 1..4 {
        targets.push(setting.user.slot(&setting.canvas).await);
    }
    targets.reverse();
    let before = setting.user.canvas(&setting.canvas).await;
    let job = setting.job("generate", json!({"targetNodeId": null, "targetNodeIds": targets, "count": 4})).await;
    let handles: Vec<String> = targets.iter().map(|target| format!("node:{target}")).collect();
    assert_eq!(job["targets"], json!(handles), "in the order of the request");
    let path = format!("/canvases/{}/changes?since={}", setting.canvas, text(&before, "/revision"));
    let changes = setting.user.get(&path).await.ok();
    assert_eq!((&changes["revision"], &changes["complete"]), (&job["canvasRevision"], &json!(true)));
    let mut changed: Vec<&str> =
        changes["changedNodeIds"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    changed.sort_unstable();
    targets.sort_unstable();
    assert_eq!(changed, targets);
    assert_eq!(changes["activity"].as_array().map(Vec::len), Some(1), "{changes}");
    // No other job can use a target until the job is over.
    for target in &targets {
        setting.start("generate", json!({"targetNodeId": target})).await.expect_error(409, "conflict", &[]);
    }
}

#[tokio::test]
async fn what_a_target_shows_does_not_matter() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack).await;
    let shown = setting.image().await;
    // A node's image can be the source of its replacement.
    let job = setting.job("edit", json!({"targetNodeId": shown, "source": shown})).await;
    assert_eq!((&job["targets"], &job["references"]), (&json!([shown]), &json!([shown])));
    let node = setting.read(&shown).await;
    assert!(node["asset"].is_string(), "it keeps its image until the job is over: {node}");
}

#[tokio::test]
async fn a_start_with_a_webhook_shows_it_to_those_who_manage_jobs() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack).await;
    let webhook = json!({"url": "https://example.com/hook", "secret": "s".repeat(32)});
    let request = setting.request(json!({"webhook": webhook})).await;
    let job = setting.user.send("/images/generate", &request).await.expect(202).json();
    assert_eq!((&job["webhook"]["status"], &job["webhook"]["attempts"]), (&json!("pending"), &json!(0)), "{job}");
    assert!(!job.to_string().contains("example.com"), "the endpoint is never returned");
    let account = e2e::Account { uid: setting.user.uid.clone(), email: String::new() };
    let other = stack.user_of(&account, "canvas:read,canvas:write,asset:read,image:generate").await;
    let replay = other.send("/images/generate", &request).await.expect(202).json();
    assert_eq!((&replay["id"], &replay["replayed"]), (&job["id"], &json!(true)));
    assert!(replay.get("webhook").is_none(), "{replay}");
}

#[tokio::test]
async fn an_equal_start_is_replayed_and_starts_nothing() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::with_credits(stack, 1).await;
    let request = setting.request(json!({})).await;
    let starts = (0..5).map(|_| async { setting.user.send("/images/generate", &request).await.expect(202).json() });
    let starts = join_all(starts).await;
    assert!(starts.iter().all(|job| job["id"] == starts[0]["id"]), "one job");
    assert_eq!(starts.iter().filter(|job| job["replayed"] == true).count(), 4);
    assert_eq!(setting.balance().await, 0, "paid once");
    // A replay checks neither the revision, the targets nor the credit.
    let again = setting.user.send("/images/generate", &request).await.expect(202);
    assert_eq!((&again.json()["id"], &again.json()["replayed"]), (&starts[0]["id"], &json!(true)));
    assert_eq!(again.header("location"), Some(text(&starts[0], "/pollUrl")));
}

#[tokio::test]
async fn two_spellings_of_a_request_are_one() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack).await;
    let id = setting.asset.rsplit(':').next().expect("an id");
    let references = |handle: String| json!([{"handle": handle, "role": "style"}, setting.asset.clone()]);
    let other = setting.assets(1).await.remove(0);
    let request = setting.request(json!({"references": references(format!("asset:{other}"))})).await;
    let job = setting.user.send("/images/edit", &request).await.expect(202).json();
    assert_eq!(
        job["references"],
        json!([format!("asset:{}:{other}", setting.user.uid), setting.asset]),
        "in their full form"
    );
    let mut spelled = request.clone();
    spelled["canvasId"] = json!(format!("canvas:{}:{}", setting.user.uid, setting.canvas));
    spelled["targetNodeId"] = json!(format!("node:{}", setting.target));
    spelled["references"] =
        json!([{"handle": format!("asset:{}:{other}", setting.user.uid), "role": "style"}, format!("asset:{id}")]);
    let replay = setting.user.send("/images/edit", &spelled).await.expect(202).json();
    assert_eq!((&replay["id"], &replay["replayed"]), (&job["id"], &json!(true)));
    // Members that equal their default.
    spelled["count"] = json!(1);
    spelled["elements"] = json!([]);
    let replay = setting.user.send("/images/edit", &spelled).await.expect(202).json();
    assert_eq!((&replay["id"], &replay["replayed"]), (&job["id"], &json!(true)));
}

#[tokio::test]
async fn a_key_belongs_to_one_request() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack).await;
    let request = setting.request(json!({"source": setting.asset})).await;
    // A rejected start does not consume its key.
    let mut refused = request.clone();
    refused["size"] = json!("7x7");
    setting.user.send("/images/edit", &refused).await.expect_error(422, "unprocessable_entity", &["size"]);
    setting.user.send("/images/edit", &request).await.expect(202);
    setting.user.send("/images/generate", &request).await.expect_error(409, "conflict", &[]);
    for (field, other) in [
        ("prompt", json!("A table")),
        ("source", json!(format!("{}x", setting.asset))),
        ("model", json!("sketch")),
        ("size", json!("1024x1024")),
        ("webhook", json!({"url": "https://example.com/", "secret": "s".repeat(32)})),
    ] {
        let mut changed = request.clone();
        changed[field] = other;
        setting.user.send("/images/edit", &changed).await.expect_error(409, "conflict", &[]);
    }
    // Access to the canvas comes before the key.
    let owned = Setting::new(stack).await;
    let mut elsewhere = request.clone();
    for canvas in ["absent".to_owned(), format!("canvas:{}:{}", owned.user.uid, owned.canvas)] {
        elsewhere["canvasId"] = json!(canvas);
        setting.user.send("/images/edit", &elsewhere).await.expect_error(404, "not_found", &[]);
    }
    stack.share(&owned.user, &owned.canvas, &setting.user.uid, "viewer").await;
    setting.user.send("/images/edit", &elsewhere).await.expect_error(403, "forbidden", &[]);
}

#[tokio::test]
async fn a_member_pays_for_what_they_start_on_a_shared_canvas() {
    let stack = &Stack::without_workers().await;
    let (owned, member) = (Setting::with_credits(stack, 0).await, Setting::with_credits(stack, 5).await);
    let image = owned.image().await;
    let (own_element, their_element) =
        (member.element(json!({"guidelines": "Soft light."})).await, owned.element(json!({"guidelines": "No."})).await);
    let handle = format!("canvas:{}:{}", owned.user.uid, owned.canvas);
    let request = async |more: Value| {
        let mut request = owned.request(more).await;
        request["canvasId"] = json!(handle);
        request
    };
    let start = async |more: Value| member.user.send("/images/edit", &request(more).await).await;
    start(json!({"source": image})).await.expect_error(404, "not_found", &[]);
    stack.share(&owned.user, &owned.canvas, &member.user.uid, "viewer").await;
    start(json!({"source": image})).await.expect_error(403, "forbidden", &[]);
    stack.share(&owned.user, &owned.canvas, &member.user.uid, "editor").await;
    start(json!({"source": image, "elements": [their_element]})).await.expect_error(
        422,
        "unprocessable_entity",
        &["elements[0]"],
    );
    let theirs = format!("asset:{}:{}", owned.user.uid, owned.assets(1).await[0]);
    start(json!({"source": theirs})).await.expect_error(422, "unprocessable_entity", &["source"]);
    let job = start(json!({"source": image, "references": [member.asset], "elements": [own_element]})).await;
    let job = job.expect(202).json();
    assert_eq!(job["references"], json!([member.asset, image]));
    assert_eq!((owned.balance().await, member.balance().await), (0, 4));
    owned.user.get(text(&job, "/pollUrl")).await.expect_error(404, "not_found", &[]);
    assert_eq!(member.user.get(text(&job, "/pollUrl")).await.expect(202).json(), job);
    // Keys are scoped to the account.
    let mut theirs = owned.request(json!({"targetNodeId": owned.user.slot(&owned.canvas).await})).await;
    theirs["idempotencyKey"] = json!(key());
    owned.user.send("/images/generate", &theirs).await.expect_error(402, "payment_required", &[]);
}
