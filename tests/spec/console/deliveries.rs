//! Webhook deliveries of a person (docs/reference/console.md#deliveries).

use e2e::api::text;
use e2e::{PATIENCE, Stack};
use serde_json::{Value, json};
use testkit::{Answer, Receiver};
use uuid::Uuid;

use super::holder::Holder;

const SECRET: &str = "a secret of the caller's own, long enough";

impl Holder {
    /// Starts a resize whose end is sent to `receiver`.
    async fn start(&self, receiver: &Receiver) -> Value {
        let canvas = text(&self.user.make_canvas().await, "/id").to_owned();
        let webhook = json!({"url": receiver.url("/hook?q=1"), "secret": SECRET});
        self.user.start_resize(&canvas, json!({"webhook": webhook})).await
    }

    /// Waits until the delivery of a job has ended.
    async fn delivered(&self, job: &Value) {
        let over = |record: &Value| matches!(record["webhook"]["status"].as_str(), Some("delivered" | "failed"));
        self.user.until(job, over).await;
    }
}

#[tokio::test]
async fn deliveries_are_listed_newest_first_without_url_and_secret() {
    let stack = &Stack::with_workers().await;
    let (person, other, receiver) = (Holder::new(stack).await, Holder::new(stack).await, stack.take_receiver());
    assert_eq!(person.get("/deliveries").await.ok()["deliveries"], json!([]));
    let mut jobs = Vec::new();
    for _ in 0..3 {
        let job = person.start(&receiver).await;
        person.delivered(&job).await;
        jobs.insert(0, job);
    }
    let listed = person.pages("/deliveries", "deliveries").await;
    for (entry, job) in listed.iter().zip(&jobs) {
        assert_eq!((&entry["run"], &entry["webhook"]["id"]), (&job["run"], &job["webhook"]["id"]));
        assert_eq!((&entry["webhook"]["status"], &entry["webhook"]["attempts"]), (&json!("delivered"), &json!(1)));
        assert!(entry["createdAt"].is_string() && entry["webhook"]["deliveredAt"].is_string(), "{entry}");
    }
    assert_eq!(listed.len(), 3);
    let shown = json!(listed).to_string();
    assert!(!shown.contains("hook?q") && !shown.contains("127.0.0.1") && !shown.contains(SECRET), "{shown}");
    for (status, count) in [("delivered", 3), ("failed", 0), ("pending", 0)] {
        let some = person.get(&format!("/deliveries?status={status}")).await.ok();
        assert_eq!(some["deliveries"].as_array().map(Vec::len), Some(count), "{status}");
    }
    let wrong = person.get("/deliveries?status=lost").await;
    wrong.expect_error(400, "input_validation_error", &["status"]);
    assert_eq!(other.get("/deliveries").await.ok()["deliveries"], json!([]));
}

#[tokio::test]
async fn a_delivery_is_replayed_as_the_same_event() {
    let stack = &Stack::with_workers().await;
    let (person, receiver) = (Holder::new(stack).await, stack.take_receiver());
    receiver.answer_in_turn(vec![Answer::status(410), Answer::status(200)]);
    let job = person.start(&receiver).await;
    person.delivered(&job).await;
    let failed = person.get("/deliveries?status=failed").await.ok();
    assert_eq!(failed["deliveries"][0]["webhook"]["errorCode"], "endpoint_rejected");
    let id = text(&job, "/webhook/id");
    let replayed = person.call(reqwest::Method::POST, &format!("/deliveries/{id}/replay")).await.expect(202).json();
    assert_eq!(replayed, json!({"id": id, "status": "pending"}));
    let requests = receiver.wait_for(2, PATIENCE).await;
    assert_eq!(requests[0].body, requests[1].body);
    requests[1].verify_signature(SECRET).expect("is signed");
    person.delivered(&job).await;
    let listed = person.get("/deliveries").await.ok();
    let webhook = &listed["deliveries"][0]["webhook"];
    assert_eq!((&webhook["status"], &webhook["attempts"]), (&json!("delivered"), &json!(1)), "a replay is not counted");
    // The plain id names it as well.
    let plain = id.strip_prefix("webhook:").expect("a handle");
    person.call(reqwest::Method::POST, &format!("/deliveries/{plain}/replay")).await.expect(202);
    receiver.wait_for(3, PATIENCE).await;
    person.delivered(&job).await;
    sqlx::query("UPDATE webhook_deliveries SET status = 'pending' WHERE account_uid = $1")
        .bind(&person.user.uid)
        .execute(stack.pool())
        .await
        .expect("updates");
    let unfinished = person.call(reqwest::Method::POST, &format!("/deliveries/{id}/replay")).await;
    unfinished.expect_error(409, "conflict", &[]);
}

#[tokio::test]
async fn a_delivery_of_another_account_is_404() {
    let stack = &Stack::with_workers().await;
    let (person, other, receiver) = (Holder::new(stack).await, Holder::new(stack).await, stack.take_receiver());
    let job = other.start(&receiver).await;
    other.delivered(&job).await;
    let replay = async |id: &str| person.call(reqwest::Method::POST, &format!("/deliveries/{id}/replay")).await;
    for id in [text(&job, "/webhook/id"), &Uuid::new_v4().to_string()] {
        replay(id).await.expect_error(404, "not_found", &[]);
    }
    for id in ["x", "run:x", "webhook:"] {
        replay(id).await.expect_error(400, "input_validation_error", &["deliveryId"]);
    }
    assert_eq!(receiver.requests().len(), 1);
}
