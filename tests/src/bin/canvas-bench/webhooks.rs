//! Webhook deliveries per second to one receiver, each attempt durable before and after it is sent.

use std::time::Duration;

use db::deliveries::{self, NewDelivery, NewEvent};
use domain::id::{AccountUid, JobId};
use domain::webhook::EventType;
use e2e::{Part, Stack};
use service::keys::KeyRing;
use sqlx::Connection;
use uuid::Uuid;

use crate::MASTER_KEYS;
use crate::table::Row;

const DELIVERIES: usize = 6000;
/// Of the event.
const BODY_BYTES: usize = 1024;
/// Per second, sustained (reliability.md, R7); 1000 is the aim.
const GOAL: f64 = 400.0;
/// How long they have to arrive.
const WINDOW: Duration = Duration::from_secs(40);
/// Deliveries made in one transaction.
const TRANSACTION: usize = 500;

/// Lets a dispatcher loose on deliveries that wait.
pub async fn measure(stack: &Stack) -> Vec<Row> {
    let receiver = stack.take_receiver();
    stack.stop(Part::DISPATCHER).await;
    enqueue(stack, &receiver.url("/hook")).await;
    stack.restart(Part::DISPATCHER).await;
    // A machine on which they do not all arrive in time gets its figure, too.
    let _ = tokio::time::timeout(WINDOW, receiver.wait_for(DELIVERIES, WINDOW * 2)).await;
    let received = receiver.requests();
    assert!(received.len() > 1, "no delivery arrived within {WINDOW:?}");
    let seconds = (received[received.len() - 1].at - received[0].at).as_secs_f64();
    let rate = (received.len() - 1) as f64 / seconds;
    // It ends what it has in hand; then every request that came must be on record.
    stack.stop(Part::DISPATCHER).await;
    let recorded = stack
        .count(
            "SELECT count(*) FROM webhook_attempts a JOIN webhook_deliveries d ON d.id = a.delivery_id
             WHERE a.status = 200 AND a.finished_at IS NOT NULL AND d.status = 'delivered'",
        )
        .await;
    assert_eq!(recorded, receiver.requests().len() as i64, "every request is an attempt on record");
    vec![
        Row::told("webhook deliveries to one receiver (R7)", format!("{rate:.0} /s"))
            .ours(format!("{} in {seconds:.1} s", received.len()))
            .goal(format!(">= {GOAL} /s"), rate >= GOAL)
            .note(format!(
                "Events of {BODY_BYTES} bytes over TLS, one dispatcher, drained from a backlog; the aim is 1000 /s."
            )),
    ]
}

/// Ended jobs and their events, as the transactions that end jobs leave them.
async fn enqueue(stack: &Stack, url: &str) {
    let user = stack.user().await;
    let account: AccountUid = user.uid.parse().expect("a uid");
    let keys = KeyRing::parse(MASTER_KEYS).expect("a key ring");
    let body = vec![b'x'; BODY_BYTES];
    let mut connection = stack.pool().acquire().await.expect("connects");
    let jobs: Vec<JobId> = (0..DELIVERIES).map(|_| JobId::generate()).collect();
    for jobs in jobs.chunks(TRANSACTION) {
        let mut transaction = connection.begin().await.expect("begins");
        insert_jobs(&mut transaction, jobs, &user).await;
        for job_id in jobs {
            let id = Uuid::now_v7();
            let sealed_secret = keys.seal(&deliveries::handle(id), b"a secret of a benchmark");
            let new = NewDelivery { id, account: &account, job_id: *job_id, url, sealed_secret: &sealed_secret };
            deliveries::insert(&mut transaction, &new).await.expect("makes a delivery");
            let event =
                NewEvent { id: Uuid::now_v7(), kind: EventType::ImageJobSucceeded, body: &body, traceparent: None };
            assert!(deliveries::complete(&mut transaction, *job_id, &event).await.expect("fixes the event"));
        }
        transaction.commit().await.expect("commits");
    }
}

async fn insert_jobs(connection: &mut sqlx::PgConnection, jobs: &[JobId], user: &e2e::User) {
    let ids: Vec<Uuid> = jobs.iter().map(|job| job.0).collect();
    let token: Uuid = user.token_id.parse().expect("a token id");
    sqlx::query(
        "INSERT INTO jobs (id, account_uid, token_id, kind, operation, status, request, estimated_seconds, completed_at)
         SELECT id, $2, $3, 'action', 'action:resize', 'succeeded', '{}', 1, now() FROM unnest($1::uuid[]) id",
    )
    .bind(&ids)
    .bind(&user.uid)
    .bind(token)
    .execute(connection)
    .await
    .expect("inserts jobs");
}
