//! The texts of Recipe runs, by the embedded runtime and by providers: what is made, what fails, and that no provider is called
//! twice for one text (docs/reliability.md#provider-submits).

use std::time::Duration;

use db::recipe_runs::{self, NewRun};
use db::tasks::{NewTask, QueueStats};
use domain::graph::{Node, NodeType};
use domain::id::{JobId, NodeId, RecipeId};
use domain::job::{ChosenModel, JobOperation, JobStatus};
use domain::message::{Queue, ReadyTasks, TaskKind};
use domain::recipe::run::{OutputStatus, Plan, RunFailureCode, RunId, RunInput, RunRecord, RunStatus, Step};
use domain::recipe::{InputKind, OutputKind, PortValue, Version};
use futures_util::StreamExt;
use image_worker::jobs::recipe::Recipes;
use taskqueue::RunnerOptions;
use testkit::providers::{FailureMode, Vendor, written};
use testkit::wait_for;

use crate::generation::fixture::GenerationFixture;
use crate::harness::{DEADLINE, Running, WINDOWS, image_node, put};

use OutputStatus::{Canceled, Failed, Running as UnderWay, Succeeded};

/// Vendors whose protocols support texts.
const WRITERS: [Vendor; 3] = [Vendor::OpenAi, Vendor::Google, Vendor::Compatible];
/// A latency longer than any test.
const AGES: Duration = Duration::from_secs(600);
const BRIEF: &str = "a red kite";
const PROMPT: &str = "Write of a red kite";

fn text_node() -> Node {
    Node { kind: NodeType::Text, ..image_node() }
}

/// Starts a worker.
fn work(fixture: &GenerationFixture) -> Running {
    fixture.harness.run(Recipes(fixture.generator()), RunnerOptions::new(Queue::Recipe, 4))
}

/// Accepts a run that makes a text of `brief`, a text of that text, and another text of `brief`.
async fn start(fixture: &GenerationFixture, brief: &str) -> RunId {
    start_from(fixture, PortValue::Text(brief.into())).await
}

/// Like [`start`], with a brief that may be an image.
async fn start_from(fixture: &GenerationFixture, brief: PortValue) -> RunId {
    start_with(fixture, brief, OutputKind::Text).await
}

/// Like [`start_from`], with a first output that may be an image, which costs nothing.
async fn start_with(fixture: &GenerationFixture, brief: PortValue, first: OutputKind) -> RunId {
    let of_kind = |kind| if kind == OutputKind::Image { image_node() } else { text_node() };
    let mut nodes = [of_kind(first), text_node(), text_node()];
    let step = |key: &str, node: &Node, from: &str| Step {
        key: key.into(),
        label: format!("The {key}"),
        kind: if node.kind == NodeType::Image { OutputKind::Image } else { OutputKind::Text },
        node: node.id.clone(),
        prompt: format!("Write of {{{{{from}}}}}"),
        input_keys: vec![from.into()],
        model: match node.kind {
            NodeType::Image => {
                ChosenModel { credit_cost: 0, ..fixture.model(JobOperation::Generate).expect("one that draws") }
            }
            _ => fixture.text_model(),
        },
        size: None,
        quality: None,
        estimated_seconds: 2,
    };
    let input = RunInput {
        key: "brief".into(),
        label: "Brief".into(),
        kind: if matches!(brief, PortValue::Asset(_)) { InputKind::Image } else { InputKind::Text },
        node: NodeId::generate(),
        source: None,
        held: brief,
    };
    let [copy, echo, note] = &nodes;
    let steps = vec![step("copy", copy, "brief"), step("echo", echo, "copy"), step("note", note, "brief")];
    let plan = Plan { inputs: vec![input], steps };
    let harness = &fixture.harness;
    let (id, recipe, instance) = (RunId::generate(), RecipeId::from_stored("r".into()), NodeId::generate());
    let mut transaction = db::pool::begin(harness.database.pool()).await.expect("begins");
    let conn = &mut *transaction;
    let new = NewRun {
        id,
        account: &harness.me,
        token_id: harness.token,
        recipe: (&recipe, Version(0)),
        canvas: (harness.canvas.key, &harness.canvas.handle),
        instance: &instance,
        plan: &plan,
    };
    recipe_runs::insert(conn, &new).await.expect("inserts");
    app::target::bind(&mut nodes, app::target::Work::Run(id), false).expect("are free");
    put(conn, harness.canvas.key, &nodes).await;
    let (queue, kind, fairness_key) = (Queue::Recipe, TaskKind::Recipe, harness.me.as_str());
    let task = NewTask { id: id.0, queue, kind, fairness_key, due_in: None, traceparent: None };
    db::tasks::enqueue(conn, &task).await.expect("enqueues");
    db::pool::commit(transaction).await.expect("commits");
    id
}

