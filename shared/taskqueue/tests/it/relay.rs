//! Tests of the way from the outbox to the worker.

use std::time::Duration;

use testkit::{Proxy, amqp_url};

use crate::harness::{Harness, Log, Script, looking, options};

#[tokio::test]
async fn what_is_committed_is_announced_and_done_and_the_outbox_is_empty() {
    let (harness, log) = (Harness::new().await, Log::default());
    let runner = harness.runner(Script::settling(harness.pool(), &log), options(4));
    let ((one, waker), (other, _)) = (harness.relay(), harness.relay());
    let mut ids = harness.enqueue_many("a", 450).await;
    waker.wake();
    harness.until_no_task_is_left().await;
    harness.until_the_outbox_is_empty().await;
    let mut begun = log.ids();
    begun.sort();
    ids.sort();
    assert_eq!(begun, ids);
    one.stop().await;
    other.stop().await;
    runner.stop().await;
}

#[tokio::test]
async fn rows_of_other_processes_are_found_without_a_wake() {
    let (harness, log) = (Harness::new().await, Log::default());
    let runner = harness.runner(Script::settling(harness.pool(), &log), options(1));
    let (relay, _) = harness.relay();
    for count in 1..=3 {
        harness.enqueue("a").await;
        log.until(count).await;
    }
    relay.stop().await;
    runner.stop().await;
}

#[tokio::test]
async fn a_broker_that_is_cut_off_while_publishing_leaves_the_rows_and_they_are_sent_later() {
    let (harness, log) = (Harness::new().await, Log::default());
    let proxy = Proxy::in_front_of(&amqp_url()).await;
    let (relay, waker) = harness.relay_to(&proxy.url());
    harness.enqueue("first").await;
    harness.until_the_outbox_is_empty().await;

    proxy.pause();
    harness.enqueue_many("a", 10).await;
    waker.wake();
    // Longer than the limit of a publish and its confirm.
    tokio::time::timeout(Duration::from_secs(6), harness.until_the_outbox_is_empty()).await.expect_err("rows stay");
    assert_eq!(harness.outbox_rows().await, 10);

    proxy.reset();
    proxy.resume();
    harness.until_the_outbox_is_empty().await;
    let runner = harness.runner(Script::settling(harness.pool(), &log), options(2));
    harness.until_no_task_is_left().await;
    assert_eq!(log.len(), 11);
    relay.stop().await;
    runner.stop().await;
}

#[tokio::test]
async fn work_goes_on_while_the_broker_is_away_and_its_backlog_is_not_replayed() {
    let (harness, log) = (Harness::new().await, Log::default());
    let proxy = Proxy::in_front_of(&amqp_url()).await;
    proxy.cut();
    let (relay, waker) = harness.relay_to(&proxy.url());
    let runner = harness.runner_on(harness.pool(), &proxy.url(), Script::settling(harness.pool(), &log), looking(4));
    harness.enqueue_many("a", 100).await;
    waker.wake();
    harness.until_no_task_is_left().await;
    assert_eq!((log.len(), harness.outbox_rows().await), (100, 100));
    proxy.resume();
    harness.until_the_outbox_is_empty().await;
    assert_eq!(log.len(), 100);
    relay.stop().await;
    runner.stop().await;
}
