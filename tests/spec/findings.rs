//! Dry runs, findings and reviews (docs/reference/findings.md, docs/reference/operations.md#dry-runs).

use e2e::api::{key, text, trial};
use e2e::{Stack, User, images};
use serde_json::{Value, json};

fn node(name: &str, kind: &str, x: i64, y: i64) -> Value {
    json!({"type": "node.create", "clientId": name, "node": {"type": kind, "position": {"x": x, "y": y}}})
}

fn path(canvas: &Value) -> String {
    format!("/canvases/{}/operations", text(canvas, "/id"))
}

async fn validation(user: &User, canvas: &Value, operations: Value) -> Value {
    user.send(&path(canvas), &trial(operations)).await.ok()["validation"].clone()
}

/// Applies operations with `force`, to create the findings that a test expects.
async fn force(user: &User, canvas: &Value, operations: Value) -> Value {
    let now = user.canvas(text(canvas, "/id")).await;
    let body =
        json!({"baseRevision": now["revision"], "idempotencyKey": key(), "force": true, "operations": operations});
    user.send(&path(canvas), &body).await.ok()
}

/// Code, severity and ownership of every finding.
fn said(validation: &Value) -> Vec<(&str, &str, &str)> {
    let findings = validation["findings"].as_array().expect("a list");
    findings.iter().map(|of| (text(of, "/code"), text(of, "/severity"), text(of, "/ownership"))).collect()
}

