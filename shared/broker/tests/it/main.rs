//! Tests with a real RabbitMQ and a network that can fail.

mod admin;

use std::time::Duration;

use admin::Admin;
use broker::{Config, Consumer, Publisher, WAITING_MAX, Waker};
use domain::message::{Queue, WakeUp};
use testkit::{Proxy, amqp_prefix, amqp_url, wait_for};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use uuid::Uuid;

const PATIENCE: Duration = Duration::from_secs(20);

fn wake_up(task: Uuid) -> WakeUp {
    WakeUp::V1 { task }
}

/// A publisher in progress. It stops when it is dropped.
struct Publishing {
    waker: Waker,
    connected: watch::Receiver<bool>,
    _stop: DropGuard,
}

impl Publishing {
    fn start(config: Config) -> Self {
        let (waker, publisher) = Publisher::new(config);
        let (connected, stop) = (publisher.connected(), CancellationToken::new());
        tokio::spawn(publisher.run(stop.clone()));
        Self { waker, connected, _stop: stop.drop_guard() }
    }

    /// Announces a new task of the queue `image`.
    fn wake(&self) -> Uuid {
        let task = Uuid::now_v7();
        self.waker.wake(Queue::Image, task);
        task
    }

    async fn until_connected(&mut self, connected: bool) {
        timeout(PATIENCE, self.connected.wait_for(|now| *now == connected))
            .await
            .expect("in time")
            .expect("is watched");
    }
}

/// A connected publisher through `url`, the configuration of a consumer, and the guard that deletes their queues.
async fn publisher(url: &str) -> (Publishing, Config, Admin) {
    let prefix = amqp_prefix();
    let config = Config::new(url, &prefix, "test").expect("a URL");
    let admin = Admin::connect(&prefix).await;
    let mut publishing = Publishing::start(config.clone());
    publishing.until_connected(true).await;
    (publishing, config, admin)
}

async fn until_depth(admin: &Admin, queue: &str, depth: u32) {
    wait_for("the messages", PATIENCE, async || (admin.depth(queue).await == Some(depth)).then_some(())).await;
}

async fn next(consumer: &mut Consumer) -> broker::Delivery {
    timeout(PATIENCE, consumer.next()).await.expect("a delivery")
}

async fn until_live(consumer: &Consumer, live: bool) {
    let mut watch = consumer.live();
    timeout(PATIENCE, watch.wait_for(|now| *now == live)).await.expect("in time").expect("is watched");
}

#[tokio::test]
async fn what_was_sent_arrives_in_order_and_an_acknowledged_message_is_gone() {
    let (publisher, config, admin) = publisher(&amqp_url()).await;
    let tasks: Vec<Uuid> = (0..300).map(|_| publisher.wake()).collect();
    until_depth(&admin, "image", 300).await;

    let mut consumer = Consumer::start(config, Queue::Image, 8);
    for task in tasks {
        let delivery = next(&mut consumer).await;
        assert_eq!(delivery.wake_up, wake_up(task));
        assert!(delivery.ack().await);
    }
    consumer.close().await;
    assert_eq!(admin.depth("image").await, Some(0));
}

#[tokio::test]
async fn no_more_than_the_prefetch_is_unacknowledged() {
    let (publisher, config, admin) = publisher(&amqp_url()).await;
    for _ in 0..5 {
        publisher.wake();
    }
    until_depth(&admin, "image", 5).await;
    let mut consumer = Consumer::start(config, Queue::Image, 2);
    let (first, _second) = (next(&mut consumer).await, next(&mut consumer).await);
    assert_eq!(admin.depth("image").await, Some(3));
    assert!(consumer.try_next().is_none());
    assert!(first.ack().await);
    next(&mut consumer).await;
}

#[tokio::test]
async fn a_message_for_a_missing_queue_is_lost_and_the_queue_comes_back_with_its_consumer() {
    let (publisher, config, admin) = publisher(&amqp_url()).await;
    let mut consumer = Consumer::start(config, Queue::Image, 1);
    until_live(&consumer, true).await;
    admin.delete("image").await;
    publisher.wake();
    wait_for("the queue", PATIENCE, async || admin.depth("image").await).await;
    until_live(&consumer, true).await;
    let task = publisher.wake();
    loop {
        // The lost one may have come after the queue was there again.
        let delivery = next(&mut consumer).await;
        let is_last = delivery.wake_up == wake_up(task);
        assert!(delivery.ack().await);
        if is_last {
            break;
        }
    }
}

#[tokio::test]
async fn an_undecodable_message_goes_to_the_dead_letters_and_its_neighbours_arrive() {
    let (publisher, config, admin) = publisher(&amqp_url()).await;
    let before = publisher.wake();
    until_depth(&admin, "image", 1).await;
    for garbage in [&b"{"[..], b"", br#"{"v":"99","task":"00000000-0000-0000-0000-000000000000"}"#] {
        admin.publish("image", garbage).await;
    }
    let after = publisher.wake();
    let mut consumer = Consumer::start(config, Queue::Image, 1);
    for expected in [before, after] {
        let delivery = next(&mut consumer).await;
        assert_eq!(delivery.wake_up, wake_up(expected));
        assert!(delivery.ack().await);
    }
    wait_for("three dead letters", PATIENCE, async || (admin.depth("dead").await == Some(3)).then_some(())).await;
    consumer.close().await;
    assert_eq!(admin.depth("image").await, Some(0));
}

