//! Credit of a person (docs/reference/console.md#credit).

use e2e::api::{key, text};
use e2e::{Stack, images};
use serde_json::{Value, json};

use super::holder::Holder;

#[tokio::test]
async fn the_ledger_explains_the_balance() {
    let stack = &Stack::without_workers().await;
    let person = Holder::new(stack).await;
    let empty = person.get("/credit").await.ok();
    assert_eq!((&empty["balance"], &empty["entries"]), (&json!(0), &json!([])));
    stack.grant(&person.user.uid, 5).await;
    let user = &person.user;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let target = user.slot(&canvas).await;
    let image = user.upload("image/png", images::png(8, 8)).await;
    let revision = user.canvas(&canvas).await["revision"].clone();
    let start = json!({
        "canvasId": canvas, "baseRevision": revision, "idempotencyKey": key(), "targetNodeId": target, "prompt": "A chair",
    });
    let job = user.send("/images/generate", &start).await.expect(202).json();
    let revision = user.canvas(&canvas).await["revision"].clone();
    let inputs = json!({"product": image["handle"], "offer": "Chairs, a fifth off until Sunday."});
    let start = json!({"canvasId": canvas, "baseRevision": revision, "idempotencyKey": key(), "inputs": inputs});
    let run = user.send("/recipes/ad-copy-and-banner/runs", &start).await.expect(202).json();
    user.delete(text(&run, "/pollUrl")).await.expect(200);
    let entries = person.pages("/credit", "entries").await;
    let brief: Vec<Value> = entries
        .iter()
        .map(|entry| json!([entry["amount"], entry["reason"], entry.get("job"), entry.get("run")]))
        .collect();
    assert_eq!(
        brief,
        [
            json!([1, "return", null, run["handle"]]),
            json!([-1, "reserve", null, run["handle"]]),
            json!([-1, "reserve", job["id"], null]),
            json!([5, "grant", null, null]),
        ]
    );
    assert_eq!((&entries[2]["workId"], entries[3].get("workId")), (&job["rawId"], None));
    assert!(entries.iter().all(|entry| entry["createdAt"].is_string()));
    assert_eq!(person.get("/credit").await.ok()["balance"], 4);
    let sum: i64 = entries.iter().filter_map(|entry| entry["amount"].as_i64()).sum();
    assert_eq!(sum, 4, "the balance is the sum of the ledger");
}

#[tokio::test]
async fn an_account_sees_its_own_ledger_alone() {
    let stack = &Stack::without_workers().await;
    let (person, other) = (Holder::new(stack).await, Holder::new(stack).await);
    stack.grant(&other.user.uid, 7).await;
    let credit = person.get("/credit").await.ok();
    assert_eq!((&credit["balance"], &credit["entries"]), (&json!(0), &json!([])));
    assert_eq!(other.get("/credit").await.ok()["balance"], 7);
}
