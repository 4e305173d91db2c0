//! Tests of a runner whose dependencies fail.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use domain::message::Queue;
use taskqueue::{Decision, Lease, RunnerOptions};
use testkit::{Proxy, amqp_url, wait_for};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::harness::{Harness, Log, PATIENCE, Script, looking, options, settle};

#[tokio::test]
async fn a_stalled_handler_is_taken_over_and_its_late_write_is_refused() {
    let (harness, log) = (Harness::new().await, Log::default());
    let (gate, refused) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicBool::new(false)));
    let stalled = {
        let (pool, log, gate, refused) = (harness.pool().clone(), log.clone(), gate.clone(), refused.clone());
        Script::new(move |task, lease| {
            let (pool, log, gate, refused) = (pool.clone(), log.clone(), gate.clone(), refused.clone());
            async move {
                log.note(&task);
                gate.acquire().await?.forget();
                let outcome = settle(&pool, &task, &lease).await;
                refused.store(matches!(outcome, Ok(Decision::Stale)), Ordering::Relaxed);
                outcome
            }
        })
    };
    // Its heartbeat comes too late, like that of a stopped process.
    let late = RunnerOptions { lease: Duration::from_millis(300), heartbeat: Duration::from_secs(3600), ..options(1) };
    let stalled = harness.runner(stalled, late);
    let id = harness.enqueue("a").await;
    harness.wake(id, 1).await;
    log.until(1).await;

    let other = harness.runner(Script::settling(harness.pool(), &log), looking(1));
    harness.until_no_task_is_left().await;
    assert_eq!(log.ids(), [id, id]);
    gate.add_permits(1);
    wait_for("the refusal", PATIENCE, async || refused.load(Ordering::Relaxed).then_some(())).await;
    stalled.stop().await;
    other.stop().await;
}

#[tokio::test]
async fn a_handler_that_takes_longer_than_its_lease_keeps_it() {
    let (harness, log) = (Harness::new().await, Log::default());
    let short = RunnerOptions { lease: Duration::from_secs(3), heartbeat: Duration::from_secs(1), ..looking(1) };
    let slow = {
        let (pool, log) = (harness.pool().clone(), log.clone());
        Script::new(move |task, lease| {
            let (pool, log) = (pool.clone(), log.clone());
            async move {
                log.note(&task);
                tokio::time::sleep(Duration::from_secs(7)).await;
                assert!(lease.check());
                settle(&pool, &task, &lease).await
            }
        })
    };
    harness.enqueue("a").await;
    let (one, other) = (harness.runner(slow.clone(), short.clone()), harness.runner(slow, short));
    harness.until_no_task_is_left().await;
    assert_eq!(log.len(), 1);
    one.stop().await;
    other.stop().await;
}

#[tokio::test]
async fn a_worker_cut_off_from_the_database_starts_no_side_effect_until_it_is_back() {
    let harness = Harness::new().await;
    let proxy = Proxy::in_front_of(&harness.database.url()).await;
    let pool = db::pool::connect(&proxy.url(), "cut off", 4, None).expect("a URL");
    let held: Arc<Mutex<Option<Lease>>> = Arc::default();
    let waiting = {
        let held = held.clone();
        Script::new(move |_, lease| {
            *held.lock().expect("whole") = Some(lease);
            std::future::pending()
        })
    };
    let fast = RunnerOptions { heartbeat: Duration::from_millis(500), ..looking(1) };
    let runner = harness.runner_on(&pool, &amqp_url(), waiting, fast);
    harness.enqueue("a").await;
    let lease = wait_for("the lease", PATIENCE, async || held.lock().expect("whole").clone()).await;
    wait_for("a first heartbeat", PATIENCE, async || lease.check().then_some(())).await;
    proxy.cut();
    wait_for("two missed heartbeats", PATIENCE, async || (!lease.check()).then_some(())).await;
    proxy.resume();
    wait_for("a heartbeat", PATIENCE, async || lease.check().then_some(())).await;
    runner.abort().await;
}

