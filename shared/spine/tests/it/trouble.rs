//! What a runner promises when things around it fail.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use spine::{Decision, Lease, RunnerOptions};
use testkit::{Proxy, amqp_url, wait_for};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::world::{Log, PATIENCE, Script, World, looking, options, settle};

#[tokio::test]
async fn a_stalled_handler_is_taken_over_and_its_late_write_is_refused() {
    let (world, log) = (World::new().await, Log::default());
    let (gate, refused) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicBool::new(false)));
    let stalled = {
        let (pool, log, gate, refused) = (world.pool().clone(), log.clone(), gate.clone(), refused.clone());
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
    // Its heartbeat comes too late, as that of a stopped process does.
    let late = RunnerOptions { lease: Duration::from_millis(300), heartbeat: Duration::from_secs(3600), ..options(1) };
    let stalled = world.runner(stalled, late);
    let id = world.enqueue("a").await;
    world.wake(id, 1).await;
    log.until(1).await;

    let other = world.runner(Script::settling(world.pool(), &log), looking(1));
    world.until_no_task_is_left().await;
    assert_eq!(log.ids(), [id, id]);
    gate.add_permits(1);
    wait_for("the refusal", PATIENCE, async || refused.load(Ordering::Relaxed).then_some(())).await;
    stalled.stop().await;
    other.stop().await;
}