async fn run(fixture: &GenerationFixture, id: RunId) -> RunRecord {
    let harness = &fixture.harness;
    recipe_runs::get(&mut *harness.conn().await, id, &harness.me).await.expect("reads").expect("is there")
}

/// The completed run; checks that its nodes are released.
async fn ended(fixture: &GenerationFixture, id: RunId) -> RunRecord {
    let over = async || Some(run(fixture, id).await).filter(|run| run.status.is_terminal());
    let run = wait_for("the end of the run", DEADLINE, over).await;
    for step in &run.plan.steps {
        assert_eq!(fixture.harness.node(&step.node).await.expect("is there").active_job, None);
    }
    assert_eq!(fixture.spent().await, 0, "texts cost no credit");
    run
}

fn statuses(run: &RunRecord) -> [OutputStatus; 3] {
    [0, 1, 2].map(|at| run.outputs[at].status)
}

/// Message and `retryable` of the step that failed the run.
fn failure<'a>(run: &'a RunRecord, key: &str) -> (&'a str, bool) {
    let failure = run.failure.as_ref().expect("says why");
    assert_eq!((run.status, failure.code), (RunStatus::Failed, RunFailureCode::StepFailed));
    assert_eq!(failure.output_key.as_deref(), Some(key));
    (&failure.message, failure.retryable)
}

/// Number of submits that the provider accepted for a step.
fn accepted(fixture: &GenerationFixture, id: RunId, at: usize) -> usize {
    fixture.simulator.accepted(&format!("{}-{at}", id.0))
}

#[tokio::test]
async fn each_text_is_written_once_by_the_model_of_its_step() {
    for vendor in WRITERS {
        let fixture = GenerationFixture::new(vendor).await;
        let _running = work(&fixture);
        let id = start(&fixture, BRIEF).await;
        let run = ended(&fixture, id).await;
        assert_eq!(run.status, RunStatus::Succeeded, "{vendor:?}: {:?}", run.failure);
        let copy = written(PROMPT);
        let values: Vec<_> = run.outputs.iter().filter_map(|output| output.value.clone()).collect();
        assert_eq!(values, [copy.clone(), written(&format!("Write of {copy}")), copy.clone()], "{vendor:?}");
        assert_eq!([0, 1, 2].map(|at| accepted(&fixture, id, at)), [1; 3], "{vendor:?}");
        assert_eq!(fixture.simulator.submits().len(), 3, "{vendor:?}");
        let node = fixture.harness.node(&run.plan.steps[0].node).await.expect("is there");
        let (model, provenance) = (fixture.text_model(), node.provenance().expect("is made"));
        assert_eq!(node.written_content(), Some(copy.as_str()));
        assert_eq!(
            (provenance.provider, provenance.model.as_deref(), provenance.prompt.as_deref()),
            (Some(model.provider), Some(model.id.as_str()), Some(PROMPT)),
            "{vendor:?}"
        );
    }
}

#[tokio::test]
async fn a_prompt_is_cut_at_what_its_model_takes() {
    let fixture = GenerationFixture::new(Vendor::Compatible).await;
    let most = 16_000;
    let _running = work(&fixture);
    let id = start(&fixture, &"x".repeat(most)).await;
    assert_eq!(ended(&fixture, id).await.status, RunStatus::Succeeded);
    for submit in fixture.simulator.submits() {
        assert_eq!(submit.prompt.len(), most);
    }
}

#[tokio::test]
async fn a_refused_text_cancels_what_is_made_from_it_and_nothing_else() {
    for vendor in WRITERS {
        let fixture = GenerationFixture::new(vendor).await;
        fixture.simulator.misbehave_once(FailureMode::Content);
        let _running = work(&fixture);
        let id = start(&fixture, BRIEF).await;
        let run = ended(&fixture, id).await;
        assert_eq!(statuses(&run), [Failed, Canceled, Succeeded], "{vendor:?}");
        let (message, retryable) = failure(&run, "copy");
        assert!(message.starts_with("The provider refused the content") && !retryable, "{vendor:?}: {message}");
        assert_eq!(fixture.simulator.submits().len(), 2, "{vendor:?}: one for each of two");
    }
}

