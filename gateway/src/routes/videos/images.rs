//! Frames and references: how requests name them, and what they refer to (docs/reference/videos.md#image-sources).

use std::collections::HashSet;
use std::fmt;

use db::PgConnection;
use domain::Violation;
use domain::asset::AssetKind;
use domain::graph::{self, Role};
use domain::id::AccountUid;
use domain::job::VideoImage;
use egress::Guard;

use super::body::VideoStart;
use crate::extract::check::Check;

/// An image as a request names it; its text is the full form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Named {
    /// A node's image or an asset.
    Stored(graph::Named),
    /// A public HTTPS URL, checked by its form.
    Url(String),
}

impl Named {
    fn parse(text: &str, account: &AccountUid, guard: &Guard) -> Result<Self, String> {
        match text.split_once(':').map(|(kind, _)| kind) {
            Some("node" | "asset") | None => graph::Named::parse(text, account)
                .map(Named::Stored)
                .ok_or_else(|| "must be a node handle, an asset handle or a public https URL".into()),
            Some(_) => guard.check_url(text).map(|url| Named::Url(url.into())).map_err(|refusal| refusal.to_string()),
        }
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Named::Stored(named) => named.fmt(f),
            Named::Url(url) => f.write_str(url),
        }
    }
}

#[derive(Clone, Debug)]
pub struct RequestedImage {
    /// Field path in the request.
    field: String,
    /// The parsed name.
    pub named: Named,
    pub role: Option<Role>,
}

/// The frames and references of a valid request.
#[derive(Clone, Debug, Default)]
pub struct Images {
    /// First frame.
    pub first: Option<RequestedImage>,
    /// Last frame.
    pub last: Option<RequestedImage>,
    /// Images that guide the video.
    pub references: Vec<RequestedImage>,
}

/// The same, resolved.
pub struct Found {
    /// First frame.
    pub first: Option<VideoImage>,
    /// Last frame.
    pub last: Option<VideoImage>,
    /// Images that guide the video.
    pub references: Vec<VideoImage>,
}

impl Images {
    pub fn from_request(check: &mut Check, request: &VideoStart, account: &AccountUid, guard: &Guard) -> Self {
        let mut seen = HashSet::new();
        let mut references = Vec::new();
        for (index, item) in request.references.iter().enumerate() {
            let field = format!("references[{index}]");
            let (text, role) = item.parts();
            let Some(named) = check.parsed(field.as_str(), Named::parse(text, account, guard)) else { continue };
            check.note_if(!seen.insert(named.clone()), field.as_str(), "is a duplicate");
            references.push(RequestedImage { field, named, role });
        }
        let mut frame = |field: &str, text: Option<&str>| {
            let named = check.parsed(field, Named::parse(text?, account, guard))?;
            Some(RequestedImage { field: field.to_owned(), named, role: None })
        };
        let images = Self {
            first: frame("firstFrame", request.first_frame.as_deref()),
            last: frame("lastFrame", request.last_frame.as_deref()),
            references,
        };
        if request.last_frame.is_some() && request.first_frame.is_none() {
            check.note("firstFrame", "is required with lastFrame");
            check.note("lastFrame", "needs firstFrame");
        }
        let is_node = |image: &RequestedImage| matches!(image.named, Named::Stored(graph::Named::Node(_)));
        let needs_canvas = request.canvas_id.is_none() && images.all().any(is_node);
        check.note_if(needs_canvas, "canvasId", "is required with node handles");
        images
    }

    fn all(&self) -> impl Iterator<Item = &RequestedImage> {
        self.first.iter().chain(&self.last).chain(&self.references)
    }

    /// Resolves the handles. A missing image, and one that the account cannot read, is added to `violations`.
    pub async fn find(
        &self,
        conn: &mut PgConnection,
        account: &AccountUid,
        canvas_key: Option<i64>,
        violations: &mut Vec<Violation>,
    ) -> app::Result<Found> {
        let mut found = Vec::new();
        for image in self.all() {
            let asset = match (&image.named, canvas_key) {
                (Named::Stored(graph::Named::Node(node)), Some(key)) => db::assets::of_node(conn, key, node).await?,
                (Named::Stored(graph::Named::Asset(asset)), _) => {
                    db::assets::get_readable(conn, account, asset).await?.map(|(asset, _)| asset)
                }
                (Named::Stored(graph::Named::Node(_)), None) | (Named::Url(_), _) => None,
            };
            let asset = asset.filter(|asset| asset.kind == AssetKind::Image).map(|asset| asset.handle);
            if asset.is_none() && !matches!(image.named, Named::Url(_)) {
                violations.push(Violation::new(image.field.as_str(), "holds no image that you can read"));
            }
            found.push(VideoImage { named: image.named.to_string(), asset, role: image.role });
        }
        let mut found = found.into_iter();
        Ok(Found {
            first: self.first.as_ref().and_then(|_| found.next()),
            last: self.last.as_ref().and_then(|_| found.next()),
            references: found.collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<String, String> {
        let account = AccountUid::from_stored("me".into());
        Named::parse(text, &account, &Guard::default()).map(|named| named.to_string())
    }

    #[test]
    fn an_image_is_named_by_a_handle_or_a_public_url() {
        for (text, full) in [
            ("node:n", "node:n"),
            ("asset:a", "asset:me:a"),
            ("asset:you:a", "asset:you:a"),
            ("https://Example.com/a.png?w=1", "https://example.com/a.png?w=1"),
        ] {
            assert_eq!(parse(text).as_deref(), Ok(full));
        }
        for wrong in [
            "",
            "n",
            "node:",
            "node:a b",
            "asset:a:b:c",
            "canvas:c",
            "http://example.com/a.png",
            "https://127.0.0.1/a.png",
            "https://localhost/a.png",
            "https://user@example.com/a.png",
            "https://example.com/a.png#x",
            "data:image/png;base64,AAAA",
        ] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
