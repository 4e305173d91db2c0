//! Rules for repeated requests.

use std::time::Duration;

use crate::problem::Error;

/// Attempts after the first one.
const RETRIES: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The pause before attempt `attempt` (the first repetition is 1), or `None` if the failure is final: a repetition would fail
/// in the same way, the service asks for too long a pause, or there were enough attempts.
pub fn pause(error: &Error, attempt: u32) -> Option<Duration> {
    if attempt > RETRIES || !error.is_temporary() {
        return None;
    }
    let grown = FIRST_PAUSE * 2_u32.pow(attempt - 1);
    // Half of it is random, so that clients that failed together do not return together.
    let jittered = grown.mul_f64(rand::random_range(0.5..1.0));
    let asked = error.problem().and_then(|problem| problem.retry_after).unwrap_or_default();
    (asked <= LONGEST_PAUSE).then_some(jittered.max(asked))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Problem;
    use crate::transport::Unreachable;

    fn refused(status: u16, retry_after: Option<u64>) -> Error {
        let mut headers = http::HeaderMap::new();
        if let Some(seconds) = retry_after {
            headers.insert(http::header::RETRY_AFTER, seconds.into());
        }
        Problem::from_response(http::StatusCode::from_u16(status).expect("a status"), &headers, b"{}")
    }

    #[test]
    fn only_what_may_change_is_repeated() {
        for status in [400, 401, 402, 403, 404, 409, 410, 413, 415, 422] {
            assert_eq!(pause(&refused(status, None), 1), None, "{status}");
        }
        for status in [429, 500, 502, 503, 504] {
            assert!(pause(&refused(status, None), 1).is_some(), "{status}");
        }
        assert!(pause(&Error::Unreachable(Unreachable(String::new())), 1).is_some());
    }

    #[test]
    fn pauses_grow_honour_retry_after_and_end() {
        assert!(pause(&refused(503, None), 1) < Some(FIRST_PAUSE));
        assert!(pause(&refused(503, None), RETRIES) >= Some(FIRST_PAUSE * 4));
        assert_eq!(pause(&refused(503, None), RETRIES + 1), None);
        assert_eq!(pause(&refused(429, Some(30)), 1), Some(LONGEST_PAUSE));
        assert_eq!(pause(&refused(429, Some(31)), 1), None, "longer than anyone waits");
    }
}
