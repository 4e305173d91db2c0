//! What a runner promises when everything around it works.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use db::tasks::{Floors, TaskState, Wanted, claim, promote};
use domain::message::Queue;
use spine::{Decision, RunnerOptions};
use testkit::wait_for;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::world::{Log, PATIENCE, Script, World, looking, options, settle};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_task_behind_five_thousand_of_another_lane_begins_within_twice_the_slots() {
    const SLOTS: usize = 4;
    let (world, log) = (World::new().await, Log::default());
    world.enqueue_many("busy", 5000).await;
    let (relay, _) = world.relay();
    let runner = world.runner(Script::settling(world.pool(), &log), options(SLOTS));
    log.until(40).await;
    world.enqueue("late").await;
    let before = log.len();
    wait_for("the late task", PATIENCE, async || log.lanes().iter().any(|lane| lane == "late").then_some(())).await;
    let place = log.lanes().iter().position(|lane| lane == "late").expect("has begun");
    assert!(place <= before + 2 * SLOTS, "begins as number {place}, {before} had begun when it was committed");
    runner.stop().await;
    relay.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_runners_never_run_one_task_at_once_nor_twice() {
    let (world, log) = (World::new().await, Log::default());
    let now_running = Arc::new(Mutex::new(HashSet::new()));
    let script = {
        let (pool, log) = (world.pool().clone(), log.clone());
        Script::new(move |task, lease| {
            let (pool, log, now_running) = (pool.clone(), log.clone(), now_running.clone());
            async move {
                log.note(&task);
                assert!(now_running.lock().expect("whole").insert(task.id), "runs already");
                tokio::task::yield_now().await;
                now_running.lock().expect("whole").remove(&task.id);
                settle(&pool, &task, &lease).await
            }
        })
    };
    let (one, other) = (world.runner(script.clone(), looking(5)), world.runner(script, looking(3)));
    let (relay, nudge) = world.relay();
    for lane in 0..10 {
        world.enqueue_many(&format!("lane {lane}"), 30).await;
        nudge.nudge();
    }
    world.until_no_task_is_left().await;
    let ids = log.ids();
    assert_eq!((ids.len(), ids.into_iter().collect::<HashSet<_>>().len()), (300, 300));
    one.stop().await;
    other.stop().await;
    relay.stop().await;
}

#[tokio::test]
async fn a_lost_message_costs_no_more_than_an_idle_look_and_a_lost_backlog_drains_at_full_speed() {
    let (world, log) = (World::new().await, Log::default());
    let options = RunnerOptions { idle_claim: Duration::from_secs(1), ..options(2) };
    let runner = world.runner(Script::settling(world.pool(), &log), options);
    // No relay: no message ever comes.
    world.enqueue("a").await;
    let start = Instant::now();
    log.until(1).await;
    assert!(start.elapsed() < Duration::from_millis(1900), "{:?}", start.elapsed());
    // Fifty tasks in two slots, at one look a second, would take half a minute.
    world.enqueue_many("a", 50).await;
    let start = Instant::now();
    world.until_no_task_is_left().await;
    assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
    runner.stop().await;
}

#[tokio::test]
async fn a_duplicate_message_runs_nothing_twice() {
    let (world, log) = (World::new().await, Log::default());
    let runner = world.runner(Script::settling(world.pool(), &log), options(1));
    let first = world.enqueue("a").await;
    world.wake(first, 6).await;
    log.until(1).await;
    let second = world.enqueue("a").await;
    world.wake(second, 1).await;
    log.until(2).await;
    world.until_no_task_is_left().await;
    assert_eq!(log.ids(), [first, second]);
    runner.stop().await;
}

#[tokio::test]
async fn a_lane_at_its_cap_takes_no_further_slot_and_holds_up_nobody() {
    let world = World::new().await;
    let (gate, log) = (Arc::new(Semaphore::new(0)), Log::default());
    let script = {
        let (pool, log, gate) = (world.pool().clone(), log.clone(), gate.clone());
        Script::new(move |task, lease| {
            let (pool, log, gate) = (pool.clone(), log.clone(), gate.clone());
            async move {
                log.note(&task);
                if task.lane == "slow" {
                    gate.acquire().await?.forget();
                }
                settle(&pool, &task, &lease).await
            }
        })
    };
    world.enqueue_many("slow", 10).await;
    world.enqueue_many("other", 5).await;
    let runner = world.runner(script, RunnerOptions { lane_cap: Some(2), ..options(3) });
    log.until(7).await;
    wait_for("the end of the others", PATIENCE, async || (world.stats().await.leased == 2).then_some(())).await;
    assert_eq!(world.stats().await.ready, 8);
    assert_eq!(log.lanes().iter().filter(|lane| *lane == "slow").count(), 2);
    // A place in the lane is taken at once, though no message and no idle look comes.
    for begun in 8..=15 {
        gate.add_permits(1);
        log.until(begun).await;
        assert_eq!(world.stats().await.leased, 2);
    }
    gate.add_permits(2);
    world.until_no_task_is_left().await;
    runner.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_may_have_killed_its_workers_runs_alone_one_after_the_other_beside_a_full_queue() {
    let (world, log) = (World::new().await, Log::default());
    let (in_hand, disturbed) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let script = {
        let (pool, log) = (world.pool().clone(), log.clone());
        let (in_hand, disturbed) = (in_hand.clone(), disturbed.clone());
        Script::new(move |task, lease| {
            let (pool, log) = (pool.clone(), log.clone());
            let (in_hand, disturbed) = (in_hand.clone(), disturbed.clone());
            async move {
                log.note(&task);
                let beside = in_hand.fetch_add(1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(100)).await;
                let left = in_hand.fetch_sub(1, Ordering::SeqCst) - 1;
                if task.lane == "suspects" {
                    disturbed.fetch_add(beside + left, Ordering::SeqCst);
                }
                settle(&pool, &task, &lease).await
            }
        })
    };
    world.enqueue_many("suspects", 3).await;
    let mut conn = world.pool().acquire().await.expect("connects");
    for _ in 0..2 {
        let lease = Duration::from_millis(1);
        let wanted = Wanted { queue: Queue::Image, limit: 3, suspects: false, lanes: None, lease, owner: "the dead" };
        assert_eq!(claim(&mut conn, &wanted).await.expect("claims").len(), 3);
        wait_for("the leases to expire", PATIENCE, async || {
            promote(&mut conn, Queue::Image, 3, &Floors::default(), &[]).await.expect("promotes");
            (world.stats().await.ready == 3).then_some(())
        })
        .await;
    }
    // More than two slots do before the suspects have waited for long enough.
    world.enqueue_many("others", 300).await;
    let runner = world.runner(script, looking(2));
    let lanes = wait_for("what follows the suspects", PATIENCE, async || {
        let lanes = log.lanes();
        let end = lanes.iter().rposition(|lane| lane == "suspects")?;
        (end + 1 < lanes.len() && lanes.iter().filter(|lane| *lane == "suspects").count() == 3).then_some(lanes)
    })
    .await;
    let first = lanes.iter().position(|lane| lane == "suspects").expect("has begun");
    assert!(first > 0, "the others' turn comes first");
    assert_eq!(lanes[first..first + 4], ["suspects", "suspects", "suspects", "others"]);
    assert_eq!(disturbed.load(Ordering::SeqCst), 0);
    runner.stop().await;
}

#[tokio::test]
async fn a_panic_is_a_retry_and_the_sixth_claim_is_the_end() {
    let (world, log) = (World::new().await, Log::default());
    let ended = Arc::new(AtomicUsize::new(0));
    let script = {
        let (log, pool, ended) = (log.clone(), world.pool().clone(), ended.clone());
        Script::new(move |task, _| {
            log.note(&task);
            async move { if task.claims % 2 == 0 { Err("unforeseen".into()) } else { panic!("on purpose") } }
        })
        .when_exhausted(move |task, lease| {
            let (pool, ended) = (pool.clone(), ended.clone());
            async move {
                assert_eq!(task.claims, 6);
                ended.fetch_add(1, Ordering::Relaxed);
                settle(&pool, &task, &lease).await
            }
        })
    };
    let runner = world.runner(script, RunnerOptions { retry_pause: Duration::from_millis(1), ..looking(1) });
    world.enqueue("a").await;
    world.until_no_task_is_left().await;
    assert_eq!((log.len(), ended.load(Ordering::Relaxed)), (5, 1));
    runner.stop().await;
}

#[tokio::test]
async fn retries_count_and_plans_do_not() {
    let world = World::new().await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let script = {
        let (pool, seen) = (world.pool().clone(), seen.clone());
        Script::new(move |task, lease| {
            let (pool, seen) = (pool.clone(), seen.clone());
            async move {
                let runs = {
                    let mut seen = seen.lock().expect("whole");
                    seen.push(task.claims);
                    seen.len()
                };
                let after = Duration::from_millis(1);
                match runs {
                    1 | 3 => Ok(Decision::Retry { after }),
                    2 | 4..=9 => Ok(Decision::Later { after }),
                    _ => settle(&pool, &task, &lease).await,
                }
            }
        })
    };
    let runner = world.runner(script, looking(1));
    world.enqueue("a").await;
    world.until_no_task_is_left().await;
    assert_eq!(*seen.lock().expect("whole"), [1, 2, 1, 2, 1, 1, 1, 1, 1, 1]);
    runner.stop().await;
}

#[tokio::test]
async fn what_was_parked_here_is_looked_for_when_it_is_due() {
    let (world, log) = (World::new().await, Log::default());
    let script = {
        let (pool, log) = (world.pool().clone(), log.clone());
        Script::new(move |task, lease| {
            log.note(&task);
            let (pool, begun) = (pool.clone(), log.len());
            async move {
                let after = Duration::from_millis(50);
                match begun {
                    1 => Ok(Decision::Retry { after }),
                    2 => Ok(Decision::Later { after }),
                    3 => {
                        let mut conn = pool.acquire().await?;
                        assert!(db::tasks::reschedule(&mut conn, task.id, lease.token(), after).await?);
                        Ok(Decision::Parked { after })
                    }
                    _ => settle(&pool, &task, &lease).await,
                }
            }
        })
    };
    world.enqueue("a").await;
    // The next idle look by itself would be in an hour.
    let runner = world.runner(script, options(1));
    world.until_no_task_is_left().await;
    assert_eq!(log.len(), 4);
    runner.stop().await;
}

#[tokio::test]
async fn a_wish_to_stop_is_seen_within_two_seconds() {
    let (world, log) = (World::new().await, Log::default());
    let script = {
        let (pool, log) = (world.pool().clone(), log.clone());
        Script::new(move |task, lease| {
            let (pool, log) = (pool.clone(), log.clone());
            async move {
                assert!(!lease.is_cancel_requested());
                log.note(&task);
                lease.cancelled().await;
                settle(&pool, &task, &lease).await
            }
        })
    };
    let runner = world.runner(script, looking(1));
    let id = world.enqueue("a").await;
    log.until(1).await;
    let mut conn = world.pool().acquire().await.expect("connects");
    let state = db::tasks::request_cancel(&mut conn, id).await.expect("asks");
    assert_eq!(state, Some(TaskState::Leased));
    let start = Instant::now();
    world.until_no_task_is_left().await;
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    runner.stop().await;
}

#[tokio::test]
async fn a_stopping_runner_takes_nothing_new_and_finishes_what_it_has() {
    let (world, log) = (World::new().await, Log::default());
    let gate = Arc::new(Semaphore::new(0));
    let script = {
        let (pool, log, gate) = (world.pool().clone(), log.clone(), gate.clone());
        Script::new(move |task, lease| {
            let (pool, log, gate) = (pool.clone(), log.clone(), gate.clone());
            async move {
                log.note(&task);
                gate.acquire().await?.forget();
                settle(&pool, &task, &lease).await
            }
        })
    };
    let runner = world.runner(script, looking(1));
    world.enqueue_many("a", 2).await;
    log.until(1).await;
    let stopping = tokio::spawn(runner.stop());
    tokio::task::yield_now().await;
    gate.add_permits(5);
    stopping.await.expect("ends");
    assert_eq!((log.len(), world.stats().await.ready), (1, 1));
}

#[tokio::test]
async fn what_is_not_finished_at_the_abort_is_handed_back_uncounted() {
    let (world, log) = (World::new().await, Log::default());
    let script = {
        let log = log.clone();
        Script::new(move |task, _| {
            log.note(&task);
            std::future::pending()
        })
    };
    let id = world.enqueue("a").await;
    let runner = world.runner(script, looking(1));
    log.until(1).await;
    runner.abort().await;
    assert_eq!((world.stats().await.ready, world.stats().await.leased), (1, 0));
    assert_eq!(world.outbox_rows().await, 2, "the others are told");

    let claims = Arc::new(AtomicUsize::new(0));
    let script = {
        let (pool, claims) = (world.pool().clone(), claims.clone());
        Script::new(move |task, lease| {
            claims.store(usize::try_from(task.claims).expect("positive"), Ordering::Relaxed);
            assert_eq!(task.id, id);
            let pool = pool.clone();
            async move { settle(&pool, &task, &lease).await }
        })
    };
    let runner = world.runner(script, looking(1));
    world.until_no_task_is_left().await;
    assert_eq!(claims.load(Ordering::Relaxed), 1);
    runner.stop().await;
}

#[tokio::test]
async fn a_task_runs_in_the_trace_of_what_caused_it() {
    let world = World::new().await;
    let seen = Arc::new(Mutex::new(None));
    let script = {
        let (pool, seen) = (world.pool().clone(), seen.clone());
        Script::new(move |task, lease| {
            *seen.lock().expect("whole") = Some(task.trace);
            let pool = pool.clone();
            async move { settle(&pool, &task, &lease).await }
        })
    };
    world.enqueue("a").await;
    let runner = world.runner(script, looking(1));
    world.until_no_task_is_left().await;
    runner.stop().await;
    let trace = seen.lock().expect("whole").expect("ran");
    assert_eq!(trace.trace_id_hex(), "0af7651916cd43dd8448eb211c80319c");
    assert_ne!(trace.span_id_hex(), "b7ad6b7169203331");
}
