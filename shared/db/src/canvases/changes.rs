//! Changes of a canvas since a revision, so that a client can follow a canvas without reading all of it, and a write may be
//! based on an earlier revision.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::Hash;

use domain::Timestamp;
use domain::canvas::{Activity, Actor, Author, Changes, ConcurrentChanges};
use domain::id::{AccountUid, ConnectionId, NodeId};
use domain::limits::{ACTIVITY_MAX, CHANGES_KEPT};
use futures_util::TryStreamExt;
use sqlx::PgConnection;
use sqlx::types::Json;
use tracing::instrument;

use super::StoredActivity;
use crate::Result;

/// Changes of a canvas after a revision.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangesSince {
    /// Nodes and connections, in the order of their first change. Those that were created and deleted within the range are left
    /// out.
    pub changes: Changes,
    /// The newest 50 activity entries after the revision, newest first.
    pub activity: Vec<Activity>,
}

/// Returns the changes of a canvas after revision `since`, or `None` when it is not one of the last 1000 revisions, which are
/// kept. Read in a snapshot, so that the answer belongs to one revision.
#[instrument(skip_all, name = "db.canvas.changes_since")]
pub async fn changes_since(conn: &mut PgConnection, canvas_key: i64, since: &str) -> Result<Option<ChangesSince>> {
    let known = sqlx::query_scalar!(
        "SELECT sequence FROM canvas_changes
         WHERE canvas_key = $1 AND revision = $2 AND sequence > (SELECT sequence FROM canvases WHERE key = $1) - $3",
        canvas_key,
        since,
        CHANGES_KEPT,
    )
    .fetch_optional(&mut *conn)
    .await?;
    let Some(sequence) = known else { return Ok(None) };
    // The ids of all rows together may be a thousand times those of the canvas, so the rows are not collected.
    let mut rows = sqlx::query!(
        r#"SELECT revision, at, changed_nodes, deleted_nodes, made_nodes, changed_connections, deleted_connections,
                  made_connections, activity AS "activity: Json<StoredActivity>"
           FROM canvas_changes WHERE canvas_key = $1 AND sequence > $2 ORDER BY sequence"#,
        canvas_key,
        sequence
    )
    .fetch(conn);
    let (mut nodes, mut connections, mut activity) = (NetChanges::default(), NetChanges::default(), Vec::new());
    while let Some(row) = rows.try_next().await? {
        nodes.note(row.changed_nodes, row.made_nodes, row.deleted_nodes);
        connections.note(row.changed_connections, row.made_connections, row.deleted_connections);
        let (at, revision) = (Timestamp::from(row.at), row.revision);
        activity.extend(row.activity.map(|note| note.0.entry(at, revision)));
    }
    let (changed_node_ids, deleted_node_ids) = nodes.lists(NodeId::from_stored);
    let (changed_connection_ids, deleted_connection_ids) = connections.lists(ConnectionId::from_stored);
    let changes = Changes { changed_node_ids, deleted_node_ids, changed_connection_ids, deleted_connection_ids };
    activity.reverse();
    activity.truncate(usize::try_from(ACTIVITY_MAX).unwrap_or(usize::MAX));
    Ok(Some(ChangesSince { changes, activity }))
}

/// Returns who changed these nodes after revision `since`, each client once, with its newest change, newest first. A change without
/// activity has no author. Read in the snapshot of [`changes_since`], which knows `since`.
#[instrument(skip_all, name = "db.canvas.authors_since")]
pub async fn authors_since(
    conn: &mut PgConnection,
    canvas_key: i64,
    since: &str,
    nodes: &[NodeId],
) -> Result<BTreeMap<String, Vec<Author>>> {
    let mut authors: BTreeMap<String, Vec<(AccountUid, Author)>> =
        nodes.iter().map(|id| (id.to_string(), Vec::new())).collect();
    // The ids of all rows together may be a thousand times those of the canvas, so the rows are not collected.
    let mut rows = sqlx::query!(
        r#"SELECT revision, at, changed_nodes || deleted_nodes AS "nodes!", activity AS "activity!: Json<StoredActivity>"
           FROM canvas_changes
           WHERE canvas_key = $1 AND activity IS NOT NULL
             AND sequence > (SELECT sequence FROM canvas_changes WHERE canvas_key = $1 AND revision = $2)
           ORDER BY sequence DESC"#,
        canvas_key,
        since
    )
    .fetch(conn);
    while let Some(row) = rows.try_next().await? {
        let Actor { owner_uid, surface, label } = row.activity.0.actor;
        let author = Author { label, surface, revision: row.revision, at: Timestamp::from(row.at) };
        for id in row.nodes {
            let Some(of_node) = authors.get_mut(&id) else { continue };
            let is_known = |(owner, known): &(AccountUid, Author)| {
                *owner == owner_uid && known.label == author.label && known.surface == author.surface
            };
            if !of_node.iter().any(is_known) {
                of_node.push((owner_uid.clone(), author.clone()));
            }
        }
    }
    authors.retain(|_, authors| !authors.is_empty());
    let named = |authors: Vec<(AccountUid, Author)>| authors.into_iter().map(|(_, author)| author).collect();
    Ok(authors.into_iter().map(|(node, authors)| (node, named(authors))).collect())
}

