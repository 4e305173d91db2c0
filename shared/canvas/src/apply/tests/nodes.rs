//! Nodes and their metadata.

use domain::id::AssetRef;

use super::*;
use crate::graph::AssetImage;

#[test]
fn a_created_node_has_the_defaults_of_its_type_and_the_owner_who_made_it() {
    for (agent, options) in [(true, AGENT), (false, Options::default())] {
        let mut graph = graph(vec![], vec![]);
        let applied = apply(&mut graph, &batch(json!([create("a", "video")])), options).expect("applied");
        let node = graph.nodes().next().expect("a node");
        assert_eq!((node.kind, node.title.as_str(), node.width, node.height), (NodeType::Video, "video", 480.0, 270.0));
        assert_eq!((node.position.x, node.position.y, node.agent_owned), (0.0, 0.0, agent));
        assert_eq!(applied.resolved_ids["a"], node.id.to_string());
        assert_eq!(ids(&applied.changes.changed_node_ids), [node.id.to_string()]);
        assert_eq!((applied.nodes_delta, applied.connections_delta), (1, 0));
        assert_eq!(applied.bytes_delta, serialized_size(node));
        assert!(applied.touched.placed.contains(&node.id));
    }
}

#[test]
fn a_created_node_holds_what_the_request_says() {
    let mut graph = graph(vec![section("s")], vec![]);
    run(
        &mut graph,
        json!([{"type": "node.create", "node": {"type": "text", "title": "T", "position": {"x": -1.5, "y": 2}, "width": 10,
            "height": 20, "metadata": {"content": "c", "sectionId": "node:s", "locked": null, "fontSize": 12.0}}}]),
    )
    .expect("applied");
    let node = graph.nodes().last().expect("a node");
    assert_eq!(
        (node.title.as_str(), node.position.x, node.position.y, node.width, node.height),
        ("T", -1.5, 2.0, 10.0, 20.0)
    );
    assert_eq!(node.metadata, written(json!({"content": "c", "sectionId": "s", "fontSize": 12})));
    assert_eq!(graph.members(&id("s")).count(), 1);
}

#[test]
fn an_update_changes_what_it_names_and_nothing_else() {
    let mut node = text("n");
    node.metadata = written(json!({"content": "old", "custom": {"a": 1, "b": 2}, "locked": true}));
    node.server = server(json!({"provenance": {"kind": "recipe"}}));
    let mut graph = graph(vec![node.clone()], vec![]);
    let applied = run(
        &mut graph,
        json!([
            update("node:n", json!({"title": "T", "width": 7, "type": "sticky"})),
            metadata("n", json!({"custom": {"c": 3}, "locked": null, "color": "#ffffff"})),
        ]),
    )
    .expect("applied");
    let now = graph.node(&id("n")).expect("the node");
    assert_eq!((now.title.as_str(), now.width, now.height, now.kind), ("T", 7.0, node.height, NodeType::Sticky));
    assert_eq!(now.metadata, written(json!({"content": "old", "custom": {"c": 3}, "color": "#ffffff"})));
    assert_eq!(now.server, node.server);
    assert_eq!(ids(&applied.changes.changed_node_ids), ["n"]);
    assert!(applied.touched.placed.contains(&id("n")) && applied.touched.rehomed.is_empty());
}

#[test]
fn what_changes_nothing_is_in_no_list() {
    let mut node = text("n");
    node.metadata = written(json!({"content": "c", "zIndex": 3}));
    let mut reference = connection("c", "a", "n", Purpose::Reference);
    reference.role = Some(Role::Fit);
    let mut graph = graph(vec![image("a"), node], vec![reference]);
    let before = seen(&graph);
    let applied = run(
        &mut graph,
        json!([
            {"type": "node.move", "nodeId": "n", "position": {"x": -0.0, "y": 0}},
            update("n", json!({"title": "n", "width": 320, "height": 160, "type": "text"})),
            metadata("n", json!({"content": "c", "zIndex": 3.0, "locked": null, "section": false, "sectionId": null})),
            metadata("n", json!({})),
            {"type": "connection.update", "connectionId": "c", "purpose": "reference", "role": "fit"},
            {"type": "connection.update", "connectionId": "c"},
            {"type": "canvas.update", "title": "Board"},
        ]),
    )
    .expect("applied");
    assert_eq!(applied, Applied::default());
    assert_eq!(seen(&graph), before);
}

