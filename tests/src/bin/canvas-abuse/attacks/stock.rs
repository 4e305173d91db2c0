//! What an account keeps.

use std::time::Duration;

use e2e::api::{key, text};
use e2e::{User, images};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::large_nodes;
use crate::scene::{Pace, Scene, crowd};

/// The quota of accounts in these rows, in bytes. The rows set it.
pub const QUOTA: &str = "209715200";
/// The bytes by which a quota may be exceeded: what is written while the count lags, 64 KiB for each canvas.
const QUOTA_MORE: i64 = 64 << 10;
/// The pause after a refusal.
const REST: Duration = Duration::from_millis(50);

/// The bytes of the graphs of an account, of its undoable deletions and its assets.
async fn kept(scene: &Scene, user: &User) -> i64 {
    let sql = "SELECT (SELECT coalesce(sum(graph_bytes + deleted_bytes), 0) FROM canvases WHERE owner_uid = $1)::bigint
                    + (SELECT coalesce(sum(bytes + coalesce(original_bytes, 0)), 0) FROM assets WHERE owner_uid = $1)::bigint";
    scene.stack.count_of(sql, &user.uid).await
}

/// Checks that an account keeps no more than its quota.
async fn judge_quota(scene: &Scene, user: &User, canvases: i64) {
    let (kept, quota) = (kept(scene, user).await, QUOTA.parse::<i64>().expect("a number"));
    scene.note(format!("the account keeps {} MiB", kept >> 20));
    if kept > quota + canvases * QUOTA_MORE {
        scene.fail(format!("the account keeps {kept} bytes, more than its quota of {quota}"));
    }
}

/// Sends a batch for the newest revision, which is kept in `revision`.
async fn batch(scene: &Scene, user: &User, id: &str, revision: &mut String, operations: &Value) -> Option<Value> {
    let body = json!({"baseRevision": revision, "idempotencyKey": key(), "operations": operations, "force": true});
    let sent = user.send(&format!("/canvases/{id}/operations"), &body).attempt().await;
    scene.replied(&sent);
    let made = sent.ok().filter(|reply| reply.status == 200)?.json();
    text(&made, "/canvas/revision").clone_into(revision);
    Some(made)
}

/// Canvases that are filled as fast as it goes.
pub async fn large_batches(scene: &Scene) {
    let user = scene.user().await;
    let operations: Vec<Value> = (0..4).map(|_| large_nodes(190)).collect();
    let attack = crowd(2, async |_| {
        loop {
            let made = user.send("/canvases", &json!({})).attempt().await;
            scene.replied(&made);
            let Some(made) = made.ok().filter(|reply| reply.status == 201).map(|reply| reply.json()) else {
                sleep(REST).await;
                continue;
            };
            let (id, mut revision) = (text(&made, "/canvas/id"), text(&made, "/canvas/revision").to_owned());
            for operations in &operations {
                if batch(scene, &user, id, &mut revision, operations).await.is_none() {
                    sleep(REST).await;
                }
            }
        }
    });
    scene.during(attack).await;
    judge_quota(scene, &user, 1000).await;
}

/// Empty canvases. All but the last of those that an account can have are made by SQL.
pub async fn many_canvases(scene: &Scene) {
    const CANVASES: i64 = 10_000;
    let user = scene.user().await;
    sqlx::query(
        "INSERT INTO canvases (owner_uid, id, title, revision, node_count, graph_bytes)
         SELECT $1, 'many-' || number, 'Many', 'many-' || number, 0, 0 FROM generate_series(1, $2) number",
    )
    .bind(&user.uid)
    .bind(CANVASES - 20)
    .execute(scene.stack.pool())
    .await
    .expect("makes canvases");
    scene.stack.execute("ANALYZE").await;
    let attack = crowd(4, async |_| {
        let mut pace = Pace::new(4.0);
        loop {
            pace.wait().await;
            scene.replied(&user.send("/canvases", &json!({})).attempt().await);
        }
    });
    scene.during(attack).await;
    let made = scene.stack.count_of("SELECT count(*) FROM canvases WHERE owner_uid = $1", &user.uid).await;
    if made > CANVASES {
        scene.fail(format!("the account has {made} canvases, more than {CANVASES}"));
    }
}

/// Nodes that are created and deleted in turn, so that what can be undone grows.
pub async fn undo(scene: &Scene) {
    let user = scene.user().await;
    let operations = large_nodes(190);
    let attack = crowd(8, async |_| {
        let mut board = None;
        loop {
            let (id, revision) = match &mut board {
                Some(board) => board,
                None => {
                    let made = user.send("/canvases", &json!({})).attempt().await;
                    scene.replied(&made);
                    let Some(made) = made.ok().filter(|reply| reply.status == 201).map(|reply| reply.json()) else {
                        sleep(REST).await;
                        continue;
                    };
                    board.insert((text(&made, "/canvas/id").to_owned(), text(&made, "/canvas/revision").to_owned()))
                }
            };
            let Some(made) = batch(scene, &user, id, revision, &operations).await else {
                sleep(REST).await;
                continue;
            };
            let ids = made["resolvedIds"].as_object().cloned().unwrap_or_default();
            let delete: Value = ids.values().map(|id| json!({"type": "node.delete", "nodeId": id})).collect();
            batch(scene, &user, id, revision, &delete).await;
        }
    });
    scene.during(attack).await;
    judge_quota(scene, &user, 8).await;
}

/// Uploads of one pixel. Each counts as much as its rows cost.
pub async fn small_uploads(scene: &Scene) {
    const LEAST: i64 = 64 << 10;
    let user = scene.user().await;
    let attack = crowd(4, async |_| {
        let mut pace = Pace::new(5.0);
        loop {
            pace.wait().await;
            scene.replied(&user.post("/assets").body("image/png", images::png(1, 1)).attempt().await);
        }
    });
    scene.during(attack).await;
    let quota = scene.stack.admin(&["admin", "account", "quota", "--account", &user.uid]).await.expect_success();
    let (counted, uploads) = (quota["storedBytes"].as_i64().unwrap_or_default(), scene.count(201) as i64);
    scene.note(format!("{uploads} uploads count {counted} bytes"));
    if counted < uploads * LEAST {
        scene.fail(format!("{uploads} uploads count {counted} bytes, less than {LEAST} each"));
    }
}