/// Returns what changed after revision `base`, or `None` when it is not one of the last 1000 revisions, when a process of the previous
/// release, which records less, made one of the changes, or when a deleted connection is forgotten, so that its ends are not known.
/// One statement, whose cost grows with the changes and not with the canvas.
#[instrument(skip_all, name = "db.canvas.concurrent_changes")]
pub async fn concurrent_changes(
    conn: &mut PgConnection,
    canvas_key: i64,
    base: &str,
) -> Result<Option<ConcurrentChanges>> {
    let row = sqlx::query!(
        r#"WITH base AS (
               SELECT sequence FROM canvas_changes
               WHERE canvas_key = $1 AND revision = $2 AND sequence > (SELECT sequence FROM canvases WHERE key = $1) - $3
           ), later AS MATERIALIZED (
               SELECT c.* FROM base JOIN canvas_changes c ON c.canvas_key = $1 AND c.sequence > base.sequence
           ), ids AS MATERIALIZED (
               SELECT array_agg(DISTINCT id) AS ids FROM later, unnest(changed_connections || deleted_connections) AS id
           ), links AS MATERIALIZED (
               SELECT id, from_node_id, to_node_id FROM connections
               WHERE canvas_key = $1 AND id = ANY((SELECT ids FROM ids)::text[])
               UNION ALL
               SELECT id, from_node_id, to_node_id FROM deleted_connections
               WHERE canvas_key = $1 AND id = ANY((SELECT ids FROM ids)::text[])
           )
           SELECT ARRAY(SELECT DISTINCT unnest(changed_nodes || deleted_nodes) FROM later) AS "nodes!",
                  ARRAY(SELECT DISTINCT unnest(regrouped) FROM later) AS "regrouped!",
                  ARRAY(SELECT id FROM links ORDER BY id) AS "links!",
                  ARRAY(SELECT from_node_id FROM links ORDER BY id) AS "link_from!",
                  ARRAY(SELECT to_node_id FROM links ORDER BY id) AS "link_to!",
                  EXISTS (SELECT FROM later WHERE renamed) AS "renamed!",
                  NOT EXISTS (SELECT FROM later WHERE renamed IS NULL OR regrouped IS NULL)
                      AND coalesce(cardinality((SELECT ids FROM ids)), 0) = (SELECT count(DISTINCT id) FROM links) AS "is_known!"
           FROM base"#,
        canvas_key,
        base,
        CHANGES_KEPT,
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.filter(|row| row.is_known).map(|row| {
        let nodes = |ids: Vec<String>| ids.into_iter().map(NodeId::from_stored).collect();
        let ends = row.link_from.into_iter().zip(row.link_to);
        let ends = ends.map(|(from, to)| (NodeId::from_stored(from), NodeId::from_stored(to)));
        ConcurrentChanges {
            nodes: nodes(row.nodes),
            regrouped: nodes(row.regrouped),
            connections: row.links.into_iter().map(ConnectionId::from_stored).zip(ends).collect(),
            renamed: row.renamed,
        }
    }))
}

/// The changes of each id, in the order of first change. An id is created or restored, then deleted, and so on.
struct NetChanges<T> {
    order: Vec<T>,
    net_changes: HashMap<T, NetChange>,
}

#[derive(Clone, Copy)]
struct NetChange {
    /// `true` if it was there before the first change.
    was_there: bool,
    /// `true` if it is there after the last change.
    is_there: bool,
}

