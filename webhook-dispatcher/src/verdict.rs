//! What an answer, or the lack of one, means for a delivery (specification, Events; decisions 15.1).

use domain::webhook::DeliveryError;
use egress::SendError;
use http::StatusCode;

/// What becomes of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The receiver acknowledged it.
    Delivered,
    /// Another attempt may succeed.
    Retryable,
    /// No attempt will succeed.
    Hopeless(DeliveryError),
}

/// An attempt as it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judged {
    /// What it means.
    pub verdict: Verdict,
    /// The receiver's status, where it is one of HTTP's (100 to 599).
    pub status: Option<u16>,
    /// What went wrong, in a word.
    pub error: Option<&'static str>,
}

impl Judged {
    /// An attempt that was not sent, because no attempt will succeed.
    pub fn hopeless(code: DeliveryError) -> Self {
        Self { verdict: Verdict::Hopeless(code), status: None, error: Some(code.as_str()) }
    }
}

/// Judges what came of sending an attempt: the status of the answer, as soon as it is there, or why there is none.
pub fn judge(answer: Result<StatusCode, &SendError>) -> Judged {
    match answer {
        Ok(status) => judge_status(status),
        Err(error) => {
            let (error, verdict) = match error {
                SendError::Refused(_) => ("url_refused", Verdict::Hopeless(DeliveryError::InvalidDestination)),
                SendError::AddressRefused => ("address_refused", Verdict::Hopeless(DeliveryError::InvalidDestination)),
                SendError::Dns(_) => ("dns", Verdict::Retryable),
                SendError::Connect(_) => ("connect", Verdict::Retryable),
                SendError::Tls(_) => ("tls", Verdict::Retryable),
                SendError::Timeout => ("timeout", Verdict::Retryable),
                SendError::Protocol(_) | SendError::Body(_) => ("protocol", Verdict::Retryable),
            };
            Judged { verdict, status: None, error: Some(error) }
        }
    }
}

fn judge_status(status: StatusCode) -> Judged {
    let (error, verdict) = match status.as_u16() {
        200..=299 => (None, Verdict::Delivered),
        300..=399 => (Some("redirect"), Verdict::Hopeless(DeliveryError::RedirectNotAllowed)),
        408 | 425 | 429 | 500..=599 => (Some("status"), Verdict::Retryable),
        // Besides the other 4xx what is no final status of HTTP at all: an answer, but none that a retry would better.
        _ => (Some("status"), Verdict::Hopeless(DeliveryError::EndpointRejected)),
    };
    Judged { verdict, status: Some(status.as_u16()).filter(|code| (100..600).contains(code)), error }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(status: u16) -> Verdict {
        judge_status(StatusCode::from_u16(status).expect("a status")).verdict
    }

    #[test]
    fn any_2xx_acknowledges() {
        for status in [200, 201, 202, 204, 226, 299] {
            assert_eq!(verdict(status), Verdict::Delivered, "{status}");
        }
    }

    #[test]
    fn timeouts_limits_and_server_errors_are_tried_again() {
        for status in [408, 425, 429, 500, 502, 503, 504, 599] {
            assert_eq!(verdict(status), Verdict::Retryable, "{status}");
        }
    }

    #[test]
    fn redirects_end_a_delivery_as_such() {
        for status in [300, 301, 302, 304, 307, 308, 399] {
            assert_eq!(verdict(status), Verdict::Hopeless(DeliveryError::RedirectNotAllowed), "{status}");
        }
    }

    #[test]
    fn every_other_answer_is_a_rejection() {
        for status in [101, 199, 400, 401, 403, 404, 407, 409, 410, 424, 426, 428, 430, 451, 499, 600, 999] {
            assert_eq!(verdict(status), Verdict::Hopeless(DeliveryError::EndpointRejected), "{status}");
        }
    }

    #[test]
    fn only_statuses_that_the_contract_can_show_are_kept() {
        let kept = |status| judge_status(StatusCode::from_u16(status).expect("a status")).status;
        assert_eq!([100, 599, 600, 999].map(kept), [Some(100), Some(599), None, None]);
    }

    #[test]
    fn a_refused_destination_ends_a_delivery_and_a_silent_one_is_tried_again() {
        let refused = judge(Err(&SendError::AddressRefused));
        assert_eq!(refused.verdict, Verdict::Hopeless(DeliveryError::InvalidDestination));
        assert_eq!(judge(Err(&SendError::Timeout)).verdict, Verdict::Retryable);
    }
}
