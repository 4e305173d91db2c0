//! Tests of the way from a commit to the worker.

use std::time::Duration;

use domain::message::Queue;
use taskqueue::RunnerOptions;
use testkit::{Proxy, amqp_url};
use tokio::time::{Instant, timeout};

use crate::harness::{Harness, Log, Script, options};

#[tokio::test]
async fn what_is_committed_is_announced_and_done() {
    let (harness, log) = (Harness::new().await, Log::default());
    // The first claim of a runner needs no message, and its next idle poll would be in an hour.
    harness.enqueue("a").await;
    let runner = harness.runner(Script::settling(harness.pool(), &log), options(4));
    let (publisher, waker) = harness.publisher();
    log.until(1).await;
    let mut ids = harness.enqueue_many("a", 450).await;
    ids.iter().for_each(|id| waker.wake(Queue::Image, *id));
    harness.until_no_task_is_left().await;
    let mut begun = log.ids().split_off(1);
    begun.sort();
    ids.sort();
    assert_eq!(begun, ids);
    publisher.stop().await;
    runner.stop().await;
}

#[tokio::test]
async fn without_the_broker_an_idle_worker_begins_within_three_seconds_and_nothing_is_repeated_later() {
    let (harness, log) = (Harness::new().await, Log::default());
    let proxy = Proxy::in_front_of(&amqp_url()).await;
    proxy.cut();
    let (publisher, waker) = harness.publisher_to(&proxy.url());
    // The default interval of idle polls.
    let idle = RunnerOptions::new(Queue::Image, 1);
    let runner = harness.runner_on(harness.pool(), &proxy.url(), Script::settling(harness.pool(), &log), idle);
    for count in 1..=3 {
        let id = harness.enqueue("a").await;
        let began = Instant::now();
        waker.wake(Queue::Image, id);
        assert!(began.elapsed() < Duration::from_millis(100), "a wake-up never waits: {:?}", began.elapsed());
        timeout(Duration::from_secs(3), log.until(count)).await.expect("begins in time");
    }
    proxy.resume();
    harness.until_no_task_is_left().await;
    assert_eq!(log.len(), 3);
    publisher.stop().await;
    runner.stop().await;
}