#[tokio::test]
async fn a_pause_is_kept_although_the_database_was_away_when_it_began() {
    let (harness, log) = (Harness::new().await, Log::default());
    let proxy = Proxy::in_front_of(&harness.database.url()).await;
    let pool = db::pool::connect(&proxy.url(), "cut off", 4, None).expect("a URL");
    let gate = Arc::new(Semaphore::new(0));
    let script = {
        let (log, gate) = (log.clone(), gate.clone());
        Script::new(move |task, _| {
            log.note(&task);
            let gate = gate.clone();
            async move {
                gate.acquire().await?.forget();
                Ok(Decision::Retry { after: Duration::from_secs(3600) })
            }
        })
    };
    let runner = harness.runner_on(&pool, &amqp_url(), script, looking(1));
    harness.enqueue("a").await;
    log.until(1).await;
    proxy.cut();
    gate.add_permits(1);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(harness.stats().await.leased, 1);
    proxy.resume();
    wait_for("the pause", PATIENCE, async || (harness.stats().await.scheduled == 1).then_some(())).await;
    runner.stop().await;
    assert_eq!(log.len(), 1, "begun once");
}

#[tokio::test]
async fn a_run_whose_lease_is_taken_is_notified_and_dropped() {
    let (harness, log) = (Harness::new().await, Log::default());
    let reported = Arc::new(AtomicBool::new(false));
    let script = {
        let (pool, log, reported) = (harness.pool().clone(), log.clone(), reported.clone());
        Script::new(move |task, lease| {
            let (pool, log, reported) = (pool.clone(), log.clone(), reported.clone());
            async move {
                log.note(&task);
                let mut conn = pool.acquire().await?;
                // To the lease, this looks like a claim by another worker.
                let retried = db::tasks::retry(&mut conn, task.id, lease.token(), Duration::from_secs(3600)).await?;
                assert!(retried.is_some());
                lease.lost().await;
                assert!(!lease.check());
                reported.store(true, Ordering::Relaxed);
                std::future::pending().await
            }
        })
    };
    // Claims only after a message, so that the task is not claimed again.
    let runner = harness.runner(script, RunnerOptions { heartbeat: Duration::from_millis(100), ..options(1) });
    let id = harness.enqueue("a").await;
    harness.wake(id, 1).await;
    log.until(1).await;
    wait_for("the loss", PATIENCE, async || reported.load(Ordering::Relaxed).then_some(())).await;
    // It ends although the handler never does, and does not change the row.
    runner.stop().await;
    assert_eq!(harness.stats().await.scheduled, 1);
}

#[tokio::test]
async fn work_goes_on_through_cuts_of_broker_and_database() {
    let (harness, log) = (Harness::new().await, Log::default());
    let (broker, database) = (Proxy::in_front_of(&amqp_url()).await, Proxy::in_front_of(&harness.database.url()).await);
    let pool = db::pool::connect(&database.url(), "cut off", 4, None).expect("a URL");
    let runner = harness.runner_on(
        &pool,
        &broker.url(),
        Script::settling(&pool, &log),
        RunnerOptions { retry_pause: Duration::from_millis(20), lease: Duration::from_secs(2), ..looking(3) },
    );
    let (publisher, waker) = harness.publisher_to(&broker.url());
    for round in 0..6 {
        for id in harness.enqueue_many(&format!("key {round}"), 40).await {
            waker.wake(Queue::Image, id);
        }
        let begun = log.len();
        log.until(begun + 5).await;
        if round % 2 == 0 { broker.reset() } else { database.reset() }
    }
    harness.until_no_task_is_left().await;
    // If a connection breaks between the statement that settles a task and its answer, the run
    // looks failed. It is not repeated, because its task is gone.
    let ids: std::collections::HashSet<_> = log.ids().into_iter().collect();
    assert_eq!(ids.len(), 240);
    runner.stop().await;
    publisher.stop().await;
}

#[tokio::test]
async fn a_run_over_its_limit_is_dropped_and_tried_again() {
    let (harness, log) = (Harness::new().await, Log::default());
    let script = {
        let (pool, log) = (harness.pool().clone(), log.clone());
        Script::new(move |task, lease| {
            log.note(&task);
            let pool = pool.clone();
            async move {
                if task.claims < 3 {
                    std::future::pending::<()>().await;
                }
                settle(&pool, &task, &lease).await
            }
        })
    };
    let options =
        RunnerOptions { run_limit: Duration::from_millis(200), retry_pause: Duration::from_millis(1), ..looking(1) };
    let runner = harness.runner(script, options);
    harness.enqueue("a").await;
    harness.until_no_task_is_left().await;
    assert_eq!(log.len(), 3);
    runner.stop().await;
}

