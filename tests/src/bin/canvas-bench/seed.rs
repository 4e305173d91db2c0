//! Canvases for the measurements. One is created through the API; the others are copied from it by SQL, because ten thousand
//! nodes through the API would take longer than the whole benchmark.

use e2e::api::text;
use e2e::{Stack, User};
use serde_json::{Value, json};

/// Nodes of the template canvas: 12 texts, 4 stickies and 4 empty images, with 19 connections.
pub const NODES: usize = 20;
const TEXTS: usize = 12;
const STICKIES: usize = 4;

/// A canvas whose content is copied to others.
pub struct Template {
    /// The plain id of the canvas.
    pub id: String,
    /// The key of its row.
    pub key: i64,
}

/// A canvas that was copied from the template.
pub struct Canvas {
    /// The plain id of the canvas.
    pub id: String,
    /// The key of its row.
    pub key: i64,
    /// Its first revision.
    pub revision: String,
    /// The id of a text node.
    pub node: String,
}

/// Creates the template with 20 typical nodes.
pub async fn template(stack: &Stack, user: &User) -> Template {
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id").to_owned();
    let mut operations: Vec<Value> = (0..NODES).map(node).collect();
    operations.extend((1..NODES).map(|index| {
        let (from, to) = (format!("n{}", index - 1), format!("n{index}"));
        json!({"type": "connection.create", "fromNodeId": from, "toNodeId": to})
    }));
    user.apply(&id, operations.into()).await;
    let key = sqlx::query_scalar("SELECT key FROM canvases WHERE owner_uid = $1 AND id = $2")
        .bind(&user.uid)
        .bind(&id)
        .fetch_one(stack.pool())
        .await
        .expect("the canvas exists");
    Template { id, key }
}

fn node(index: usize) -> Value {
    let position = json!({"x": 400 * index, "y": 100 * (index % 3)});
    let words = "A note of some length, as people write them beside an image they work on. ".repeat(2);
    let node = match index {
        index if index < TEXTS => {
            json!({"type": "text", "title": format!("Text {index}"), "position": position, "metadata": {"content": words}})
        }
        index if index < TEXTS + STICKIES => {
            json!({"type": "sticky", "position": position, "metadata": {"content": "look again"}})
        }
        _ => json!({"type": "image", "title": format!("Image {index}"), "position": position}),
    };
    json!({"type": "node.create", "clientId": format!("n{index}"), "node": node})
}

/// Creates the canvas `id` with `copies` times the content of the template.
pub async fn multiple(stack: &Stack, template: &Template, id: &str, copies: i32) -> Canvas {
    let revision = format!("{id}-seeded");
    let key = sqlx::query_scalar(
        "WITH made AS (
             INSERT INTO canvases (owner_uid, id, title, revision, node_count, connection_count, graph_bytes)
             SELECT owner_uid, $2, title, $3, node_count * $4, connection_count * $4, graph_bytes * $4
             FROM canvases WHERE key = $1 RETURNING key, revision
         ), noted AS (
             INSERT INTO canvas_changes (canvas_key, sequence, revision, activity)
             SELECT made.key, 1, made.revision, c.activity FROM made, canvas_changes c
             WHERE c.canvas_key = $1 AND c.activity IS NOT NULL ORDER BY c.sequence DESC LIMIT 1
         ), nodes AS (
             INSERT INTO nodes (canvas_key, id, type, title, x, y, width, height, agent_owned, metadata, server)
             SELECT made.key, n.id || '-' || copy, n.type, n.title, n.x, n.y + 1000 * copy, n.width, n.height,
                    n.agent_owned, n.metadata, n.server
             FROM made, nodes n, generate_series(1, $4) copy WHERE n.canvas_key = $1 ORDER BY copy, n.ordinal
         ), connections AS (
             INSERT INTO connections (canvas_key, id, from_node_id, to_node_id, purpose, role)
             SELECT made.key, c.id || '-' || copy, c.from_node_id || '-' || copy, c.to_node_id || '-' || copy, c.purpose,
                    c.role
             FROM made, connections c, generate_series(1, $4) copy WHERE c.canvas_key = $1 ORDER BY copy, c.ordinal
         )
         SELECT key FROM made",
    )
    .bind(template.key)
    .bind(id)
    .bind(&revision)
    .bind(copies)
    .fetch_one(stack.pool())
    .await
    .expect("makes a canvas");
    give_refs(stack).await;
    let node =
        sqlx::query_scalar("SELECT id FROM nodes WHERE canvas_key = $1 AND type = 'text' ORDER BY ordinal LIMIT 1")
            .bind(key)
            .fetch_one(stack.pool())
            .await
            .expect("it has a text");
    Canvas { id: id.to_owned(), key, revision, node }
}

/// The ids of the first `count` nodes of a canvas.
pub async fn some_nodes(stack: &Stack, canvas: &Canvas, count: usize) -> Vec<String> {
    sqlx::query_scalar("SELECT id FROM nodes WHERE canvas_key = $1 ORDER BY ordinal LIMIT $2")
        .bind(canvas.key)
        .bind(count as i64)
        .fetch_all(stack.pool())
        .await
        .expect("reads nodes")
}

/// Creates `count` canvases `<prefix>1` to `<prefix><count>`, each with one empty image node `target` and the revision
/// `<id>-seeded`.
pub async fn targets(stack: &Stack, owner: &User, prefix: &str, count: i32) {
    sqlx::query(
        "WITH made AS (
             INSERT INTO canvases (owner_uid, id, title, revision, node_count, graph_bytes)
             SELECT $1, $2 || number, 'Job', $2 || number || '-seeded', 1, 200 FROM generate_series(1, $3) number
             RETURNING key
         )
         INSERT INTO nodes (canvas_key, id, type, title, x, y, width, height, agent_owned)
         SELECT key, 'target', 'image', 'Image', 0, 0, 320, 320, false FROM made",
    )
    .bind(&owner.uid)
    .bind(prefix)
    .bind(count)
    .execute(stack.pool())
    .await
    .expect("makes canvases");
    give_refs(stack).await;
}

/// Gives refs to what was seeded, as a write of this release does. Otherwise the first read or write of each canvas does it.
async fn give_refs(stack: &Stack) {
    stack.execute("SELECT ensure_refs(key) FROM canvases WHERE referenced <> sequence").await;
}

/// Updates the planner's statistics after seeding, as autovacuum would do later.
pub async fn analyze(stack: &Stack) {
    stack.execute("ANALYZE").await;
}
