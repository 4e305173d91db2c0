//! Races between requests and work (docs/reliability.md#r5-equal-starts, docs/reliability.md#r6-cancel-against-completion).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use e2e::api::text;
use e2e::{Chance, Kind, PATIENCE, SETTLING, Stack, User, checker};
use futures_util::future::join_all;
use serde_json::{Value, json};
use testkit::Receiver;

use super::scale::{R5_ROUNDS, R6_ACTIONS, R10_JOBS, measured};
use super::{doubled, start};

/// Concurrent equal requests.
const EQUAL: usize = 200;
/// Concurrent races between a cancel and a completion.
const RACES_AT_ONCE: usize = 12;
/// Races on one canvas. Each changes it three times, and the checks need every change, of which a canvas keeps the last 1000.
const RACES_ON_A_CANVAS: usize = 300;
/// The minimum duration of each job. Without it, a small job is over before a cancel can arrive.
const WORK: &str = "action.loaded=sleep:400";
/// The initial delay between a start and its cancel, and the bounds of the later delays.
const LEAD: Duration = Duration::from_millis(60);
const LEADS: [Duration; 2] = [Duration::from_millis(1), Duration::from_secs(4)];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_200_equal_starts_over_two_gateways_one_job_comes() {
    let stack = start(doubled()).await;
    let user = stack.user().await;
    let rounds = R5_ROUNDS.now();
    for round in 0..rounds {
        let canvas = text(&user.make_canvas().await, "/id").to_owned();
        let asset = user.upload("image/png", e2e::images::png(64, 48)).await;
        let target = user.slot(&canvas).await;
        let request = user.resize_request(&canvas, &target, text(&asset, "/handle")).await;
        let starts = (0..EQUAL).map(|number| {
            let (user, request) = (user.at(&stack, number % 2), request.clone());
            async move { user.send("/actions/resize/runs", &request).await.expect(202).json() }
        });
        let answers = join_all(starts).await;
        let jobs: BTreeSet<&str> = answers.iter().map(|answer| text(answer, "/id")).collect();
        assert_eq!(jobs.len(), 1, "round {round}");
        assert_eq!(answers.iter().filter(|answer| answer["replayed"] == json!(true)).count(), EQUAL - 1);
        assert_eq!(user.finished(&answers[0]).await["status"], "succeeded");
    }
    checker::settled(&stack, SETTLING).await;
    assert_eq!(checker::invariants(&stack).await, [""; 0]);
    assert_eq!(stack.count("SELECT count(*) FROM jobs").await, rounds as i64);
    measured("R5", format_args!("{rounds} x {EQUAL} equal starts over two gateways, {rounds} jobs, no 5xx"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_against_a_completion_leaves_one_end_and_one_event() {
    let (chance, stack) = (Chance::new(), start(doubled().env("CANVAS_FAILPOINTS", WORK)).await);
    let receiver = stack.take_receiver();
    let racers = (0..RACES_AT_ONCE).map(|racer| {
        let (stack, receiver, chance) = (&stack, &receiver, chance.fork(racer as u64));
        async move {
            let user = stack.user().await;
            let asset = user.upload("image/png", e2e::images::png(64, 48)).await;
            let rounds: Vec<usize> = (0..R6_ACTIONS.now() / RACES_AT_ONCE).collect();
            let mut ends = Vec::new();
            for (leg, rounds) in rounds.chunks(RACES_ON_A_CANVAS).enumerate() {
                let canvas = text(&user.make_canvas().await, "/id").to_owned();
                let racer = leg * RACES_AT_ONCE + racer;
                let racing = Racing { stack, receiver, user: &user, racer, rounds: rounds.len() };
                let start = async |webhook: Value| {
                    let target = user.slot(&canvas).await;
                    let mut request = user.resize_request(&canvas, &target, text(&asset, "/handle")).await;
                    request["webhook"] = webhook;
                    user.send("/actions/resize/runs", &request).await.expect(202).json()
                };
                ends.extend(race(&racing, chance.fork(leg as u64), LEAD, start).await);
            }
            ends
        }
    });
    let ends = join_all(racers).await.concat();
    checker::settled(&stack, SETTLING).await;
    assert_eq!(checker::invariants(&stack).await, [""; 0], "seed {}", chance.seed());
    measured("R6", format_args!("Actions: {}", judge(&ends, &receiver, &chance)));
}

/// The account that races, and how often.
pub(super) struct Racing<'a> {
    pub stack: &'a Stack,
    pub receiver: &'a Receiver,
    pub user: &'a User,
    pub racer: usize,
    pub rounds: usize,
}

/// Starts jobs one after the other, cancels each after a delay, and returns their final records with the paths of their webhooks.
/// The delay becomes shorter after a success and longer after a cancel, so that both meet on a machine of any speed.
pub(super) async fn race(
    racing: &Racing<'_>,
    mut chance: Chance,
    mut lead: Duration,
    start: impl AsyncFn(Value) -> Value,
) -> Vec<(Value, String)> {
    let (stack, user) = (racing.stack, racing.user);
    let mut ends = Vec::new();
    for number in 0..racing.rounds {
        let path = format!("/{}/{number}", racing.racer);
        let job = start(json!({"url": racing.receiver.url(&path), "secret": e2e::load::SECRET})).await;
        tokio::time::sleep(lead / 2 + chance.time(lead)).await;
        let gateways = stack.parts().iter().filter(|part| part.0 == Kind::Gateway).count();
        let answer = user.at(stack, chance.below(gateways)).delete(text(&job, "/pollUrl")).await;
        assert!(matches!(answer.status, 200 | 202), "{answer}");
        let end = user.finished(&job).await;
        if answer.status == 200 {
            assert_eq!(answer.json()["status"], end["status"], "the response to the cancel reports the actual end");
        }
        lead = if end["status"] == "succeeded" { lead / 2 } else { lead * 2 }.clamp(LEADS[0], LEADS[1]);
        ends.push((end, path));
    }
    ends
}

/// Asserts that every job ended in one of the two ways, that both occurred, and that each job sent one event. Reports the counts.
pub(super) fn judge(ends: &[(Value, String)], receiver: &Receiver, chance: &Chance) -> String {
    // An event may be sent twice, but a run has one.
    let mut sent: BTreeMap<String, BTreeSet<(String, String)>> = BTreeMap::new();
    for request in receiver.requests() {
        let event: Value = serde_json::from_slice(&request.body).expect("JSON");
        sent.entry(request.path).or_default().insert((event["id"].to_string(), event["type"].to_string()));
    }
    for (end, path) in ends {
        let events: Vec<String> = sent.remove(path).unwrap_or_default().into_iter().map(|(_, kind)| kind).collect();
        let wanted = [format!("\"image_job.{}\"", text(end, "/status"))];
        assert_eq!(events, wanted, "{path}: {end}");
    }
    let counted = |status: &str| ends.iter().filter(|(end, _)| end["status"] == status).count();
    let (succeeded, canceled) = (counted("succeeded"), counted("canceled"));
    assert_eq!(succeeded + canceled, ends.len());
    assert!(succeeded > 0 && canceled > 0, "seed {}: both happen", chance.seed());
    format!("{} races, {succeeded} succeeded, {canceled} were canceled", ends.len())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_goes_on_beside_an_old_snapshot() {
    let (chance, stack) = (Chance::new(), start(doubled()).await);
    // An open snapshot, as a backup holds it, prevents the removal of dead rows (docs/reliability.md#r10-job-throughput).
    let mut reader = stack.pool().begin().await.expect("begins");
    sqlx::query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ").execute(&mut *reader).await.expect("sets");
    sqlx::query("SELECT count(*) FROM task_queue").execute(&mut *reader).await.expect("takes its snapshot");
    let load =
        e2e::Load::prepare(&stack, &chance, e2e::Plan { jobs: R10_JOBS.now(), clients: 8, pause: Duration::ZERO })
            .await;
    load.run().await;
    checker::check(&stack, &load, SETTLING.max(PATIENCE)).await;
    let old: i64 = sqlx::query_scalar("SELECT count(*) FROM jobs").fetch_one(&mut *reader).await.expect("reads");
    assert_eq!(old, 0, "the snapshot was held all the time");
    load.assert_untroubled();
    measured("R10", format_args!("{} jobs with an old snapshot open", R10_JOBS.now()));
}
