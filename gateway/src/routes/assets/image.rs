//! The image of an asset, whole, in part or as a rendition: what previews and downloads by handle share.

use axum::response::Response;
use blob::BlobKey;
use db::assets::Content;
use domain::limits::RENDITION_WIDTHS;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName};
use serde::Deserialize;
use utoipa::openapi::RefOr;
use utoipa::openapi::extensions::ExtensionsBuilder;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::admission::InProgress;
use crate::observe::Trace;
use crate::problem::{Problem, Result};
use crate::rendition::{Rendition, WAIT, rendition};
use crate::state::App;
use crate::stored::{self, Selection, Served};

/// The width of a rendition, one of the allowed ones.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct RenditionWidth(u32);

impl From<RenditionWidth> for u32 {
    fn from(width: RenditionWidth) -> Self {
        width.0
    }
}

impl TryFrom<String> for RenditionWidth {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let width = RENDITION_WIDTHS.into_iter().find(|width| width.to_string() == text);
        width
            .map(Self)
            .ok_or_else(|| format!("must be one of {}", RENDITION_WIDTHS.map(|width| width.to_string()).join(", ")))
    }
}

impl PartialSchema for RenditionWidth {
    fn schema() -> RefOr<Schema> {
        let described = RENDITION_WIDTHS.map(|width| format!("{width} pixels."));
        let extensions = ExtensionsBuilder::new().add("x-enum-descriptions", described).build();
        let width = ObjectBuilder::new().schema_type(Type::Integer).enum_values(Some(RENDITION_WIDTHS));
        width.extensions(Some(extensions)).into()
    }
}

impl ToSchema for RenditionWidth {}

/// Streams the stored bytes, or the rendition of `width`, which an image-worker makes on first demand. Sets the headers that make
/// foreign bytes safe in a browser, and how many seconds they may be cached.
pub async fn serve(
    app: &App,
    asset: &Content,
    width: Option<u32>,
    max_age: u64,
    selection: &Selection<'_>,
    trace: Trace,
    place: &InProgress,
) -> Result {
    let rendition = match width {
        None => None,
        Some(width) => Some(rendition(app, (asset.blob_key, width), &asset.owner, trace, WAIT, place).await?),
    };
    let (key, sha256, media_type) = match &rendition {
        None => (asset.blob_key, &asset.sha256, &asset.mime_type),
        Some(Rendition::Ready { key, sha256, media_type }) => (*key, sha256, media_type),
        Some(Rendition::Undecodable) => return Err(Problem::unprocessable("w", "the image cannot be read")),
        Some(Rendition::GivenUp) => {
            return Err(Problem::unprocessable("w", "no rendition of the image could be made"));
        }
    };
    let served = Served { key: BlobKey(key), sha256, owner: &asset.owner, media_type };
    let mut response: Response = stored::serve(app, served, selection).await?;
    let headers = response.headers_mut();
    stored::set(headers, CACHE_CONTROL, &format!("private, max-age={max_age}"))?;
    stored::set(headers, CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox")?;
    stored::set(headers, HeaderName::from_static("cross-origin-resource-policy"), "cross-origin")?;
    Ok(response)
}
