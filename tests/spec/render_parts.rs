//! Renders of parts of a canvas, in a width, and with labels (docs/reference/canvases.md#render-parts).

use e2e::api::text;
use e2e::{Reply, Stack, User, pictures, suite};
use roxmltree::Document;
use serde_json::{Value, json};

suite! {
    render_parts on Stack::builder().image_workers(1);
    a_section_is_drawn_with_its_members,
    the_named_nodes_are_drawn_with_the_connections_among_them,
    what_the_request_alone_tells_is_400_by_its_name,
    what_the_canvas_does_not_have_is_422,
    up_to_200_nodes_are_named,
    a_png_has_the_width_that_was_asked_for,
    every_view_has_an_etag_of_its_own,
    labels_are_drawn_and_listed,
    labels_stand_at_the_corners_of_their_nodes_on_any_picture,
    a_mapping_has_at_most_8_kibibytes,
    parts_of_a_canvas_are_seen_by_who_sees_the_canvas,
}

/// A Section with two members, and a node beside it; connections within and across.
async fn board(user: &User) -> (String, Value) {
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let node = |id: &str, kind: &str, x: i32, y: i32, metadata: Value| {
        json!({"type": "node.create", "clientId": id, "node": {"type": kind, "title": id, "position": {"x": x, "y": y},
            "width": 200, "height": 100, "metadata": metadata}})
    };
    let mut operations = json!([
        node("frame", "sticky", 0, 0, json!({"section": true})),
        node("first", "text", 40, 60, json!({"sectionId": "frame", "content": "first"})),
        node("second", "image", 440, 60, json!({"sectionId": "frame"})),
        node("outside", "text", 1200, 60, json!({"content": "outside"})),
        {"type": "connection.create", "fromNodeId": "first", "toNodeId": "second", "purpose": "reference", "role": "style"},
        {"type": "connection.create", "fromNodeId": "second", "toNodeId": "outside"},
    ]);
    operations[0]["node"]["width"] = json!(700);
    operations[0]["node"]["height"] = json!(200);
    let ids = user.apply(&canvas, operations).await["resolvedIds"].clone();
    (canvas, ids)
}

async fn render(user: &User, canvas: &str, query: &str, accept: &str) -> Reply {
    user.get(&format!("/canvases/{canvas}/render?{query}")).header("accept", accept).await
}

async fn svg(user: &User, canvas: &str, query: &str) -> String {
    let reply = render(user, canvas, query, "image/svg+xml").await.expect(200);
    String::from_utf8(reply.body.to_vec()).expect("UTF-8")
}

/// Ids of the nodes in a document.
fn shown(document: &str) -> Vec<String> {
    let parsed = Document::parse(document).expect("well-formed");
    let ids = parsed.descendants().filter_map(|element| element.attribute("id")?.strip_prefix("node-"));
    ids.map(str::to_owned).collect()
}

fn view_box(document: &str) -> String {
    let parsed = Document::parse(document).expect("well-formed");
    parsed.root_element().attribute("viewBox").expect("a viewBox").to_owned()
}

fn named(ids: &Value, names: &[&str]) -> Vec<String> {
    names.iter().map(|name| text(&ids[*name], "").to_owned()).collect()
}

async fn a_section_is_drawn_with_its_members(stack: &Stack) {
    let user = stack.user().await;
    let (canvas, ids) = board(&user).await;
    let id = text(&ids["frame"], "");
    let document = svg(&user, &canvas, &format!("section={id}")).await;
    assert_eq!(shown(&document), named(&ids, &["frame", "first", "second"]));
    assert!(document.contains(">style</text>") && document.matches("marker-end=").count() == 1, "{document}");
    assert_eq!(view_box(&document), "-40 -40 780 280");
    assert_eq!(svg(&user, &canvas, &format!("section=node%3A{id}")).await, document, "by handle");
}

async fn the_named_nodes_are_drawn_with_the_connections_among_them(stack: &Stack) {
    let user = stack.user().await;
    let (canvas, ids) = board(&user).await;
    let [first, second, outside] = ["first", "second", "outside"].map(|name| text(&ids[name], ""));
    let document = svg(&user, &canvas, &format!("nodes={second},node:{outside}")).await;
    assert_eq!(shown(&document), named(&ids, &["second", "outside"]));
    assert!(document.contains("url(#arrow-flow)\"><path") && !document.contains("url(#arrow-reference)\"><path"));
    assert_eq!(view_box(&document), "400 20 1040 180");
    let alone = svg(&user, &canvas, &format!("nodes={first}")).await;
    assert!(!alone.contains("marker-end=") && shown(&alone) == [first]);
    let twice = svg(&user, &canvas, &format!("nodes={outside}%2C{second},{second}")).await;
    assert_eq!(twice, document, "the order and repetitions do not matter");
}

