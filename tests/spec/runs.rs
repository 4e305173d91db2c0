//! The list of runs and jobs (docs/reference/jobs.md#list-runs).

use e2e::api::{key, text};
use e2e::{Client, Stack, User, images};
use serde_json::{Value, json};

async fn listed(user: &Client, query: &str) -> Vec<Value> {
    let list = user.get(&format!("/runs{query}")).await.ok();
    list["runs"].as_array().expect("a list").clone()
}

async fn handles(user: &Client, query: &str) -> Vec<String> {
    listed(user, query).await.iter().map(|run| text(run, "/handle").to_owned()).collect()
}

async fn payer(stack: &Stack) -> User {
    let user = stack.user().await;
    stack.grant(&user.uid, 100).await;
    user
}

async fn resize(user: &User) -> Value {
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    user.start_resize(&canvas, json!({})).await
}

async fn generate(user: &User, canvas: &str, count: usize) -> Value {
    let mut targets = Vec::new();
    for _ in 0..count {
        targets.push(user.slot(canvas).await);
    }
    let revision = user.canvas(canvas).await["revision"].clone();
    let request = json!({"canvasId": canvas, "baseRevision": revision, "idempotencyKey": key(), "model": "sketch",
        "targetNodeIds": targets, "prompt": "a kite over the sea"});
    user.send("/images/generate", &request).await.expect(202).json()
}

async fn video(user: &User) -> Value {
    let request = json!({"model": "animatic", "prompt": "a kite over the sea", "idempotencyKey": key()});
    user.send("/videos/generate", &request).await.expect(202).json()
}

async fn recipe(user: &User, canvas: &str) -> Value {
    let product = user.upload("image/png", images::png(8, 8)).await;
    let revision = user.canvas(canvas).await["revision"].clone();
    let inputs = json!({"product": product["handle"], "offer": "a kite"});
    let request = json!({"canvasId": canvas, "baseRevision": revision, "idempotencyKey": key(), "inputs": inputs});
    user.send("/recipes/ad-copy-and-banner/runs", &request).await.expect(202).json()
}

#[tokio::test]
async fn every_kind_of_work_is_listed_newest_first_as_its_record_shows_it() {
    let stack = &Stack::with_workers().await;
    let user = payer(stack).await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    assert_eq!(user.get("/runs").await.ok()["runs"], json!([]));
    let started = [
        resize(&user).await,
        generate(&user, id, 2).await,
        video(&user).await,
        recipe(&user, text(&user.make_canvas().await, "/id")).await,
    ];
    let mut records = Vec::new();
    for work in &started {
        records.push(user.finished(work).await);
    }
    records.reverse();
    let runs = listed(&user, "").await;
    assert_eq!(runs.len(), 4, "the jobs of a Recipe run are part of it: {runs:?}");
    let expected = [
        ("recipe", "recipe", "Ad copy, then banner", 2, true),
        ("video", "generate", "a kite over the sea", 1, true),
        ("image", "generate", "a kite over the sea", 2, true),
        ("action", "action", "Resize", 1, false),
    ];
    for ((run, record), (kind, operation, title, outputs, stand_in)) in runs.iter().zip(&records).zip(expected) {
        let of_record = |name: &str| record.get(name).cloned().unwrap_or_default();
        // A video is a job and not a run.
        let handle = text(record, if kind == "video" { "/id" } else { "/run" });
        let canvas = if kind == "recipe" { of_record("canvasHandle") } else { of_record("canvasId") };
        let created = if kind == "image" || kind == "action" {
            record["timing"]["createdAt"].clone()
        } else {
            of_record("createdAt")
        };
        let mut wanted = json!({
            "id": record["rawId"], "handle": handle, "kind": kind, "operation": operation, "title": title,
            "results": assets_of(record), "status": "succeeded",
            "createdAt": created, "updatedAt": run["updatedAt"], "creditCost": record["creditCost"],
            "outputs": {"total": outputs, "done": outputs, "failed": 0}, "standIn": stand_in,
        });
        if !canvas.is_null() {
            wanted["canvasId"] = canvas;
        }
        if let "image" | "video" = kind {
            wanted["model"] = if kind == "image" { json!("sketch") } else { json!("animatic") };
        }
        assert_eq!(*run, wanted);
        assert_eq!(record["standIn"], stand_in, "{record}");
        if record.get("updatedAt").is_some() {
            assert_eq!(run["updatedAt"], record["updatedAt"]);
        }
        let path = if kind == "video" { "jobs" } else { "runs" };
        user.get(&format!("/{path}/{handle}")).await.expect(200);
    }
}

