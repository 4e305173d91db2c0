//! Tests with a real RabbitMQ and a network that can fail.

mod admin;

use std::time::Duration;

use admin::Admin;
use broker::{Config, Consumer, Message, NotSent, Publisher};
use domain::message::{Queue, WakeUp};
use testkit::{Proxy, amqp_prefix, amqp_url, wait_for};
use tokio::time::timeout;
use uuid::Uuid;

const PATIENCE: Duration = Duration::from_secs(20);

fn message() -> Message {
    Message { queue: Queue::Image, task: Uuid::now_v7(), traceparent: Some("00-a-b-01".to_owned()) }
}

fn wake_up(message: &Message) -> WakeUp {
    WakeUp::V1 { task: message.task, traceparent: message.traceparent.clone() }
}

fn all_sent(results: &[Result<(), NotSent>]) -> bool {
    results.iter().all(Result::is_ok)
}

/// A connected publisher through `url`, the configuration of a consumer, and the guard that deletes their queues.
async fn publisher(url: &str) -> (Publisher, Config, Admin) {
    let prefix = amqp_prefix();
    let config = Config::new(url, &prefix, "test").expect("a URL");
    let admin = Admin::connect(&prefix).await;
    let publisher = Publisher::start(config.clone());
    publisher.connected().wait_for(|connected| *connected).await.expect("connects");
    (publisher, config, admin)
}

async fn next(consumer: &mut Consumer) -> broker::Delivery {
    timeout(PATIENCE, consumer.next()).await.expect("a delivery")
}

async fn until_live(consumer: &Consumer, live: bool) {
    let mut watch = consumer.live();
    timeout(PATIENCE, watch.wait_for(|now| *now == live)).await.expect("in time").expect("is watched");
}

#[tokio::test]
async fn what_was_sent_arrives_and_an_acknowledged_message_is_gone() {
    let (publisher, config, admin) = publisher(&amqp_url()).await;
    let messages: Vec<Message> = (0..300).map(|_| message()).collect();
    assert!(all_sent(&publisher.publish(&messages).await));
    assert_eq!(admin.depth("image").await, Some(300));

    let mut consumer = Consumer::start(config, Queue::Image, 8);
    for message in &messages {
        let delivery = next(&mut consumer).await;
        assert_eq!(delivery.wake_up, wake_up(message));
        assert!(delivery.ack().await);
    }
    consumer.close().await;
    assert_eq!(admin.depth("image").await, Some(0));
    publisher.close().await;
}

#[tokio::test]
async fn no_more_than_the_prefetch_is_unacknowledged() {
    let (publisher, config, admin) = publisher(&amqp_url()).await;
    let messages: Vec<Message> = (0..5).map(|_| message()).collect();
    assert!(all_sent(&publisher.publish(&messages).await));
    let mut consumer = Consumer::start(config, Queue::Image, 2);
    let (first, _second) = (next(&mut consumer).await, next(&mut consumer).await);
    assert_eq!(admin.depth("image").await, Some(3));
    assert!(consumer.try_next().is_none());
    assert!(first.ack().await);
    next(&mut consumer).await;
}

#[tokio::test]
async fn a_message_for_a_missing_queue_is_not_sent_and_the_queue_comes_back() {
    let (publisher, _, admin) = publisher(&amqp_url()).await;
    admin.delete("image").await;
    let results = publisher.publish(&[message()]).await;
    assert!(matches!(results[..], [Err(NotSent::Unroutable)]), "{results:?}");
    wait_for("the queue", PATIENCE, async || all_sent(&publisher.publish(&[message()]).await).then_some(())).await;
}

