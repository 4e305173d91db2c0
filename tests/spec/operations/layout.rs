//! Layout operations (docs/reference/operations.md#layout-operations), and sizes that show whole images.

use e2e::api::{key, text};
use e2e::{Reply, Stack, User, images};
use serde_json::{Value, json};

async fn send(user: &User, canvas: &str, operations: Value) -> Reply {
    let revision = user.canvas(canvas).await["revision"].clone();
    let body = json!({"baseRevision": revision, "idempotencyKey": key(), "operations": operations});
    user.send(&format!("/canvases/{canvas}/operations"), &body).await
}

async fn tried(user: &User, canvas: &str, operations: Value) -> Reply {
    let body = json!({"validateOnly": true, "operations": operations});
    user.send(&format!("/canvases/{canvas}/operations"), &body).await
}

/// Left, top, width and height of a node.
fn frame(canvas: &Value, node: &str) -> [f64; 4] {
    let node = canvas["nodes"].as_array().expect("a list").iter().find(|it| it["id"] == node).expect("the node");
    ["/position/x", "/position/y", "/width", "/height"]
        .map(|pointer| node.pointer(pointer).and_then(Value::as_f64).expect("a number"))
}

fn corner(canvas: &Value, node: &str) -> [f64; 2] {
    let [x, y, ..] = frame(canvas, node);
    [x, y]
}

fn create(name: &str, kind: &str, x: i32, y: i32) -> Value {
    json!({"type": "node.create", "clientId": name, "node": {"type": kind, "position": {"x": x, "y": y}}})
}

/// A canvas with these nodes, and their ids.
async fn board<const N: usize>(user: &User, nodes: [(&str, i32, i32); N]) -> (String, [String; N]) {
    let id = text(&user.make_canvas().await, "/id").to_owned();
    let creates: Vec<Value> = nodes
        .iter()
        .enumerate()
        .map(|(at, (kind, x, y))| {
            let mut create = create(&format!("n{at}"), kind, *x, *y);
            if *kind != "text" {
                create["node"]["metadata"] = json!({"placeholder": true});
            }
            create
        })
        .collect();
    let made = send(user, &id, creates.into()).await.ok();
    let mut names = 0..N;
    let ids = [(); N].map(|()| text(&made, &format!("/resolvedIds/n{}", names.next().expect("a name"))).to_owned());
    (id, ids)
}

fn arrange(nodes: &[&String], layout: &str, more: Value) -> Value {
    let mut operation = json!({"type": "layout.arrange", "nodeIds": nodes, "layout": layout});
    operation.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    json!([operation])
}

#[tokio::test]
async fn nodes_are_arranged_in_a_row_a_column_and_a_grid() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let (id, [a, b, c]) = board(&user, [("image", 100, 50), ("text", 900, 700), ("video", -200, 2000)]).await;
    let row = send(&user, &id, arrange(&[&c, &a, &b], "row", json!({}))).await.ok();
    let corners = [&c, &a, &b].map(|node| corner(&row["canvas"], node));
    assert_eq!(corners, [[-200.0, 50.0], [320.0, 50.0], [680.0, 50.0]], "in their order, where they are");
    assert_eq!(row["changedNodeIds"], json!([c, a, b]));
    let column = send(&user, &id, arrange(&[&a, &b, &c], "column", json!({"gap": 5, "x": 0, "y": 9000}))).await.ok();
    let corners = [&a, &b, &c].map(|node| corner(&column["canvas"], node));
    assert_eq!(corners, [[0.0, 9000.0], [0.0, 9325.0], [0.0, 9490.0]]);
    let operations = json!([create("d", "text", 0, 0),
        {"type": "layout.arrange", "nodeIds": [format!("node:{a}"), b, c, "d"], "layout": "grid", "x": 5000, "y": 0}]);
    let grid = send(&user, &id, operations).await.ok();
    let d = text(&grid, "/resolvedIds/d").to_owned();
    let corners = [&a, &b, &c, &d].map(|node| corner(&grid["canvas"], node));
    assert_eq!(corners, [[5000.0, 0.0], [5520.0, 0.0], [5000.0, 360.0], [5520.0, 360.0]]);
    let near = send(&user, &id, arrange(&[&a, &b, &c], "grid", json!({"near": d, "columns": 1}))).await.ok();
    let corners = [&a, &b, &c].map(|node| corner(&near["canvas"], node));
    assert_eq!(corners, [[5880.0, 360.0], [5880.0, 720.0], [5880.0, 920.0]]);
}

