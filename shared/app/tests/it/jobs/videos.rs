//! Video jobs: progress, the stored video, retention.

use std::time::Duration;

use domain::budget::BudgetOwner;
use domain::id::JobId;
use domain::job::{
    ChosenModel, Failure, FailureCode, JobDocument, JobOperation, JobStatus, Record, Request, StoredVideo, VideoFacts,
    VideoJob, VideoRequest, VideoStatus,
};
use domain::message::Queue;
use domain::model::{Capability, ProviderKind};
use serde_json::json;
use uuid::Uuid;

use crate::fixture::{CONTEXT, Fixture, PUBLIC_URL, WINDOWS, begin, stored_blob};
use app::job::{Cancellation, Completion, CompletionResult, VideoOutput};
use db::jobs::outputs::{self, LeasedOutput};
use db::jobs::waiting::{self, Unfinished};
use db::jobs::{self, NewJob};
use db::ledger::{Funding, Payer};
use db::tasks::{self, ClaimRequest};
use db::{blobs, ledger, storage};

const PRICE: i64 = 3;
const GRANT: i64 = 10;

struct Started {
    fixture: Fixture,
    id: JobId,
}

impl Started {
    async fn new() -> Self {
        let fixture = Fixture::new().await;
        let mut conn = fixture.conn().await;
        ledger::grant(&mut conn, &fixture.account, GRANT).await.expect("grants");
        let id = JobId::generate();
        let request = Request::Video(VideoRequest {
            model: ChosenModel {
                key: "key".into(),
                id: "animatic".into(),
                name: "Animatic".into(),
                provider: ProviderKind::Managed,
                connection: None,
                credit_cost: PRICE,
            },
            capability: Capability::VideoGenerate,
            prompt: "a kite".into(),
            duration_seconds: None,
            aspect_ratio: None,
            resolution: None,
            generate_audio: None,
            first_frame: None,
            last_frame: None,
            references: Vec::new(),
            target: None,
        });
        let payer = Payer { account: &fixture.account, authority: fixture.token, owner: BudgetOwner::Token };
        let funding = ledger::reserve(&mut conn, payer, &[(id.0, PRICE)], 1).await.expect("reserves");
        assert_eq!(funding, Funding::Granted);
        let job = NewJob {
            id,
            account: &fixture.account,
            token_id: fixture.token,
            operation: JobOperation::Generate,
            canvas: None,
            canvas_revision: None,
            request: &request,
            estimated_seconds: 5,
            credit_cost: PRICE,
            recipe_run: None,
            about: None,
            traceparent: None,
        };
        jobs::insert(&mut conn, &job).await.expect("inserts a job");
        drop(conn);
        Self { fixture, id }
    }

    async fn taken(&self) -> Uuid {
        let (queue, lease) = (Queue::Video, Duration::from_secs(30));
        let wanted = ClaimRequest { queue, limit: 1, quarantined: false, caps: None, lease, owner: "test" };
        let claims = tasks::claim(&mut *self.fixture.conn().await, &wanted).await.expect("claims");
        let lease = claims.first().expect("a task").lease_token;
        begin(&mut *self.fixture.conn().await, self.id, lease).await.expect("is ours");
        lease
    }

    async fn video(&self) -> VideoOutput {
        let video = VideoOutput {
            blob_key: Uuid::new_v4(),
            sha256: [5; 32],
            bytes: 12,
            facts: VideoFacts::default(),
            poster: None,
        };
        stored_blob(&mut *self.fixture.conn().await, video.blob_key, &video.sha256, 12).await;
        video
    }

    async fn end(&self, lease: Uuid, ending: Completion) -> Record {
        match self.fixture.complete(self.id, lease, ending).await {
            CompletionResult::Done(record) => *record,
            other => panic!("not completed: {other:?}"),
        }
    }

    async fn note(&self, lease: Uuid, percent: f64) -> bool {
        jobs::note_progress(&mut *self.fixture.conn().await, self.id, lease, percent).await.expect("notes")
    }

    async fn balance(&self) -> i64 {
        self.fixture.count("SELECT credit_balance FROM accounts WHERE uid = 'me'").await
    }

    /// Lets time pass, sweeps, and returns how many records expired and how many were removed.
    async fn sweep_after(&self, seconds: f64) -> (u64, u64) {
        let mut conn = self.fixture.conn().await;
        sqlx::query("UPDATE jobs SET retain_until = retain_until - make_interval(secs => $1)")
            .bind(seconds)
            .execute(&mut *conn)
            .await
            .expect("passes");
        let expired = jobs::expire(&mut conn, &WINDOWS, 100).await.expect("expires");
        let mut tx = self.fixture.database.pool().begin().await.expect("begins");
        let removed = jobs::remove(&mut tx, PUBLIC_URL, 100).await.expect("removes");
        tx.commit().await.expect("commits");
        (expired, removed.removed)
    }
}

