//! Frames and references: what they are called, and what they stand for (decisions 11.1).

use std::collections::HashSet;
use std::fmt;

use db::PgConnection;
use domain::Violation;
use domain::asset::AssetKind;
use domain::graph::{self, Role};
use domain::id::AccountUid;
use domain::job::VideoPicture;
use egress::Guard;
use serde_json::Value;

use super::body::{ReferenceItem, VideoStart};
use crate::extract::json::items;
use crate::problem::{Problem, Result};

/// A picture as the request names it. Its text is the full form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Named {
    /// What a node of the canvas shows, or an asset.
    Stored(graph::Named),
    /// A public https URL, by its form.
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

/// Everything that a body as it came tells of its pictures and its schema cannot.
pub fn violations(body: &Value, account: &AccountUid, guard: &Guard) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut note = |field: &str, message: &str| violations.push(Violation::new(field, message));
    let mut named = HashSet::new();
    for (index, item) in items(&body["references"]).iter().enumerate() {
        let field = format!("references[{index}]");
        match ReferenceItem::handle_in(item).map(|text| Named::parse(text, account, guard)) {
            Some(Err(message)) => note(&field, &message),
            Some(Ok(picture)) => {
                let is_first = named.insert(picture);
                if !is_first {
                    note(&field, "is there twice");
                }
            }
            None => {}
        }
    }
    for field in ["firstFrame", "lastFrame"] {
        match body[field].as_str().map(|text| Named::parse(text, account, guard)) {
            Some(Err(message)) => note(field, &message),
            Some(Ok(picture)) => drop(named.insert(picture)),
            None => {}
        }
    }
    if body.get("lastFrame").is_some() && body.get("firstFrame").is_none() {
        note("firstFrame", "is required with lastFrame");
        note("lastFrame", "needs firstFrame");
    }
    let is_node = |picture: &Named| matches!(picture, Named::Stored(graph::Named::Node(_)));
    if body.get("canvasId").is_none() && named.iter().any(is_node) {
        note("canvasId", "is required with node handles");
    }
    violations
}

/// A picture of a request.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Where it stands in the request.
    field: String,
    /// What it is called.
    pub named: Named,
    /// What it is for.
    pub role: Option<Role>,
}

/// The frames and references of a request that is right by itself.
#[derive(Clone, Debug, Default)]
pub struct Pictures {
    /// What the video begins with.
    pub first: Option<Wanted>,
    /// What it ends with.
    pub last: Option<Wanted>,
    /// What guides it.
    pub references: Vec<Wanted>,
}

/// The same, found.
pub struct Found {
    /// What the video begins with.
    pub first: Option<VideoPicture>,
    /// What it ends with.
    pub last: Option<VideoPicture>,
    /// What guides it.
    pub references: Vec<VideoPicture>,
}

impl Pictures {
    /// The pictures of a request whose form and rules hold.
    pub fn named(request: &VideoStart, account: &AccountUid, guard: &Guard) -> Result<Self> {
        let wanted = |field: String, text: &str, role: Option<Role>| match Named::parse(text, account, guard) {
            Ok(named) => Ok(Wanted { field, named, role }),
            Err(message) => Err(Problem::invalid(field, message)),
        };
        let frame = |field: &str, text: &Option<String>| {
            text.as_deref().map(|text| wanted(field.to_owned(), text, None)).transpose()
        };
        let references = request.references.iter().enumerate().map(|(index, item)| {
            let (text, role) = item.parts();
            wanted(format!("references[{index}]"), text, role)
        });
        Ok(Self {
            first: frame("firstFrame", &request.first_frame)?,
            last: frame("lastFrame", &request.last_frame)?,
            references: references.collect::<Result<_>>()?,
        })
    }

    fn all(&self) -> impl Iterator<Item = &Wanted> {
        self.first.iter().chain(&self.last).chain(&self.references)
    }

    /// The pictures that the handles stand for now; what is not there, or is no picture that the account can read, goes into
    /// `violations`.
    pub async fn find(
        &self,
        conn: &mut PgConnection,
        account: &AccountUid,
        canvas_key: Option<i64>,
        violations: &mut Vec<Violation>,
    ) -> Result<Found> {
        let mut found = Vec::new();
        for picture in self.all() {
            let asset = match (&picture.named, canvas_key) {
                (Named::Stored(graph::Named::Node(node)), Some(key)) => db::assets::of_node(conn, key, node).await?,
                (Named::Stored(graph::Named::Asset(asset)), _) => {
                    db::assets::get_readable(conn, account, asset).await?.map(|(asset, _)| asset)
                }
                (Named::Stored(graph::Named::Node(_)), None) | (Named::Url(_), _) => None,
            };
            let asset = asset.filter(|asset| asset.kind == AssetKind::Image).map(|asset| asset.handle);
            if asset.is_none() && !matches!(picture.named, Named::Url(_)) {
                violations.push(Violation::new(picture.field.as_str(), "holds no picture that you can read"));
            }
            found.push(VideoPicture { named: picture.named.to_string(), asset, role: picture.role });
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
    fn a_picture_is_named_by_a_handle_or_a_public_url() {
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
