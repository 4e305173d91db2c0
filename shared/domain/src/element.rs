//! Elements: reusable visual references with immutable versions, in collections (specification, Elements; decisions 7).

use std::str::FromStr;

use serde::Serialize;
use utoipa::ToSchema;

use crate::Timestamp;
use crate::graph::{Role, named};
use crate::id::{AccountUid, AssetId, ElementCollectionId, ElementId};

/// `schemaVersion` of every record.
const SCHEMA_VERSION: u32 = 1;

named! {
    /// What an Element is a reference of.
    ElementType {
        /// A person or creature.
        Character = "character",
        /// A thing.
        Product = "product/object",
        /// A place.
        Environment = "environment",
        /// A look.
        Style = "style",
        /// A surface.
        Material = "material/texture",
        /// Light.
        Lighting = "lighting",
    }
}

impl ElementType {
    /// What an Element's pictures are for when it is used in a generation (decisions 10.4).
    pub const fn reference_role(self) -> Role {
        match self {
            ElementType::Character | ElementType::Product => Role::Identity,
            ElementType::Material => Role::Texture,
            ElementType::Environment | ElementType::Style | ElementType::Lighting => Role::Style,
        }
    }
}

named! {
    /// Whether an Element is in use.
    Lifecycle {
        /// It can be updated.
        Active = "active",
        /// Put away, never deleted; restoring appends a version.
        Archived = "archived",
    }
}

named! {
    /// Whether the pictures of an Element are there.
    SourceStatus {
        /// All of them.
        Available = "available",
        /// Not all of them.
        Unavailable = "unavailable",
        /// The object store cannot be asked.
        Unknown = "unknown",
    }
}

/// Whether the pictures of an Element are there, and which are not (decisions 7.3).
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SourceHealth {
    /// Of all of them together.
    pub status: SourceStatus,
    /// Plain ids of those that are not there.
    #[schema(max_items = 8)]
    pub unavailable_source_asset_ids: Vec<AssetId>,
}

/// What a version of an Element says.
#[derive(Clone, Debug, PartialEq)]
pub struct Content {
    /// 1 to 160 characters.
    pub name: String,
    /// What it is a reference of.
    pub kind: ElementType,
    /// At most 8 image assets of the owner.
    pub sources: Vec<AssetId>,
    /// At most 2000 characters.
    pub guidelines: Option<String>,
}

/// An Element's row, with what its newest version says.
#[derive(Clone, Debug, PartialEq)]
pub struct ElementRecord {
    /// Plain id.
    pub id: ElementId,
    /// The account that it belongs to.
    pub owner: AccountUid,
    /// Whether it is in use.
    pub lifecycle: Lifecycle,
    /// The newest version.
    pub version: i32,
    /// What that says.
    pub content: Content,
    /// The collections that it is in, in the order given.
    pub collections: Vec<ElementCollectionId>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When it was put away.
    pub archived_at: Option<Timestamp>,
}

/// A version's row.
#[derive(Clone, Debug, PartialEq)]
pub struct VersionRecord {
    /// The Element.
    pub element: ElementId,
    /// The account that it belongs to.
    pub owner: AccountUid,
    /// From 1, without gap.
    pub version: i32,
    /// What it says.
    pub content: Content,
    /// When it was appended.
    pub created_at: Timestamp,
}

/// A collection's row.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectionRecord {
    /// Plain id.
    pub id: ElementCollectionId,
    /// The account that it belongs to.
    pub owner: AccountUid,
    /// 1 to 120 characters; need not be unique.
    pub name: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was renamed last.
    pub updated_at: Timestamp,
}

/// An Element as it is served. Name and guidelines are user-authored: data, never instructions.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Element {
    /// Plain id.
    pub id: ElementId,
    /// `element:<id>`.
    #[schema(pattern = "^element:[A-Za-z0-9_-]{1,160}$")]
    pub handle: String,
    /// `element:<id>@v<n>` of the newest version.
    #[schema(pattern = "^element:[A-Za-z0-9_-]{1,160}@v[1-9][0-9]*$")]
    pub version_handle: String,
    /// User-authored.
    #[schema(min_length = 1, max_length = 160)]
    pub name: String,
    /// What it is a reference of.
    #[serde(rename = "type")]
    pub kind: ElementType,
    /// Plain ids of its pictures.
    #[schema(max_items = 8)]
    pub source_asset_ids: Vec<AssetId>,
    /// Plain ids of the collections that it is in.
    #[schema(max_items = 24)]
    pub collection_ids: Vec<ElementCollectionId>,
    /// User-authored.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 2000, nullable = false)]
    pub guidelines: Option<String>,
    /// The account that it belongs to.
    pub owner_uid: AccountUid,
    /// The newest version.
    #[schema(minimum = 1)]
    pub version: i32,
    /// Whether it is in use.
    pub lifecycle: Lifecycle,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When it was put away.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub archived_at: Option<Timestamp>,
    /// 1; in lists it is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1, maximum = 1)]
    pub schema_version: Option<u32>,
    /// Whether its pictures are there.
    pub source_health: SourceHealth,
}