#[tokio::test]
async fn an_arrangement_covers_nothing_and_is_stable() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let (id, [a, b, wall]) = board(&user, [("image", 0, 0), ("image", 9000, 0), ("text", 400, 0)]).await;
    for more in [json!({}), json!({"x": 300, "y": 10}), json!({"near": wall})] {
        let operations = arrange(&[&a, &b], "row", more.clone());
        let tried = tried(&user, &id, operations.clone()).await.ok();
        assert_eq!(tried["validation"]["completionReview"]["overlap"]["status"], "clear", "{more}");
        let done = send(&user, &id, operations.clone()).await.ok();
        assert_eq!(corner(&done["canvas"], &wall), [400.0, 0.0]);
        let [left, top] = corner(&done["canvas"], &a);
        assert_eq!(corner(&done["canvas"], &b), [left + 360.0, top]);
        let again = send(&user, &id, operations).await.ok();
        assert_eq!((&again["changedNodeIds"], &again["canvas"]["nodes"]), (&json!([]), &done["canvas"]["nodes"]));
    }
}

/// A canvas with a Section of three members, and the ids of the Section and the members.
async fn sectioned(user: &User) -> (String, [String; 4]) {
    let id = text(&user.make_canvas().await, "/id").to_owned();
    let section = json!({"type": "sticky", "position": {"x": 0, "y": 0}, "width": 900, "height": 900, "metadata": {"section": true}});
    let member = |name: &str, x: i32, y: i32| json!({"type": "node.create", "clientId": name, "sectionId": "s", "node": {"type": "image", "position": {"x": x, "y": y}}});
    let operations = json!([{"type": "node.create", "clientId": "s", "node": section},
        member("third", 50, 500), member("second", 450, 110), member("first", 60, 120)]);
    let made = send(user, &id, operations).await.ok();
    (id, ["s", "first", "second", "third"].map(|name| text(&made, &format!("/resolvedIds/{name}")).to_owned()))
}

#[tokio::test]
async fn the_members_of_a_section_are_arranged_and_it_grows() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let (id, [section, first, second, third]) = sectioned(&user).await;
    let row = json!([{"type": "layout.arrange", "sectionId": section, "layout": "row"}]);
    let done = send(&user, &id, row).await.ok();
    let corners = [&first, &second, &third].map(|node| corner(&done["canvas"], node));
    assert_eq!(corners, [[40.0, 96.0], [400.0, 96.0], [760.0, 96.0]], "in reading order");
    assert_eq!(frame(&done["canvas"], &section), [0.0, 0.0, 1120.0, 900.0]);
    assert!(done["changedNodeIds"].as_array().expect("a list").contains(&json!(section)));
    // Enclosed, it cannot grow, and moves with its members.
    let around = [("below", 0, 950), ("beside", 1200, 0), ("before", -400, 0), ("above", 0, -250)];
    let around = around.map(|(name, x, y)| create(name, "text", x, y));
    send(&user, &id, json!(around)).await.ok();
    let column = json!({"type": "layout.arrange", "sectionId": section, "layout": "column"});
    let moved = send(&user, &id, json!([column])).await.ok();
    let [left, top, _, height] = frame(&moved["canvas"], &section);
    assert!(height == 1176.0 && [left, top] != [0.0, 0.0]);
    let corners = [&first, &second, &third].map(|node| corner(&moved["canvas"], node));
    assert_eq!(corners, [96.0, 456.0, 816.0].map(|below| [left + 40.0, top + below]));
    let mut away = column;
    (away["x"], away["y"]) = (json!(0), json!(2000));
    let done = send(&user, &id, json!([away])).await.ok();
    assert_eq!(frame(&done["canvas"], &section), [0.0, 2000.0, 1120.0, 1176.0]);
    assert_eq!(corner(&done["canvas"], &third), [40.0, 2816.0]);
}