#[tokio::test]
async fn a_message_that_always_comes_back_is_dead_lettered_at_the_limit() {
    let (publisher, config, admin) = publisher(&amqp_url()).await;
    publisher.wake();
    // The first delivery and five returns.
    for _ in 0..6 {
        let mut consumer = Consumer::start(config.clone(), Queue::Image, 1);
        next(&mut consumer).await;
        consumer.close().await;
    }
    wait_for("a dead letter", PATIENCE, async || (admin.depth("dead").await == Some(1)).then_some(())).await;
    assert_eq!(admin.depth("image").await, Some(0));
}

#[tokio::test]
async fn a_consumer_whose_connection_is_cut_recovers_and_never_acknowledges_the_old_generation() {
    let proxy = Proxy::in_front_of(&amqp_url()).await;
    let (publisher, _, admin) = publisher(&amqp_url()).await;
    let through_proxy = Config::new(&proxy.url(), admin.prefix(), "test").expect("a URL");
    let mut consumer = Consumer::start(through_proxy, Queue::Image, 1);
    let (first, second) = (publisher.wake(), publisher.wake());
    let old = next(&mut consumer).await;
    assert_eq!(old.wake_up, wake_up(first));

    proxy.cut();
    until_live(&consumer, false).await;
    proxy.resume();
    until_live(&consumer, true).await;
    let again = next(&mut consumer).await;
    assert_eq!(again.wake_up, wake_up(first));
    // On the new channel, the same delivery tag means the new delivery. If the old one were acknowledged there, the second
    // message would arrive now.
    assert!(!old.ack().await);
    assert!(consumer.try_next().is_none());
    assert!(again.ack().await);
    assert_eq!(next(&mut consumer).await.wake_up, wake_up(second));
}

#[tokio::test]
async fn a_publisher_whose_connection_is_cut_says_so_and_recovers() {
    let proxy = Proxy::in_front_of(&amqp_url()).await;
    let (mut publisher, _, admin) = publisher(&proxy.url()).await;
    publisher.wake();
    until_depth(&admin, "image", 1).await;
    proxy.cut();
    publisher.until_connected(false).await;
    // It waits for the connection.
    publisher.wake();
    proxy.resume();
    publisher.until_connected(true).await;
    publisher.wake();
    until_depth(&admin, "image", 3).await;
}

#[tokio::test]
async fn what_was_announced_last_is_published_before_the_end() {
    let (publisher, _, admin) = publisher(&amqp_url()).await;
    // Few enough for a second on busy cores, the time that the end allows.
    for _ in 0..20 {
        publisher.wake();
    }
    drop(publisher);
    until_depth(&admin, "image", 20).await;
}

#[tokio::test]
async fn a_wake_up_never_waits_and_what_does_not_fit_is_dropped() {
    for (announced, kept) in
        [(WAITING_MAX - 1, WAITING_MAX - 1), (WAITING_MAX, WAITING_MAX), (WAITING_MAX + 1, WAITING_MAX)]
    {
        let (waker, mut messages) = Waker::new();
        (0..announced).for_each(|_| waker.wake(Queue::Image, Uuid::now_v7()));
        drop(waker);
        let mut count = 0;
        while messages.recv().await.is_some() {
            count += 1;
        }
        assert_eq!(count, kept);
    }
}

#[tokio::test]
async fn a_connection_that_takes_nothing_more_is_replaced() {
    let proxy = Proxy::in_front_of(&amqp_url()).await;
    let (mut publisher, _, admin) = publisher(&proxy.url()).await;
    proxy.pause();
    // More than the buffers on the way take.
    let flood = async {
        loop {
            publisher.waker.wake(Queue::Image, Uuid::now_v7());
            tokio::task::yield_now().await;
        }
    };
    let mut connected = publisher.connected.clone();
    tokio::select! {
        _ = timeout(PATIENCE, connected.wait_for(|connected| !*connected)) => {}
        () = flood => {}
    }
    assert!(!*connected.borrow(), "it was replaced");
    proxy.reset();
    proxy.resume();
    publisher.until_connected(true).await;
    let before = admin.depth("image").await.unwrap_or_default();
    publisher.wake();
    wait_for("a message", PATIENCE, async || (admin.depth("image").await > Some(before)).then_some(())).await;
}

#[tokio::test]
async fn a_broker_that_is_not_there_is_sought_until_it_is() {
    let proxy = Proxy::in_front_of(&amqp_url()).await;
    proxy.cut();
    let prefix = amqp_prefix();
    let config = Config::new(&proxy.url(), &prefix, "test").expect("a URL");
    let _admin = Admin::connect(&prefix).await;
    let mut publisher = Publishing::start(config.clone());
    let consumer = Consumer::start(config, Queue::Video, 1);
    assert!(!*publisher.connected.borrow());
    proxy.resume();
    publisher.until_connected(true).await;
    until_live(&consumer, true).await;
}

#[tokio::test]
async fn a_subscription_that_is_never_answered_is_given_up() {
    /// `basic.consume` (AMQP 0-9-1, class 60, method 20).
    const SUBSCRIBE: &str = "\0\x3c\0\x14";
    let network = Proxy::in_front_of(&amqp_url()).await;
    network.swallow(SUBSCRIBE);
    let prefix = amqp_prefix();
    let config = Config::new(&network.url(), &prefix, "test").expect("a URL");
    let _admin = Admin::connect(&prefix).await;
    let consumer = Consumer::start(config, Queue::Image, 2);
    let mut live = consumer.live();
    assert!(timeout(Duration::from_secs(3), live.wait_for(|live| *live)).await.is_err(), "nobody heard it");
    network.resume();
    until_live(&consumer, true).await;
}
