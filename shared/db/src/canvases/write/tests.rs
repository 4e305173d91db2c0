use std::time::Duration;

use domain::account::Surface;
use domain::canvas::{ActivityType, Actor, CanvasRecord, Changes};
use domain::graph::{DeletedConnection, DeletedNode, NodeType, Position, Purpose};
use domain::id::{AccountUid, CanvasHandle, CanvasId, ConnectionId};
use domain::idempotency::{Fingerprint, StoredOutcome};
use domain::metadata::{ServerMetadata, WritableMetadata};
use testkit::TestDatabase;

use super::*;
use crate::canvases::{WorkChange, changes_since, commit_works, deleted_connections, deleted_nodes, graph};
use crate::idempotency::{NewKey, Taken, take_and_lock};

fn id(text: &str) -> NodeId {
    NodeId::from_stored(text.into())
}

fn node(text: &str) -> Node {
    Node {
        id: id(text),
        short: None,
        kind: NodeType::Sticky,
        title: text.into(),
        position: Position { x: 1.5, y: -2.0 },
        width: 10.0,
        height: 20.0,
        agent_owned: true,
        metadata: WritableMetadata { prompt: Some("p".into()), ..WritableMetadata::default() }.into(),
        server: ServerMetadata { content: Some("c".into()), ..ServerMetadata::default() }.into(),
        asset: None,
        active_job: None,
    }
}

