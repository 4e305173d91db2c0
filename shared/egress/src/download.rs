//! Downloads of foreign files: every hop of a redirect is checked; size and total time are limited
//! (docs/reference/imports.md#redirects).

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, CONTENT_ENCODING, CONTENT_TYPE, LOCATION, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use tokio::time::Instant;
use url::Url;

use crate::{Client, Inbound, Outbound, SendError};

/// Maximum number of redirects that are followed.
const REDIRECTS_MAX: usize = 3;

/// Limits and headers for a kind of file.
#[derive(Clone, Copy, Debug)]
pub struct DownloadRequest {
    /// `User-Agent` header, which says on whose behalf the request is made.
    pub user_agent: &'static str,
    /// `Accept` header.
    pub accept: &'static str,
    /// Maximum number of bytes that are read.
    pub bytes_max: usize,
}

#[derive(Debug)]
pub struct Downloaded {
    /// The final URL, after redirects.
    pub url: Url,
    /// The declared media type.
    pub content_type: Option<String>,
    /// The bytes, at most as many as wanted.
    pub bytes: Bytes,
    /// Whether the file was longer.
    pub truncated: bool,
}

/// Why a file could not be downloaded. The text continues a sentence that begins with the name of
/// the requested file. It is shown to the requester and discloses nothing about our network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DownloadError {
    /// The URL, or a redirect, leads to a destination that is not permitted.
    #[error("{0}")]
    Refused(&'static str),
    /// The remote server failed.
    #[error("{0}")]
    Upstream(&'static str),
    /// The deadline passed before the file was complete.
    #[error("did not answer in time")]
    Timeout,
}

impl Client {
    /// Downloads the file at `url` before `deadline`. A file larger than wanted is truncated, which
    /// is not an error.
    ///
    /// # Errors
    ///
    /// [`DownloadError`] says which side caused the failure.
    pub async fn download(
        &self,
        url: &Url,
        wanted: DownloadRequest,
        deadline: Instant,
    ) -> Result<Downloaded, DownloadError> {
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

async fn call(
    client: &Client,
    url: &Url,
    wanted: DownloadRequest,
    deadline: Instant,
) -> Result<Inbound, DownloadError> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left < Duration::from_millis(1) {
        return Err(DownloadError::Timeout);
    }
    let headers = HeaderMap::from_iter([
        (USER_AGENT, HeaderValue::from_static(wanted.user_agent)),
        (ACCEPT, HeaderValue::from_static(wanted.accept)),
        (ACCEPT_LANGUAGE, HeaderValue::from_static("en;q=0.8, *;q=0.5")),
        // The client decodes no content coding, so a small body cannot expand to a large one.
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

/// The target of a redirect, which the client checks like any other URL.
fn target(from: &Url, headers: &HeaderMap) -> Result<Url, DownloadError> {
    let unusable = || DownloadError::Upstream("redirects nowhere");
    let location = headers.get(LOCATION).and_then(|value| value.to_str().ok()).ok_or_else(unusable)?;
    let mut url = from.join(location).map_err(|_| unusable())?;
    if url.scheme() != "https" {
        return Err(DownloadError::Refused("redirects to another scheme than https"));
    }
    // A redirect may contain a fragment (RFC 9110, 10.2.2), which is never sent.
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
        let wanted = DownloadRequest { user_agent: "test", accept: "*/*", bytes_max: 1 };
        for url in ["https://127.0.0.1/a.png", "https://10.0.0.1/a.png", "https://[::1]/a.png"] {
            let url = Url::parse(url).expect("a URL");
            let deadline = Instant::now() + Duration::from_secs(10);
            let refused = client.download(&url, wanted, deadline).await.expect_err("is refused");
            assert!(refused.to_string().contains("not public"), "{url}: {refused}");
        }
    }
}
