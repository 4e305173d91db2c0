//! Event streams of canvases while Redis is away (docs/reference/events.md#without-redis).

use std::time::{Duration, Instant};

use e2e::api::text;
use e2e::{PATIENCE, Stack};
use serde_json::{Value, json};

use super::start;
use crate::events::Followed;

/// The interval of reads without Redis, with time for the read and the way back on a busy machine.
const WITHOUT_REDIS: Duration = Duration::from_secs(3);

fn surfaces(data: &Value) -> Vec<&str> {
    data["who"].as_array().expect("a list").iter().map(|who| text(who, "/surface")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_redis_pointers_are_shown_at_the_same_gateway() {
    let stack = start(Stack::builder().gateways(2).behind_networks()).await;
    let account = stack.account().await;
    let user = stack.user_of(&account, "all").await;
    let canvas = user.make_canvas().await;
    let (one, two, three) = (stack.person(&account).await, stack.person(&account).await, stack.person(&account).await);
    let query = format!("canvas={}&pointers=true", text(&canvas, "/id"));
    let mut here = Followed::open_in_browser(&two, &query).await;
    let mut there = Followed::open_in_browser(&three.at(&stack, 1), &query).await;
    for followed in [&mut here, &mut there] {
        followed.until("presence", |data| surfaces(data) == ["browser", "browser"]).await;
    }
    stack.networks().redis.cut();
    // Each gateway knows its own participants alone, once it has noticed.
    there.until("presence", |data| surfaces(data) == ["browser"]).await;
    let path = format!("/canvases/{}/{}/pointer", account.uid, text(&canvas, "/id"));
    let sent = Instant::now();
    one.send(&path, &json!({"at": [1, 2]})).await.expect(204);
    assert_eq!(here.until("pointers", |_| true).await["who"][0]["at"], json!([1.0, 2.0]));
    assert!(sent.elapsed() < WITHOUT_REDIS, "{:?}", sent.elapsed());
    // A pointer of the other gateway is the first that its streams are told of.
    one.at(&stack, 1).send(&path, &json!({"at": [3, 4]})).await.expect(204);
    assert_eq!(there.until("pointers", |_| true).await["who"][0]["at"], json!([3.0, 4.0]));
    assert_eq!(here.until("pointers", |_| true).await["who"][0].get("at"), None, "it ends after 10 s");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_go_on_without_redis() {
    let builder = Stack::builder().gateways(2).image_workers(1).behind_networks().env("CANVAS_RATE_PER_MINUTE", 0);
    let stack = start(builder).await;
    let account = stack.account().await;
    let (program, person) =
        (stack.user_by(&account, "all", "api").await, stack.user_by(&account, "all", "browser").await);
    let canvas = program.make_canvas().await;
    let (id, query) = (text(&canvas, "/id"), format!("canvas={}&runs=mine", text(&canvas, "/id")));
    let mut here = Followed::open(&program, &query).await;
    let mut there = Followed::open(&person.at(&stack, 1), &query).await;
    for followed in [&mut here, &mut there] {
        followed.until("presence", |data| surfaces(data) == ["api", "browser"]).await;
    }

    stack.networks().redis.cut();
    // Each gateway knows its own participants alone.
    here.until("presence", |data| surfaces(data) == ["api"]).await;
    there.until("presence", |data| surfaces(data) == ["browser"]).await;
    let changed = program.apply(id, json!([{"type": "node.create", "node": {"type": "text"}}])).await;
    let start = Instant::now();
    for followed in [&mut here, &mut there] {
        followed.revision(text(&changed, "/canvas/revision")).await;
    }
    assert!(start.elapsed() < WITHOUT_REDIS, "{:?}", start.elapsed());
    let guest = stack.user().await;
    stack.share(&program, id, &guest.uid, "viewer").await;
    let mut theirs = Followed::open(&guest.at(&stack, 1), &format!("canvas={}", text(&canvas, "/handle"))).await;
    theirs.until("role", |data| data["accessRole"] == "viewer").await;
    stack.share(&program, id, &guest.uid, "editor").await;
    let start = Instant::now();
    theirs.until("role", |data| data["accessRole"] == "editor").await;
    assert!(start.elapsed() < WITHOUT_REDIS, "{:?}", start.elapsed());
    drop(theirs);
    // A stream that is opened now begins with the present state, too, and a worker's change arrives.
    let mut late = Followed::open(&program.at(&stack, 1), &query).await;
    late.revision(text(&changed, "/canvas/revision")).await;
    let job = program.start_resize(id, json!({})).await;
    let done = program.finished(&job).await;
    for followed in [&mut here, &mut there, &mut late] {
        let end = followed.until("run", |run| run["status"] == "succeeded").await;
        assert_eq!(end["run"], job["run"]);
    }
    let wait = program.get(&format!("/canvases/{id}/changes?since={}", text(&done, "/canvasRevision")));
    let wait = async { wait.header("prefer", "wait=30").await.ok() };
    let change = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        program.apply(id, json!([{"type": "node.create", "node": {"type": "text"}}])).await
    };
    let start = Instant::now();
    let (waited, changed) = tokio::join!(wait, change);
    assert_eq!(waited["revision"], changed["canvas"]["revision"]);
    assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
    // A credential ends its streams without an announcement.
    stack.admin(&["admin", "token", "revoke", &person.token_id]).await.expect_success();
    while there.next().await.is_some() {}

    stack.networks().redis.resume();
    let mut again = Followed::open(&program.at(&stack, 1), &query).await;
    again.until("presence", |data| surfaces(data) == ["api"]).await;
    let person = stack.user_by(&account, "all", "browser").await;
    let _theirs = Followed::open(&person.at(&stack, 1), &query).await;
    here.until("presence", |data| surfaces(data) == ["api", "browser"]).await;
}