#[test]
fn what_one_batch_does_and_undoes_is_in_no_list() {
    let mut graph = graph(vec![image("a"), image("b")], vec![]);
    let before = seen(&graph);
    let applied = run(
        &mut graph,
        json!([
            {"type": "node.move", "nodeId": "a", "position": {"x": 5, "y": 5}},
            {"type": "canvas.update", "title": "Other"},
            create("x", "text"),
            connect("x", "a", "flow"),
            {"type": "node.duplicate", "nodeId": "x", "clientId": "y", "position": {"x": 1, "y": 1}},
            delete("x"),
            delete("y"),
            {"type": "connection.create", "clientId": "c", "fromNodeId": "a", "toNodeId": "b"},
            {"type": "connection.delete", "connectionId": "c"},
            {"type": "node.move", "nodeId": "a", "position": {"x": 0, "y": 0}},
            {"type": "canvas.update", "title": "Board"},
        ]),
    )
    .expect("applied");
    assert_eq!(applied.resolved_ids.keys().collect::<Vec<_>>(), ["c", "x", "y"]);
    assert_eq!(Applied { resolved_ids: BTreeMap::new(), ..applied }, Applied::default());
    assert_eq!(seen(&graph), before);
}

#[test]
fn changes_are_listed_once_in_first_touch_order() {
    let mut graph = graph(vec![image("a"), image("b"), image("d")], vec![]);
    let applied = run(
        &mut graph,
        json!([
            update("b", json!({"title": "B"})),
            create("x", "text"),
            update("a", json!({"title": "A"})),
            update("b", json!({"title": "BB"})),
            delete("d"),
        ]),
    )
    .expect("applied");
    assert_eq!(ids(&applied.changes.changed_node_ids), ["b", &applied.resolved_ids["x"], "a"]);
    assert_eq!(ids(&applied.changes.deleted_node_ids), ["d"]);
    let writes = applied.writes(&graph);
    assert_eq!(writes.nodes.iter().map(|node| node.title.as_str()).collect::<Vec<_>>(), ["BB", "text", "A"]);
    assert_eq!(writes.deleted_nodes, [&id("d")]);
}

#[test]
fn a_duplicate_has_title_size_metadata_and_asset_but_no_job_provenance_or_connections() {
    let mut original = working(image("n"));
    original.title = "T".into();
    original.width = 11.0;
    original.metadata = written(json!({"prompt": "p", "sectionId": "s"}));
    original.server = server(json!({
        "job": {"id": "job:1", "run": "run:1", "operation": "edit", "status": "running"}, "provenance": {"kind": "generated"},
        "history": [{"asset": "asset:me:a0", "run": "run:0", "at": "2026-01-02T03:04:05.678Z"}],
    }));
    original.asset = Some(asset("a1"));
    let mut graph =
        graph(vec![section("s"), original.clone(), text("t")], vec![connection("c", "t", "n", Purpose::Flow)]);
    let applied = run(
        &mut graph,
        json!([{"type": "node.duplicate", "nodeId": "n", "clientId": "x", "position": {"x": 9, "y": 8}}]),
    )
    .expect("applied");
    let copy = graph.node(&id(&applied.resolved_ids["x"])).expect("the copy");
    let expected = Node {
        id: copy.id.clone(),
        short: copy.short,
        position: domain::graph::Position { x: 9.0, y: 8.0 },
        agent_owned: true,
        server: Default::default(),
        active_job: None,
        ..original
    };
    assert_eq!(*copy, expected);
    assert_eq!(graph.incoming(&copy.id).count(), 0);
    assert_eq!(graph.members(&id("s")).count(), 2);
}

