//! Tests of a runner whose dependencies work.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use db::tasks::{ClaimRequest, LowWaterMarks, TaskState, claim, promote};
use domain::message::Queue;
use taskqueue::{Decision, RunnerOptions};
use testkit::wait_for;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::harness::{Harness, Log, PATIENCE, Script, looking, options, settle};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_task_behind_five_thousand_of_another_key_begins_within_twice_the_slots() {
    const SLOTS: usize = 4;
    let (harness, log) = (Harness::new().await, Log::default());
    harness.enqueue_many("busy", 5000).await;
    let runner = harness.runner(Script::settling(harness.pool(), &log), options(SLOTS));
    log.until(40).await;
    harness.enqueue("late").await;
    let before = log.len();
    wait_for("the late task", PATIENCE, async || {
        log.fairness_keys().iter().any(|fairness_key| fairness_key == "late").then_some(())
    })
    .await;
    let place = log.fairness_keys().iter().position(|fairness_key| fairness_key == "late").expect("has begun");
    assert!(place <= before + 2 * SLOTS, "begins as number {place}, {before} had begun when it was committed");
    runner.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_runners_never_run_one_task_at_once_nor_twice() {
    let (harness, log) = (Harness::new().await, Log::default());
    let now_running = Arc::new(Mutex::new(HashSet::new()));
    let script = {
        let (pool, log) = (harness.pool().clone(), log.clone());
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
    let (one, other) = (harness.runner(script.clone(), looking(5)), harness.runner(script, looking(3)));
    let (publisher, waker) = harness.publisher();
    for fairness_key in 0..10 {
        for id in harness.enqueue_many(&format!("key {fairness_key}"), 30).await {
            waker.wake(Queue::Image, id);
        }
    }
    harness.until_no_task_is_left().await;
    let ids = log.ids();
    assert_eq!((ids.len(), ids.into_iter().collect::<HashSet<_>>().len()), (300, 300));
    one.stop().await;
    other.stop().await;
    publisher.stop().await;
}

#[tokio::test]
async fn a_lost_message_costs_no_more_than_an_idle_look_and_a_lost_backlog_drains_at_full_speed() {
    let (harness, log) = (Harness::new().await, Log::default());
    let options = RunnerOptions { idle_claim: Duration::from_secs(1), ..options(2) };
    let runner = harness.runner(Script::settling(harness.pool(), &log), options);
    // Nothing is published, so no message arrives.
    harness.enqueue("a").await;
    let start = Instant::now();
    log.until(1).await;
    assert!(start.elapsed() < Duration::from_millis(1900), "{:?}", start.elapsed());
    // Fifty tasks in two slots, at one poll a second, would take half a minute.
    harness.enqueue_many("a", 50).await;
    let start = Instant::now();
    harness.until_no_task_is_left().await;
    assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
    runner.stop().await;
}

#[tokio::test]
async fn a_duplicate_message_runs_nothing_twice() {
    let (harness, log) = (Harness::new().await, Log::default());
    let runner = harness.runner(Script::settling(harness.pool(), &log), options(1));
    let first = harness.enqueue("a").await;
    harness.wake(first, 6).await;
    log.until(1).await;
    let second = harness.enqueue("a").await;
    harness.wake(second, 1).await;
    log.until(2).await;
    harness.until_no_task_is_left().await;
    assert_eq!(log.ids(), [first, second]);
    runner.stop().await;
}

#[tokio::test]
async fn a_key_at_its_cap_takes_no_further_slot_and_blocks_no_other() {
    let harness = Harness::new().await;
    let (gate, log) = (Arc::new(Semaphore::new(0)), Log::default());
    let script = {
        let (pool, log, gate) = (harness.pool().clone(), log.clone(), gate.clone());
        Script::new(move |task, lease| {
            let (pool, log, gate) = (pool.clone(), log.clone(), gate.clone());
            async move {
                log.note(&task);
                if task.fairness_key == "slow" {
                    gate.acquire().await?.forget();
                }
                settle(&pool, &task, &lease).await
            }
        })
    };
    harness.enqueue_many("slow", 10).await;
    harness.enqueue_many("other", 5).await;
    let runner = harness.runner(script, RunnerOptions { fairness_key_cap: Some(2), ..options(3) });
    log.until(7).await;
    wait_for("the end of the others", PATIENCE, async || (harness.stats().await.leased == 2).then_some(())).await;
    assert_eq!(harness.stats().await.ready, 8);
    assert_eq!(log.fairness_keys().iter().filter(|fairness_key| *fairness_key == "slow").count(), 2);
    // A slot that becomes free with the fairness key is used at once, without a message or an idle poll.
    for begun in 8..=15 {
        gate.add_permits(1);
        log.until(begun).await;
        assert_eq!(harness.stats().await.leased, 2);
    }
    gate.add_permits(2);
    harness.until_no_task_is_left().await;
    runner.stop().await;
}

#[tokio::test]
async fn a_key_alone_has_three_quarters_of_the_slots_and_others_get_one_at_once() {
    let (harness, log) = (Harness::new().await, Log::default());
    let gates = ["busy", "late", "later"].map(|fairness_key| (fairness_key, Arc::new(Semaphore::new(0))));
    let script = {
        let (pool, log, gates) = (harness.pool().clone(), log.clone(), gates.clone());
        Script::new(move |task, lease| {
            log.note(&task);
            let gate = gates.iter().find(|(name, _)| *name == task.fairness_key).expect("has a gate").1.clone();
            let pool = pool.clone();
            async move {
                gate.acquire().await?.forget();
                settle(&pool, &task, &lease).await
            }
        })
    };
    let [busy, late, later] = gates.each_ref().map(|(_, gate)| gate);
    let begun = |fairness_key| log.fairness_keys().iter().filter(|begun| *begun == fairness_key).count();
    let counts = || ["busy", "late", "later"].map(begun);
    harness.enqueue_many("busy", 20).await;
    // No idle poll would find anything within the test.
    let runner = harness.runner(script, options(8));
    log.until(6).await;
    // Each of the other keys gets one of the two slots that are left, and only one.
    for (fairness_key, total) in [("late", 7), ("later", 8)] {
        let tasks = harness.enqueue_many(fairness_key, 2).await;
        harness.wake(tasks[0], 2).await;
        log.until(total).await;
    }
    assert_eq!(counts(), [6, 1, 1]);
    // A slot of the reserve goes to the next task of a key that holds none now.
    late.add_permits(1);
    log.until(9).await;
    assert_eq!(counts(), [6, 2, 1]);
    // One that the large key leaves becomes part of the reserve.
    busy.add_permits(1);
    wait_for("the end of one", PATIENCE, async || (harness.stats().await.leased == 7).then_some(())).await;
    later.add_permits(2);
    log.until(10).await;
    wait_for("the end of two", PATIENCE, async || (harness.stats().await.leased == 6).then_some(())).await;
    assert_eq!(counts(), [6, 2, 2]);
    // Beyond the reserve, it is the large key's turn again.
    late.add_permits(1);
    log.until(11).await;
    assert_eq!(counts(), [7, 2, 2]);
    busy.add_permits(19);
    harness.until_no_task_is_left().await;
    runner.stop().await;
}

#[tokio::test]
async fn a_key_that_was_passed_over_is_claimed_for_several_slots_at_once() {
    let (harness, log, gate) = (Harness::new().await, Log::default(), Arc::new(Semaphore::new(0)));
    let script = {
        let (pool, log, gate) = (harness.pool().clone(), log.clone(), gate.clone());
        Script::new(move |task, lease| {
            log.note(&task);
            let (pool, gate) = (pool.clone(), gate.clone());
            async move {
                gate.acquire().await?.forget();
                settle(&pool, &task, &lease).await
            }
        })
    };
    harness.enqueue_many("a", 60).await;
    let runner = harness.runner(script, options(32));
    log.until(24).await;
    let ended = async |count| {
        gate.add_permits(1);
        let stats = async || (harness.stats().await.leased == count).then_some(());
        wait_for("the end of one", PATIENCE, stats).await;
    };
    // Of 32 slots, 8 are reserved, and 2 more must be free.
    ended(23).await;
    ended(22).await;
    assert_eq!(log.len(), 24);
    gate.add_permits(1);
    log.until(27).await;
    assert_eq!(harness.stats().await.leased, 24);
    gate.add_permits(60);
    harness.until_no_task_is_left().await;
    runner.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_may_have_killed_its_workers_runs_alone_one_after_the_other_beside_a_full_queue() {
    let (harness, log) = (Harness::new().await, Log::default());
    let (running, disturbed) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let script = {
        let (pool, log) = (harness.pool().clone(), log.clone());
        let (running, disturbed) = (running.clone(), disturbed.clone());
        Script::new(move |task, lease| {
            let (pool, log) = (pool.clone(), log.clone());
            let (running, disturbed) = (running.clone(), disturbed.clone());
            async move {
                log.note(&task);
                let concurrent = running.fetch_add(1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(100)).await;
                let left = running.fetch_sub(1, Ordering::SeqCst) - 1;
                if task.fairness_key == "suspects" {
                    disturbed.fetch_add(concurrent + left, Ordering::SeqCst);
                }
                settle(&pool, &task, &lease).await
            }
        })
    };
    harness.enqueue_many("suspects", 3).await;
    let mut conn = harness.pool().acquire().await.expect("connects");
    for _ in 0..2 {
        let lease = Duration::from_millis(1);
        let wanted =
            ClaimRequest { queue: Queue::Image, limit: 3, quarantined: false, caps: None, lease, owner: "the dead" };
        assert_eq!(claim(&mut conn, &wanted).await.expect("claims").len(), 3);
        wait_for("the leases to expire", PATIENCE, async || {
            promote(&mut conn, Queue::Image, 3, &LowWaterMarks::default(), &[]).await.expect("promotes");
            (harness.stats().await.ready == 3).then_some(())
        })
        .await;
    }
    // More than two slots finish before the quarantined tasks have waited long enough.
    harness.enqueue_many("others", 300).await;
    let runner = harness.runner(script, looking(2));
    let fairness_keys = wait_for("what follows the quarantined tasks", PATIENCE, async || {
        let fairness_keys = log.fairness_keys();
        let end = fairness_keys.iter().rposition(|fairness_key| fairness_key == "suspects")?;
        (end + 1 < fairness_keys.len()
            && fairness_keys.iter().filter(|fairness_key| *fairness_key == "suspects").count() == 3)
            .then_some(fairness_keys)
    })
    .await;
    let first = fairness_keys.iter().position(|fairness_key| fairness_key == "suspects").expect("has begun");
    assert!(first > 0, "the others' turn comes first");
    assert_eq!(fairness_keys[first..first + 4], ["suspects", "suspects", "suspects", "others"]);
    assert_eq!(disturbed.load(Ordering::SeqCst), 0);
    runner.stop().await;
}

#[tokio::test]
async fn a_panic_is_a_retry_and_the_sixth_claim_is_the_end() {
    let (harness, log) = (Harness::new().await, Log::default());
    let ended = Arc::new(AtomicUsize::new(0));
    let script = {
        let (log, pool, ended) = (log.clone(), harness.pool().clone(), ended.clone());
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
    let runner = harness.runner(script, RunnerOptions { retry_pause: Duration::from_millis(1), ..looking(1) });
    harness.enqueue("a").await;
    harness.until_no_task_is_left().await;
    assert_eq!((log.len(), ended.load(Ordering::Relaxed)), (5, 1));
    runner.stop().await;
}

#[tokio::test]
async fn retries_count_and_plans_do_not() {
    let harness = Harness::new().await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let script = {
        let (pool, seen) = (harness.pool().clone(), seen.clone());
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
                    2 | 4..=9 => Ok(Decision::Snooze { after }),
                    _ => settle(&pool, &task, &lease).await,
                }
            }
        })
    };
    let runner = harness.runner(script, looking(1));
    harness.enqueue("a").await;
    harness.until_no_task_is_left().await;
    assert_eq!(*seen.lock().expect("whole"), [1, 2, 1, 2, 1, 1, 1, 1, 1, 1]);
    runner.stop().await;
}