#[tokio::test]
async fn a_section_is_fitted_to_its_members() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let (id, [section, ..]) = sectioned(&user).await;
    let fit = |more: Value| {
        let mut operation = json!({"type": "section.fit", "nodeId": format!("node:{section}")});
        operation.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        json!([operation])
    };
    let fitted = send(&user, &id, fit(json!({}))).await.ok();
    assert_eq!(frame(&fitted["canvas"], &section), [10.0, 14.0, 800.0, 846.0]);
    assert_eq!(fitted["changedNodeIds"], json!([section]));
    let tight = send(&user, &id, fit(json!({"padding": 0}))).await.ok();
    assert_eq!(frame(&tight["canvas"], &section), [50.0, 14.0, 720.0, 806.0]);
    // A large title needs more room, and is drawn in its size.
    let title =
        json!({"type": "node.update", "nodeId": section, "patch": {"title": "Spring", "metadata": {"fontSize": 100}}});
    let titled = send(&user, &id, json!([title, fit(json!({}))[0]])).await.ok();
    assert_eq!(frame(&titled["canvas"], &section), [10.0, -54.0, 800.0, 914.0]);
    let drawn = user.get(&format!("/canvases/{id}/render")).header("accept", "image/svg+xml").await.expect(200);
    let drawn = String::from_utf8(drawn.body.to_vec()).expect("a text");
    assert!(drawn.contains("font-size=\"100\" font-weight=\"bold\""), "{drawn}");
}

#[tokio::test]
async fn a_section_is_created_around_nodes() {
    let stack = &Stack::with_workers().await;
    let account = stack.account().await;
    let user = stack.user_by(&account, "all", "api").await;
    let (id, [a, b]) = board(&user, [("image", 0, 0), ("text", 400, 400)]).await;
    let around =
        json!([{"type": "section.create", "clientId": "s", "title": "Spring", "nodeIds": [a, format!("node:{b}")]}]);
    let made = send(&user, &id, around).await.ok();
    let section = text(&made, "/resolvedIds/s").to_owned();
    assert_eq!(frame(&made["canvas"], &section), [-40.0, -96.0, 800.0, 696.0]);
    let node = made["canvas"]["nodes"].as_array().and_then(|nodes| nodes.last()).expect("the Section");
    assert_eq!((&node["title"], &node["type"]), (&json!("Spring"), &json!("sticky")));
    assert_eq!(node["metadata"], json!({"section": true, "createdBy": "agent"}));
    for member in &made["canvas"]["nodes"].as_array().expect("a list")[..2] {
        assert_eq!(member["metadata"]["sectionId"], section.as_str());
    }
    assert_eq!((corner(&made["canvas"], &a), corner(&made["canvas"], &b)), ([0.0, 0.0], [400.0, 400.0]));
    // A node moves over from another Section, and the new one goes where it covers nothing.
    let over = json!([{"type": "section.create", "clientId": "t", "title": "", "nodeIds": [b]}, {"type": "section.create",
        "clientId": "empty", "title": "Empty", "near": "t"}]);
    let made = send(&user, &id, over).await.ok();
    let [new, empty] = ["t", "empty"].map(|name| frame(&made["canvas"], text(&made, &format!("/resolvedIds/{name}"))));
    assert_eq!((new, empty), ([360.0, 640.0, 400.0, 296.0], [800.0, 640.0, 640.0, 480.0]));
    assert_eq!(made["canvas"]["nodes"][1]["metadata"]["sectionId"], made["resolvedIds"]["t"]);
    let review = user.get(&format!("/canvases/{id}/review")).await.ok();
    for group in ["overlap", "containment"] {
        assert_eq!(review["validation"]["completionReview"][group]["findingCodes"], json!([]));
    }
    let person = stack.user_by(&account, "all", "browser").await;
    let made = send(&person, &id, json!([{"type": "section.create", "title": "Mine"}])).await.ok();
    let node = made["canvas"]["nodes"].as_array().and_then(|nodes| nodes.last()).expect("the Section");
    assert_eq!(node["metadata"]["createdBy"], "user");
}

#[tokio::test]
async fn a_section_moves_with_its_members() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let (id, [section, first, second, third]) = sectioned(&user).await;
    let to = |x: f64, more: Value| {
        let mut operation = json!({"type": "node.move", "nodeId": section, "position": {"x": x, "y": -10}});
        operation.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        json!([operation])
    };
    let moved = send(&user, &id, to(1000.0, json!({"withMembers": true}))).await.ok();
    let corners = [&section, &first, &second, &third].map(|node| corner(&moved["canvas"], node));
    assert_eq!(corners, [[1000.0, -10.0], [1060.0, 110.0], [1450.0, 100.0], [1050.0, 490.0]]);
    assert_eq!(moved["changedNodeIds"].as_array().map(Vec::len), Some(4));
    let edge = to(1e7, json!({"withMembers": true}));
    send(&user, &id, edge).await.expect_error(422, "unprocessable_entity", &["operations[0].position"]);
    let alone = json!([{"type": "node.move", "nodeId": first, "position": {"x": 0, "y": 0}, "withMembers": true}]);
    send(&user, &id, alone).await.expect_error(422, "unprocessable_entity", &["operations[0].withMembers"]);
    // Without it the Section moves alone.
    let body = json!({"validateOnly": true, "operations": to(2000.0, json!({"withMembers": false}))});
    let tried = user.send(&format!("/canvases/{id}/operations"), &body).await.ok();
    assert_eq!(tried["proposal"]["changedNodeIds"], json!([section]));
}

