//! Frames and references: how requests name them, and what they refer to (docs/reference/videos.md#image-sources).

use std::collections::HashSet;
use std::fmt;

use app::job::link;
use canvas::targets::Link;
use db::assets::InputImage;
use domain::Violation;
use domain::graph::{self, Purpose, Role};
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

    /// The handles among them, in order.
    pub fn stored(&self) -> impl Iterator<Item = &graph::Named> {
        self.all().filter_map(|image| match &image.named {
            Named::Stored(named) => Some(named),
            Named::Url(_) => None,
        })
    }

    /// The connections that show them: frames, and `reference` with its role.
    pub fn links(&self) -> Vec<Link> {
        let frames = [(&self.first, Purpose::FirstFrame), (&self.last, Purpose::LastFrame)];
        let frames = frames.into_iter().filter_map(|(image, purpose)| Some((image.as_ref()?, purpose)));
        let references = self.references.iter().map(|image| (image, Purpose::Reference));
        let links = frames.chain(references).filter_map(|(image, purpose)| match &image.named {
            Named::Stored(named) => link(named, purpose, image.role),
            Named::Url(_) => None,
        });
        links.collect()
    }

    /// The resolved images. `found` has the images of the [handles](Self::stored), in their order. A missing image, and one that
    /// the account cannot read, is added to `violations`.
    pub fn resolve(&self, found: Vec<Option<InputImage>>, violations: &mut Vec<Violation>) -> Found {
        let mut found = found.into_iter();
        let mut resolve = |image: &RequestedImage| {
            let asset = match &image.named {
                Named::Url(_) => None,
                Named::Stored(_) => {
                    let asset = found.next().flatten().map(|image| image.handle);
                    if asset.is_none() {
                        violations.push(Violation::new(image.field.as_str(), "holds no image that you can read"));
                    }
                    asset
                }
            };
            VideoImage { named: image.named.to_string(), asset, role: image.role }
        };
        Found {
            first: self.first.as_ref().map(&mut resolve),
            last: self.last.as_ref().map(&mut resolve),
            references: self.references.iter().map(resolve).collect(),
        }
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