impl<T> Default for NetChanges<T> {
    fn default() -> Self {
        Self { order: Vec::new(), net_changes: HashMap::new() }
    }
}

impl<T: Clone + Eq + Hash> NetChanges<T> {
    /// Adds the next change. The ids in `made` are also in `changed`.
    fn note(&mut self, changed: Vec<T>, made: Vec<T>, deleted: Vec<T>) {
        let made: HashSet<T> = made.into_iter().collect();
        for id in changed {
            let was_there = !made.contains(&id);
            self.net_change(id, was_there).is_there = true;
        }
        for id in deleted {
            self.net_change(id, true).is_there = false;
        }
    }

    fn net_change(&mut self, id: T, was_there: bool) -> &mut NetChange {
        let order = &mut self.order;
        self.net_changes.entry(id).or_insert_with_key(|id| {
            order.push(id.clone());
            NetChange { was_there, is_there: was_there }
        })
    }

    /// Splits the ids into those that exist and were changed, and those that existed and were deleted.
    fn lists<U>(self, id: impl Fn(T) -> U) -> (Vec<U>, Vec<U>) {
        let (mut changed, mut deleted) = (Vec::new(), Vec::new());
        for each in self.order {
            match self.net_changes[&each] {
                NetChange { is_there: true, .. } => changed.push(id(each)),
                NetChange { was_there: true, is_there: false } => deleted.push(id(each)),
                NetChange { was_there: false, is_there: false } => {}
            }
        }
        (changed, deleted)
    }
}

#[cfg(test)]
mod tests {
    use domain::graph::{Connection, GraphWrites, Purpose};
    use testkit::TestDatabase;

    use super::*;
    use crate::canvases::{Change, write};

    #[test]
    fn what_was_made_and_deleted_since_is_in_no_list() {
        let mut net_changes = NetChanges::default();
        net_changes.note(vec!["old", "new", "brief"], vec!["new", "brief"], vec![]);
        net_changes.note(vec!["new", "moved"], vec![], vec!["brief", "older"]);
        net_changes.note(vec!["old"], vec![], vec!["moved"]);
        assert_eq!(net_changes.lists(|id| id), (vec!["old", "new"], vec!["moved", "older"]));
    }

    #[test]
    fn what_was_restored_is_changed_and_deleted_again_only_if_it_was_there_at_first() {
        let mut net_changes = NetChanges::default();
        net_changes.note(vec!["made"], vec!["made"], vec!["back", "gone"]);
        net_changes.note(
            vec!["back", "gone", "earlier", "brief"],
            vec!["back", "gone", "earlier", "brief"],
            vec!["made"],
        );
        net_changes.note(vec!["made"], vec!["made"], vec!["gone", "brief"]);
        assert_eq!(net_changes.lists(|id| id), (vec!["made", "back", "earlier"], vec!["gone"]));
    }

    fn node(text: &str) -> NodeId {
        NodeId::from_stored(text.into())
    }

    fn connection(text: &str) -> Connection {
        let id = ConnectionId::from_stored(text.into());
        Connection { id, short: None, from: node("a"), to: node("b"), purpose: Purpose::Flow, role: None }
    }

    /// Canvas 1 with the nodes `a` and `b` and the connections `k` and `l` from `a` to `b`, at revision `r1`.
    async fn database() -> TestDatabase {
        let database = TestDatabase::new().await;
        for statement in [
            "INSERT INTO accounts (uid, email) VALUES ('me', 'me@example.com')",
            "INSERT INTO canvases (owner_uid, id, title, revision) VALUES ('me', 'c', 'C', 'r1')",
            "INSERT INTO canvas_changes (canvas_key, sequence, revision) VALUES (1, 1, 'r1')",
            "INSERT INTO nodes (canvas_key, id, type, title, x, y, width, height, agent_owned, metadata, server)
             SELECT 1, id, 'sticky', '', 0, 0, 9, 9, true, '{}', '{}' FROM unnest(ARRAY['a', 'b']) AS id",
            "INSERT INTO connections (canvas_key, id, from_node_id, to_node_id, purpose)
             VALUES (1, 'k', 'a', 'b', 'flow'), (1, 'l', 'a', 'b', 'list')",
        ] {
            sqlx::query(statement).execute(database.pool()).await.expect("inserts");
        }
        database
    }

