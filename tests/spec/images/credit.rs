//! Credit of a start (docs/reference/models.md#credit).

use e2e::Stack;
use e2e::api::{key, text};
use futures_util::future::join_all;
use serde_json::json;

use super::setting::Setting;

/// Asserts that each balance is the sum of its ledger entries.
async fn books_balance(stack: &Stack) {
    let off = stack
        .count("SELECT count(*) FROM accounts a WHERE credit_balance <> (SELECT coalesce(sum(amount), 0) FROM ledger WHERE account_uid = a.uid)")
        .await;
    assert_eq!(off, 0, "accounts whose balance is not the sum of their ledger");
}

#[tokio::test]
async fn a_start_reserves_the_price_of_each_output() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::with_credits(stack, 10).await;
    let one = setting.job("generate", json!({})).await;
    let price = one["creditCost"].as_i64().expect("a price");
    assert!(price >= 1, "the embedded runtime charges credit");
    assert_eq!(setting.balance().await, 10 - price);
    let targets = [setting.user.slot(&setting.canvas).await, setting.user.slot(&setting.canvas).await];
    let two = setting.job("generate", json!({"targetNodeId": null, "targetNodeIds": targets})).await;
    assert_eq!((two["creditCost"].as_i64(), setting.balance().await), (Some(2 * price), 10 - 3 * price));
    books_balance(stack).await;
}

#[tokio::test]
async fn what_the_balance_does_not_cover_is_402_and_writes_nothing() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::with_credits(stack, 1).await;
    let targets = [setting.target.clone(), setting.user.slot(&setting.canvas).await];
    let before = setting.user.canvas(&setting.canvas).await;
    let request = setting.request(json!({"targetNodeId": null, "targetNodeIds": targets})).await;
    setting.user.send("/images/generate", &request).await.expect_error(402, "payment_required", &[]);
    assert_eq!((setting.user.canvas(&setting.canvas).await, setting.balance().await), (before, 1));
    // The rejected start did not consume its key: with credit the same request is accepted.
    stack.grant(&setting.user.uid, 1).await;
    let job = setting.user.send("/images/generate", &request).await.expect(202).json();
    assert!(job.get("replayed").is_none_or(|replayed| replayed == false), "{job}");
    assert_eq!(setting.balance().await, 0);
}

#[tokio::test]
async fn meaning_is_judged_before_funds() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::with_credits(stack, 0).await;
    setting.unprocessable("generate", json!({"size": "7x7"}), &["size"]).await;
    setting.start("generate", json!({})).await.expect_error(402, "payment_required", &[]);
}

#[tokio::test]
async fn concurrent_starts_never_overdraw() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::with_credits(stack, 2).await;
    let mut requests = Vec::new();
    for _ in 0..5 {
        // Each start has a canvas of its own, so that no revision conflicts.
        let canvas = text(&setting.user.make_canvas().await, "/id").to_owned();
        let target = setting.user.slot(&canvas).await;
        let revision = setting.user.canvas(&canvas).await["revision"].clone();
        requests.push(json!({"canvasId": canvas, "baseRevision": revision, "idempotencyKey": key(),
            "targetNodeId": target, "prompt": "A chair"}));
    }
    let starts =
        join_all(requests.iter().map(async |request| setting.user.send("/images/generate", request).await.status));
    let mut answers = starts.await;
    answers.sort_unstable();
    assert_eq!(answers, [202, 202, 402, 402, 402]);
    assert_eq!(setting.balance().await, 0);
    books_balance(stack).await;
}

#[tokio::test]
async fn a_cancel_before_any_work_returns_the_credit() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::with_credits(stack, 3).await;
    let other = setting.user.slot(&setting.canvas).await;
    let job = setting.job("generate", json!({"targetNodeId": null, "targetNodeIds": [setting.target, other]})).await;
    assert_eq!(setting.balance().await, 1);
    let canceled = setting.user.delete(text(&job, "/pollUrl")).await.ok();
    assert_eq!((&canceled["status"], &canceled["cancelReason"]), (&json!("canceled"), &json!("user_requested")));
    assert_eq!((&canceled["creditCost"], setting.balance().await), (&json!(0), 3), "nothing was charged");
    assert!(canceled["canceledAt"].is_string() && canceled.get("images").is_none(), "{canceled}");
    for target in [&setting.target, &other] {
        let node = setting.read(target).await;
        assert_eq!(node["metadata"]["job"]["status"], "canceled", "{node}");
    }
    // The nodes are free, and a second cancel changes nothing.
    assert_eq!(setting.user.delete(text(&job, "/pollUrl")).await.ok(), canceled);
    setting.job("generate", json!({})).await;
    books_balance(stack).await;
}
