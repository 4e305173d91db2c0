//! Sections and their members.

use domain::limits::CANVAS_NODES_MAX;

use super::*;

#[test]
fn a_section_is_joined_by_id_handle_or_client_id_and_left_by_null() {
    let mut graph = graph(vec![section("s"), text("a"), text("b"), text("c")], vec![]);
    let applied = run(
        &mut graph,
        json!([
            {"type": "node.create", "clientId": "new", "node": {"type": "sticky", "metadata": {"section": true}}},
            metadata("a", json!({"sectionId": "s"})),
            metadata("b", json!({"sectionId": "node:s"})),
            metadata("c", json!({"sectionId": "new"})),
        ]),
    )
    .expect("applied");
    let members =
        |graph: &Graph, section: &str| graph.members(&id(section)).map(|node| node.id.to_string()).collect::<Vec<_>>();
    assert_eq!(members(&graph, "s"), ["a", "b"]);
    assert_eq!(members(&graph, &applied.resolved_ids["new"]), ["c"]);
    assert_eq!(graph.node(&id("b")).and_then(Node::section_id), Some("s"));
    assert_eq!(applied.touched.rehomed, ["a", "b", "c"].map(id).into());
    let applied = run(&mut graph, json!([metadata("a", json!({"sectionId": null}))])).expect("applied");
    assert_eq!(applied.touched.rehomed, [id("a")].into());
    assert_eq!(members(&graph, "s"), ["b"]);
}

#[test]
fn a_section_id_must_name_a_section_of_the_canvas() {
    let mut graph = graph(vec![sticky("n"), text("t")], vec![]);
    for section in ["n", "gone", "node:gone", "t"] {
        assert_eq!(
            unprocessable(&mut graph, json!([metadata("t", json!({"sectionId": section}))])),
            ["operations[0].patch.metadata.sectionId"]
        );
        assert_eq!(
            unprocessable(
                &mut graph,
                json!([{"type": "node.create", "node": {"type": "text", "metadata": {"sectionId": section}}}])
            ),
            ["operations[0].node.metadata.sectionId"]
        );
    }
}

#[test]
fn only_a_sticky_becomes_a_section() {
    let mut graph = graph(vec![image("i"), text("t"), sticky("n")], vec![]);
    for node in ["i", "t"] {
        assert_eq!(
            invalid(&mut graph, json!([metadata(node, json!({"section": true}))])),
            ["operations[0].patch.metadata.section"]
        );
        run(&mut graph, json!([metadata(node, json!({"section": false}))])).expect("false counts as null");
    }
    run(
        &mut graph,
        json!([
            metadata("n", json!({"section": true})),
            update("t", json!({"type": "sticky", "metadata": {"section": true}}))
        ]),
    )
    .expect("applied");
    assert!(["n", "t"].iter().all(|node| graph.node(&id(node)).is_some_and(Node::is_section)));
}

#[test]
fn a_section_belongs_to_no_section() {
    let mut graph = graph(vec![section("s"), section("o"), member(sticky("m"), "s")], vec![]);
    assert_eq!(
        invalid(&mut graph, json!([metadata("o", json!({"sectionId": "s"}))])),
        ["operations[0].patch.metadata.sectionId"]
    );
    assert_eq!(
        invalid(&mut graph, json!([metadata("m", json!({"section": true}))])),
        ["operations[0].patch.metadata.section"]
    );
    run(
        &mut graph,
        json!([
            metadata("m", json!({"section": true, "sectionId": null})),
            metadata("o", json!({"section": false, "sectionId": "s"})),
        ]),
    )
    .expect("applied");
    assert_eq!(graph.members(&id("s")).map(|node| node.id.as_str()).collect::<Vec<_>>(), ["o"]);
}

#[test]
fn a_section_stops_being_one_only_without_members() {
    let mut graph = graph(vec![section("s"), member(text("m"), "s"), section("e")], vec![]);
    for off in [json!(null), json!(false)] {
        assert_eq!(
            unprocessable(&mut graph, json!([metadata("s", json!({"section": off}))])),
            ["operations[0].patch.metadata.section"]
        );
    }
    let to_text = |node: &str, metadata: Value| json!([update(node, json!({"type": "text", "metadata": metadata}))]);
    assert_eq!(
        unprocessable(&mut graph, to_text("s", json!({"section": null}))),
        ["operations[0].patch.metadata.section"]
    );
    assert_eq!(unprocessable(&mut graph, to_text("e", json!({}))), ["operations[0].patch.type"]);
    run(&mut graph, to_text("e", json!({"section": null}))).expect("applied");
    run(&mut graph, json!([metadata("m", json!({"sectionId": null})), metadata("s", json!({"section": null}))]))
        .expect("applied");
    assert!(!graph.nodes().any(Node::is_section));
}

#[test]
fn a_section_that_stops_being_one_cannot_join_itself() {
    let mut graph = graph(vec![section("s")], vec![]);
    for own in ["s", "node:s"] {
        assert_eq!(
            unprocessable(&mut graph, json!([metadata("s", json!({"section": null, "sectionId": own}))])),
            ["operations[0].patch.metadata.sectionId"]
        );
    }
    assert_eq!(
        unprocessable(&mut graph, json!([update("s", json!({"type": "text", "metadata": {"sectionId": "s"}}))])),
        ["operations[0].patch.type", "operations[0].patch.metadata.sectionId"]
    );
}

#[test]
fn a_node_that_joins_a_restored_section_is_judged_and_a_former_member_is_not() {
    let restore = json!({"type": "node.restore", "nodeId": "s"});
    let join = metadata("t", json!({"sectionId": "s"}));
    let board = || graph(vec![section("s"), member(text("m"), "s"), text("t")], vec![]);
    let applied = run(&mut board(), json!([delete("s"), restore, join])).expect("applied");
    assert_eq!(applied.touched.rehomed, [id("t")].into());
    let applied = run(&mut board(), json!([delete("s"), restore])).expect("applied");
    assert!(applied.touched.rehomed.is_empty(), "all is as it was");
}

#[test]
fn a_batch_deletes_and_restores_the_largest_section_once() {
    let restore = || json!({"type": "node.restore", "nodeId": "s"});
    let mut nodes = vec![section("s")];
    nodes.extend((1..CANVAS_NODES_MAX).map(|at| member(text(&format!("n{at}")), "s")));
    let mut graph = graph(nodes, vec![]);
    run(&mut graph, json!([delete("s"), restore()])).expect("applied");
    let twice = json!([delete("s"), restore(), delete("s")]);
    assert_eq!(unprocessable(&mut graph, twice), ["operations[2].nodeId"]);
    assert_eq!(graph.members(&id("s")).count(), CANVAS_NODES_MAX - 1, "nothing was applied");
}

#[test]
fn deleting_a_section_frees_its_members() {
    let mut graph = graph(vec![member(text("a"), "s"), section("s"), member(text("b"), "s"), text("c")], vec![]);
    let applied = run(&mut graph, json!([delete("s")])).expect("applied");
    assert_eq!(ids(&applied.changes.deleted_node_ids), ["s"]);
    assert_eq!(ids(&applied.changes.changed_node_ids), ["a", "b"]);
    assert!(graph.nodes().all(|node| node.section_id().is_none()));
    assert_eq!(applied.touched.rehomed, ["a", "b"].map(id).into());
}