#[tokio::test]
async fn an_image_goes_along_to_a_model_that_takes_it_and_is_named_to_one_that_does_not() {
    for (vendor, images) in [(Vendor::OpenAi, 1), (Vendor::Google, 1), (Vendor::Compatible, 0)] {
        let fixture = GenerationFixture::new(vendor).await;
        let _running = work(&fixture);
        let id = start_from(&fixture, PortValue::Asset(fixture.reference.clone())).await;
        let run = ended(&fixture, id).await;
        assert_eq!(run.status, RunStatus::Succeeded, "{vendor:?}: {:?}", run.failure);
        let submits = fixture.simulator.submits();
        let went: Vec<_> = submits.iter().map(|submit| (submit.prompt.as_str(), submit.images)).collect();
        let copy = format!("Write of {}", written("Write of Brief"));
        assert_eq!(went, [("Write of Brief", images), (&copy, 0), ("Write of Brief", images)], "{vendor:?}");
    }
}

#[tokio::test]
async fn an_image_is_brought_into_form_once_there_is_a_place_for_the_call_and_not_before() {
    let mut fixture = GenerationFixture::new(Vendor::OpenAi).await;
    fixture.refer_to_a_gif().await;
    let busy = fixture.keep_busy().await;
    // The loaded file waits for pixel memory.
    let pixels = fixture.harness.pixels.reserve(u64::MAX).await;
    let _running = work(&fixture);
    let id = start_from(&fixture, PortValue::Asset(fixture.reference.clone())).await;
    fixture.until_parked(Queue::Recipe).await;
    drop((busy, pixels));
    let run = ended(&fixture, id).await;
    assert_eq!((run.status, fixture.simulator.submits()[0].images), (RunStatus::Succeeded, 1));
}

#[tokio::test]
async fn an_image_that_is_gone_fails_its_steps_before_anybody_is_asked() {
    let fixture = GenerationFixture::new(Vendor::OpenAi).await;
    let _running = work(&fixture);
    let mut gone = fixture.reference.clone();
    gone.id = domain::id::AssetId::parse("gone").expect("valid");
    let id = start_from(&fixture, PortValue::Asset(gone)).await;
    let run = ended(&fixture, id).await;
    assert_eq!((run.status, statuses(&run)), (RunStatus::Failed, [Failed, Canceled, Failed]));
    let failure = run.outputs[0].failure.as_ref().expect("says why");
    assert_eq!(failure.code, RunFailureCode::InputInvalid, "{}", failure.message);
    assert_eq!(run.failure.as_ref(), Some(failure), "the run failed for the same reason");
    assert!(fixture.simulator.submits().is_empty());
}

#[tokio::test]
async fn only_what_was_surely_not_accepted_is_asked_for_again() {
    for (failure_mode, retried) in [
        (FailureMode::Down, true),
        (FailureMode::OutOfCredit, false),
        (FailureMode::ServerError, false),
        (FailureMode::LoseAnswer, false),
    ] {
        let fixture = GenerationFixture::new(Vendor::OpenAi).await;
        fixture.simulator.misbehave_once(failure_mode);
        let _running = work(&fixture);
        let id = start(&fixture, BRIEF).await;
        let run = ended(&fixture, id).await;
        let submits = fixture.simulator.submits();
        let of_copy = submits.iter().filter(|submit| submit.idempotency_key == Some(format!("{}-0", id.0))).count();
        match retried {
            true => assert_eq!((run.status, of_copy), (RunStatus::Succeeded, 2), "{failure_mode:?}"),
            false => assert_eq!((statuses(&run), of_copy), ([Failed, Canceled, Succeeded], 1), "{failure_mode:?}"),
        }
    }
}

#[tokio::test]
async fn a_provider_that_stays_down_is_given_up_after_a_few_tries() {
    let fixture = GenerationFixture::new(Vendor::Google).await;
    fixture.simulator.misbehave(FailureMode::Down);
    let _running = work(&fixture);
    let id = start(&fixture, BRIEF).await;
    let run = ended(&fixture, id).await;
    assert_eq!(statuses(&run), [Failed, Canceled, Failed]);
    let (message, retryable) = failure(&run, "copy");
    assert!(message.starts_with("The provider is out of order") && retryable, "{message}");
    assert_eq!(fixture.simulator.submits().len(), 6, "three for each of two");
}