fn served(record: &Record) -> VideoJob {
    match record.document(PUBLIC_URL, |_| None) {
        JobDocument::Video(job) => *job,
        JobDocument::Image(job) => panic!("no video: {job:?}"),
    }
}

#[tokio::test]
async fn progress_never_goes_back_and_is_100_on_success_alone() {
    let started = Started::new().await;
    assert_eq!(served(&started.fixture.get(started.id).await).progress, 0.0);
    let lease = started.taken().await;
    for (percent, noted) in
        [(40.0, true), (40.0, false), (20.0, false), (f64::NAN, false), (100.0, true), (99.5, false)]
    {
        assert_eq!(started.note(lease, percent).await, noted, "{percent}");
    }
    assert!(!started.note(Uuid::new_v4(), 99.0).await, "the lease of another worker");
    let record = started.fixture.get(started.id).await;
    assert_eq!((served(&record).progress, served(&record).status), (99.0, VideoStatus::Running));
    let output = started.video().await;
    let record = started.end(lease, Completion::SucceededVideo(output.clone())).await;
    assert_eq!((served(&record).progress, served(&record).status), (100.0, VideoStatus::Succeeded));
    assert_eq!(
        record.outcome.video,
        Some(StoredVideo {
            blob_key: output.blob_key,
            bytes: 12,
            asset: None,
            facts: VideoFacts::default(),
            poster: None
        })
    );
    let url = format!("/api/canvas-agent/v1/jobs/{}/output", started.id);
    assert_eq!(served(&record).video.map(|video| video.download_url), Some(url));
    assert_eq!((record.credit_cost, started.balance().await), (PRICE, GRANT - PRICE));
}

#[tokio::test]
async fn a_stored_video_is_kept_as_long_as_its_record_and_that_for_30_days() {
    let started = Started::new().await;
    let lease = started.taken().await;
    let video = started.video().await;
    let record = started.end(lease, Completion::SucceededVideo(video.clone())).await;
    let removing = async || {
        let mut conn = started.fixture.conn().await;
        blobs::walk(&mut conn, Duration::ZERO, 10).await.expect("looks").unreferenced.contains(&video.blob_key)
    };
    assert!(!removing().await);
    // The first read does not start a shorter window.
    let mut conn = started.fixture.conn().await;
    assert!(jobs::mark_finalized(&mut conn, record.id, Duration::from_secs(1)).await.expect("marks"));
    drop(conn);
    assert_eq!(started.sweep_after(WINDOWS.video.as_secs_f64() - 600.0).await, (0, 0));
    assert_eq!(started.sweep_after(600.0).await, (0, 1), "it never becomes a tombstone");
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert!(removing().await);
}

#[tokio::test]
async fn a_video_whose_bytes_are_gone_has_to_be_put_again() {
    let started = Started::new().await;
    let lease = started.taken().await;
    let gone = VideoOutput {
        blob_key: Uuid::new_v4(),
        sha256: [9; 32],
        bytes: 12,
        facts: VideoFacts::default(),
        poster: None,
    };
    let completed = started.fixture.complete(started.id, lease, Completion::SucceededVideo(gone)).await;
    assert_eq!(completed, CompletionResult::BlobGone);
    assert_eq!(started.fixture.get(started.id).await.status, JobStatus::Running);
}

#[tokio::test]
async fn a_video_is_stored_in_a_full_storage_because_its_start_was_accepted() {
    let started = Started::new().await;
    let lease = started.taken().await;
    let video = started.video().await;
    let account = &started.fixture.account;
    let mut conn = started.fixture.conn().await;
    let before = storage::get(&mut conn, account).await.expect("reads").expect("an account").bytes;
    storage::set_max(&mut conn, account, Some(1)).await.expect("sets");
    let record = started.end(lease, Completion::SucceededVideo(video)).await;
    assert_eq!((record.status, started.balance().await), (JobStatus::Succeeded, GRANT - PRICE));
    let stored = storage::get(&mut conn, account).await.expect("reads").expect("an account");
    assert_eq!((stored.bytes, stored.max), (before + 12, 1));
}

#[tokio::test]
async fn a_failure_has_one_code_its_class_in_the_message_and_costs_nothing() {
    let started = Started::new().await;
    let lease = started.taken().await;
    let failure = Failure::new(FailureCode::ProviderTimeout, "no answer");
    let record = started.end(lease, Completion::Failed(failure, Vec::new())).await;
    let reported = json!(served(&record).failure);
    assert_eq!(
        reported,
        json!({"code": "video_generation_failed", "message": "provider_timeout: no answer", "retryable": true})
    );
    assert_eq!((record.credit_cost, started.balance().await), (0, GRANT));
    assert_eq!(started.sweep_after(WINDOWS.failed.as_secs_f64()).await, (0, 0), "kept as long as a success");
    assert_eq!(started.sweep_after(WINDOWS.video.as_secs_f64()).await, (0, 1));
}

