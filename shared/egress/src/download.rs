//! A foreign file: redirects followed with every hop vetted, size and time of it all bounded (decisions 11.1, 14.2, 15.3).

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, CONTENT_ENCODING, CONTENT_TYPE, LOCATION, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use tokio::time::Instant;
use url::Url;

use crate::{Client, Inbound, Outbound, SendError};

/// Redirects that are followed.
const REDIRECTS_MAX: usize = 3;

/// What of a kind of file is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// `User-Agent`: on whose behalf.
    pub user_agent: &'static str,
    /// `Accept`.
    pub accept: &'static str,
    /// The most bytes that are read.
    pub bytes_max: usize,
}

/// A file.
#[derive(Debug)]
pub struct Downloaded {
    /// Where redirects led.
    pub url: Url,
    /// As it was declared.
    pub content_type: Option<String>,
    /// At most as many as wanted.
    pub bytes: Bytes,
    /// Whether there were more.
    pub truncated: bool,
}

/// Why there is no file. Texts go on after the name of what was asked for; they are for whoever asked and tell nothing of our
/// network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DownloadError {
    /// It leads to where it may not.
    #[error("{0}")]
    Refused(&'static str),
    /// The other side failed.
    #[error("{0}")]
    Upstream(&'static str),
    /// Time was up.
    #[error("did not answer in time")]
    Timeout,
}

impl Client {
    /// Fetches the file behind `url` before `deadline`. One that is larger than wanted is cut, which is no error.
    ///
    /// # Errors
    ///
    /// [`DownloadError`] tells whose fault it is that there is none.
    pub async fn download(&self, url: &Url, wanted: Wanted, deadline: Instant) -> Result<Downloaded, DownloadError> {
        let mut url = url.clone();
        for _ in 0..=REDIRECTS_MAX {
            let answer = call(self, &url, wanted, deadline).await?;
            if !is_redirect(answer.status) {
                return finish(url, answer);
            }
            url = target(&url, &answer.headers)?;
        }
        Err(DownloadError::Refused("redirects more than three times"))
    }
}

async fn call(client: &Client, url: &Url, wanted: Wanted, deadline: Instant) -> Result<Inbound, DownloadError> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left < Duration::from_millis(1) {
        return Err(DownloadError::Timeout);
    }
    let headers = HeaderMap::from_iter([
        (USER_AGENT, HeaderValue::from_static(wanted.user_agent)),
        (ACCEPT, HeaderValue::from_static(wanted.accept)),
        (ACCEPT_LANGUAGE, HeaderValue::from_static("en;q=0.8, *;q=0.5")),
        // The client undoes no content coding, so that a small body cannot become a large one.
        (ACCEPT_ENCODING, HeaderValue::from_static("identity")),
    ]);
    let call = Outbound {
        method: Method::GET,
        url: url.clone(),
        headers,
        body: Bytes::new(),
        deadline: left,
        response_limit: wanted.bytes_max,
    };
    client.send(call).await.map_err(|error| match error {
        SendError::Refused(_) => DownloadError::Refused("leads to a URL that is not public"),
        SendError::AddressRefused => DownloadError::Refused("leads to an address that is not public"),
        SendError::Timeout => DownloadError::Timeout,
        SendError::Dns(_) | SendError::Connect(_) | SendError::Tls(_) => DownloadError::Upstream("cannot be reached"),
        SendError::Protocol(_) | SendError::Body(_) => DownloadError::Upstream("broke off"),
    })
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    )
}

/// Where a redirect leads; the client judges it like any other URL (decisions 18.11, 18.20).
fn target(from: &Url, headers: &HeaderMap) -> Result<Url, DownloadError> {
    let unusable = || DownloadError::Upstream("redirects nowhere");
    let location = headers.get(LOCATION).and_then(|value| value.to_str().ok()).ok_or_else(unusable)?;
    let mut url = from.join(location).map_err(|_| unusable())?;
    if url.scheme() != "https" {
        return Err(DownloadError::Refused("redirects to another scheme than https"));
    }
    // A redirect may carry one (RFC 9110, 10.2.2), and it is never sent.
    url.set_fragment(None);
    Ok(url)
}

fn finish(url: Url, answer: Inbound) -> Result<Downloaded, DownloadError> {
    if !answer.status.is_success() {
        return Err(DownloadError::Upstream("answers an error"));
    }
    let coding = answer.headers.get(CONTENT_ENCODING).and_then(|value| value.to_str().ok());
    if coding.is_some_and(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case("identity")) {
        return Err(DownloadError::Upstream("answers in a content coding that was not asked for"));
    }
    let content_type = answer.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).map(str::to_owned);
    Ok(Downloaded { url, content_type, bytes: answer.body, truncated: answer.truncated })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(text: &'static str) -> Result<String, DownloadError> {
        let headers = HeaderMap::from_iter([(LOCATION, HeaderValue::from_static(text))]);
        target(&Url::parse("https://shop.example/a/b").expect("a URL"), &headers).map(String::from)
    }

    #[test]
    fn a_redirect_is_relative_to_where_it_came_from() {
        assert_eq!(location("c?d#e").as_deref(), Ok("https://shop.example/a/c?d"));
        assert_eq!(location("//other.example/").as_deref(), Ok("https://other.example/"));
    }

    #[test]
    fn a_redirect_to_another_scheme_is_refused_and_one_without_a_target_is_the_other_sides_fault() {
        for text in ["http://shop.example/", "ftp://shop.example/", "data:text/html,x"] {
            assert!(matches!(location(text), Err(DownloadError::Refused(_))), "{text}");
        }
        let url = Url::parse("https://shop.example/").expect("a URL");
        assert!(matches!(target(&url, &HeaderMap::new()), Err(DownloadError::Upstream(_))));
        assert!(matches!(location("https://"), Err(DownloadError::Upstream(_))));
    }
    #[tokio::test]
    async fn what_is_not_public_is_not_asked() {
        let client = Client::new(crate::ClientConfig::default()).expect("has roots");
        let wanted = Wanted { user_agent: "test", accept: "*/*", bytes_max: 1 };
        for url in ["https://127.0.0.1/a.png", "https://10.0.0.1/a.png", "https://[::1]/a.png"] {
            let url = Url::parse(url).expect("a URL");
            let deadline = Instant::now() + Duration::from_secs(10);
            let refused = client.download(&url, wanted, deadline).await.expect_err("is refused");
            assert!(refused.to_string().contains("not public"), "{url}: {refused}");
        }
    }
}
