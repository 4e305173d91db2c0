//! The outcome of an attempt for its delivery, by the response or its absence (docs/reference/webhooks.md#outcome-of-an-attempt).

use domain::webhook::DeliveryError;
use egress::SendError;
use http::StatusCode;

/// The effect of an attempt on its delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// The receiver acknowledged the event.
    Delivered,
    /// Another attempt may succeed.
    Retryable,
    /// No further attempt can succeed.
    Hopeless(DeliveryError),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptResult {
    /// The effect on the delivery.
    pub outcome: AttemptOutcome,
    /// The status code of the response, if it is a valid HTTP status (100 to 599).
    pub status: Option<u16>,
    /// A short name of the error.
    pub error: Option<&'static str>,
}

impl AttemptResult {
    /// The result of an attempt that was not sent, because no attempt can succeed.
    pub fn hopeless(code: DeliveryError) -> Self {
        Self { outcome: AttemptOutcome::Hopeless(code), status: None, error: Some(code.as_str()) }
    }
}

/// Evaluates an attempt: the status of the response, as soon as it is known, or why there is no response.
pub fn evaluate(answer: Result<StatusCode, &SendError>) -> AttemptResult {
    match answer {
        Ok(status) => evaluate_status(status),
        Err(error) => {
            let (error, outcome) = match error {
                SendError::Refused(_) => ("url_refused", AttemptOutcome::Hopeless(DeliveryError::InvalidDestination)),
                SendError::AddressRefused => {
                    ("address_refused", AttemptOutcome::Hopeless(DeliveryError::InvalidDestination))
                }
                SendError::Dns(_) => ("dns", AttemptOutcome::Retryable),
                SendError::Connect(_) => ("connect", AttemptOutcome::Retryable),
                SendError::Tls(_) => ("tls", AttemptOutcome::Retryable),
                SendError::Timeout => ("timeout", AttemptOutcome::Retryable),
                SendError::Protocol(_) | SendError::Body(_) => ("protocol", AttemptOutcome::Retryable),
            };
            AttemptResult { outcome, status: None, error: Some(error) }
        }
    }
}

fn evaluate_status(status: StatusCode) -> AttemptResult {
    let (error, outcome) = match status.as_u16() {
        200..=299 => (None, AttemptOutcome::Delivered),
        300..=399 => (Some("redirect"), AttemptOutcome::Hopeless(DeliveryError::RedirectNotAllowed)),
        408 | 425 | 429 | 500..=599 => (Some("status"), AttemptOutcome::Retryable),
        // The remaining statuses are not final in HTTP, apart from 4xx. A retry would not change
        // such a response.
        _ => (Some("status"), AttemptOutcome::Hopeless(DeliveryError::EndpointRejected)),
    };
    AttemptResult { outcome, status: Some(status.as_u16()).filter(|code| (100..600).contains(code)), error }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(status: u16) -> AttemptOutcome {
        evaluate_status(StatusCode::from_u16(status).expect("a status")).outcome
    }

    #[test]
    fn any_2xx_acknowledges() {
        for status in [200, 201, 202, 204, 226, 299] {
            assert_eq!(outcome(status), AttemptOutcome::Delivered, "{status}");
        }
    }

    #[test]
    fn timeouts_limits_and_server_errors_are_tried_again() {
        for status in [408, 425, 429, 500, 502, 503, 504, 599] {
            assert_eq!(outcome(status), AttemptOutcome::Retryable, "{status}");
        }
    }

    #[test]
    fn redirects_end_a_delivery_as_such() {
        for status in [300, 301, 302, 304, 307, 308, 399] {
            assert_eq!(outcome(status), AttemptOutcome::Hopeless(DeliveryError::RedirectNotAllowed), "{status}");
        }
    }

    #[test]
    fn every_other_answer_is_a_rejection() {
        for status in [101, 199, 400, 401, 403, 404, 407, 409, 410, 424, 426, 428, 430, 451, 499, 600, 999] {
            assert_eq!(outcome(status), AttemptOutcome::Hopeless(DeliveryError::EndpointRejected), "{status}");
        }
    }

    #[test]
    fn only_statuses_that_the_contract_can_show_are_kept() {
        let kept = |status| evaluate_status(StatusCode::from_u16(status).expect("a status")).status;
        assert_eq!([100, 599, 600, 999].map(kept), [Some(100), Some(599), None, None]);
    }

    #[test]
    fn a_refused_destination_ends_a_delivery_and_a_silent_one_is_tried_again() {
        let refused = evaluate(Err(&SendError::AddressRefused));
        assert_eq!(refused.outcome, AttemptOutcome::Hopeless(DeliveryError::InvalidDestination));
        assert_eq!(evaluate(Err(&SendError::Timeout)).outcome, AttemptOutcome::Retryable);
    }
}
