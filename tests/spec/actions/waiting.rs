//! Actions that nobody works on (decisions 8.4, 18.13).

use e2e::api::text;
use e2e::{Stack, pictures, suite};
use serde_json::json;

use super::setting::Setting;

suite! {
    actions_waiting on Stack::builder().env("CANVAS_ACTIVE_JOBS", 3);
    a_node_with_an_active_job_is_taken_and_kept,
    an_account_has_a_cap_on_active_jobs,
}

async fn a_node_with_an_active_job_is_taken_and_kept(stack: &Stack) {
    let user = stack.user().await;
    let setting = Setting::new(&user, pictures::png(64, 48)).await;
    user.send("/actions/resize/runs", &setting.request(&user).await).await.expect(202);
    user.send("/actions/resize/runs", &setting.request(&user).await).await.expect_error(409, "conflict", &[]);
    let now = user.canvas(&setting.canvas).await;
    let delete = json!([{"type": "node.delete", "nodeId": setting.target}]);
    let refused = user.batch(&setting.canvas, text(&now, "/revision"), delete).await;
    refused.expect_error(422, "unprocessable_entity", &["operations[0].nodeId"]);
    let node = setting.target_of(&now);
    assert!(node["metadata"]["job"].is_object(), "the node tells of its job: {node}");
}

async fn an_account_has_a_cap_on_active_jobs(stack: &Stack) {
    let (user, other) = (stack.user().await, stack.user().await);
    let mut started = Vec::new();
    for _ in 0..3 {
        let setting = Setting::new(&user, pictures::png(64, 48)).await;
        let request = setting.request(&user).await;
        let job = user.send("/actions/resize/runs", &request).await.expect(202).json();
        started.push((request, job));
    }
    let setting = Setting::new(&user, pictures::png(64, 48)).await;
    let over = setting.request(&user).await;
    let refused = user.send("/actions/resize/runs", &over).await;
    assert!(refused.header("retry-after").is_some(), "{refused}");
    refused.expect_error(429, "rate_limited", &[]);
    // A replay is answered all the same, and so is another account.
    let (request, job) = &started[0];
    assert_eq!(user.send("/actions/resize/runs", request).await.expect(202).json()["id"], job["id"]);
    other.start_resize(text(&other.make_canvas().await, "/id"), json!({})).await;
    // One that ends makes room, and the refused start took no key.
    user.delete(text(job, "/pollUrl")).await.ok();
    user.send("/actions/resize/runs", &over).await.expect(202);
}