#[tokio::test]
async fn a_dry_run_says_what_the_write_does_and_writes_nothing() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let first =
        user.apply(text(&canvas, "/id"), json!([node("old", "text", 0, 0), node("gone", "image", 2000, 0)])).await;
    let before = user.canvas(text(&canvas, "/id")).await;
    let operations = json!([
        node("a", "image", 4000, 0),
        node("b", "text", 4100, 0),
        {"type": "connection.create", "clientId": "c", "fromNodeId": "a", "toNodeId": "b", "purpose": "reference"},
        {"type": "node.move", "nodeId": first["resolvedIds"]["old"], "position": {"x": 0, "y": 500}},
        {"type": "node.delete", "nodeId": first["resolvedIds"]["gone"]},
    ]);
    let tried = user.send(&path(&canvas), &trial(operations.clone())).await.ok();
    assert_eq!(user.canvas(text(&canvas, "/id")).await, before);
    assert_eq!((&tried["canvas"]["revision"], &tried["canvas"]["nodeCount"]), (&before["revision"], &json!(2)));
    assert!(tried["canvas"].get("nodes").is_none(), "a summary");
    let proposal = &tried["proposal"];
    assert_eq!(proposal["operationCount"], 5);
    assert_eq!(
        proposal["resolvedIds"].as_object().map(|ids| ids.keys().cloned().collect::<Vec<_>>()),
        Some(vec!["a".into(), "b".into(), "c".into()])
    );
    let ids = |of: &Value| json!([of["resolvedIds"]["a"], of["resolvedIds"]["b"], first["resolvedIds"]["old"]]);
    assert_eq!(proposal["changedNodeIds"], ids(proposal));
    assert_eq!(proposal["deletedNodeIds"], json!([first["resolvedIds"]["gone"]]));
    assert_eq!(proposal["changedConnectionIds"], json!([proposal["resolvedIds"]["c"]]));
    // The write is rejected with the findings that the dry run reported. With `force` it applies the proposal.
    let body = json!({"baseRevision": before["revision"], "idempotencyKey": key(), "operations": operations});
    let refused = user.send(&path(&canvas), &body).await.expect(422).json()["error"].clone();
    assert_eq!((&refused["code"], refused.get("fields")), (&json!("unprocessable_entity"), None));
    let forms = |findings: &Value| {
        findings
            .as_array()
            .expect("a list")
            .iter()
            .map(|of| (of["code"].clone(), of["severity"].clone(), of["message"].clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(forms(&refused["details"]["findings"]), forms(&tried["validation"]["findings"]));
    assert_eq!(refused["details"]["completionReview"]["status"], "blocked");
    assert_eq!(user.canvas(text(&canvas, "/id")).await, before);
    let done = force(&user, &canvas, operations).await;
    assert_eq!((&done["changedNodeIds"], &done["deletedNodeIds"]), (&ids(&done), &proposal["deletedNodeIds"]));
}

#[tokio::test]
async fn a_dry_run_looks_at_no_key_and_needs_no_revision_role_or_write_scope() {
    let stack = &Stack::with_workers().await;
    let account = stack.account().await;
    let (owner, reader, viewer, stranger) = (
        stack.user_of(&account, "all").await,
        stack.user_of(&account, "canvas:read").await,
        stack.user().await,
        stack.user().await,
    );
    let canvas = owner.make_canvas().await;
    stack.share(&owner, text(&canvas, "/id"), &viewer.uid, "viewer").await;
    let shared = format!("/canvases/{}/operations", text(&canvas, "/handle"));
    let one = || trial(json!([node("a", "text", 0, 0)]));
    reader.send(&path(&canvas), &one()).await.ok();
    viewer.send(&shared, &one()).await.ok();
    stranger.send(&shared, &one()).await.expect_error(404, "not_found", &[]);
    let with = |name: &str, value: Value| {
        let mut body = one();
        body[name] = value;
        body
    };
    for odd in [json!(""), json!("x".repeat(500)), json!(7), json!(null), json!({"a": [1]})] {
        owner.send(&path(&canvas), &with("idempotencyKey", odd)).await.ok();
    }
    owner.send(&path(&canvas), &with("baseRevision", canvas["revision"].clone())).await.ok();
    let stale = owner.send(&path(&canvas), &with("baseRevision", json!("stale"))).await.expect(409).json();
    assert_eq!(stale["error"]["details"]["currentRevision"], canvas["revision"]);
    for bad in [json!(""), json!("r".repeat(201)), json!(null)] {
        owner.send(&path(&canvas), &with("baseRevision", bad)).await.expect_error(
            400,
            "input_validation_error",
            &["baseRevision"],
        );
    }
    owner.send(&path(&canvas), &with("later", json!(1))).await.expect_error(400, "input_validation_error", &["later"]);
    // The key of a dry run stays unused.
    let name = key();
    owner.send(&path(&canvas), &with("idempotencyKey", json!(name))).await.ok();
    let body =
        json!({"baseRevision": canvas["revision"], "idempotencyKey": name, "operations": [node("a", "text", 0, 0)]});
    assert_eq!(owner.send(&path(&canvas), &body).await.ok()["replayed"], false);
    // Writing requires the scope, and the error names it.
    let message = reader.send(&path(&canvas), &body).await.expect_error(403, "forbidden", &[]);
    assert!(message.contains("canvas:write") && !message.contains("canvas:read"), "{message}");
}

#[tokio::test]
async fn a_dry_run_refuses_what_the_write_refuses() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let many =
        |count: usize| json!((0..count).map(|_| json!({"type": "canvas.update", "title": "T"})).collect::<Vec<_>>());
    user.send(&path(&canvas), &trial(many(200))).await.ok();
    for (operations, status, field) in [
        (many(0), 400, "operations"),
        (many(201), 400, "operations"),
        (json!([{"type": "node.delete", "nodeId": "absent"}]), 422, "operations[0].nodeId"),
        (json!([node("a", "cube", 0, 0)]), 400, "operations[0].node.type"),
        (
            json!([{"type": "node.create", "node": {"type": "image", "metadata": {"content": "c"}}}]),
            400,
            "operations[0].node.metadata.content",
        ),
    ] {
        let code = if status == 400 { "input_validation_error" } else { "unprocessable_entity" };
        user.send(&path(&canvas), &trial(operations)).await.expect_error(status, code, &[field]);
    }
}

#[tokio::test]
async fn an_agents_overlap_blocks_and_force_applies_it() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let beside = |x: i64| json!([node("a", "text", 0, 0), node("b", "text", x, 0)]);
    // Frames that overlap by less than the tolerance are not reported.
    assert_eq!(said(&validation(&user, &canvas, beside(319)).await), []);
    let blocked = validation(&user, &canvas, beside(318)).await;
    assert_eq!(said(&blocked), [("agent_overlap", "error", "agent")]);
    assert_eq!((&blocked["status"], &blocked["truncated"]), (&json!("blocked"), &json!(false)));
    let review = &blocked["completionReview"];
    assert_eq!((&review["status"], &review["doneClaimAllowed"]), (&json!("blocked"), &json!(false)));
    assert_eq!(
        (&review["blockingFindingCodes"], &review["advisoryFindingCodes"]),
        (&json!(["agent_overlap"]), &json!([]))
    );
    assert_eq!((&review["overlap"]["status"], &review["containment"]["status"]), (&json!("blocked"), &json!("clear")));
    assert_eq!(review["overlap"]["nodeHandles"], blocked["findings"][0]["nodeHandles"]);
    user.batch(text(&canvas, "/id"), text(&canvas, "/revision"), beside(318)).await.expect(422);
    assert_eq!(user.canvas(text(&canvas, "/id")).await, canvas);
    force(&user, &canvas, beside(318)).await;
}