#[tokio::test]
async fn layouts_are_dry_run_reported_and_undone() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let (id, [section, first, ..]) = sectioned(&user).await;
    let before = user.canvas(&id).await;
    let operations = json!([
        {"type": "layout.arrange", "sectionId": section, "layout": "column", "gap": 0},
        {"type": "section.fit", "nodeId": section, "padding": 10},
        {"type": "node.move", "nodeId": section, "position": {"x": -5000, "y": 70}, "withMembers": true},
    ]);
    let tried = tried(&user, &id, operations.clone()).await.ok();
    assert_eq!(user.canvas(&id).await, before, "a dry run writes nothing");
    let done = send(&user, &id, operations).await.ok();
    assert_eq!(tried["proposal"]["changedNodeIds"], done["changedNodeIds"]);
    let path = format!("/canvases/{id}/changes?include=graph&since={}", text(&before, "/revision"));
    let changes = user.get(&path).await.ok();
    let mut ids =
        [&done["changedNodeIds"], &changes["changedNodeIds"]].map(|ids| ids.as_array().expect("a list").clone());
    ids.iter_mut().for_each(|ids| ids.sort_by_key(Value::to_string));
    assert_eq!(ids[0], ids[1]);
    assert_eq!(frame(&changes, &first), frame(&done["canvas"], &first));
    let back = |node: &Value| {
        let size = json!({"width": node["width"], "height": node["height"]});
        [
            json!({"type": "node.move", "nodeId": node["id"], "position": node["position"]}),
            json!({"type": "node.update", "nodeId": node["id"], "patch": size}),
        ]
    };
    let undo: Vec<Value> = before["nodes"].as_array().expect("a list").iter().flat_map(back).collect();
    let undone = send(&user, &id, undo.into()).await.ok();
    assert_eq!(undone["canvas"]["nodes"], before["nodes"]);
}

#[tokio::test]
async fn layout_operations_have_rules_of_form() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let id = text(&user.make_canvas().await, "/id").to_owned();
    let both = json!({"type": "layout.arrange", "nodeIds": ["a"], "sectionId": "s", "layout": "row", "columns": 2});
    let operations = json!([
        both,
        {"type": "layout.arrange", "layout": "grid", "x": 1},
        {"type": "layout.arrange", "layout": "grid", "nodeIds": ["a", "b", "node:a"], "near": "c", "x": 1, "y": 1},
        {"type": "section.create", "title": "S", "y": 0, "nodeIds": ["a"]},
    ]);
    let fields = [
        "operations[0].sectionId",
        "operations[0].columns",
        "operations[1].nodeIds",
        "operations[1].y",
        "operations[2].nodeIds[2]",
        "operations[2].near",
        "operations[3].x",
    ];
    for reply in [send(&user, &id, operations.clone()).await, tried(&user, &id, operations).await] {
        reply.expect_error(400, "input_validation_error", &fields);
    }
    // What the schema refuses is reported alone.
    let malformed = json!([
        {"type": "layout.arrange", "nodeIds": ["a", 1, "a"], "sectionId": "s", "layout": "row", "gap": -1, "columns": 2, "x": "1"},
        {"type": "section.create", "nodeIds": ["a", "a"], "near": "n", "x": 0, "y": 0},
        {"type": "section.fit", "nodeId": "s", "padding": null},
        {"type": "layout.arrange", "layout": "circle", "sectionId": "s"},
        {"type": "section.create", "title": "S", "y": 0, "nodeIds": ["a b"]},
    ]);
    let fields = [
        "operations[0].nodeIds[1]",
        "operations[0].gap",
        "operations[0].x",
        "operations[1].title",
        "operations[2].padding",
        "operations[3].layout",
        "operations[4].nodeIds[0]",
    ];
    send(&user, &id, malformed).await.expect_error(400, "input_validation_error", &fields);
}

