//! Operator commands on work and data: `admin job` and `admin canvas|asset|account purge` (docs/reference/command-line.md).

use std::time::{Duration, Instant};

use e2e::api::{key, text};
use e2e::{Stack, User, images};
use serde_json::{Value, json};
use uuid::Uuid;

async fn canvas_of(user: &User) -> String {
    text(&user.make_canvas().await, "/id").to_owned()
}

/// A queued resize on a new canvas.
async fn queued(user: &User) -> Value {
    let canvas = canvas_of(user).await;
    user.start_resize(&canvas, json!({})).await
}

async fn listed(stack: &Stack, filters: &[&str]) -> Vec<Value> {
    let answer = stack.admin(&[&["admin", "job", "list"], filters].concat()).await.expect_success();
    answer["jobs"].as_array().cloned().expect("a list")
}

fn ids(jobs: &[Value]) -> Vec<&Value> {
    jobs.iter().map(|job| &job["id"]).collect()
}

#[tokio::test]
async fn jobs_are_listed_by_account_and_state() {
    let stack = &Stack::builder().shared().await;
    let (user, other) = (stack.user().await, stack.user().await);
    let (first, second) = (queued(&user).await, queued(&user).await);
    queued(&other).await;
    let all = listed(stack, &["--account", &user.uid]).await;
    assert_eq!(ids(&all), [&second["id"], &first["id"]], "newest first, of this account only");
    let entry = &all[1];
    assert_eq!(
        (&entry["account"], &entry["kind"], &entry["operation"], &entry["status"], &entry["canvas"]),
        (&json!(user.uid), &json!("action"), &json!("action"), &json!("queued"), &first["canvasId"])
    );
    assert_eq!((&entry["task"], &entry["claims"], &entry["worker"]), (&json!("ready"), &json!(0), &Value::Null));
    assert!(entry["createdAt"].is_string() && entry["completedAt"].is_null(), "{entry}");
    user.delete(text(&first, "/pollUrl")).await.expect(200);
    for (status, expected) in [("queued", vec![&second["id"]]), ("active", vec![&second["id"]]), ("failed", vec![])] {
        assert_eq!(ids(&listed(stack, &["--account", &user.uid, "--status", status]).await), expected, "{status}");
    }
    let canceled = listed(stack, &["--account", &user.uid, "--status", "canceled"]).await;
    assert_eq!(ids(&canceled), [&first["id"]]);
    assert_eq!(canceled[0]["task"], Value::Null, "it has no task anymore");
    assert!(listed(stack, &[]).await.len() >= 3);
}

#[tokio::test]
async fn a_job_is_shown_with_all_that_is_known_of_it() {
    let stack = &Stack::builder().shared().await;
    let user = stack.user().await;
    let job = queued(&user).await;
    for name in [text(&job, "/id"), text(&job, "/run"), text(&job, "/rawId")] {
        let shown = stack.admin(&["admin", "job", "show", name]).await.expect_success();
        assert_eq!((&shown["job"]["id"], &shown["document"]["run"]), (&job["id"], &job["run"]), "{name}");
        let history = shown["history"].as_array().expect("a history");
        assert_eq!((history.len(), &history[0]["status"]), (1, &json!("queued")));
        assert_eq!(shown["submits"], json!([]));
    }
    // `admin job show` must also show a job whose request is malformed.
    sqlx::query("UPDATE jobs SET request = '{}' WHERE id = $1")
        .bind(text(&job, "/rawId").parse::<Uuid>().expect("a UUID"))
        .execute(stack.pool())
        .await
        .expect("makes it unreadable");
    let shown = stack.admin(&["admin", "job", "show", text(&job, "/id")]).await.expect_success();
    assert!(shown["document"].is_null() && shown["unreadable"].is_string(), "{shown}");
}

#[tokio::test]
async fn a_job_is_canceled_as_its_account_could() {
    let stack = &Stack::builder().shared().await;
    let user = stack.user().await;
    let job = queued(&user).await;
    let cancel = async || stack.admin(&["admin", "job", "cancel", text(&job, "/id")]).await.expect_success();
    for _ in 0..2 {
        assert_eq!(cancel().await, json!({"id": job["id"], "status": "canceled"}), "a second cancel changes nothing");
    }
    let record = user.get(text(&job, "/pollUrl")).await.ok();
    assert_eq!((&record["status"], &record["cancelReason"]), (&json!("canceled"), &json!("user_requested")));
}

