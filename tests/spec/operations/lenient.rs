//! Batches on a stale revision (docs/reference/conventions.md#stale-revisions).

use std::collections::BTreeMap;

use e2e::api::{key, text};
use e2e::{Reply, Stack, User};
use futures_util::future::join_all;
use serde_json::{Value, json};

/// A canvas, its revision, and the ids of what is on it by name.
struct Board {
    user: User,
    canvas: String,
    revision: String,
    ids: BTreeMap<String, String>,
}

impl Board {
    /// Texts `a`, `b` and `c`, the Section `s` with the member `m`, and the connection `k` from `a` to `b`.
    async fn new(stack: &Stack) -> Self {
        let user = stack.user().await;
        let canvas = text(&user.make_canvas().await, "/id").to_owned();
        let create = |name: &str, node: Value| json!({"type": "node.create", "clientId": name, "node": node});
        let section = json!({"type": "sticky", "position": {"x": -9000, "y": 0}, "width": 5000, "height": 5000, "metadata": {"section": true}});
        let member = json!({"type": "text", "position": {"x": -8000, "y": 1000}, "metadata": {"sectionId": "s"}});
        let made = user
            .apply(&canvas, json!([
                create("a", json!({"type": "text"})), create("b", json!({"type": "text"})), create("c", json!({"type": "text"})),
                create("s", section), create("m", member),
                {"type": "connection.create", "clientId": "k", "fromNodeId": "a", "toNodeId": "b"},
            ]))
            .await;
        let ids = serde_json::from_value(made["resolvedIds"].clone()).expect("ids by name");
        Self { user, canvas, revision: text(&made, "/canvas/revision").to_owned(), ids }
    }

    /// The id of what has this name.
    fn id(&self, name: &str) -> &str {
        &self.ids[name]
    }

    /// Operations with ids for the names of nodes and connections.
    fn named(&self, operations: Value) -> Value {
        let mut text = operations.to_string();
        for (name, id) in &self.ids {
            text = text.replace(&format!("\"#{name}\""), &format!("\"{id}\""));
        }
        serde_json::from_str(&text).expect("operations")
    }

    async fn batch(&self, prefer: &str, revision: &str, operations: Value) -> Reply {
        let body = json!({"baseRevision": revision, "idempotencyKey": key(), "operations": self.named(operations)});
        self.send(prefer, &body).await
    }

    async fn send(&self, prefer: &str, body: &Value) -> Reply {
        let path = format!("/canvases/{}/operations", self.canvas);
        self.user.post(&path).header("prefer", prefer).body("application/json", body.to_string()).await
    }

    /// Another writer's change.
    async fn change(&self, operations: Value) -> Value {
        self.user.apply(&self.canvas, self.named(operations)).await
    }

    fn node_ids(&self, names: &[&str]) -> Value {
        let mut ids: Vec<&str> = names.iter().map(|name| self.id(name)).collect();
        ids.sort_unstable();
        json!(ids)
    }
}

fn titled(node: &str, title: &str) -> Value {
    json!({"type": "node.update", "nodeId": node, "patch": {"title": title}})
}

fn moved(node: &str) -> Value {
    json!({"type": "node.move", "nodeId": node, "position": {"x": -7000, "y": 2000}})
}

fn connected(from: &str, to: &str) -> Value {
    json!({"type": "connection.create", "fromNodeId": from, "toNodeId": to})
}

fn deleted(node: &str) -> Value {
    json!({"type": "node.delete", "nodeId": node})
}