#[tokio::test]
async fn what_was_parked_here_is_looked_for_when_it_is_due() {
    let (harness, log) = (Harness::new().await, Log::default());
    let script = {
        let (pool, log) = (harness.pool().clone(), log.clone());
        Script::new(move |task, lease| {
            log.note(&task);
            let (pool, begun) = (pool.clone(), log.len());
            async move {
                let after = Duration::from_millis(50);
                match begun {
                    1 => Ok(Decision::Retry { after }),
                    2 => Ok(Decision::Snooze { after }),
                    3 => {
                        let mut conn = pool.acquire().await?;
                        let after = db::tasks::reschedule(&mut conn, task.id, lease.token(), after).await?;
                        Ok(Decision::Rescheduled { after: after.expect("has the lease") })
                    }
                    _ => settle(&pool, &task, &lease).await,
                }
            }
        })
    };
    harness.enqueue("a").await;
    // The next idle poll would be in an hour.
    let runner = harness.runner(script, options(1));
    harness.until_no_task_is_left().await;
    assert_eq!(log.len(), 4);
    runner.stop().await;
}

#[tokio::test]
async fn what_was_woken_in_hand_runs_again_at_once() {
    for releases in [false, true] {
        let (harness, log) = (Harness::new().await, Log::default());
        let script = {
            let (pool, log) = (harness.pool().clone(), log.clone());
            Script::new(move |task, lease| {
                log.note(&task);
                let (pool, begun) = (pool.clone(), log.len());
                async move {
                    match begun {
                        1 if releases => Ok(Decision::Release),
                        1 => {
                            let mut conn = pool.acquire().await?;
                            db::tasks::make_ready(&mut conn, task.id).await?;
                            Ok(Decision::Snooze { after: Duration::from_secs(3600) })
                        }
                        _ => settle(&pool, &task, &lease).await,
                    }
                }
            })
        };
        harness.enqueue("a").await;
        // The next idle poll would be in an hour, and no message arrives.
        let runner = harness.runner(script, options(1));
        harness.until_no_task_is_left().await;
        assert_eq!(log.len(), 2);
        runner.stop().await;
    }
}