#[tokio::test]
async fn what_was_there_before_never_blocks() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let made = force(&user, &canvas, json!([node("a", "text", 0, 0), node("b", "text", 9, 9)])).await;
    let patch = json!([{"type": "node.update", "nodeId": made["resolvedIds"]["a"], "patch": {"title": "T"}}, node("c", "text", 5000, 0)]);
    let standing = validation(&user, &canvas, patch.clone()).await;
    assert_eq!(said(&standing), [("agent_overlap", "warning", "agent")]);
    assert_eq!(
        (&standing["status"], &standing["completionReview"]["status"]),
        (&json!("advisory"), &json!("needs-review"))
    );
    assert_eq!(standing["completionReview"]["doneClaimAllowed"], false);
    user.apply(text(&canvas, "/id"), patch).await;
    let resize = json!([{"type": "node.update", "nodeId": made["resolvedIds"]["a"], "patch": {"width": 400}}]);
    assert_eq!(said(&validation(&user, &canvas, resize).await), [("agent_overlap", "error", "agent")]);
}

#[tokio::test]
async fn the_users_own_overlaps_are_only_said() {
    let stack = &Stack::with_workers().await;
    let account = stack.account().await;
    let (person, agent) = (stack.user_by(&account, "all", "browser").await, stack.user_of(&account, "all").await);
    let canvas = person.make_canvas().await;
    let made = person.apply(text(&canvas, "/id"), json!([node("a", "text", 0, 0), node("b", "text", 9, 9)])).await;
    let nothing = || json!([{"type": "canvas.update", "title": "T"}]);
    let mine = validation(&person, &canvas, nothing()).await;
    assert_eq!(said(&mine), [("user_overlap", "info", "user")]);
    assert_eq!((&mine["status"], &mine["completionReview"]["status"]), (&json!("advisory"), &json!("ready")));
    assert_eq!(mine["completionReview"]["doneClaimAllowed"], true);
    // A user's node that an agent moves remains the user's. A node that the agent creates is the agent's.
    let moved = json!([{"type": "node.move", "nodeId": made["resolvedIds"]["a"], "position": {"x": 3, "y": 3}}]);
    assert_eq!(said(&validation(&agent, &canvas, moved).await), [("user_overlap", "info", "user")]);
    let added = validation(&agent, &canvas, json!([node("c", "text", 300, 300)])).await;
    assert_eq!(said(&added), [("user_overlap", "info", "user")]);
    let added = validation(&agent, &canvas, json!([node("c", "text", 300, 100)])).await;
    assert_eq!(said(&added)[0], ("agent_overlap", "error", "agent"));
}

#[tokio::test]
async fn a_member_that_leaves_its_section_blocks() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let with_member = |x: i64| {
        json!([
            {"type": "node.create", "clientId": "s", "node": {"type": "sticky", "position": {"x": 0, "y": 0}, "width": 400, "height": 400, "metadata": {"section": true}}},
            {"type": "node.create", "clientId": "m", "node": {"type": "text", "position": {"x": x, "y": 0}, "metadata": {"sectionId": "s"}}},
        ])
    };
    let at_edge = validation(&user, &canvas, with_member(80)).await;
    assert_eq!(said(&at_edge), [("frames_touch", "warning", "agent")], "edge on edge is inside");
    let blocked = validation(&user, &canvas, with_member(81)).await;
    assert_eq!(said(&blocked), [("section_overflow", "error", "agent")]);
    assert_eq!(blocked["completionReview"]["containment"]["status"], "blocked");
    let made = user.apply(text(&canvas, "/id"), with_member(80)).await;
    let shrink = json!([{"type": "node.update", "nodeId": made["resolvedIds"]["s"], "patch": {"width": 399}}]);
    assert_eq!(said(&validation(&user, &canvas, shrink.clone()).await), [("section_overflow", "error", "agent")]);
    force(&user, &canvas, shrink).await;
    let other = json!([{"type": "canvas.update", "title": "T"}]);
    assert_eq!(said(&validation(&user, &canvas, other).await), [("section_overflow", "warning", "agent")]);
    let out = json!([{"type": "node.update", "nodeId": made["resolvedIds"]["m"], "patch": {"metadata": {"sectionId": null}}}]);
    assert_eq!(said(&validation(&user, &canvas, out).await), []);
}