#[tokio::test]
async fn a_stale_batch_is_accepted_when_nothing_that_it_touches_changed() {
    let stack = &Stack::without_workers().await;
    for (change, batch) in [
        (titled("#a", "A"), moved("#c")),
        (titled("#a", "A"), json!({"type": "node.create", "node": {"type": "text"}})),
        (titled("#a", "A"), json!({"type": "node.create", "node": {"type": "text"}, "near": "#c"})),
        (moved("#m"), moved("#s")),
        (
            json!({"type": "node.create", "node": {"type": "text", "position": {"x": -6000, "y": 3000}, "metadata": {"sectionId": "#s"}}}),
            titled("#s", "S"),
        ),
        (connected("#c", "#b"), connected("#a", "#c")),
        (titled("#m", "M"), json!({"type": "canvas.update", "title": "Board"})),
        (json!({"type": "canvas.update", "title": "Board"}), deleted("#m")),
    ] {
        let board = Board::new(stack).await;
        let other = board.change(json!([change])).await;
        board.batch("handling=strict", &board.revision, json!([batch])).await.expect_error(409, "conflict", &[]);
        let reply = board.batch("handling=lenient", &board.revision, json!([batch])).await.expect(200);
        assert_eq!(reply.header("preference-applied"), Some("handling=lenient"), "{batch}");
        let now = board.user.canvas(&board.canvas).await;
        assert_eq!(reply.json()["canvas"], now, "{batch}");
        assert_ne!(now["revision"], other["canvas"]["revision"]);
    }
    // On the present revision, nothing needs to be lenient.
    let board = Board::new(stack).await;
    let reply = board.batch("handling=lenient", &board.revision, json!([moved("#c")])).await.expect(200);
    assert_eq!(reply.header("preference-applied"), None);
}

#[tokio::test]
async fn a_batch_conflicts_with_a_change_of_what_it_touches() {
    let stack = &Stack::without_workers().await;
    let update = |patch: Value| json!({"type": "node.update", "nodeId": "#s", "patch": patch});
    let inside = json!({"type": "text", "position": {"x": -6000, "y": 3000}, "metadata": {"sectionId": "#s"}});
    for (change, batch, named) in [
        (titled("#a", "A"), moved("#a"), vec!["a"]),
        (deleted("#a"), moved("#a"), vec!["a"]),
        (titled("#a", "A"), connected("#c", "#a"), vec!["a"]),
        (
            titled("#a", "A"),
            json!({"type": "node.duplicate", "nodeId": "#a", "position": {"x": 0, "y": -900}}),
            vec!["a"],
        ),
        (titled("#a", "A"), json!({"type": "node.create", "near": "#a", "node": {"type": "text"}}), vec!["a"]),
        (connected("#c", "#a"), deleted("#a"), vec!["a"]),
        (json!({"type": "connection.delete", "connectionId": "#k"}), deleted("#b"), vec!["b"]),
        (connected("#c", "#a"), connected("#c", "#a"), vec!["a", "c"]),
        (
            json!({"type": "connection.update", "connectionId": "#k", "purpose": "list"}),
            json!({"type": "connection.delete", "connectionId": "#k"}),
            vec!["a", "b"],
        ),
        (deleted("#c"), json!({"type": "node.restore", "nodeId": "#c"}), vec!["c"]),
        (json!({"type": "node.move", "nodeId": "#s", "position": {"x": -9100, "y": 0}}), moved("#m"), vec!["s"]),
        (json!({"type": "node.create", "node": inside}), deleted("#s"), vec!["s"]),
        (titled("#m", "M"), deleted("#s"), vec!["m"]),
        (deleted("#m"), update(json!({"metadata": {"section": null}})), vec!["s"]),
        (json!({"type": "canvas.update", "title": "One"}), json!({"type": "canvas.update", "title": "Two"}), vec![]),
    ] {
        let board = Board::new(stack).await;
        board.change(json!([change])).await;
        let before = board.user.canvas(&board.canvas).await;
        let refused = board.batch("handling=lenient", &board.revision, json!([batch])).await.expect(409);
        assert_eq!(refused.header("preference-applied"), None);
        let details = &refused.json()["error"]["details"];
        assert_eq!(details["changedNodeIds"], board.node_ids(&named), "{change} {batch}");
        assert_eq!(details["currentRevision"], before["revision"]);
        assert!(details["changesUrl"].is_string());
        assert_eq!(board.user.canvas(&board.canvas).await, before);
    }
}

