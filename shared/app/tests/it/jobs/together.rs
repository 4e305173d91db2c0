//! Jobs that are completed in one transaction.

use std::slice;

use app::job::{Attempt, Completion, CompletionContext, CompletionResult, Success, complete_together};
use app::target::{self, Work};
use db::canvases::{self, Change, GraphWrites, NewCanvas};
use db::deliveries::{self, NewDelivery};
use db::jobs::{self, NewJob};
use db::{assets, tasks};
use domain::account::Surface;
use domain::canvas::{AccessRole, Actor, CanvasRecord, Changes};
use domain::graph::Node;
use domain::id::{AssetId, CanvasHandle, CanvasId, JobId, NodeId};
use domain::job::{ActionRequest, Input, JobOperation, JobStatus, Placement, ReferenceInput, Request};
use domain::message::{Queue, ReadyTasks};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::fixture::{CONTEXT, Fixture, account, asset, image_node, stored_blob};

/// A job on a canvas of its own, and what it has made.
struct Made {
    canvas: CanvasRecord,
    node: NodeId,
    id: JobId,
    lease: Uuid,
    placement: Placement,
}

impl Made {
    async fn new(fixture: &Fixture, name: &str) -> Self {
        Self::on(fixture, name, image_node()).await
    }

    /// Makes a canvas of this name with this target, and a job that has begun.
    async fn on(fixture: &Fixture, name: &str, node: Node) -> Self {
        let mut conn = fixture.conn().await;
        let handle = CanvasHandle { owner: account("me"), id: CanvasId::from_stored(name.into()) };
        let actor = Actor { owner_uid: account("me"), surface: Surface::Api, label: "t".into() };
        let revision = format!("r-{name}");
        let new = NewCanvas { handle: &handle, canvas_type: None, title: "C", revision: &revision, actor: &actor };
        let canvas = canvases::create(&mut conn, &new).await.expect("creates").expect("is new");
        let id = start(fixture, &canvas, &node.id, 0).await;
        let canvas = bind(fixture, &canvas, node.clone(), id).await;
        let lease = claim(fixture, id).await;
        jobs::begin(&mut conn, id, lease).await.expect("begins").expect("is ours");
        let placement = output(fixture, &node.id, name).await;
        Self { canvas, node: node.id, id, lease, placement }
    }

    fn success(&self) -> Success {
        Success {
            id: self.id,
            lease_token: self.lease,
            placement: self.placement.clone(),
            traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into(),
        }
    }
}

/// Accepts a resize into a node.
async fn start(fixture: &Fixture, canvas: &CanvasRecord, target: &NodeId, credit_cost: i64) -> JobId {
    let id = JobId::generate();
    let request = Request::Action(ActionRequest {
        slug: "resize".into(),
        version: "1.0.0".into(),
        params: Map::new(),
        inputs: vec![Input { handle: "node:x".into(), asset: asset("input") }],
        target: target.clone(),
    });
    let job = NewJob {
        id,
        account: &fixture.account,
        token_id: fixture.token,
        operation: JobOperation::Action,
        canvas: Some((canvas.key, &canvas.handle)),
        canvas_revision: Some("r1"),
        request: &request,
        estimated_seconds: 1,
        credit_cost,
        recipe_run: None,
        traceparent: None,
    };
    jobs::insert(&mut *fixture.conn().await, &job).await.expect("inserts a job");
    id
}

/// Creates a node that waits for a job. Returns the canvas with it.
async fn bind(fixture: &Fixture, canvas: &CanvasRecord, mut node: Node, id: JobId) -> CanvasRecord {
    target::bind(slice::from_mut(&mut node), Work::Job(id, JobOperation::Action)).expect("is free");
    let writes = GraphWrites { nodes: vec![&node], ..GraphWrites::default() };
    let mut conn = fixture.conn().await;
    canvases::write_graph(&mut conn, canvas.key, &writes).await.expect("writes a node");
    let changes = Changes { changed_node_ids: vec![node.id.clone()], ..Changes::default() };
    let revision = format!("{}+", canvas.revision);
    let change = Change { nodes_delta: 1, ..Change::of(&revision, &changes) };
    canvases::commit_change(&mut conn, canvas.key, &change).await.expect("records the change")
}

