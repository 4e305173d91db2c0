//! Bodies: slow, large, and costly to parse.

use std::time::Duration;

use e2e::api::{text, trial};
use e2e::{API_ROOT, Kind, Part, User};
use serde_json::{Value, json};

use super::TEXT;
use crate::scene::{Scene, address, crowd};
use crate::wire::{Line, drip, post, post_head};

const MIB: usize = 1024 * 1024;
/// The largest body of a batch.
const BATCH: usize = 16 * MIB;
/// The time in which a slow body must have been ended: 10 s without the least rate, and some more because the machine is busy.
const SLOW_MAX: Duration = Duration::from_secs(25);

/// The head of a sign-in, with a header that names the length or the coding.
fn sign_in(scene: &Scene, header: &str) -> Vec<u8> {
    format!(
        "POST /console/session HTTP/1.1\r\nhost: abuse\r\norigin: {}\r\nx-canvas-console: 1\r\ncontent-type: application/json\r\n\
         {header}\r\n",
        scene.stack.origin(0)
    )
    .into_bytes()
}

/// The path of batches of a canvas that is not there.
fn absent() -> String {
    format!("{API_ROOT}/canvases/absent/operations")
}

/// Slow bodies that announce 1 MiB, without a credential.
pub async fn sign_ins(scene: &Scene) {
    let head = sign_in(scene, &format!("content-length: {MIB}\r\n"));
    scene.during(slow(scene, 140, &[head], b"x", Duration::from_secs(1))).await;
}

/// Chunked bodies that announce nothing, at 4 KiB a second, without a credential.
pub async fn chunked_sign_ins(scene: &Scene) {
    let head = sign_in(scene, "transfer-encoding: chunked\r\n");
    let chunk = format!("400\r\n{}\r\n", " ".repeat(1024));
    scene.during(slow(scene, 140, &[head], chunk.as_bytes(), Duration::from_millis(250))).await;
}

/// Nine slow bodies of 16 MiB of one token.
pub async fn slow_batches(scene: &Scene) {
    let head = post_head(&absent(), &scene.user().await.token, &format!("content-length: {BATCH}\r\n"));
    scene.during(slow(scene, 9, &[head], &[b' '; 1024], Duration::from_secs(1))).await;
}

/// Sends slow bodies, each after one of these heads, and checks that none is received for long.
async fn slow(scene: &Scene, count: usize, heads: &[Vec<u8>], piece: &[u8], pause: Duration) {
    crowd(count, async |number| {
        loop {
            let head = &heads[number % heads.len()];
            let (outcome, took) = drip(address(number), scene.gateway(), head, piece, pause).await;
            scene.saw(outcome);
            if took > SLOW_MAX {
                scene.fail(format!("a slow body was received for {took:.1?}, longer than {SLOW_MAX:?}"));
            }
            tokio::time::sleep(pause).await;
        }
    })
    .await;
}

/// A batch of the largest size, most of it white space.
fn padded(token: &str) -> Vec<u8> {
    let body = json!({"validateOnly": true, "operations": [{"type": "canvas.update", "title": "t"}]}).to_string();
    post(&absent(), token, &format!("{body}{}", " ".repeat(BATCH - body.len())))
}

/// 64 bodies of 16 MiB of one account, as fast as they are received.
pub async fn full_speed(scene: &Scene) {
    let request = padded(&scene.user().await.token);
    let attack = crowd(64, async |number| {
        let mut line = Line::new(address(number), scene.gateway());
        loop {
            scene.saw(line.ask(&request).await);
        }
    });
    scene.during(attack).await;
}

/// Four accounts that hold all memory for bodies: three quarters of each body at once, the rest no faster than it must be.
pub async fn four_accounts(scene: &Scene) {
    let mut heads = Vec::new();
    for _ in 0..4 {
        let mut request = padded(&scene.user().await.token);
        request.truncate(request.len() * 3 / 4);
        heads.push(request);
    }
    scene.during(slow_but_allowed(scene, &heads)).await;
}

async fn slow_but_allowed(scene: &Scene, heads: &[Vec<u8>]) {
    let piece = vec![b' '; 80 * 1024];
    crowd(64, async |number| {
        loop {
            let head = &heads[number % heads.len()];
            let sent = drip(address(number), scene.gateway(), head, &piece, Duration::from_secs(1)).await;
            scene.saw(sent.0);
        }
    })
    .await;
}

