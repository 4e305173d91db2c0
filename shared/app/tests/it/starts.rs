//! Starts of jobs into a node.

use app::job::{
    AcceptedJob, Destination, Found, JobPlan, JobSettings, JobStart, PlannedJob, Reads, StartJob, Targets, Work,
};
use app::{Acceptance, Base, LockedCanvas, Terms};
use canvas::Footprint;
use db::accounts::Credential;
use db::canvases::{self, Change, NewCanvas};
use db::{PgConnection, jobs};
use domain::account::{Scopes, Surface, TokenKind};
use domain::asset::AssetKind;
use domain::canvas::{AccessRole, Actor};
use domain::graph::{GraphWrites, Node};
use domain::id::{CanvasHandle, CanvasId, JobId, NodeId};
use domain::idempotency::Fingerprint;
use domain::job::{ActionRequest, ActionStep, JobOperation, Record, Request};
use domain::webhook::WebhookInput;
use futures_util::future::BoxFuture;
use serde_json::Map;
use service::keys::KeyRing;

use crate::fixture::{Fixture, PUBLIC_URL, WINDOWS, account, image_node};

/// Maximum number of active jobs of an account.
const CAP: u32 = 4;

/// A resize into a node, which has to be there and free.
struct Resize {
    destination: Destination,
    credit_cost: i64,
}

impl Resize {
    fn into(target: &NodeId) -> Self {
        Self::into_each(std::slice::from_ref(target))
    }

    /// A resize into each of several nodes.
    fn into_each(targets: &[NodeId]) -> Self {
        let destination = Destination { targets: Targets::Nodes(targets.to_vec()), connect: false, fit: false };
        Self { destination, credit_cost: 0 }
    }
}

impl Work for Resize {
    fn destination(&self) -> &Destination {
        &self.destination
    }

    fn footprint(&self) -> Footprint {
        Footprint::default()
    }

    fn reads(&self) -> Reads<'_> {
        Reads { nodes: Vec::new(), images: Vec::new(), kind: AssetKind::Image }
    }

    fn plan<'a>(
        &'a self,
        _: &'a mut PgConnection,
        caller: &'a Credential,
        _: &'a LockedCanvas,
        found: Found,
    ) -> BoxFuture<'a, app::Result<JobPlan>> {
        Box::pin(async move {
            let existing: Vec<_> = found.targets.into_iter().flatten().collect();
            existing.first().ok_or_else(|| app::Error::unprocessable("targetNodeId", "is not a node"))?;
            let job = |target: &Node| {
                let step = ActionStep { slug: "resize".into(), version: "1.0.0".into(), params: Map::new() };
                let request = ActionRequest::new(vec![step], Vec::new(), target.id.clone()).expect("has a step");
                PlannedJob { request: Request::Action(request), estimated_seconds: 1, credit_cost: self.credit_cost }
            };
            Ok(JobPlan {
                operation: JobOperation::Action,
                jobs: existing.iter().map(job).collect(),
                targets: self.destination.prepare(caller, None, existing, Vec::new(), None)?,
                summary: "started resize".into(),
            })
        })
    }
}

/// Makes a canvas of `owner` at revision `r0` with an image node. Returns the canvas and the node.
async fn canvas_of(fixture: &Fixture, owner: &str, name: &str) -> (CanvasHandle, NodeId) {
    let mut conn = fixture.conn().await;
    let handle = CanvasHandle { owner: account(owner), id: CanvasId::from_stored(name.into()) };
    let actor = Actor { owner_uid: account(owner), surface: Surface::Api, label: "t".into() };
    let new = NewCanvas { handle: &handle, canvas_type: None, title: "C", revision: "r", actor: &actor };
    let canvas = canvases::create(&mut conn, &new).await.expect("creates").expect("is new");
    let node = image_node();
    let graph = GraphWrites { nodes: vec![&node], ..GraphWrites::default() };
    canvases::write(&mut conn, canvas.key, &Change { graph, ..Change::new("r0") }).await.expect("writes a node");
    (handle, node.id)
}