#[tokio::test]
async fn references_from_empty_images_are_warned_of() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    for (purpose, expected) in [
        ("reference", vec![("reference_source_empty", "warning", "agent")]),
        ("first-frame", vec![("reference_source_empty", "warning", "agent")]),
        ("last-frame", vec![("reference_source_empty", "warning", "agent")]),
        ("flow", vec![]),
        ("list", vec![]),
    ] {
        let [image, video] = [("i", "image", 0), ("v", "video", 1000)].map(|(name, kind, x)| {
            let mut node = node(name, kind, x, 0);
            node["node"]["metadata"] = json!({"placeholder": true});
            node
        });
        let operations = json!([image, video,
            {"type": "connection.create", "clientId": "c", "fromNodeId": "i", "toNodeId": "v", "purpose": purpose}]);
        let found = validation(&user, &canvas, operations).await;
        assert_eq!(said(&found), expected, "{purpose}");
        if !expected.is_empty() {
            let group = &found["completionReview"]["referenceLineage"];
            assert_eq!(
                (&group["status"], &group["findingCodes"]),
                (&json!("needs-review"), &json!(["reference_source_empty"]))
            );
            assert_eq!(group["connectionHandles"].as_array().map(Vec::len), Some(1));
        }
    }
}

#[tokio::test]
async fn a_circle_of_the_batchs_connections_blocks() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let connect = |from: &str, to: &str, purpose: &str| json!({"type": "connection.create", "fromNodeId": from, "toNodeId": to, "purpose": purpose});
    let nodes = [node("a", "text", 0, 0), node("b", "text", 1000, 0), node("c", "text", 2000, 0)];
    let with = |last: Value| {
        json!([nodes.as_slice(), &[connect("a", "b", "flow"), connect("b", "c", "reference"), last]].concat())
    };
    assert_eq!(said(&validation(&user, &canvas, with(connect("c", "a", "list"))).await), []);
    let circle = with(connect("c", "a", "flow"));
    let found = validation(&user, &canvas, circle.clone()).await;
    assert_eq!(said(&found), [("reference_cycle", "error", "agent")], "one for each component");
    assert_eq!(found["findings"][0]["nodeHandles"].as_array().map(Vec::len), Some(3));
    assert_eq!(found["findings"][0]["connectionHandles"].as_array().map(Vec::len), Some(3));
    user.batch(text(&canvas, "/id"), text(&canvas, "/revision"), circle.clone()).await.expect(422);
    force(&user, &canvas, circle).await;
    let other = json!([node("d", "text", 5000, 0)]);
    assert_eq!(said(&validation(&user, &canvas, other).await), [], "a later batch did not cause it");
}

#[tokio::test]
async fn at_most_200_findings_are_listed_errors_first() {
    let stack = &Stack::with_workers().await;
    let account = stack.account().await;
    let (person, agent) = (stack.user_by(&account, "all", "browser").await, stack.user_of(&account, "all").await);
    let canvas = person.make_canvas().await;
    // 21 nodes in one place make 210 pairs.
    let crowd = json!((0..21).map(|at| node(&format!("n{at}"), "text", 0, 0)).collect::<Vec<_>>());
    person.apply(text(&canvas, "/id"), crowd).await;
    let full = validation(&person, &canvas, json!([{"type": "canvas.update", "title": "T"}])).await;
    assert_eq!((said(&full).len(), &full["truncated"]), (200, &json!(true)));
    let pair = validation(&agent, &canvas, json!([node("a", "text", 5000, 0), node("b", "text", 5000, 0)])).await;
    assert_eq!(said(&pair)[..2], [("agent_overlap", "error", "agent"), ("user_overlap", "info", "user")]);
    assert_eq!((said(&pair).len(), &pair["truncated"]), (200, &json!(true)));
}

