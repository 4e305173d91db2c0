//! Recipe runs: their steps and their end.

mod delegation;
mod unreadable;

use std::time::Duration;

use app::recipe::{
    ImageStep, RunCompletion, StepResult, begin_image, begin_text, cancel_output, complete, end_image, end_text,
};
use app::target::{self, Work};
use db::canvases;
use db::deliveries::{self, NewDelivery};
use db::ledger;
use db::recipe_runs::{self, NewRun};
use db::tasks::{self, ClaimRequest, NewTask};
use domain::graph::{Node, NodeType, Position};
use domain::id::{AccountUid, JobId, NodeId, RecipeId};
use domain::job::{ChosenModel, ImageRequest, JobOperation, JobStatus, Request};
use domain::message::{Queue, ReadyTasks, TaskKind};
use domain::metadata::{Provenance, ProvenanceKind};
use domain::model::ProviderKind;
use domain::recipe::run::{
    OutputStatus, Plan, RunFailure, RunFailureCode, RunId, RunInput, RunRecord, RunStatus, Step,
};
use domain::recipe::{InputKind, OutputKind, PortValue, Version};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::fixture::{CONTEXT, Fixture, asset, put};

/// The account's balance before any run.
const BALANCE: i64 = 100;
/// Price of a step.
const PRICE: i64 = 3;

/// An accepted run of a text, an image of it and another text, with webhook and reservation.
struct World {
    fixture: Fixture,
    run: RunId,
    lease: Uuid,
}

fn node(kind: NodeType) -> Node {
    Node {
        id: NodeId::generate(),
        short: None,
        kind,
        title: "output".into(),
        position: Position { x: 0.0, y: 0.0 },
        width: 320.0,
        height: 320.0,
        agent_owned: true,
        metadata: Default::default(),
        server: Default::default(),
        asset: None,
        active_job: None,
    }
}

fn model() -> ChosenModel {
    ChosenModel {
        key: "a-key-of-a-model".into(),
        id: "m".into(),
        name: "M".into(),
        provider: ProviderKind::Managed,
        connection: None,
        credit_cost: PRICE,
    }
}

fn step(key: &str, node: &Node, from: &str) -> Step {
    Step {
        key: key.into(),
        label: format!("The {key}"),
        kind: if node.kind == NodeType::Image { OutputKind::Image } else { OutputKind::Text },
        node: node.id.clone(),
        prompt: format!("{{{{{from}}}}}"),
        input_keys: vec![from.into()],
        model: model(),
        size: None,
        quality: None,
        estimated_seconds: 2,
    }
}

impl World {
    async fn new(fixture: Fixture) -> Self {
        let mut tx = fixture.database.pool().begin().await.expect("begins");
        ledger::grant(&mut tx, &fixture.account, BALANCE).await.expect("grants").expect("an account");
        let mut nodes = [node(NodeType::Text), node(NodeType::Image), node(NodeType::Text)];
        let brief = RunInput {
            key: "brief".into(),
            label: "Brief".into(),
            kind: InputKind::Text,
            node: fixture.node.clone(),
            source: None,
            held: PortValue::Text("b".into()),
        };
        let steps =
            vec![step("copy", &nodes[0], "brief"), step("hero", &nodes[1], "copy"), step("note", &nodes[2], "brief")];
        let plan = Plan { inputs: vec![brief], steps };
        let (id, recipe) = (RunId::generate(), RecipeId::from_stored("r".into()));
        let new = NewRun {
            id,
            account: &fixture.account,
            token_id: fixture.token,
            recipe: (&recipe, Version(1)),
            canvas: (fixture.canvas.key, &fixture.canvas.handle),
            instance: &fixture.node,
            plan: &plan,
        };
        recipe_runs::insert(&mut tx, &new).await.expect("inserts");
        target::bind(&mut nodes, Work::Run(id), false).expect("are free");
        put(&mut tx, fixture.canvas.key, &nodes).await;
        sqlx::query("UPDATE accounts SET credit_balance = credit_balance - $1 WHERE uid = $2")
            .bind(plan.credit_cost())
            .bind(fixture.account.as_str())
            .execute(&mut *tx)
            .await
            .expect("reserves");
        sqlx::query("INSERT INTO ledger (account_uid, amount, reason, job_id) VALUES ($1, -$2::bigint, 'reserve', $3)")
            .bind(fixture.account.as_str())
            .bind(plan.credit_cost())
            .bind(id.0)
            .execute(&mut *tx)
            .await
            .expect("notes the reservation");
        let delivery = NewDelivery {
            id: Uuid::now_v7(),
            account: &fixture.account,
            job_id: JobId(id.0),
            url: "https://receiver.example/",
            sealed_secret: "s",
        };
        deliveries::insert(&mut tx, &delivery).await.expect("inserts a delivery");
        let fairness_key = fixture.account.as_str();
        let task = NewTask {
            id: id.0,
            queue: Queue::Recipe,
            kind: TaskKind::Recipe,
            fairness_key,
            due_in: None,
            traceparent: None,
        };
        tasks::enqueue(&mut tx, &task).await.expect("enqueues");
        tx.commit().await.expect("commits");
        let mut world = Self { fixture, run: id, lease: Uuid::nil() };
        world.lease = world.claim(Queue::Recipe).await;
        world
    }

