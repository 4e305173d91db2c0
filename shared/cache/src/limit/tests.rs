use std::time::Instant;

use testkit::{redis_prefix, redis_url, wait_for};

use super::*;

/// The limit without a deadline, which a busy test machine may miss.
struct Limit {
    connection: MultiplexedConnection,
    prefix: String,
}

impl Limit {
    async fn new() -> Self {
        let client = redis::Client::open(redis_url()).expect("a URL");
        let connection = client.get_multiplexed_async_connection().await.expect("connects");
        Self { connection, prefix: redis_prefix() }
    }

    async fn decide(&self, mode: Mode, weight: u32, buckets: &[(&str, Quota)]) -> RateDecision {
        let buckets: Vec<Bucket> =
            buckets.iter().map(|(key, quota)| Bucket { key: (*key).to_owned(), quota: *quota }).collect();
        let keys: Vec<String> = buckets.iter().map(|bucket| format!("{}{}", self.prefix, bucket.key)).collect();
        decide(&mut self.connection.clone(), mode, weight, &buckets, &keys).await.expect("decides")
    }

    /// Takes one unit.
    async fn ask(&self, key: &str, quota: Quota) -> RateDecision {
        self.decide(Mode::Take, 1, &[(key, quota)]).await
    }
}

fn quota(per_minute: u32, burst: u32) -> Quota {
    Quota::per_minute(per_minute, burst)
}

#[tokio::test]
async fn a_burst_passes_and_the_next_request_waits_one_interval() {
    let limit = Limit::new().await;
    for left in [2, 1, 0] {
        let decision = limit.ask("k", quota(1, 3)).await;
        assert!(decision.allowed && decision.retry_after == Duration::ZERO);
        assert_eq!((decision.limit, decision.remaining), (3, left));
    }
    let refused = limit.ask("k", quota(1, 3)).await;
    assert!(!refused.allowed && refused.remaining == 0);
    assert!((50..=60).contains(&refused.retry_after.as_secs()), "{refused:?}");
    assert!((170..=180).contains(&refused.reset_after.as_secs()), "{refused:?}");
    assert!(limit.ask("another", quota(1, 3)).await.allowed);
}

#[tokio::test]
async fn who_waits_as_long_as_told_passes_and_not_before() {
    let limit = Limit::new().await;
    let start = Instant::now();
    assert!(limit.ask("k", quota(300, 1)).await.allowed);
    let refused = limit.ask("k", quota(300, 1)).await;
    assert!(!refused.allowed && refused.retry_after <= Duration::from_millis(200));
    wait_for("the interval to pass", Duration::from_secs(10), async || {
        limit.ask("k", quota(300, 1)).await.allowed.then_some(())
    })
    .await;
    assert!(start.elapsed() >= Duration::from_millis(200));
}

#[tokio::test]
async fn exactly_the_burst_passes_however_many_ask_at_once() {
    let limit = Limit::new().await;
    let asked = futures_util::future::join_all((0..200).map(|_| limit.ask("k", quota(1, 20)))).await;
    assert_eq!(asked.iter().filter(|decision| decision.allowed).count(), 20);
}

#[tokio::test]
async fn a_look_takes_nothing() {
    let limit = Limit::new().await;
    for _ in 0..3 {
        let look = limit.decide(Mode::Peek, 1, &[("k", quota(1, 1))]).await;
        assert!(look.allowed && look.remaining == 1 && look.reset_after == Duration::ZERO);
    }
    assert!(limit.ask("k", quota(1, 1)).await.allowed);
    let look = limit.decide(Mode::Peek, 1, &[("k", quota(1, 1))]).await;
    assert!(!look.allowed && look.remaining == 0);
}

#[tokio::test]
async fn a_lowered_quota_shuts_nobody_out_for_longer_than_its_greatest_debt() {
    let limit = Limit::new().await;
    for _ in 0..100 {
        assert!(limit.ask("k", quota(1, 100)).await.allowed);
    }
    let refused = limit.ask("k", quota(60, 1)).await;
    assert!(!refused.allowed && refused.retry_after <= Duration::from_secs(2));
}

#[tokio::test]
async fn zero_counts_as_one() {
    let limit = Limit::new().await;
    let decision = limit.ask("k", quota(0, 0)).await;
    assert!(decision.allowed && decision.limit == 1 && decision.remaining == 0);
    assert!(!limit.ask("k", quota(0, 0)).await.allowed);
}

#[tokio::test]
async fn a_request_takes_its_weight_from_all_of_its_buckets_or_from_none() {
    let limit = Limit::new().await;
    let (small, large) = (("small", quota(1, 10)), ("large", quota(1, 100)));
    let take = async |weight, buckets: &[(&str, Quota)]| limit.decide(Mode::Take, weight, buckets).await;
    let both = take(1, &[small, large]).await;
    assert_eq!(
        (both.allowed, both.bucket, both.limit, both.remaining),
        (true, 0, 10, 9),
        "the one with the least left"
    );
    assert_eq!(take(1, &[large, small]).await.bucket, 1, "whatever the order");
    // At, and above what is left.
    assert_eq!(take(8, &[small, large]).await.remaining, 0);
    let refused = take(1, &[small, large]).await;
    assert_eq!((refused.allowed, refused.bucket, refused.remaining), (false, 0, 0));
    assert!((50..=60).contains(&refused.retry_after.as_secs()), "{refused:?}");
    assert_eq!(take(1, &[large]).await.remaining, 89, "the refused one took nothing");
    // A refusal tells the bucket that it waits for, even if another one has less left.
    assert_eq!(take(90, &[("fresh", quota(1, 20)), large]).await.bucket, 1);
    assert_eq!(take(89, &[large]).await.remaining, 0);
}

#[tokio::test]
async fn a_weight_above_the_burst_takes_the_whole_burst() {
    let limit = Limit::new().await;
    let heavy = limit.decide(Mode::Take, 20, &[("k", quota(1, 3))]).await;
    assert_eq!((heavy.allowed, heavy.remaining), (true, 0));
    let refused = limit.decide(Mode::Take, 20, &[("k", quota(1, 3))]).await;
    assert!(!refused.allowed && (170..=180).contains(&refused.retry_after.as_secs()), "{refused:?}");
}

#[tokio::test]
async fn a_debit_leaves_a_debt_of_at_most_another_burst() {
    let limit = Limit::new().await;
    let debit = async |units| limit.decide(Mode::Debit, units, &[("k", quota(1, 10))]).await.remaining;
    assert_eq!((debit(4).await, debit(6).await, debit(3).await), (6, 0, 0));
    let wait = limit.ask("k", quota(1, 10)).await.retry_after.as_secs();
    assert!((230..=240).contains(&wait), "one unit and three of debt: {wait}");
    debit(u32::MAX).await;
    let wait = limit.ask("k", quota(1, 10)).await.retry_after.as_secs();
    assert!((650..=660).contains(&wait), "one unit and ten of debt: {wait}");
}

#[test]
fn an_interval_is_rounded_up_and_never_zero() {
    let interval = |per_minute| quota(per_minute, 1).interval;
    assert_eq!((interval(0), interval(1200), interval(7), interval(u32::MAX)), (60_000_000, 50_000, 8_571_429, 1));
    assert_eq!((Quota::per_hour(20, 1).interval, Quota::per_hour(7_200_000, 1).interval), (180_000_000, 500));
}
