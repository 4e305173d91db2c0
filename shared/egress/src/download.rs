//! Downloads of foreign files: every hop of a redirect is checked; size, total time, pace and connections to one host are limited
//! (docs/reference/imports.md#redirects, docs/reference/imports.md#slow-servers).

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{
    ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, CONTENT_ENCODING, CONTENT_TYPE, LOCATION, REFERER, USER_AGENT,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use service::shares::{Held, Key};
use tokio::time::{Instant, timeout, timeout_at};
use url::Url;

use crate::{Body, Client, Opened, Outbound, SendError, UrlRefusal};

/// Maximum number of redirects that are followed.
const REDIRECTS_MAX: usize = 3;

/// Maximum length of a URL in `Referer` in bytes (Referrer Policy, 8.3).
const REFERRER_MAX: usize = 4096;

/// The time within which the head of a response must arrive, and in each of which [`PACE_BYTES`] of its body must.
const PACE_WINDOW: Duration = Duration::from_secs(8);

/// 16 KiB for each second of [`PACE_WINDOW`].
const PACE_BYTES: usize = 8 * 16 * 1024;

/// Limits and headers for a kind of file.
#[derive(Clone, Copy, Debug)]
pub struct DownloadRequest<'a> {
    /// `User-Agent` header, which says on whose behalf the request is made.
    pub user_agent: &'static str,
    /// `Accept` header.
    pub accept: &'static str,
    /// Maximum number of bytes that are read.
    pub bytes_max: usize,
    /// The page that names the file, for `Referer`.
    pub referrer: Option<&'a Url>,
    /// Bytes that this and other downloads may read together.
    pub allowance: Option<&'a Allowance>,
}

/// A number of bytes that several downloads may read together.
#[derive(Debug)]
pub struct Allowance(AtomicU64);

impl Allowance {
    /// An allowance of `bytes`.
    pub fn new(bytes: u64) -> Self {
        Self(AtomicU64::new(bytes))
    }

    /// Takes `bytes`. Returns `false` if there were fewer; then nothing is left.
    fn take(&self, bytes: usize) -> bool {
        let left = self.0.update(Ordering::Relaxed, Ordering::Relaxed, |left| left.saturating_sub(bytes as u64));
        left >= bytes as u64
    }

    fn is_used_up(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

#[derive(Debug)]
pub struct Downloaded {
    /// The final URL, after redirects.
    pub url: Url,
    /// The declared media type; several ones are separated by commas.
    pub content_type: Option<String>,
    /// The bytes, at most as many as wanted.
    pub bytes: Bytes,
    /// `true` if the file was longer.
    pub truncated: bool,
}

/// The reason why a file could not be downloaded. The text continues a sentence that begins with the name of
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
    /// The server sent less than 16 KiB a second over 8 s.
    #[error("is sent too slowly")]
    Slow,
    /// The [`Allowance`] was used up before the file was complete.
    #[error("exceeds the bytes that may be read")]
    Exhausted,
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
        wanted: DownloadRequest<'_>,
        deadline: Instant,
    ) -> Result<Downloaded, DownloadError> {
        let mut url = url.clone();
        let mut referrer = wanted.referrer.cloned();
        for _ in 0..=REDIRECTS_MAX {
            // A referrer that one hop withholds stays withheld in the next.
            referrer = referrer.and_then(|page| referrer_for(&page, &url));
            let answer = call(self, &url, wanted, referrer.as_ref(), deadline).await?;
            if !is_redirect(answer.opened.status) {
                return finish(url, answer, wanted).await;
            }
            url = target(&url, &answer.opened.headers)?;
        }
        Err(DownloadError::Refused("redirects more than three times"))
    }
}

/// The answer of one hop, whose body has not been read, and its place among the downloads from its host.
struct Answer {
    opened: Opened,
    _place: Held,
}

async fn call(
    client: &Client,
    url: &Url,
    wanted: DownloadRequest<'_>,
    referrer: Option<&Url>,
    deadline: Instant,
) -> Result<Answer, DownloadError> {
    if wanted.allowance.is_some_and(Allowance::is_used_up) {
        return Err(DownloadError::Exhausted);
    }
    let host = format!("{}:{}", url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or_default());
    let place =
        timeout_at(deadline, client.downloads.hold(&Key::name(&host), 1)).await.map_err(|_| DownloadError::Timeout)?;
    let left = deadline.saturating_duration_since(Instant::now());
    if left < Duration::from_millis(1) {
        return Err(DownloadError::Timeout);
    }
    let mut headers = HeaderMap::from_iter([
        (USER_AGENT, HeaderValue::from_static(wanted.user_agent)),
        (ACCEPT, HeaderValue::from_static(wanted.accept)),
        (ACCEPT_LANGUAGE, HeaderValue::from_static("en;q=0.8, *;q=0.5")),
        // The client decodes no content coding, so a small body cannot expand to a large one.
        (ACCEPT_ENCODING, HeaderValue::from_static("identity")),
    ]);
    headers.extend(referrer.and_then(|page| Some((REFERER, HeaderValue::from_str(page.as_str()).ok()?))));
    let call = Outbound {
        method: Method::GET,
        url: url.clone(),
        headers,
        body: Bytes::new(),
        deadline: left,
        response_limit: wanted.bytes_max,
    };
    match timeout(PACE_WINDOW, client.open_for(None, call)).await {
        Ok(opened) => Ok(Answer { opened: opened?, _place: place }),
        Err(_) => Err(DownloadError::Slow),
    }
}

