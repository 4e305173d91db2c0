//! The event stream of canvases, participants and runs (docs/reference/events.md).

use std::time::{Duration, Instant};

use bytes::Bytes;
use e2e::api::text;
use e2e::{Client, PATIENCE, Person, Stack, User};
use futures_util::future::join_all;
use futures_util::{Stream, StreamExt};
use serde_json::{Value, json};
use testkit::wait_for;

use crate::console::holder::Holder;

/// The limit for roles.
const ROLE_WITHIN: Duration = Duration::from_secs(1);

/// Shorter than the interval of reads without an announcement (5 s), so that only an announcement is in time.
const AT_ONCE: Duration = Duration::from_secs(3);

/// An open stream.
pub(crate) struct Followed {
    pieces: std::pin::Pin<Box<dyn Stream<Item = reqwest::Result<Bytes>> + Send>>,
    unread: String,
}

impl Followed {
    /// Opens `GET /events?<query>`.
    pub(crate) async fn open(user: &Client, query: &str) -> Self {
        Self::read(user.get(&format!("/events?{query}")).streamed().await)
    }

    /// Opens the same as a page of the console does.
    pub(crate) async fn open_in_browser(person: &Person, query: &str) -> Self {
        Self::read(person.get(&Person::api(&format!("/events?{query}"))).streamed().await)
    }

    fn read(response: reqwest::Response) -> Self {
        assert_eq!(response.status(), 200, "{}", response.url());
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["cache-control"], "private, no-store");
        assert_eq!(response.headers()["x-accel-buffering"], "no");
        Self { pieces: Box::pin(response.bytes_stream()), unread: String::new() }
    }

    /// The next event or comment, without its empty line; `None` when the stream has ended.
    async fn block(&mut self) -> Option<String> {
        loop {
            if let Some((block, rest)) = self.unread.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.unread = rest;
                return Some(block);
            }
            let piece = self.pieces.next().await?.ok()?;
            self.unread.push_str(std::str::from_utf8(&piece).expect("UTF-8"));
        }
    }

    /// The next event and its data; `None` when the stream has ended.
    pub(crate) async fn next(&mut self) -> Option<(String, Value)> {
        let read = async {
            loop {
                let block = self.block().await?;
                let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
                if let Some((event, data)) = field("event:").zip(field("data:")) {
                    return Some((event.to_owned(), serde_json::from_str(data).expect("JSON")));
                }
            }
        };
        tokio::time::timeout(PATIENCE, read).await.expect("an event, or the end")
    }

    /// The data of the next event that has this name and satisfies `wanted`.
    pub(crate) async fn until(&mut self, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let (event, data) = self.next().await.expect("the stream goes on");
            if event == name && wanted(&data) {
                return data;
            }
        }
    }

    /// Waits until the canvas has this revision.
    pub(crate) async fn revision(&mut self, revision: &str) {
        self.until("canvas", |data| data["revision"] == revision).await;
    }

    /// The end of the stream. Panics when an event comes before.
    async fn end(mut self) {
        if let Some((event, data)) = self.next().await {
            panic!("{event}: {data}");
        }
    }
}

/// The entries of `who`, without their ids.
fn who(data: &Value) -> Value {
    let mut who = data["who"].clone();
    for entry in who.as_array_mut().expect("a list") {
        entry.as_object_mut().and_then(|entry| entry.remove("id")).expect("an id");
    }
    who
}

fn create() -> Value {
    json!([{"type": "node.create", "node": {"type": "text"}}])
}