#[tokio::test]
async fn a_deletion_is_destructive_and_names_detached_assets() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let asset = user.upload_into(id, "image/png", images::png(9, 7)).await;
    let shown = text(&asset, "/node");
    let copied = user
        .apply(
            id,
            json!([
                {"type": "node.duplicate", "clientId": "copy", "nodeId": shown, "position": {"x": 0, "y": 2000}},
                {"type": "connection.create", "clientId": "c", "fromNodeId": shown, "toNodeId": "copy"},
            ]),
        )
        .await;
    let impact =
        async |operations: Value| user.send(&path(&canvas), &trial(operations)).await.ok()["destructiveImpact"].clone();
    let delete = |node: &Value| json!({"type": "node.delete", "nodeId": node});
    let one = impact(json!([delete(&asset["node"])])).await;
    let plain = shown.trim_start_matches("node:");
    assert_eq!(
        one,
        json!({"destructive": true, "deletedNodeIds": [plain], "deletedConnectionIds": [copied["resolvedIds"]["c"]], "detachedAssets": []})
    );
    let both = impact(json!([delete(&asset["node"]), delete(&copied["resolvedIds"]["copy"])])).await;
    assert_eq!(both["detachedAssets"], json!([asset["handle"]]));
    let none = impact(json!([{"type": "canvas.update", "title": "T"}])).await;
    assert_eq!(
        none,
        json!({"destructive": false, "deletedNodeIds": [], "deletedConnectionIds": [], "detachedAssets": []})
    );
    let cut = impact(json!([{"type": "connection.delete", "connectionId": copied["resolvedIds"]["c"]}])).await;
    assert_eq!((&cut["destructive"], &cut["deletedNodeIds"]), (&json!(true), &json!([])));
}

#[tokio::test]
async fn the_review_is_of_the_canvas_as_it_is() {
    let stack = &Stack::with_workers().await;
    let (user, viewer, stranger) = (stack.user().await, stack.user().await, stack.user().await);
    let canvas = user.make_canvas().await;
    let (id, handle) = (text(&canvas, "/id"), text(&canvas, "/handle"));
    let read = |path: String| user.get(&path);
    let empty = read(format!("/canvases/{id}/review")).await.ok();
    assert_eq!((&empty["canvas"]["revision"], &empty["validation"]["status"]), (&canvas["revision"], &json!("ok")));
    assert_eq!(empty["validation"]["completionReview"]["doneClaimAllowed"], true);
    force(&user, &canvas, json!([node("a", "text", 0, 0), node("b", "text", 0, 0)])).await;
    let crowded = read(format!("/canvases/{id}/review")).await.ok();
    assert_eq!(said(&crowded["validation"]), [("agent_overlap", "warning", "agent")]);
    assert_eq!(crowded["canvas"]["nodeCount"], 2);
    stack.share(&user, id, &viewer.uid, "viewer").await;
    let shared = viewer.get(&format!("/canvases/{handle}/review")).await.ok();
    assert_eq!((&shared["validation"], &shared["canvas"]["accessRole"]), (&crowded["validation"], &json!("viewer")));
    stranger.get(&format!("/canvases/{handle}/review")).await.expect_error(404, "not_found", &[]);
    user.get("/canvases/a%20b/review").await.expect_error(400, "input_validation_error", &["canvasId"]);
}

#[tokio::test]
async fn what_a_render_shows_badly_is_advice() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let asset = user.upload_into(id, "image/png", images::png(100, 20)).await;
    let target = user.slot(id).await;
    let mut request = user.resize_request(id, &target, text(&asset, "/node")).await;
    request["params"] = json!({"width": 151});
    let done = user.finished(&user.send("/actions/resize/runs", &request).await.expect(202).json()).await;
    assert_eq!(done["completionReview"]["advisoryFindingCodes"], json!(["upscaled_output"]));
    // A card of 320 by 100 with a title holds an image of 320 by 72, and crops one of 5:1.
    let wall = |x: i64, y: i64, width: u32, height: u32| json!({"type": "node.create", "node": {"type": "text", "position": {"x": 9000 + x, "y": y}, "width": width, "height": height}});
    let worse = json!([
        {"type": "node.update", "nodeId": asset["node"], "patch": {"width": 320, "height": 100}},
        {"type": "node.create", "clientId": "in", "node": {"type": "text", "position": {"x": 9020, "y": 20}, "width": 100, "height": 100}},
        {"type": "node.create", "clientId": "out", "node": {"type": "text", "position": {"x": 9600, "y": 20}, "width": 100, "height": 100}},
        // The lines leave 16 units from the node, and 8 beside the walls.
        wall(-126, -100, 130, 340), wall(136, -100, 130, 340), wall(20, -106, 100, 110), wall(20, 136, 100, 104),
        {"type": "connection.create", "fromNodeId": "in", "toNodeId": "out"},
    ]);
    let advised = validation(&user, &canvas, worse.clone()).await;
    let advice = |code: &'static str| (code, "warning", "agent");
    let expected = ["line_crosses_node", "picture_cropped", "upscaled_output"];
    let mut listed = said(&advised);
    listed.sort_unstable();
    assert_eq!(listed, expected.map(advice));
    let review = &advised["completionReview"];
    assert_eq!((&review["status"], &review["doneClaimAllowed"]), (&json!("needs-review"), &json!(true)));
    assert_eq!((&advised["status"], &review["overlap"]["status"]), (&json!("advisory"), &json!("clear")));
    // It never blocks, and the review of what was written agrees with the dry run.
    user.apply(id, worse).await;
    let reviewed = user.get(&format!("/canvases/{id}/review")).await.ok()["validation"].clone();
    let mut listed = said(&reviewed);
    listed.sort_unstable();
    assert_eq!(listed, expected.map(advice));
}

