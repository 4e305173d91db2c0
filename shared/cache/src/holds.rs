//! Limits on what is held open at once under a key, over all processes.
//!
//! There is one sorted set per key. It contains the held ids, ordered by the expiry of their
//! leases. Leases use the clock of Redis, so the slots of a process that dies are released when
//! their leases expire, whatever its own clock says. A lease can be short, because everything that
//! a process holds is renewed in one round trip.

use std::sync::LazyLock;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{RedisResult, Script};

/// KEYS: the key. ARGV: the id to hold, the maximum number of held ids, the lease in ms. Returns 1
/// if the id is held now. If the id is already held, its lease is renewed.
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

/// KEYS: one key for each held id. ARGV: the lease in ms, then the id held under each key.
///
/// A missing id is added again: Redis lost it, or its process was late. It is still open, and the
/// next caller must count it.
static RENEW: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
        local time = redis.call('TIME')
        local ends = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[1])
        for place, key in ipairs(KEYS) do
            redis.call('ZADD', key, ends, ARGV[place + 1])
            redis.call('PEXPIRE', key, ARGV[1])
        end
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
    HOLD.key(key).arg(id).arg(most).arg(milliseconds(lease)).invoke_async(connection).await
}

/// `held`: pairs of a key and an id held under it.
pub(crate) async fn renew(
    connection: &mut MultiplexedConnection,
    held: &[(String, &str)],
    lease: Duration,
) -> RedisResult<()> {
    let mut script = RENEW.prepare_invoke();
    script.arg(milliseconds(lease));
    for (key, id) in held {
        script.key(key).arg(*id);
    }
    script.invoke_async(connection).await
}

/// KEYS: the keys. Returns the held ids of each.
static HELD: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
        local time = redis.call('TIME')
        local now = string.format('(%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
        local held = {}
        for place, key in ipairs(KEYS) do
            held[place] = redis.call('ZRANGEBYSCORE', key, now, '+inf')
        end
        return held
        ",
    )
});

pub(crate) async fn held(connection: &mut MultiplexedConnection, keys: &[String]) -> RedisResult<Vec<Vec<String>>> {
    let mut script = HELD.prepare_invoke();
    for key in keys {
        script.key(key);
    }
    script.invoke_async(connection).await
}

fn milliseconds(lease: Duration) -> u64 {
    u64::try_from(lease.as_millis()).unwrap_or(u64::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use testkit::wait_for;

    use crate::tests::{LIMIT, test_cache};
    use crate::*;

    const LEASE: Duration = Duration::from_secs(60);

    /// The next answer of Redis. Repeats the call, because a slow test machine may make one miss
    /// its deadline.
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

    /// The ids held under a key and their remaining time in ms, by the clock of Redis.
    async fn remaining(cache: &Cache, key: &str) -> Vec<(String, i64)> {
        let client = redis::Client::open(testkit::redis_url()).expect("a URL");
        let mut connection = client.get_multiplexed_async_connection().await.expect("connects");
        let mut asked = redis::pipe();
        asked.atomic().cmd("TIME").cmd("ZRANGE").arg(cache.hold_key(key)).arg(0).arg(-1).arg("WITHSCORES");
        let ((seconds, microseconds), held): ((i64, i64), Vec<(String, i64)>) =
            asked.query_async(&mut connection).await.expect("answers");
        let now = seconds * 1000 + microseconds / 1000;
        held.into_iter().map(|(id, ends)| (id, ends - now)).collect()
    }

    #[tokio::test]
    async fn one_call_renews_whatever_is_held_for_a_lease_from_now() {
        let cache = test_cache().await;
        let renew = async |held: &[(&str, &str)], lease| {
            wait_for("an answer", LIMIT, async || cache.renew(held, lease).await).await;
        };
        let short = Duration::from_millis(1500);
        for (key, id) in [("a", "one"), ("a", "two"), ("b", "one")] {
            assert!(hold(&cache, key, id, short).await);
        }
        // The id that is not renewed expires.
        renew(&[("a", "one"), ("b", "one")], LEASE).await;
        let mut ids = remaining(&cache, "a").await;
        ids.sort();
        assert!((59_000..=60_000).contains(&ids[0].1), "{ids:?}");
        assert!(ids[1].1 <= 1500, "{ids:?}");
        wait_for("the other's end", LIMIT, async || hold(&cache, "a", "three", LEASE).await.then_some(())).await;
        assert!(!hold(&cache, "a", "two", LEASE).await);
        // An id that Redis lost is still open, even if another id was added in between.
        cache.let_go("b", "one").await;
        for id in ["two", "three"] {
            wait_for("room", LIMIT, async || hold(&cache, "b", id, LEASE).await.then_some(())).await;
        }
        renew(&[("b", "one")], LEASE).await;
        assert_eq!(remaining(&cache, "b").await.len(), 3);
        assert!(!hold(&cache, "b", "four", LEASE).await);
    }

    #[tokio::test]
    async fn what_is_held_can_be_listed_until_it_is_let_go_or_its_lease_ends() {
        let cache = test_cache().await;
        let list = async || {
            let mut held = wait_for("an answer", LIMIT, async || cache.held(&["a", "b", "none"]).await).await;
            held.iter_mut().for_each(|ids| ids.sort());
            held
        };
        for (key, id, lease) in
            [("a", "one", LEASE), ("a", "two", LEASE), ("b", "brief", Duration::from_millis(300)), ("b", "one", LEASE)]
        {
            assert!(hold(&cache, key, id, lease).await);
        }
        wait_for("the lease to end", LIMIT, async || (list().await[1] == ["one"]).then_some(())).await;
        assert_eq!(list().await, [vec!["one", "two"], vec!["one"], vec![]]);
        cache.let_go("a", "one").await;
        wait_for("the release", LIMIT, async || (list().await[0] == ["two"]).then_some(())).await;
        assert_eq!(wait_for("an answer", LIMIT, async || cache.held(&[] as &[&str]).await).await.len(), 0);
    }

    #[tokio::test]
    async fn what_nobody_lets_go_is_held_no_longer_than_its_lease() {
        let cache = test_cache().await;
        assert!(hold(&cache, "k", "one", Duration::from_millis(300)).await && hold(&cache, "k", "two", LEASE).await);
        wait_for("the lease to end", LIMIT, async || hold(&cache, "k", "three", LEASE).await.then_some(())).await;
        assert!(!hold(&cache, "k", "one", LEASE).await, "the other's went on");
    }
}