async fn what_the_request_alone_tells_is_400_by_its_name(stack: &Stack) {
    let user = stack.user().await;
    let (canvas, ids) = board(&user).await;
    let id = text(&ids["first"], "");
    for (query, fields) in [
        (format!("section={id}&nodes={id}"), &["nodes"][..]),
        ("section=".into(), &["section"]),
        ("section=a%20b".into(), &["section"]),
        ("nodes=".into(), &["nodes"]),
        (format!("nodes={id},"), &["nodes"]),
        (format!("nodes={id};{id}"), &["nodes"]),
        (format!("nodes={id}&nodes={id}"), &["nodes"]),
        ("width=255".into(), &["width"]),
        ("width=2049".into(), &["width"]),
        ("width=".into(), &["width"]),
        ("labels=yes".into(), &["labels"]),
        ("labels=1&width=1&section=!&ownerUid=!".into(), &["labels", "width", "section", "ownerUid"]),
    ] {
        for accept in ["image/svg+xml", "image/png"] {
            render(&user, &canvas, &query, accept).await.expect_error(400, "input_validation_error", fields);
        }
    }
    // Violations come before the canvas, and the canvas before what it holds.
    render(&user, "absent", "width=1", "image/png").await.expect_error(400, "input_validation_error", &["width"]);
    render(&user, "absent", "section=absent", "image/png").await.expect_error(404, "not_found", &[]);
}

async fn what_the_canvas_does_not_have_is_422(stack: &Stack) {
    let user = stack.user().await;
    let (canvas, ids) = board(&user).await;
    let (first, frame) = (text(&ids["first"], ""), text(&ids["frame"], ""));
    let (_, others) = board(&user).await;
    let elsewhere = text(&others["first"], "");
    for (query, field) in [
        ("section=absent".to_owned(), "section"),
        (format!("section={first}"), "section"),
        (format!("section={}", text(&others["frame"], "")), "section"),
        (format!("nodes={first},absent"), "nodes"),
        (format!("nodes={elsewhere}"), "nodes"),
    ] {
        render(&user, &canvas, &query, "image/svg+xml").await.expect_error(422, "unprocessable_entity", &[field]);
    }
    user.apply(&canvas, json!([{"type": "node.delete", "nodeId": first}])).await;
    let gone = render(&user, &canvas, &format!("nodes={first}"), "image/png").await;
    assert!(gone.expect_error(422, "unprocessable_entity", &["nodes"]).len() > 4);
    assert_eq!(shown(&svg(&user, &canvas, &format!("section={frame}")).await), named(&ids, &["frame", "second"]));
}

/// A canvas with this many notes in rows of ten, and their ids in reading order.
async fn notes(user: &User, count: usize) -> (String, Vec<String>) {
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let operations: Vec<Value> = (0..count)
        .map(|index| {
            let position = json!({"x": index % 10 * 200, "y": index / 10 * 200});
            json!({"type": "node.create", "clientId": format!("n{index}"),
                "node": {"type": "sticky", "position": position, "width": 150, "height": 150}})
        })
        .collect();
    let mut ids = json!({});
    for batch in operations.chunks(100) {
        let made = user.apply(&canvas, json!(batch)).await;
        ids.as_object_mut().expect("an object").extend(made["resolvedIds"].as_object().expect("ids").clone());
    }
    let ids = (0..count).map(|index| text(&ids, &format!("/n{index}")).to_owned()).collect();
    (canvas, ids)
}

async fn up_to_200_nodes_are_named(stack: &Stack) {
    let user = stack.user().await;
    let (canvas, ids) = notes(&user, 201).await;
    let most = svg(&user, &canvas, &format!("nodes={}", ids[..200].join(","))).await;
    assert_eq!(shown(&most).len(), 200);
    let more = render(&user, &canvas, &format!("nodes={}", ids.join(",")), "image/svg+xml").await;
    more.expect_error(400, "input_validation_error", &["nodes"]);
}