impl From<SendError> for DownloadError {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Refused(UrlRefusal::Port) => {
                Self::Refused("leads to a port other than 443 and those from 1024 on")
            }
            SendError::Refused(_) => Self::Refused("leads to a URL that is not public"),
            SendError::AddressRefused => Self::Refused("leads to an address that is not public"),
            SendError::Timeout => Self::Timeout,
            SendError::Dns(_) | SendError::Connect(_) | SendError::Tls(_) => Self::Upstream("cannot be reached"),
            SendError::Protocol(_) | SendError::Body(_) => Self::Upstream("broke off"),
        }
    }
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

/// The `Referer` of a request for `url` that `page` names, by the policy `strict-origin-when-cross-origin`, the default of
/// browsers (Referrer Policy, 8.3): the page to its own origin, its origin to others, nothing from https to http.
fn referrer_for(page: &Url, url: &Url) -> Option<Url> {
    if page.scheme() == "https" && url.scheme() != "https" {
        return None;
    }
    let mut told = page.clone();
    told.set_fragment(None);
    told.set_username("").ok()?;
    told.set_password(None).ok()?;
    if page.origin() != url.origin() || told.as_str().len() > REFERRER_MAX {
        told.set_path("/");
        told.set_query(None);
    }
    Some(told)
}

/// The target of a redirect, which the client checks like any other URL.
fn target(from: &Url, headers: &HeaderMap) -> Result<Url, DownloadError> {
    let unusable = || DownloadError::Upstream("redirects nowhere");
    let location = headers.get(LOCATION).ok_or_else(unusable)?;
    // UTF-8 as servers send it, percent-encoded.
    let location = percent_encoding::percent_encode(location.as_bytes(), percent_encoding::CONTROLS).to_string();
    let mut url = from.join(&location).map_err(|_| unusable())?;
    if url.scheme() != "https" {
        return Err(DownloadError::Refused("redirects to another scheme than https"));
    }
    // A redirect may contain a fragment (RFC 9110, 10.2.2), which is never sent.
    url.set_fragment(None);
    Ok(url)
}

async fn finish(url: Url, answer: Answer, wanted: DownloadRequest<'_>) -> Result<Downloaded, DownloadError> {
    let Opened { status, headers, body } = answer.opened;
    if !status.is_success() {
        return Err(DownloadError::Upstream("answers an error"));
    }
    let coding = headers.get(CONTENT_ENCODING).and_then(|value| value.to_str().ok());
    if coding.is_some_and(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case("identity")) {
        return Err(DownloadError::Upstream("answers in a content coding that was not asked for"));
    }
    let types: Vec<&str> = headers.get_all(CONTENT_TYPE).iter().filter_map(|value| value.to_str().ok()).collect();
    let content_type = Some(types.join(", ")).filter(|types| !types.is_empty());
    let (bytes, truncated) = read(body, wanted).await?;
    Ok(Downloaded { url, content_type, bytes, truncated })
}

/// Reads at most as many bytes as wanted, and then the next chunk only to determine whether there is one.
async fn read(mut body: Body, wanted: DownloadRequest<'_>) -> Result<(Bytes, bool), DownloadError> {
    let (mut bytes, mut pace) = (BytesMut::new(), Pace::new());
    loop {
        let Ok(chunk) = timeout_at(pace.until, body.chunk()).await else {
            pace.check()?;
            continue;
        };
        let Some(chunk) = chunk? else { return Ok((bytes.freeze(), false)) };
        if wanted.allowance.is_some_and(|allowance| !allowance.take(chunk.len())) {
            return Err(DownloadError::Exhausted);
        }
        let room = wanted.bytes_max - bytes.len();
        bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if chunk.len() > room {
            return Ok((bytes.freeze(), true));
        }
        pace.bytes += chunk.len();
        pace.check()?;
    }
}

/// The bytes of a body that arrived in the present [`PACE_WINDOW`].
struct Pace {
    until: Instant,
    bytes: usize,
}

impl Pace {
    fn new() -> Self {
        Self { until: Instant::now() + PACE_WINDOW, bytes: 0 }
    }