#[tokio::test]
async fn the_present_state_comes_first() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let (one, two) = (user.make_canvas().await, user.make_canvas().await);
    let query = format!("canvas={}&canvas={}&runs=mine", text(&two, "/id"), text(&one, "/handle"));
    let mut followed = Followed::open(&user, &query).await;
    for canvas in [&two, &one] {
        let (event, data) = followed.next().await.expect("an event");
        assert_eq!(event, "role");
        assert_eq!(data, json!({"canvas": canvas["handle"], "accessRole": "owner"}));
        let (event, data) = followed.next().await.expect("an event");
        assert_eq!(event, "canvas");
        assert_eq!(data, json!({"canvas": canvas["handle"], "revision": canvas["revision"]}));
        let (event, data) = followed.next().await.expect("an event");
        assert_eq!(event, "presence");
        assert_eq!((&data["canvas"], who(&data)), (&canvas["handle"], json!([{"label": "e2e", "surface": "api"}])));
    }
    // No run is active, so a run that starts now is next.
    let job = user.start_resize(text(&one, "/id"), json!({})).await;
    let first = followed.until("run", |_| true).await;
    assert_eq!((&first["run"], &first["kind"]), (&job["run"], &json!("action")));
    // It is not part of the present state once it is over.
    user.finished(&job).await;
    let mut later = Followed::open(&user, "runs=mine").await;
    let next = user.start_resize(text(&one, "/id"), json!({})).await;
    assert_eq!(later.until("run", |_| true).await["run"], next["run"]);
}

#[tokio::test]
async fn a_change_of_a_client_arrives_at_every_gateway() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let query = format!("canvas={id}");
    let mut here = Followed::open(&user, &query).await;
    let mut there = Followed::open(&user.at(stack, 1), &query).await;
    for followed in [&mut here, &mut there] {
        followed.revision(text(&canvas, "/revision")).await;
    }
    let changed = user.apply(id, create()).await;
    let start = Instant::now();
    for followed in [&mut here, &mut there] {
        followed.revision(text(&changed, "/canvas/revision")).await;
    }
    assert!(start.elapsed() < AT_ONCE, "{:?}", start.elapsed());
}

#[tokio::test]
async fn the_result_of_an_action_arrives() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let mut followed = Followed::open(&user, &format!("canvas={id}&runs=mine")).await;
    let job = user.start_resize(id, json!({})).await;
    let mut revision = String::new();
    let done = loop {
        match followed.next().await.expect("the stream goes on") {
            (event, data) if event == "canvas" => text(&data, "/revision").clone_into(&mut revision),
            (event, data) if event == "run" && data["status"] == "succeeded" => break data,
            _ => {}
        }
    };
    assert_eq!((&done["run"], &done["canvas"]), (&job["run"], &canvas["handle"]));
    assert_eq!((&done["progress"], &done["done"], &done["total"]), (&json!(100.0), &json!(1), &json!(1)));
    let record = user.finished(&job).await;
    if revision != text(&record, "/canvasRevision") {
        let start = Instant::now();
        followed.revision(text(&record, "/canvasRevision")).await;
        assert!(start.elapsed() < AT_ONCE, "{:?}", start.elapsed());
    }
}

/// Each of these changes the canvas by another way; the one after the next must not be what announces it.
#[tokio::test]
async fn every_way_to_change_a_canvas_is_announced() {
    let stack =
        &Stack::builder().gateways(2).image_workers(1).video_workers(1).env("CANVAS_RATE_PER_MINUTE", 0).start().await;
    let user = stack.user().await;
    stack.grant(&user.uid, 100).await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let mut followed = Followed::open(&user.at(stack, 1), &format!("canvas={id}")).await;
    followed.revision(text(&canvas, "/revision")).await;
    let mut told = async |what: &str| {
        let revision = user.canvas(id).await["revision"].clone();
        let start = Instant::now();
        followed.revision(revision.as_str().expect("a revision")).await;
        assert!(start.elapsed() < AT_ONCE, "{what}: {:?}", start.elapsed());
    };
    let asset = user.upload_into(id, "image/png", e2e::images::png(16, 12)).await;
    told("upload").await;
    let now = async || user.canvas(id).await["revision"].clone();
    let fork = json!({"canvasId": id, "baseRevision": now().await, "idempotencyKey": e2e::api::key()});
    user.send("/recipes/product-hero-shot/fork", &fork).await.expect(201);
    told("fork").await;
    stack.pause(e2e::Part::IMAGE_WORKER);
    let target = user.slot(id).await;
    let request = user.resize_request(id, &target, text(&asset, "/handle")).await;
    let job = user.send("/actions/resize/runs", &request).await.expect(202).json();
    told("start").await;
    user.delete(text(&job, "/pollUrl")).await.ok();
    told("cancel").await;
    stack.resume(e2e::Part::IMAGE_WORKER);
    let target = user.slot(id).await;
    let request = json!({"canvasId": id, "baseRevision": now().await, "idempotencyKey": e2e::api::key(),
        "targetNodeId": target, "model": "sketch", "prompt": "a kite"});
    let job = user.send("/images/generate", &request).await.expect(202).json();
    user.finished(&job).await;
    told("generation").await;
}

