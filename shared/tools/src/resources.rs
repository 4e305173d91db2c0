//! Resources that a host can read by address.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use client::{Client, Error, Item};
use domain::canvas::CanvasSummary;
use domain::id::{CanvasHandle, is_plain_id, is_slug};
use http::header::ACCEPT;
use rmcp::model::{Resource, ResourceContents, ResourceTemplate};
use serde_json::Value;

use crate::answer::{TEXT_MAX, cut};
use crate::skills::{self, Skill};

/// Canvases that are listed, the latest first.
const CANVASES: usize = 25;
const IMAGE_WIDTH: u32 = 1024;
/// The shortest outline.
const OUTLINE_BYTES_MIN: usize = 1024;
/// The beginning of the templates whose `owner` and `id` are those of a canvas.
pub const OF_CANVASES: &str = "canvas://{owner}/";

/// The resource of an address.
#[derive(Debug, PartialEq, Eq)]
pub enum Address {
    Outline(String),
    Review(String),
    Render(String),
    Asset(String),
    Run(String),
}

impl Address {
    /// `None` if no template matches.
    pub fn parse(uri: &str) -> Option<Self> {
        let parts: Vec<&str> = uri.strip_prefix("canvas://")?.split('/').collect();
        // Tools name a canvas by its slug.
        if let [slug, part] = parts[..]
            && is_slug(slug)
        {
            return Self::of_canvas(slug.to_owned(), part);
        }
        if !parts.iter().all(|part| is_plain_id(part) || *part == "render.png") {
            return None;
        }
        match parts.as_slice() {
            ["asset", owner, id] => Some(Self::Asset(format!("asset:{owner}:{id}"))),
            ["run", id] => Some(Self::Run(format!("run:{id}"))),
            [owner, id, part] => Self::of_canvas(format!("canvas:{owner}:{id}"), part),
            _ => None,
        }
    }

    fn of_canvas(canvas: String, part: &str) -> Option<Self> {
        match part {
            "outline" => Some(Self::Outline(canvas)),
            "review" => Some(Self::Review(canvas)),
            "render.png" => Some(Self::Render(canvas)),
            _ => None,
        }
    }

    /// The handle or slug of the canvas that the address shows an aspect of.
    pub fn canvas(&self) -> Option<&str> {
        match self {
            Self::Outline(canvas) | Self::Review(canvas) | Self::Render(canvas) => Some(canvas),
            Self::Asset(_) | Self::Run(_) => None,
        }
    }

    /// Reads it. `uri` is the address as it was given.
    pub async fn read(&self, client: &Client, uri: &str) -> Result<ResourceContents, Error> {
        let json = |value: &Value| {
            ResourceContents::text(cut(value.to_string(), "use a tool"), uri).with_mime_type("application/json")
        };
        let image = |bytes: &[u8], media_type: &str| {
            ResourceContents::blob(STANDARD.encode(bytes), uri).with_mime_type(media_type.to_owned())
        };
        Ok(match self {
            Self::Outline(canvas) => {
                let page = client.get_canvas_outline(canvas).query("ids", "refs").query("maxBytes", TEXT_MAX).await?;
                ResourceContents::text(page.text(), uri)
            }
            Self::Review(canvas) => json(&client.review_canvas(canvas).await?.json()),
            Self::Run(run) => json(&client.get_run(run).query("view", "summary").await?.json()),
            Self::Render(canvas) => {
                let request = client.render_canvas(canvas).header(ACCEPT, "image/png").query("width", IMAGE_WIDTH);
                image(&request.await?.body, "image/png")
            }
            Self::Asset(asset) => {
                let read = client.get_asset_content(asset).query("w", IMAGE_WIDTH).await?;
                image(&read.body, read.header("content-type").unwrap_or("image/jpeg"))
            }
        })
    }
}

/// The handle of a canvas that is named by handle or slug: an outline with ids begins with it.
pub async fn canvas_handle(client: &Client, named: &str) -> Result<String, Error> {
    if !is_slug(named) {
        return Ok(named.to_owned());
    }
    let outline = client.get_canvas_outline(named).query("text", "none").query("maxBytes", OUTLINE_BYTES_MIN);
    Ok(outline.await?.text().split(' ').next().unwrap_or_default().to_owned())
}

/// The forms of addresses.
pub fn templates() -> Vec<ResourceTemplate> {
    let of = |uri: &str, name: &str, about: &str, media_type: &str| {
        ResourceTemplate::new(uri, name).with_description(about).with_mime_type(media_type)
    };
    vec![
        of("canvas://{owner}/{id}/outline", "outline", "A canvas as text", "text/plain"),
        of("canvas://{owner}/{id}/review", "review", "Findings of a canvas", "application/json"),
        of("canvas://{owner}/{id}/render.png", "render", "A canvas as an image", "image/png"),
        of("canvas://asset/{owner}/{id}", "asset", "An image", "image/jpeg"),
        of("canvas://run/{id}", "run", "A run", "application/json"),
    ]
}

/// The latest canvases of the caller, as outlines, and the skills.
pub async fn list(client: &Client) -> Result<Vec<Resource>, Error> {
    let (canvases, _) = client.list_canvases().query("limit", CANVASES).await?.items()?;
    let resource = |canvas: CanvasSummary| {
        let CanvasHandle { owner, id } = canvas.handle;
        let resource = Resource::new(format!("canvas://{owner}/{id}/outline"), format!("{owner}/{id}"));
        resource.with_title(canvas.title).with_mime_type("text/plain")
    };
    let outlines = canvases.iter().filter_map(Item::value).map(resource);
    Ok(outlines.chain(skills::all().iter().map(Skill::resource)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_the_templates() {
        let canvas = || "canvas:ana:board".to_owned();
        for (uri, address) in [
            ("canvas://ana/board/outline", Some(Address::Outline(canvas()))),
            ("canvas://ana/board/review", Some(Address::Review(canvas()))),
            ("canvas://ana/board/render.png", Some(Address::Render(canvas()))),
            ("canvas://~7kq2m9xa/outline", Some(Address::Outline("~7kq2m9xa".into()))),
            ("canvas://~7kq2m9xa/nodes", None),
            ("canvas://asset/ana/a1", Some(Address::Asset("asset:ana:a1".into()))),
            ("canvas://run/recipe-1", Some(Address::Run("run:recipe-1".into()))),
            ("canvas://ana/board", None),
            ("canvas://ana/board/nodes", None),
            ("canvas://ana/../outline", None),
            ("canvas://a%20b/c/outline", None),
            ("https://ana/board/outline", None),
        ] {
            assert_eq!(Address::parse(uri), address, "{uri}");
        }
    }
}
