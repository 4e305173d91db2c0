//! The one door to the wall clock.
//!
//! Every moment the service makes has millisecond precision, because that is what it stores and shows (decisions 1.7): a moment read back
//! from the database or from a response equals the one that was written. Moments that decide between processes (leases, due times) are
//! PostgreSQL's `now()`, never this clock, so that clocks of different machines need not agree.

use std::time::SystemTime;

use chrono::{DateTime, SubsecRound, Utc};

/// The present moment in UTC, truncated to milliseconds.
#[expect(clippy::disallowed_methods, reason = "this is the one door to the wall clock")]
pub fn now() -> DateTime<Utc> {
    Utc::now().trunc_subsecs(3)
}

/// The present moment as precise as it is known: for spans, which are often shorter than a millisecond and are nobody's data.
#[expect(clippy::disallowed_methods, reason = "this is the one door to the wall clock")]
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
