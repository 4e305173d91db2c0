//! The files of the browser application, which is built by `gateway/console/build` and embedded.
//!
//! Its policy allows scripts, styles and requests of this origin only, no inline code, and no HTML from strings (Trusted Types;
//! the one policy is for the URL of the application's own worker).

use axum::Router;
use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use domain::id::is_slug;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use rust_embed::{EmbeddedFile, RustEmbed};

use crate::compression::Unchanging;
use crate::extract::accept::Accepted;
use crate::problem::{Problem, Result};
use crate::state::App;

const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; media-src 'self'; connect-src 'self'; \
     font-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types worker",
);
/// Every page and file carries these.
const HEADERS: [(HeaderName, HeaderValue); 6] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
    (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
    (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (
        HeaderName::from_static("permissions-policy"),
        HeaderValue::from_static("camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
    ),
];

/// The paths of the application. It reads the path itself, so they all serve the same page.
const PAGES: [&str; 12] = [
    "/",
    "/signin",
    "/signin/done",
    "/c/{owner}/{id}",
    "/runs",
    "/elements",
    "/recipes",
    "/assets",
    "/settings",
    "/settings/{*page}",
    "/admin",
    "/admin/{*page}",
];

/// The built application; empty when it was not built.
#[derive(RustEmbed)]
#[folder = "console/dist"]
#[allow_missing = true]
struct Files;

/// The routes of the application's pages and files.
pub fn router() -> Router<App> {
    let pages = PAGES.iter().fold(Router::new(), |router, path| router.route(path, get(page)));
    let router = pages.route("/c/{slug}", get(page_of_slug)).route("/static/{*path}", get(file));
    router.route("/licenses.txt", get(licenses))
}

async fn page_of_slug(method: Method, uri: Uri, Path(slug): Path<String>, headers: HeaderMap) -> Response {
    if is_slug(&slug) { page(headers).await } else { unknown(method, uri, headers).await }
}

/// The page of the application.
pub async fn page(headers: HeaderMap) -> Response {
    show(Files::get("index.html"), &headers)
}

/// The response to a path that nothing serves: the application's own page for a browser that navigates there, a problem for everyone
/// else, and below the roots of the API and of the console.
pub async fn unknown(method: Method, uri: Uri, headers: HeaderMap) -> Response {
    let is_page = method == Method::GET
        && ["/api", super::ROOT].iter().all(|root| !uri.path().starts_with(root))
        && Accepted::from_headers(&headers).prefers_html();
    match Files::get("index.html").filter(|_| is_page) {
        Some(page) => {
            let unkept = [(CACHE_CONTROL, HeaderValue::from_static("no-store"))];
            (StatusCode::NOT_FOUND, HEADERS, unkept, content(page)).into_response()
        }
        None => Problem::NotFound("path").into_response(),
    }
}

/// The licenses of the packages in the application.
async fn licenses(headers: HeaderMap) -> Response {
    let mut response = show(Files::get("licenses.txt"), &headers);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

fn show(page: Option<EmbeddedFile>, headers: &HeaderMap) -> Response {
    let Some(page) = page else {
        let how = "The console is not part of this gateway. Run gateway/console/build, and build the gateway again. The API is \
                   complete without it.\n";
        return (StatusCode::NOT_FOUND, HEADERS, how).into_response();
    };
    let etag = format!("\"{}\"", hex(&page.metadata.sha256_hash()[..16]));
    let is_known = headers.get_all(IF_NONE_MATCH).iter().any(|known| known == etag.as_str());
    let revalidated = [(CACHE_CONTROL, HeaderValue::from_static("no-cache")), (ETAG, value(&etag))];
    if is_known {
        return (StatusCode::NOT_MODIFIED, HEADERS, revalidated).into_response();
    }
    (HEADERS, revalidated, content(page)).into_response()
}

/// A file whose name contains a hash of its content.
async fn file(Path(path): Path<String>) -> Result {
    let file = Files::get(&format!("static/{path}")).ok_or(Problem::NotFound("path"))?;
    let kept = [(CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable"))];
    Ok((HEADERS, kept, content(file)).into_response())
}

fn content(file: EmbeddedFile) -> impl IntoResponse {
    let kind = value(file.metadata.mimetype());
    let bytes = match file.data {
        std::borrow::Cow::Borrowed(bytes) => Bytes::from_static(bytes),
        std::borrow::Cow::Owned(bytes) => Bytes::from(bytes),
    };
    // A name by the content: a build for development reads the files anew.
    (Unchanging::named(&hex(&file.metadata.sha256_hash())), [(CONTENT_TYPE, kind)], bytes)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static("application/octet-stream"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_gateway_without_the_application_says_how_to_build_it() {
        let response = show(None, &HeaderMap::new());
        assert_eq!(response.status(), StatusCode::NOT_FOUND);
        assert_eq!(response.headers().get(CONTENT_SECURITY_POLICY), Some(&POLICY));
        let body = axum::body::to_bytes(response.into_body(), 1000).await.expect("a short text");
        assert!(std::str::from_utf8(&body).expect("UTF-8").contains("Run gateway/console/build"), "{body:?}");
    }
}