#[tokio::test]
async fn a_lease_over_the_limit_of_its_run_is_not_renewed() {
    let (harness, log) = (Harness::new().await, Log::default());
    // A run that blocks its thread, in a separate runtime: nothing can end it there.
    let gate = Arc::new(Barrier::new(2));
    let stuck = {
        let (log, gate) = (log.clone(), gate.clone());
        Script::new(move |task, _| {
            log.note(&task);
            let gate = gate.clone();
            async move {
                gate.wait();
                Ok(Decision::Stale)
            }
        })
    };
    let options = RunnerOptions {
        lease: Duration::from_millis(600),
        heartbeat: Duration::from_millis(100),
        run_limit: Duration::from_millis(500),
        ..looking(1)
    };
    let (pool, broker) = (harness.database.url(), harness.broker(&amqp_url()));
    let over = CancellationToken::new();
    let stop = over.clone();
    let process = std::thread::spawn(move || {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(3).enable_all().build().expect("starts");
        runtime.block_on(async {
            let pool = db::pool::connect(&pool, "stuck", 2, None).expect("a URL");
            let consumer = broker::Consumer::start(broker, Queue::Image, 1);
            let (token, abort) = (Default::default(), Default::default());
            let runner = tokio::spawn(taskqueue::Runner::new(&pool, consumer, stuck, options).run(token, abort));
            stop.cancelled().await;
            runner.abort();
        });
    });
    let id = harness.enqueue("a").await;
    log.until(1).await;
    let other = harness.runner(Script::settling(harness.pool(), &log), looking(1));
    harness.until_no_task_is_left().await;
    assert_eq!(log.ids(), [id, id]);
    gate.wait();
    over.cancel();
    process.join().expect("ends");
    other.stop().await;
}

#[tokio::test]
async fn a_task_that_kills_its_workers_takes_its_neighbours_down_twice_at_most() {
    let harness = Harness::new().await;
    let poison = harness.enqueue("poison").await;
    harness.enqueue_many("others", 3).await;
    let killed = Arc::new(Semaphore::new(0));
    // Number of tasks in progress, now and at each claim of the poison task.
    let (running, concurrent) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(Vec::new())));
    let most_claims = Arc::new(Mutex::new(0));
    let script = {
        let (pool, killed, running, concurrent, most_claims) =
            (harness.pool().clone(), killed.clone(), running.clone(), concurrent.clone(), most_claims.clone());
        Script::new(move |task, lease| {
            let (pool, killed, running, concurrent, most_claims) =
                (pool.clone(), killed.clone(), running.clone(), concurrent.clone(), most_claims.clone());
            async move {
                *running.lock().expect("whole") += 1;
                if task.id == poison {
                    // Waits until all tasks that were claimed with it have begun.
                    for _ in 0..100 {
                        tokio::task::yield_now().await;
                    }
                    concurrent.lock().expect("whole").push((task.claims, *running.lock().expect("whole") - 1));
                    killed.add_permits(1);
                    std::future::pending::<()>().await;
                }
                let claims = {
                    let mut most = most_claims.lock().expect("whole");
                    *most = task.claims.max(*most);
                    task.claims
                };
                // Slow enough to be still running when the poison task kills the process.
                if claims < 3 {
                    std::future::pending::<()>().await;
                }
                let outcome = settle(&pool, &task, &lease).await;
                *running.lock().expect("whole") -= 1;
                outcome
            }
        })
        .when_exhausted({
            let pool = harness.pool().clone();
            move |task, lease| {
                let pool = pool.clone();
                async move { settle(&pool, &task, &lease).await }
            }
        })
    };
    let options = RunnerOptions {
        lease: Duration::from_millis(300),
        heartbeat: Duration::from_millis(100),
        idle_claim: Duration::from_millis(50),
        retry_pause: Duration::from_millis(1),
        ..looking(8)
    };
    for _ in 1..=5 {
        *running.lock().expect("whole") = 0;
        let runner = harness.runner(script.clone(), options.clone());
        tokio::time::timeout(PATIENCE, killed.acquire()).await.expect("in time").expect("open").forget();
        runner.kill().await;
    }
    let runner = harness.runner(script, options);
    harness.until_no_task_is_left().await;
    assert_eq!(*concurrent.lock().expect("whole"), [(1, 3), (2, 3), (3, 0), (4, 0), (5, 0)]);
    assert_eq!(*most_claims.lock().expect("whole"), 3);
    runner.stop().await;
}