#[tokio::test]
async fn an_undecodable_message_goes_to_the_dead_letters_and_its_neighbours_arrive() {
    let (publisher, config, admin) = publisher(&amqp_url()).await;
    let (before, after) = (message(), message());
    assert!(all_sent(&publisher.publish(std::slice::from_ref(&before)).await));
    for garbage in [&b"{"[..], b"", br#"{"v":"99","task":"00000000-0000-0000-0000-000000000000"}"#] {
        admin.publish("image", garbage).await;
    }
    assert!(all_sent(&publisher.publish(std::slice::from_ref(&after)).await));
    let mut consumer = Consumer::start(config, Queue::Image, 1);
    for expected in [before, after] {
        let delivery = next(&mut consumer).await;
        assert_eq!(delivery.wake_up, wake_up(&expected));
        assert!(delivery.ack().await);
    }
    wait_for("three dead letters", PATIENCE, async || (admin.depth("dead").await == Some(3)).then_some(())).await;
    consumer.close().await;
    assert_eq!(admin.depth("image").await, Some(0));
}

#[tokio::test]
async fn a_message_that_always_comes_back_is_dead_lettered_at_the_limit() {
    let (publisher, config, admin) = publisher(&amqp_url()).await;
    assert!(all_sent(&publisher.publish(&[message()]).await));
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
    let (first, second) = (message(), message());
    assert!(all_sent(&publisher.publish(&[first.clone(), second.clone()]).await));
    let old = next(&mut consumer).await;
    assert_eq!(old.wake_up, wake_up(&first));

    proxy.cut();
    until_live(&consumer, false).await;
    proxy.resume();
    until_live(&consumer, true).await;
    let again = next(&mut consumer).await;
    assert_eq!(again.wake_up, wake_up(&first));
    // On the new channel, the same delivery tag means the new delivery. If the old one were acknowledged there, the second
    // message would arrive now.
    assert!(!old.ack().await);
    assert!(consumer.try_next().is_none());
    assert!(again.ack().await);
    assert_eq!(next(&mut consumer).await.wake_up, wake_up(&second));
}

#[tokio::test]
async fn a_publisher_whose_connection_is_cut_says_so_and_recovers() {
    let proxy = Proxy::in_front_of(&amqp_url()).await;
    let (publisher, _, _admin) = publisher(&proxy.url()).await;
    assert!(all_sent(&publisher.publish(&[message()]).await));
    let mut connected = publisher.connected();
    proxy.cut();
    timeout(PATIENCE, connected.wait_for(|connected| !*connected)).await.expect("in time").expect("is watched");
    let results = publisher.publish(&[message(), message()]).await;
    assert!(matches!(results[..], [Err(NotSent::Disconnected), Err(NotSent::Disconnected)]), "{results:?}");
    proxy.resume();
    timeout(PATIENCE, connected.wait_for(|connected| *connected)).await.expect("in time").expect("is watched");
    assert!(all_sent(&publisher.publish(&[message()]).await));
}

#[tokio::test]
async fn a_publish_that_is_not_confirmed_in_time_is_not_sent() {
    let proxy = Proxy::in_front_of(&amqp_url()).await;
    let (publisher, _, _admin) = publisher(&proxy.url()).await;
    proxy.pause();
    let results = timeout(Duration::from_secs(7), publisher.publish(&[message()])).await.expect("within its limit");
    assert!(matches!(results[..], [Err(NotSent::Timeout)]), "{results:?}");
    proxy.reset();
    proxy.resume();
    let mut connected = publisher.connected();
    wait_for("a new connection", PATIENCE, async || {
        let _ = connected.wait_for(|connected| *connected).await;
        all_sent(&publisher.publish(&[message()]).await).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_broker_that_is_not_there_is_sought_until_it_is() {
    let proxy = Proxy::in_front_of(&amqp_url()).await;
    proxy.cut();
    let prefix = amqp_prefix();
    let config = Config::new(&proxy.url(), &prefix, "test").expect("a URL");
    let _admin = Admin::connect(&prefix).await;
    let publisher = Publisher::start(config.clone());
    let consumer = Consumer::start(config, Queue::Video, 1);
    assert!(matches!(publisher.publish(&[message()]).await[..], [Err(NotSent::Disconnected)]));
    proxy.resume();
    let mut connected = publisher.connected();
    timeout(PATIENCE, connected.wait_for(|connected| *connected)).await.expect("in time").expect("is watched");
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