#[tokio::test]
async fn without_the_preference_a_stale_batch_is_a_conflict_that_names_nodes() {
    let stack = &Stack::without_workers().await;
    let board = Board::new(stack).await;
    board.change(json!([titled("#a", "A"), titled("#b", "B")])).await;
    for (operations, named) in [
        (json!([moved("#c")]), vec![]),
        (json!([moved("#c"), moved("#a")]), vec!["a"]),
        (json!([connected("#b", "#a")]), vec!["a", "b"]),
    ] {
        for prefer in ["handling=strict", "handling", "lenient", "return=minimal"] {
            let refused = board.batch(prefer, &board.revision, operations.clone()).await.expect(409).json();
            assert_eq!(refused["error"]["details"]["changedNodeIds"], board.node_ids(&named), "{prefer}: {operations}");
        }
    }
    let refused = board.batch("handling=lenient", "never", json!([moved("#c")])).await.expect(409).json();
    assert_eq!(refused["error"]["details"].get("changedNodeIds"), None, "it is not known what changed");
}

#[tokio::test]
async fn a_conflict_names_at_most_50_nodes() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    for (count, named) in [(49, 49), (50, 50), (51, 50)] {
        let canvas = text(&user.make_canvas().await, "/id").to_owned();
        let create = |at: usize| json!({"type": "node.create", "clientId": format!("n{at}"), "node": {"type": "text"}});
        let made = user.apply(&canvas, (0..count).map(create).collect()).await;
        let ids: Vec<&Value> = made["resolvedIds"].as_object().expect("ids").values().collect();
        let title =
            |title: &str| -> Value { ids.iter().map(|id| titled(id.as_str().expect("an id"), title)).collect() };
        user.apply(&canvas, title("A")).await;
        let refused = user.batch(&canvas, text(&made, "/canvas/revision"), title("B")).await.expect(409).json();
        let listed = refused["error"]["details"]["changedNodeIds"].as_array().expect("ids").clone();
        assert_eq!(listed.len(), named);
        assert!(listed.iter().all(|id| ids.contains(&id)));
    }
}

#[tokio::test]
async fn a_base_is_one_of_the_last_1000_revisions() {
    let stack = &Stack::without_workers().await;
    let board = Board::new(stack).await;
    // The board is at sequence 2. After 998 changes, inserted directly, its revision is the second oldest of the last 1000.
    sqlx::query(
        "WITH later AS (UPDATE canvases SET sequence = 1000, revision = 'made-1000' WHERE id = $1 RETURNING key)
         INSERT INTO canvas_changes (canvas_key, sequence, revision, regrouped, renamed)
         SELECT key, sequence, 'made-' || sequence, '{}', false FROM later, generate_series(3, 1000) AS sequence",
    )
    .bind(&board.canvas)
    .execute(stack.pool())
    .await
    .expect("ages the canvas");
    let lenient = async |operation: Value| board.batch("handling=lenient", &board.revision, json!([operation])).await;
    lenient(moved("#c")).await.expect(200);
    // It is the oldest of the last 1000 now, and what changed is known still.
    let refused = lenient(moved("#c")).await.expect(409).json();
    assert_eq!(refused["error"]["details"]["changedNodeIds"], board.node_ids(&["c"]));
    lenient(titled("#b", "B")).await.expect(200);
    let refused = lenient(titled("#a", "A")).await.expect(409).json();
    assert_eq!(refused["error"]["details"].get("changedNodeIds"), None, "the 1001st");
}

#[tokio::test]
async fn findings_are_those_of_the_present_graph() {
    let stack = &Stack::without_workers().await;
    let board = Board::new(stack).await;
    let create = |x: i32| json!([{"type": "node.create", "node": {"type": "text", "position": {"x": x, "y": -5000}}}]);
    board.change(create(0)).await;
    board.batch("handling=lenient", &board.revision, create(10)).await.expect_error(422, "unprocessable_entity", &[]);
    board.batch("handling=lenient", &board.revision, create(1000)).await.expect(200);
}