#[tokio::test]
async fn a_wish_to_stop_is_seen_within_two_seconds() {
    let (harness, log) = (Harness::new().await, Log::default());
    let script = {
        let (pool, log) = (harness.pool().clone(), log.clone());
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
    let runner = harness.runner(script, looking(1));
    let id = harness.enqueue("a").await;
    log.until(1).await;
    let mut conn = harness.pool().acquire().await.expect("connects");
    let state = db::tasks::request_cancel(&mut conn, id).await.expect("asks");
    assert_eq!(state, Some(TaskState::Leased));
    let start = Instant::now();
    harness.until_no_task_is_left().await;
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    runner.stop().await;
}

#[tokio::test]
async fn a_stopping_runner_takes_nothing_new_and_finishes_what_it_has() {
    let (harness, log) = (Harness::new().await, Log::default());
    let gate = Arc::new(Semaphore::new(0));
    let script = {
        let (pool, log, gate) = (harness.pool().clone(), log.clone(), gate.clone());
        Script::new(move |task, lease| {
            let (pool, log, gate) = (pool.clone(), log.clone(), gate.clone());
            async move {
                log.note(&task);
                gate.acquire().await?.forget();
                settle(&pool, &task, &lease).await
            }
        })
    };
    let runner = harness.runner(script, looking(1));
    harness.enqueue_many("a", 2).await;
    log.until(1).await;
    let stopping = tokio::spawn(runner.stop());
    tokio::task::yield_now().await;
    gate.add_permits(5);
    stopping.await.expect("ends");
    assert_eq!((log.len(), harness.stats().await.ready), (1, 1));
}

#[tokio::test]
async fn what_is_not_finished_at_the_abort_is_handed_back_uncounted() {
    let (harness, log) = (Harness::new().await, Log::default());
    let script = {
        let log = log.clone();
        Script::new(move |task, _| {
            log.note(&task);
            std::future::pending()
        })
    };
    let id = harness.enqueue("a").await;
    let runner = harness.runner(script, looking(1));
    log.until(1).await;
    runner.abort().await;
    assert_eq!((harness.stats().await.ready, harness.stats().await.leased), (1, 0));

    let claims = Arc::new(AtomicUsize::new(0));
    let script = {
        let (pool, claims) = (harness.pool().clone(), claims.clone());
        Script::new(move |task, lease| {
            claims.store(usize::try_from(task.claims).expect("positive"), Ordering::Relaxed);
            assert_eq!(task.id, id);
            let pool = pool.clone();
            async move { settle(&pool, &task, &lease).await }
        })
    };
    let runner = harness.runner(script, looking(1));
    harness.until_no_task_is_left().await;
    assert_eq!(claims.load(Ordering::Relaxed), 1);
    runner.stop().await;
}

#[tokio::test]
async fn a_task_runs_in_the_trace_of_what_caused_it() {
    let harness = Harness::new().await;
    let seen = Arc::new(Mutex::new(None));
    let script = {
        let (pool, seen) = (harness.pool().clone(), seen.clone());
        Script::new(move |task, lease| {
            *seen.lock().expect("whole") = Some(task.trace);
            let pool = pool.clone();
            async move { settle(&pool, &task, &lease).await }
        })
    };
    harness.enqueue("a").await;
    let runner = harness.runner(script, looking(1));
    harness.until_no_task_is_left().await;
    runner.stop().await;
    let trace = seen.lock().expect("whole").expect("ran");
    assert_eq!(trace.trace_id_hex(), "0af7651916cd43dd8448eb211c80319c");
    assert_ne!(trace.span_id_hex(), "b7ad6b7169203331");
}