    async fn claim(&self, queue: Queue) -> Uuid {
        let wanted = ClaimRequest {
            queue,
            limit: 1,
            quarantined: false,
            caps: None,
            lease: Duration::from_secs(30),
            owner: "test",
        };
        tasks::claim(&mut *self.fixture.conn().await, &wanted)
            .await
            .expect("claims")
            .first()
            .expect("a task")
            .lease_token
    }

    async fn record(&self) -> RunRecord {
        recipe_runs::get(&mut *self.fixture.conn().await, self.run, &self.fixture.account)
            .await
            .expect("reads")
            .expect("is there")
    }

    async fn begun(&self) -> (RunRecord, bool) {
        recipe_runs::begin(&mut *self.fixture.conn().await, self.run, self.lease)
            .await
            .expect("begins")
            .expect("is ours")
    }

    /// Carries out a text step.
    async fn text(&self, at: usize, made: std::result::Result<&str, RunFailure>) -> StepResult {
        let begun = begin_text(&mut *self.fixture.conn().await, self.run, self.lease, at).await.expect("answers");
        if begun != StepResult::Done {
            return begun;
        }
        let made = made.map(|text| (text.to_owned(), Provenance::new(ProvenanceKind::Recipe)));
        self.in_transaction(async |conn| end_text(conn, self.run, self.lease, at, &made).await.expect("answers")).await
    }

    /// Begins the image step. Returns its job.
    async fn image(&self) -> (StepResult, JobId) {
        let record = self.record().await;
        let job = JobId::generate();
        let request = Request::Image(ImageRequest {
            model: model(),
            prompt: record.plan.prompt(1, &record.outputs, 8000),
            caption: None,
            size: None,
            quality: None,
            references: vec![],
            mask: None,
            elements: vec![],
            targets: vec![record.plan.steps[1].node.clone()],
        });
        let step = ImageStep {
            job,
            operation: JobOperation::Generate,
            request: &request,
            estimated_seconds: 2,
            credit_cost: PRICE,
            traceparent: None,
        };
        let stepped = self
            .in_transaction(async |conn| begin_image(conn, self.run, self.lease, 1, &step).await.expect("answers"))
            .await;
        (stepped, job)
    }

    async fn in_transaction<T>(&self, work: impl AsyncFnOnce(&mut PgConnection) -> T) -> T {
        let mut tx = self.fixture.database.pool().begin().await.expect("begins");
        let done = work(&mut tx).await;
        tx.commit().await.expect("commits");
        done
    }

    async fn completed(&self, completion: RunCompletion) -> Option<RunRecord> {
        self.in_transaction(async |conn| {
            complete(conn, self.run, self.lease, &completion, CONTEXT).await.expect("completes")
        })
        .await
    }

