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

    async fn ask(&self, key: &str, quota: Quota, cost: u32) -> RateDecision {
        let key = format!("{}{key}", self.prefix);
        decide(&mut self.connection.clone(), &key, quota, cost).await.expect("decides")
    }
}

fn quota(per_minute: u32, burst: u32) -> Quota {
    Quota { per_minute, burst }
}

#[tokio::test]
async fn a_burst_passes_and_the_next_request_waits_one_interval() {
    let limit = Limit::new().await;
    for left in [2, 1, 0] {
        let decision = limit.ask("k", quota(1, 3), 1).await;
        assert!(decision.allowed && decision.retry_after == Duration::ZERO);
        assert_eq!((decision.limit, decision.remaining), (3, left));
    }
    let refused = limit.ask("k", quota(1, 3), 1).await;
    assert!(!refused.allowed && refused.remaining == 0);
    assert!((50..=60).contains(&refused.retry_after.as_secs()), "{refused:?}");
    assert!((170..=180).contains(&refused.reset_after.as_secs()), "{refused:?}");
    assert!(limit.ask("another", quota(1, 3), 1).await.allowed);
}

#[tokio::test]
async fn who_waits_as_long_as_told_passes_and_not_before() {
    let limit = Limit::new().await;
    let start = Instant::now();
    assert!(limit.ask("k", quota(300, 1), 1).await.allowed);
    let refused = limit.ask("k", quota(300, 1), 1).await;
    assert!(!refused.allowed && refused.retry_after <= Duration::from_millis(200));
    wait_for("the interval to pass", Duration::from_secs(10), async || {
        limit.ask("k", quota(300, 1), 1).await.allowed.then_some(())
    })
    .await;
    assert!(start.elapsed() >= Duration::from_millis(200));
}

#[tokio::test]
async fn exactly_the_burst_passes_however_many_ask_at_once() {
    let limit = Limit::new().await;
    let asked = futures_util::future::join_all((0..200).map(|_| limit.ask("k", quota(1, 20), 1))).await;
    assert_eq!(asked.iter().filter(|decision| decision.allowed).count(), 20);
}

#[tokio::test]
async fn a_look_takes_nothing() {
    let limit = Limit::new().await;
    for _ in 0..3 {
        let look = limit.ask("k", quota(1, 1), 0).await;
        assert!(look.allowed && look.remaining == 1 && look.reset_after == Duration::ZERO);
    }
    assert!(limit.ask("k", quota(1, 1), 1).await.allowed);
    let look = limit.ask("k", quota(1, 1), 0).await;
    assert!(!look.allowed && look.remaining == 0);
}

#[tokio::test]
async fn a_lowered_quota_shuts_nobody_out_for_longer_than_itself() {
    let limit = Limit::new().await;
    for _ in 0..100 {
        assert!(limit.ask("k", quota(1, 100), 1).await.allowed);
    }
    let refused = limit.ask("k", quota(60, 1), 1).await;
    assert!(!refused.allowed && refused.retry_after <= Duration::from_secs(1));
}

#[tokio::test]
async fn zero_counts_as_one() {
    let limit = Limit::new().await;
    let decision = limit.ask("k", quota(0, 0), 1).await;
    assert!(decision.allowed && decision.limit == 1 && decision.remaining == 0);
    assert!(!limit.ask("k", quota(0, 0), 1).await.allowed);
}

#[test]
fn an_interval_is_rounded_up_and_never_zero() {
    let interval = |per_minute| quota(per_minute, 1).interval();
    assert_eq!((interval(0), interval(1200), interval(7), interval(u32::MAX)), (60_000_000, 50_000, 8_571_429, 1));
}
