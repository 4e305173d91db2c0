//! How much is held open at once under a key, over all processes.
//!
//! A sorted set a key: what is held, by the time at which it is taken for lost. One script, one round trip, and the clock is
//! Redis's own, so that a process that dies keeps its places no longer than their lease, whatever its clock said.

use std::sync::LazyLock;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{RedisResult, Script};

/// KEYS: the key. ARGV: what is held, the most that may be, its lease in ms.
/// Returns: 1 when it is held now. What is held already is so for another lease.
static HOLD: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
        local time = redis.call('TIME')
        local now = time[1] * 1000 + math.floor(time[2] / 1000)
        redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
        local is_held = redis.call('ZSCORE', KEYS[1], ARGV[1])
        if not is_held and redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then
            return 0
        end
        redis.call('ZADD', KEYS[1], string.format('%.0f', now + ARGV[3]), ARGV[1])
        redis.call('PEXPIRE', KEYS[1], ARGV[3])
        return 1
        ",
    )
});

pub(crate) async fn hold(
    connection: &mut MultiplexedConnection,
    key: &str,
    id: &str,
    most: usize,
    lease: Duration,
) -> RedisResult<bool> {
    let lease = u64::try_from(lease.as_millis()).unwrap_or(u64::MAX).max(1);
    HOLD.key(key).arg(id).arg(most).arg(lease).invoke_async(connection).await
}

#[cfg(test)]
mod tests {
    use testkit::wait_for;

    use crate::tests::{LIMIT, test_cache};
    use crate::*;

    const LEASE: Duration = Duration::from_secs(60);

    /// The next answer of Redis: a slow moment of the test machine may cost one its deadline.
    async fn hold(cache: &Cache, key: &str, id: &str, lease: Duration) -> bool {
        wait_for("an answer", LIMIT, async || cache.hold(key, id, 2, lease).await).await
    }

    #[tokio::test]
    async fn no_more_is_held_than_may_be_and_what_is_let_go_makes_room() {
        let cache = test_cache().await;
        assert!(hold(&cache, "k", "one", LEASE).await && hold(&cache, "k", "two", LEASE).await);
        assert!(!hold(&cache, "k", "three", LEASE).await);
        assert!(hold(&cache, "another", "three", LEASE).await, "each key has its own");
        assert!(hold(&cache, "k", "one", LEASE).await, "what is held already can be held on to");
        assert!(!hold(&cache, "k", "three", LEASE).await, "and is counted once");
        cache.let_go("k", "one").await;
        wait_for("room", LIMIT, async || hold(&cache, "k", "three", LEASE).await.then_some(())).await;
        assert!(!hold(&cache, "k", "one", LEASE).await);
    }

    #[tokio::test]
    async fn what_nobody_lets_go_is_held_no_longer_than_its_lease() {
        let cache = test_cache().await;
        assert!(hold(&cache, "k", "one", Duration::from_millis(300)).await && hold(&cache, "k", "two", LEASE).await);
        wait_for("the lease to end", LIMIT, async || hold(&cache, "k", "three", LEASE).await.then_some(())).await;
        assert!(!hold(&cache, "k", "one", LEASE).await, "the other's went on");
    }
}