/// The request of the fixture's account with `key` for a resize into the node.
fn request(fixture: &Fixture, canvas: &CanvasHandle, node: &NodeId, key: &str) -> JobStart {
    JobStart {
        caller: Credential {
            token: fixture.token,
            authority: fixture.token,
            kind: TokenKind::Agent,
            is_narrow: false,
            label: "laptop".into(),
            scopes: Scopes::from_slice(&[]),
            surface: Surface::Cli,
            secret_hash: Vec::new(),
            previous_hash: None,
            valid: true,
            use_unrecorded: false,
            signed_in_at: service::clock::now().into(),
            expires_at: None,
            account: fixture.account.clone(),
            role: domain::account::Role::Member,
            email: "me@example.com".into(),
            display_name: "me".into(),
            credit_balance: 0,
            confirm_by: None,
        },
        ids: vec![JobId::generate()],
        canvas: canvas.clone(),
        base: Base { revision: "r0".into(), lenient: false },
        terms: Terms { key: Some(key.into()), max_credits: None },
        fingerprint: Fingerprint::from([1; 32]),
        webhook: None,
        traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into(),
        work: Box::new(Resize::into(node)),
    }
}

/// A request on a canvas of its own, whose name is also the key's.
async fn request_on(fixture: &Fixture, name: &str) -> JobStart {
    let (canvas, node) = canvas_of(fixture, "me", name).await;
    request(fixture, &canvas, &node, name)
}

fn ring() -> KeyRing {
    KeyRing::parse(&format!("k1:{}=", "A".repeat(43))).expect("a ring")
}

async fn start(fixture: &Fixture, start: &JobStart) -> app::Result<AcceptedJob> {
    let mut jobs = start_all(fixture, start).await?;
    assert_eq!(jobs.len(), 1, "a start of one job");
    Ok(jobs.remove(0))
}

async fn start_all(fixture: &Fixture, start: &JobStart) -> app::Result<Vec<AcceptedJob>> {
    let ring = ring();
    let settings =
        JobSettings { active_jobs: CAP, retention_tombstone: WINDOWS.tombstone, public_url: PUBLIC_URL, ring: &ring };
    app::run(fixture.database.pool(), &StartJob { start, settings }, drop).await
}

/// The record of a job that is started now.
async fn started(fixture: &Fixture, request: &JobStart) -> Record {
    match start(fixture, request).await.expect("starts") {
        AcceptedJob::Record(record, Acceptance::New) => *record,
        _ => panic!("is not new"),
    }
}

async fn refused(fixture: &Fixture, request: &JobStart) -> app::Error {
    start(fixture, request).await.err().expect("is refused")
}

#[tokio::test]
async fn a_start_is_made_once_with_its_revision_webhook_and_place_in_the_queue() {
    let fixture = Fixture::new().await;
    let mut requests =
        [request_on(&fixture, "b").await, request_on(&fixture, "a").await, request_on(&fixture, "d").await];
    requests[1].webhook =
        Some(WebhookInput { url: "https://receiver.example/".into(), secret: "0123456789abcdef".into() });
    let mut conn = fixture.conn().await;
    for request in &requests {
        let record = started(&fixture, request).await;
        assert_eq!(record, fixture.get(request.ids[0]).await);
        assert_eq!(record.webhook.is_some(), request.webhook.is_some());
        let canvas = canvases::find(&mut conn, &fixture.account, &request.canvas).await.expect("reads");
        let (canvas, _) = canvas.expect("is there");
        assert_eq!((canvas.sequence, Some(canvas.revision)), (3, record.canvas_revision));
        assert_eq!(record.canvas, Some(request.canvas.clone()));
        let replayed = start(&fixture, request).await.expect("is replayed");
        let AcceptedJob::Record(record, Acceptance::Replayed) = replayed else { panic!("is not replayed") };
        assert_eq!(record.id, request.ids[0]);
    }
    let places: Vec<i64> =
        sqlx::query_scalar("SELECT fair_seq - min(fair_seq) OVER () FROM task_queue ORDER BY fair_seq")
            .fetch_all(&mut *conn)
            .await
            .expect("reads");
    assert_eq!(places, [0, 1, 2], "the tasks of one account follow one another");
    let ahead = "SELECT count(*) FROM task_queue WHERE fair_seq > (SELECT last_value FROM task_turns)";
    assert_eq!(fixture.count(ahead).await, 0, "no place is above the sequence");
}

