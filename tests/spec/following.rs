//! Following a canvas without reading all of it: changes, outline and minimal responses
//! (docs/reference/canvases.md#changes-since-a-revision, docs/reference/conventions.md#minimal-responses).

use std::time::{Duration, Instant};

use e2e::api::{key, text};
use e2e::{Client, Stack};
use serde_json::{Value, json};

const LISTS: [&str; 4] = ["changedNodeIds", "deletedNodeIds", "changedConnectionIds", "deletedConnectionIds"];

async fn since(user: &Client, canvas: &str, revision: &str) -> Value {
    user.get(&format!("/canvases/{canvas}/changes?since={revision}")).await.ok()
}

#[tokio::test]
async fn changes_tell_what_to_read_again() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let (id, first) = (text(&canvas, "/id"), text(&canvas, "/revision"));
    let made = user
        .apply(
            id,
            json!([
                {"type": "node.create", "clientId": "a", "node": {"type": "text"}},
                {"type": "node.create", "clientId": "b", "node": {"type": "text", "position": {"x": 1000, "y": 0}}},
                {"type": "connection.create", "clientId": "c", "fromNodeId": "a", "toNodeId": "b"},
            ]),
        )
        .await;
    let [a, b, c] = ["a", "b", "c"].map(|name| text(&made["resolvedIds"], &format!("/{name}")).to_owned());
    let second = text(&made, "/canvas/revision").to_owned();
    let all = since(&user, id, first).await;
    assert_eq!((&all["since"], &all["revision"], &all["complete"]), (&json!(first), &json!(second), &json!(true)));
    assert_eq!((&all["changedNodeIds"], &all["changedConnectionIds"]), (&json!([a, b]), &json!([c])));
    assert_eq!((&all["deletedNodeIds"], &all["deletedConnectionIds"]), (&json!([]), &json!([])));
    assert_eq!(all["activity"].as_array().map(Vec::len), Some(1));
    assert_eq!(
        (&all["activity"][0]["type"], &all["activity"][0]["revision"]),
        (&json!("operations.applied"), &json!(second))
    );
    let moved = user.apply(id, json!([{"type": "node.move", "nodeId": b, "position": {"x": 2000, "y": 0}}])).await;
    let deleted = user.apply(id, json!([{"type": "node.delete", "nodeId": a}])).await;
    let later = since(&user, id, &second).await;
    assert_eq!((&later["changedNodeIds"], &later["deletedNodeIds"]), (&json!([b]), &json!([a])));
    assert_eq!((&later["changedConnectionIds"], &later["deletedConnectionIds"]), (&json!([]), &json!([c])));
    assert_eq!(later["activity"].as_array().map(Vec::len), Some(2));
    assert_eq!(later["activity"][0]["revision"], deleted["canvas"]["revision"], "newest first");
    assert_eq!(later["activity"][1]["revision"], moved["canvas"]["revision"]);
    // There are no changes since the newest revision.
    let none = since(&user, id, text(&deleted, "/canvas/revision")).await;
    assert!(LISTS.iter().all(|list| none[*list] == json!([])), "{none}");
    assert_eq!((&none["complete"], &none["activity"], &none["revision"]), (&json!(true), &json!([]), &none["since"]));
    // A changed title appears in none of the lists.
    user.apply(id, json!([{"type": "canvas.update", "title": "Renamed"}])).await;
    let renamed = since(&user, id, text(&deleted, "/canvas/revision")).await;
    assert!(LISTS.iter().all(|list| renamed[*list] == json!([])), "{renamed}");
    assert_ne!(renamed["revision"], renamed["since"]);
}