#[tokio::test]
async fn sixteen_canvases_can_be_followed_and_a_seventeenth_cannot() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvases = join_all((0..17).map(|_| user.make_canvas())).await;
    let query = |canvases: &[Value]| {
        canvases.iter().map(|canvas| format!("canvas={}", text(canvas, "/id"))).collect::<Vec<_>>().join("&")
    };
    let sixteen = query(&canvases[..16]);
    let mut followed = Followed::open(&user, &sixteen).await;
    for canvas in &canvases[..16] {
        for name in ["role", "canvas", "presence"] {
            let (event, data) = followed.next().await.expect("an event");
            assert_eq!((event.as_str(), &data["canvas"]), (name, &canvas["handle"]));
        }
    }
    let changed = user.apply(text(&canvases[15], "/id"), create()).await;
    followed.revision(text(&changed, "/canvas/revision")).await;
    for seventeen in [query(&canvases), format!("{sixteen}&canvas={}", text(&canvases[0], "/handle"))] {
        user.get(&format!("/events?{seventeen}")).await.expect_error(400, "input_validation_error", &["canvas"]);
    }
}

#[tokio::test]
async fn a_canvas_that_is_named_twice_is_followed_once() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let (id, handle) = (text(&canvas, "/id"), text(&canvas, "/handle"));
    let mut followed = Followed::open(&user, &format!("canvas={id}&canvas={handle}")).await;
    followed.until("presence", |_| true).await;
    let changed = user.apply(id, create()).await;
    assert_eq!(followed.next().await.expect("an event").1["revision"], changed["canvas"]["revision"]);
}

#[tokio::test]
async fn each_violation_names_its_parameter() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let id = text(&user.make_canvas().await, "/id").to_owned();
    for (query, fields) in [
        ("", vec!["canvas"]),
        ("?else=1", vec!["canvas"]),
        ("?canvas=", vec!["canvas"]),
        ("?canvas=a%20b", vec!["canvas"]),
        ("?canvas=%FF", vec!["canvas"]),
        ("?canvas=node:a", vec!["canvas"]),
        (&format!("?canvas={id}&canvas=a%20b"), vec!["canvas"]),
        ("?runs=", vec!["runs"]),
        ("?runs=all", vec!["runs"]),
        (&format!("?canvas={id}&runs=theirs"), vec!["runs"]),
        ("?runs=mine&runs=mine", vec!["runs"]),
        ("?runs=mine&pointers=", vec!["pointers"]),
        ("?runs=mine&pointers=yes", vec!["pointers"]),
        ("?pointers=true", vec!["canvas"]),
        ("?canvas=a%20b&runs=all", vec!["canvas", "runs"]),
    ] {
        user.get(&format!("/events{query}")).await.expect_error(400, "input_validation_error", &fields);
    }
}

#[tokio::test]
async fn a_canvas_that_the_caller_cannot_read_is_not_found() {
    let stack = &Stack::with_workers().await;
    let (owner, stranger) = (stack.user().await, stack.user().await);
    let (canvas, own) = (owner.make_canvas().await, stranger.make_canvas().await);
    let (handle, own) = (text(&canvas, "/handle"), text(&own, "/id"));
    for query in [format!("canvas={handle}"), format!("canvas={own}&canvas={handle}"), "canvas=absent".to_owned()] {
        stranger.get(&format!("/events?{query}")).await.expect_error(404, "not_found", &[]);
    }
    stack.share(&owner, text(&canvas, "/id"), &stranger.uid, "viewer").await;
    let mut followed = Followed::open(&stranger, &format!("canvas={handle}&canvas={own}")).await;
    followed.revision(text(&canvas, "/revision")).await;
}

