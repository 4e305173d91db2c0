use std::time::{Duration, Instant};

use testkit::{Proxy, redis_prefix, redis_url, wait_for};

use super::*;

pub(crate) const LIMIT: Duration = Duration::from_secs(10);

pub(crate) async fn up(url: &str, prefix: &str) -> Cache {
    let cache = Cache::connect(url, prefix).expect("a Redis URL");
    wait_for("redis to be up", LIMIT, async || cache.is_up().then_some(())).await;
    cache
}

pub(crate) async fn test_cache() -> Cache {
    up(&redis_url(), &redis_prefix()).await
}

fn quota(per_minute: u32, burst: u32) -> Quota {
    Quota { per_minute, burst }
}

/// The next decision of Redis. Repeats the call, because a slow test machine may make one miss its
/// deadline.
async fn decide(cache: &Cache, key: &str, quota: Quota) -> RateDecision {
    wait_for("a decision", LIMIT, async || cache.rate_limit(key, quota).await).await
}

#[tokio::test]
async fn every_call_can_be_made_in_a_handler_that_moves_between_threads() {
    fn movable(_: impl Send) {}
    let cache = test_cache().await;
    let mut watch = cache.subscribe("c");
    movable((cache.rate_limit("k", quota(1, 1)), cache.notify(["c"]), watch.changed()));
}

#[tokio::test]
async fn when_the_connection_is_settled_it_is_known_whether_redis_is_there() {
    let proxy = Proxy::in_front_of(&redis_url()).await;
    let settled = async || {
        let cache = Cache::connect(&proxy.url(), &redis_prefix()).expect("connects lazily");
        assert!(!cache.is_up(), "the connection is still to be made");
        cache.settled().await;
        cache.is_up()
    };
    // A slow test machine may make one probe miss its deadline.
    wait_for("a connection", LIMIT, async || settled().await.then_some(())).await;
    proxy.cut();
    assert!(!settled().await);
}

#[tokio::test]
async fn a_redis_behind_tls_can_be_named() {
    let cache = Cache::connect("rediss://:secret@127.0.0.1:1/0", &redis_prefix()).expect("a Redis URL");
    assert!(!cache.is_up());
}

#[tokio::test]
async fn without_redis_requests_pass_at_once_and_with_it_limits_return() {
    let proxy = Proxy::in_front_of(&redis_url()).await;
    proxy.cut();
    let cache = Cache::connect(&proxy.url(), &redis_prefix()).expect("connects lazily");
    assert!(cache.rate_limit("k", quota(1, 1)).await.is_none());
    assert!(!cache.is_up());
    let start = Instant::now();
    for _ in 0..100 {
        assert!(cache.rate_limit("k", quota(1, 1)).await.is_none());
        cache.notify(["c"]).await;
    }
    assert!(start.elapsed() < Duration::from_millis(500), "an open breaker costs nothing");
    proxy.resume();
    decide(&cache, "k", quota(1, 1)).await;
    proxy.reset();
    wait_for("the loss to be seen without a request", LIMIT, async || (!cache.is_up()).then_some(())).await;
    assert!(!decide(&cache, "k", quota(1, 1)).await.allowed);
}

#[tokio::test]
async fn a_redis_that_hangs_costs_each_call_its_deadline_until_the_breaker_opens() {
    let proxy = Proxy::in_front_of(&redis_url()).await;
    let cache = up(&proxy.url(), &redis_prefix()).await;
    proxy.pause();
    let start = Instant::now();
    let mut calls = 0;
    while cache.is_up() {
        assert!(cache.rate_limit("k", quota(1, 1)).await.is_none());
        calls += 1;
    }
    // The supervisor's own ping may be among the five.
    assert!((4..=5).contains(&calls), "opened after {calls}");
    assert!(start.elapsed() < Duration::from_secs(1));
    proxy.resume();
    wait_for("the breaker to close", LIMIT, async || cache.is_up().then_some(())).await;
    decide(&cache, "k", quota(1, 1)).await;
}

#[tokio::test]
async fn a_redis_that_is_too_slow_keeps_the_breaker_open() {
    let proxy = Proxy::in_front_of(&redis_url()).await;
    proxy.delay(Duration::from_millis(60));
    let cache = Cache::connect(&proxy.url(), &redis_prefix()).expect("connects lazily");
    assert!(cache.rate_limit("k", quota(1, 1)).await.is_none());
    assert!(!cache.is_up());
}