    async fn canceled(&self) -> (RunRecord, bool) {
        self.in_transaction(async |conn| {
            app::recipe::cancel(conn, self.run, &self.fixture.account, CONTEXT)
                .await
                .expect("cancels")
                .expect("is there")
        })
        .await
    }

    async fn output_node(&self, at: usize) -> Node {
        let id = self.record().await.plan.steps[at].node.clone();
        let node = canvases::node(&mut *self.fixture.conn().await, self.fixture.canvas.key, &id).await;
        node.expect("reads").expect("is there")
    }

    /// The balance, after checking that it is the ledger's sum.
    async fn balance(&self) -> i64 {
        let balance = self.fixture.count("SELECT credit_balance FROM accounts WHERE uid = 'me'").await;
        assert_eq!(
            self.fixture.count("SELECT sum(amount)::bigint FROM ledger WHERE account_uid = 'me'").await,
            balance
        );
        balance
    }

    async fn event(&self) -> String {
        sqlx::query_scalar("SELECT event_type FROM webhook_deliveries WHERE body IS NOT NULL")
            .fetch_one(&mut *self.fixture.conn().await)
            .await
            .expect("an event")
    }

    async fn statuses(&self) -> Vec<OutputStatus> {
        self.record().await.outputs.iter().map(|output| output.status).collect()
    }
}

async fn world() -> World {
    World::new(Fixture::new().await).await
}

fn broken(message: &str) -> RunFailure {
    RunFailure { code: RunFailureCode::StepFailed, message: message.into(), retryable: true, output_key: None }
}

use OutputStatus::{Canceled, Failed, Pending, Running, Succeeded};

#[tokio::test]
async fn an_accepted_run_waits_with_all_its_outputs_pending_and_its_credit_reserved() {
    let world = world().await;
    let run = world.record().await;
    assert_eq!((run.status, run.version, run.credit_cost), (RunStatus::Queued, 1, 3 * PRICE));
    assert_eq!(world.statuses().await, [Pending; 3]);
    for at in 0..3 {
        assert_eq!(world.output_node(at).await.active_job, Some(world.run.0));
    }
    let other =
        recipe_runs::get(&mut *world.fixture.conn().await, world.run, &AccountUid::from_stored("you".into())).await;
    assert_eq!(other.expect("reads"), None);
}

#[tokio::test]
async fn what_a_run_costs_is_read_without_looking_at_the_credit_of_others() {
    let world = world().await;
    world.begun().await;
    world.text(0, Ok("copy")).await;
    world.image().await;
    let mut tx = world.fixture.database.pool().begin().await.expect("begins");
    for statement in [
        "INSERT INTO ledger (account_uid, amount, reason, job_id)
         SELECT 'you', -1, 'reserve', gen_random_uuid() FROM generate_series(1, 20000)",
        "ANALYZE ledger",
    ] {
        sqlx::query(statement).execute(&mut *tx).await.expect("fills the ledger");
    }
    let before = ledger_rows_read(&mut tx).await;
    let run = recipe_runs::get(&mut tx, world.run, &world.fixture.account).await.expect("reads").expect("is there");
    let read = ledger_rows_read(&mut tx).await - before;
    assert_eq!(run.credit_cost, 3 * PRICE, "of the run and of the job to which its part was transferred");
    assert!((1..100).contains(&read), "{read} rows were read");
}

/// Number of ledger rows that the transaction has read so far.
async fn ledger_rows_read(conn: &mut PgConnection) -> i64 {
    let read = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'ledger'";
    sqlx::query_scalar(read).fetch_one(conn).await.expect("counts")
}