fn connection(text: &str, purpose: Purpose) -> Connection {
    Connection {
        id: ConnectionId::from_stored(text.into()),
        short: None,
        from: id("a"),
        to: id("b"),
        purpose,
        role: None,
    }
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

/// Writes to canvas 1.
async fn write(database: &TestDatabase, revision: &str, graph: GraphWrites<'_>) -> CanvasRecord {
    let mut conn = database.pool().acquire().await.expect("connects");
    super::write(&mut conn, 1, &Change { graph, ..Change::new(revision) }).await.expect("writes")
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
    // The last change of this test deletes what is no longer kept.
    sqlx::query("UPDATE canvases SET sequence = 23").execute(database.pool()).await.expect("updates");
    write(&database, "r2", GraphWrites { deleted_nodes: vec![&a], ..GraphWrites::default() }).await;
    write(&database, "r3", GraphWrites { deleted_nodes: vec![&b], ..GraphWrites::default() }).await;
    let age = "WITH later AS (UPDATE canvases SET sequence = sequence + 998 WHERE key = 1)
               INSERT INTO canvas_changes (canvas_key, sequence, revision)
               SELECT 1, n, 'made-' || n FROM generate_series(26, 1023) AS n";
    sqlx::query(age).execute(database.pool()).await.expect("ages the canvas");
    let mut conn = database.pool().acquire().await.expect("connects");
    let restorable = async |conn: &mut PgConnection| -> Vec<String> {
        let nodes = deleted_nodes(conn, 1, &[id("a"), id("b")]).await.expect("reads");
        nodes.iter().map(|deleted| deleted.node.id.to_string()).collect()
    };
    // The deletion of `a` is change 24 of 1023, and thus the oldest of the last 1000.
    assert_eq!(restorable(&mut conn).await, ["a", "b"]);
    write(&database, "r1024", GraphWrites::default()).await;
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
        assert_eq!(first, "kab".len() as i64 + r#"aa{"prompt":"p"}{"content":"c"}b"#.len() as i64);
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

/// Moves `a`, inserts `d`, deletes `c`, replaces `k` by an equal connection and renames canvas 1, as `account`.
struct Batch {
    account: AccountUid,
    fingerprint: Fingerprint,
    outcome: StoredOutcome,
    nodes: [Node; 2],
    connection: Connection,
    deleted: (NodeId, ConnectionId),
    actor: Actor,
}

impl Batch {
    fn by(account: &str) -> Self {
        let account = AccountUid::from_stored(account.into());
        Self {
            fingerprint: Fingerprint::from([7; 32]),
            outcome: StoredOutcome::Operations { resolved_ids: [].into(), changes: Changes::default() },
            actor: Actor { owner_uid: account.clone(), surface: Surface::Api, label: "test".into() },
            account,
            nodes: [Node { position: Position { x: 7.0, y: 8.0 }, ..node("a") }, node("d")],
            connection: connection("l", Purpose::Flow),
            deleted: (id("c"), ConnectionId::from_stored("k".into())),
        }
    }

    fn key(&self) -> NewKey<'_> {
        let Self { account, fingerprint, outcome, .. } = self;
        NewKey { account, text: "key", fingerprint, outcome: Some(outcome), job: None }
    }

    fn change(&self) -> Change<'_> {
        let (node, connection) = &self.deleted;
        let graph = GraphWrites {
            nodes: self.nodes.iter().collect(),
            deleted_nodes: vec![node],
            connections: vec![&self.connection],
            deleted_connections: vec![connection],
            ..GraphWrites::default()
        };
        let (kind, actor) = (ActivityType::OperationsApplied, &self.actor);
        let regrouped = std::slice::from_ref(&self.nodes[0].id);
        let activity = NewActivity { kind, actor, summary: "applied".into(), nodes: regrouped };
        Change {
            title: Some("Named"),
            graph,
            bytes_delta: 40,
            regrouped,
            activity: Some(activity),
            ..Change::new("next")
        }
    }

    async fn write_guarded(&self, database: &TestDatabase, base_revision: &str) -> Option<CanvasRecord> {
        let guard = Guard { key: self.key(), base_revision };
        let mut conn = database.pool().acquire().await.expect("connects");
        super::write_guarded(&mut conn, 1, &guard, true, &self.change()).await.expect("the database works")
    }

    /// The same in a transaction that takes the key and locks the canvas first.
    async fn write_locked(&self, database: &TestDatabase) -> CanvasRecord {
        let mut tx = database.pool().begin().await.expect("begins");
        let canvas = CanvasHandle { owner: self.account.clone(), id: CanvasId::from_stored("c".into()) };
        let (taken, locked) = take_and_lock(&mut tx, &self.key(), &canvas, false).await.expect("takes");
        assert!(taken == Taken::Fresh && locked.is_some());
        let record = super::write(&mut tx, 1, &self.change()).await.expect("writes");
        tx.commit().await.expect("commits");
        record
    }
}

/// All rows that a write changes, without times and random ids.
async fn rows(database: &TestDatabase) -> Vec<String> {
    let rows = "SELECT (to_jsonb(t) - '{created_at,updated_at,at,activity,ordinal,slug}'::text[])::text || coalesce(activity, '')
                FROM (SELECT 1 AS part, to_jsonb(n) AS t, ordinal AS place, NULL AS activity FROM nodes n
                      UNION ALL SELECT 2, to_jsonb(c), ordinal, NULL FROM connections c
                      UNION ALL SELECT 3, to_jsonb(v), key, NULL FROM canvases v
                      UNION ALL SELECT 4, to_jsonb(h), sequence, (activity::jsonb - 'id')::text FROM canvas_changes h
                      UNION ALL SELECT 5, to_jsonb(k), 0, NULL FROM idempotency_keys k
                      UNION ALL SELECT 6, to_jsonb(d), ordinal, NULL FROM deleted_nodes d
                      UNION ALL SELECT 7, to_jsonb(d), ordinal, NULL FROM deleted_connections d) AS every (part, t, place, activity)
                ORDER BY part, place";
    sqlx::query_scalar(rows).fetch_all(database.pool()).await.expect("reads")
}

#[tokio::test]
async fn a_guarded_write_leaves_what_a_write_under_the_lock_leaves() {
    let (guarded, locked) = (database().await, database().await);
    let batch = Batch::by("me");
    let record = batch.write_guarded(&guarded, "r1").await.expect("is written");
    assert_eq!((record.revision.as_str(), record.title.as_str(), record.sequence), ("next", "Named", 3));
    assert_eq!((record.node_count, record.connection_count, record.graph_bytes), (3, 1, 40));
    batch.write_locked(&locked).await;
    assert_eq!(rows(&guarded).await, rows(&locked).await);
    let mut conn = guarded.pool().acquire().await.expect("connects");
    let (nodes, connections) = graph(&mut conn, 1).await.expect("reads");
    assert_eq!(nodes, [batch.nodes[0].clone(), node("b"), node("d")]);
    assert_eq!(connections, std::slice::from_ref(&batch.connection));
    let changes = changes_since(&mut conn, 1, "r1").await.expect("reads").expect("is kept").changes;
    assert_eq!((changes.changed_node_ids, changes.deleted_node_ids), (vec![id("a"), id("d")], vec![id("c")]));
    let links = (changes.changed_connection_ids, changes.deleted_connection_ids);
    assert_eq!(links, (vec![batch.connection.id.clone()], vec![batch.deleted.1.clone()]));
}

#[tokio::test]
async fn one_write_deletes_and_restores_and_forgets_others() {
    let database = database().await;
    let (a, b, c) = (id("a"), id("b"), id("c"));
    for (revision, deleted) in [("r2", &a), ("r3", &b)] {
        let record = write(&database, revision, GraphWrites { deleted_nodes: vec![deleted], ..GraphWrites::default() });
        record.await;
    }
    let age = "UPDATE canvases SET deleted_bytes = deleted_bytes + $1 WHERE key = 1";
    sqlx::query(age).bind(DELETED_BYTES_MAX).execute(database.pool()).await.expect("updates");
    let restored = node("a");
    let writes = GraphWrites {
        nodes: vec![&restored],
        restored_nodes: vec![&a],
        deleted_nodes: vec![&c],
        ..GraphWrites::default()
    };
    assert_eq!(write(&database, "r4", writes).await.node_count, 1);
    let mut conn = database.pool().acquire().await.expect("connects");
    let (nodes, _) = graph(&mut conn, 1).await.expect("reads");
    assert_eq!(nodes, [node("a")]);
    let first: i64 =
        sqlx::query_scalar("SELECT ordinal FROM nodes WHERE id = 'a'").fetch_one(&mut *conn).await.expect("reads");
    assert_eq!(first, 1, "the place of its first creation");
    let deleted = deleted_nodes(&mut conn, 1, &[a, b, c]).await.expect("reads");
    assert_eq!(deleted.iter().map(|deleted| deleted.node.id.as_str()).collect::<Vec<_>>(), ["c"]);
}

#[tokio::test]
async fn a_guarded_write_to_another_revision_or_anothers_canvas_or_with_a_taken_key_leaves_nothing() {
    let database = database().await;
    sqlx::query("INSERT INTO accounts (uid, email) VALUES ('other', 'other@example.com')")
        .execute(database.pool())
        .await
        .expect("inserts");
    let before = rows(&database).await;
    assert_eq!(Batch::by("me").write_guarded(&database, "r0").await, None);
    assert_eq!(Batch::by("other").write_guarded(&database, "r1").await, None);
    assert_eq!(rows(&database).await, before);
    assert!(Batch::by("me").write_guarded(&database, "r1").await.is_some());
    let written = rows(&database).await;
    assert_eq!(Batch::by("me").write_guarded(&database, "next").await, None, "its key is taken");
    assert_eq!(rows(&database).await, written);
}

#[tokio::test]
async fn a_guarded_write_that_waited_for_another_write_leaves_nothing() {
    let database = database().await;
    let mut other = database.pool().begin().await.expect("begins");
    sqlx::query("UPDATE canvases SET revision = 'r2' WHERE key = 1").execute(&mut *other).await.expect("updates");
    let batch = Batch::by("me");
    let commits = async {
        let is_waiting = async || {
            let waiting = "SELECT count(*) FROM pg_stat_activity
                           WHERE wait_event_type = 'Lock' AND datname = current_database()";
            let waiting: i64 = sqlx::query_scalar(waiting).fetch_one(database.pool()).await.expect("counts");
            (waiting == 1).then_some(())
        };
        testkit::wait_for("the write to wait", Duration::from_secs(5), is_waiting).await;
        other.commit().await.expect("commits");
        rows(&database).await
    };
    let (written, after_the_other) = tokio::join!(batch.write_guarded(&database, "r1"), commits);
    assert_eq!(written, None);
    assert_eq!(rows(&database).await, after_the_other, "neither key nor node");
    assert!(batch.write_guarded(&database, "r2").await.is_some(), "the key is free");
}

/// The recorded size of the history of canvas 1, and the sum of the sizes of its records.
async fn history(database: &TestDatabase) -> (i64, i64) {
    sqlx::query_as(
        "SELECT history_bytes, (SELECT coalesce(sum(bytes), 0) FROM canvas_changes)
                               + (SELECT coalesce(sum(bytes), 0) FROM deleted_nodes)
                               + (SELECT coalesce(sum(bytes), 0) FROM deleted_connections)
         FROM canvases WHERE key = 1",
    )
    .fetch_one(database.pool())
    .await
    .expect("reads")
}

#[tokio::test]
async fn the_size_of_the_history_is_that_of_what_is_kept() {
    let database = database().await;
    let (a, link) = (id("a"), ConnectionId::from_stored("k".into()));
    let mut big = node("a");
    big.metadata = WritableMetadata { prompt: Some("x".repeat(8000)), ..WritableMetadata::default() }.into();
    let (size, sum) = history(&database).await;
    assert!(size == sum && (100..2000).contains(&size), "{size} {sum}");
    write(&database, "r2", GraphWrites { nodes: vec![&big], ..GraphWrites::default() }).await;
    let before = history(&database).await;
    assert!(before.0 < 3000, "a replaced text is not kept: {before:?}");
    let deletes =
        || GraphWrites { deleted_nodes: vec![&a], deleted_connections: vec![&link], ..GraphWrites::default() };
    write(&database, "r3", deletes()).await;
    let deleted = history(&database).await;
    assert!(deleted.0 == deleted.1 && deleted.0 > before.0 + 8000, "{deleted:?}");
    let flow = connection("k", Purpose::Flow);
    let restores = GraphWrites {
        nodes: vec![&big],
        connections: vec![&flow],
        restored_nodes: vec![&a],
        restored_connections: vec![&link],
        ..GraphWrites::default()
    };
    write(&database, "r4", restores).await;
    let restored = history(&database).await;
    assert!(restored.0 == restored.1 && restored.0 < before.0 + 2000, "{restored:?}");
    write(&database, "r5", deletes()).await;

    // Beyond 64 MiB of later deletions, and beyond 1000 changes, by a write and by the end of a job.
    sqlx::query("UPDATE canvases SET deleted_bytes = deleted_bytes + $1")
        .bind(DELETED_BYTES_MAX)
        .execute(database.pool())
        .await
        .expect("counts deletions");
    let b = id("b");
    write(&database, "r6", GraphWrites { deleted_nodes: vec![&b], ..GraphWrites::default() }).await;
    let forgotten = history(&database).await;
    assert!(forgotten.0 == forgotten.1 && forgotten.0 < before.0 + 3000, "{forgotten:?}");
    for (sequence, is_end) in [(2047, false), (4095, true)] {
        sqlx::query("UPDATE canvases SET sequence = $1").bind(sequence).execute(database.pool()).await.expect("ages");
        let revision = format!("r{sequence}");
        if is_end {
            let mut conn = database.pool().acquire().await.expect("connects");
            let nodes = &[node("c")];
            let change = WorkChange { canvas_key: 1, revision: &revision, nodes, bytes_delta: 1, activity: None };
            commit_works(&mut conn, &[change]).await.expect("writes");
        } else {
            write(&database, &revision, GraphWrites { deleted_nodes: vec![&id("c")], ..GraphWrites::default() }).await;
        }
        let (size, sum) = history(&database).await;
        assert!(size == sum && (100..1000).contains(&size), "one change is kept: {size} {sum}");
    }
    let kept: i64 =
        sqlx::query_scalar("SELECT count(*) FROM canvas_changes").fetch_one(database.pool()).await.expect("counts");
    assert_eq!(kept, 1);
}