    async fn commit(database: &TestDatabase, change: Change<'_>) {
        write(&mut database.pool().acquire().await.expect("connects"), 1, &change).await.expect("writes");
    }

    async fn since(database: &TestDatabase, base: &str) -> Option<ConcurrentChanges> {
        concurrent_changes(&mut database.pool().acquire().await.expect("connects"), 1, base).await.expect("reads")
    }

    #[tokio::test]
    async fn all_that_changed_since_a_revision_is_known_by_id() {
        let database = database().await;
        assert_eq!(since(&database, "r1").await, Some(ConcurrentChanges::default()), "nothing yet");
        let (a, gone, section, link) =
            (node("a"), node("gone"), node("s"), |text: &str| ConnectionId::from_stored(text.into()));
        let (changed, regrouped) = (std::slice::from_ref(&a), std::slice::from_ref(&section));
        commit(&database, Change { changed_otherwise: changed, regrouped, ..Change::new("r2") }).await;
        let (kept, deleted) = (connection("k"), link("l"));
        let graph = GraphWrites {
            deleted_nodes: vec![&gone],
            connections: vec![&kept],
            deleted_connections: vec![&deleted],
            ..GraphWrites::default()
        };
        commit(&database, Change { graph, ..Change::new("r3") }).await;
        let ends = (node("a"), node("b"));
        let of_r3 = ConcurrentChanges {
            nodes: [node("gone")].into(),
            connections: [(link("k"), ends.clone()), (link("l"), ends)].into(),
            ..ConcurrentChanges::default()
        };
        assert_eq!(since(&database, "r2").await, Some(of_r3.clone()));
        let both =
            ConcurrentChanges { nodes: [node("a"), node("gone")].into(), regrouped: [node("s")].into(), ..of_r3 };
        assert_eq!(since(&database, "r1").await, Some(both));
        commit(&database, Change { title: Some("Other"), ..Change::new("r4") }).await;
        let renamed = ConcurrentChanges { renamed: true, ..ConcurrentChanges::default() };
        assert_eq!(since(&database, "r3").await, Some(renamed));
        assert_eq!(since(&database, "never").await, None);
    }

    #[tokio::test]
    async fn changes_of_the_previous_release_are_not_known() {
        let database = database().await;
        commit(&database, Change::new("r2")).await;
        let previous = "UPDATE canvas_changes SET regrouped = NULL, renamed = NULL WHERE revision = 'r2'";
        sqlx::query(previous).execute(database.pool()).await.expect("updates");
        commit(&database, Change::new("r3")).await;
        assert_eq!(since(&database, "r1").await, None);
        assert_eq!(since(&database, "r2").await, Some(ConcurrentChanges::default()));
    }

    #[tokio::test]
    async fn changes_with_a_forgotten_deletion_are_not_known() {
        let database = database().await;
        let gone = ConnectionId::from_stored("l".into());
        let graph = GraphWrites { deleted_connections: vec![&gone], ..GraphWrites::default() };
        commit(&database, Change { graph, ..Change::new("r2") }).await;
        assert!(since(&database, "r1").await.is_some());
        sqlx::query("DELETE FROM deleted_connections").execute(database.pool()).await.expect("forgets");
        assert_eq!(since(&database, "r1").await, None);
        assert_eq!(since(&database, "r2").await, Some(ConcurrentChanges::default()));
    }

    #[tokio::test]
    async fn the_changes_since_the_last_1000_revisions_are_known() {
        let database = database().await;
        let age = "WITH later AS (UPDATE canvases SET sequence = 999 WHERE key = 1)
                   INSERT INTO canvas_changes (canvas_key, sequence, revision, regrouped, renamed)
                   SELECT 1, n, 'made-' || n, '{}', false FROM generate_series(2, 999) AS n";
        sqlx::query(age).execute(database.pool()).await.expect("ages the canvas");
        assert!(since(&database, "r1").await.is_some(), "the 999th newest");
        commit(&database, Change::new("r1000")).await;
        assert!(since(&database, "r1").await.is_some(), "the 1000th newest");
        commit(&database, Change::new("r1001")).await;
        assert_eq!(since(&database, "r1").await, None, "the 1001st newest");
        assert!(since(&database, "made-2").await.is_some());
    }
}