#[tokio::test]
async fn a_handler_that_takes_longer_than_its_lease_keeps_it() {
    let (world, log) = (World::new().await, Log::default());
    let short = RunnerOptions { lease: Duration::from_secs(3), heartbeat: Duration::from_secs(1), ..looking(1) };
    let slow = {
        let (pool, log) = (world.pool().clone(), log.clone());
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
    world.enqueue("a").await;
    let (one, other) = (world.runner(slow.clone(), short.clone()), world.runner(slow, short));
    world.until_no_task_is_left().await;
    assert_eq!(log.len(), 1);
    one.stop().await;
    other.stop().await;
}

#[tokio::test]
async fn a_worker_cut_off_from_the_database_starts_no_side_effect_until_it_is_back() {
    let world = World::new().await;
    let proxy = Proxy::in_front_of(&world.database.url()).await;
    let pool = db::pool::connect(&proxy.url(), "cut off", 4).expect("a URL");
    let held: Arc<Mutex<Option<Lease>>> = Arc::default();
    let waiting = {
        let held = held.clone();
        Script::new(move |_, lease| {
            *held.lock().expect("whole") = Some(lease);
            std::future::pending()
        })
    };
    let fast = RunnerOptions { heartbeat: Duration::from_millis(500), ..looking(1) };
    let runner = world.runner_on(&pool, &amqp_url(), waiting, fast);
    world.enqueue("a").await;
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
    let (world, log) = (World::new().await, Log::default());
    let proxy = Proxy::in_front_of(&world.database.url()).await;
    let pool = db::pool::connect(&proxy.url(), "cut off", 4).expect("a URL");
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
    let runner = world.runner_on(&pool, &amqp_url(), script, looking(1));
    world.enqueue("a").await;
    log.until(1).await;
    proxy.cut();
    gate.add_permits(1);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(world.stats().await.leased, 1);
    proxy.resume();
    wait_for("the pause", PATIENCE, async || (world.stats().await.parked == 1).then_some(())).await;
    runner.stop().await;
    assert_eq!(log.len(), 1, "begun once");
}

#[tokio::test]
async fn a_run_whose_lease_is_taken_is_told_and_dropped() {
    let (world, log) = (World::new().await, Log::default());
    let told = Arc::new(AtomicBool::new(false));
    let script = {
        let (pool, log, told) = (world.pool().clone(), log.clone(), told.clone());
        Script::new(move |task, lease| {
            let (pool, log, told) = (pool.clone(), log.clone(), told.clone());
            async move {
                log.note(&task);
                let mut conn = pool.acquire().await?;
                // As far as the lease is concerned, this is what a takeover does.
                assert!(db::tasks::retry(&mut conn, task.id, lease.token(), Duration::from_secs(3600)).await?);
                lease.lost().await;
                assert!(!lease.check());
                told.store(true, Ordering::Relaxed);
                std::future::pending().await
            }
        })
    };
    // Only ever claims by message, so that nobody takes the task again.
    let runner = world.runner(script, RunnerOptions { heartbeat: Duration::from_millis(100), ..options(1) });
    let id = world.enqueue("a").await;
    world.wake(id, 1).await;
    log.until(1).await;
    wait_for("the loss", PATIENCE, async || told.load(Ordering::Relaxed).then_some(())).await;
    // It ends although the handler never does, and touches the row no more.
    runner.stop().await;
    assert_eq!(world.stats().await.parked, 1);
}

#[tokio::test]
async fn work_goes_on_through_cuts_of_broker_and_database() {
    let (world, log) = (World::new().await, Log::default());
    let (broker, database) = (Proxy::in_front_of(&amqp_url()).await, Proxy::in_front_of(&world.database.url()).await);
    let pool = db::pool::connect(&database.url(), "cut off", 4).expect("a URL");
    let runner = world.runner_on(
        &pool,
        &broker.url(),
        Script::settling(&pool, &log),
        RunnerOptions { retry_pause: Duration::from_millis(20), lease: Duration::from_secs(2), ..looking(3) },
    );
    let (relay, nudge) = world.relay_to(&broker.url());
    for round in 0..6 {
        world.enqueue_many(&format!("lane {round}"), 40).await;
        nudge.nudge();
        let begun = log.len();
        log.until(begun + 5).await;
        if round % 2 == 0 { broker.reset() } else { database.reset() }
    }
    world.until_no_task_is_left().await;
    // A cut between the settling and its answer makes a run look failed; it is not repeated, for its task is gone.
    let ids: std::collections::HashSet<_> = log.ids().into_iter().collect();
    assert_eq!(ids.len(), 240);
    runner.stop().await;
    relay.stop().await;
}

#[tokio::test]
async fn a_run_over_its_limit_is_dropped_and_tried_again() {
    let (world, log) = (World::new().await, Log::default());
    let script = {
        let (pool, log) = (world.pool().clone(), log.clone());
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
    let runner = world.runner(script, options);
    world.enqueue("a").await;
    world.until_no_task_is_left().await;
    assert_eq!(log.len(), 3);
    runner.stop().await;
}

#[tokio::test]
async fn a_lease_over_the_limit_of_its_run_is_not_renewed() {
    let (world, log) = (World::new().await, Log::default());
    // A run that holds its thread, in a runtime of its own: nothing there can end it.
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
    let (pool, broker) = (world.database.url(), world.broker(&amqp_url()));
    let over = CancellationToken::new();
    let stop = over.clone();
    let process = std::thread::spawn(move || {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(3).enable_all().build().expect("starts");
        runtime.block_on(async {
            let pool = db::pool::connect(&pool, "stuck", 2).expect("a URL");
            let consumer = broker::Consumer::start(broker, domain::message::Queue::Image, 1);
            let (token, abort) = (Default::default(), Default::default());
            let runner = tokio::spawn(spine::Runner::new(&pool, consumer, stuck, options).run(token, abort));
            stop.cancelled().await;
            runner.abort();
        });
    });
    let id = world.enqueue("a").await;
    log.until(1).await;
    let other = world.runner(Script::settling(world.pool(), &log), looking(1));
    world.until_no_task_is_left().await;
    assert_eq!(log.ids(), [id, id]);
    gate.wait();
    over.cancel();
    process.join().expect("ends");
    other.stop().await;
}

#[tokio::test]
async fn a_task_that_kills_its_workers_takes_its_neighbours_down_twice_at_most() {
    let world = World::new().await;
    let poison = world.enqueue("poison").await;
    world.enqueue_many("others", 3).await;
    let killed = Arc::new(Semaphore::new(0));
    // In hand now, and how many were when the poison was taken, by its claims.
    let (in_hand, beside) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(Vec::new())));
    let most_claims = Arc::new(Mutex::new(0));
    let script = {
        let (pool, killed, in_hand, beside, most_claims) =
            (world.pool().clone(), killed.clone(), in_hand.clone(), beside.clone(), most_claims.clone());
        Script::new(move |task, lease| {
            let (pool, killed, in_hand, beside, most_claims) =
                (pool.clone(), killed.clone(), in_hand.clone(), beside.clone(), most_claims.clone());
            async move {
                *in_hand.lock().expect("whole") += 1;
                if task.id == poison {
                    // All that were claimed with it have begun.
                    for _ in 0..100 {
                        tokio::task::yield_now().await;
                    }
                    beside.lock().expect("whole").push((task.claims, *in_hand.lock().expect("whole") - 1));
                    killed.add_permits(1);
                    std::future::pending::<()>().await;
                }
                let claims = {
                    let mut most = most_claims.lock().expect("whole");
                    *most = task.claims.max(*most);
                    task.claims
                };
                // Slow enough to be still there when the poison kills the process.
                if claims < 3 {
                    std::future::pending::<()>().await;
                }
                let outcome = settle(&pool, &task, &lease).await;
                *in_hand.lock().expect("whole") -= 1;
                outcome
            }
        })
        .when_exhausted({
            let pool = world.pool().clone();
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
        *in_hand.lock().expect("whole") = 0;
        let runner = world.runner(script.clone(), options.clone());
        tokio::time::timeout(PATIENCE, killed.acquire()).await.expect("in time").expect("open").forget();
        runner.kill().await;
    }
    let runner = world.runner(script, options);
    world.until_no_task_is_left().await;
    assert_eq!(*beside.lock().expect("whole"), [(1, 3), (2, 3), (3, 0), (4, 0), (5, 0)]);
    assert_eq!(*most_claims.lock().expect("whole"), 3);
    runner.stop().await;
}