#[tokio::test]
async fn what_holds_a_claim_is_marked_and_named_and_blocks_no_batch() {
    let stack = &Stack::with_workers().await;
    let account = stack.account().await;
    let (person, agent) = (stack.user_by(&account, "all", "browser").await, stack.user_of(&account, "all").await);
    let canvas = person.make_canvas().await;
    let id = text(&canvas, "/id");
    let section = |name: &str, x: i64, y: i64| json!({"type": "node.create", "clientId": name, "node": {"type": "sticky", "title": "", "position": {"x": x, "y": y}, "width": 400, "height": 400, "metadata": {"section": true}}});
    let worse = json!([
        node("slot", "image", 0, 0), node("film", "video", 1000, 0), node("a", "text", 3000, 0), node("b", "text", 3325, 7),
        section("s", 6000, 0), section("t", 6440, 30),
        {"type": "node.create", "node": {"type": "text", "position": {"x": 9000, "y": 0}, "height": 120, "metadata": {"content": "word\n".repeat(9)}}},
    ]);
    let codes =
        ["empty_slot", "empty_slot", "frames_touch", "sections_staggered", "sections_staggered", "text_truncated"];
    let sorted = |validation: &Value| {
        let mut found: Vec<(String, String, Value)> = validation["findings"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|of| (text(of, "/code").to_owned(), text(of, "/severity").to_owned(), of["holdsClaim"].clone()))
            .collect();
        found.sort_by(|a, b| a.0.cmp(&b.0));
        found
    };
    let each = |severity: &str, holds: bool| codes.map(|code| (code.to_owned(), severity.to_owned(), json!(holds)));
    assert_eq!(sorted(&validation(&person, &canvas, worse.clone()).await), each("info", false));
    let tried = validation(&agent, &canvas, worse.clone()).await;
    assert_eq!(sorted(&tried), each("warning", true));
    agent.apply(id, worse).await;
    let reviewed = agent.get(&format!("/canvases/{id}/review")).await.ok()["validation"].clone();
    assert_eq!(sorted(&reviewed), each("warning", true));
    let review = &reviewed["completionReview"];
    assert_eq!((&review["status"], &review["doneClaimAllowed"]), (&json!("blocked"), &json!(false)));
    assert_eq!(review["delivery"]["nonDurableOutputHandles"].as_array().map(Vec::len), Some(2));
    assert_eq!(review["containment"]["findingCodes"], json!(["text_truncated"]));
    // Placeholders are neither findings nor outputs.
    let nodes = person.canvas(id).await["nodes"].as_array().cloned().expect("a list");
    let pictures = nodes.iter().filter(|node| node["type"] == "image" || node["type"] == "video");
    let marked = pictures
        .map(|node| json!({"type": "node.update", "nodeId": node["id"], "patch": {"metadata": {"placeholder": true}}}));
    agent.apply(id, marked.collect()).await;
    let review = agent.get(&format!("/canvases/{id}/review")).await.ok()["validation"]["completionReview"].clone();
    assert_eq!((&review["outputs"]["count"], &review["status"]), (&json!(0), &json!("needs-review")));
    assert_eq!(
        review["instruction"],
        "Do not call the work done: resolve frames_touch (1), sections_staggered (2), text_truncated (1), then validate again."
    );
}

