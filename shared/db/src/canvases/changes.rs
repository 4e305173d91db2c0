//! What changed in a canvas since a revision, so that a client can follow without reading all of it (decisions 4.7).

use std::collections::HashMap;
use std::hash::Hash;

use domain::Timestamp;
use domain::canvas::{Activity, Changes};
use domain::id::{ConnectionId, NodeId};
use domain::limits::ACTIVITY_MAX;
use sqlx::PgConnection;
use sqlx::types::Json;
use tracing::instrument;

use super::NoteOfActivity;
use crate::Result;

/// What happened to a canvas after a revision.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangesSince {
    /// Nodes and connections, in the order in which they were touched first; what was made and deleted since is in no list
    /// (decisions 18.16).
    pub changes: Changes,
    /// The newest 50 entries since, newest first (decisions 3.6).
    pub activity: Vec<Activity>,
}

/// What happened to a canvas after revision `since`; nothing when that is none of the last 1000, which are kept. Read in
/// a snapshot, so that it belongs to one revision.
#[instrument(skip_all, name = "db.canvas.changes_since")]
pub async fn changes_since(conn: &mut PgConnection, canvas_key: i64, since: &str) -> Result<Option<ChangesSince>> {
    let known = sqlx::query_scalar!(
        "SELECT sequence FROM canvas_changes WHERE canvas_key = $1 AND revision = $2",
        canvas_key,
        since
    )
    .fetch_optional(&mut *conn)
    .await?;
    let Some(sequence) = known else { return Ok(None) };
    let rows = sqlx::query!(
        r#"SELECT revision, at, changed_nodes, deleted_nodes, made_nodes, changed_connections, deleted_connections,
                  made_connections, activity AS "activity: Json<NoteOfActivity>"
           FROM canvas_changes WHERE canvas_key = $1 AND sequence > $2 ORDER BY sequence"#,
        canvas_key,
        sequence
    )
    .fetch_all(conn)
    .await?;
    let (mut nodes, mut connections, mut activity) = (Fates::default(), Fates::default(), Vec::new());
    for row in rows {
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

/// What became of each id, in the order of first touch. An id is made once and deleted once, and never comes back.
struct Fates<T> {
    order: Vec<T>,
    fates: HashMap<T, Fate>,
}

#[derive(Clone, Copy, Default)]
struct Fate {
    made: bool,
    deleted: bool,
}

impl<T> Default for Fates<T> {
    fn default() -> Self {
        Self { order: Vec::new(), fates: HashMap::new() }
    }
}

impl<T: Clone + Eq + Hash> Fates<T> {
    /// Takes the next change; `made` are among `changed`.
    fn note(&mut self, changed: Vec<T>, made: Vec<T>, deleted: Vec<T>) {
        for id in changed {
            self.fate(id);
        }
        for id in made {
            self.fate(id).made = true;
        }
        for id in deleted {
            self.fate(id).deleted = true;
        }
    }

    fn fate(&mut self, id: T) -> &mut Fate {
        let order = &mut self.order;
        self.fates.entry(id).or_insert_with_key(|id| {
            order.push(id.clone());
            Fate::default()
        })
    }

    /// What is there and was touched, and what was there and is gone.
    fn lists<U>(self, id: impl Fn(T) -> U) -> (Vec<U>, Vec<U>) {
        let (mut changed, mut deleted) = (Vec::new(), Vec::new());
        for each in self.order {
            match self.fates[&each] {
                Fate { deleted: false, .. } => changed.push(id(each)),
                Fate { made: false, deleted: true } => deleted.push(id(each)),
                Fate { made: true, deleted: true } => {}
            }
        }
        (changed, deleted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_made_and_deleted_since_is_in_no_list() {
        let mut fates = Fates::default();
        fates.note(vec!["old", "new", "brief"], vec!["new", "brief"], vec![]);
        fates.note(vec!["new", "moved"], vec![], vec!["brief", "older"]);
        fates.note(vec!["old"], vec![], vec!["moved"]);
        assert_eq!(fates.lists(|id| id), (vec!["old", "new"], vec!["moved", "older"]));
    }
}