#[tokio::test]
async fn a_start_that_is_refused_leaves_no_trace() {
    let fixture = Fixture::new().await;
    let (mut stale, mut gone) = (request_on(&fixture, "stale").await, request_on(&fixture, "gone").await);
    stale.base.revision = "earlier".into();
    gone.work = Box::new(Resize::into(&NodeId::generate()));
    let (canvas, node) = canvas_of(&fixture, "me", "bound").await;
    let (binding, bound) = (request(&fixture, &canvas, &node, "first"), request(&fixture, &canvas, &node, "second"));
    let shared = async |name: &str, role| {
        let (canvas, node) = canvas_of(&fixture, "you", name).await;
        canvases::share(&mut *fixture.conn().await, &canvas, &fixture.account, role).await.expect("shares");
        request(&fixture, &canvas, &node, name)
    };
    let (viewer, stranger) = (shared("viewer", Some(AccessRole::Viewer)).await, shared("stranger", None).await);
    let (using, mut used) = (request_on(&fixture, "using").await, request_on(&fixture, "used").await);
    used.terms.key = Some("using".into());
    used.fingerprint = Fingerprint::from([2; 32]);
    let (canvas, node) = canvas_of(&fixture, "me", "paid").await;
    let mut paid = request(&fixture, &canvas, &node, "paid");
    paid.work = Box::new(Resize { credit_cost: 1, ..Resize::into(&node) });
    for request in [&binding, &using] {
        started(&fixture, request).await;
    }
    sqlx::query("UPDATE canvases SET revision = 'r0'").execute(&mut *fixture.conn().await).await.expect("goes back");
    for (request, expected) in [
        (&stale, "Stale"),
        (&gone, "Unprocessable"),
        (&bound, "Conflict"),
        (&viewer, "Forbidden"),
        (&stranger, "NotFound"),
        (&used, "Conflict"),
        (&paid, "PaymentRequired"),
    ] {
        let error = refused(&fixture, request).await;
        assert!(format!("{error:?}").starts_with(expected), "{error:?}");
    }
    assert_eq!(fixture.count("SELECT count(*) FROM jobs").await, 2);
    assert_eq!(fixture.count("SELECT count(*) FROM idempotency_keys").await, 2, "who is refused has taken no key");
}

#[tokio::test]
async fn an_account_that_comes_to_a_queue_begins_where_the_first_waits() {
    let fixture = Fixture::new().await;
    let mut starts = Vec::new();
    for name in ["a", "b", "d"] {
        starts.push(request_on(&fixture, name).await);
    }
    let (canvas, node) = canvas_of(&fixture, "you", "theirs").await;
    let mut other = request(&fixture, &canvas, &node, "their-key");
    other.caller.account = account("you");
    starts.push(other);
    for request in &starts {
        started(&fixture, request).await;
    }
    let places: Vec<(String, i64)> = sqlx::query_as(
        "SELECT fairness_key, fair_seq - min(fair_seq) OVER () FROM task_queue ORDER BY fairness_key, fair_seq",
    )
    .fetch_all(&mut *fixture.conn().await)
    .await
    .expect("reads");
    let places: Vec<_> = places.iter().map(|(key, place)| (key.as_str(), *place)).collect();
    assert_eq!(places, [("me", 0), ("me", 1), ("me", 2), ("you", 0)]);
}

#[tokio::test]
async fn an_account_starts_as_many_jobs_as_the_cap_allows() {
    let fixture = Fixture::new().await;
    for name in ["a", "b", "d", "e"] {
        started(&fixture, &request_on(&fixture, name).await).await;
    }
    let error = refused(&fixture, &request_on(&fixture, "f").await).await;
    assert!(matches!(error, app::Error::TooMuchWork(_)), "{error:?}");
}

#[tokio::test]
async fn an_editor_starts_on_a_canvas_that_is_shared() {
    let fixture = Fixture::new().await;
    let (canvas, node) = canvas_of(&fixture, "you", "theirs").await;
    let shared = canvases::share(&mut *fixture.conn().await, &canvas, &fixture.account, Some(AccessRole::Editor)).await;
    assert!(shared.expect("shares"));
    let record = started(&fixture, &request(&fixture, &canvas, &node, "a-key-of-mine")).await;
    assert_eq!(record.account, fixture.account);
}