/// Lets the lease expire after the worker is gone without returning the task.
async fn lose(fixture: &GenerationFixture) {
    fixture.harness.execute("UPDATE task_queue SET lease_until = now() - interval '1 s' WHERE state = 'leased'").await;
}

#[tokio::test]
async fn a_text_whose_worker_died_over_its_call_is_not_asked_for_again() {
    for vendor in WRITERS {
        let fixture = GenerationFixture::new(vendor).await;
        fixture.simulator.misbehave_once(FailureMode::Hang);
        let doomed = work(&fixture);
        let id = start(&fixture, BRIEF).await;
        fixture.until_submits(1).await;
        drop(doomed);
        lose(&fixture).await;
        let _running = work(&fixture);
        let run = ended(&fixture, id).await;
        assert_eq!(statuses(&run), [Failed, Canceled, Succeeded], "{vendor:?}");
        let (message, retryable) = failure(&run, "copy");
        assert!(message.contains("its answer was lost") && retryable, "{vendor:?}: {message}");
        assert_eq!([0, 1, 2].map(|at| accepted(&fixture, id, at)), [1, 0, 1], "{vendor:?}");
        assert_eq!(fixture.simulator.submits().len(), 2, "{vendor:?}: one for each of two");
    }
}

/// The state that a worker leaves when it crashes between the record of a submit and the submit.
async fn begun(fixture: &GenerationFixture) -> RunId {
    let id = start(fixture, BRIEF).await;
    fixture
        .harness
        .execute("UPDATE recipe_run_outputs SET status = 'running', started_at = now() WHERE position = 0")
        .await;
    id
}

#[tokio::test]
async fn what_may_have_been_asked_for_is_not_asked_for_at_all() {
    let fixture = GenerationFixture::new(Vendor::OpenAi).await;
    let id = begun(&fixture).await;
    let _running = work(&fixture);
    assert_eq!(statuses(&ended(&fixture, id).await), [Failed, Canceled, Succeeded]);
    assert_eq!([0, 2].map(|at| accepted(&fixture, id, at)), [0, 1]);
}

#[tokio::test]
async fn what_the_embedded_runtime_had_begun_is_made_again() {
    let fixture = GenerationFixture::embedded().await;
    let id = begun(&fixture).await;
    let _running = work(&fixture);
    let run = ended(&fixture, id).await;
    assert_eq!((run.status, statuses(&run)), (RunStatus::Succeeded, [Succeeded; 3]));
    assert!(fixture.simulator.submits().is_empty());
}

#[tokio::test]
async fn a_removed_connection_fails_the_step_before_anything_is_asked() {
    let fixture = GenerationFixture::new(Vendor::OpenAi).await;
    let id = start(&fixture, BRIEF).await;
    fixture.harness.execute("DELETE FROM provider_connections").await;
    let _running = work(&fixture);
    let run = ended(&fixture, id).await;
    assert_eq!(failure(&run, "copy"), ("the saved connection was removed", false));
    assert!(fixture.simulator.submits().is_empty());
}

#[tokio::test]
async fn a_stopped_run_waits_for_no_answer() {
    let mut fixture = GenerationFixture::new(Vendor::OpenAi).await;
    fixture.simulator.take(AGES);
    fixture.settings.deadlines.text = AGES;
    let _running = work(&fixture);
    let id = start(&fixture, BRIEF).await;
    fixture.until_submits(1).await;
    let (worker, harness) = (fixture.harness.worker(), &fixture.harness);
    let mut transaction = db::pool::begin(harness.database.pool()).await.expect("begins");
    let ready = ReadyTasks::new();
    let context = worker.completion_context(None, &ready);
    let canceled = app::recipe::cancel(&mut transaction, id, &harness.me, &context).await.expect("cancels");
    db::pool::commit(transaction).await.expect("commits");
    assert!(canceled.is_some_and(|(_, now)| now));
    let settled = async || {
        let stats = db::tasks::stats(&mut *harness.conn().await, Queue::Recipe).await.expect("counts");
        (stats == QueueStats::default()).then_some(())
    };
    wait_for("the end of the task", DEADLINE, settled).await;
    let run = ended(&fixture, id).await;
    assert_eq!((run.status, statuses(&run)), (RunStatus::Canceled, [Canceled; 3]));
    assert_eq!(fixture.simulator.submits().len(), 1);
}

