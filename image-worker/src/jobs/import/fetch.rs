//! Foreign files, fetched through the egress guard: every hop vetted, its size and time bounded (decisions 14.2, 15.3).

use std::time::Duration;

use bytes::Bytes;
use egress::{Client, Inbound, Outbound, SendError};
use http::header::{ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, CONTENT_ENCODING, CONTENT_TYPE, LOCATION, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use tokio::time::Instant;
use url::Url;

/// Redirects that are followed.
const REDIRECTS_MAX: usize = 3;

/// What of a kind of file is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// `Accept`.
    pub accept: &'static str,
    /// The most bytes that are read.
    pub bytes_max: usize,
}

/// A file.
#[derive(Debug)]
pub(super) struct Fetched {
    /// Where redirects led.
    pub url: Url,
    /// As it was declared.
    pub content_type: Option<String>,
    /// At most as many as wanted.
    pub bytes: Bytes,
    /// Whether there were more.
    pub truncated: bool,
}

/// Why there is no file. Texts are for whoever asked and tell nothing of our network.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// It leads to where it may not.
    Refused(&'static str),
    /// The other side failed.
    Upstream(&'static str),
    /// Time was up.
    Timeout,
}

/// Fetches `url` before `deadline`.
pub(super) async fn get(client: &Client, url: &Url, wanted: Wanted, deadline: Instant) -> Result<Fetched, Trouble> {
    let mut url = url.clone();
    for _ in 0..=REDIRECTS_MAX {
        let answer = call(client, &url, wanted, deadline).await?;
        if !is_redirect(answer.status) {
            return finish(url, answer);
        }
        url = target(&url, &answer.headers)?;
    }
    Err(Trouble::Refused("redirects more than three times"))
}

async fn call(client: &Client, url: &Url, wanted: Wanted, deadline: Instant) -> Result<Inbound, Trouble> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left < Duration::from_millis(1) {
        return Err(Trouble::Timeout);
    }
    let headers = HeaderMap::from_iter([
        (USER_AGENT, HeaderValue::from_static("Canvas-Imports/1.0")),
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
        SendError::Refused(_) => Trouble::Refused("leads to a URL that is not public"),
        SendError::AddressRefused => Trouble::Refused("leads to an address that is not public"),
        SendError::Timeout => Trouble::Timeout,
        SendError::Dns(_) | SendError::Connect(_) | SendError::Tls(_) => Trouble::Upstream("cannot be reached"),
        SendError::Protocol(_) | SendError::Body(_) => Trouble::Upstream("broke off"),
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
fn target(from: &Url, headers: &HeaderMap) -> Result<Url, Trouble> {
    let unusable = || Trouble::Upstream("redirects nowhere");
    let location = headers.get(LOCATION).and_then(|value| value.to_str().ok()).ok_or_else(unusable)?;
    let mut url = from.join(location).map_err(|_| unusable())?;
    if url.scheme() != "https" {
        return Err(Trouble::Refused("redirects to another scheme than https"));
    }
    // A redirect may carry one (RFC 9110, 10.2.2), and it is never sent.
    url.set_fragment(None);
    Ok(url)
}

fn finish(url: Url, answer: Inbound) -> Result<Fetched, Trouble> {
    if !answer.status.is_success() {
        return Err(Trouble::Upstream("answers an error"));
    }
    let coding = answer.headers.get(CONTENT_ENCODING).and_then(|value| value.to_str().ok());
    if coding.is_some_and(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case("identity")) {
        return Err(Trouble::Upstream("answers in a content coding that was not asked for"));
    }
    let content_type = answer.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).map(str::to_owned);
    Ok(Fetched { url, content_type, bytes: answer.body, truncated: answer.truncated })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(text: &'static str) -> Result<String, Trouble> {
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
            assert!(matches!(location(text), Err(Trouble::Refused(_))), "{text}");
        }
        let url = Url::parse("https://shop.example/").expect("a URL");
        assert!(matches!(target(&url, &HeaderMap::new()), Err(Trouble::Upstream(_))));
        assert!(matches!(location("https://"), Err(Trouble::Upstream(_))));
    }
}