#[tokio::test]
async fn a_text_is_written_to_its_node_and_charged() {
    let world = world().await;
    let (run, is_news) = world.begun().await;
    assert!(run.status == RunStatus::Running && is_news);
    assert_eq!(world.text(0, Ok("The copy")).await, StepResult::Done);
    assert!(!world.begun().await.1, "it runs already");
    let run = world.record().await;
    assert_eq!((run.outputs[0].status, run.outputs[0].value.as_deref()), (Succeeded, Some("The copy")));
    let node = world.output_node(0).await;
    assert_eq!((node.content(), node.active_job), (Some("The copy"), None));
    assert_eq!(node.job().map(|job| job.status), Some(JobStatus::Succeeded));
    assert_eq!(world.text(0, Ok("again")).await, StepResult::Stale, "an output ends once");
    assert_eq!(run.credit_cost, 3 * PRICE, "what is charged and what is reserved");
}

#[tokio::test]
async fn an_image_step_is_a_job_that_takes_its_share_along() {
    let world = world().await;
    world.begun().await;
    world.text(0, Ok("copy")).await;
    let (stepped, job) = world.image().await;
    assert_eq!((stepped, world.statuses().await), (StepResult::Done, vec![Succeeded, Running, Pending]));
    let child = world.fixture.get(job).await;
    assert_eq!((child.status, child.credit_cost), (JobStatus::Queued, PRICE));
    assert_eq!(world.output_node(1).await.active_job, Some(job.0));
    assert_eq!((world.balance().await, world.record().await.credit_cost), (BALANCE - 3 * PRICE, 3 * PRICE));
    assert_eq!(world.image().await.0, StepResult::Stale, "it is begun once");
    let active = jobs_active(&world).await;
    assert_eq!(active, 1, "a run counts as one, its jobs do not count");
}

async fn jobs_active(world: &World) -> i64 {
    db::jobs::count_active(&mut *world.fixture.conn().await, &world.fixture.account, 10).await.expect("counts")
}

#[tokio::test]
async fn a_failed_step_fails_the_run_at_the_end_and_its_dependants_are_canceled() {
    let world = world().await;
    world.begun().await;
    assert_eq!(world.text(0, Err(broken("no words"))).await, StepResult::Done);
    let canceled =
        world.in_transaction(async |conn| cancel_output(conn, world.run, world.lease, 1).await.expect("answers")).await;
    assert_eq!(canceled, StepResult::Done);
    assert_eq!(world.text(2, Ok("note")).await, StepResult::Done);
    let run = world.completed(RunCompletion::Finished).await.expect("is ours");
    assert_eq!(world.statuses().await, [Failed, Canceled, Succeeded]);
    let failure = run.failure.expect("a failure");
    assert_eq!((failure.code, failure.output_key.as_deref()), (RunFailureCode::StepFailed, Some("copy")));
    assert_eq!((failure.message.as_str(), failure.retryable), ("no words", true));
    assert_eq!((run.status, run.credit_cost), (RunStatus::Failed, PRICE), "one text was charged");
    assert_eq!(world.balance().await, BALANCE - PRICE);
    assert_eq!(world.event().await, "recipe_run.failed");
    assert_eq!(world.output_node(1).await.active_job, None);
    assert_eq!(world.fixture.count("SELECT count(*) FROM task_queue WHERE kind = 'recipe'").await, 0);
    assert_eq!(jobs_active(&world).await, 0);
}

#[tokio::test]
async fn a_run_with_every_output_succeeds_and_leaves_a_review() {
    let world = world().await;
    world.begun().await;
    world.text(0, Ok("copy")).await;
    let (_, job) = world.image().await;
    let mut child = world.fixture.get(job).await;
    child.status = JobStatus::Succeeded;
    child.outcome.images = vec![domain::job::Output {
        asset: asset("made"),
        node: child.request.targets()[0].clone(),
        media_type: "image/png".into(),
        width: 1,
        height: 1,
        bytes: 1,
        ai_generated: None,
        alt: None,
        masked: None,
    }];
    let ended = world
        .in_transaction(async |conn| end_image(conn, world.run, world.lease, 1, &child, None).await.expect("answers"))
        .await;
    assert_eq!(ended, StepResult::Done);
    world.text(2, Ok("note")).await;
    let run = world.completed(RunCompletion::Finished).await.expect("is ours");
    assert_eq!((run.status, run.failure), (RunStatus::Succeeded, None));
    assert!(run.completed_at.is_some() && run.completion_review.is_some());
    assert_eq!(run.outputs[1].asset, Some(asset("made")));
    assert_eq!(world.event().await, "recipe_run.succeeded");
    assert_eq!(world.completed(RunCompletion::Finished).await, None, "once");
}

