use app::target::{self, Work};
use domain::job::{JobOperation, JobStatus};
use uuid::Uuid;

use crate::fixture::{Fixture, begin};
use db::blobs::{self, Staged};
use db::jobs::{self, ResultFiles, StagedResult};

#[tokio::test]
async fn a_worker_that_follows_a_dead_one_goes_on_and_the_first_start_stays() {
    let fixture = Fixture::new().await;
    let id = fixture.start().await;
    let mut conn = fixture.conn().await;
    let dead = fixture.claim().await;
    let first = begin(&mut conn, id, dead).await.expect("is ours");
    assert_eq!((first.status, first.started_at.is_some()), (JobStatus::Running, true));
    assert!(jobs::mark_finalizing(&mut conn, id, dead).await.expect("marks"));
    fixture.expire_lease(id).await;
    let alive = fixture.claim().await;
    let second = begin(&mut conn, id, alive).await.expect("is ours");
    assert_eq!((second.status, second.started_at), (JobStatus::Running, first.started_at));
    assert_eq!(fixture.history(id).await, ["queued", "running", "finalizing", "running"]);
}

#[tokio::test]
async fn every_change_of_state_raises_the_version() {
    let fixture = Fixture::new().await;
    let id = fixture.start().await;
    assert_eq!(fixture.get(id).await.version, 1);
    let lease = fixture.claim().await;
    let mut conn = fixture.conn().await;
    begin(&mut conn, id, lease).await.expect("is ours");
    begin(&mut conn, id, lease).await.expect("is still ours");
    assert_eq!(fixture.get(id).await.version, 2, "continuing changes nothing");
    assert!(jobs::mark_finalizing(&mut conn, id, lease).await.expect("marks"));
    assert!(!jobs::mark_finalizing(&mut conn, id, lease).await.expect("refuses"));
    assert_eq!(fixture.get(id).await.version, 3);
}

#[tokio::test]
async fn a_job_is_begun_beside_another_whose_lease_is_lost() {
    let fixture = Fixture::new().await;
    let lost = fixture.start().await;
    let stale = fixture.claim().await;
    let held = fixture.accept().await;
    let current = fixture.claim().await;
    let mut conn = fixture.conn().await;
    fixture.expire_lease(lost).await;
    let leased = [(lost, stale), (held, current)];
    // A run whose lease is lost finds the job that another run begins beside it.
    let outrun = (held, Uuid::new_v4());
    for leased in [vec![leased[0], outrun, leased[1]], vec![leased[0], leased[1], outrun]] {
        let begun = jobs::begin(&mut conn, &leased).await.expect("begins");
        let begun: Vec<_> = begun.into_iter().map(|job| Some(job?.status)).collect();
        let expected = leased.iter().map(|lease| (*lease == (held, current)).then_some(JobStatus::Running));
        assert_eq!(begun, expected.collect::<Vec<_>>());
    }
    assert_eq!((fixture.history(lost).await, fixture.history(held).await.len()), (vec!["queued".to_owned()], 2));
    let files = |&(id, lease_token): &_| ResultFiles { id, lease_token, hashes: vec![[1; 32], [2; 32]] };
    let staged = jobs::stage_results(&mut conn, &leased.each_ref().map(files)).await.expect("stages");
    assert_eq!(staged.iter().map(|staged| staged.files.len()).collect::<Vec<_>>(), [2, 2]);
    assert_eq!(staged.iter().map(|staged| staged.is_finalizing).collect::<Vec<_>>(), [false, true]);
    // Who cancels holds the job's row, and is not waited for.
    let mut other = fixture.database.pool().begin().await.expect("begins");
    begin(&mut conn, held, current).await.expect("is ours");
    jobs::transition(&mut other, held, JobStatus::Canceling).await.expect("locks");
    let staged = jobs::stage_results(&mut conn, &[files(&leased[1])]).await.expect("stages");
    assert!(!staged[0].is_finalizing && staged[0].files.len() == 2);
    other.rollback().await.expect("ends");
}

#[tokio::test]
async fn a_result_is_staged_as_its_job_begins_to_finalize() {
    let fixture = Fixture::new().await;
    let id = fixture.start().await;
    let lease = fixture.claim().await;
    let mut conn = fixture.conn().await;
    begin(&mut conn, id, lease).await.expect("is ours");
    let stage = async |lease_token, hash| {
        let files = ResultFiles { id, lease_token, hashes: vec![hash] };
        jobs::stage_results(&mut *fixture.conn().await, &[files]).await.expect("stages").remove(0)
    };
    let staged = stage(lease, [7; 32]).await;
    let [Staged::New(key)] = staged.files[..] else { panic!("nothing is stored yet: {staged:?}") };
    assert!(staged.is_finalizing && !staged.is_canceling);
    assert_eq!(fixture.history(id).await, ["queued", "running", "finalizing"]);
    assert_eq!(blobs::adopt(&mut conn, key, &[7; 32], 12).await.expect("adopts"), Some(key));
    let existing = StagedResult { files: vec![Staged::Existing(key)], is_finalizing: false, is_canceling: false };
    assert_eq!(stage(lease, [7; 32]).await, existing, "the content is there");
    fixture.expire_lease(id).await;
    let alive = fixture.claim().await;
    begin(&mut conn, id, alive).await.expect("is ours");
    assert!(!stage(lease, [8; 32]).await.is_finalizing, "the lease is lost");
    assert_eq!(stage(alive, [7; 32]).await, existing, "nothing is to be put, so the job goes on");
    assert!(stage(alive, [8; 32]).await.is_finalizing);
    let expected = ["queued", "running", "finalizing", "running", "finalizing"];
    assert_eq!(fixture.history(id).await, expected);
    jobs::transition(&mut conn, id, JobStatus::Canceling).await.expect("cancels");
    assert!(stage(alive, [9; 32]).await.is_canceling);
}

#[tokio::test]
async fn a_node_is_bound_to_one_job() {
    let fixture = Fixture::new().await;
    let id = fixture.start().await;
    let node = fixture.node().await.expect("is there");
    assert_eq!((node.active_job, node.job().map(|job| job.status)), (Some(id.0), Some(JobStatus::Queued)));
    let second = domain::id::JobId::generate();
    assert_eq!(target::bind(&mut [node], Work::Job(second, JobOperation::Action), false), None);
}

#[tokio::test]
async fn unfinished_jobs_are_counted_up_to_the_cap() {
    let fixture = Fixture::new().await;
    let mut conn = fixture.conn().await;
    assert_eq!(jobs::count_active(&mut conn, &fixture.account, 2).await.expect("counts"), 0);
    let ending = fixture.success().await;
    fixture.ended(ending).await;
    assert_eq!(
        jobs::count_active(&mut conn, &fixture.account, 2).await.expect("counts"),
        0,
        "an ended job does not count"
    );
    sqlx::query("UPDATE jobs SET status = 'running', completed_at = NULL").execute(&mut *conn).await.expect("revives");
    for (job, expected) in [(2, 2), (3, 2)] {
        sqlx::query("UPDATE nodes SET active_job = NULL").execute(&mut *conn).await.expect("frees");
        fixture.start().await;
        assert_eq!(jobs::count_active(&mut conn, &fixture.account, 2).await.expect("counts"), expected, "{job} jobs");
    }
}