#[test]
fn a_duplicate_keeps_the_text_that_the_service_wrote_and_a_copied_section_has_no_members() {
    let mut written = text("t");
    written.server = server(json!({"content": "by the service", "recipe": {"role": "input"}}));
    let mut graph = graph(vec![section("s"), member(written, "s")], vec![]);
    let copy = |node: &str, client_id: &str| json!({"type": "node.duplicate", "nodeId": node, "clientId": client_id, "position": {"x": 0, "y": 0}});
    let applied = run(&mut graph, json!([copy("t", "x"), copy("s", "y")])).expect("applied");
    let text = graph.node(&id(&applied.resolved_ids["x"])).expect("the copy");
    assert_eq!(text.content(), Some("by the service"));
    assert!(text.recipe().is_none());
    let section = graph.node(&id(&applied.resolved_ids["y"])).expect("the copy");
    assert!(section.is_section());
    assert_eq!(graph.members(&section.id).count(), 0);
}

#[test]
fn deleting_a_node_deletes_and_lists_its_connections() {
    let connections = vec![
        connection("c1", "a", "b", Purpose::Flow),
        connection("c2", "b", "c", Purpose::Flow),
        connection("c3", "a", "c", Purpose::Flow),
    ];
    let mut graph = graph(vec![image("a"), image("b"), image("c")], connections);
    let applied = run(&mut graph, json!([delete("b")])).expect("applied");
    assert_eq!(ids(&applied.changes.deleted_connection_ids), ["c1", "c2"]);
    assert_eq!((applied.nodes_delta, applied.connections_delta), (-1, -2));
    assert_eq!(graph.connections().map(|connection| connection.id.clone()).collect::<Vec<_>>(), [cid("c3")]);
    assert_eq!(applied.writes(&graph).deleted_connections, [&cid("c1"), &cid("c2")]);
}

#[test]
fn deleting_a_node_with_an_active_job_needs_force() {
    let mut graph = graph(vec![working(image("n"))], vec![]);
    assert_eq!(unprocessable(&mut graph, json!([delete("n")])), ["operations[0].nodeId"]);
    let forced = Options { force: true, ..AGENT };
    apply(&mut graph, &batch(json!([delete("n")])), forced).expect("applied");
    assert_eq!(graph.node_count(), 0);
}

#[test]
fn assets_that_no_node_shows_any_more_are_detached() {
    let showing = |name: &str, shown: &str| Node { asset: Some(asset(shown)), ..image(name) };
    let mut graph = graph(vec![showing("a", "x"), showing("b", "x"), showing("c", "y"), showing("d", "x")], vec![]);
    let applied = run(&mut graph, json!([delete("a"), delete("c")])).expect("applied");
    assert_eq!(applied.detached_assets, [asset("y")]);
    let applied = run(&mut graph, json!([delete("b"), delete("d")])).expect("applied");
    assert_eq!(applied.detached_assets, [asset("x")]);
}

#[test]
fn only_text_and_sticky_change_type_and_not_with_an_active_job() {
    let mut graph = graph(vec![image("i"), video("v"), working(text("w")), text("t")], vec![]);
    for node in ["i", "v", "w"] {
        assert_eq!(
            unprocessable(&mut graph, json!([update(node, json!({"type": "sticky"}))])),
            ["operations[0].patch.type"]
        );
    }
    run(&mut graph, json!([update("w", json!({"type": "text"})), update("t", json!({"type": "sticky"}))]))
        .expect("applied");
    assert_eq!(graph.node(&id("t")).expect("the node").kind, NodeType::Sticky);
}

#[test]
fn content_is_refused_by_the_stored_type() {
    let mut graph = graph(vec![image("i"), video("v"), text("t")], vec![]);
    for node in ["i", "v"] {
        assert_eq!(
            invalid(&mut graph, json!([metadata(node, json!({"content": "c"}))])),
            ["operations[0].patch.metadata.content"]
        );
        run(&mut graph, json!([metadata(node, json!({"content": ""})), metadata(node, json!({"content": null}))]))
            .expect("empty content counts as no content");
    }
    assert_eq!(
        invalid(&mut graph, json!([create("x", "image"), metadata("x", json!({"content": "c"}))])),
        ["operations[1].patch.metadata.content"]
    );
    run(&mut graph, json!([metadata("t", json!({"content": "c"}))])).expect("applied");
}

