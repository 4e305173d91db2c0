//! Where an asset comes from and what became of it (docs/reference/assets.md#lineage).

use e2e::api::{key, text};
use e2e::tools::{STATELESS, Tools};
use e2e::{Stack, User, images};
use serde_json::{Value, json};
use testkit::Answer;

/// The read of an asset with everything.
async fn origin(user: &User, asset: &str) -> Value {
    user.get(&format!("/assets/{asset}?include=usedIn,inputs")).await.ok()
}

async fn lineage(user: &User, asset: &str, query: &str) -> Value {
    user.get(&format!("/assets/{asset}/lineage{query}")).await.ok()
}

/// The asset that an Action makes of this input in a new node of the canvas, and the job.
async fn resized(user: &User, canvas: &str, input: &str) -> (String, Value) {
    let target = user.slot(canvas).await;
    let request = user.resize_request(canvas, &target, input).await;
    let job = user.finished(&user.send("/actions/resize/runs", &request).await.expect(202).json()).await;
    (text(&job, "/images/0/assetId").to_owned(), job)
}

/// An image of the embedded runtime in a new node of the canvas, and the job.
async fn sketched(user: &User, canvas: &str, more: Value) -> (String, Value) {
    let target = user.slot(canvas).await;
    let mut request = json!({
        "canvasId": canvas, "baseRevision": user.canvas(canvas).await["revision"], "targetNodeId": target,
        "model": "sketch", "prompt": "Slate jacket on concrete", "idempotencyKey": key(),
    });
    request.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
    let job = user.finished(&user.send("/images/generate", &request).await.expect(202).json()).await;
    (text(&job, "/images/0/assetId").to_owned(), job)
}

/// A node that shows the asset, by its ref.
async fn shown(user: &User, canvas: &str, asset: &str, title: &str) -> String {
    let node = json!({"type": "image", "title": title, "asset": asset});
    let made = user.apply(canvas, json!([{"type": "node.create", "clientId": "shown", "node": node}])).await;
    text(&made["refs"], &format!("/{}", text(&made, "/resolvedIds/shown"))).to_owned()
}

fn handles(items: &Value) -> Vec<&str> {
    items.as_array().expect("a list").iter().map(|item| item["handle"].as_str().unwrap_or("hidden")).collect()
}

#[tokio::test]
async fn an_image_tells_its_origin_when_its_source_node_and_its_job_are_gone() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    stack.grant(&user.uid, 10).await;
    let (first, second) = (user.make_canvas().await, user.make_canvas().await);
    let (id, other) = (text(&first, "/handle"), text(&second, "/handle"));
    let photo = user.upload_into(id, "image/png", images::png(64, 48)).await;
    let references = json!({"references": [{"handle": photo["node"], "role": "identity"}]});
    let (asset, job) = sketched(&user, id, references).await;
    user.apply(id, json!([{"type": "node.delete", "nodeId": photo["node"]}])).await;
    let gone = "DELETE FROM jobs WHERE id = $1";
    let raw = uuid::Uuid::parse_str(text(&job, "/rawId")).expect("a UUID");
    sqlx::query(gone).bind(raw).execute(stack.pool()).await.expect("expires");
    user.get(text(&job, "/pollUrl")).await.expect_error(404, "not_found", &[]);
    let name = shown(&user, other, &asset, "Cover").await;

    let read = origin(&user, &asset).await;
    assert_eq!(read["asset"]["name"], "slate-jacket-on-concrete-1.png");
    let made = &read["made"];
    assert_eq!((&made["kind"], &made["operation"]), (&json!("generated"), &json!("generate")), "{made}");
    assert_eq!((&made["run"], &made["provider"], &made["model"]), (&job["run"], &json!("managed"), &json!("sketch")));
    assert!(text(made, "/prompt").starts_with("Slate jacket on concrete"), "{made}");
    assert_eq!((&made["creditCost"], &made["elements"]), (&job["creditCost"], &json!([])));
    assert_eq!(made["by"]["ownerUid"], json!(user.uid));
    assert!(made["at"].is_string(), "{made}");
    let input = json!({"handle": photo["handle"], "role": "identity", "name": photo["name"]});
    assert_eq!(read["inputs"], json!([input]));
    let places = read["usedIn"].as_array().expect("a list");
    assert_eq!(places.len(), 2, "{read}");
    assert_eq!((&places[0]["canvas"], &places[0]["ref"]), (&second["handle"], &json!(name)), "the newest first");
    assert_eq!((&places[0]["title"], &places[1]["canvas"]), (&json!("Cover"), &first["handle"]));
    assert_eq!((&read["more"], &read["hidden"]), (&json!(false), &json!({"usedIn": 0, "inputs": 0})));

    // A tool says all of it in one call, by the handle or by where the image is.
    let tools = Tools::new(&user, STATELESS).await;
    let by_handle = tools.ok("describe", json!({"handle": asset})).await;
    for arguments in [json!({"handle": name, "canvas": other}), json!({"handle": format!("{other} {name}")})] {
        assert_eq!(tools.ok("describe", arguments).await, by_handle);
    }
    let facts = &by_handle["facts"];
    assert_eq!((&facts["handle"], &facts["made"]), (&json!(asset), made));
    // Places have the names that other tools take.
    assert_eq!(
        (&facts["usedIn"][0]["canvas"], &facts["usedIn"][0]["node"]),
        (&second["slug"], &json!(name)),
        "{facts}"
    );
    assert_eq!(facts["usedIn"].as_array().map(Vec::len), Some(2));
    for place in facts["usedIn"].as_array().expect("a list") {
        assert!(text(place, "/url").ends_with(&format!("/c/{}", text(place, "/canvas"))), "{place}");
        let there = tools.ok("describe", json!({"handle": place["node"], "canvas": place["canvas"]})).await;
        assert_eq!(there, by_handle);
    }

    // What it was made from is what the node showed then, and no finding while that is stored.
    let review = user.get(&format!("/canvases/{id}/review")).await.ok();
    assert_eq!(review["validation"]["completionReview"]["referenceLineage"]["findingCodes"], json!([]));
    stack.admin(&["admin", "asset", "purge", "--asset", text(&photo, "/handle"), "--yes"]).await.expect_success();
    let review = user.get(&format!("/canvases/{id}/review")).await.ok();
    assert_eq!(
        review["validation"]["completionReview"]["referenceLineage"]["findingCodes"],
        json!(["reference_source_missing"])
    );
    let read = origin(&user, &asset).await;
    assert_eq!(read["inputs"], json!([{"handle": photo["handle"], "role": "identity", "gone": true}]));
}