#[tokio::test]
async fn runs_need_a_scope_of_their_own() {
    let stack = &Stack::with_workers().await;
    let account = stack.account().await;
    let (reader, manager) =
        (stack.user_of(&account, "canvas:read").await, stack.user_of(&account, "canvas:read,job:manage").await);
    let message = reader.get("/events?runs=mine").await.expect_error(403, "forbidden", &[]);
    assert!(message.contains("job:manage"), "{message}");
    let runs_alone = stack.user_of(&account, "job:manage").await;
    let message = runs_alone.get("/events?runs=mine").await.expect_error(403, "forbidden", &[]);
    assert!(message.contains("canvas:read"), "{message}");
    // The scopes that depend on the query come after its form, and before the canvas.
    reader.get("/events?runs=all").await.expect_error(400, "input_validation_error", &["runs"]);
    reader.get("/events?runs=mine&canvas=absent").await.expect_error(403, "forbidden", &[]);
    reader.get("/events?canvas=absent").await.expect_error(404, "not_found", &[]);
    Followed::open(&manager, "runs=mine").await;
}

#[tokio::test]
async fn a_canvas_that_is_deleted_is_gone() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let (one, two) = (user.make_canvas().await, user.make_canvas().await);
    let query = format!("canvas={}&canvas={}", text(&one, "/id"), text(&two, "/id"));
    let mut followed = Followed::open(&user, &query).await;
    followed.until("presence", |data| data["canvas"] == two["handle"]).await;
    let purge = async |canvas: &Value| {
        stack.admin(&["admin", "canvas", "purge", "--canvas", text(canvas, "/handle"), "--yes"]).await.expect_success();
        Instant::now()
    };
    let purged = purge(&one).await;
    let gone = followed.until("gone", |_| true).await;
    assert_eq!(gone, json!({"canvas": one["handle"]}));
    assert!(purged.elapsed() < AT_ONCE, "{:?}", purged.elapsed());
    // The other canvas is still followed. A new canvas with the id of the deleted one is another canvas.
    user.send("/canvases", &json!({"id": one["id"]})).await.expect(201);
    let changed = user.apply(text(&two, "/id"), create()).await;
    let (event, data) = followed.next().await.expect("an event");
    assert_eq!((event.as_str(), &data["revision"]), ("canvas", &changed["canvas"]["revision"]));
    // Nothing is left to follow.
    purge(&two).await;
    assert_eq!(followed.next().await.expect("an event").0, "gone");
    followed.end().await;
}

#[tokio::test]
async fn a_canvas_that_is_no_longer_shared_is_gone() {
    let stack = &Stack::with_workers().await;
    let (owner, viewer) = (stack.user().await, stack.user().await);
    let canvas = owner.make_canvas().await;
    let (id, handle) = (text(&canvas, "/id"), text(&canvas, "/handle"));
    stack.share(&owner, id, &viewer.uid, "editor").await;
    let mut theirs = Followed::open(&viewer, &format!("canvas={handle}&runs=mine")).await;
    let mut own = Followed::open(&owner, &format!("canvas={id}")).await;
    own.until("presence", |data| data["who"].as_array().is_some_and(|who| who.len() == 2)).await;
    // A role that changes ends nothing.
    stack.share(&owner, id, &viewer.uid, "viewer").await;
    let changed = owner.apply(id, create()).await;
    theirs.revision(text(&changed, "/canvas/revision")).await;
    stack.share(&owner, id, &viewer.uid, "none").await;
    let withdrawn = Instant::now();
    assert_eq!(theirs.until("gone", |_| true).await["canvas"], canvas["handle"]);
    assert!(withdrawn.elapsed() < AT_ONCE, "{:?}", withdrawn.elapsed());
    own.until("presence", |data| data["who"].as_array().is_some_and(|who| who.len() == 1)).await;
    // The stream goes on with the runs, and tells nothing more of the canvas.
    let changed = owner.apply(id, create()).await;
    own.revision(text(&changed, "/canvas/revision")).await;
    let job = viewer.start_resize(text(&viewer.make_canvas().await, "/id"), json!({})).await;
    let (event, data) = theirs.next().await.expect("an event");
    assert_eq!((event.as_str(), &data["run"]), ("run", &job["run"]));
}