#[tokio::test]
async fn layout_operations_have_rules_of_the_graph() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let (id, [section, first, ..]) = sectioned(&user).await;
    let empty = json!({"type": "section.create", "clientId": "empty", "title": "Empty", "x": 5000, "y": 0});
    let operations = json!([
        {"type": "layout.arrange", "nodeIds": ["absent"], "layout": "row"},
        {"type": "layout.arrange", "sectionId": first, "layout": "row"},
        {"type": "layout.arrange", "nodeIds": [section, first], "layout": "row"},
        {"type": "layout.arrange", "nodeIds": [first], "layout": "row", "near": first},
        empty,
        {"type": "layout.arrange", "sectionId": "empty", "layout": "row"},
        {"type": "section.fit", "nodeId": "empty"},
        {"type": "section.fit", "nodeId": first},
        {"type": "section.create", "title": "S", "nodeIds": [section, first, "absent"]},
        {"type": "section.create", "title": "S", "nodeIds": [first, section]},
        {"type": "section.create", "title": "S", "near": "absent"},
    ]);
    let fields = [
        "operations[0].nodeIds[0]",
        "operations[1].sectionId",
        "operations[2].nodeIds[1]",
        "operations[3].near",
        "operations[5].sectionId",
        "operations[6].nodeId",
        "operations[7].nodeId",
        "operations[8].nodeIds[2]",
        "operations[9].nodeIds[1]",
        "operations[10].near",
    ];
    for reply in [send(&user, &id, operations.clone()).await, tried(&user, &id, operations).await] {
        reply.expect_error(422, "unprocessable_entity", &fields);
    }
}

#[tokio::test]
async fn layout_numbers_keep_to_their_ranges() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let (id, [section, first, ..]) = sectioned(&user).await;
    let arrange = |field: &str, value: Value| {
        let mut operation = json!({"type": "layout.arrange", "nodeIds": [first], "layout": "grid"});
        operation[field] = value;
        operation
    };
    let fit = |padding: f64| json!({"type": "section.fit", "nodeId": section, "padding": padding});
    let within = [
        arrange("gap", json!(0)),
        arrange("gap", json!(1000)),
        arrange("columns", json!(1)),
        arrange("columns", json!(200)),
        fit(0.0),
        fit(1000.0),
    ];
    tried(&user, &id, within.to_vec().into()).await.ok();
    let beyond = [
        (arrange("gap", json!(-0.5)), "gap"),
        (arrange("gap", json!(1000.5)), "gap"),
        (arrange("columns", json!(0)), "columns"),
        (arrange("columns", json!(201)), "columns"),
        (arrange("columns", json!(1.5)), "columns"),
        (fit(-0.5), "padding"),
        (fit(1000.5), "padding"),
        (arrange("nodeIds", json!([])), "nodeIds"),
        (arrange("nodeIds", (0..201).map(|at| format!("n{at}")).collect()), "nodeIds"),
    ];
    for (operation, field) in beyond {
        let field = format!("operations[0].{field}");
        tried(&user, &id, json!([operation])).await.expect_error(400, "input_validation_error", &[&field]);
    }
    // A batch holds at most 200 operations.
    for part in [0..100, 100..200] {
        let creates: Vec<Value> = part.map(|at| create(&format!("n{at}"), "text", 500 * at, 5000)).collect();
        send(&user, &id, creates.into()).await.ok();
    }
    let nodes = user.canvas(&id).await["nodes"].as_array().expect("a list")[4..].to_vec();
    let ids: Vec<Value> = nodes.iter().map(|node| node["id"].clone()).collect();
    assert_eq!(ids.len(), 200);
    let done = send(&user, &id, json!([arrange("nodeIds", json!(ids))])).await.ok();
    // 13 columns of texts.
    let last = text(&done["changedNodeIds"], "/198").to_owned();
    assert_eq!(corner(&done["canvas"], &last), [4.0 * 360.0, 5000.0 + 15.0 * 200.0]);
}

