use domain::canvas::Changes;
use domain::graph::{NodeType, Position, Purpose};
use serde_json::Value;
use testkit::TestDatabase;

use super::*;
use crate::canvases::{Change, changes_since, commit_change, graph};

fn id(text: &str) -> NodeId {
    NodeId::from_stored(text.into())
}

fn node(text: &str) -> Node {
    Node {
        id: id(text),
        kind: NodeType::Sticky,
        title: text.into(),
        position: Position { x: 1.5, y: -2.0 },
        width: 10.0,
        height: 20.0,
        agent_owned: true,
        metadata: [("prompt".to_owned(), Value::from("p"))].into_iter().collect(),
        server: [("provenance".to_owned(), Value::from(1))].into_iter().collect(),
        asset: None,
        active_job: None,
    }
}

fn connection(text: &str, purpose: Purpose) -> Connection {
    Connection { id: ConnectionId::from_stored(text.into()), from: id("a"), to: id("b"), purpose, role: None }
}

/// Canvas 1 with the nodes `a`, `b` and `c` and the connection `k`, at revision `r1`.
async fn database() -> TestDatabase {
    let database = TestDatabase::new().await;
    for statement in [
        "INSERT INTO accounts (uid, email) VALUES ('me', 'me@example.com')",
        "INSERT INTO canvases (owner_uid, id, title, revision) VALUES ('me', 'c', 'C', 'r0')",
        "INSERT INTO canvas_changes (canvas_key, sequence, revision) VALUES (1, 1, 'r0')",
    ] {
        sqlx::query(statement).execute(database.pool()).await.expect("inserts");
    }
    let (nodes, link) = (["a", "b", "c"].map(node), connection("k", Purpose::Flow));
    let writes = GraphWrites { nodes: nodes.iter().collect(), connections: vec![&link], ..GraphWrites::default() };
    write(&database, "r1", writes).await;
    database
}

/// Writes to canvas 1, with the change that records it.
async fn write(database: &TestDatabase, revision: &str, writes: GraphWrites<'_>) {
    let mut tx = database.pool().begin().await.expect("begins");
    write_graph(&mut tx, 1, &writes).await.expect("writes");
    let changes = Changes {
        changed_node_ids: writes.nodes.iter().map(|node| node.id.clone()).collect(),
        deleted_node_ids: writes.deleted_nodes.into_iter().cloned().collect(),
        changed_connection_ids: writes.connections.iter().map(|link| link.id.clone()).collect(),
        deleted_connection_ids: writes.deleted_connections.into_iter().cloned().collect(),
    };
    let change = Change {
        revision,
        title: None,
        nodes_delta: 0,
        connections_delta: 0,
        bytes_delta: 0,
        regrouped: &[],
        changes: &changes,
        activity: None,
    };
    commit_change(&mut tx, 1, &change).await.expect("records the change");
    tx.commit().await.expect("commits");
}

#[tokio::test]
async fn what_is_restored_has_its_place_again_and_counts_as_made() {
    let database = database().await;
    let (a, link) = (id("a"), ConnectionId::from_stored("k".into()));
    let (member, flow) = (id("b"), connection("k", Purpose::Flow));
    let deletes = || GraphWrites {
        deleted_nodes: vec![&a],
        deleted_connections: vec![&link],
        freed: vec![(&a, &member)],
        ..GraphWrites::default()
    };
    write(&database, "r2", deletes()).await;
    let mut conn = database.pool().acquire().await.expect("connects");
    let nodes = deleted_nodes(&mut conn, 1, &[id("b"), a.clone(), id("never")]).await.expect("reads");
    assert_eq!(nodes, [DeletedNode { node: node("a"), members: vec![member.clone()], preceding: 0 }]);
    let links = deleted_connections(&mut conn, 1, std::slice::from_ref(&link)).await.expect("reads");
    assert_eq!(links, [DeletedConnection { connection: flow.clone(), preceding: 0 }]);
    let (restored, added) = (node("a"), node("d"));
    let writes = GraphWrites {
        nodes: vec![&added, &restored],
        restored_nodes: vec![&a],
        connections: vec![&flow],
        restored_connections: vec![&link],
        ..GraphWrites::default()
    };
    write(&database, "r3", writes).await;
    let (nodes, connections) = graph(&mut conn, 1).await.expect("reads");
    assert_eq!(nodes, ["a", "b", "c", "d"].map(node));
    assert_eq!(connections, [flow]);
    assert!(deleted_nodes(&mut conn, 1, std::slice::from_ref(&a)).await.expect("reads").is_empty());
    let since = changes_since(&mut conn, 1, "r1").await.expect("reads").expect("is kept").changes;
    assert_eq!((since.changed_node_ids, since.deleted_node_ids), (vec![a.clone(), id("d")], vec![]));
    write(&database, "r4", deletes()).await;
    let since = changes_since(&mut conn, 1, "r2").await.expect("reads").expect("is kept").changes;
    assert_eq!((since.changed_node_ids, since.deleted_node_ids), (vec![id("d")], vec![]));
}