#[test]
fn a_400_comes_before_a_422_and_lists_both() {
    let mut graph = graph(vec![image("i")], vec![]);
    assert_eq!(
        invalid(
            &mut graph,
            json!([delete("gone"), update("i", json!({"type": "text", "metadata": {"content": "c"}}))])
        ),
        ["operations[1].patch.metadata.content", "operations[0].nodeId", "operations[1].patch.type"]
    );
}

#[test]
fn the_metadata_cap_is_judged_after_the_merge_and_leaves_out_what_the_service_wrote() {
    let overhead = serde_json::to_string(&json!({"custom": {"a": ""}, "prompt": ""})).expect("serializes").len();
    let mut node = text("n");
    node.metadata = written(json!({"custom": {"a": "x".repeat(METADATA_BYTES_MAX - overhead - 1)}}));
    node.server = server(json!({"content": "y".repeat(24_000)}));
    let mut graph = graph(vec![node], vec![]);
    assert_eq!(invalid(&mut graph, json!([metadata("n", json!({"prompt": "12"}))])), ["operations[0].patch.metadata"]);
    run(&mut graph, json!([metadata("n", json!({"prompt": "1"})), update("n", json!({"title": "T"}))]))
        .expect("applied");
    assert_eq!(invalid(&mut graph, json!([metadata("n", json!({"content": "y"}))])), ["operations[0].patch.metadata"]);
    run(&mut graph, json!([metadata("n", json!({"custom": null})), metadata("n", json!({"prompt": "12"}))]))
        .expect("applied");
}

#[test]
fn a_video_node_shows_videos_and_remembers_the_one_before() {
    let mut graph = graph(vec![video("v"), image("i"), working(video("w"))], vec![]);
    let asset_of = |name: &str, shown_by| AssetImage { asset: asset(name), shown_by, size: None, at: moment() };
    for (name, shown_by) in [("first", NodeType::Video), ("second", NodeType::Video), ("image", NodeType::Image)] {
        let named = AssetRef::parse(&format!("asset:{name}")).expect("a handle");
        graph.sources.assets.insert(named, asset_of(name, shown_by));
    }
    let show = |node: &str, name: &str| update(node, json!({"asset": format!("asset:{name}")}));
    for (node, name) in [("v", "image"), ("v", "absent"), ("i", "first"), ("i", "image"), ("w", "first")] {
        assert_eq!(
            unprocessable(&mut graph, json!([show(node, name)])),
            ["operations[0].patch.asset"],
            "{node} {name}"
        );
    }
    run(&mut graph, json!([show("v", "first")])).expect("shows");
    assert!(graph.node(&id("v")).expect("is there").server.history.is_empty(), "it showed nothing before");
    run(&mut graph, json!([show("v", "second"), show("v", "second")])).expect("shows");
    let node = graph.node(&id("v")).expect("is there");
    assert_eq!(node.asset, Some(asset("second")));
    let history: Vec<_> = node.server.history.iter().map(|entry| (entry.asset.clone(), entry.run.clone())).collect();
    assert_eq!(history, [(asset("first"), None)], "the same again changes nothing");
    let create = |kind: &str, name: &str| json!([{"type": "node.create", "node": {"type": kind, "asset": format!("asset:{name}")}}]);
    for (kind, name) in [("image", "first"), ("video", "image")] {
        assert_eq!(unprocessable(&mut graph, create(kind, name)), ["operations[0].node.asset"]);
    }
    run(&mut graph, create("video", "first")).expect("creates");
    let node = graph.nodes().last().expect("is there");
    assert_eq!((node.width, node.height, node.asset.as_ref()), (480.0, 270.0, Some(&asset("first"))));
}
