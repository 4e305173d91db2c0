//! Refs over random histories of a canvas that both releases write: each is given once, stays, and is higher than all before it
//! (docs/reference/canvases.md#refs).

use std::collections::{BTreeMap, BTreeSet};

use app::canvas::ApplyBatch;
use app::graphs::Graphs;
use app::{Base, CanvasWrite, Key, Locks};
use canvas::{Batch, Graph};
use db::canvases::{self, NewCanvas};
use domain::account::Surface;
use domain::canvas::{Actor, CanvasRecord};
use domain::id::{AccountUid, CanvasHandle, CanvasId};
use domain::idempotency::Fingerprint;
use domain::refs::NodeRef;
use proptest::prelude::*;
use serde_json::{Value, json};
use testkit::TestDatabase;

#[derive(Clone, Debug)]
enum Step {
    /// Makes nodes, each connected with the one before.
    Create(usize),
    Duplicate(usize),
    Delete(usize),
    Restore(usize),
    /// A batch that is refused at its end.
    Refused,
    /// The previous release makes nodes whose ids sort as these texts; one may have the form of a ref.
    OlderCreate(Option<u8>),
    OlderDelete(usize),
    OlderRestore(usize),
}

fn steps() -> impl Strategy<Value = Vec<(Step, usize)>> {
    let index = || any::<usize>();
    let step = prop_oneof![
        4 => (1..4_usize).prop_map(Step::Create),
        2 => index().prop_map(Step::Duplicate),
        3 => index().prop_map(Step::Delete),
        3 => index().prop_map(Step::Restore),
        1 => Just(Step::Refused),
        2 => prop::option::of(1..40_u8).prop_map(Step::OlderCreate),
        1 => index().prop_map(Step::OlderDelete),
        1 => index().prop_map(Step::OlderRestore),
    ];
    prop::collection::vec((step, 0..2_usize), 1..32)
}

fn owner() -> AccountUid {
    AccountUid::from_stored("owner".into())
}

/// Which ref each id had, and what every ref has named.
#[derive(Default)]
struct Model {
    of_ids: BTreeMap<String, i32>,
    of_refs: BTreeMap<i32, String>,
}

impl Model {
    /// Notes what the canvas shows. `reborn` are ids that the previous release restored, which may have other refs than before.
    fn note(&mut self, shown: &BTreeMap<String, i32>, reborn: &BTreeSet<String>) {
        let highest = self.of_refs.keys().max().copied().unwrap_or_default();
        for (id, number) in shown {
            match self.of_ids.get(id) {
                Some(known) if !reborn.contains(id) => assert_eq!(known, number, "{id} keeps its ref"),
                Some(known) if known == number => {}
                _ => assert!(*number > highest, "{id} has the new ref {number}, after {highest}"),
            }
            let named = self.of_refs.entry(*number).or_insert_with(|| id.clone());
            assert_eq!(named, id, "{number} names one thing for all time");
            self.of_ids.insert(id.clone(), *number);
        }
    }
}

struct Setting {
    database: TestDatabase,
    canvas: CanvasHandle,
    processes: [Graphs; 2],
    deleted: Vec<String>,
    keys: usize,
}

fn pick<T>(items: &[T], index: usize) -> Option<&T> {
    items.get(index.checked_rem(items.len())?)
}

impl Setting {
    async fn new() -> Self {
        let database = TestDatabase::new().await;
        let mut conn = database.pool().acquire().await.expect("connects");
        let insert = "INSERT INTO accounts (uid, email) VALUES ('owner', 'owner@example.com')";
        sqlx::query(insert).execute(&mut *conn).await.expect("inserts an account");
        let canvas = CanvasHandle { owner: owner(), id: CanvasId::from_stored("c".into()) };
        let actor = Actor { owner_uid: owner(), surface: Surface::Api, label: "test".into() };
        let new = NewCanvas { handle: &canvas, canvas_type: None, title: "C", revision: "r0", actor: &actor };
        let record = canvases::create(&mut conn, &new).await.expect("creates").expect("is new");
        assert!(record.slug.as_deref().is_some_and(domain::id::is_slug), "{:?}", record.slug);
        // The previous release made it.
        let older = "UPDATE canvases SET slug = NULL, referenced = 0";
        sqlx::query(older).execute(&mut *conn).await.expect("updates");
        drop(conn);
        Self { database, canvas, processes: [Graphs::default(), Graphs::default()], deleted: Vec::new(), keys: 0 }
    }