/// The assets of the outputs of a record.
fn assets_of(record: &Value) -> Vec<Value> {
    let outputs = record["images"].as_array().or(record["outputs"].as_array()).into_iter().flatten();
    outputs.filter_map(|output| output.get("assetId").cloned()).collect()
}

#[tokio::test]
async fn a_title_has_at_most_120_characters_in_one_line() {
    let stack = &Stack::without_workers().await;
    let user = payer(stack).await;
    for (prompt, title) in [
        ("é".repeat(119), "é".repeat(119)),
        ("é".repeat(120), "é".repeat(120)),
        ("é".repeat(121), "é".repeat(120)),
        ("A kite\n\n  over\tthe sea ".to_owned(), "A kite over the sea".to_owned()),
    ] {
        let request = json!({"model": "animatic", "prompt": prompt, "idempotencyKey": key()});
        user.send("/videos/generate", &request).await.expect(202);
        assert_eq!(listed(&user, "?limit=1").await[0]["title"], title);
    }
}

#[tokio::test]
async fn a_chain_is_named_after_its_actions_and_variations_without_prompt_after_the_operation() {
    let stack = &Stack::without_workers().await;
    let user = payer(stack).await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let image = user.upload_into(&canvas, "image/png", images::png(40, 30)).await;
    let revision = async || user.canvas(&canvas).await["revision"].clone();
    let steps = json!([{"action": "rotate", "params": {"degrees": 90}}, {"action": "resize", "params": {"width": 20}}]);
    let chain = json!({"canvasId": canvas, "baseRevision": revision().await, "idempotencyKey": key(), "place": {},
        "inputs": [image["handle"]], "steps": steps});
    user.send("/actions/runs", &chain).await.expect(202);
    let run = &listed(&user, "?kind=action").await[0];
    assert_eq!((&run["title"], run.get("model")), (&json!("Rotate, Resize"), None));
    let variations = json!({"canvasId": canvas, "baseRevision": revision().await, "idempotencyKey": key(), "place": {},
        "model": "sketch", "source": image["handle"]});
    user.send("/images/variations", &variations).await.expect(202);
    assert_eq!(listed(&user, "?kind=image").await[0]["title"], "variations");
}

#[tokio::test]
async fn at_most_four_results_are_listed_and_those_alone_that_the_caller_can_read() {
    let stack = &Stack::with_workers().await;
    let (owner, editor) = (stack.user().await, payer(stack).await);
    let canvas = owner.make_canvas().await;
    let (id, handle) = (text(&canvas, "/id"), text(&canvas, "/handle"));
    stack.share(&owner, id, &editor.uid, "editor").await;
    let work = generate(&editor, handle, 4).await;
    let record = editor.finished(&work).await;
    let made = assets_of(&record);
    let results = async || listed(&editor, "").await[0]["results"].clone();
    assert_eq!((made.len(), results().await), (4, json!(made)));
    // No start asks for more than four images.
    sqlx::query(
        "UPDATE jobs SET outcome = jsonb_set(outcome, '{images}', outcome -> 'images' || (outcome #> '{images,3}'))
         WHERE id = $1::uuid",
    )
    .bind(text(&work, "/rawId"))
    .execute(stack.pool())
    .await
    .expect("adds a fifth");
    assert_eq!(results().await, json!(made));
    // What is deleted is left out.
    let second = text(&record, "/images/1/assetId").rsplit(':').next().expect("an id");
    sqlx::query("DELETE FROM assets WHERE owner_uid = $1 AND id = $2")
        .bind(&owner.uid)
        .bind(second)
        .execute(stack.pool())
        .await
        .expect("deletes");
    assert_eq!(results().await, json!([made[0], made[2], made[3], made[3]]));
    // The images belong to the owner of the canvas.
    stack.share(&owner, id, &editor.uid, "none").await;
    assert_eq!(results().await, json!([]));
}