#[tokio::test]
async fn a_cancel_of_what_nobody_took_is_free_and_of_what_a_provider_has_is_its_workers() {
    let started = Started::new().await;
    let (id, account) = (started.id, started.fixture.account.clone());
    let cancel = async || {
        let mut tx = started.fixture.database.pool().begin().await.expect("begins");
        let done = app::job::cancel(&mut tx, id, &account, CONTEXT).await.expect("cancels").expect("is there");
        tx.commit().await.expect("commits");
        done
    };
    let Cancellation::Canceled(record) = cancel().await else { panic!("no worker has claimed it") };
    let reported = served(&record);
    assert_eq!((reported.status, json!(reported.failure)["code"].clone()), (VideoStatus::Canceled, json!("canceled")));
    assert_eq!(started.balance().await, GRANT);

    let started = Started::new().await;
    let lease = started.taken().await;
    let held = LeasedOutput { job: started.id, lease_token: lease, position: 0 };
    let mut conn = started.fixture.conn().await;
    outputs::open(&mut conn, started.id, lease, 1).await.expect("opens").expect("is ours");
    assert!(outputs::begin_submit(&mut conn, held, Duration::from_secs(60)).await.expect("records"));
    let run = json!({"id": "run-1", "poll": "https://p.example/1"});
    assert!(outputs::submitted(&mut conn, held, &run, Duration::from_secs(1)).await.expect("records"));
    let mut tx = started.fixture.database.pool().begin().await.expect("begins");
    let account = started.fixture.account.clone();
    let done = app::job::cancel(&mut tx, started.id, &account, CONTEXT).await.expect("cancels").expect("is there");
    tx.commit().await.expect("commits");
    let Cancellation::Requested(record) = done else { panic!("a worker has it") };
    assert_eq!(served(&record).status, VideoStatus::Running, "a video has no state `canceling`");
    assert_eq!(served(&record).provider_run_id.as_deref(), Some("run-1"));
}

#[tokio::test]
async fn a_video_that_a_provider_has_is_read_and_put_off_under_its_lease_alone() {
    let started = Started::new().await;
    let lease = started.taken().await;
    let mut conn = started.fixture.conn().await;
    let look = async |conn: &mut sqlx::PgConnection, lease: Uuid| {
        let found = waiting::look(conn, &[(started.id.0, lease), (Uuid::now_v7(), lease)]).await.expect("looks");
        found.into_iter().next()
    };
    let held = LeasedOutput { job: started.id, lease_token: lease, position: 0 };
    outputs::open(&mut conn, started.id, lease, 1).await.expect("opens").expect("is ours");
    assert!(look(&mut conn, lease).await.is_none(), "no provider has it");
    let minute = Duration::from_secs(60);
    assert!(outputs::begin_submit(&mut conn, held, minute).await.expect("begins"));
    assert!(look(&mut conn, lease).await.is_none(), "it is unknown whether a provider has it");
    assert!(outputs::submitted(&mut conn, held, &json!({"id": "r"}), Duration::ZERO).await.expect("records"));

    let found = look(&mut conn, lease).await.expect("a provider has it");
    assert_eq!((found.id, found.model.id.as_str(), &found.run), (started.id, "animatic", &json!({"id": "r"})));
    assert!(found.credentials.is_none() && found.due_in < minute);
    assert!(look(&mut conn, Uuid::now_v7()).await.is_none(), "the lease is lost");

    let reported = |lease_token, percent| Unfinished { id: started.id, lease_token, due_in: minute, percent };
    for (lease_token, percent, further) in [
        (Uuid::now_v7(), Some(40.0), false),
        (lease, Some(40.0), true),
        (lease, Some(30.0), false),
        (lease, Some(f64::NAN), false),
        (lease, None, false),
        (lease, Some(100.0), true),
    ] {
        let moved = waiting::put_off(&mut conn, &[reported(lease_token, percent)]).await.expect("puts off");
        let moved: Vec<_> = moved.into_iter().map(|(_, id)| id).collect();
        assert_eq!(moved == [started.id], further, "{percent:?}");
    }
    assert!((started.fixture.get(started.id).await.progress - 99.0).abs() < f64::EPSILON, "100 is success");
    assert!(look(&mut conn, lease).await.expect("goes on").due_in > minute / 2);
    tasks::request_cancel(&mut conn, started.id.0).await.expect("asks").expect("is there");
    assert!(look(&mut conn, lease).await.is_none(), "a job to be canceled is handled like any other job");
}