    /// The canvas as a process of this release loads it.
    async fn load(&self) -> (CanvasRecord, Graph) {
        let mut conn = self.database.pool().acquire().await.expect("connects");
        let (mut record, _) =
            canvases::find(&mut conn, &owner(), &self.canvas).await.expect("reads").expect("is there");
        let revision = record.revision.clone();
        canvases::ensure_refs(&mut conn, &mut record).await.expect("gives refs");
        let (found, _) = canvases::find(&mut conn, &owner(), &self.canvas).await.expect("reads").expect("is there");
        assert!(!found.lacks_refs() && found == record, "{found:?}");
        assert_eq!(record.revision, revision, "refs make no revision");
        let graph = app::graphs::load(&mut conn, &record).await.expect("reads");
        (record, graph)
    }

    fn key(&mut self) -> String {
        self.keys += 1;
        format!("key-{}", self.keys)
    }

    /// Runs what the previous release runs to change or delete these nodes, and records it as that does.
    async fn older(&mut self, statements: &[&str], ids: &[String], is_deletion: bool) {
        let revision = self.key();
        let mut transaction = self.database.pool().begin().await.expect("begins");
        for statement in statements {
            sqlx::query(sqlx::AssertSqlSafe(*statement)).bind(ids).execute(&mut *transaction).await.expect(statement);
        }
        let change = "WITH bumped AS (
                          UPDATE canvases SET sequence = sequence + 1, revision = $1 WHERE key = 1 RETURNING sequence
                      )
                      INSERT INTO canvas_changes (canvas_key, sequence, revision, changed_nodes, deleted_nodes)
                      SELECT 1, sequence, $1, $2, $3 FROM bumped";
        let (changed, deleted) = if is_deletion { (&[][..], ids) } else { (ids, &[][..]) };
        sqlx::query(change)
            .bind(revision)
            .bind(changed)
            .bind(deleted)
            .execute(&mut *transaction)
            .await
            .expect("records the change");
        transaction.commit().await.expect("commits");
    }

    /// Takes a step. Returns the ids that the previous release restored.
    async fn take(&mut self, step: &Step, process: usize) -> BTreeSet<String> {
        let (record, graph) = self.load().await;
        let nodes: Vec<String> = graph.nodes().map(|node| node.id.to_string()).collect();
        // A deleted node is no node of the canvas, so that its id is not skipped.
        let deletable: Vec<String> = nodes.iter().filter(|id| id.parse::<NodeRef>().is_err()).cloned().collect();
        let text = |position: usize| json!({"type": "text", "position": {"x": 400 * position, "y": 0}});
        let operations = match step {
            Step::Create(count) => {
                let made = (0..*count).map(|at| {
                    json!({"type": "node.create", "clientId": format!("new-{at}"), "node": text(nodes.len() + at)})
                });
                let links = (1..*count).map(|at| {
                    let (from, to) = (format!("new-{}", at - 1), format!("new-{at}"));
                    json!({"type": "connection.create", "fromNodeId": from, "toNodeId": to})
                });
                Value::Array(made.chain(links).collect())
            }
            Step::Duplicate(node) => match pick(&nodes, *node) {
                Some(node) => {
                    let position = json!({"x": 400 * nodes.len(), "y": 900});
                    json!([{"type": "node.duplicate", "nodeId": node, "position": position}])
                }
                None => return BTreeSet::new(),
            },
            Step::Delete(node) => match pick(&deletable, *node) {
                Some(node) => json!([{"type": "node.delete", "nodeId": node}]),
                None => return BTreeSet::new(),
            },
            Step::Restore(node) => match pick(&self.deleted, *node) {
                Some(node) => json!([{"type": "node.restore", "nodeId": node}]),
                None => return BTreeSet::new(),
            },
            Step::Refused => json!([
                {"type": "node.create", "node": text(nodes.len())}, {"type": "node.delete", "nodeId": "missing"},
            ]),
            Step::OlderCreate(form) => {
                let id = form.map_or_else(|| format!("older-{}", self.keys), |number| format!("n{number}"));
                let is_ref = graph.nodes().any(|node| node.short.is_some_and(|short| short.to_string() == id));
                // An import makes ids of that form, and with them the canvas: no ref is equal to one.
                if is_ref || nodes.contains(&id) || self.deleted.contains(&id) {
                    return BTreeSet::new();
                }
                let insert = "INSERT INTO nodes (canvas_key, id, type, title, x, y, width, height, agent_owned, metadata, server)
                              SELECT 1, id, 'text', '', 0, 1800, 9, 9, false, '{}', '{}' FROM unnest($1::text[]) AS id";
                self.older(&[insert], &[id], false).await;
                return BTreeSet::new();
            }
            Step::OlderDelete(node) => {
                let Some(node) = pick(&deletable, *node).cloned() else { return BTreeSet::new() };
                let delete = "SELECT move_rows(key, sequence + 1, deleted_bytes, 67108864,
                                  ARRAY(SELECT id FROM connections WHERE from_node_id = ANY($1) OR to_node_id = ANY($1)),
                                  $1, '{}', '{}', '{}', '{}')
                              FROM canvases WHERE key = 1";
                self.older(&[delete], std::slice::from_ref(&node), true).await;
                self.deleted.push(node);
                return BTreeSet::new();
            }
            Step::OlderRestore(node) => {
                let Some(node) = pick(&self.deleted, *node).cloned() else { return BTreeSet::new() };
                // It does not know the column.
                let insert = "INSERT INTO nodes (canvas_key, ordinal, id, type, title, x, y, width, height, agent_owned, metadata, server)
                              OVERRIDING SYSTEM VALUE
                              SELECT 1, ordinal, id, type, title, x, y, width, height, agent_owned, metadata, server
                              FROM deleted_nodes WHERE id = ANY($1)";
                let forget = "DELETE FROM deleted_nodes WHERE id = ANY($1)";
                self.older(&[insert, forget], std::slice::from_ref(&node), false).await;
                self.deleted.retain(|deleted| *deleted != node);
                return [node].into();
            }
        };
        let batch = Batch::new(serde_json::from_value(operations).expect("operations")).expect("has a valid form");
        let base = Base { revision: record.revision.clone(), lenient: false };
        let key = self.key();
        let command = ApplyBatch {
            target: CanvasWrite { account: &owner(), canvas: &self.canvas, base: Some(&base), locks: Locks::Canvas },
            canvas_key: record.key,
            key: Key { text: &key, fingerprint: &Fingerprint::from([0; 32]) },
            actor: Actor { owner_uid: owner(), surface: Surface::Browser, label: "test".into() },
            batch: &batch,
            force: true,
            graphs: &self.processes[process],
        };
        match app::run(self.database.pool(), &command, |_| ()).await {
            Ok(changed) => {
                let (_, stored) = self.load().await;
                let refs = |graph: &Graph| graph.nodes().map(|node| (node.id.clone(), node.short)).collect::<Vec<_>>();
                assert_eq!(refs(&changed.graph), refs(&stored), "what is answered is stored");
                self.deleted.extend(changed.changes.deleted_node_ids.iter().map(ToString::to_string));
                self.deleted
                    .retain(|id| !changed.changes.changed_node_ids.iter().any(|changed| changed.as_str() == id));
            }
            Err(error) => assert!(matches!(step, Step::Refused | Step::Restore(_)), "{step:?}: {error}"),
        }
        BTreeSet::new()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_ref_is_given_once_stays_and_is_higher_than_all_before(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let mut setting = Setting::new().await;
            let (mut nodes, mut connections) = (Model::default(), Model::default());
            let mut slug = None;
            for (step, process) in &steps {
                let reborn = setting.take(step, *process).await;
                let (record, graph) = setting.load().await;
                prop_assert_eq!(slug.get_or_insert_with(|| record.slug.clone()), &record.slug);
                let ids: BTreeSet<String> = graph.nodes().map(|node| node.id.to_string()).collect();
                let shown: BTreeMap<String, i32> = graph
                    .nodes()
                    .map(|node| (node.id.to_string(), node.short.expect("a ref").number()))
                    .collect();
                for number in shown.values() {
                    prop_assert!(!ids.contains(&format!("n{number}")), "n{} is an id", number);
                }
                nodes.note(&shown, &reborn);
                let shown = graph
                    .connections()
                    .map(|connection| (connection.id.to_string(), connection.short.expect("a ref").number()))
                    .collect();
                connections.note(&shown, &BTreeSet::new());
                // What is asked for by its ref is the same, also after a deletion.
                let asked: Vec<_> = graph.nodes().filter_map(|node| node.short).collect();
                let mut conn = setting.database.pool().acquire().await.expect("connects");
                let named = canvases::ids_of_refs(&mut conn, record.key, &asked, &[]).await.expect("reads");
                prop_assert_eq!(named.nodes.len(), asked.len());
                for node in graph.nodes() {
                    prop_assert_eq!(named.nodes.get(&node.short.expect("a ref")).map(String::as_str), Some(node.id.as_str()));
                }
            }
            Ok(())
        })?;
    }
}