#[tokio::test]
async fn repairs_are_a_batch_that_ends_what_holds_and_moves_nothing_of_a_person() {
    let stack = &Stack::without_workers().await;
    let account = stack.account().await;
    let (person, agent) = (stack.user_by(&account, "all", "browser").await, stack.user_of(&account, "all").await);
    let viewer = stack.user().await;
    let canvas = person.make_canvas().await;
    let (id, handle) = (text(&canvas, "/id"), text(&canvas, "/handle"));
    let section = |name: &str, x: i64, y: i64| json!({"type": "node.create", "clientId": name, "node": {"type": "sticky", "title": "", "position": {"x": x, "y": y}, "width": 400, "height": 400, "metadata": {"section": true}}});
    let member = |name: &str, x: i64, y: i64| json!({"type": "node.create", "clientId": name, "node": {"type": "sticky", "position": {"x": x, "y": y}, "width": 100, "height": 100, "metadata": {"sectionId": "s"}}});
    person.apply(id, json!([node("mine", "text", 0, 0)])).await;
    let mine = person.canvas(id).await["nodes"][0].clone();
    let worse = json!([
        node("over", "text", 9, 9),
        node("near", "text", 325, 7),
        node("slot", "image", 3000, 0),
        section("s", 6000, 0),
        member("m", 6004, 200),
        section("t", 6500, 30),
    ]);
    force(&agent, &canvas, worse).await;
    let path = |of: &str| format!("/canvases/{of}/review?repairs=true");
    stack.share(&person, id, &viewer.uid, "viewer").await;
    let review = agent.get(&path(id)).await.ok();
    assert_eq!(viewer.get(&path(handle)).await.ok()["repairs"], review["repairs"], "a viewer may ask");
    let plain = agent.get(&format!("/canvases/{id}/review")).await.ok();
    assert!(plain.get("repairs").is_none() && plain["validation"] == review["validation"]);
    let repairs = &review["repairs"];
    assert_eq!((&repairs["leaves"], &repairs["works"]), (&json!([]), &json!([])), "{repairs}");
    assert_eq!(repairs["deletions"].as_array().map(Vec::len), Some(1));
    let operations = repairs["operations"].as_array().cloned().expect("a list");
    assert!(operations.iter().all(|of| of["type"] != "node.delete" && of["nodeId"] != mine["id"]), "{repairs}");
    let tried = validation(&agent, &canvas, json!(operations)).await;
    assert_eq!(tried["status"], "advisory", "only the empty slot is left: {tried}");
    agent.apply(id, json!(operations)).await;
    agent.apply(id, json!([{"type": "node.delete", "nodeId": repairs["deletions"][0]}])).await;
    assert_eq!(person.canvas(id).await["nodes"][0], mine);
    let done = agent.get(&path(id)).await.ok();
    assert_eq!(done["validation"]["completionReview"]["doneClaimAllowed"], true, "{done}");
    assert_eq!(done["repairs"], json!({"operations": [], "deletions": [], "works": [], "leaves": []}));
    let odd = agent.get(&format!("/canvases/{id}/review?repairs=yes")).await;
    odd.expect_error(400, "input_validation_error", &["repairs"]);
}

#[tokio::test]
async fn a_result_that_fills_a_placeholder_ends_it() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let (target, other) = (user.slot(id).await, user.slot(id).await);
    let mark =
        |node: &str| json!({"type": "node.update", "nodeId": node, "patch": {"metadata": {"placeholder": true}}});
    user.apply(id, json!([mark(&target), mark(&other)])).await;
    let asset = user.upload("image/png", images::png(100, 20)).await;
    let request = user.resize_request(id, &target, text(&asset, "/handle")).await;
    let done = user.finished(&user.send("/actions/resize/runs", &request).await.expect(202).json()).await;
    assert_eq!(
        (&done["status"], &done["completionReview"]["status"]),
        (&json!("succeeded"), &json!("ready")),
        "{done}"
    );
    let node = user.canvas(id).await["nodes"][0].clone();
    assert!(node["asset"].is_string() && node["metadata"].get("placeholder").is_none(), "{node}");
    // On a node that shows an image it is stored and means nothing.
    user.apply(id, json!([mark(&target)])).await;
    assert_eq!(user.canvas(id).await["nodes"][0]["metadata"]["placeholder"], true);
    let reviewed = user.get(&format!("/canvases/{id}/review")).await.ok();
    assert_eq!(said(&reviewed["validation"]), []);
}

