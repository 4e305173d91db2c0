use std::time::Instant;

use testkit::{Proxy, redis_prefix, redis_url, wait_for};

use super::*;
use crate::tests::{LIMIT, test_cache, up};

/// A watch whose subscription is live and has been reported as a change.
async fn live(cache: &crate::Cache, channel: &str) -> Watch {
    let mut watch = cache.subscribe(channel);
    wait_for("the subscription", LIMIT, async || watch.signal.borrow().live.then_some(())).await;
    watch.changed().await;
    watch
}

#[tokio::test]
async fn a_notification_wakes_every_waiter_of_its_channel_and_no_other() {
    let prefix = redis_prefix();
    let cache = up(&redis_url(), &prefix).await;
    // The colon belongs to the prefix whether it is written or not.
    let other_process = up(&redis_url(), prefix.trim_end_matches(':')).await;
    let mut one = live(&cache, "a").await;
    let mut two = cache.subscribe("a");
    let mut other = live(&cache, "b").await;
    other_process.notify(["a"]).await;
    let woken = async { tokio::join!(one.changed(), two.changed()) };
    timeout(Duration::from_secs(2), woken).await.expect("woken");
    assert!(timeout(Duration::from_millis(100), other.changed()).await.is_err());
}

#[tokio::test]
async fn a_subscription_that_becomes_live_is_reason_to_look_again() {
    let cache = test_cache().await;
    let mut watch = cache.subscribe("a");
    watch.pause = LOOK_WITHOUT_REDIS;
    timeout(Duration::from_millis(400), watch.changed()).await.expect("woken before a blind look is due");
    assert!(timeout(Duration::from_millis(700), watch.changed()).await.is_err(), "and then no more");
}

#[tokio::test]
async fn a_change_between_looks_is_not_missed_and_wakes_once() {
    let cache = test_cache().await;
    let mut watch = live(&cache, "a").await;
    cache.notify(["a"]).await;
    let signal = watch.signal.clone();
    wait_for("the message to arrive", LIMIT, async || (signal.borrow().changes != watch.seen).then_some(())).await;
    timeout(Duration::from_millis(100), watch.changed()).await.expect("at once");
    assert!(timeout(Duration::from_millis(100), watch.changed()).await.is_err(), "one change, one return");
}

#[tokio::test]
async fn the_last_waiter_to_leave_ends_the_subscription() {
    let cache = test_cache().await;
    let client = redis::Client::open(redis_url()).expect("a URL");
    let connection = client.get_multiplexed_async_connection().await.expect("connects");
    let channel = format!("{}a", cache.inner.prefix);
    let subscribers = async || {
        let mut connection = connection.clone();
        let answer = redis::cmd("PUBSUB").arg("NUMSUB").arg(&channel).query_async(&mut connection).await;
        let (_, count): (String, u32) = answer.expect("counts");
        count
    };
    let (one, two) = (cache.subscribe("a"), cache.subscribe("a"));
    wait_for("the subscription", LIMIT, async || (subscribers().await == 1).then_some(())).await;
    drop(one);
    assert!(cache.inner.subscriptions.hub.registry().channels.contains_key(&channel));
    drop(two);
    wait_for("its end", LIMIT, async || (subscribers().await == 0).then_some(())).await;
}

#[tokio::test]
async fn a_lost_connection_wakes_waiters_and_a_new_one_serves_them() {
    let proxy = Proxy::in_front_of(&redis_url()).await;
    let prefix = redis_prefix();
    let cache = up(&proxy.url(), &prefix).await;
    let publisher = up(&redis_url(), &prefix).await;
    let mut watch = live(&cache, "a").await;
    let signal = watch.signal.clone();

    proxy.cut();
    timeout(Duration::from_secs(2), watch.changed()).await.expect("woken by the loss");
    watch.pause = LOOK_WITHOUT_REDIS;
    let start = Instant::now();
    watch.changed().await;
    let waited = start.elapsed();
    assert!((400..1000).contains(&waited.as_millis()), "looks every 500 ms without Redis, not after {waited:?}");

    proxy.resume();
    wait_for("the new subscription", LIMIT, async || signal.borrow().live.then_some(())).await;
    watch.seen = signal.borrow().changes;
    publisher.notify(["a"]).await;
    timeout(Duration::from_secs(2), watch.changed()).await.expect("woken by the change");
}

#[tokio::test]
async fn a_waiter_beyond_the_limit_of_channels_looks_at_intervals_that_grow_to_half_a_second() {
    let hub = Arc::new(Hub::new(1));
    let watch = |channel: &str| Watch::new(&hub, channel.to_owned());
    let (first, mut beyond) = (watch("a"), watch("b"));
    for milliseconds in [25, 50, 100, 200, 400, 500, 500] {
        let begun = Instant::now();
        beyond.changed().await;
        assert!(begun.elapsed() >= Duration::from_millis(milliseconds), "it waits");
    }
    drop(first);
    let registered = watch("b");
    assert!(registered.unregistered.is_none());
    drop(beyond);
    assert!(hub.registry().channels.contains_key("b"), "it leaves the channel of another waiter alone");
}

#[tokio::test]
async fn a_message_arrives_in_every_process_that_watches_its_channel_and_announces_nothing() {
    let prefix = redis_prefix();
    let (cache, other_process) = (up(&redis_url(), &prefix).await, up(&redis_url(), &prefix).await);
    let (mut here, mut there) = (cache.messages(), other_process.messages());
    let (mut watch, _watch) = (live(&cache, "a").await, live(&other_process, "b").await);
    other_process.publish("b", "to the other").await;
    cache.publish("a", "one").await;
    cache.publish("b", "two").await;
    let next = async |messages: &mut Messages| timeout(LIMIT, messages.next()).await.expect("a message");
    assert_eq!(*next(&mut here).await, *b"one");
    assert_eq!(*next(&mut there).await, *b"to the other");
    assert_eq!(*next(&mut there).await, *b"two");
    assert!(timeout(Duration::from_millis(100), watch.changed()).await.is_err(), "no change");
}

#[tokio::test]
async fn of_messages_that_nobody_reads_the_newest_are_kept() {
    let hub = Arc::new(Hub::new(1));
    let mut messages = Messages { _hub: hub.clone(), received: hub.messages.subscribe() };
    for number in 0..MESSAGES_MAX + 2 {
        hub.receive("a", number.to_string().as_bytes());
    }
    for number in 2..MESSAGES_MAX + 2 {
        assert_eq!(*messages.next().await, *number.to_string().as_bytes());
    }
}