/// A client that waits for the run is notified of every change of its status or of an output.
#[tokio::test]
async fn that_a_run_is_taken_up_and_that_a_text_is_being_written_is_announced() {
    let mut fixture = GenerationFixture::new(Vendor::OpenAi).await;
    fixture.simulator.take(AGES);
    fixture.settings.deadlines.text = AGES;
    let id = start(&fixture, BRIEF).await;
    let (mut generator, prefix) = (fixture.generator(), testkit::redis_prefix());
    generator.worker.cache = cache::Cache::connect(&testkit::redis_url(), &prefix).expect("a URL");
    // A separate connection, because `cache::Watch` also wakes its waiter periodically.
    let redis = redis::Client::open(testkit::redis_url()).expect("a URL");
    let mut news = redis.get_async_pubsub().await.expect("connects");
    news.subscribe(format!("{prefix}job:{}", JobId(id.0))).await.expect("subscribes");
    let _running = fixture.harness.run(Recipes(generator), RunnerOptions::new(Queue::Recipe, 4));
    // The text takes longer than the test, so that nothing else is announced.
    let reported = tokio::time::timeout(DEADLINE, news.on_message().take(2).count()).await;
    assert_eq!(reported.expect("reports both"), 2);
    let run = run(&fixture, id).await;
    assert_eq!((run.status, run.outputs[0].status), (RunStatus::Running, UnderWay));
}

/// The record of an image's job may expire 15 minutes after it was read, and the run may continue later than that.
#[tokio::test]
async fn an_image_whose_job_has_expired_counts_as_made() {
    let fixture = GenerationFixture::embedded().await;
    let ordering = work(&fixture);
    let id = start_with(&fixture, PortValue::Text(BRIEF.into()), OutputKind::Image).await;
    let harness = &fixture.harness;
    let scheduled = async || {
        let stats = db::tasks::stats(&mut *harness.conn().await, Queue::Recipe).await.expect("counts");
        let run = run(&fixture, id).await;
        run.outputs[0].job.filter(|_| stats.scheduled == 1)
    };
    let job = wait_for("the run to wait for its image", DEADLINE, scheduled).await;
    drop(ordering);
    let drawing = fixture.work();
    let made = harness.ended(job).await;
    drop(drawing);
    assert_eq!(made.status, JobStatus::Succeeded, "{:?}", made.outcome.failure);
    harness.execute("UPDATE jobs SET retain_until = now() - interval '1 s'").await;
    assert_eq!(harness.sweeper(WINDOWS).expire().await.expect("sweeps"), 1);
    let _running = work(&fixture);
    let run = ended(&fixture, id).await;
    assert_eq!((run.status, run.failure.as_ref()), (RunStatus::Succeeded, None));
    assert_eq!(run.outputs[0].asset.as_ref(), Some(&made.outcome.images[0].asset));
}

#[tokio::test]
async fn a_run_that_cannot_be_read_fails_after_its_last_claim() {
    let fixture = GenerationFixture::new(Vendor::Compatible).await;
    let id = start(&fixture, BRIEF).await;
    let steps = run(&fixture, id).await.plan.steps;
    let harness = &fixture.harness;
    harness.execute("UPDATE accounts SET credit_balance = credit_balance - 7 WHERE uid = 'me'").await;
    harness.execute("UPDATE recipe_runs SET reserved = 7, plan = '{\"of\": \"another build\"}'").await;
    harness.exhaust_claims().await;
    let _running = work(&fixture);
    let settled = async || {
        let stats = db::tasks::stats(&mut *harness.conn().await, Queue::Recipe).await.expect("counts");
        (stats == QueueStats::default()).then_some(())
    };
    wait_for("the end of the task", DEADLINE, settled).await;
    let row: (String, String, i64) =
        sqlx::query_as("SELECT status, failure->>'code', reserved FROM recipe_runs WHERE id = $1")
            .bind(id.0)
            .fetch_one(harness.database.pool())
            .await
            .expect("is there");
    assert_eq!(row, ("failed".to_owned(), "recipe_step_failed".to_owned(), 0));
    assert_eq!(fixture.spent().await, 0, "the reservation is returned");
    for step in steps {
        assert_eq!(harness.node(&step.node).await.expect("is there").active_job, None);
    }
}