/// Claims the task of a job.
async fn claim(fixture: &Fixture, id: JobId) -> Uuid {
    sqlx::query_scalar(
        "UPDATE task_queue SET state = 'leased', lease_token = gen_random_uuid(), lease_owner = 'test', claims = 1,
                lease_until = now() + interval '30 s'
         WHERE id = $1 RETURNING lease_token",
    )
    .bind(id.0)
    .fetch_one(&mut *fixture.conn().await)
    .await
    .expect("claims")
}

async fn output(fixture: &Fixture, node: &NodeId, name: &str) -> Placement {
    let Completion::Succeeded(mut made) = fixture.success().await else { unreachable!("is a success") };
    let mut placement = made.remove(0);
    let mut sha256 = [1; 32];
    sha256[..name.len()].copy_from_slice(name.as_bytes());
    let blob_key = Uuid::new_v4();
    stored_blob(&mut *fixture.conn().await, blob_key, &sha256, 12).await;
    placement.provenance.references = vec![ReferenceInput { handle: "asset:me:input".into(), role: None }];
    Placement { node: node.clone(), asset: AssetId::from_stored(name.into()), sha256, blob_key, ..placement }
}

/// One transaction, committed unless the blob of an output was removed.
async fn complete(fixture: &Fixture, made: &[&Made]) -> Option<Vec<Attempt>> {
    complete_with(fixture, made, CONTEXT).await
}

async fn complete_with(fixture: &Fixture, made: &[&Made], context: &CompletionContext<'_>) -> Option<Vec<Attempt>> {
    let mut tx = fixture.database.pool().begin().await.expect("begins");
    let successes: Vec<Success> = made.iter().map(|made| made.success()).collect();
    let together = complete_together(&mut tx, &successes, context).await.expect("completes");
    match together {
        Some(_) => tx.commit().await.expect("commits"),
        None => tx.rollback().await.expect("rolls back"),
    }
    together
}

/// What became of each job: that it succeeded, or the attempt.
async fn attempts(fixture: &Fixture, made: &[&Made]) -> Vec<Result<(), Attempt>> {
    let together = complete(fixture, made).await.expect("no blob was removed");
    let attempt = |attempt: Attempt| match attempt {
        Attempt::Completed(CompletionResult::Done(record)) if record.status == JobStatus::Succeeded => Ok(()),
        other => Err(other),
    };
    together.into_iter().map(attempt).collect()
}

const BUSY: Result<(), Attempt> = Err(Attempt::Busy);
const ALONE: Result<(), Attempt> = Err(Attempt::Alone);

/// Every row that a completion may touch, without what differs between two equal runs.
async fn state(fixture: &Fixture, made: &Made) -> String {
    let mut state: Value = sqlx::query_scalar(
        "SELECT jsonb_build_object(
             'job', (SELECT to_jsonb(j) - '{created_at,queued_at,started_at,updated_at,retain_until,token_id,canvas_key}'::text[]
                            || jsonb_build_object('kept', j.retain_until - j.completed_at)
                     FROM jobs j WHERE id = $1),
             'history', (SELECT jsonb_agg(status ORDER BY version) FROM job_history WHERE job_id = $1),
             'nodes', (SELECT jsonb_agg(to_jsonb(n) - '{canvas_key,ordinal}'::text[]) FROM nodes n WHERE canvas_key = $2),
             'canvas', (SELECT to_jsonb(c) - '{key,created_at,updated_at}'::text[] FROM canvases c WHERE key = $2),
             'changes', (SELECT jsonb_agg(to_jsonb(c) - '{canvas_key,at,activity}'::text[]
                                          || jsonb_build_object('activity', activity - 'id') ORDER BY sequence)
                         FROM canvas_changes c WHERE canvas_key = $2),
             'assets', (SELECT jsonb_agg(to_jsonb(a) - '{canvas_key,created_at,updated_at}'::text[])
                        FROM assets a WHERE canvas_key = $2),
             'renditions', (SELECT jsonb_agg(jsonb_build_object('width', width, 'state', state)) FROM renditions),
             'tasks', (SELECT jsonb_agg(jsonb_build_object('kind', kind, 'key', fairness_key, 'trace', traceparent)
                                        ORDER BY kind) FROM task_queue),
             'storage', (SELECT jsonb_agg(to_jsonb(s) ORDER BY account_uid) FROM account_storage s),
             'event', (SELECT convert_from(body, 'utf8') FROM webhook_deliveries)
         )",
    )
    .bind(made.id.0)
    .bind(made.canvas.key)
    .fetch_one(&mut *fixture.conn().await)
    .await
    .expect("reads");
    let record = fixture.get(made.id).await;
    let mut volatile = vec![
        made.id.0.to_string(),
        made.node.to_string(),
        made.placement.blob_key.to_string(),
        record.canvas_revision.expect("has one"),
        json!(record.completed_at).as_str().expect("is a time").to_owned(),
        state["job"]["completed_at"].as_str().expect("is a time").to_owned(),
    ];
    if let Some(event) = state["event"].as_str() {
        let mut event: Value = serde_json::from_str(event).expect("is JSON");
        volatile.push(event["id"].as_str().expect("has an id").to_owned());
        for durations in ["timing", "durationMs"] {
            event["data"]["run"][durations] = Value::Null;
        }
        state["event"] = event;
    }
    let mut text = state.to_string();
    for (index, value) in volatile.iter().enumerate() {
        text = text.replace(value.as_str(), &format!("<{index}>"));
    }
    text
}