#[tokio::test]
async fn each_role_arrives_at_every_gateway_within_a_second() {
    let stack = &Stack::without_workers().await;
    let (owner, member) = (Holder::new(stack).await, Holder::new(stack).await);
    let canvas = owner.user.make_canvas().await;
    let handle = text(&canvas, "/handle");
    let role = |role: &str| json!({"canvas": handle, "accessRole": role});
    let path = format!("{}/members/{}", owner.canvas_path(text(&canvas, "/id")), member.email.replace('@', "%40"));
    let share = async |role: &str| owner.put(&path, &json!({"role": role})).await.ok();
    share("viewer").await;
    let query = format!("canvas={handle}");
    let (mut here, mut there) =
        (Followed::open(&member.user, &query).await, Followed::open(&member.user.at(stack, 1), &query).await);
    for followed in [&mut here, &mut there] {
        assert_eq!(followed.next().await, Some(("role".to_owned(), role("viewer"))));
        followed.until("presence", |_| true).await;
    }
    for named in ["editor", "viewer", "editor"] {
        let start = Instant::now();
        share(named).await;
        for followed in [&mut here, &mut there] {
            // Nothing else has changed.
            assert_eq!(followed.next().await, Some(("role".to_owned(), role(named))));
        }
        assert!(start.elapsed() < ROLE_WITHIN, "{named}: {:?}", start.elapsed());
    }
    share("editor").await;
    let start = Instant::now();
    owner.delete(&path).await.expect(204);
    for followed in [&mut here, &mut there] {
        assert_eq!(followed.next().await, Some(("gone".to_owned(), json!({"canvas": handle}))));
    }
    assert!(start.elapsed() < ROLE_WITHIN, "{:?}", start.elapsed());
    // A canvas that is shared again has a role again.
    share("editor").await;
    assert_eq!(Followed::open(&member.user, &query).await.next().await, Some(("role".to_owned(), role("editor"))));
}

#[tokio::test]
async fn participants_of_all_gateways_are_listed_once_for_each_token() {
    let stack = &Stack::with_workers().await;
    let account = stack.account().await;
    let (program, person) =
        (stack.user_by(&account, "all", "api").await, stack.user_by(&account, "all", "browser").await);
    let id = text(&program.make_canvas().await, "/id").to_owned();
    let query = format!("canvas={id}");
    let mut first = Followed::open(&program, &query).await;
    let of = |surfaces: &[&str]| {
        let who = surfaces.iter().map(|surface| json!({"label": "e2e", "surface": surface}));
        json!(who.collect::<Vec<_>>())
    };
    first.until("presence", |data| who(data) == of(&["api"])).await;
    // Two streams of one token at two gateways are one participant.
    let second = Followed::open(&program.at(stack, 1), &query).await;
    let mut theirs = Followed::open(&person.at(stack, 1), &query).await;
    let both = of(&["api", "browser"]);
    let start = Instant::now();
    first.until("presence", |data| who(data) == both).await;
    assert!(start.elapsed() < AT_ONCE, "{:?}", start.elapsed());
    theirs.until("presence", |data| who(data) == both).await;
    drop(second);
    drop(theirs);
    first.until("presence", |data| who(data) == of(&["api"])).await;
}