#[tokio::test]
async fn what_was_made_and_deleted_since_is_in_no_list() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let (id, first) = (text(&canvas, "/id"), text(&canvas, "/revision"));
    let made = user
        .apply(
            id,
            json!([
                {"type": "node.create", "clientId": "a", "node": {"type": "text"}},
                {"type": "node.create", "clientId": "b", "node": {"type": "text", "position": {"x": 1000, "y": 0}}},
                {"type": "connection.create", "clientId": "c", "fromNodeId": "a", "toNodeId": "b"},
            ]),
        )
        .await;
    let [a, b, c] = ["a", "b", "c"].map(|name| text(&made["resolvedIds"], &format!("/{name}")).to_owned());
    let second = text(&made, "/canvas/revision").to_owned();
    let touched = user.apply(id, json!([{"type": "node.update", "nodeId": a, "patch": {"title": "T"}}])).await;
    user.apply(id, json!([{"type": "node.delete", "nodeId": a}])).await;
    let all = since(&user, id, first).await;
    assert_eq!((&all["changedNodeIds"], &all["deletedNodeIds"]), (&json!([b]), &json!([])));
    assert_eq!((&all["changedConnectionIds"], &all["deletedConnectionIds"]), (&json!([]), &json!([])));
    // Clients that knew the nodes see them as deleted, whether they were changed in between or not.
    for known in [&second, text(&touched, "/canvas/revision")] {
        let later = since(&user, id, known).await;
        assert_eq!((&later["deletedNodeIds"], &later["deletedConnectionIds"]), (&json!([a]), &json!([c])));
        assert_eq!(later["changedNodeIds"], json!([]));
    }
}

#[tokio::test]
async fn a_revision_that_is_not_known_makes_the_answer_incomplete() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let (canvas, other) = (user.make_canvas().await, user.make_canvas().await);
    let id = text(&canvas, "/id");
    user.apply(id, json!([{"type": "node.create", "node": {"type": "text"}}])).await;
    for unknown in ["never", "%C3%BC%26%20", text(&other, "/revision")] {
        let answer = since(&user, id, unknown).await;
        assert_eq!((&answer["complete"], &answer["activity"]), (&json!(false), &json!([])), "{unknown}");
        assert!(LISTS.iter().all(|list| answer[*list] == json!([])), "{answer}");
        assert_eq!(answer["revision"], user.canvas(id).await["revision"]);
    }
}

#[tokio::test]
async fn the_last_1000_revisions_can_be_followed() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let (id, first) = (text(&canvas, "/id"), text(&canvas, "/revision"));
    // 998 changes, inserted directly: the first revision is now the second oldest of the last 1000.
    sqlx::query(
        "WITH later AS (UPDATE canvases SET sequence = 999 WHERE id = $1 RETURNING key)
         INSERT INTO canvas_changes (canvas_key, sequence, revision)
         SELECT key, sequence, 'made-' || sequence FROM later, generate_series(2, 999) AS sequence",
    )
    .bind(id)
    .execute(stack.pool())
    .await
    .expect("ages the canvas");
    let create = || json!([{"type": "node.create", "node": {"type": "text"}}]);
    user.apply(id, create()).await;
    let all = since(&user, id, first).await;
    assert_eq!(
        (&all["complete"], all["changedNodeIds"].as_array().map(Vec::len)),
        (&json!(true), Some(1)),
        "the 1000th"
    );
    user.apply(id, create()).await;
    assert_eq!(since(&user, id, first).await["complete"], false, "the 1001st");
    let next = since(&user, id, "made-2").await;
    assert_eq!((&next["complete"], next["changedNodeIds"].as_array().map(Vec::len)), (&json!(true), Some(2)));
}