    /// Begins the next window when this one is over.
    fn check(&mut self) -> Result<(), DownloadError> {
        if Instant::now() < self.until {
            return Ok(());
        }
        if self.bytes < PACE_BYTES {
            return Err(DownloadError::Slow);
        }
        *self = Self::new();
        Ok(())
    }
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

    #[test]
    fn a_location_in_utf_8_is_percent_encoded() {
        // Browsers request these URLs for these bytes (WHATWG URL: percent-encode after encoding; domain to ASCII).
        for (bytes, url) in [
            ("/p/détail-店".as_bytes(), "https://shop.example/p/d%C3%A9tail-%E5%BA%97"),
            ("/p?q=é&x=%20".as_bytes(), "https://shop.example/p?q=%C3%A9&x=%20"),
            ("https://müller.example/ü".as_bytes(), "https://xn--mller-kva.example/%C3%BC"),
            (b"/latin-\xe9", "https://shop.example/latin-%E9"),
            (b"/a b", "https://shop.example/a%20b"),
        ] {
            let headers = HeaderMap::from_iter([(LOCATION, HeaderValue::from_bytes(bytes).expect("a header"))]);
            let target = target(&Url::parse("https://shop.example/a/b").expect("a URL"), &headers);
            assert_eq!(target.as_ref().map(Url::as_str), Ok(url));
        }
    }

    #[test]
    fn a_page_is_told_to_its_own_origin_and_its_origin_to_others() {
        // Referrer Policy, 3.7 and 8.4, with its examples for `strict-origin-when-cross-origin`.
        let long = format!("https://shop.example/{}", "x".repeat(REFERRER_MAX - "https://shop.example/".len()));
        for (page, url, told) in [
            ("https://shop.example/p?a=1#top", "https://shop.example/i.png", Some("https://shop.example/p?a=1")),
            ("https://u:p@shop.example/p", "https://shop.example/i.png", Some("https://shop.example/p")),
            ("https://shop.example/p?a=1", "https://cdn.example/i.png", Some("https://shop.example/")),
            ("https://shop.example/p", "https://shop.example:8443/i.png", Some("https://shop.example/")),
            ("https://shop.example:8443/p", "https://cdn.example/i.png", Some("https://shop.example:8443/")),
            ("https://shop.example/p", "http://shop.example/i.png", None),
            ("http://shop.example/p", "https://shop.example/i.png", Some("http://shop.example/")),
            (&long, "https://shop.example/i.png", Some(&*long)),
            (&(long.clone() + "x"), "https://shop.example/i.png", Some("https://shop.example/")),
        ] {
            let parse = |url: &str| Url::parse(url).expect("a URL");
            assert_eq!(referrer_for(&parse(page), &parse(url)).as_ref().map(Url::as_str), told, "{page} to {url}");
        }
    }

    #[test]
    fn an_allowance_is_used_up_by_what_exceeds_it() {
        let allowance = Allowance::new(10);
        assert!(allowance.take(9) && allowance.take(1));
        assert!(allowance.is_used_up() && !allowance.take(1));
        let allowance = Allowance::new(10);
        assert!(!allowance.take(11) && allowance.is_used_up());
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_must_keep_its_pace_in_each_window() {
        for (bytes, kept) in [(PACE_BYTES - 1, false), (PACE_BYTES, true), (PACE_BYTES + 1, true)] {
            let mut pace = Pace::new();
            pace.bytes = bytes;
            tokio::time::advance(PACE_WINDOW - Duration::from_millis(1)).await;
            assert!(pace.check().is_ok(), "is judged at the end of a window");
            tokio::time::advance(Duration::from_millis(1)).await;
            assert_eq!(pace.check().is_ok(), kept, "{bytes}");
        }
        let mut pace = Pace::new();
        pace.bytes = 10 * PACE_BYTES;
        for kept in [true, false] {
            tokio::time::advance(PACE_WINDOW).await;
            assert_eq!(pace.check().is_ok(), kept, "what came earlier does not count");
        }
    }

    #[tokio::test]
    async fn what_is_not_public_is_not_asked() {
        let client = Client::new(crate::ClientConfig::default()).expect("has roots");
        let wanted =
            DownloadRequest { user_agent: "test", accept: "*/*", bytes_max: 1, referrer: None, allowance: None };
        for url in ["https://127.0.0.1/a.png", "https://10.0.0.1/a.png", "https://[::1]/a.png"] {
            let url = Url::parse(url).expect("a URL");
            let deadline = Instant::now() + Duration::from_secs(10);
            let refused = client.download(&url, wanted, deadline).await.expect_err("is refused");
            assert!(refused.to_string().contains("not public"), "{url}: {refused}");
        }
        let url = Url::parse("https://192.0.2.1:25/a.png").expect("a URL");
        let refused = client.download(&url, wanted, Instant::now() + Duration::from_secs(10)).await;
        assert_eq!(
            refused.expect_err("is refused").to_string(),
            "leads to a port other than 443 and those from 1024 on"
        );
    }
}