#[tokio::test]
async fn each_kind_of_work_leaves_its_origin() {
    let stack = &Stack::with_workers().await;
    let (user, shop) = (stack.user().await, stack.take_receiver());
    stack.grant(&user.uid, 40).await;
    let canvas = text(&user.make_canvas().await, "/handle").to_owned();
    let made = async |asset: &str| user.get(&format!("/assets/{asset}")).await.ok()["made"].clone();

    let photo = user.upload("image/png", images::png(64, 48)).await;
    let photo = text(&photo, "/handle");
    let of_upload = made(photo).await;
    assert_eq!((&of_upload["kind"], &of_upload["creditCost"]), (&json!("upload"), &json!(0)), "{of_upload}");
    assert_eq!((&of_upload["elements"], &of_upload["by"]["ownerUid"]), (&json!([]), &json!(user.uid)));
    assert!(of_upload.get("run").is_none(), "{of_upload}");

    let file = images::png(40, 30);
    shop.answer_with(move |_| Answer::status(200).header("content-type", "image/png").body(file.clone()));
    let url = shop.url("/shoe.png");
    let request = json!({"canvasId": canvas, "imageUrl": url, "idempotencyKey": key()});
    let import = user.send("/images/import", &request).await.ok();
    let of_import = made(text(&import, "/image/assetId")).await;
    assert_eq!((&of_import["kind"], &of_import["sourceUrl"]), (&json!("import"), &json!(url)));

    let (small, job) = resized(&user, &canvas, photo).await;
    let of_action = made(&small).await;
    assert_eq!((&of_action["kind"], &of_action["actionId"]), (&json!("action"), &json!("action:resize")));
    assert_eq!((&of_action["run"], &of_action["params"]["width"]), (&job["run"], &json!(32)));
    assert!(of_action["actionVersion"].is_string() && of_action.get("prompt").is_none(), "{of_action}");
    assert_eq!(origin(&user, &small).await["inputs"][0]["handle"], json!(photo));

    // A video that nobody kept is no asset. One that is kept has the frame that it began with among its inputs.
    let start = json!({
        "prompt": "A boat, leaving", "model": "animatic", "durationSeconds": 1, "firstFrame": photo, "idempotencyKey": key(),
    });
    let film = user.finished(&user.send("/videos/generate", &start).await.expect(202).json()).await;
    let kept = user.send(&format!("/jobs/{}/asset", text(&film, "/rawId")), &json!({})).await.expect(201).json();
    assert_eq!(kept["asset"]["name"], "a-boat-leaving-1.mp4");
    let film_handle = text(&kept, "/asset/handle");
    let read = origin(&user, film_handle).await;
    assert_eq!((&read["made"]["kind"], &read["made"]["creditCost"]), (&json!("generated"), &film["creditCost"]));
    assert_eq!((&read["inputs"][0]["handle"], &read["inputs"][0]["role"]), (&json!(photo), &json!("first-frame")));

    // A frame of it.
    let target = user.slot(&canvas).await;
    let request = json!({
        "canvasId": canvas, "baseRevision": user.canvas(&canvas).await["revision"], "idempotencyKey": key(),
        "targetNodeId": target, "inputs": [film_handle], "params": {},
    });
    let frame = user.finished(&user.send("/actions/video-frame/runs", &request).await.expect(202).json()).await;
    let frame = text(&frame, "/images/0/assetId");
    assert_eq!(made(frame).await["actionId"], "action:video-frame");
    let tree = lineage(&user, frame, "?direction=parents").await;
    assert_eq!(handles(&tree["items"]), [film_handle, photo]);
}

