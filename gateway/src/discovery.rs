//! What agents and their hosts find without a credential: `/llms.txt`, the skills, `server.json` and the icon
//! (docs/reference/tools.md#without-a-credential). It is the same for every caller and changes with a release alone.

use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderName, HeaderValue};
use tools::{manifest, skills};

use crate::compression::Unchanging;
use crate::extract::path::PathText;
use crate::llms;
use crate::problem::{Problem, Result};

/// Every file carries these. None is a page: opened as one, it runs nothing and loads nothing.
const HEADERS: [(HeaderName, HeaderValue); 4] = [
    (CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600")),
    (CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox")),
    (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
];

/// The routes, for an installation that is reached at `public_url`.
pub fn router<S: Clone + Send + Sync + 'static>(public_url: &str) -> Router<S> {
    let manifest = Bytes::from(manifest::of_installation(public_url));
    let manifest = move || async move { file("server.json", "application/json", manifest) };
    let text = Bytes::from(llms::text(public_url));
    let text = move || async move { file("llms.txt", "text/plain; charset=utf-8", text) };
    Router::new()
        .route("/llms.txt", get(text))
        .route("/skills/{name}/SKILL.md", get(skill))
        .route("/.well-known/mcp/server.json", get(manifest))
        .route("/icon.svg", get(icon))
}

async fn skill(path: PathText) -> Result {
    let name: String = path.parameter("name")?;
    let skill = skills::find(&name).ok_or(Problem::NotFound("skill"))?;
    Ok(file(
        &format!("skills/{}", skill.name),
        "text/markdown; charset=utf-8",
        Bytes::from_static(skill.text.as_bytes()),
    ))
}

async fn icon() -> Response {
    file("icon.svg", "image/svg+xml", Bytes::from_static(include_bytes!("../console/src/ui/mark.svg")))
}

fn file(name: &str, media_type: &'static str, content: Bytes) -> Response {
    (Unchanging::named(name), HEADERS, [(CONTENT_TYPE, media_type)], content).into_response()
}
