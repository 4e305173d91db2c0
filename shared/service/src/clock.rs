//! The only access to the wall clock.
//!
//! All timestamps have millisecond precision, as they are stored and shown: a timestamp read back from the database or from a
//! response equals the one that was written. Times that processes compare (leases, due times) come from PostgreSQL's `now()`
//! and never from this clock, so the clocks of different machines need not agree.

use std::time::SystemTime;

use chrono::{DateTime, SubsecRound, Utc};

/// The current time in UTC, truncated to milliseconds.
#[expect(clippy::disallowed_methods, reason = "the only access to the wall clock")]
pub fn now() -> DateTime<Utc> {
    Utc::now().trunc_subsecs(3)
}

/// The current time with full precision, for spans, which are often shorter than a millisecond.
#[expect(clippy::disallowed_methods, reason = "the only access to the wall clock")]
pub(crate) fn precise() -> SystemTime {
    SystemTime::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_survives_the_millisecond_form_it_is_shown_in() {
        let moment = now();
        let shown = moment.to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
        assert_eq!(DateTime::parse_from_rfc3339(&shown).expect("RFC 3339"), moment);
    }
}