#[tokio::test]
async fn a_restored_connection_may_swap_its_purpose_with_another() {
    let database = database().await;
    let link = ConnectionId::from_stored("k".into());
    write(&database, "r2", GraphWrites { deleted_connections: vec![&link], ..GraphWrites::default() }).await;
    let other = connection("l", Purpose::Flow);
    write(&database, "r3", GraphWrites { connections: vec![&other], ..GraphWrites::default() }).await;
    let (restored, changed) = (connection("k", Purpose::Flow), connection("l", Purpose::List));
    let writes = GraphWrites {
        connections: vec![&changed, &restored],
        restored_connections: vec![&link],
        ..GraphWrites::default()
    };
    write(&database, "r4", writes).await;
    let mut conn = database.pool().acquire().await.expect("connects");
    assert_eq!(graph(&mut conn, 1).await.expect("reads").1, [restored, changed]);
}

#[tokio::test]
async fn what_was_deleted_is_kept_as_long_as_its_change_and_its_canvas() {
    let database = database().await;
    let (a, b) = (id("a"), id("b"));
    write(&database, "r2", GraphWrites { deleted_nodes: vec![&a], ..GraphWrites::default() }).await;
    write(&database, "r3", GraphWrites { deleted_nodes: vec![&b], ..GraphWrites::default() }).await;
    let age = "WITH later AS (UPDATE canvases SET sequence = sequence + 998 WHERE key = 1)
               INSERT INTO canvas_changes (canvas_key, sequence, revision)
               SELECT 1, n, 'made-' || n FROM generate_series(5, 1002) AS n";
    sqlx::query(age).execute(database.pool()).await.expect("ages the canvas");
    let mut conn = database.pool().acquire().await.expect("connects");
    let restorable = async |conn: &mut PgConnection| -> Vec<String> {
        let nodes = deleted_nodes(conn, 1, &[id("a"), id("b")]).await.expect("reads");
        nodes.iter().map(|deleted| deleted.node.id.to_string()).collect()
    };
    // The deletion of `a` is change 3 of 1002, and thus one of the last 1000.
    assert_eq!(restorable(&mut conn).await, ["a", "b"]);
    write(&database, "r1003", GraphWrites::default()).await;
    assert_eq!(restorable(&mut conn).await, ["b"]);
    let kept: i64 =
        sqlx::query_scalar("SELECT count(*) FROM deleted_nodes").fetch_one(&mut *conn).await.expect("counts");
    assert_eq!(kept, 1);
    sqlx::query("DELETE FROM canvases WHERE key = 1").execute(&mut *conn).await.expect("deletes");
    let kept: i64 =
        sqlx::query_scalar("SELECT count(*) FROM deleted_nodes").fetch_one(&mut *conn).await.expect("counts");
    assert_eq!(kept, 0);
}

#[tokio::test]
async fn deletions_are_kept_up_to_64_mib_and_the_oldest_go_first() {
    for (beyond, expected) in [(-1, &["a", "b"][..]), (0, &["a", "b"]), (1, &["b"])] {
        let database = database().await;
        let (a, b, link) = (id("a"), id("b"), ConnectionId::from_stored("k".into()));
        let deletes = GraphWrites {
            deleted_nodes: vec![&a],
            deleted_connections: vec![&link],
            freed: vec![(&a, &b)],
            ..GraphWrites::default()
        };
        write(&database, "r2", deletes).await;
        let counted = "SELECT deleted_bytes FROM canvases WHERE key = 1";
        let first: i64 = sqlx::query_scalar(counted).fetch_one(database.pool()).await.expect("reads");
        // The connection with its ends, and the node with its title, metadata and member.
        assert_eq!(first, "kab".len() as i64 + r#"aa{"prompt":"p"}{"provenance":1}b"#.len() as i64);
        // `b` has no member, and the last change deletes exactly that much less than the first.
        let last = first - 4;
        sqlx::query("UPDATE canvases SET deleted_bytes = $1 WHERE key = 1")
            .bind(DELETED_BYTES_MAX - last + beyond)
            .execute(database.pool())
            .await
            .expect("counts deletions between the two");
        write(&database, "r3", GraphWrites { deleted_nodes: vec![&b], ..GraphWrites::default() }).await;
        let mut conn = database.pool().acquire().await.expect("connects");
        let nodes = deleted_nodes(&mut conn, 1, &[a, b]).await.expect("reads");
        let nodes: Vec<_> = nodes.iter().map(|deleted| deleted.node.id.as_str()).collect();
        assert_eq!(nodes, expected, "{beyond} bytes beyond the limit");
        // What one change deleted goes together.
        let links = deleted_connections(&mut conn, 1, &[link]).await.expect("reads");
        assert_eq!(links.len(), expected.len() - 1, "{beyond} bytes beyond the limit");
    }
}