#[tokio::test]
async fn a_failed_output_is_counted() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let broken = user.upload("image/png", images::broken_png(20, 20)).await;
    let target = user.slot(&canvas).await;
    let request = user.resize_request(&canvas, &target, text(&broken, "/handle")).await;
    let job = user.send("/actions/resize/runs", &request).await.expect(202).json();
    user.finished(&job).await;
    let runs = listed(&user, "?status=failed").await;
    assert_eq!(runs[0]["outputs"], json!({"total": 1, "done": 0, "failed": 1}));
    assert_eq!(listed(&user, "?status=succeeded").await, [json!(null); 0]);
}

/// Moves the record of a terminal job into the past.
async fn pass(stack: &Stack, job: &Value, seconds: f64) {
    sqlx::query("UPDATE jobs SET retain_until = retain_until - make_interval(secs => $2) WHERE id = $1::uuid")
        .bind(text(job, "/rawId"))
        .bind(seconds)
        .execute(stack.pool())
        .await
        .expect("passes");
}

#[tokio::test]
async fn a_list_does_not_start_the_retention_window_and_applies_it() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let job = resize(&user).await;
    let run =
        testkit::wait_for("the end of the job", e2e::PATIENCE, async || listed(&user, "?status=succeeded").await.pop())
            .await;
    let finalized: Option<bool> = sqlx::query_scalar("SELECT finalized_at IS NOT NULL FROM jobs WHERE id = $1::uuid")
        .bind(text(&job, "/rawId"))
        .fetch_one(stack.pool())
        .await
        .expect("is stored");
    assert_eq!(finalized, Some(false));
    // The defaults: a day unread, then a week as a tombstone.
    pass(stack, &job, 86_400.0).await;
    assert_eq!(listed(&user, "?status=succeeded").await, [json!(null); 0]);
    let expired = listed(&user, "?status=expired").await;
    assert_eq!((&expired[0]["id"], &expired[0]["outputs"]), (&run["id"], &run["outputs"]));
    assert_eq!(user.get(&format!("/runs/{}", text(&run, "/handle"))).await.ok()["status"], "expired");
    pass(stack, &job, 604_800.0).await;
    assert_eq!(listed(&user, "").await, [json!(null); 0]);
    user.get(&format!("/runs/{}", text(&run, "/handle"))).await.expect_error(404, "not_found", &[]);
}

#[tokio::test]
async fn a_list_is_filtered_by_kind_status_and_canvas() {
    let stack = &Stack::without_workers().await;
    let user = payer(stack).await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let (action, image, video) = (resize(&user).await, generate(&user, id, 1).await, video(&user).await);
    let run = recipe(&user, text(&user.make_canvas().await, "/id")).await;
    let canceled = generate(&user, id, 1).await;
    user.delete(text(&canceled, "/pollUrl")).await.expect(200);
    let [action, image, run, canceled] = [action, image, run, canceled].map(|work| text(&work, "/run").to_owned());
    let video = text(&video, "/id").to_owned();
    for (query, expected) in [
        ("".to_owned(), vec![&canceled, &run, &video, &image, &action]),
        ("?kind=action".into(), vec![&action]),
        ("?kind=image".into(), vec![&canceled, &image]),
        ("?kind=video".into(), vec![&video]),
        ("?kind=recipe".into(), vec![&run]),
        ("?status=queued".into(), vec![&run, &video, &image, &action]),
        ("?status=canceled".into(), vec![&canceled]),
        ("?status=preparing".into(), vec![]),
        ("?kind=image&status=queued".into(), vec![&image]),
        (format!("?canvasId={id}"), vec![&canceled, &image]),
        (format!("?canvasId=canvas:{id}&status=canceled"), vec![&canceled]),
        (format!("?canvasId={}&kind=recipe", text(&canvas, "/handle")), vec![]),
        (format!("?canvasId={id}&ownerUid={}", user.uid), vec![&canceled, &image]),
        ("?foreign=1".into(), vec![&canceled, &run, &video, &image, &action]),
    ] {
        assert_eq!(handles(&user, &query).await, expected.into_iter().cloned().collect::<Vec<_>>(), "{query}");
    }
    let outputs = &listed(&user, "?status=canceled").await[0]["outputs"];
    assert_eq!(*outputs, json!({"total": 1, "done": 0, "failed": 0}), "canceled is not failed");
}

