//! Rate limits by the generic cell rate algorithm (GCRA, ITU-T I.371 Annex A, virtual scheduling
//! form).
//!
//! Each key stores one number, the theoretical arrival time: the time at which all use so far would
//! be used up at the steady rate. A request passes if that time is less than a full burst ahead.
//! One script in one round trip judges a request by all of its buckets; a refused request takes
//! from none. Use that is known only afterwards is debited, and may leave a debt of another full
//! burst. The clock is that of Redis, so that all processes agree. Times are whole microseconds,
//! which a Lua number represents exactly.

use std::sync::LazyLock;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{RedisResult, Script};

/// KEYS: the keys of the buckets. ARGV: `take`, `peek` or `debit`, the weight, and for each bucket
/// its emission interval in µs and its burst. Returns whether the request passes, followed for each
/// bucket by the remaining units, the µs until the whole burst is available, and the µs until the
/// weight passes.
static GCRA: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
        local mode, weight = ARGV[1], tonumber(ARGV[2])
        local time = redis.call('TIME')
        local now = time[1] * 1000000 + time[2]
        local allowed, buckets = 1, {}
        for place, key in ipairs(KEYS) do
            local interval, burst = tonumber(ARGV[2 * place + 1]), tonumber(ARGV[2 * place + 2])
            local window = interval * burst
            local arrival = tonumber(redis.call('GET', key) or now)
            -- Never beyond the greatest debt: a clock that was set back, or a quota that was lowered, shuts nobody out for long.
            arrival = math.min(math.max(arrival, now), now + 2 * window)
            -- A weight above the burst takes the whole burst, so that it passes some time.
            local cost = interval * math.min(weight, burst)
            if mode == 'debit' then
                cost = math.min(interval * weight, now + 2 * window - arrival)
            end
            local wait = math.max(arrival + cost - window - now, 0)
            if mode ~= 'debit' and wait > 0 then
                allowed = 0
            end
            buckets[place] = {interval, window, arrival, cost, wait}
        end
        local answer = {allowed}
        for place, key in ipairs(KEYS) do
            local interval, window, arrival, cost, wait = unpack(buckets[place])
            if mode ~= 'peek' and allowed == 1 then
                arrival = arrival + cost
                if arrival > now then
                    redis.call('SET', key, string.format('%.0f', arrival), 'PX', math.ceil((arrival - now) / 1000))
                end
            end
            answer[#answer + 1] = math.max(math.floor((now + window - arrival) / interval), 0)
            answer[#answer + 1] = arrival - now
            answer[#answer + 1] = wait
        end
        return answer
        ",
    )
});

/// What the script does with the buckets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Takes the weight if all buckets have it.
    Take,
    /// Takes nothing.
    Peek,
    /// Takes the weight whether or not the buckets have it.
    Debit,
}

impl Mode {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Take => "take",
            Self::Peek => "peek",
            Self::Debit => "debit",
        }
    }
}

/// A rate limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Microseconds that one unit costs.
    interval: u64,
    burst: u32,
}

impl Quota {
    /// `count` units in each `period`, of which `burst` may pass at once. Rounded so that the rate never exceeds `count`. 0 counts as
    /// 1; a caller without a limit has no quota.
    pub const fn new(count: u32, period: Duration, burst: u32) -> Self {
        let count = if count == 0 { 1 } else { count as u64 };
        let interval = (period.as_micros() as u64).div_ceil(count);
        Self { interval: if interval == 0 { 1 } else { interval }, burst: if burst == 0 { 1 } else { burst } }
    }

    /// `count` units a minute.
    pub const fn per_minute(count: u32, burst: u32) -> Self {
        Self::new(count, Duration::from_secs(60), burst)
    }

    /// `count` units an hour.
    pub const fn per_hour(count: u32, burst: u32) -> Self {
        Self::new(count, Duration::from_secs(3600), burst)
    }
}

/// A quota, and the key under which it is used up.
#[derive(Clone, Debug)]
pub struct Bucket {
    /// The key; the prefix of the cache is put before it.
    pub key: String,
    /// The quota.
    pub quota: Quota,
}

/// The result of a rate limit check. It becomes the rate limit headers of the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateDecision {
    /// `true` if the request may pass.
    pub allowed: bool,
    /// The bucket that the numbers are about, by its place in the call: of a refusal the one that the request waits for longest, else
    /// the one with the least left.
    pub bucket: usize,
    /// The size of the burst: the units that may pass at once if none was used.
    pub limit: u32,
    /// The units that may pass at once after this request.
    pub remaining: u32,
    /// Time until `remaining` equals `limit` again.
    pub reset_after: Duration,
    /// Time until the request passes; zero when it passed.
    pub retry_after: Duration,
}

/// Judges a request of `weight` by all of `buckets`, of which there is at least one. `keys`: their keys in Redis.
pub(crate) async fn decide(
    connection: &mut MultiplexedConnection,
    mode: Mode,
    weight: u32,
    buckets: &[Bucket],
    keys: &[String],
) -> RedisResult<RateDecision> {
    let mut script = GCRA.prepare_invoke();
    script.arg(mode.name()).arg(weight);
    for (bucket, key) in buckets.iter().zip(keys) {
        script.key(key).arg(bucket.quota.interval).arg(bucket.quota.burst);
    }
    let answer: Vec<u64> = script.invoke_async(connection).await?;
    let (allowed, numbers) = answer.split_first().unwrap_or((&1, &[]));
    let states = buckets.iter().zip(numbers.chunks_exact(3)).enumerate().map(|(place, (bucket, state))| RateDecision {
        allowed: *allowed == 1,
        bucket: place,
        limit: bucket.quota.burst,
        remaining: u32::try_from(state[0]).unwrap_or(u32::MAX),
        reset_after: Duration::from_micros(state[1]),
        retry_after: Duration::from_micros(state[2]),
    });
    let told = states.min_by_key(|state| (std::cmp::Reverse(state.retry_after), state.remaining));
    told.ok_or_else(|| redis::RedisError::from((redis::ErrorKind::UnexpectedReturnType, "a decision without a bucket")))
}

#[cfg(test)]
mod tests;