/// A request for a resize into each of `count` nodes of a canvas of its own, whose name is also the key's.
async fn request_of_several(fixture: &Fixture, name: &str, count: usize) -> (JobStart, Vec<NodeId>) {
    let (canvas, node) = canvas_of(fixture, "me", name).await;
    let mut conn = fixture.conn().await;
    let (record, _) = canvases::find(&mut conn, &fixture.account, &canvas).await.expect("reads").expect("is there");
    let more: Vec<Node> = (1..count).map(|_| image_node()).collect();
    let graph = GraphWrites { nodes: more.iter().collect(), ..GraphWrites::default() };
    canvases::write(&mut conn, record.key, &Change { graph, ..Change::new("r0") }).await.expect("writes nodes");
    let nodes: Vec<NodeId> = std::iter::once(node.clone()).chain(more.into_iter().map(|node| node.id)).collect();
    let work = Box::new(Resize::into_each(&nodes));
    let ids = nodes.iter().map(|_| JobId::generate()).collect();
    (JobStart { work, ids, ..request(fixture, &canvas, &node, name) }, nodes)
}

fn records(jobs: Vec<AcceptedJob>, expected: Acceptance) -> Vec<Record> {
    let record = |job: AcceptedJob| match job {
        AcceptedJob::Record(record, acceptance) if acceptance == expected => *record,
        _ => panic!("is not {expected:?}"),
    };
    jobs.into_iter().map(record).collect()
}

#[tokio::test]
async fn several_jobs_start_at_one_revision_and_are_replayed_in_their_order() {
    let fixture = Fixture::new().await;
    let (request, nodes) = request_of_several(&fixture, "several", 3).await;
    let started = records(start_all(&fixture, &request).await.expect("starts"), Acceptance::New);
    assert_eq!(started.iter().map(|record| record.id).collect::<Vec<_>>(), request.ids);
    for (record, node) in started.iter().zip(&nodes) {
        assert_eq!(record.request.targets(), std::slice::from_ref(node));
        assert_eq!(record.canvas_revision, started[0].canvas_revision);
        assert_eq!(*record, fixture.get(record.id).await);
    }
    assert_eq!(fixture.count("SELECT count(DISTINCT active_job) FROM nodes").await, 3);
    let replayed = records(start_all(&fixture, &request).await.expect("is replayed"), Acceptance::Replayed);
    assert_eq!(replayed, started);
    // One record is removed.
    let last = jobs::last_form(&mut *fixture.conn().await, request.ids[1], PUBLIC_URL).await.expect("reads");
    let gone =
        sqlx::query("UPDATE idempotency_keys SET outcome = jsonb_set(outcome, '{snapshot}', $2) WHERE job_id = $1");
    gone.bind(request.ids[1].0).bind(last.clone()).execute(&mut *fixture.conn().await).await.expect("keeps the form");
    let gone = sqlx::query("DELETE FROM jobs WHERE id = $1").bind(request.ids[1].0);
    gone.execute(&mut *fixture.conn().await).await.expect("removes");
    let replayed = start_all(&fixture, &request).await.expect("is replayed");
    assert!(matches!(&replayed[1], AcceptedJob::Snapshot(form) if Some(form) == last.as_ref()));
    assert!(matches!(&replayed[2], AcceptedJob::Record(record, _) if record.id == request.ids[2]));
}

#[tokio::test]
async fn several_jobs_start_all_or_none() {
    let fixture = Fixture::new().await;
    let (mut request, nodes) = request_of_several(&fixture, "several", 3).await;
    let too_many = request_of_several(&fixture, "too-many", CAP as usize + 1).await.0;
    let error = start_all(&fixture, &too_many).await.err().expect("is refused");
    assert!(matches!(error, app::Error::TooMuchWork(_)), "{error:?}");
    let mut paid = Resize::into_each(&nodes);
    paid.credit_cost = 1;
    request.work = Box::new(paid);
    let error = start_all(&fixture, &request).await.err().expect("is refused");
    assert!(matches!(error, app::Error::PaymentRequired { .. }), "{error:?}");
    request.work = Box::new(Resize::into_each(&nodes));
    request.ids.pop();
    let error = start_all(&fixture, &request).await.err().expect("is refused");
    assert!(matches!(error, app::Error::Inconsistent(_)), "{error:?}");
    assert_eq!(fixture.count("SELECT count(*) FROM jobs").await, 0);
    assert_eq!(fixture.count("SELECT count(*) FROM idempotency_keys").await, 0);
    assert_eq!(fixture.count("SELECT count(*) FROM nodes WHERE active_job IS NOT NULL").await, 0);
}