#[tokio::test]
async fn equal_spellings_of_a_layout_are_one_request() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let (id, [section, first, second, _]) = sectioned(&user).await;
    let revision = user.canvas(&id).await["revision"].clone();
    let name = key();
    let body = |operations: Value| json!({"baseRevision": revision, "idempotencyKey": name, "operations": operations});
    let path = format!("/canvases/{id}/operations");
    let plain = body(json!([
        {"type": "layout.arrange", "nodeIds": [first, second], "layout": "row"},
        {"type": "section.fit", "nodeId": section},
        {"type": "node.move", "nodeId": section, "position": {"x": 1, "y": 2}},
    ]));
    let spelled = body(json!([
        {"type": "layout.arrange", "nodeIds": [format!("node:{first}"), second], "layout": "row", "gap": 40.0},
        {"type": "section.fit", "nodeId": format!("node:{section}"), "padding": 40},
        {"type": "node.move", "nodeId": section, "position": {"x": 1, "y": 2}, "withMembers": false},
    ]));
    assert_eq!(user.send(&path, &plain).await.ok()["replayed"], false);
    assert_eq!(user.send(&path, &spelled).await.ok()["replayed"], true);
    let mut other = plain;
    other["operations"][0]["gap"] = json!(41);
    user.send(&path, &other).await.expect_error(409, "conflict", &[]);
}

#[tokio::test]
async fn the_height_of_an_image_follows_its_width() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let id = text(&user.make_canvas().await, "/id").to_owned();
    user.upload_into(&id, "image/png", images::png(640, 320)).await;
    let uploaded = text(&user.canvas(&id).await, "/nodes/0/id").to_owned();
    let size = |canvas: &Value, node: &str| frame(canvas, node)[2..].to_vec();
    assert_eq!(size(&user.canvas(&id).await, &uploaded), [320.0, 160.0 + 28.0]);
    let asset = text(&user.upload("image/png", images::png(100, 300)).await, "/handle").to_owned();
    let update = |node: &str, patch: Value| json!({"type": "node.update", "nodeId": node, "patch": patch});
    let at = |x: i32| json!({"x": x, "y": 0});
    let operations = json!([
        {"type": "node.create", "clientId": "n", "node": {"type": "image", "asset": asset, "width": 100, "position": at(1000)}},
        {"type": "node.create", "clientId": "low", "node": {"type": "image", "asset": asset, "height": 100, "position": at(2000)}},
        {"type": "node.create", "clientId": "slot", "node": {"type": "image", "width": 100, "position": at(3000)}},
        update(&uploaded, json!({"width": 600})),
        update("low", json!({"width": 200})),
    ]);
    let made = send(&user, &id, operations).await.ok();
    let id_of = |name: &str| text(&made, &format!("/resolvedIds/{name}")).to_owned();
    assert_eq!(size(&made["canvas"], &uploaded), [600.0, 328.0]);
    let sizes = ["n", "low", "slot"].map(|name| size(&made["canvas"], &id_of(name)));
    assert_eq!(sizes, [[100.0, 328.0], [200.0, 628.0], [100.0, 320.0]]);
    let both = send(
        &user,
        &id,
        json!([update(&uploaded, json!({"width": 10, "height": 20})), update(&id_of("slot"), json!({"width": 7}))]),
    )
    .await
    .ok();
    assert_eq!(size(&both["canvas"], &uploaded), [10.0, 20.0]);
    assert_eq!(size(&both["canvas"], &id_of("slot")), [7.0, 320.0]);
    let beyond = json!([update(&id_of("n"), json!({"width": 33_325}))]);
    send(&user, &id, beyond).await.expect_error(422, "unprocessable_entity", &["operations[0].patch.width"]);
}

#[tokio::test]
async fn a_result_is_shown_whole_in_a_node_of_the_default_size() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let id = text(&user.make_canvas().await, "/id").to_owned();
    let asset = text(&user.upload("image/png", images::png(400, 200)).await, "/handle").to_owned();
    let node = |x: i32, width: i32| json!({"type": "image", "position": {"x": x, "y": 0}, "width": width});
    let creates = json!([{"type": "node.create", "clientId": "slot", "node": node(0, 320)},
        {"type": "node.create", "clientId": "own", "node": node(1000, 321)}]);
    let made = send(&user, &id, creates).await.ok();
    for (name, expected) in [("slot", [320.0, 188.0]), ("own", [321.0, 320.0])] {
        let target = text(&made, &format!("/resolvedIds/{name}")).to_owned();
        let request = user.resize_request(&id, &target, &asset).await;
        let started = user.send("/actions/resize/runs", &request).await.expect(202).json();
        user.finished(&started).await;
        assert_eq!(frame(&user.canvas(&id).await, &target)[2..], expected, "{name}");
    }
}