#[tokio::test]
async fn canceling_a_job_wakes_those_who_wait_for_it() {
    let stack = &Stack::builder().shared().await;
    /// Without a notification, a wait checks the database every 5 s while Redis is available.
    const AT_ONCE: Duration = Duration::from_secs(2);
    let user = stack.user().await;
    // With the second URL the command cannot reach Redis, so the wait finds the change by polling.
    for (redis, soon) in
        [(None, AT_ONCE), (Some(("CANVAS_REDIS_URL", "redis://127.0.0.1:1/0")), Duration::from_secs(8))]
    {
        let job = queued(&user).await;
        let waiting = async {
            let reply = user.get(text(&job, "/pollUrl")).header("prefer", "wait=30").await.ok();
            (reply["status"].clone(), Instant::now())
        };
        let canceling = async {
            // The wait has begun and has checked once.
            tokio::time::sleep(Duration::from_secs(1)).await;
            let arguments = ["admin", "job", "cancel", text(&job, "/id")];
            stack.admin_in(&arguments, "", redis.as_slice()).await.expect_success();
            Instant::now()
        };
        let ((status, woken), done) = tokio::join!(waiting, canceling);
        assert_eq!(status, "canceled");
        let late = woken.saturating_duration_since(done);
        assert!(late < soon, "woken {late:?} after the command, with {redis:?}");
    }
}

#[tokio::test]
async fn all_jobs_of_an_account_are_canceled() {
    let stack = &Stack::builder().shared().await;
    let (user, other) = (stack.user().await, stack.user().await);
    let (first, second, others) = (queued(&user).await, queued(&user).await, queued(&other).await);
    let answer = stack.admin(&["admin", "job", "cancel", "--account", &user.uid]).await.expect_success();
    let canceled = |job: &Value| json!({"id": job["id"], "status": "canceled"});
    assert_eq!(answer, json!({"jobs": [canceled(&first), canceled(&second)]}));
    assert_eq!(other.get(text(&others, "/pollUrl")).await.expect(202).json()["status"], "queued");
    let again = stack.admin(&["admin", "job", "cancel", "--account", &user.uid]).await.expect_success();
    assert_eq!(again, json!({"jobs": []}));
}

#[tokio::test]
async fn what_is_no_job_is_refused() {
    let stack = &Stack::builder().shared().await;
    let absent = format!("job:{}", Uuid::new_v4());
    for id in [absent.as_str(), "run:x", "", "asset:a:b"] {
        stack.admin(&["admin", "job", "show", id]).await.expect_refusal();
        stack.admin(&["admin", "job", "cancel", id]).await.expect_refusal();
    }
    stack.admin(&["admin", "job", "list", "--status", "done"]).await.expect_refusal();
    stack.admin(&["admin", "job", "list", "--account", "nobody"]).await.expect_refusal();
    stack.admin(&["admin", "job", "cancel"]).await.expect_misuse();
    stack.admin(&["admin", "job", "cancel", &absent, "--account", "a"]).await.expect_misuse();
}

#[tokio::test]
async fn an_asset_is_purged() {
    let stack = &Stack::builder().shared().await;
    let user = stack.user().await;
    let canvas = canvas_of(&user).await;
    let asset = user.upload_into(&canvas, "image/png", images::png(40, 30)).await;
    let handle = text(&asset, "/handle");
    let purge = ["admin", "asset", "purge", "--asset", handle, "--yes"];
    let purged = stack.admin(&purge).await.expect_success();
    assert_eq!(purged, json!({"asset": handle, "purged": true, "bytes": asset["bytes"]}));
    user.get(&format!("/assets/{handle}")).await.expect_error(404, "not_found", &[]);
    stack.anonymous().get(text(&asset, "/previewUrl")).await.expect_error(404, "not_found", &[]);
    assert_eq!(user.canvas(&canvas).await["nodes"][0]["asset"], handle, "the node keeps the handle of its asset");
    stack.admin(&purge).await.expect_refusal();
    stack.admin(&["admin", "asset", "purge", "--asset", "asset", "--yes"]).await.expect_refusal();
}

async fn purge_canvas(stack: &Stack, handle: &str, more: &[&str]) -> e2e::Admin {
    stack.admin(&[&["admin", "canvas", "purge", "--canvas", handle, "--yes"], more].concat()).await
}

