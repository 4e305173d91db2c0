//! Runs on a canvas with a record that cannot be read.

use super::*;

#[tokio::test]
async fn a_job_that_cannot_be_ended_with_its_run_keeps_its_task_and_ends_by_itself() {
    let world = world().await;
    world.begun().await;
    world.text(0, Ok("copy")).await;
    let (_, job) = world.image().await;
    let read = sqlx::query("UPDATE nodes SET server = 'null' WHERE id = $1").bind(world.fixture.node.as_str());
    read.execute(&mut *world.fixture.conn().await).await.expect("updates");
    let failure = broken("cannot be read");
    let abandoned = world
        .in_transaction(async |conn| {
            app::recipe::abandon(conn, world.run, world.lease, failure, CONTEXT).await.expect("ends")
        })
        .await;
    assert!(abandoned.is_some());
    assert_eq!(world.record().await.status, RunStatus::Failed);
    assert_eq!(world.fixture.get(job).await.status, JobStatus::Queued);
    assert_eq!(world.balance().await, BALANCE - 2 * PRICE, "the text, and the reservation of the job");

    let lease = world.claim(Queue::Generation).await;
    let ended =
        world.in_transaction(async |conn| app::job::abandon(conn, job, lease, CONTEXT).await.expect("ends")).await;
    assert!(ended.is_some());
    assert_eq!(world.fixture.get(job).await.status, JobStatus::Failed);
    assert_eq!(world.balance().await, BALANCE - PRICE);
    assert_eq!(world.fixture.count("SELECT count(*) FROM task_queue").await, 0);
    assert_eq!(world.fixture.count("SELECT count(*) FROM nodes WHERE active_job IS NOT NULL").await, 0);
}
