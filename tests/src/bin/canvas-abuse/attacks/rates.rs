//! Requests a minute, credentials and open waits.

use std::time::Duration;

use e2e::api::{key, text};
use e2e::{API_ROOT, Service};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::large_nodes;
use crate::scene::{Pace, Scene, address, crowd};
use crate::wire::{Line, Outcome, Wire, get};

/// The most active tokens of an account, and open waits and streams of one of them (docs/reference/limits.md).
const TOKENS: usize = 20;
const WAITS: usize = 64;
/// Failed credentials of an address in a minute, which may be made at once, and as many more as may be on their way.
const FAILURES: u64 = 60;
const FAILURES_MORE: u64 = 5;

/// A token of the right form that never existed.
pub fn bad_token() -> String {
    format!("cba_{}.{}", key(), "A".repeat(43))
}

/// Checks that not many more failed credentials were looked up than addresses have in this time.
pub fn judge_failures(scene: &Scene, took: Duration, addresses: u64) {
    let most = addresses * (FAILURES + FAILURES * took.as_secs() / 60 + FAILURES_MORE);
    let looked_up = scene.count(401);
    if looked_up > most {
        scene.fail(format!("{looked_up} failed credentials were answered with 401, more than {most}"));
    }
}

/// 20 tokens of one account, each at its own rate.
pub async fn tokens(scene: &Scene) {
    let tokens = make_tokens(scene).await;
    scene.during(at_their_rate(scene, &tokens)).await;
}

/// The same, while Redis is stopped.
pub async fn tokens_without_redis(scene: &Scene) {
    let tokens = make_tokens(scene).await;
    let stop = async {
        sleep(Duration::from_secs(3)).await;
        scene.services.as_ref().expect("own services").kill(Service::Redis).await;
        std::future::pending::<()>().await
    };
    scene.during(async { tokio::join!(at_their_rate(scene, &tokens), stop).0 }).await;
}

async fn make_tokens(scene: &Scene) -> Vec<String> {
    let account = scene.account().await;
    let mut tokens = Vec::with_capacity(TOKENS);
    for _ in 0..TOKENS {
        tokens.push(scene.stack.user_of(&account, "all").await.token);
    }
    tokens
}

async fn at_their_rate(scene: &Scene, tokens: &[String]) {
    crowd(tokens.len(), async |number| {
        let (mut line, mut pace) = (Line::new(address(number), scene.gateway()), Pace::new(20.0));
        let request = get(&format!("{API_ROOT}/auth/status"), &tokens[number], "");
        loop {
            pace.wait().await;
            scene.saw(line.ask(&request).await);
        }
    })
    .await;
}

/// A person who makes a token, uses it as fast as it can, and revokes it.
pub async fn renewed_tokens(scene: &Scene) {
    let person = scene.stack.person(&scene.account().await).await;
    let new = json!({"label": "abuse", "scopes": ["canvas:read"]});
    let attack = async {
        let mut line = Line::new(address(0), scene.gateway());
        loop {
            let made = person.send("/tokens", &new).attempt().await;
            scene.replied(&made);
            let Some(made) = made.ok().filter(|reply| reply.status == 201) else {
                sleep(Duration::from_millis(50)).await;
                continue;
            };
            let made: Value = made.json();
            let request = get(&format!("{API_ROOT}/canvases"), text(&made, "/secret"), "");
            for _ in 0..200 {
                scene.saw(line.ask(&request).await);
            }
            let path = format!("/tokens/{}", text(&made, "/token/id"));
            scene.replied(&person.delete(&path).attempt().await);
        }
    };
    scene.during(attack).await;
}