#[tokio::test]
async fn a_canvas_is_purged_with_what_is_stored_in_it() {
    let stack = &Stack::builder().shared().await;
    let (user, member) = (stack.user().await, stack.user().await);
    let (canvas, kept) = (canvas_of(&user).await, canvas_of(&user).await);
    stack.share(&user, &canvas, &member.uid, "editor").await;
    let stored = user.upload_into(&canvas, "image/png", images::png(40, 30)).await;
    let own = user.upload("image/png", images::png(40, 31)).await;
    let handle = format!("canvas:{}:{canvas}", user.uid);
    let purged = purge_canvas(stack, &handle, &[]).await.expect_success();
    assert_eq!(purged, json!({"canvas": handle, "purged": true, "nodes": 1, "assets": 1}));
    for reader in [&user, &member] {
        reader.get(&format!("/canvases/{handle}")).await.expect_error(404, "not_found", &[]);
    }
    user.get(&format!("/assets/{}", text(&stored, "/handle"))).await.expect_error(404, "not_found", &[]);
    user.get(&format!("/assets/{}", text(&own, "/handle"))).await.ok();
    user.canvas(&kept).await;
    purge_canvas(stack, &handle, &[]).await.expect_refusal();
    purge_canvas(stack, &canvas, &[]).await.expect_refusal();
}

#[tokio::test]
async fn a_canvas_with_work_under_way_is_purged_only_when_it_is_canceled() {
    let stack = &Stack::builder().shared().await;
    let (user, editor) = (stack.user().await, stack.user().await);
    let canvas = canvas_of(&user).await;
    stack.share(&user, &canvas, &editor.uid, "editor").await;
    let handle = format!("canvas:{}:{canvas}", user.uid);
    let job = editor.start_resize(&handle, json!({})).await;
    assert!(purge_canvas(stack, &handle, &[]).await.expect_refusal().contains("--cancel-jobs"));
    user.canvas(&canvas).await;
    purge_canvas(stack, &handle, &["--cancel-jobs"]).await.expect_success();
    user.get(&format!("/canvases/{canvas}")).await.expect_error(404, "not_found", &[]);
    assert_eq!(editor.get(text(&job, "/pollUrl")).await.ok()["status"], "canceled");
}

async fn purge_account(stack: &Stack, uid: &str, more: &[&str]) -> e2e::Admin {
    stack.admin(&[&["admin", "account", "purge", "--account", uid, "--yes"], more].concat()).await
}

#[tokio::test]
async fn an_account_is_purged_with_everything_of_its_own() {
    let stack = &Stack::builder().shared().await;
    let account = stack.account().await;
    let (user, other) = (stack.user_of(&account, "all").await, stack.user().await);
    stack.grant(&user.uid, 5).await;
    stack.connect(&user.uid, "fal", "mine").await;
    let (canvas, theirs) = (canvas_of(&user).await, canvas_of(&other).await);
    stack.share(&other, &theirs, &user.uid, "editor").await;
    user.upload_into(&canvas, "image/png", images::png(40, 30)).await;
    let asset = user.upload("image/png", images::png(40, 31)).await;
    let given = user.upload_into(&format!("canvas:{}:{theirs}", other.uid), "image/png", images::png(40, 32)).await;
    let element = json!({"name": "n", "type": "style", "sourceAssetIds": [asset["id"]]});
    user.send("/elements", &element).await.expect(201);
    user.send("/element-collections", &json!({"name": "c"})).await.expect(201);
    let job = queued(&user).await;
    user.delete(text(&job, "/pollUrl")).await.expect(200);
    let purged = purge_account(stack, &account.email, &[]).await.expect_success();
    assert_eq!(
        purged,
        json!({"uid": user.uid, "purged": true, "canvases": 2, "assets": 3, "tokens": 1, "connections": 1, "runs": 1})
    );
    user.get("/auth/status").await.expect_error(401, "unauthorized", &[]);
    for sql in [
        "SELECT count(*) FROM canvases WHERE owner_uid = $1",
        "SELECT count(*) FROM assets WHERE owner_uid = $1",
        "SELECT count(*) FROM elements WHERE owner_uid = $1",
        "SELECT count(*) FROM element_collections WHERE owner_uid = $1",
        "SELECT count(*) FROM canvas_shares WHERE account_uid = $1",
        "SELECT count(*) FROM jobs WHERE account_uid = $1",
        "SELECT count(*) FROM idempotency_keys WHERE account_uid = $1",
        "SELECT count(*) FROM tokens WHERE account_uid = $1",
        "SELECT count(*) FROM account_sessions WHERE account_uid = $1",
        "SELECT count(*) FROM provider_connections WHERE account_uid = $1",
        "SELECT count(*) FROM account_storage WHERE account_uid = $1",
        "SELECT count(*) FROM accounts WHERE uid = $1 AND (email LIKE '%@%' OR enabled)",
    ] {
        let left: i64 = sqlx::query_scalar(sql).bind(&user.uid).fetch_one(stack.pool()).await.expect("counts");
        assert_eq!(left, 0, "{sql}");
    }
    // The ledger stays, assets in other accounts' canvases stay, and the uid is never reused.
    let books: i64 = sqlx::query_scalar("SELECT sum(amount)::bigint FROM ledger WHERE account_uid = $1")
        .bind(&user.uid)
        .fetch_one(stack.pool())
        .await
        .expect("reads");
    assert_eq!(books, 5);
    other.get(&format!("/assets/{}", text(&given, "/handle"))).await.ok();
    for command in [&["account", "enable"][..], &["token", "list"], &["account", "quota"]] {
        let arguments = [&["admin"], command, &["--account", &user.uid]].concat();
        stack.admin(&arguments).await.expect_refusal();
    }
    let create = async |email: &str, uid: &str| {
        stack.admin(&["admin", "account", "create", "--email", email, "--uid", uid]).await
    };
    create("somebody@example.com", &user.uid).await.expect_refusal();
    create(&account.email, &format!("{}-2", user.uid)).await.expect_success();
    purge_account(stack, &user.uid, &[]).await.expect_refusal();
}