#[tokio::test]
async fn a_lineage_is_walked_breadth_first_within_its_limits() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = text(&user.make_canvas().await, "/handle").to_owned();
    let photo = user.upload("image/png", images::png(64, 48)).await;
    let photo = text(&photo, "/handle").to_owned();
    let (one, _) = resized(&user, &canvas, &photo).await;
    let (two, _) = resized(&user, &canvas, &photo).await;
    let (grand, _) = resized(&user, &canvas, &one).await;

    let tree = lineage(&user, &photo, "").await;
    let mut children = vec![one.as_str(), two.as_str()];
    children.sort_unstable();
    assert_eq!(handles(&tree["items"]), [&children[..], &[grand.as_str()]].concat());
    let depths: Vec<&Value> = tree["items"].as_array().expect("a list").iter().map(|item| &item["depth"]).collect();
    assert_eq!(depths, [1, 1, 2]);
    assert!(tree["items"].as_array().expect("a list").iter().all(|item| item["direction"] == "children"));
    assert_eq!(tree["items"][2]["shownIn"][0]["canvas"], json!(canvas));
    assert_eq!(tree["items"][2]["made"]["actionId"], "action:resize");
    assert_eq!(tree["asset"]["handle"], json!(photo));
    assert_eq!((&tree["made"]["kind"], &tree["truncated"]), (&json!("upload"), &json!(false)));
    let edges = tree["edges"].as_array().expect("a list");
    assert_eq!(edges.len(), 3, "{tree}");
    assert!(edges.contains(&json!({"child": grand, "parent": one})), "{tree}");

    let tree = lineage(&user, &one, "").await;
    assert_eq!(handles(&tree["items"]), [photo.as_str(), grand.as_str()], "parents first; no siblings");
    for (query, expected) in [
        ("?direction=both", vec![&photo, &grand]),
        ("?direction=parents", vec![&photo]),
        ("?direction=children", vec![&grand]),
        ("?depth=1", vec![&photo, &grand]),
        ("?limit=1", vec![&photo]),
        ("?depth=20&limit=500", vec![&photo, &grand]),
    ] {
        let tree = lineage(&user, &one, query).await;
        assert_eq!(handles(&tree["items"]), expected, "{query}");
        assert_eq!(tree["truncated"], json!(query == "?limit=1"), "{query}");
    }
    let near = lineage(&user, &photo, "?depth=1").await;
    assert_eq!((handles(&near["items"]), &near["truncated"]), (children, &json!(false)));
    for (limit, truncated) in [(2, true), (3, false), (4, false)] {
        assert_eq!(lineage(&user, &photo, &format!("?limit={limit}")).await["truncated"], json!(truncated), "{limit}");
    }
    for (query, field) in [
        ("depth=0", "depth"),
        ("depth=21", "depth"),
        ("depth=x", "depth"),
        ("limit=0", "limit"),
        ("limit=501", "limit"),
        ("direction=up", "direction"),
    ] {
        let refused = user.get(&format!("/assets/{photo}/lineage?{query}")).await;
        refused.expect_error(400, "input_validation_error", &[field]);
    }
    user.get("/assets/absent/lineage").await.expect_error(404, "not_found", &[]);
}

#[tokio::test]
async fn a_lineage_costs_what_its_parts_cost() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    stack.grant(&user.uid, 10).await;
    let canvas = text(&user.make_canvas().await, "/handle").to_owned();
    let (drawn, job) = sketched(&user, &canvas, json!({})).await;
    let (small, _) = resized(&user, &canvas, &drawn).await;
    let cost = &job["creditCost"];
    assert_eq!(lineage(&user, &small, "").await["cost"], json!({"own": 0, "total": cost}));
    assert_eq!(lineage(&user, &drawn, "").await["cost"], json!({"own": cost, "total": cost}));
}