#[tokio::test]
async fn changes_can_be_read_in_full() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let (id, first) = (text(&canvas, "/id"), text(&canvas, "/revision"));
    let full = async |revision: &str| since(&user, id, &format!("{revision}&include=graph")).await;
    let made = user
        .apply(
            id,
            json!([
                {"type": "node.create", "clientId": "a", "node": {"type": "text", "metadata": {"content": "A"}}},
                {"type": "node.create", "clientId": "b", "node": {"type": "image"}},
                {"type": "connection.create", "clientId": "c", "fromNodeId": "a", "toNodeId": "b"},
            ]),
        )
        .await;
    let second = text(&made, "/canvas/revision");
    let (all, whole) = (full(first).await, user.canvas(id).await);
    assert_eq!((&all["nodes"], &all["connections"]), (&whole["nodes"], &whole["connections"]));
    assert_eq!((&all["complete"], all["changedNodeIds"].as_array().map(Vec::len)), (&json!(true), Some(2)));
    // Only what changed, with its present state.
    let b = text(&made, "/resolvedIds/b");
    user.apply(id, json!([{"type": "node.move", "nodeId": b, "position": {"x": 7, "y": 8}}])).await;
    let moved = full(second).await;
    assert_eq!((&moved["changedNodeIds"], &moved["connections"]), (&json!([b]), &json!([])));
    assert_eq!(moved["nodes"], json!([user.canvas(id).await["nodes"][1]]));
    let deleted = user.apply(id, json!([{"type": "node.delete", "nodeId": b}])).await;
    let later = full(second).await;
    assert_eq!((&later["nodes"], &later["connections"]), (&json!([]), &json!([])));
    assert_eq!(later["deletedNodeIds"], json!([b]));
    let none = full(text(&deleted, "/canvas/revision")).await;
    assert_eq!((&none["nodes"], &none["connections"], &none["complete"]), (&json!([]), &json!([]), &json!(true)));
    let unknown = full("never").await;
    assert_eq!((&unknown["nodes"], &unknown["connections"]), (&json!([]), &json!([])));
    // Without it there is neither.
    let plain = since(&user, id, first).await;
    assert!(plain.get("nodes").is_none() && plain.get("connections").is_none(), "{plain}");
}

#[tokio::test]
async fn at_most_1000_nodes_and_connections_are_read_in_full() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let (id, first) = (text(&canvas, "/id"), text(&canvas, "/revision"));
    let node = |number: usize| {
        json!({"type": "node.create", "clientId": format!("n{number}"),
            "node": {"type": "text", "position": {"x": number * 1000, "y": 0}}})
    };
    let mut nodes: Vec<String> = Vec::new();
    for batch in 0..4 {
        let made = user.apply(id, (0..200).map(|number| node(batch * 200 + number)).collect()).await;
        nodes.extend(
            (0..200).map(|number| text(&made["resolvedIds"], &format!("/n{}", batch * 200 + number)).to_owned()),
        );
    }
    let connect = |pairs: &[String]| {
        let connect =
            |pair: &[String]| json!({"type": "connection.create", "fromNodeId": pair[0], "toNodeId": pair[1]});
        pairs.windows(2).map(connect).collect::<Value>()
    };
    user.apply(id, connect(&nodes[..200])).await;
    user.apply(id, connect(&nodes[200..202])).await;
    let full = async || since(&user, id, &format!("{first}&include=graph")).await;
    let all = full().await;
    assert_eq!(all["complete"], true);
    let count = |list: &str| all[list].as_array().map(Vec::len);
    assert_eq!((count("nodes"), count("connections")), (Some(800), Some(200)), "1000 together");
    user.apply(id, connect(&nodes[202..204])).await;
    let beyond = full().await;
    assert_eq!(
        (&beyond["complete"], &beyond["nodes"], &beyond["connections"]),
        (&json!(false), &json!([]), &json!([]))
    );
    assert!(LISTS.iter().all(|list| beyond[*list] == json!([])) && beyond["activity"] == json!([]));
    let ids = since(&user, id, first).await;
    assert_eq!((&ids["complete"], ids["changedConnectionIds"].as_array().map(Vec::len)), (&json!(true), Some(201)));
}

