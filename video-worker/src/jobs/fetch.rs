//! Pictures that are named by a URL, fetched through the egress guard: every hop vetted, size and time bounded
//! (decisions 11.1, 15.3).

use std::time::Duration;

use bytes::Bytes;
use egress::{Client, Inbound, Outbound, SendError};
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, LOCATION, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use tokio::time::Instant;
use url::Url;

/// Redirects that are followed.
const REDIRECTS_MAX: usize = 3;

/// How long all of it may take.
const TIME: Duration = Duration::from_secs(30);

/// The most bytes of a picture: as many as an upload may have (decisions 1.5).
pub(super) const BYTES_MAX: u64 = domain::limits::UPLOAD_MAX;

/// The file behind `url`, or why there is none. The reason is for whoever asked and tells nothing of our network.
pub(super) async fn get(client: &Client, url: &str) -> Result<Bytes, &'static str> {
    let mut url = Url::parse(url).map_err(|_| "it is no URL")?;
    let deadline = Instant::now() + TIME;
    for _ in 0..=REDIRECTS_MAX {
        let answer = call(client, &url, deadline).await?;
        if !is_redirect(answer.status) {
            return finish(answer);
        }
        url = target(&url, &answer.headers)?;
    }
    Err("it redirects more than three times")
}

async fn call(client: &Client, url: &Url, deadline: Instant) -> Result<Inbound, &'static str> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left < Duration::from_millis(1) {
        return Err("it did not answer in time");
    }
    let headers = HeaderMap::from_iter([
        (USER_AGENT, HeaderValue::from_static("Canvas-Videos/1.0")),
        (ACCEPT, HeaderValue::from_static("image/png, image/jpeg, image/webp, image/gif;q=0.9")),
        // The client undoes no content coding, so that a small body cannot become a large one.
        (ACCEPT_ENCODING, HeaderValue::from_static("identity")),
    ]);
    let call = Outbound {
        method: Method::GET,
        url: url.clone(),
        headers,
        body: Bytes::new(),
        deadline: left,
        response_limit: usize::try_from(BYTES_MAX).unwrap_or(usize::MAX),
    };
    client.send(call).await.map_err(|error| match error {
        SendError::Refused(_) => "it leads to a URL that is not public",
        SendError::AddressRefused => "it leads to an address that is not public",
        SendError::Timeout => "it did not answer in time",
        SendError::Dns(_) | SendError::Connect(_) | SendError::Tls(_) => "it cannot be reached",
        SendError::Protocol(_) | SendError::Body(_) => "its answer broke off",
    })
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// Where a redirect leads; the client judges it like any other URL (decisions 18.11, 18.20).
fn target(from: &Url, headers: &HeaderMap) -> Result<Url, &'static str> {
    let location = headers.get(LOCATION).and_then(|value| value.to_str().ok());
    let mut url = location.and_then(|location| from.join(location).ok()).ok_or("it redirects nowhere")?;
    if url.scheme() != "https" {
        return Err("it redirects to another scheme than https");
    }
    // A redirect may carry one (RFC 9110, 10.2.2), and it is never sent.
    url.set_fragment(None);
    Ok(url)
}

fn finish(answer: Inbound) -> Result<Bytes, &'static str> {
    if !answer.status.is_success() {
        return Err("it answers an error");
    }
    let coding = answer.headers.get(CONTENT_ENCODING).and_then(|value| value.to_str().ok());
    if coding.is_some_and(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case("identity")) {
        return Err("it answers in a content coding that was not asked for");
    }
    if answer.truncated {
        return Err("it is too large");
    }
    Ok(answer.body)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(text: &'static str) -> Result<String, &'static str> {
        let headers = HeaderMap::from_iter([(LOCATION, HeaderValue::from_static(text))]);
        target(&Url::parse("https://shop.example/a/b").expect("a URL"), &headers).map(String::from)
    }

    #[test]
    fn a_redirect_is_relative_and_stays_with_https() {
        assert_eq!(location("c?d#e").as_deref(), Ok("https://shop.example/a/c?d"));
        assert_eq!(location("//other.example/").as_deref(), Ok("https://other.example/"));
        for text in ["http://shop.example/", "data:text/html,x", "https://"] {
            assert!(location(text).is_err(), "{text}");
        }
    }

    #[tokio::test]
    async fn what_is_not_public_is_not_asked() {
        let client = Client::new(egress::ClientConfig::default()).expect("has roots");
        for url in ["https://127.0.0.1/a.png", "https://10.0.0.1/a.png", "https://[::1]/a.png"] {
            assert!(get(&client, url).await.is_err_and(|why| why.contains("not public")), "{url}");
        }
    }
}