#[tokio::test]
async fn an_id_of_a_participant_is_that_of_one_token_on_one_canvas() {
    let stack = &Stack::with_workers().await;
    let account = stack.account().await;
    let (one, other) = (stack.user_of(&account, "all").await, stack.user_of(&account, "all").await);
    let canvases = [one.make_canvas().await, one.make_canvas().await];
    let ids = async |user: &User, canvas: &Value, count: usize| -> Vec<String> {
        let query = format!("canvas={}", text(canvas, "/handle"));
        let mut followed = Followed::open(&user.at(stack, 1), &query).await;
        let are_all = |data: &Value| data["who"].as_array().is_some_and(|who| who.len() == count);
        let data = followed.until("presence", are_all).await;
        data["who"].as_array().expect("a list").iter().map(|who| text(who, "/id").to_owned()).collect()
    };
    let mut open = Followed::open(&one, &format!("canvas={}", text(&canvases[0], "/id"))).await;
    let first = open.until("presence", |_| true).await;
    let id = text(&first, "/who/0/id").to_owned();
    assert_eq!(id.len(), 22);
    assert!(!id.contains(&one.token_id));
    assert_eq!(ids(&one, &canvases[0], 1).await, [id.as_str()], "at another gateway");
    let both = ids(&other, &canvases[0], 2).await;
    assert!(both.len() == 2 && both.contains(&id) && both[0] != both[1], "{both:?}");
    assert_ne!(ids(&one, &canvases[1], 1).await, [id.as_str()], "on another canvas");
}

#[tokio::test]
async fn runs_that_start_later_are_followed_to_their_end() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    stack.grant(&user.uid, 1000).await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let mut followed = Followed::open(&user.at(stack, 1), "runs=mine").await;
    let targets = [user.slot(id).await, user.slot(id).await];
    let request = json!({"canvasId": id, "baseRevision": user.canvas(id).await["revision"],
        "idempotencyKey": e2e::api::key(), "targetNodeIds": targets, "model": "sketch", "prompt": "a kite"});
    let image = user.send("/images/generate", &request).await.expect(202).json();
    let request = json!({"idempotencyKey": e2e::api::key(), "model": "animatic", "prompt": "a kite",
        "durationSeconds": 1, "resolution": "480p"});
    let video = user.send("/videos/generate", &request).await.expect(202).json();
    let mut open = vec![(text(&image, "/run").to_owned(), "image", 2), (text(&video, "/id").to_owned(), "video", 1)];
    let mut last: std::collections::BTreeMap<String, (f64, i64)> = Default::default();
    while !open.is_empty() {
        let run = followed.until("run", |_| true).await;
        let at = open.iter().position(|(handle, ..)| run["run"] == *handle).expect("a run that is not over");
        let (handle, kind, total) = &open[at];
        assert_eq!((&run["kind"], &run["total"]), (&json!(kind), &json!(total)));
        assert_eq!(run.get("canvas"), (*kind == "image").then_some(&canvas["handle"]));
        let (progress, done) = (run["progress"].as_f64().expect("a number"), run["done"].as_i64().expect("a number"));
        let before = last.insert(handle.clone(), (progress, done)).unwrap_or_default();
        assert!(progress >= before.0 && done >= before.1 && progress <= 100.0, "{run} after {before:?}");
        if run["status"] == "succeeded" {
            assert_eq!((progress, done), (100.0, *total));
            open.remove(at);
        }
    }
}

#[tokio::test]
async fn a_recipe_run_is_one_run() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    stack.grant(&user.uid, 1000).await;
    let id = text(&user.make_canvas().await, "/id").to_owned();
    let asset = user.upload("image/png", e2e::images::png(64, 48)).await;
    let mut followed = Followed::open(&user, &format!("runs=mine&canvas={id}")).await;
    let request = json!({"canvasId": id, "baseRevision": user.canvas(&id).await["revision"],
        "idempotencyKey": e2e::api::key(), "inputs": {"product": asset["handle"], "offer": "Chairs."}});
    let run = user.send("/recipes/ad-copy-and-banner/runs", &request).await.expect(202).json();
    // Its steps are jobs, which are not told.
    let end = loop {
        let told = followed.until("run", |_| true).await;
        assert_eq!((&told["run"], &told["kind"], &told["total"]), (&run["run"], &json!("recipe"), &json!(2)));
        if !matches!(text(&told, "/status"), "queued" | "running") {
            break told;
        }
    };
    assert_eq!((&end["status"], &end["done"], &end["progress"]), (&json!("succeeded"), &json!(2), &json!(100.0)));
}