#[tokio::test]
async fn the_purge_of_an_account_changes_the_canvases_of_others_that_show_its_images() {
    let stack = &Stack::builder().shared().await;
    let (user, other) = (stack.user().await, stack.user().await);
    let (canvas, theirs) = (canvas_of(&user).await, canvas_of(&other).await);
    stack.share(&user, &canvas, &other.uid, "viewer").await;
    let image = user.upload_into(&canvas, "image/png", images::png(40, 30)).await;
    let workflow = json!({
        "name": "n", "category": "Content Package", "tags": [], "idempotencyKey": key(),
        "inputs": [{"key": "pack", "label": "l", "type": "image", "value": image["handle"], "useAsDefault": false}],
        "outputs": [{"key": "o", "label": "l", "type": "text", "prompt": "{{pack}}", "inputKeys": ["pack"]}],
    });
    other.send(&format!("/canvases/{theirs}/workflows"), &workflow).await.expect(201);
    let before = other.canvas(&theirs).await;
    purge_account(stack, &user.uid, &[]).await.expect_success();
    let after = other.canvas(&theirs).await;
    assert_ne!(after["revision"], before["revision"], "a drawing of the former revision shows the image");
    assert_eq!(after["nodes"], before["nodes"]);
}

#[tokio::test]
async fn an_account_with_work_under_way_is_purged_only_when_it_is_canceled() {
    let stack = &Stack::builder().shared().await;
    let (user, other) = (stack.user().await, stack.user().await);
    queued(&user).await;
    // Another account's active job on a canvas of this account also blocks the purge.
    let canvas = canvas_of(&user).await;
    stack.share(&user, &canvas, &other.uid, "editor").await;
    let others = other.start_resize(&format!("canvas:{}:{canvas}", user.uid), json!({})).await;
    assert!(purge_account(stack, &user.uid, &[]).await.expect_refusal().contains("--cancel-jobs"));
    user.get("/auth/status").await.ok();
    let purged = purge_account(stack, &user.uid, &["--cancel-jobs"]).await.expect_success();
    assert_eq!((&purged["canvases"], &purged["runs"]), (&json!(2), &json!(1)));
    assert_eq!(other.get(text(&others, "/pollUrl")).await.ok()["status"], "canceled");
}

#[tokio::test]
async fn a_purge_wants_to_be_meant() {
    let stack = &Stack::builder().shared().await;
    let user = stack.user().await;
    let handle = format!("canvas:{}:{}", user.uid, canvas_of(&user).await);
    stack.admin(&["admin", "canvas", "purge", "--canvas", &handle]).await.expect_misuse();
    stack.admin(&["admin", "asset", "purge", "--asset", "asset:a:b"]).await.expect_misuse();
    stack.admin(&["admin", "account", "purge", "--account", &user.uid]).await.expect_misuse();
    user.get(&format!("/canvases/{handle}")).await.ok();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_in_a_workers_hands_is_stopped_before_its_canvas_goes() {
    let stack = Stack::builder().image_workers(1).hold("action.loaded").start().await;
    let user = stack.user().await;
    let canvas = canvas_of(&user).await;
    let job = user.start_resize(&canvas, json!({})).await;
    stack.hold("action.loaded").reached().await;
    let handle = format!("canvas:{}:{canvas}", user.uid);
    let release = async {
        let asked = "SELECT count(*) FROM task_queue WHERE cancel_requested";
        testkit::wait_for("the cancel request", e2e::PATIENCE, async || (stack.count(asked).await == 1).then_some(()))
            .await;
        user.canvas(&canvas).await;
        stack.hold("action.loaded").release();
    };
    let (purged, ()) = tokio::join!(purge_canvas(&stack, &handle, &["--cancel-jobs"]), release);
    purged.expect_success();
    assert_eq!(user.get(text(&job, "/pollUrl")).await.ok()["status"], "canceled");
}
