//! Frames and references: what they are called, and what they stand for (decisions 11.1).

use std::fmt;

use db::PgConnection;
use domain::Violation;
use domain::asset::AssetKind;
use domain::graph::{self, Role};
use domain::id::AccountUid;
use domain::job::VideoPicture;
use egress::Guard;

use super::body::VideoStart;
use crate::problem::Result;

/// A picture as the request names it. Its text is the full form.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// Everything that the request alone can tell; each violation goes into `violations`.
    pub fn judge(request: &VideoStart, account: &AccountUid, guard: &Guard, violations: &mut Vec<Violation>) -> Self {
        let mut parse = |field: String, text: &str, role: Option<Role>| match Named::parse(text, account, guard) {
            Ok(named) => Some(Wanted { field, named, role }),
            Err(message) => {
                violations.push(Violation::new(field, message));
                None
            }
        };
        let first = request.first_frame.as_deref().and_then(|text| parse("firstFrame".into(), text, None));
        let last = request.last_frame.as_deref().and_then(|text| parse("lastFrame".into(), text, None));
        let mut references: Vec<Wanted> = Vec::new();
        for (index, item) in request.references.iter().enumerate() {
            let (text, role) = item.parts();
            references.extend(parse(format!("references[{index}]"), text, role));
        }
        if request.last_frame.is_some() && request.first_frame.is_none() {
            violations.push(Violation::new("firstFrame", "is required with lastFrame"));
        }
        for (index, reference) in references.iter().enumerate() {
            if references[..index].iter().any(|earlier| earlier.named == reference.named) {
                violations.push(Violation::new(reference.field.as_str(), "is there twice"));
            }
        }
        let pictures = Self { first, last, references };
        if request.canvas_id.is_none()
            && pictures.all().any(|picture| matches!(picture.named, Named::Stored(graph::Named::Node(_))))
        {
            violations.push(Violation::new("canvasId", "is required with node handles"));
        }
        pictures
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