#[tokio::test]
async fn others_runs_are_not_followed() {
    let stack = &Stack::with_workers().await;
    let (owner, editor) = (stack.user().await, stack.user().await);
    let canvas = owner.make_canvas().await;
    stack.share(&owner, text(&canvas, "/id"), &editor.uid, "editor").await;
    let mut followed = Followed::open(&owner, &format!("runs=mine&canvas={}", text(&canvas, "/id"))).await;
    let theirs = editor.start_resize(text(&canvas, "/handle"), json!({})).await;
    editor.finished(&theirs).await;
    let own = owner.start_resize(text(&canvas, "/id"), json!({})).await;
    assert_eq!(followed.until("run", |_| true).await["run"], own["run"]);
}

#[tokio::test]
async fn a_comment_keeps_the_connection_open() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let mut followed = Followed::open(&user, &format!("canvas={}", text(&canvas, "/id"))).await;
    followed.until("presence", |_| true).await;
    let start = Instant::now();
    let comment = tokio::time::timeout(PATIENCE, followed.block()).await.expect("in time").expect("goes on");
    assert_eq!(comment, ": alive");
    assert!((14..20).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_token_has_at_most_64_streams_of_a_gateway() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let query = format!("canvas={}", text(&user.make_canvas().await, "/id"));
    let mut open = join_all((0..64).map(|_| Followed::open(&user, &query))).await;
    let again = async || {
        let response = user.get(&format!("/events?{query}")).streamed().await;
        (response.status(), response)
    };
    let (status, refused) = again().await;
    assert_eq!(status, 429);
    assert_eq!(refused.headers()["retry-after"], "1");
    let elsewhere = Followed::open(&user.at(stack, 1), &query).await;
    drop(elsewhere);
    open.pop();
    wait_for("a stream after one has ended", PATIENCE, async || (again().await.0 == 200).then_some(())).await;
}

#[tokio::test]
async fn a_stream_ends_with_its_credential() {
    let stack = &Stack::with_workers().await;
    let account = stack.account().await;
    let owner = stack.user_of(&account, "all").await;
    let canvas = owner.make_canvas().await;
    let query = format!("canvas={}&runs=mine", text(&canvas, "/id"));
    let ended_by = async |arguments: &dyn Fn(&User) -> Vec<String>| {
        let follower = stack.user_of(&account, "canvas:read,job:manage").await;
        let mut followed = Followed::open(&follower.at(stack, 1), &query).await;
        followed.until("presence", |_| true).await;
        let arguments = arguments(&follower);
        let arguments: Vec<&str> = std::iter::once("admin").chain(arguments.iter().map(String::as_str)).collect();
        stack.admin(&arguments).await.expect_success();
        let start = Instant::now();
        while let Some((event, data)) = followed.next().await {
            // Of those whose credentials ended with it.
            assert_eq!(event, "presence", "{data}");
        }
        assert!(start.elapsed() < AT_ONCE, "{arguments:?}: {:?}", start.elapsed());
    };
    let on_account = |words: &[&str]| -> Vec<String> {
        words.iter().map(ToString::to_string).chain(["--account".into(), account.uid.clone()]).collect()
    };
    ended_by(&|user| vec!["token".into(), "revoke".into(), user.token_id.clone()]).await;
    ended_by(&|_| on_account(&["account", "disable"])).await;
    let enable = ["admin", "account", "enable", "--account", &account.uid];
    stack.admin(&enable).await.expect_success();
    ended_by(&|_| on_account(&["session", "revoke"])).await;
}

#[tokio::test]
async fn a_stream_is_served_as_such_or_not_at_all() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let path = format!("/events?canvas={}", text(&user.make_canvas().await, "/id"));
    for refused in ["application/json", "text/event-stream;q=0", "*/*;q=0"] {
        user.get(&path).header("accept", refused).await.expect_error(406, "request_failed", &[]);
    }
    // What is not there is said first.
    user.get("/events?canvas=absent").header("accept", "application/json").await.expect(404);
    for accepted in ["*/*", "text/*", "text/event-stream", "application/json, text/event-stream;q=0.5"] {
        assert_eq!(user.get(&path).header("accept", accepted).streamed().await.status(), 200, "{accepted}");
    }
}