async fn a_png_has_the_width_that_was_asked_for(stack: &Stack) {
    let user = stack.user().await;
    let (canvas, ids) = board(&user).await;
    let section = format!("section={}", text(&ids["frame"], ""));
    for (width, size) in [(256, (256, 92)), (780, (780, 280)), (2048, (2048, 735))] {
        let png = render(&user, &canvas, &format!("{section}&width={width}"), "image/png").await.expect(200);
        assert_eq!(pictures::size(&png.body), size);
    }
    let natural = render(&user, &canvas, &section, "image/png").await.expect(200);
    assert_eq!(pictures::size(&natural.body), (1560, 560), "two pixels a unit");
    let svg = async |query: &str| svg(&user, &canvas, query).await;
    assert_eq!(svg(&format!("{section}&width=256")).await, svg(&section).await, "an SVG has no width");
    let high = json!({"type": "node.update", "nodeId": ids["outside"], "patch": {"width": 40, "height": 1000}});
    user.apply(&canvas, json!([high])).await;
    let query = format!("nodes={}&width=2048", text(&ids["outside"], ""));
    let high = render(&user, &canvas, &query, "image/png").await.expect(200);
    assert_eq!(pictures::size(&high.body), (228, 2048), "no higher than 2048");
}

async fn every_view_has_an_etag_of_its_own(stack: &Stack) {
    let user = stack.user().await;
    let (canvas, ids) = board(&user).await;
    let revision = text(&user.canvas(&canvas).await, "/revision").to_owned();
    let [frame, first, second] = ["frame", "first", "second"].map(|name| text(&ids[name], ""));
    let mut tags = std::collections::HashMap::new();
    for query in [
        String::new(),
        "labels=true".into(),
        format!("section={frame}"),
        format!("section={frame}&labels=true"),
        format!("nodes={first}"),
        format!("nodes={first},{second}"),
        "width=256".into(),
        "width=257".into(),
    ] {
        for accept in ["image/svg+xml", "image/png"] {
            if query.starts_with("width") && accept != "image/png" {
                continue;
            }
            let reply = render(&user, &canvas, &query, accept).await.expect(200);
            let tag = reply.header("etag").expect("a tag").to_owned();
            assert!(tag.starts_with(&format!("W/\"{revision}-")), "{tag}");
            let path = format!("/canvases/{canvas}/render?{query}");
            user.get(&path).header("accept", accept).header("if-none-match", &tag).await.expect(304);
            assert_eq!(tags.insert(tag.clone(), query.clone()), None, "{tag}");
        }
    }
    let tag = async |query: String| {
        let reply = render(&user, &canvas, &query, "image/svg+xml").await;
        reply.header("etag").map(str::to_owned)
    };
    assert_eq!(tag(format!("nodes={second},{first}")).await, tag(format!("nodes={first},node:{second}")).await);
    assert_eq!(tag("labels=false".into()).await, Some(format!("W/\"{revision}-svg\"")));
    assert_eq!(tag("width=256".into()).await, Some(format!("W/\"{revision}-svg\"")));
}

/// The mapping in the header.
fn mapping(reply: &Reply) -> Value {
    serde_json::from_str(reply.header("x-canvas-labels").expect("labels")).expect("JSON")
}

async fn labels_are_drawn_and_listed(stack: &Stack) {
    let user = stack.user().await;
    let (canvas, ids) = board(&user).await;
    let handle = |name: &str| format!("node:{}", text(&ids[name], ""));
    let whole = json!({"1": handle("frame"), "2": handle("first"), "3": handle("second"), "4": handle("outside")});
    let part = json!({"1": handle("second"), "2": handle("outside")});
    let nodes = format!("nodes={},{}&labels=true", text(&ids["outside"], ""), text(&ids["second"], ""));
    // The second time from the cache.
    for _ in 0..2 {
        for (query, wanted) in [("labels=true", &whole), (&*nodes, &part)] {
            for accept in ["image/svg+xml", "image/png"] {
                let reply = render(&user, &canvas, query, accept).await.expect(200);
                assert_eq!(mapping(&reply), *wanted);
            }
            let document = svg(&user, &canvas, query).await;
            let parsed = Document::parse(&document).expect("well-formed");
            for (number, handle) in wanted.as_object().expect("an object") {
                let node = parsed.descendants().find(|element| element.attribute("data-label") == Some(number));
                let id = node.and_then(|node| node.attribute("id")).and_then(|id| id.strip_prefix("node-"));
                assert_eq!(Some(handle.as_str().expect("a handle")), id.map(|id| format!("node:{id}")).as_deref());
                assert!(document.contains(&format!(">{number}</text>")));
            }
        }
    }
    for query in ["", "labels=false"] {
        let reply = render(&user, &canvas, query, "image/svg+xml").await.expect(200);
        assert_eq!(reply.header("x-canvas-labels"), None);
        assert!(!String::from_utf8_lossy(&reply.body).contains("data-label"));
    }
    let empty = text(&user.make_canvas().await, "/id").to_owned();
    assert_eq!(mapping(&render(&user, &empty, "labels=true", "image/png").await.expect(200)), json!({}));
}