#[tokio::test]
async fn what_no_filter_can_be_is_refused_by_its_name() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    for (query, field) in [
        ("kind=sound", "kind"),
        ("kind=", "kind"),
        ("kind=image&kind=image", "kind"),
        ("status=done", "status"),
        ("status=Queued", "status"),
        ("canvasId=a%20b", "canvasId"),
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("cursor=x", "cursor"),
    ] {
        user.get(&format!("/runs?{query}")).await.expect_error(400, "input_validation_error", &[field]);
    }
    let all = user.get("/runs?kind=x&status=x&limit=x").await;
    all.expect_error(400, "input_validation_error", &["kind", "status", "limit"]);
    user.get("/runs?limit=1").await.expect(200);
    user.get("/runs?limit=100").await.expect(200);
    user.get("/runs?canvasId=absent").await.expect_error(404, "not_found", &[]);
    let other = stack.user().await.make_canvas().await;
    let foreign = format!("/runs?canvasId={}", text(&other, "/handle"));
    user.get(&foreign).await.expect_error(404, "not_found", &[]);
}

#[tokio::test]
async fn a_list_is_walked_by_cursor() {
    let stack = &Stack::without_workers().await;
    let user = payer(stack).await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    for _ in 0..2 {
        resize(&user).await;
        video(&user).await;
    }
    recipe(&user, &canvas).await;
    let whole = handles(&user, "").await;
    assert_eq!(whole.len(), 5);
    let mut walked = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = user.get(&format!("/runs?limit=2{cursor}")).await.ok();
        assert_eq!(page["page"]["limit"], 2);
        walked.extend(page["runs"].as_array().expect("a list").iter().map(|run| text(run, "/handle").to_owned()));
        // What is started in the meantime does not shift the pages.
        video(&user).await;
        match page["page"]["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(walked, whole);
    let page = user.get("/runs?limit=1").await.ok();
    let cursor = text(&page, "/page/nextCursor");
    let filtered = user.get(&format!("/runs?kind=video&cursor={cursor}")).await;
    filtered.expect_error(400, "input_validation_error", &["cursor"]);
    let other = stack.user().await.get(&format!("/runs?cursor={cursor}")).await;
    other.expect_error(400, "input_validation_error", &["cursor"]);
}

#[tokio::test]
async fn a_list_holds_the_callers_own_work_alone() {
    let stack = &Stack::without_workers().await;
    let (owner, editor) = (stack.user().await, payer(stack).await);
    let canvas = owner.make_canvas().await;
    stack.share(&owner, text(&canvas, "/id"), &editor.uid, "editor").await;
    let handle = text(&canvas, "/handle");
    let work = generate(&editor, handle, 1).await;
    let of_canvas = format!("?canvasId={handle}");
    assert_eq!(handles(&editor, &of_canvas).await, [text(&work, "/run")]);
    assert_eq!(listed(&owner, &of_canvas).await, [json!(null); 0], "also of the owner of the canvas");
    let narrow = stack.user_with("canvas:read,asset:read").await;
    narrow.get("/runs").await.expect_error(403, "forbidden", &[]);
    stack.anonymous().get("/runs").await.expect_error(401, "unauthorized", &[]);
}