#[tokio::test]
async fn what_the_caller_cannot_read_is_counted_and_not_named() {
    let stack = &Stack::with_workers().await;
    let (owner, member) = (stack.user().await, stack.user().await);
    let (shared, private) = (owner.make_canvas().await, owner.make_canvas().await);
    stack.share(&owner, text(&shared, "/id"), &member.uid, "viewer").await;
    let (shared, private) = (text(&shared, "/handle"), text(&private, "/handle"));
    let photo = owner.upload("image/png", images::png(64, 48)).await;
    let photo = text(&photo, "/handle");
    let (small, _) = resized(&owner, shared, photo).await;
    let (secret, _) = resized(&owner, private, &small).await;
    shown(&owner, private, &small, "Secret title").await;

    let read = origin(&member, &small).await;
    assert_eq!((&read["inputs"], &read["usedIn"].as_array().map(Vec::len)), (&json!([]), &Some(1)), "{read}");
    assert_eq!(read["hidden"], json!({"usedIn": 1, "inputs": 1}));
    let tree = lineage(&member, &small, "").await;
    let hidden = |direction: &str| json!({"hidden": true, "depth": 1, "direction": direction});
    assert_eq!(tree["items"], json!([hidden("parents"), hidden("children")]));
    assert_eq!(tree["edges"], json!([]));
    for answer in [&read, &tree] {
        let answer = answer.to_string();
        assert!(![photo, &secret, private, "Secret title"].iter().any(|name| answer.contains(name)), "{answer}");
    }
    assert_eq!(origin(&owner, &small).await["hidden"], json!({"usedIn": 0, "inputs": 0}));

    // A deleted asset is named to its owner alone.
    stack.admin(&["admin", "asset", "purge", "--asset", photo, "--yes"]).await.expect_success();
    let gone = json!({"gone": true, "handle": photo, "depth": 1, "direction": "parents"});
    assert_eq!(lineage(&owner, &small, "?direction=parents").await["items"], json!([gone]));
    assert_eq!(lineage(&member, &small, "?direction=parents").await["items"], json!([hidden("parents")]));
    assert_eq!(origin(&member, &small).await["hidden"]["inputs"], 1);
    // What was made goes with its asset.
    stack.admin(&["admin", "asset", "purge", "--asset", &secret, "--yes"]).await.expect_success();
    assert_eq!(lineage(&owner, &small, "?direction=children").await["items"], json!([]));
}

#[tokio::test]
async fn twenty_places_are_listed_and_more_are_announced() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = text(&user.make_canvas().await, "/handle").to_owned();
    let photo = user.upload("image/png", images::png(64, 48)).await;
    let photo = text(&photo, "/handle").to_owned();
    for count in 1..=21 {
        let last = shown(&user, &canvas, &photo, &format!("Copy {count}")).await;
        let read = user.get(&format!("/assets/{photo}?include=usedIn")).await.ok();
        assert_eq!(read["usedIn"].as_array().map(Vec::len), Some(count.min(20)));
        assert_eq!((&read["more"], &read["usedIn"][0]["ref"]), (&json!(count > 20), &json!(last)));
        assert_eq!((&read["hidden"], read.get("inputs")), (&json!({"usedIn": 0}), None));
    }
}

#[tokio::test]
async fn what_is_included_is_named() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let photo = user.upload("image/png", images::png(64, 48)).await;
    let photo = text(&photo, "/handle");
    let read = user.get(&format!("/assets/{photo}")).await.ok();
    assert!(read["made"].is_object(), "{read}");
    let members = ["inputs", "usedIn", "more", "hidden"];
    assert!(members.iter().all(|member| read.get(member).is_none()), "{read}");
    for (include, expected) in [
        ("inputs", json!({"inputs": 0})),
        ("usedIn", json!({"usedIn": 0})),
        ("inputs,usedIn", json!({"usedIn": 0, "inputs": 0})),
    ] {
        let read = user.get(&format!("/assets/{photo}?include={include}")).await.ok();
        assert_eq!(read["hidden"], expected, "{include}");
    }
    for wrong in ["everything", "", "inputs,", "usedin"] {
        let refused = user.get(&format!("/assets/{photo}?include={wrong}")).await;
        refused.expect_error(400, "input_validation_error", &["include"]);
    }
}
