//! Budgets under concurrent starts and kills (docs/reference/authentication.md#budgets).

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use e2e::api::{key, text};
use e2e::{Chance, Part, Reply, Stack, User, checker};
use futures_util::StreamExt;
use futures_util::stream;
use serde_json::{Value, json};

use super::{OTHER_GATEWAY, doubled, start};

/// Starts, how many of them at once, and the budget that they want to pass.
const STARTS: usize = 500;
const AT_ONCE: usize = 60;
const BUDGET: i64 = 37;
/// Kills of a gateway, and the time between two.
const KILLS: usize = 4;
const PAUSE: Duration = Duration::from_millis(400);

/// What the ledger says that the token has spent.
async fn spent(stack: &Stack, user: &User) -> i64 {
    let sum = "SELECT coalesce(-sum(amount), 0)::bigint FROM ledger WHERE authority::text = $1";
    stack.count_of(sum, &user.token_id).await
}

/// Starts a video until it is answered, and cancels some. Returns the credits that it has cost.
async fn started(stack: &Stack, user: &User, number: usize) -> i64 {
    let body = json!({"model": "animatic", "prompt": "a kite", "idempotencyKey": key()});
    let send = async |gateway| user.at(stack, gateway).send("/videos/generate", &body).attempt().await;
    let job = match answer(number, send).await {
        (202, job) => job,
        (402, refusal) => {
            assert_eq!(refusal["error"]["details"]["budget"]["max"], BUDGET, "{refusal}");
            return 0;
        }
        (status, body) => panic!("{status}: {body}"),
    };
    if !number.is_multiple_of(5) {
        return 1;
    }
    let path = text(&job, "/pollUrl");
    let (_, ended) = answer(number, async |gateway| user.at(stack, gateway).delete(path).attempt().await).await;
    assert_eq!(ended["status"], "canceled", "{ended}");
    0
}

/// Asks one gateway after the other until one answers.
async fn answer(first: usize, ask: impl AsyncFn(usize) -> Result<Reply, reqwest::Error>) -> (u16, Value) {
    for attempt in first.. {
        match ask(attempt % 2).await {
            Ok(reply) if reply.status < 500 && reply.status != 429 => return (reply.status, reply.json()),
            Ok(_) | Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
    unreachable!("attempts do not end")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_starts_at_two_gateways_pass_a_budget_whoever_is_killed() {
    let chance = Chance::new();
    // No worker: what is started stays, or is canceled and returns.
    let stack = start(doubled().image_workers(0).dispatchers(0)).await;
    let account = stack.account().await;
    let user = stack.user_of(&account, "all").await;
    stack.grant(&user.uid, STARTS as i64).await;
    let person = stack.person(&account).await;
    let budgets = json!({"budgets": [{"unit": "credits", "period": "total", "max": BUDGET}]});
    person.put(&format!("/tokens/{}/budgets", user.token_id), &budgets).await.ok();
    let is_over = AtomicBool::new(false);
    let load = async {
        let starts = stream::iter(0..STARTS).map(|number| started(&stack, &user, number)).buffer_unordered(AT_ONCE);
        let cost: Vec<i64> = starts.collect().await;
        is_over.store(true, Ordering::Relaxed);
        cost.iter().sum::<i64>()
    };
    let kills = async {
        for number in 0..KILLS {
            tokio::time::sleep(PAUSE).await;
            let part = if number % 2 == 0 { OTHER_GATEWAY } else { Part::GATEWAY };
            stack.kill(part);
            stack.restart(part).await;
        }
    };
    let watch = async {
        while !is_over.load(Ordering::Relaxed) {
            let spent = spent(&stack, &user).await;
            assert!((0..=BUDGET).contains(&spent), "seed {}: {spent} spent", chance.seed());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let (cost, (), ()) = tokio::join!(load, kills, watch);
    let status = user.get("/auth/status").await.ok();
    assert_eq!(status["budgets"][0]["spent"].as_i64(), Some(cost), "{status}");
    assert_eq!((spent(&stack, &user).await, status["creditBalance"].as_i64()), (cost, Some(STARTS as i64 - cost)));
    assert!((1..=BUDGET).contains(&cost), "{cost}");
    assert_eq!(checker::invariants(&stack).await, [""; 0]);
}
