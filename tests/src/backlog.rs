//! Waiting webhook events that are inserted without running their jobs, for more events than jobs could be run.

use std::collections::BTreeMap;

use db::deliveries::{self, NewDelivery, NewEvent};
use domain::event::EventType;
use domain::id::{AccountUid, JobId};
use service::keys::KeyRing;
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use crate::load::SECRET;
use crate::{Stack, User};

/// The size of an event's body (docs/reliability.md#r7-webhook-throughput).
const BODY_BYTES: usize = 1024;
/// Events that are inserted in one transaction.
const TRANSACTION: usize = 500;

impl Stack {
    /// Inserts this many ended jobs with their events to `url`, as the transactions that end jobs do. Returns the bodies by the
    /// delivery's id in `Service-Webhook-Id`.
    pub async fn leave_events(&self, count: usize, url: &str) -> BTreeMap<String, Vec<u8>> {
        let user = self.user().await;
        let account: AccountUid = user.uid.parse().expect("a uid");
        let keys = self.env().iter().find(|(name, _)| name == "CANVAS_MASTER_KEYS");
        let keys = KeyRing::parse(&keys.expect("the harness sets it").1).expect("a key ring");
        let mut connection = self.pool().acquire().await.expect("connects");
        let mut left = BTreeMap::new();
        let jobs: Vec<JobId> = (0..count).map(|_| JobId::generate()).collect();
        for jobs in jobs.chunks(TRANSACTION) {
            let mut transaction = connection.begin().await.expect("begins");
            insert_jobs(&mut transaction, jobs, &user).await;
            for job_id in jobs {
                let (id, event_id) = (Uuid::now_v7(), Uuid::now_v7());
                let sealed_secret = keys.encrypt(&deliveries::handle(id), SECRET.as_bytes());
                let new = NewDelivery { id, account: &account, job_id: *job_id, url, sealed_secret: &sealed_secret };
                deliveries::insert(&mut transaction, &new).await.expect("makes a delivery");
                let mut body = event_id.to_string().into_bytes();
                body.resize(BODY_BYTES, b'x');
                let event =
                    NewEvent { id: event_id, kind: EventType::ImageJobSucceeded, body: &body, traceparent: None };
                let fixed = deliveries::complete(&mut transaction, *job_id, &event).await;
                assert!(fixed.expect("fixes the event").is_some());
                left.insert(deliveries::handle(id), body);
            }
            transaction.commit().await.expect("commits");
        }
        left
    }
}

async fn insert_jobs(connection: &mut PgConnection, jobs: &[JobId], user: &User) {
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
