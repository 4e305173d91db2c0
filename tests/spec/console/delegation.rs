//! Recipe runs of a session that ends (docs/reference/console.md#sign-out).

use e2e::api::{key, text};
use e2e::{Person, Stack, images};
use serde_json::json;

/// Before the second step of the run asks its model.
const FAILPOINT: &str = "generation.submitting";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_ends_with_the_revocation_of_its_session_and_not_with_a_sign_out() {
    let stack = Stack::builder().image_workers(1).hold(FAILPOINT).start().await;
    let hold = stack.hold(FAILPOINT);
    for (path, is_revoked) in [("/sessions", true), ("/session", false)] {
        hold.arm();
        let account = stack.account().await;
        stack.grant(&account.uid, 5).await;
        let (user, person) = (stack.user_of(&account, "all").await, stack.person(&account).await);
        let canvas = user.make_canvas().await;
        let image = user.upload("image/png", images::png(8, 8)).await;
        let start = json!({
            "canvasId": canvas["id"], "baseRevision": canvas["revision"], "idempotencyKey": key(),
            "inputs": {"product": image["handle"], "offer": "Chairs, a fifth off until Sunday."},
        });
        let run = person.send(&Person::api("/recipes/ad-copy-and-banner/runs"), &start).await.expect(202).json();
        hold.reached().await;
        person.delete(path).await.expect(204);
        if is_revoked {
            // The run ends although the worker is still held.
            let ended = user.finished(&run).await;
            assert_eq!((text(&ended, "/status"), text(&ended, "/failure/code")), ("failed", "delegation_revoked"));
        }
        hold.release();
        let ended = user.finished(&run).await;
        assert_eq!(ended["status"] == "succeeded", !is_revoked, "{ended}");
    }
}