#[tokio::test]
async fn a_wait_ends_with_the_next_revision() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let (id, first) = (text(&canvas, "/id"), text(&canvas, "/revision"));
    let path = format!("/canvases/{id}/changes?since={first}&include=graph");
    let wait = async || user.get(&path).header("prefer", "wait=30").await.expect(200);
    let change = async {
        // The revision that the wait starts from is the one that both read first.
        user.apply(id, json!([{"type": "node.create", "node": {"type": "text"}}])).await
    };
    let start = Instant::now();
    let (waited, changed) = tokio::join!(wait(), change);
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    assert_eq!(waited.header("preference-applied"), Some("wait=30"));
    let waited = waited.json();
    assert_eq!((&waited["revision"], &waited["since"]), (&changed["canvas"]["revision"], &json!(first)));
    assert_eq!(waited["nodes"], changed["canvas"]["nodes"]);
    // Without a change, after the time that was preferred.
    let start = Instant::now();
    let path = format!("/canvases/{id}/changes?since={}", text(&waited, "/revision"));
    let same = user.get(&path).header("prefer", "wait=0").await.expect(200);
    assert!(start.elapsed() >= Duration::from_secs(1), "{:?}", start.elapsed());
    assert_eq!(same.header("preference-applied"), Some("wait=1"), "clamped");
    assert_eq!((&same.json()["revision"], &same.json()["changedNodeIds"]), (&waited["revision"], &json!([])));
    let plain = user.get(&path).header("prefer", "wait=soon").await.expect(200);
    assert_eq!(plain.header("preference-applied"), None);
}

#[tokio::test]
async fn a_wait_from_an_older_revision_ends_at_once() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let (id, first) = (text(&canvas, "/id"), text(&canvas, "/revision"));
    user.apply(id, json!([{"type": "canvas.update", "title": "T"}])).await;
    let start = Instant::now();
    for known in [first, "never"] {
        let path = format!("/canvases/{id}/changes?since={known}");
        let read = user.get(&path).header("prefer", "wait=30").await.ok();
        assert_eq!(read["complete"], known == first);
    }
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_wait_ends_when_the_canvas_can_no_longer_be_read() {
    let stack = &Stack::without_workers().await;
    let (owner, viewer) = (stack.user().await, stack.user().await);
    let canvas = owner.make_canvas().await;
    let (id, handle) = (text(&canvas, "/id"), text(&canvas, "/handle"));
    stack.share(&owner, id, &viewer.uid, "viewer").await;
    let path = format!("/canvases/{handle}/changes?since={}", text(&canvas, "/revision"));
    let wait = async { viewer.get(&path).header("prefer", "wait=30").await };
    let start = Instant::now();
    let (waited, ()) = tokio::join!(wait, stack.share(&owner, id, &viewer.uid, "none"));
    waited.expect_error(404, "not_found", &[]);
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_wait_ends_with_its_credential() {
    let stack = &Stack::without_workers().await;
    let account = stack.account().await;
    let (owner, reader) = (stack.user_of(&account, "all").await, stack.user_of(&account, "canvas:read").await);
    let canvas = owner.make_canvas().await;
    let path = format!("/canvases/{}/changes?since={}", text(&canvas, "/id"), text(&canvas, "/revision"));
    let wait = async { reader.get(&path).header("prefer", "wait=30").await };
    let start = Instant::now();
    let revoke = ["admin", "token", "revoke", &reader.token_id];
    let (waited, revoked) = tokio::join!(wait, stack.admin(&revoke));
    revoked.expect_success();
    waited.expect_error(401, "unauthorized", &[]);
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

#[tokio::test]
async fn include_has_one_value() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let path = format!("/canvases/{}/changes?since={}", text(&canvas, "/id"), text(&canvas, "/revision"));
    for query in ["include=", "include=nodes", "include=graph,nodes", "include=graph&include=graph"] {
        user.get(&format!("{path}&{query}")).await.expect_error(400, "input_validation_error", &["include"]);
    }
    let path = format!("/canvases/{}/changes?include=all", text(&canvas, "/id"));
    user.get(&path).await.expect_error(400, "input_validation_error", &["include", "since"]);
}

#[tokio::test]
async fn since_is_required_and_has_a_length() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let path = format!("/canvases/{}/changes", text(&canvas, "/id"));
    for query in ["", "?since=", "?since=a&since=b", "?since=%FF", &format!("?since={}", "r".repeat(201))] {
        user.get(&format!("{path}{query}")).await.expect_error(400, "input_validation_error", &["since"]);
    }
    user.get(&format!("{path}?since={}", "r".repeat(200))).await.ok();
    user.get("/canvases/a%20b/changes").await.expect_error(400, "input_validation_error", &["canvasId", "since"]);
}

