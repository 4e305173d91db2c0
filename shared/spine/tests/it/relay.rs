//! From the outbox to the worker.

use std::time::Duration;

use testkit::{Proxy, amqp_url};

use crate::world::{Log, Script, World, looking, options};

#[tokio::test]
async fn what_is_committed_is_announced_and_done_and_the_outbox_is_empty() {
    let (world, log) = (World::new().await, Log::default());
    let runner = world.runner(Script::settling(world.pool(), &log), options(4));
    let ((one, nudge), (other, _)) = (world.relay(), world.relay());
    let mut ids = world.enqueue_many("a", 450).await;
    nudge.nudge();
    world.until_no_task_is_left().await;
    world.until_the_outbox_is_empty().await;
    let mut begun = log.ids();
    begun.sort();
    ids.sort();
    assert_eq!(begun, ids);
    one.stop().await;
    other.stop().await;
    runner.stop().await;
}

#[tokio::test]
async fn rows_of_other_processes_are_found_without_a_nudge() {
    let (world, log) = (World::new().await, Log::default());
    let runner = world.runner(Script::settling(world.pool(), &log), options(1));
    let (relay, _) = world.relay();
    for count in 1..=3 {
        world.enqueue("a").await;
        log.until(count).await;
    }
    relay.stop().await;
    runner.stop().await;
}

#[tokio::test]
async fn a_broker_that_is_cut_off_while_publishing_leaves_the_rows_and_they_are_sent_later() {
    let (world, log) = (World::new().await, Log::default());
    let proxy = Proxy::in_front_of(&amqp_url()).await;
    let (relay, nudge) = world.relay_to(&proxy.url());
    world.enqueue("first").await;
    world.until_the_outbox_is_empty().await;

    proxy.pause();
    world.enqueue_many("a", 10).await;
    nudge.nudge();
    // Longer than the limit on a publish and its confirm.
    tokio::time::timeout(Duration::from_secs(6), world.until_the_outbox_is_empty()).await.expect_err("rows stay");
    assert_eq!(world.outbox_rows().await, 10);

    proxy.reset();
    proxy.resume();
    world.until_the_outbox_is_empty().await;
    let runner = world.runner(Script::settling(world.pool(), &log), options(2));
    world.until_no_task_is_left().await;
    assert_eq!(log.len(), 11);
    relay.stop().await;
    runner.stop().await;
}

#[tokio::test]
async fn work_goes_on_while_the_broker_is_away_and_its_backlog_is_not_replayed() {
    let (world, log) = (World::new().await, Log::default());
    let proxy = Proxy::in_front_of(&amqp_url()).await;
    proxy.cut();
    let (relay, nudge) = world.relay_to(&proxy.url());
    let runner = world.runner_on(world.pool(), &proxy.url(), Script::settling(world.pool(), &log), looking(4));
    world.enqueue_many("a", 100).await;
    nudge.nudge();
    world.until_no_task_is_left().await;
    assert_eq!((log.len(), world.outbox_rows().await), (100, 100));
    proxy.resume();
    world.until_the_outbox_is_empty().await;
    assert_eq!(log.len(), 100);
    relay.stop().await;
    runner.stop().await;
}