/// As many streams as 20 tokens and 10 sessions of an account can open.
pub async fn streams(scene: &Scene) {
    /// Waits and streams of one account in a gateway (docs/reference/limits.md).
    const OF_ACCOUNT: usize = 256;
    let account = scene.account().await;
    let mut requests = Vec::new();
    let mut canvas = None;
    for _ in 0..TOKENS {
        let user = scene.stack.user_of(&account, "all").await;
        if canvas.is_none() {
            canvas = Some(text(&user.make_canvas().await, "/id").to_owned());
        }
        let path = format!("{API_ROOT}/events?canvas={}", canvas.as_deref().unwrap_or_default());
        requests.push(get(&path, &user.token, ""));
    }
    for _ in 0..10 {
        let person = scene.stack.person(&account).await;
        let path = format!("/console{API_ROOT}/events?canvas={}", canvas.as_deref().unwrap_or_default());
        requests.push(
            format!(
                "GET {path} HTTP/1.1\r\nhost: abuse\r\ncookie: __Host-canvas={}\r\norigin: {}\r\nx-canvas-console: 1\r\n\r\n",
                person.session,
                scene.stack.origin(0)
            )
            .into_bytes(),
        );
    }
    let open = std::sync::atomic::AtomicUsize::new(0);
    let most = std::sync::atomic::AtomicUsize::new(0);
    let order = std::sync::atomic::Ordering::Relaxed;
    let attack = crowd(requests.len() * WAITS, async |number| {
        // Not all in the same moment.
        sleep(Duration::from_millis(2 * number as u64)).await;
        loop {
            let request = &requests[number % requests.len()];
            match Wire::open(address(number % 40), scene.gateway()).await {
                Err(_) => scene.saw(Outcome::Unreachable),
                Ok(mut wire) => {
                    let mut head = [0; 12];
                    if wire.send(request).await.is_err() || !wire.fill(&mut head).await {
                        scene.saw(Outcome::Closed);
                        sleep(Duration::from_secs(1)).await;
                        continue;
                    }
                    let status = std::str::from_utf8(&head[9..]).ok().and_then(|status| status.parse().ok());
                    scene.saw(status.map_or(Outcome::Closed, Outcome::Status));
                    if status == Some(200) {
                        most.fetch_max(open.fetch_add(1, order) + 1, order);
                        while wire.take(4096).await > 0 {}
                        open.fetch_sub(1, order);
                    }
                }
            }
            sleep(Duration::from_secs(5)).await;
        }
    });
    scene.during(attack).await;
    let most = most.into_inner();
    scene.note(format!("at most {most} streams open at once"));
    if most > OF_ACCOUNT {
        scene.fail(format!("one account had {most} open streams, more than {OF_ACCOUNT}"));
    }
}

/// Long polls, and statements that read as much as one can.
pub async fn polls_and_changes(scene: &Scene) {
    let user = scene.user().await;
    let canvas = user.make_canvas().await;
    let (id, first) = (text(&canvas, "/id"), text(&canvas, "/revision"));
    user.batch(id, first, large_nodes(150)).await.ok();
    let newest = text(&user.canvas(id).await, "/revision").to_owned();
    let changes = get(&format!("{API_ROOT}/canvases/{id}/changes?since={first}"), &user.token, "");
    let poll = get(&format!("{API_ROOT}/canvases/{id}/changes?since={newest}"), &user.token, "prefer: wait=30\r\n");
    let attack = crowd(2 * WAITS, async |number| {
        let mut line = Line::new(address(number), scene.gateway());
        loop {
            let request = if number < WAITS { &poll } else { &changes };
            scene.saw(line.ask(request).await);
            // A refusal comes at once.
            sleep(Duration::from_millis(20)).await;
        }
    });
    scene.during(attack).await;
}

/// 600 bad tokens a second of one address, which it shares with a victim.
pub async fn bad_tokens(scene: &Scene) {
    let began = Instant::now();
    scene.during(guesses(scene, 30, 1, 600.0)).await;
    judge_failures(scene, began.elapsed(), 1);
}

/// Random ids of tokens from 1000 addresses.
pub async fn bad_tokens_from_everywhere(scene: &Scene) {
    let began = Instant::now();
    scene.during(guesses(scene, 1000, 1000, 1200.0)).await;
    judge_failures(scene, began.elapsed(), 1000);
}

/// `count` attackers with this many addresses, who guess at this rate together.
async fn guesses(scene: &Scene, count: usize, addresses: usize, rate: f64) {
    crowd(count, async |number| {
        let mut line = Line::new(address(number % addresses), scene.gateway());
        let mut pace = Pace::new(rate / count as f64);
        sleep(Duration::from_secs_f64(number as f64 / rate)).await;
        loop {
            pace.wait().await;
            let request = get(&format!("{API_ROOT}/auth/status"), &bad_token(), "");
            scene.saw(line.ask(&request).await);
        }
    })
    .await;
}