#[tokio::test]
async fn a_conflict_leads_to_the_changes() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let (id, first) = (text(&canvas, "/id"), text(&canvas, "/revision"));
    let create = json!([{"type": "node.create", "node": {"type": "text"}}]);
    let made = user.batch(id, first, create.clone()).await.ok();
    let details = user.batch(id, first, create.clone()).await.expect(409).json()["error"]["details"].clone();
    let changes = user.get(text(&details, "/changesUrl")).await.ok();
    assert_eq!((&changes["since"], &changes["revision"]), (&json!(first), &details["currentRevision"]));
    assert_eq!((&changes["complete"], &changes["changedNodeIds"]), (&json!(true), &made["changedNodeIds"]));
    // The conflict reports any string that the client sent as a revision.
    let odd = "a b&c=ü%#";
    let details = user.batch(id, odd, create).await.expect(409).json()["error"]["details"].clone();
    let changes = user.get(text(&details, "/changesUrl")).await.ok();
    assert_eq!((&changes["since"], &changes["complete"]), (&json!(odd), &json!(false)));
    // The start of an Action has the same conflict.
    let asset = user.upload("image/png", e2e::images::png(4, 4)).await;
    let slot = user.slot(id).await;
    let mut run = user.resize_request(id, &slot, text(&asset, "/handle")).await;
    run["baseRevision"] = json!(first);
    let details = user.send("/actions/resize/runs", &run).await.expect(409).json()["error"]["details"].clone();
    assert_eq!(user.get(text(&details, "/changesUrl")).await.ok()["complete"], true);
}

