//! Jobs that are started in one transaction.

use std::collections::HashMap;

use app::job::{Destination, Found, JobPlan, JobSettings, JobStart, Reads, StartJob, Targets, Work, start_together};
use app::{Acceptance, Base, LockedCanvas, Terms};
use canvas::Footprint;
use canvas::placement::Location;
use canvas::targets::Place;
use db::PgConnection;
use db::accounts::Credential;
use db::canvases::{self, Change, GraphWrites, NewCanvas};
use db::jobs;
use domain::account::{Scopes, Surface, TokenKind};
use domain::canvas::{AccessRole, Actor, Changes};
use domain::id::{AccountUid, CanvasHandle, CanvasId, JobId, NodeId};
use domain::idempotency::Fingerprint;
use domain::job::{ActionRequest, JobOperation, Record, Request};
use domain::webhook::WebhookInput;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use service::keys::KeyRing;

use crate::fixture::{Fixture, PUBLIC_URL, WINDOWS, account, image_node};

/// Maximum number of active jobs of an account.
const CAP: u32 = 4;

/// A resize into a node, which has to be there and free.
struct Resize {
    destination: Destination,
    is_given_all: bool,
    credit_cost: i64,
}

impl Resize {
    fn into(target: &NodeId) -> Self {
        let destination = Destination { targets: Targets::Nodes(vec![target.clone()]), connect: false };
        Self { destination, is_given_all: true, credit_cost: 0 }
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
        Reads { nodes: Vec::new(), pictures: Vec::new() }
    }