#[tokio::test]
async fn a_job_that_is_completed_together_with_others_changes_what_it_changes_by_itself() {
    let shown = || Node { asset: Some(asset("earlier")), width: 100.0, ..image_node() };
    let described = || {
        let mut node = image_node();
        node.metadata.prompt = Some("kept, and not read by a review".into());
        node
    };
    for (name, node, has_webhook, is_deleted) in [
        ("an empty target", image_node(), false, false),
        ("a target that shows a picture", shown(), true, false),
        ("a target with metadata", described(), false, false),
        ("a target that is deleted meanwhile", image_node(), true, true),
    ] {
        let mut states = Vec::new();
        for is_together in [false, true] {
            let fixture = Fixture::new().await;
            let made = Made::on(&fixture, "a", node.clone()).await;
            let mut conn = fixture.conn().await;
            if has_webhook {
                let delivery = NewDelivery {
                    id: Uuid::nil(),
                    account: &fixture.account,
                    job_id: made.id,
                    url: "https://receiver.example/hook",
                    sealed_secret: "sealed",
                };
                deliveries::insert(&mut conn, &delivery).await.expect("inserts");
            }
            if is_deleted {
                let mut tx = fixture.database.pool().begin().await.expect("begins");
                let writes = GraphWrites { deleted_nodes: vec![&made.node], ..GraphWrites::default() };
                canvases::write_graph(&mut tx, made.canvas.key, &writes).await.expect("deletes");
                let changes = Changes { deleted_node_ids: vec![made.node.clone()], ..Changes::default() };
                let change = Change { nodes_delta: -1, ..Change::of("deleted", &changes) };
                canvases::commit_change(&mut tx, made.canvas.key, &change).await.expect("records the change");
                tx.commit().await.expect("commits");
            }
            if is_together {
                let together = complete(&fixture, &[&made]).await.expect("no blob was removed");
                let [Attempt::Completed(CompletionResult::Done(_))] = together[..] else {
                    panic!("{name}: {together:?}")
                };
            } else {
                let mut tx = fixture.database.pool().begin().await.expect("begins");
                let Success { id, lease_token, placement, traceparent } = made.success();
                let context = app::job::CompletionContext { traceparent: Some(&traceparent), ..*CONTEXT };
                let completion = Completion::Succeeded(vec![placement]);
                let completed = app::job::complete(&mut tx, id, lease_token, completion, &context).await;
                assert!(matches!(completed, Ok(CompletionResult::Done(_))), "{name}: {completed:?}");
                tx.commit().await.expect("commits");
            }
            states.push(state(&fixture, &made).await);
        }
        assert_eq!(states[0], states[1], "{name}");
    }
}