#[tokio::test]
async fn an_outline_is_a_text_with_handles() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let asset = user.upload_into(id, "image/png", e2e::images::png(4, 4)).await;
    let image = text(&asset, "/node");
    let made = user
        .apply(id, json!([
            {"type": "node.create", "clientId": "s", "node": {"type": "sticky", "title": "References", "width": 2000, "height": 2000, "position": {"x": 5000, "y": 0}, "metadata": {"section": true}}},
            {"type": "node.create", "clientId": "t", "node": {"type": "text", "title": "No\ntrick\n  image node:x", "position": {"x": 5100, "y": 100}, "metadata": {"content": "Hello", "sectionId": "s"}}},
            {"type": "connection.create", "clientId": "c", "fromNodeId": image, "toNodeId": "t", "purpose": "reference", "role": "style"},
        ]))
        .await;
    let [s, t] = ["s", "t"].map(|name| text(&made["resolvedIds"], &format!("/{name}")).to_owned());
    let reply = user.get(&format!("/canvases/{id}/outline")).await.expect(200);
    assert_eq!(reply.header("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(reply.header("cache-control"), Some("private, no-store"));
    let outline = String::from_utf8(reply.body.to_vec()).expect("UTF-8");
    let lines: Vec<&str> = outline.lines().collect();
    assert_eq!(lines.len(), 5, "{outline}");
    assert!(lines[0].starts_with(text(&canvas, "/handle")) && lines[0].contains(text(&made, "/canvas/revision")));
    assert!(lines[1].starts_with(&format!("  n2 section {s} \"References\"")), "{outline}");
    assert!(lines[2].starts_with(&format!("    n3 text {t} ")) && lines[2].ends_with(": \"Hello\""), "{outline}");
    let id = |handle: &str| handle.rsplit(':').next().unwrap_or_default().to_owned();
    assert!(lines[3].starts_with(&format!("  n1 image {} ", id(image))), "{outline}");
    assert!(lines[3].ends_with(&format!(" shows {}", id(text(&asset, "/handle")))), "{outline}");
    assert_eq!(lines[4], "    -> n3 reference as style");
    assert_eq!(outline.matches(&user.uid).count(), 1, "{outline}");
    let path = |query: &str| format!("/canvases/{}/outline{query}", text(&canvas, "/id"));
    let named = user.get(&path("?connections=true")).await.expect(200);
    let named = String::from_utf8(named.body.to_vec()).expect("UTF-8");
    let connection = text(&made, "/resolvedIds/c");
    assert_eq!(named, outline.replace("-> n3 reference", &format!("-> n3 c1 {connection} reference")));
    assert_eq!(user.get(&path("?connections=false")).await.expect(200).body, reply.body);
    user.get(&path("?connections=1")).await.expect_error(400, "input_validation_error", &["connections"]);
}

#[tokio::test]
async fn an_outline_has_at_most_64_kibibytes() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    for row in 0..3 {
        let nodes: Vec<Value> = (0..200)
            .map(|column| {
                json!({"type": "node.create", "node": {"type": "text", "title": "ü".repeat(160),
                "position": {"x": column * 1000, "y": row * 1000}}})
            })
            .collect();
        user.apply(id, json!(nodes)).await;
    }
    let reply = user.get(&format!("/canvases/{id}/outline")).await.expect(200);
    let outline = String::from_utf8(reply.body.to_vec()).expect("UTF-8");
    assert!(outline.len() <= 65_536 && outline.len() > 60_000, "{}", outline.len());
    let cursor = reply.header("x-next-cursor").expect("there is more").to_owned();
    assert_eq!(outline.lines().last(), Some(&*format!("... more: cursor={cursor}")));
    let mut pages = vec![outline];
    let mut next = Some(cursor);
    while let Some(cursor) = next {
        let page = user.get(&format!("/canvases/{id}/outline?cursor={cursor}")).await.expect(200);
        next = page.header("x-next-cursor").map(str::to_owned);
        let page = String::from_utf8(page.body.to_vec()).expect("UTF-8");
        assert!(
            page.len() <= 65_536 && page.lines().next().is_some_and(|head| head.ends_with(" (continued)")),
            "{page}"
        );
        pages.push(page);
    }
    let nodes =
        |page: &String| page.lines().filter(|line| line.starts_with("  n")).map(str::to_owned).collect::<Vec<_>>();
    let refs: Vec<String> = pages
        .iter()
        .flat_map(nodes)
        .collect::<Vec<_>>()
        .iter()
        .map(|line| line[2..].split(' ').next().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(refs, (1..=600).map(|number| format!("n{number}")).collect::<Vec<_>>(), "each once, in order");
}

#[tokio::test]
async fn an_outline_shows_the_ids_texts_nodes_and_section_that_are_asked_for() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let long = format!("Crème {}", "word ".repeat(30).trim_end());
    user.apply(id, json!([
        {"type": "node.create", "clientId": "a", "node": {"type": "text", "title": "A", "position": {"x": 100, "y": 100}, "metadata": {"content": long}}},
        {"type": "section.create", "clientId": "s", "title": "Notes", "nodeIds": ["a"]},
        {"type": "node.create", "node": {"type": "image", "title": "B", "position": {"x": 4000, "y": 0}, "metadata": {"prompt": "a red boat"}}},
    ]))
    .await;
    let read = async |query: &str| {
        let reply = user.get(&format!("/canvases/{id}/outline?{query}")).await.expect(200);
        String::from_utf8(reply.body.to_vec()).expect("UTF-8")
    };
    let by_refs = read("ids=refs").await;
    assert!(by_refs.starts_with(&format!("{} ", text(&canvas, "/slug"))), "{by_refs}");
    assert!(by_refs.contains("  n2 section \"Notes\" ") && by_refs.contains("    n1 text \"A\" "), "{by_refs}");
    assert_eq!(read("ids=full&text=short").await, read("").await);
    assert!(read("text=full").await.contains(&format!(": {}\n", json!(long))));
    assert!(!read("text=none").await.contains("word"));
    let nodes = |page: String| {
        page.lines()
            .skip(1)
            .map(|line| line.trim().split(' ').next().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(nodes(read("query=CREME+word").await), ["n1"]);
    assert_eq!(nodes(read("query=boat").await), ["n3"]);
    assert!(nodes(read("query=.*").await).is_empty());
    for section in ["n2", "node:n2"] {
        assert_eq!(nodes(read(&format!("section={section}")).await), ["n2", "n1"]);
    }
    let path = |query: &str| format!("/canvases/{id}/outline?{query}");
    user.get(&path("section=n1")).await.expect_error(422, "unprocessable_entity", &["section"]);
    for (query, field) in [
        ("text=all", "text"),
        ("ids=short", "ids"),
        ("query=", "query"),
        ("query=%20", "query"),
        (&*format!("query={}", "x".repeat(201)), "query"),
        ("maxBytes=1023", "maxBytes"),
        ("maxBytes=65537", "maxBytes"),
        ("cursor=x", "cursor"),
        ("section=a%20b", "section"),
    ] {
        user.get(&path(query)).await.expect_error(400, "input_validation_error", &[field]);
    }
    for query in [format!("query={}", "x".repeat(200)), "maxBytes=1024".into(), "maxBytes=65536".into()] {
        assert!(read(&query).await.len() <= 65_536);
    }
}

#[tokio::test]
async fn the_pages_of_an_outline_are_of_one_canvas_and_one_view() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let (canvas, other) = (user.make_canvas().await, user.make_canvas().await);
    let id = text(&canvas, "/id");
    for name in [id, text(&other, "/id")] {
        let node =
            |at: usize| json!({"type": "node.create", "node": {"type": "text", "position": {"x": 400 * at, "y": 0}}});
        user.apply(name, (0..40).map(node).collect()).await;
    }
    let page = user.get(&format!("/canvases/{id}/outline?maxBytes=1024")).await.expect(200);
    assert!(page.body.len() <= 1024);
    let cursor = page.header("x-next-cursor").expect("there is more");
    let next = async |path: String| user.get(&path).await;
    next(format!("/canvases/{id}/outline?maxBytes=4096&cursor={cursor}")).await.expect(200);
    for path in [
        format!("/canvases/{}/outline?cursor={cursor}", text(&other, "/id")),
        format!("/canvases/{id}/outline?ids=refs&cursor={cursor}"),
        format!("/canvases/{id}/outline?query=text&cursor={cursor}"),
    ] {
        next(path).await.expect_error(400, "input_validation_error", &["cursor"]);
    }
    user.apply(id, json!([{"type": "canvas.update", "title": "New"}])).await;
    let later = next(format!("/canvases/{id}/outline?cursor={cursor}")).await.expect(200);
    let head = String::from_utf8_lossy(&later.body).lines().next().unwrap_or_default().to_owned();
    assert!(head.contains("(continued, changed since the first page, which was of revision "), "{head}");
}

#[tokio::test]
async fn changes_name_the_authors_of_nodes() {
    let stack = &Stack::without_workers().await;
    let (user, other) = (stack.user().await, stack.user().await);
    let canvas = user.make_canvas().await;
    let (id, since) = (text(&canvas, "/id"), text(&canvas, "/revision"));
    stack.share(&user, id, &other.uid, "editor").await;
    let node =
        json!([{"type": "node.create", "clientId": "a", "node": {"type": "text", "position": {"x": 0, "y": 0}}}]);
    let made = user.apply(id, node).await;
    let node = text(&made, "/resolvedIds/a");
    let renamed = |title: &str| json!([{"type": "node.update", "nodeId": node, "patch": {"title": title}}]);
    user.apply(id, renamed("One")).await;
    let last = other.apply(text(&canvas, "/handle"), renamed("Two")).await;
    let changes = |query: &str| format!("/canvases/{id}/changes?since={since}{query}");
    let read = user.get(&changes("&include=authors")).await.ok();
    let authors = read["authors"][node].as_array().expect("authors");
    assert_eq!(authors.len(), 2, "each once: {read}");
    assert_eq!((&authors[0]["revision"], &authors[0]["surface"]), (&last["canvas"]["revision"], &json!("api")));
    assert!(authors[0]["label"].is_string() && authors[0]["at"].is_string() && read.get("nodes").is_none());
    let both = user.get(&changes("&include=graph,authors")).await.ok();
    assert_eq!((&both["authors"], both["nodes"][0]["ref"].clone()), (&read["authors"], json!("n1")));
    assert_eq!(both["refs"], json!({ node: "n1" }));
    assert_eq!(both["slug"], canvas["slug"]);
    let plain = user.get(&changes("")).await.ok();
    assert!(
        plain.get("authors").is_none() && plain.get("refs").is_none() && plain["slug"] == canvas["slug"],
        "{plain}"
    );
    // What is deleted keeps its ref.
    user.apply(id, json!([{"type": "node.delete", "nodeId": node}])).await;
    let since = &last["canvas"]["revision"].as_str().expect("a revision");
    let gone = user.get(&format!("/canvases/{id}/changes?since={since}&include=authors")).await.ok();
    assert_eq!((&gone["deletedNodeIds"], &gone["refs"]), (&json!([node]), &json!({ node: "n1" })), "{gone}");
    user.get(&changes("&include=everything")).await.expect_error(400, "input_validation_error", &["include"]);
}

#[tokio::test]
async fn a_minimal_answer_leaves_out_nodes_and_connections() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let path = format!("/canvases/{}/operations", text(&canvas, "/id"));
    let batch = json!({"baseRevision": canvas["revision"], "idempotencyKey": key(),
        "operations": [{"type": "node.create", "clientId": "n", "node": {"type": "text", "position": {"x": 0, "y": 0}}}]});
    let send = async |prefer: &str| {
        user.post(&path).header("prefer", prefer).body("application/json", batch.to_string()).await.expect(200)
    };
    let first = send("respond-async, return=minimal").await;
    assert_eq!(first.header("preference-applied"), Some("return=minimal"));
    let body = first.json();
    let now = user.canvas(text(&canvas, "/id")).await;
    for field in ["id", "handle", "ownerUid", "title", "createdAt", "updatedAt", "revision"] {
        assert_eq!(body["canvas"][field], now[field], "{field}");
    }
    assert!(body["canvas"].get("nodes").is_none() && body["canvas"].get("connections").is_none(), "{body}");
    assert_eq!((&body["canvas"]["nodeCount"], &body["replayed"]), (&json!(1), &json!(false)));
    assert_eq!(body["changedNodeIds"], json!([body["resolvedIds"]["n"]]), "everything else is reported");
    // A preference is not part of the request: a replay can ask for the whole or the minimal response.
    let whole = send("return=representation").await;
    assert_eq!(whole.header("preference-applied"), None);
    assert_eq!((&whole.json()["canvas"], &whole.json()["replayed"]), (&now, &json!(true)));
    let again = send("Return = \"minimal\"").await.json();
    assert_eq!((&again["canvas"], &again["replayed"]), (&body["canvas"], &json!(true)));
}

#[tokio::test]
async fn strangers_follow_nothing_and_viewers_all() {
    let stack = &Stack::without_workers().await;
    let (owner, viewer, stranger) = (stack.user().await, stack.user().await, stack.user().await);
    let canvas = owner.make_canvas().await;
    let (id, handle, revision) = (text(&canvas, "/id"), text(&canvas, "/handle"), text(&canvas, "/revision"));
    stack.share(&owner, id, &viewer.uid, "viewer").await;
    for path in [format!("changes?since={revision}"), "outline".to_owned()] {
        viewer.get(&format!("/canvases/{handle}/{path}")).await.expect(200);
        let sign = if path.contains('?') { '&' } else { '?' };
        viewer.get(&format!("/canvases/{id}/{path}{sign}ownerUid={}", owner.uid)).await.expect(200);
        viewer.get(&format!("/canvases/{id}/{path}")).await.expect_error(404, "not_found", &[]);
        stranger.get(&format!("/canvases/{handle}/{path}")).await.expect_error(404, "not_found", &[]);
    }
}