/// One immutable version of an Element as it is served.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ElementVersion {
    /// `v<n>`.
    #[schema(pattern = "^v[1-9][0-9]*$")]
    pub id: String,
    /// Plain id of the Element.
    pub element_id: ElementId,
    /// `element:<id>`.
    #[schema(pattern = "^element:[A-Za-z0-9_-]{1,160}$")]
    pub handle: String,
    /// `element:<id>@v<n>`.
    #[schema(pattern = "^element:[A-Za-z0-9_-]{1,160}@v[1-9][0-9]*$")]
    pub version_handle: String,
    /// User-authored.
    #[schema(min_length = 1, max_length = 160)]
    pub element_name: String,
    /// What it is a reference of.
    pub element_type: ElementType,
    /// Plain ids of its pictures.
    #[schema(max_items = 8)]
    pub source_asset_ids: Vec<AssetId>,
    /// User-authored.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 2000, nullable = false)]
    pub guidelines: Option<String>,
    /// The account that it belongs to.
    pub owner_uid: AccountUid,
    /// From 1, without gap.
    #[schema(minimum = 1)]
    pub version: i32,
    /// When it was appended.
    pub created_at: Timestamp,
    /// 1; in lists it is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1, maximum = 1)]
    pub schema_version: Option<u32>,
    /// Whether its pictures are there.
    pub source_health: SourceHealth,
}

/// A collection of Elements as it is served.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ElementCollection {
    /// Plain id.
    pub id: ElementCollectionId,
    /// `element-collection:<id>`.
    #[schema(pattern = "^element-collection:[A-Za-z0-9_-]{1,160}$")]
    pub handle: String,
    /// User-authored; need not be unique.
    #[schema(min_length = 1, max_length = 120)]
    pub name: String,
    /// The account that it belongs to.
    pub owner_uid: AccountUid,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was renamed last.
    pub updated_at: Timestamp,
    /// 1; in lists it is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1, maximum = 1)]
    pub schema_version: Option<u32>,
}

/// Whether a record stands in a list or alone; alone it names its `schemaVersion`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listed {
    /// One of many.
    Yes,
    /// The subject of the answer.
    No,
}

impl Listed {
    fn schema_version(self) -> Option<u32> {
        (self == Listed::No).then_some(SCHEMA_VERSION)
    }
}

impl ElementRecord {
    /// The served form.
    pub fn document(self, health: SourceHealth, listed: Listed) -> Element {
        Element {
            handle: self.id.handle(),
            version_handle: version_handle(&self.id, self.version),
            id: self.id,
            name: self.content.name,
            kind: self.content.kind,
            source_asset_ids: self.content.sources,
            collection_ids: self.collections,
            guidelines: self.content.guidelines,
            owner_uid: self.owner,
            version: self.version,
            lifecycle: self.lifecycle,
            created_at: self.created_at,
            updated_at: self.updated_at,
            archived_at: self.archived_at,
            schema_version: listed.schema_version(),
            source_health: health,
        }
    }
}

impl VersionRecord {
    /// The served form.
    pub fn document(self, health: SourceHealth, listed: Listed) -> ElementVersion {
        ElementVersion {
            id: format!("v{}", self.version),
            handle: self.element.handle(),
            version_handle: version_handle(&self.element, self.version),
            element_id: self.element,
            element_name: self.content.name,
            element_type: self.content.kind,
            source_asset_ids: self.content.sources,
            guidelines: self.content.guidelines,
            owner_uid: self.owner,
            version: self.version,
            created_at: self.created_at,
            schema_version: listed.schema_version(),
            source_health: health,
        }
    }
}

impl CollectionRecord {
    /// The served form.
    pub fn document(self, listed: Listed) -> ElementCollection {
        ElementCollection {
            handle: self.id.handle(),
            id: self.id,
            name: self.name,
            owner_uid: self.owner,
            created_at: self.created_at,
            updated_at: self.updated_at,
            schema_version: listed.schema_version(),
        }
    }
}

fn version_handle(id: &ElementId, version: i32) -> String {
    format!("{}@v{version}", id.handle())
}

/// An Element as a request names it: the plain id, `element:<id>`, or `element:<id>@v<n>` for one version of it
/// (decisions 1.4).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ElementRef {
    /// Plain id.
    pub id: ElementId,
    /// The version, where the reference pins one.
    pub version: Option<i32>,
}

/// A text that names no Element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be an element id, `element:<id>` or `element:<id>@v<n>`")]
pub struct MalformedElementRef;

impl FromStr for ElementRef {
    type Err = MalformedElementRef;

    fn from_str(text: &str) -> Result<Self, MalformedElementRef> {
        let (id, version) = match text.split_once("@v") {
            Some((id, version)) if id.starts_with("element:") => (id, Some(version)),
            Some(_) => return Err(MalformedElementRef),
            None => (text, None),
        };
        let version = match version {
            None => None,
            // No sign, no leading zero: one version has one handle.
            Some(digits) if digits.starts_with(|first: char| matches!(first, '1'..='9')) => {
                Some(digits.parse().map_err(|_| MalformedElementRef)?)
            }
            Some(_) => return Err(MalformedElementRef),
        };
        Ok(Self { id: ElementId::parse(id).map_err(|_| MalformedElementRef)?, version })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_is_named_by_id_handle_and_version_handle() {
        let named = |version| Ok(ElementRef { id: ElementId::from_stored("e1".into()), version });
        for (text, version) in [("e1", None), ("element:e1", None), ("element:e1@v12", Some(12))] {
            assert_eq!(text.parse(), named(version), "{text}");
        }
        for wrong in [
            "",
            "element:",
            "e1@v1",
            "element:e1@",
            "element:e1@v",
            "element:e1@v0",
            "element:e1@v01",
            "element:e1@v+1",
            "element:e1@v99999999999",
            "element:e1@v1@v2",
            "asset:e1",
            "element:a:b",
        ] {
            assert_eq!(wrong.parse::<ElementRef>(), Err(MalformedElementRef), "{wrong:?}");
        }
    }
}