#[tokio::test]
async fn each_of_several_gets_its_own_output_revision_and_review() {
    let fixture = Fixture::new().await;
    let (one, two, three) =
        (Made::new(&fixture, "a").await, Made::new(&fixture, "b").await, Made::new(&fixture, "d").await);
    let all = [&three, &one, &two];
    assert_eq!(attempts(&fixture, &all).await, [Ok(()), Ok(()), Ok(())]);
    let mut conn = fixture.conn().await;
    for made in all {
        let record = fixture.get(made.id).await;
        let canvas = canvases::find(&mut conn, &fixture.account, &made.canvas.handle).await;
        let (canvas, _) = canvas.expect("reads").expect("is there");
        assert_eq!((Some(canvas.revision), canvas.sequence), (record.canvas_revision, made.canvas.sequence + 1));
        let node = canvases::node(&mut conn, canvas.key, &made.node).await.expect("reads").expect("is there");
        assert_eq!((node.asset.as_ref(), node.active_job), (Some(&record.outcome.images[0].asset), None));
        let stored = assets::get(&mut conn, &record.outcome.images[0].asset).await.expect("reads").expect("is stored");
        assert_eq!((stored.blob_key, stored.canvas_key), (made.placement.blob_key, Some(canvas.key)));
        let review = record.outcome.completion_review.expect("has a review");
        assert_eq!((review.outputs.count, review.outputs.durable_count), (1, 1));
    }
    assert_eq!(fixture.count("SELECT count(*) FROM task_queue WHERE kind = 'action'").await, 0);
}

#[tokio::test]
async fn of_two_jobs_on_one_canvas_one_is_left() {
    let fixture = Fixture::new().await;
    let one = Made::new(&fixture, "a").await;
    let other = image_node();
    let id = start(&fixture, &one.canvas, &other.id, 0).await;
    let canvas = bind(&fixture, &one.canvas, other.clone(), id).await;
    let lease = claim(&fixture, id).await;
    jobs::begin(&mut *fixture.conn().await, id, lease).await.expect("begins").expect("is ours");
    let placement = output(&fixture, &other.id, "b").await;
    let two = Made { canvas, node: other.id, id, lease, placement };
    let first = attempts(&fixture, &[&one, &two]).await;
    assert!(first.contains(&Ok(())) && first.contains(&BUSY), "{first:?}");
    let left = if first[0] == BUSY { &one } else { &two };
    assert_eq!(attempts(&fixture, &[left]).await, [Ok(())]);
}

#[tokio::test]
async fn a_lost_lease_is_stale_and_does_not_keep_the_others() {
    let fixture = Fixture::new().await;
    let (stale, held) = (Made::new(&fixture, "a").await, Made::new(&fixture, "b").await);
    let lost = Made { lease: Uuid::new_v4(), ..stale };
    let together = complete(&fixture, &[&lost, &held]).await.expect("no blob was removed");
    assert_eq!(together[0], Attempt::Completed(CompletionResult::Stale));
    assert!(matches!(together[1], Attempt::Completed(CompletionResult::Done(_))));
    assert_eq!(fixture.history(lost.id).await, ["queued", "running"]);
    assert_eq!(fixture.count("SELECT count(*) FROM task_queue WHERE kind = 'action'").await, 1);
}

#[tokio::test]
async fn a_canvas_or_job_that_another_transaction_has_locked_is_not_waited_for() {
    let fixture = Fixture::new().await;
    let (one, two, three) =
        (Made::new(&fixture, "a").await, Made::new(&fixture, "b").await, Made::new(&fixture, "d").await);
    let mut other = fixture.database.pool().begin().await.expect("begins");
    canvases::lock(&mut other, &fixture.account, &one.canvas.handle).await.expect("locks").expect("is there");
    jobs::transition(&mut other, two.id, JobStatus::Finalizing).await.expect("locks");
    assert_eq!(attempts(&fixture, &[&one, &two, &three]).await, [BUSY, BUSY, Ok(())]);
    other.rollback().await.expect("ends");
    assert_eq!(attempts(&fixture, &[&one, &two]).await, [Ok(()), Ok(())]);
}