async fn labels_stand_at_the_corners_of_their_nodes_on_any_picture(stack: &Stack) {
    let user = stack.user().await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    for picture in [pictures::scene(320, 240, 1), pictures::transparent_png(300, 300)] {
        user.upload_into(&canvas, "image/png", picture).await;
    }
    let nodes = user.canvas(&canvas).await["nodes"].clone();
    let png = testkit::wait_for("a complete render", e2e::PATIENCE, async || {
        let reply = render(&user, &canvas, "labels=true", "image/png").await.expect(200);
        reply.header("etag").is_some().then_some(reply)
    })
    .await;
    let picture = raster::decode(&png.body).expect("a picture");
    let (width, count) = (picture.width() as usize, picture.channels().count());
    for node in nodes.as_array().expect("nodes") {
        // A label extends beyond the corner and onto the node: dark around it, at two pixels a unit.
        let origin = &nodes[0]["position"];
        let pixel = |dx: f64, dy: f64| {
            let at = |axis: &str, d: f64| {
                let side = |value: &Value| value[axis].as_f64().expect("a coordinate");
                (2.0 * (side(&node["position"]) - side(origin) + 40.0 + d)) as usize
            };
            let start = (at("y", dy) * width + at("x", dx)) * count;
            [0, 1, 2].map(|channel| picture.pixels()[start + channel])
        };
        let dark = |pixel: [u8; 3]| pixel.iter().all(|channel| *channel < 80);
        assert!(dark(pixel(-5.0, -5.0)) && dark(pixel(8.0, 8.0)), "{:?} {:?}", pixel(-5.0, -5.0), pixel(8.0, 8.0));
    }
}

async fn a_mapping_has_at_most_8_kibibytes(stack: &Stack) {
    let user = stack.user().await;
    let (canvas, ids) = notes(&user, 200).await;
    let reply = render(&user, &canvas, "labels=true", "image/svg+xml").await.expect(200);
    assert!(reply.header("x-canvas-labels").is_some_and(|labels| labels.len() <= 8192));
    let mapping = mapping(&reply);
    let count = mapping.as_object().expect("an object").len();
    assert!((160..200).contains(&count), "{count}");
    for (index, id) in ids[..count].iter().enumerate() {
        assert_eq!(mapping[(index + 1).to_string()], format!("node:{id}"));
    }
    // The document has all numbers, with the ids. A part of a picture shows the others.
    let document = String::from_utf8(reply.body.to_vec()).expect("UTF-8");
    assert_eq!(document.matches("data-label=").count(), 200);
    let picture = render(&user, &canvas, "labels=true", "image/png").await.expect(200);
    assert_eq!(self::mapping(&picture), mapping);
    let rest = format!("nodes={}&labels=true", ids[count..].join(","));
    let rest = render(&user, &canvas, &rest, "image/svg+xml").await.expect(200);
    assert_eq!(self::mapping(&rest).as_object().map(serde_json::Map::len), Some(200 - count));
}

async fn parts_of_a_canvas_are_seen_by_who_sees_the_canvas(stack: &Stack) {
    let (owner, viewer, stranger) = (stack.user().await, stack.user_with("canvas:read").await, stack.user().await);
    let (canvas, ids) = board(&owner).await;
    stack.share(&owner, &canvas, &viewer.uid, "viewer").await;
    let handle = format!("canvas:{}:{canvas}", owner.uid);
    for query in
        [format!("section={}", text(&ids["frame"], "")), format!("nodes={}&labels=true", text(&ids["first"], ""))]
    {
        let own = render(&owner, &handle, &query, "image/svg+xml").await.expect(200);
        assert_eq!(render(&viewer, &handle, &query, "image/svg+xml").await.expect(200).body, own.body);
        render(&stranger, &handle, &query, "image/svg+xml").await.expect_error(404, "not_found", &[]);
    }
}
