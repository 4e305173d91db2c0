//! `/docs`: the contract document as a web page.
//!
//! The viewer is Redoc, vendored by `docs/vendor` and embedded compressed. The page and its scripts come from the service alone;
//! its policy allows no inline script and no other origin. The documents for people are beside it ([`guides`]).

pub mod guides;

use std::io::Read;
use std::sync::LazyLock;

use axum::Router;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use flate2::read::GzDecoder;
use http::header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, VARY};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::compression::Unchanging;

/// The page's policy. The hash is that of an empty style element: the viewer adds one and inserts its rules by script, which
/// needs no permission for inline styles. The viewer's search worker and icon font are embedded in its script.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='; \
     img-src 'self' data:; font-src data:; connect-src 'self'; worker-src 'self' blob:; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'";

/// How long a browser keeps the page and its scripts, which change with a release.
const KEPT: (HeaderName, HeaderValue) = (CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));

/// The viewer, compressed by gzip.
const VIEWER: &[u8] = include_bytes!("redoc.js.gz");

/// The scripts of the page.
pub fn scripts<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new().route("/docs/page.js", get(start)).route("/docs/redoc.js", get(viewer))
}

/// Read this document as a web page
///
/// Returns a page that renders the contract, with search and samples. Use it to read the contract in a browser. It
/// needs no credential and never loads anything from elsewhere.
#[utoipa::path(
    get, path = "/docs", operation_id = "getDocs", tag = "Contract",
    security(()),
    responses((status = 200, description = "The page.", content_type = "text/html", body = String))
)]
pub async fn page() -> Response {
    let policy = [(CONTENT_SECURITY_POLICY, POLICY)];
    (Unchanging::named("docs"), policy, [KEPT], Html(include_str!("page.html"))).into_response()
}

async fn start() -> Response {
    script("docs/page.js", Bytes::from_static(include_bytes!("page.js")))
}

async fn viewer(headers: HeaderMap) -> Response {
    static PLAIN: LazyLock<Bytes> = LazyLock::new(|| {
        let mut plain = Vec::new();
        GzDecoder::new(VIEWER).read_to_end(&mut plain).expect("the embedded viewer is compressed by gzip");
        plain.into()
    });
    let accepted = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let takes_gzip = accepted.flat_map(|value| value.split(',')).any(is_gzip);
    let mut response = script("docs/redoc.js", if takes_gzip { Bytes::from_static(VIEWER) } else { PLAIN.clone() });
    if takes_gzip {
        response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response.headers_mut().insert(VARY, HeaderValue::from_static("accept-encoding"));
    response
}

/// Returns `true` if an element of `Accept-Encoding` accepts gzip. A client that accepts it only by `*` gets the plain script.
fn is_gzip(coding: &str) -> bool {
    let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
    let rejected = weight.trim().to_ascii_lowercase().strip_prefix("q=").is_some_and(|q| q.parse() == Ok(0.0));
    name.trim().eq_ignore_ascii_case("gzip") && !rejected
}

fn script(name: &str, source: Bytes) -> Response {
    let script = [(CONTENT_TYPE, "text/javascript; charset=utf-8")];
    (Unchanging::named(name), script, [KEPT], source).into_response()
}