#[tokio::test]
async fn a_preference_is_no_part_of_the_request_of_a_key() {
    let stack = &Stack::without_workers().await;
    let board = Board::new(stack).await;
    board.change(json!([titled("#a", "A")])).await;
    let operations = board.named(json!([moved("#c")]));
    let body = json!({"baseRevision": board.revision, "idempotencyKey": key(), "operations": operations});
    // A rejected batch takes no key, so that it may be sent again with the preference.
    board.send("handling=strict", &body).await.expect_error(409, "conflict", &[]);
    let first = board.send("handling=lenient", &body).await.ok();
    for prefer in ["handling=lenient", "handling=strict"] {
        let replay = board.send(prefer, &body).await.expect(200);
        assert_eq!(replay.header("preference-applied"), None, "a replay looks at no revision");
        let replay = replay.json();
        assert_eq!((&replay["replayed"], &replay["canvas"]), (&json!(true), &first["canvas"]));
    }
}

#[tokio::test]
async fn several_preferences_are_applied_at_once() {
    let stack = &Stack::without_workers().await;
    let board = Board::new(stack).await;
    board.change(json!([titled("#a", "A")])).await;
    let prefer = "respond-async, return=minimal, Handling=\"lenient\"; x=y, wait=3";
    let reply = board.batch(prefer, &board.revision, json!([moved("#c")])).await.expect(200);
    assert_eq!(reply.header("preference-applied"), Some("return=minimal, handling=lenient"));
    assert_eq!(reply.json()["canvas"].get("nodes"), None);
}

#[tokio::test]
async fn a_dry_run_may_be_lenient() {
    let stack = &Stack::without_workers().await;
    let board = Board::new(stack).await;
    board.change(json!([titled("#a", "A")])).await;
    let before = board.user.canvas(&board.canvas).await;
    let trial = |operation: Value| json!({"validateOnly": true, "baseRevision": board.revision, "operations": board.named(json!([operation]))});
    let reply = board.send("handling=lenient", &trial(moved("#c"))).await.expect(200);
    assert_eq!(reply.header("preference-applied"), Some("handling=lenient"));
    assert_eq!(reply.json()["canvas"]["revision"], before["revision"]);
    let refused = board.send("handling=lenient", &trial(moved("#a"))).await.expect(409).json();
    assert_eq!(refused["error"]["details"]["changedNodeIds"], board.node_ids(&["a"]));
    board.send("handling=strict", &trial(moved("#c"))).await.expect_error(409, "conflict", &[]);
    assert_eq!(board.user.canvas(&board.canvas).await, before);
}

/// Writers that all know only the first revision write at once. Each creates nodes and renames one of its own; none of them loses
/// or sees a conflict.
#[tokio::test]
async fn of_lenient_writers_at_once_every_one_lands() {
    let stack = &Stack::without_workers().await;
    const BATCHES: usize = 20;
    let board = Board::new(stack).await;
    let (board, writers) = (&board, ["a", "b", "c", "m"]);
    let writer = |name: &'static str| async move {
        let mut revision = board.revision.clone();
        for at in 0..BATCHES {
            let operations = json!([
                titled(&format!("#{name}"), &format!("{name} {at}")),
                {"type": "node.create", "node": {"type": "text", "title": format!("of {name} {at}")}},
            ]);
            // What it knows is its own last write.
            let done = board.batch("handling=lenient", &revision, operations).await.ok();
            revision = text(&done, "/canvas/revision").to_owned();
        }
    };
    join_all(writers.map(writer)).await;
    let now = board.user.canvas(&board.canvas).await;
    let titles: Vec<&str> = now["nodes"].as_array().expect("nodes").iter().map(|node| text(node, "/title")).collect();
    for name in writers {
        assert!(titles.contains(&format!("{name} {}", BATCHES - 1).as_str()), "the last title of {name}");
        for at in 0..BATCHES {
            assert!(titles.contains(&format!("of {name} {at}").as_str()), "node {at} of {name}");
        }
    }
    let found = board.user.get(&format!("/canvases/{}/review", board.canvas)).await.ok();
    assert_eq!(found["validation"]["findings"], json!([]), "the new nodes cover nothing");
}