#[tokio::test]
async fn jobs_whose_completion_does_more_are_left() {
    let fixture = Fixture::new().await;
    let mut conn = fixture.conn().await;
    let names = ["paid", "removing", "large", "viewer", "quota", "canceled", "heavy", "plain"];
    let mut made = Vec::new();
    for name in names {
        made.push(Made::new(&fixture, name).await);
    }
    let run = |sql: &'static str, index: usize| sqlx::query(sql).bind(made[index].id.0);
    run("UPDATE jobs SET credit_cost = 1 WHERE id = $1", 0).execute(&mut *conn).await.expect("costs");
    run("UPDATE jobs SET remove_targets = true WHERE id = $1", 1).execute(&mut *conn).await.expect("removes");
    let large = "UPDATE canvases SET node_count = 501 WHERE key = (SELECT canvas_key FROM jobs WHERE id = $1)";
    run(large, 2).execute(&mut *conn).await.expect("grows");
    let given = "UPDATE canvases SET owner_uid = 'you' WHERE key = (SELECT canvas_key FROM jobs WHERE id = $1)";
    for (index, role) in [(3, AccessRole::Viewer), (4, AccessRole::Editor)] {
        run(given, index).execute(&mut *conn).await.expect("gives away");
        let canvas = CanvasHandle { owner: account("you"), id: CanvasId::from_stored(names[index].into()) };
        assert!(canvases::share(&mut conn, &canvas, &fixture.account, Some(role)).await.expect("shares"));
    }
    sqlx::query("UPDATE accounts SET storage_max = 1000000 WHERE uid = 'you'").execute(&mut *conn).await.expect("caps");
    run("UPDATE jobs SET status = 'canceled', completed_at = now(), retain_until = now() WHERE id = $1", 5)
        .execute(&mut *conn)
        .await
        .expect("ends");
    let heavy =
        "UPDATE canvases SET graph_bytes = 1024 * 1024 + 1 WHERE key = (SELECT canvas_key FROM jobs WHERE id = $1)";
    run(heavy, 6).execute(&mut *conn).await.expect("grows");
    let all: Vec<&Made> = made.iter().collect();
    assert_eq!(attempts(&fixture, &all).await, [ALONE, ALONE, ALONE, ALONE, ALONE, ALONE, ALONE, Ok(())]);
    assert_eq!(fixture.count("SELECT count(*) FROM task_queue WHERE kind = 'action'").await, 7, "their tasks stay");
}

#[tokio::test]
async fn a_canvas_of_five_hundred_nodes_and_a_mebibyte_takes_part() {
    let fixture = Fixture::new().await;
    let made = Made::new(&fixture, "a").await;
    sqlx::query("UPDATE canvases SET node_count = 500, graph_bytes = 1024 * 1024 WHERE key = $1")
        .bind(made.canvas.key)
        .execute(&mut *fixture.conn().await)
        .await
        .expect("grows");
    assert_eq!(attempts(&fixture, &[&made]).await, [Ok(())]);
}

#[tokio::test]
async fn a_blob_that_was_removed_leaves_all_of_them_as_they_are() {
    let fixture = Fixture::new().await;
    let (one, two) = (Made::new(&fixture, "a").await, Made::new(&fixture, "b").await);
    sqlx::query("UPDATE blobs SET state = 'removing' WHERE key = $1")
        .bind(one.placement.blob_key)
        .execute(&mut *fixture.conn().await)
        .await
        .expect("removes");
    assert_eq!(complete(&fixture, &[&one, &two]).await, None);
    assert_eq!(fixture.history(two.id).await, ["queued", "running"]);
    assert_eq!(fixture.count("SELECT count(*) FROM task_queue WHERE kind = 'action'").await, 2);
    assert_eq!(attempts(&fixture, &[&two]).await, [Ok(())]);
}

#[tokio::test]
async fn only_tasks_that_were_enqueued_are_announced() {
    let fixture = Fixture::new().await;
    // A picture of this size needs one rendition, which another job has made already.
    let (first, second) = (Made::new(&fixture, "a").await, Made::new(&fixture, "b").await);
    let second = Made {
        placement: Placement {
            blob_key: first.placement.blob_key,
            sha256: first.placement.sha256,
            ..second.placement.clone()
        },
        ..second
    };
    let ready = ReadyTasks::new();
    let context = CompletionContext { ready: &ready, ..*CONTEXT };
    complete_with(&fixture, &[&first], &context).await.expect("completes");
    assert!(matches!(ready.take()[..], [(Queue::Image, _)]));
    complete_with(&fixture, &[&second], &context).await.expect("completes");
    assert!(ready.take().is_empty());
    let waiting = tasks::stats(&mut *fixture.conn().await, Queue::Image).await.expect("counts");
    assert_eq!((waiting.ready, waiting.leased), (1, 0));
}