#[tokio::test]
async fn a_canceled_run_is_over_at_once_and_gives_back_what_was_not_used() {
    let world = world().await;
    world.begun().await;
    world.text(0, Ok("copy")).await;
    let (_, job) = world.image().await;
    let (run, stopped) = world.canceled().await;
    assert!(stopped);
    assert_eq!(run.status, RunStatus::Canceled);
    assert_eq!(run.failure.map(|failure| failure.code), Some(RunFailureCode::RunCanceled));
    assert_eq!(world.statuses().await, [Succeeded, Canceled, Canceled]);
    assert_eq!(world.fixture.get(job).await.status, JobStatus::Canceled, "no worker had claimed it");
    assert_eq!(world.output_node(2).await.active_job, None);
    assert_eq!(world.event().await, "recipe_run.canceled");
    // A worker that holds the lease finds that the run has ended.
    assert_eq!(world.text(2, Ok("late")).await, StepResult::Stale);
    assert_eq!(world.completed(RunCompletion::Finished).await, None);
    let (again, stopped) = world.canceled().await;
    assert!(!stopped && again == world.record().await, "unchanged");
}

#[tokio::test]
async fn a_run_that_nobody_has_taken_is_canceled_with_its_task() {
    let world = world().await;
    sqlx::query("UPDATE task_queue SET state = 'parked', lease_token = NULL, lease_until = NULL WHERE id = $1")
        .bind(world.run.0)
        .execute(&mut *world.fixture.conn().await)
        .await
        .expect("hands back");
    let (run, _) = world.canceled().await;
    assert_eq!((run.status, run.credit_cost, world.balance().await), (RunStatus::Canceled, 0, BALANCE));
    assert_eq!(world.fixture.count("SELECT count(*) FROM task_queue WHERE kind = 'recipe'").await, 0);
}

#[tokio::test]
async fn a_worker_that_lost_its_lease_changes_nothing() {
    let mut world = world().await;
    world.begun().await;
    let before = world.record().await;
    world.lease = Uuid::new_v4();
    assert_eq!(
        recipe_runs::begin(&mut *world.fixture.conn().await, world.run, world.lease).await.expect("answers"),
        None
    );
    assert_eq!(world.text(0, Ok("late")).await, StepResult::Stale);
    assert_eq!(world.image().await.0, StepResult::Stale);
    assert_eq!(world.completed(RunCompletion::Finished).await, None);
    assert_eq!(world.record().await, before);
}

#[tokio::test]
async fn the_end_of_an_images_job_wakes_the_run_that_waits_for_it() {
    let world = world().await;
    world.begun().await;
    world.text(0, Ok("copy")).await;
    let (_, job) = world.image().await;
    let hour = Duration::from_secs(3600);
    let due_in = tasks::reschedule(&mut *world.fixture.conn().await, world.run.0, world.lease, hour).await;
    assert_eq!(due_in.expect("reschedules"), Some(hour));
    let ready_tasks = ReadyTasks::new();
    let context = app::job::CompletionContext { ready: &ready_tasks, ..*CONTEXT };
    let ready =
        async || world.fixture.count("SELECT count(*) FROM task_queue WHERE kind = 'recipe' AND state = 'ready'").await;
    assert_eq!(ready().await, 0);
    world
        .in_transaction(async |conn| {
            app::job::cancel(conn, job, &world.fixture.account, &context).await.expect("cancels")
        })
        .await;
    assert_eq!(world.fixture.get(job).await.status, JobStatus::Canceled);
    assert_eq!(ready().await, 1);
    assert_eq!(ready_tasks.take(), [(Queue::Recipe, world.run.0)]);
}
