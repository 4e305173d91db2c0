//! Rate limits by the generic cell rate algorithm (GCRA, ITU-T I.371 Annex A, virtual scheduling
//! form).
//!
//! Each key stores one number, the theoretical arrival time: the time at which all requests so far
//! would be used up at the steady rate. A request passes if that time is less than a full burst
//! ahead. A check takes one script and one round trip, and uses the clock of Redis, so that all
//! gateways agree. Times are whole microseconds, which a Lua number represents exactly.

use std::sync::LazyLock;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{RedisResult, Script};

/// KEYS: the key. ARGV: the emission interval in µs, the burst, the cost (0 checks without taking).
/// Returns: 1 if allowed, the remaining requests, the µs until the whole burst is available, the µs
/// until one request passes.
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

/// A rate limit. 0 counts as 1; a caller without a limit makes no call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Sustained requests per minute.
    pub per_minute: u32,
    /// Maximum burst of requests.
    pub burst: u32,
}

impl Quota {
    /// Microseconds that one request costs, rounded up so that the rate never exceeds `per_minute`.
    fn interval(self) -> u64 {
        60_000_000_u64.div_ceil(self.per_minute.max(1).into())
    }
}

/// The result of a rate limit check. It becomes the rate limit headers of the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateDecision {
    /// `true` if the request may pass.
    pub allowed: bool,
    /// The size of the burst: the requests that may pass at once if none was used.
    pub limit: u32,
    /// The requests that may pass at once after this one.
    pub remaining: u32,
    /// Time until `remaining` equals `limit` again.
    pub reset_after: Duration,
    /// Time until one request passes; zero when this one passed.
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