    fn is_given_all(&self) -> bool {
        self.is_given_all
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
            let target = existing.first().ok_or_else(|| app::Error::unprocessable("targetNodeId", "is not a node"))?;
            let request = Request::Action(ActionRequest {
                slug: "resize".into(),
                version: "1.0.0".into(),
                params: Map::new(),
                inputs: Vec::new(),
                target: target.id.clone(),
            });
            Ok(JobPlan {
                operation: JobOperation::Action,
                request,
                targets: self.destination.prepare(caller, None, existing, None, &[])?,
                estimated_seconds: 1,
                credit_cost: self.credit_cost,
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
    let writes = GraphWrites { nodes: vec![&node], ..GraphWrites::default() };
    canvases::write_graph(&mut conn, canvas.key, &writes).await.expect("writes a node");
    let changes = Changes { changed_node_ids: vec![node.id.clone()], ..Changes::default() };
    canvases::commit_change(&mut conn, canvas.key, &Change::of("r0", &changes)).await.expect("records the change");
    (handle, node.id)
}

/// The request of the fixture's account with `key` for a resize into the node.
fn request(fixture: &Fixture, canvas: &CanvasHandle, node: &NodeId, key: &str) -> JobStart {
    JobStart {
        caller: Credential {
            token: fixture.token,
            kind: TokenKind::Agent,
            is_narrow: false,
            label: "laptop".into(),
            scopes: Scopes::of(&[]),
            surface: Surface::Cli,
            secret_hash: Vec::new(),
            valid: true,
            use_unrecorded: false,
            expires_at: None,
            account: fixture.account.clone(),
            email: "me@example.com".into(),
            display_name: "me".into(),
            credit_balance: 0,
        },
        id: JobId::generate(),
        canvas: canvas.clone(),
        base: Base { revision: "r0".into(), lenient: false },
        terms: Terms { key: Some(key.into()), max_credits: None },
        fingerprint: Fingerprint::from([1; 32]),
        webhook: None,
        traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into(),
        work: Box::new(Resize::into(node)),
    }
}

fn webhook() -> WebhookInput {
    WebhookInput { url: "https://receiver.example/".into(), secret: "0123456789abcdef".into() }
}

/// A request on a canvas of its own, whose name is also the key's.
async fn request_on(fixture: &Fixture, name: &str) -> JobStart {
    let (canvas, node) = canvas_of(fixture, "me", name).await;
    request(fixture, &canvas, &node, name)
}

/// Starts what can be started together.
async fn together(fixture: &Fixture, starts: &[&JobStart]) -> HashMap<JobId, Record> {
    let mut tx = fixture.database.pool().begin().await.expect("begins");
    let started = start_together(&mut tx, starts, CAP, &ring()).await.expect("starts");
    match started.is_empty() {
        true => tx.rollback().await.expect("rolls back"),
        false => tx.commit().await.expect("commits"),
    }
    started
}

/// Whether each was started together with the others.
async fn are_started(fixture: &Fixture, starts: &[&JobStart]) -> Vec<bool> {
    let started = together(fixture, starts).await;
    starts.iter().map(|start| started.contains_key(&start.id)).collect()
}

fn ring() -> KeyRing {
    KeyRing::parse(&format!("k1:{}=", "A".repeat(43))).expect("a ring")
}

/// Starts a job by itself.
async fn alone(fixture: &Fixture, start: &JobStart) -> app::Result<app::job::AcceptedJob> {
    let ring = ring();
    let settings =
        JobSettings { active_jobs: CAP, retention_tombstone: WINDOWS.tombstone, public_url: PUBLIC_URL, ring: &ring };
    app::run(fixture.database.pool(), &StartJob { start, settings }, drop).await
}

/// Every row that a start writes, without what differs between two equal runs.
async fn state(fixture: &Fixture, start: &JobStart, node: &NodeId) -> String {
    let state: Value = sqlx::query_scalar(
        "SELECT jsonb_build_object(
             'job', (SELECT to_jsonb(j) - '{created_at,queued_at,updated_at,token_id,canvas_key}'::text[] FROM jobs j),
             'history', (SELECT jsonb_agg(to_jsonb(h) - '{at}'::text[]) FROM job_history h),
             'nodes', (SELECT jsonb_agg(to_jsonb(n) - '{canvas_key,ordinal}'::text[]) FROM nodes n WHERE active_job IS NOT NULL),
             'canvas', (SELECT to_jsonb(c) - '{key,created_at,updated_at}'::text[] FROM canvases c WHERE id = 'a'),
             'changes', (SELECT jsonb_agg(to_jsonb(c) - '{canvas_key,at,activity}'::text[]
                                          || jsonb_build_object('activity', activity - 'id') ORDER BY sequence)
                         FROM canvas_changes c WHERE canvas_key = (SELECT key FROM canvases WHERE id = 'a')),
             'tasks', (SELECT jsonb_agg(to_jsonb(t) - '{due_at,created_at}'::text[]) FROM task_queue t),
             'webhooks', (SELECT jsonb_agg(to_jsonb(d) - '{id,sealed_secret,created_at}'::text[]) FROM webhook_deliveries d),
             'keys', (SELECT jsonb_agg(to_jsonb(k) - '{created_at}'::text[]) FROM idempotency_keys k)
         )",
    )
    .fetch_one(&mut *fixture.conn().await)
    .await
    .expect("reads");
    let revision = fixture.get(start.id).await.canvas_revision.expect("has one");
    let volatile = [start.id.0.to_string(), node.to_string(), revision];
    volatile
        .iter()
        .enumerate()
        .fold(state.to_string(), |text, (index, value)| text.replace(value, &format!("<{index}>")))
}

#[tokio::test]
async fn a_job_that_is_started_together_with_others_writes_what_it_writes_by_itself() {
    let mut states = Vec::new();
    for (is_together, has_webhook) in [(false, false), (true, false), (false, true), (true, true)] {
        let fixture = Fixture::new().await;
        let (canvas, node) = canvas_of(&fixture, "me", "a").await;
        let mut start = request(&fixture, &canvas, &node, "key-of-a");
        start.webhook = has_webhook.then(webhook);
        let record = if is_together {
            together(&fixture, &[&start]).await.remove(&start.id).expect("is started")
        } else {
            match alone(&fixture, &start).await.expect("starts") {
                app::job::AcceptedJob::Record(record, Acceptance::New) => *record,
                _ => panic!("is not new"),
            }
        };
        assert_eq!(record, fixture.get(start.id).await);
        assert_eq!(record.webhook.is_some(), has_webhook);
        states.push(state(&fixture, &start, &node).await);
    }
    assert_eq!((&states[0], &states[2]), (&states[1], &states[3]));
    assert_ne!(states[0], states[2]);
}

#[tokio::test]
async fn each_of_several_gets_its_own_revision_key_and_place_in_the_queue() {
    let fixture = Fixture::new().await;
    let [one, two, three] =
        [request_on(&fixture, "b").await, request_on(&fixture, "a").await, request_on(&fixture, "d").await];
    let all = [&one, &two, &three];
    let started = together(&fixture, &all).await;
    let mut conn = fixture.conn().await;
    for start in all {
        let canvas = canvases::find(&mut conn, &fixture.account, &start.canvas).await.expect("reads");
        let (canvas, _) = canvas.expect("is there");
        assert_eq!(Some(canvas.revision), started[&start.id].canvas_revision);
        assert_eq!((canvas.sequence, &started[&start.id].canvas), (3, &Some(start.canvas.clone())));
        let replayed = alone(&fixture, start).await.expect("is replayed");
        let app::job::AcceptedJob::Record(record, Acceptance::Replayed) = replayed else { panic!("is not replayed") };
        assert_eq!(record.id, start.id);
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
async fn a_start_that_is_refused_or_costs_credit_is_left_without_a_trace_and_keeps_no_other() {
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
    let plain = request_on(&fixture, "plain").await;
    assert_eq!(are_started(&fixture, &[&binding, &using]).await, [true, true]);
    sqlx::query("UPDATE canvases SET revision = 'r0'").execute(&mut *fixture.conn().await).await.expect("goes back");

    let left = [
        (&stale, "Stale"),
        (&gone, "Unprocessable"),
        (&bound, "Conflict"),
        (&viewer, "Forbidden"),
        (&stranger, "NotFound"),
        (&used, "Conflict"),
        (&paid, "PaymentRequired"),
    ];
    let mut all: Vec<&JobStart> = left.iter().map(|(start, _)| *start).collect();
    all.push(&plain);
    let started = together(&fixture, &all).await;
    assert_eq!(started.keys().collect::<Vec<_>>(), [&plain.id]);
    assert_eq!(fixture.count("SELECT count(*) FROM jobs").await, 3);
    assert_eq!(fixture.count("SELECT count(*) FROM idempotency_keys").await, 3, "who is left has taken no key");
    for (start, expected) in left {
        let error = alone(&fixture, start).await.err().expect("is refused");
        assert!(format!("{error:?}").starts_with(expected), "{error:?}");
    }
}

#[tokio::test]
async fn accounts_that_start_together_in_an_empty_queue_begin_at_one_place() {
    let fixture = Fixture::new().await;
    let mut starts = Vec::new();
    for name in ["a", "b", "d"] {
        starts.push(request_on(&fixture, name).await);
    }
    let (canvas, node) = canvas_of(&fixture, "you", "theirs").await;
    let mut other = request(&fixture, &canvas, &node, "their-key");
    other.caller.account = account("you");
    starts.push(other);
    let all: Vec<&JobStart> = starts.iter().collect();
    assert_eq!(are_started(&fixture, &all).await, [true; 4]);
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
async fn the_cap_on_active_jobs_counts_those_that_start_together() {
    let fixture = Fixture::new().await;
    let mut starts = Vec::new();
    for name in ["a", "b", "d", "e", "f"] {
        starts.push(request_on(&fixture, name).await);
    }
    assert_eq!(are_started(&fixture, &[&starts[0]]).await, [true]);
    let others: Vec<&JobStart> = starts[1..].iter().collect();
    assert_eq!(are_started(&fixture, &others).await, [true, true, true, false]);
    let error = alone(&fixture, &starts[4]).await.err().expect("is refused");
    assert!(matches!(error, app::Error::TooMuchWork(_)), "{error:?}");
}

#[tokio::test]
async fn of_two_starts_on_one_canvas_or_with_one_key_the_first_is_made() {
    let fixture = Fixture::new().await;
    let one = request_on(&fixture, "a").await;
    let node = image_node();
    let key = fixture.count("SELECT key FROM canvases WHERE id = 'a'").await;
    let writes = GraphWrites { nodes: vec![&node], ..GraphWrites::default() };
    canvases::write_graph(&mut *fixture.conn().await, key, &writes).await.expect("writes a node");
    let same_canvas = request(&fixture, &one.canvas, &node.id, "other-key");
    let (canvas, node) = canvas_of(&fixture, "me", "b").await;
    let same_key = request(&fixture, &canvas, &node, "a");
    assert_eq!(are_started(&fixture, &[&one, &same_canvas, &same_key]).await, [true, false, false]);
    assert_eq!(fixture.count("SELECT count(*) FROM jobs").await, 1);
    assert_eq!(fixture.count("SELECT count(*) FROM nodes WHERE active_job IS NOT NULL").await, 1);
}

#[tokio::test]
async fn an_account_or_canvas_that_another_transaction_has_locked_is_not_waited_for() {
    let fixture = Fixture::new().await;
    let (mine, other) = (request_on(&fixture, "a").await, request_on(&fixture, "b").await);
    let mut tx = fixture.database.pool().begin().await.expect("begins");
    canvases::lock(&mut tx, &fixture.account, &mine.canvas).await.expect("locks").expect("is there");
    assert_eq!(are_started(&fixture, &[&mine, &other]).await, [false, true]);
    tx.rollback().await.expect("ends");
    let later = request_on(&fixture, "d").await;
    let mut tx = fixture.database.pool().begin().await.expect("begins");
    sqlx::query("SELECT FROM accounts WHERE uid = 'me' FOR NO KEY UPDATE").execute(&mut *tx).await.expect("locks");
    assert_eq!(are_started(&fixture, &[&later]).await, [false]);
    tx.rollback().await.expect("ends");
    assert_eq!(are_started(&fixture, &[&mine, &later]).await, [true, true]);
}

#[tokio::test]
async fn an_editor_starts_on_a_canvas_that_is_shared() {
    let fixture = Fixture::new().await;
    let (canvas, node) = canvas_of(&fixture, "you", "theirs").await;
    let shared = canvases::share(&mut *fixture.conn().await, &canvas, &fixture.account, Some(AccessRole::Editor)).await;
    assert!(shared.expect("shares"));
    let start = request(&fixture, &canvas, &node, "a-key-of-mine");
    assert_eq!(are_started(&fixture, &[&start]).await, [true]);
    let owner: AccountUid = jobs::get(&mut *fixture.conn().await, start.id, &fixture.account, WINDOWS.tombstone)
        .await
        .expect("reads")
        .expect("is there")
        .account;
    assert_eq!(owner, fixture.account);
}

#[tokio::test]
async fn only_requests_of_the_common_kind_take_part() {
    let fixture = Fixture::new().await;
    let common = || request(&fixture, &fixture.canvas.handle, &fixture.node, "a-key");
    assert!(common().is_common());
    let mut capped = common();
    capped.terms.max_credits = Some(0);
    assert!(capped.is_common());
    let mut with_webhook = common();
    with_webhook.webhook = Some(webhook());
    assert!(with_webhook.is_common());
    let mut dry = common();
    dry.terms.key = None;
    let reading = |change: fn(&mut Resize)| {
        let (mut start, mut work) = (common(), Resize::into(&fixture.node));
        change(&mut work);
        start.work = Box::new(work);
        start
    };
    let connecting = reading(|work| work.destination.connect = true);
    let adding = reading(|work| {
        let place = Place { location: Location::default(), at: None, title: None, count: 1 };
        work.destination.targets = Targets::Place(place);
    });
    let asking = reading(|work| work.is_given_all = false);
    for (name, start) in
        [("a dry run", dry), ("a connection", connecting), ("a new target", adding), ("a plan that reads", asking)]
    {
        assert!(!start.is_common(), "{name}");
    }
}
