//! Large canvases, read compressed, in turn, and slowly.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use e2e::api::text;
use e2e::{API_ROOT, Part, User};

use super::large_nodes;
use crate::processor::seconds;
use crate::scene::{Pace, Scene, address, crowd};
use crate::wire::{Line, Outcome, Wire, get};

/// Nodes of a large canvas in one batch of less than 16 MiB, and batches of it: 58 MB in all.
const NODES: usize = 190;
const BATCHES: usize = 5;

/// Creates a canvas of 58 MB and returns its id.
async fn large(user: &User) -> String {
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id").to_owned();
    let mut revision = text(&canvas, "/revision").to_owned();
    for _ in 0..BATCHES {
        let made = user.batch(&id, &revision, large_nodes(NODES)).await.ok();
        text(&made, "/canvas/revision").clone_into(&mut revision);
    }
    id
}

fn read(user: &User, id: &str, encoding: &str) -> Vec<u8> {
    get(&format!("{API_ROOT}/canvases/{id}"), &user.token, &format!("accept-encoding: {encoding}\r\n"))
}

/// 64 readers of one large canvas who prefer the costliest coding.
pub async fn compressed(scene: &Scene) {
    let user = scene.user().await;
    let id = large(&user).await;
    let request = read(&user, &id, "br;q=1, zstd;q=0.9, gzip;q=0.8");
    let began = AtomicUsize::new(0);
    let milliseconds = || (seconds(&scene.stack, Part::GATEWAY) * 1000.0) as usize;
    let attack = async {
        began.store(milliseconds(), Ordering::Relaxed);
        crowd(64, async |number| {
            let mut line = Line::new(address(number), scene.gateway());
            loop {
                scene.saw(line.ask(&request).await);
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        })
        .await;
    };
    scene.during(attack).await;
    let used = milliseconds().saturating_sub(began.into_inner());
    let answers = scene.count(200).max(1);
    scene.note(format!("{answers} reads, {:.0} ms of the gateway's processors for each", used as f64 / answers as f64));
}

/// Readers without a credential of the longest text that needs none, 300 a second of one address.
pub async fn contract(scene: &Scene) {
    let request = format!("GET {API_ROOT}/openapi.json HTTP/1.1\r\nhost: abuse\r\naccept-encoding: gzip\r\n\r\n");
    let before = seconds(&scene.stack, Part::GATEWAY);
    let attack = crowd(30, async |_| {
        let (mut line, mut pace) = (Line::new(address(0), scene.gateway()), Pace::new(10.0));
        loop {
            pace.wait().await;
            scene.saw(line.ask(request.as_bytes()).await);
        }
    });
    scene.during(attack).await;
    let used = (seconds(&scene.stack, Part::GATEWAY) - before) * 1000.0;
    let answers = scene.count(200).max(1);
    scene
        .note(format!("{answers} reads, at most {:.1} ms of the gateway's processors for each", used / answers as f64));
}

/// Readers of 20 large canvases in turn, which do not fit into the cache.
pub async fn in_turn(scene: &Scene) {
    let user = scene.user().await;
    let first = large(&user).await;
    let mut ids = vec![first.clone()];
    for number in 1..20 {
        ids.push(copy(scene, &user, &first, number).await);
    }
    scene.stack.execute("ANALYZE").await;
    let attack = crowd(8, async |number| {
        let mut line = Line::new(address(number), scene.gateway());
        let mut turn = number * 5;
        loop {
            turn += 1;
            scene.saw(line.ask(&read(&user, &ids[turn % ids.len()], "gzip")).await);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    scene.during(attack).await;
}

/// Copies a canvas by SQL, because twenty of them through the API would take minutes.
async fn copy(scene: &Scene, user: &User, id: &str, number: usize) -> String {
    let copy = format!("{id}-{number}");
    sqlx::query(
        "WITH made AS (
             INSERT INTO canvases (owner_uid, id, title, revision, node_count, connection_count, graph_bytes)
             SELECT owner_uid, $3, title, $3, node_count, connection_count, graph_bytes
             FROM canvases WHERE owner_uid = $1 AND id = $2 RETURNING key
         )
         INSERT INTO nodes (canvas_key, id, type, title, x, y, width, height, agent_owned, metadata, server)
         SELECT made.key, n.id, n.type, n.title, n.x, n.y, n.width, n.height, n.agent_owned, n.metadata, n.server
         FROM made, nodes n JOIN canvases c ON c.key = n.canvas_key WHERE c.owner_uid = $1 AND c.id = $2 ORDER BY n.ordinal",
    )
    .bind(&user.uid)
    .bind(id)
    .bind(&copy)
    .execute(scene.stack.pool())
    .await
    .expect("copies a canvas");
    copy
}

/// 64 readers of a large canvas who read 16 KiB a second.
pub async fn slow_readers(scene: &Scene) {
    let user = scene.user().await;
    let request = read(&user, &large(&user).await, "identity");
    let attack = crowd(64, async |number| {
        loop {
            let Ok(mut wire) = Wire::open_narrow(address(number), scene.gateway()).await else {
                scene.saw(Outcome::Unreachable);
                tokio::time::sleep(Duration::from_secs(1)).await;
                continue;
            };
            let mut head = [0; 12];
            if wire.send(&request).await.is_err() || !wire.fill(&mut head).await {
                scene.saw(Outcome::Closed);
            } else {
                let status = std::str::from_utf8(&head[9..]).ok().and_then(|status| status.parse().ok());
                scene.saw(status.map_or(Outcome::Closed, Outcome::Status));
                while wire.take(16 * 1024).await > 0 {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    });
    scene.during(attack).await;
}
