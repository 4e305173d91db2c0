//! Rate limits by the generic cell rate algorithm (GCRA, ITU-T I.371 Annex A, virtual scheduling form).
//!
//! One number a key is kept: the theoretical arrival time, when all requests so far would be paid off at the steady rate.
//! A request passes when that is less than a full burst ahead. One script, one round trip, and the clock is Redis's own,
//! so that gateways agree whatever their clocks say. Times are whole microseconds, which a Lua number holds exactly.

use std::sync::LazyLock;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{RedisResult, Script};

/// KEYS: the key. ARGV: emission interval in µs, burst, cost (0 looks without taking).
/// Returns: 1 when allowed, remaining, µs until the whole burst is back, µs until one request passes.
static GCRA: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
        local interval, burst, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
        local window = interval * burst
        local time = redis.call('TIME')
        local now = time[1] * 1000000 + time[2]
        local arrival = tonumber(redis.call('GET', KEYS[1]) or now)
        -- Never beyond a full burst: a clock that was set back, or a quota that was lowered, shuts nobody out for long.
        arrival = math.min(math.max(arrival, now), now + window)
        local wait = arrival + interval - window - now
        local allowed = wait <= 0
        if allowed and cost > 0 then
            arrival = arrival + interval
            redis.call('SET', KEYS[1], string.format('%.0f', arrival), 'PX', math.ceil((arrival - now) / 1000))
        end
        return {allowed and 1 or 0, math.floor((now + window - arrival) / interval), arrival - now, math.max(wait, 0)}
        ",
    )
});

/// How much may pass. A quota of nothing is none: 0 counts as 1, and who wants no limit does not ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Requests a minute in the long run.
    pub per_minute: u32,
    /// Requests at once.
    pub burst: u32,
}

impl Quota {
    /// Microseconds that one request costs, rounded up: never more than `per_minute`.
    fn interval(self) -> u64 {
        60_000_000_u64.div_ceil(self.per_minute.max(1).into())
    }
}

/// What a limit says to a request (decisions 1.11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateDecision {
    /// Whether it may pass.
    pub allowed: bool,
    /// Requests that may pass at once when nothing was used: the burst.
    pub limit: u32,
    /// Requests that may pass at once now, after this one.
    pub remaining: u32,
    /// Until `remaining` is `limit` again.
    pub reset_after: Duration,
    /// Until one request passes; zero when this one did.
    pub retry_after: Duration,
}

pub(crate) async fn decide(
    connection: &mut MultiplexedConnection,
    key: &str,
    quota: Quota,
    cost: u32,
) -> RedisResult<RateDecision> {
    let burst = quota.burst.max(1);
    let (allowed, remaining, reset, retry): (bool, u32, u64, u64) =
        GCRA.key(key).arg(quota.interval()).arg(burst).arg(cost).invoke_async(connection).await?;
    Ok(RateDecision {
        allowed,
        limit: burst,
        remaining,
        reset_after: Duration::from_micros(reset),
        retry_after: Duration::from_micros(retry),
    })
}

#[cfg(test)]
mod tests;
