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

fn one_a_minute() -> [Bucket; 1] {
    [Bucket { key: "k".into(), quota: Quota::per_minute(1, 1) }]
}

/// The next decision of Redis. Repeats the call, because a slow test machine may make one miss its
/// deadline.
async fn decide(cache: &Cache) -> RateDecision {
    wait_for("a decision", LIMIT, async || cache.take(1, &one_a_minute()).await).await
}

#[tokio::test]
async fn every_call_can_be_made_in_a_handler_that_moves_between_threads() {
    fn movable(_: impl Send) {}
    let cache = test_cache().await;
    let mut watch = cache.subscribe("c");
    let buckets = one_a_minute();
    movable((cache.take(1, &buckets), cache.debit_cpu("a", 1), cache.notify(["c"]), watch.changed()));
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
    assert!(cache.take(1, &one_a_minute()).await.is_none());
    assert!(!cache.is_up());
    let start = Instant::now();
    for _ in 0..100 {
        assert!(cache.take(1, &one_a_minute()).await.is_none());
        cache.notify(["c"]).await;
    }
    assert!(start.elapsed() < Duration::from_millis(500), "an open breaker costs nothing");
    proxy.resume();
    decide(&cache).await;
    proxy.reset();
    wait_for("the loss to be seen without a request", LIMIT, async || (!cache.is_up()).then_some(())).await;
    assert!(!decide(&cache).await.allowed);
}

#[tokio::test]
async fn a_redis_that_hangs_costs_each_call_its_deadline_until_the_breaker_opens() {
    let proxy = Proxy::in_front_of(&redis_url()).await;
    let cache = up(&proxy.url(), &redis_prefix()).await;
    proxy.pause();
    let start = Instant::now();
    let mut calls = 0;
    while cache.is_up() {
        assert!(cache.take(1, &one_a_minute()).await.is_none());
        calls += 1;
    }
    // The supervisor's own ping may be among the five.
    assert!((4..=5).contains(&calls), "opened after {calls}");
    assert!(start.elapsed() < Duration::from_secs(1));
    proxy.resume();
    wait_for("the breaker to close", LIMIT, async || cache.is_up().then_some(())).await;
    decide(&cache).await;
}

#[tokio::test]
async fn a_redis_that_is_too_slow_keeps_the_breaker_open() {
    let proxy = Proxy::in_front_of(&redis_url()).await;
    proxy.delay(Duration::from_millis(60));
    let cache = Cache::connect(&proxy.url(), &redis_prefix()).expect("connects lazily");
    assert!(cache.take(1, &one_a_minute()).await.is_none());
    assert!(!cache.is_up());
}

#[tokio::test]
async fn free_work_has_a_sixth_of_an_hour_s_processor_time_at_once_and_may_leave_a_debt() {
    let cache = test_cache().await;
    let peek = async |account: &str| wait_for("an answer", LIMIT, async || cache.peek_cpu(account).await).await;
    assert!(cache.peek_cpu("a").await.is_none(), "without a limit nothing is judged");
    cache.debit_cpu("a", 1_000_000_000).await;
    cache.limit_cpu(0);
    assert!(cache.peek_cpu("a").await.is_none());
    // 1200 s at once; 2 s become free in each second.
    cache.limit_cpu(7200);
    let fresh = peek("a").await;
    assert_eq!(
        (fresh.allowed, fresh.limit, fresh.remaining),
        (true, 1_200_000, 1_200_000),
        "the time without a limit is not counted"
    );
    // A debit that Redis does not answer in time may be lost, so each is repeated until it is seen.
    let debit_to = async |most: u32, milliseconds| {
        wait_for("the debit", LIMIT, async || {
            cache.debit_cpu("a", milliseconds).await;
            (peek("a").await.remaining <= most).then_some(())
        })
        .await;
    };
    debit_to(700_000, 600_000).await;
    assert!(peek("a").await.allowed && peek("b").await.remaining == 1_200_000);
    debit_to(0, 1_200_000).await;
    let over = peek("a").await;
    assert!(!over.allowed && over.remaining == 0);
    // A debt of 500 s at least, which half the time pays.
    assert!((240..=600).contains(&over.retry_after.as_secs()), "{over:?}");
    cache.debit_cpu("a", u64::MAX).await;
    let deepest = peek("a").await;
    assert!(deepest.retry_after.as_secs() <= 600, "no debt beyond another burst: {deepest:?}");
    assert!(peek("b").await.allowed);
}