/// The request of a dry run of these operations on a canvas of `user`.
async fn dry_run(user: &User, operations: Value) -> Vec<u8> {
    let canvas = user.make_canvas().await;
    post(
        &format!("{API_ROOT}/canvases/{}/operations", text(&canvas, "/id")),
        &user.token,
        &trial(operations).to_string(),
    )
}

/// 24 parallel dry runs of 1.6 MB of small objects.
pub async fn dry_runs(scene: &Scene) {
    let request = small_objects(&scene.user().await).await;
    scene.during(repeated(scene, 24, &request)).await;
}

/// The request of a dry run of 1.6 MB of small objects. Parsed, it takes about 40 MiB.
async fn small_objects(user: &User) -> Vec<u8> {
    let custom = json!({"list": vec![json!({"a": "x".repeat(50)}); 130]});
    let create = json!({"type": "node.create", "node": {"type": "text", "metadata": {"custom": custom}}});
    dry_run(user, json!(vec![create; 200])).await
}

async fn repeated(scene: &Scene, count: usize, request: &[u8]) {
    crowd(count, async |number| {
        let mut line = Line::new(address(number), scene.gateway());
        loop {
            scene.saw(line.ask(request).await);
        }
    })
    .await;
}

/// Bodies that take more than 200 MiB when they are parsed.
pub async fn swelling(scene: &Scene) {
    let user = scene.user().await;
    let list = format!("[{}1]", "[],".repeat(BATCH / 3 - 1000));
    let body = format!(
        r#"{{"validateOnly":true,"operations":[{{"type":"node.create","node":{{"type":"text","metadata":{{"custom":{{"l":{list}}}}}}}}}]}}"#
    );
    assert!(body.len() <= BATCH, "{} bytes", body.len());
    let request = post(&absent(), &user.token, &body);
    scene.during(repeated(scene, 4, &request)).await;
}

/// Bodies of 1 MiB that break a thousand rules.
pub async fn violations(scene: &Scene) {
    let user = scene.user().await;
    let members: serde_json::Map<String, Value> =
        (0..1000).map(|number| (format!("{number:x<1000}"), json!(number))).collect();
    let request = post(&format!("{API_ROOT}/canvases"), &user.token, &Value::Object(members).to_string());
    scene.during(repeated(scene, 64, &request)).await;
}

/// Deep bodies and bodies with many unknown members.
pub async fn deep(scene: &Scene) {
    let user = scene.user().await;
    let nested = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let members: serde_json::Map<String, Value> = (0..60_000).map(|number| (number.to_string(), Value::Null)).collect();
    let path = format!("{API_ROOT}/canvases");
    let requests = [nested, Value::Object(members).to_string()].map(|body| post(&path, &user.token, &body));
    let attack = crowd(8, async |number| {
        let mut line = Line::new(address(number), scene.gateway());
        loop {
            scene.saw(line.ask(&requests[number % 2]).await);
        }
    });
    scene.during(attack).await;
}

/// [`dry_runs`], amid which one of two gateways is killed.
pub async fn dry_runs_and_a_death(scene: &Scene) {
    let request = small_objects(&scene.user().await).await;
    let death = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        scene.kill(Part(Kind::Gateway, 1));
        std::future::pending::<()>().await
    };
    scene.during(async { tokio::join!(repeated(scene, 24, &request), death).0 }).await;
}

/// 64 writers of one canvas of a victim, each with as large a batch as fits quickly.
pub async fn writers(scene: &Scene, shared: &crate::victim::SharedCanvas) {
    let user = scene.user().await;
    scene.stack.share(&shared.owner, &shared.id, &user.uid, "editor").await;
    let path = format!("/canvases/canvas:{}:{}/operations", shared.owner.uid, shared.id);
    let revision = text(&shared.owner.canvas(&shared.id).await, "/revision").to_owned();
    let attack = crowd(64, async |_| {
        loop {
            let place =
                json!({"x": (e2e::api::unique() % 1_000_000) as f64, "y": (e2e::api::unique() % 1_000_000) as f64});
            let metadata = json!({"custom": {"text": "x".repeat(TEXT / 64)}});
            let create =
                json!({"type": "node.create", "node": {"type": "text", "position": place, "metadata": metadata}});
            let body = json!({"baseRevision": revision, "idempotencyKey": e2e::api::key(), "force": true, "operations": [create]});
            let sent = user.send(&path, &body).header("prefer", "handling=lenient").attempt().await;
            scene.replied(&sent);
        }
    });
    scene.during(attack).await;
}