#[tokio::test]
async fn a_job_leaves_its_review_and_lineage() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let asset = user.upload_into(id, "image/png", images::png(100, 20)).await;
    let target = user.slot(id).await;
    let request = user.resize_request(id, &target, text(&asset, "/node")).await;
    let job = user.send("/actions/resize/runs", &request).await.expect(202).json();
    assert!(job.get("completionReview").is_none(), "it has not ended");
    let done = user.finished(&job).await;
    let review = &done["completionReview"];
    assert_eq!((&review["status"], &review["doneClaimAllowed"]), (&json!("ready"), &json!(true)), "{review}");
    let handle = json!([format!("node:{target}")]);
    assert_eq!(
        review["outputs"],
        json!({"count": 1, "durableCount": 1, "pendingCount": 0, "failedCount": 0, "handles": handle})
    );
    let reviewed = user.get(&format!("/canvases/{id}/review")).await.ok();
    assert_eq!(&reviewed["validation"]["completionReview"], review, "the canvas has not changed since");
    // The node that showed its source may go, but not the source itself. The stored review of the job stays.
    user.apply(id, json!([{"type": "node.delete", "nodeId": asset["node"]}])).await;
    let reviewed = user.get(&format!("/canvases/{id}/review")).await.ok();
    assert_eq!(said(&reviewed["validation"]), []);
    stack.admin(&["admin", "asset", "purge", "--asset", text(&asset, "/handle"), "--yes"]).await.expect_success();
    let reviewed = user.get(&format!("/canvases/{id}/review")).await.ok();
    assert_eq!(said(&reviewed["validation"]), [("reference_source_missing", "warning", "agent")]);
    assert_eq!(&user.get(text(&job, "/pollUrl")).await.ok()["completionReview"], review);
}

#[tokio::test]
async fn a_products_own_pixels_pass_and_failures_block_delivery() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let product = user.upload_into(id, "image/png", images::png(50, 40)).await;
    let target = user.slot(id).await;
    let request = user.resize_request(id, &target, text(&product, "/node")).await;
    let done = user.finished(&user.send("/actions/resize/runs", &request).await.expect(202).json()).await;
    assert_eq!(done["completionReview"]["productFidelity"]["status"], "not-applicable");
    let shot = user.slot(id).await;
    let connect = json!([{"type": "connection.create", "fromNodeId": product["node"], "toNodeId": shot, "purpose": "reference", "role": "identity"}]);
    let fidelity = validation(&user, &canvas, connect).await["completionReview"]["productFidelity"].clone();
    assert_eq!((&fidelity["status"], &fidelity["reviewedOutputCount"]), (&json!("passed"), &json!(1)));
    assert_eq!(fidelity["reasons"][0]["nodeHandle"], format!("node:{target}"));
    // An image that is broken after its header can be stored. The job that decodes it fails.
    let broken = user.upload("image/png", images::broken_png(300, 200)).await;
    let request = user.resize_request(id, &shot, text(&broken, "/handle")).await;
    let failed = user.finished(&user.send("/actions/resize/runs", &request).await.expect(202).json()).await;
    assert_eq!(failed["status"], "failed");
    let review = &failed["completionReview"];
    assert_eq!((&review["status"], &review["doneClaimAllowed"]), (&json!("blocked"), &json!(false)));
    assert_eq!(review["delivery"]["failedOutputHandles"], json!([format!("node:{shot}")]));
    assert_eq!((&review["outputs"]["count"], &review["outputs"]["failedCount"]), (&json!(2), &json!(1)));
}

#[tokio::test]
async fn a_job_whose_node_is_deleted_says_so_in_its_review() {
    let stack = &Stack::builder().image_workers(1).hold("action.loaded").start().await;
    let hold = stack.hold("action.loaded");
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let job = user.start_resize(id, json!({})).await;
    hold.reached().await;
    let target = text(&job, "/targets/0").to_owned();
    let pending = user.get(&format!("/canvases/{id}/review")).await.ok();
    let delivery = &pending["validation"]["completionReview"]["delivery"];
    assert_eq!((&delivery["status"], &delivery["pendingOutputHandles"]), (&json!("blocked"), &json!([target])));
    let delete = json!([{"type": "node.delete", "nodeId": target}]);
    user.batch(id, text(&user.canvas(id).await, "/revision"), delete.clone()).await.expect_error(
        422,
        "unprocessable_entity",
        &["operations[0].nodeId"],
    );
    force(&user, &canvas, delete).await;
    hold.release();
    let done = user.finished(&job).await;
    assert_eq!((&done["status"], &done["images"][0]["nodeId"]), (&json!("succeeded"), &json!(target)));
    let review = &done["completionReview"];
    assert_eq!((&review["status"], &review["doneClaimAllowed"]), (&json!("blocked"), &json!(false)));
    let reason = text(review, "/delivery/reasons/0");
    assert!(reason.contains(&target) && reason.contains(text(&done, "/images/0/assetId")), "{reason}");
    // The end is an activity, although no node shows it.
    let read = user.get(&format!("/canvases/{id}")).await.ok();
    let newest = &read["activity"][0];
    assert_eq!((&newest["type"], &newest["nodeIds"]), (&json!("job.finished"), &json!([])), "{newest}");
    assert_eq!((&newest["revision"], &read["canvas"]["revision"]), (&done["canvasRevision"], &done["canvasRevision"]));
}
