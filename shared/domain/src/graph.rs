//! Nodes and connections as the service stores them. [`crate::canvas`] has the served forms.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Map;
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::extensions::ExtensionsBuilder;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use uuid::Uuid;

use crate::Timestamp;
use crate::id::{AccountUid, AssetHandle, AssetRef, ConnectionId, JobHandle, NodeId, RunHandle};
use crate::job::ReferenceInput;
use crate::metadata::{HistoryEntry, NodeJob, NodeRecipe, Provenance, ServerMetadata, WritableMetadata};
use crate::refs::{ConnectionRef, NodeRef};
use crate::stored::Stored;

/// Maximum number of earlier assets in a node's history.
const HISTORY_MAX: usize = 50;

macro_rules! named {
    ($(#[doc = $doc:literal])+ $name:ident { $($(#[doc = $vdoc:literal])+ $(#[serde($($extra:tt)+)])? $variant:ident = $text:literal,)+ }) => {
        $(#[doc = $doc])+
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
        )]
        pub enum $name { $($(#[doc = $vdoc])+ #[serde(rename = $text)] $(#[serde($($extra)+)])? $variant,)+ }

        impl $name {
            /// Every value, in the order of the contract.
            pub const ALL: &[$name] = &[$($name::$variant),+];

            /// The identifier, the name and the description of every value.
            pub(crate) const DESCRIBED: &[(&str, &str, &str)] =
                &[$((stringify!($variant), $text, concat!($($vdoc),+))),+];

            /// The name in the contract.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text),+ }
            }
        }

        // Written out: the derive cannot see the names inside the macro.
        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                $crate::graph::enumeration(concat!($($doc),+), $name::DESCRIBED)
            }
        }

        impl utoipa::ToSchema for $name {
            fn name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::account::UnknownName;
            fn from_str(name: &str) -> Result<Self, Self::Err> {
                match name { $($text => Ok($name::$variant),)+ _ => Err($crate::account::UnknownName(name.to_owned())) }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
pub(crate) use named;

/// The schema of some values of an enumeration, as a type of its own.
macro_rules! part {
    ($(#[doc = $doc:literal])+ $name:ident of $whole:ident: $is_in:expr) => {
        $(#[doc = $doc])+
        pub struct $name;

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                let is_in: fn(&$whole) -> bool = $is_in;
                let values = $whole::ALL.iter().zip($whole::DESCRIBED).filter(|(value, _)| is_in(value));
                let described: Vec<_> = values.map(|(_, described)| *described).collect();
                $crate::graph::enumeration(concat!($($doc),+), &described)
            }
        }

        impl utoipa::ToSchema for $name {
            fn name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
        }
    };
}
pub(crate) use part;

/// Schema of an enumeration with the identifier, the name and the description of each value.
///
/// Generators of clients make an identifier of each name, and leave signs out. Where two names would become the same, and only
/// there, the identifiers are said (`x-enum-varnames`, with `x-enum-descriptions` an extension that OpenAPI Generator defines).
pub(crate) fn enumeration(description: &str, values: &[(&str, &str, &str)]) -> RefOr<Schema> {
    let mut extensions = ExtensionsBuilder::new()
        .add("x-enum-descriptions", values.iter().map(|(.., description)| description.trim()).collect::<Vec<_>>());
    let letters = |name: &str| name.replace(|sign: char| !sign.is_ascii_alphanumeric(), "").to_ascii_uppercase();
    let distinct: BTreeSet<String> = values.iter().map(|(_, name, _)| letters(name)).collect();
    if distinct.len() < values.len() {
        extensions = extensions.add("x-enum-varnames", values.iter().map(|(variant, ..)| *variant).collect::<Vec<_>>());
    }
    ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some(description.trim()))
        .enum_values(Some(values.iter().map(|(_, name, _)| *name).collect::<Vec<_>>()))
        .extensions(Some(extensions.build()))
        .into()
}

named! {
    /// Type of a node.
    NodeType {
        /// An image, or an empty slot for one.
        Image = "image",
        /// A video.
        Video = "video",
        /// Text.
        Text = "text",
        /// A note, or a Section.
        Sticky = "sticky",
    }
}

impl NodeType {
    /// Width and height on creation, in canvas units.
    pub const fn default_size(self) -> (f64, f64) {
        match self {
            NodeType::Image => (320.0, 320.0),
            NodeType::Video => (480.0, 270.0),
            NodeType::Text => (320.0, 160.0),
            NodeType::Sticky => (240.0, 240.0),
        }
    }

    /// Returns `true` if clients may write `metadata.content`.
    pub const fn holds_text(self) -> bool {
        matches!(self, NodeType::Text | NodeType::Sticky)
    }
}

named! {
    /// Purpose of a connection.
    Purpose {
        /// A plain dependency or transformation.
        Flow = "flow",
        /// An image reference that guides another node.
        Reference = "reference",
        /// A prompt list or image list.
        List = "list",
        /// The first frame of a video.
        FirstFrame = "first-frame",
        /// The last frame of a video.
        LastFrame = "last-frame",
    }
}

impl Purpose {
    /// Returns `true` if it connects an image to a video. A video has at most one connection of each of these purposes.
    pub const fn is_frame(self) -> bool {
        matches!(self, Purpose::FirstFrame | Purpose::LastFrame)
    }
}

named! {
    /// Role of a reference image.
    Role {
        /// Who or what it shows.
        Identity = "identity",
        /// How it is built.
        Construction = "construction",
        /// The material that it is made of.
        Texture = "texture",
        /// How it sits.
        Fit = "fit",
        /// How it looks.
        Style = "style",
    }
}

impl Role {
    /// Returns `true` if the image shows a product that outputs must match (`docs/reference/canvases.md#reference-roles`).
    pub const fn is_product(self) -> bool {
        matches!(self, Role::Identity | Role::Construction | Role::Texture | Role::Fit)
    }
}

/// A point on the canvas, in canvas units.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Position {
    /// Horizontal coordinate; grows to the right.
    #[schema(minimum = -10_000_000, maximum = 10_000_000)]
    pub x: f64,
    /// Vertical coordinate; grows downward.
    #[schema(minimum = -10_000_000, maximum = 10_000_000)]
    pub y: f64,
}

/// A node as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Unique in its canvas.
    pub id: NodeId,
    /// Its short name. `None`: the previous release made it, and no process of this one has loaded it yet.
    pub short: Option<NodeRef>,
    /// Type of the node.
    pub kind: NodeType,
    /// At most 160 characters.
    pub title: String,
    /// Position of the top left corner.
    pub position: Position,
    /// Width, 1 to 100000 canvas units.
    pub width: f64,
    /// Height, 1 to 100000 canvas units.
    pub height: f64,
    /// `true` if an agent created it.
    pub agent_owned: bool,
    /// Keys that clients wrote (`docs/reference/canvases.md#writable-metadata-keys`).
    pub metadata: Stored<WritableMetadata>,
    /// Keys that the service owns; and `content` when the service wrote it, which does not count against the limit of
    /// client-written metadata.
    pub server: Stored<ServerMetadata>,
    /// The asset that it shows.
    pub asset: Option<AssetHandle>,
    /// The unfinished job that writes to it.
    pub active_job: Option<Uuid>,
}

impl Node {
    /// Returns `true` if it is a Section: a titled frame for other nodes.
    pub fn is_section(&self) -> bool {
        self.kind == NodeType::Sticky
            && self.metadata.part("section", |metadata| metadata.section.as_ref()) == Some(&true)
    }

    /// Its text. Text that the service wrote is used until a client writes its own.
    pub fn content(&self) -> Option<&str> {
        self.written_content().or_else(|| self.metadata.part("content", |metadata| metadata.content.as_deref()))
    }

    /// Text that the service wrote.
    pub fn written_content(&self) -> Option<&str> {
        self.server.part("content", |server| server.content.as_deref())
    }

    /// The work that fills it or filled it last.
    pub fn job(&self) -> Option<&NodeJob> {
        self.server.part("job", |server| server.job.as_ref())
    }

    /// Where its content comes from.
    pub fn provenance(&self) -> Option<&Provenance> {
        self.server.part("provenance", |server| server.provenance.as_deref())
    }

    /// Its part in a Recipe.
    pub fn recipe(&self) -> Option<&NodeRecipe> {
        self.server.part("recipe", |server| server.recipe.as_deref())
    }

    /// Returns `true` if it is to stay empty for now.
    pub fn is_placeholder(&self) -> bool {
        self.metadata.part("placeholder", |metadata| metadata.placeholder.as_ref()) == Some(&true)
    }

    /// Handle of the work that writes to it, as in `metadata.job`: a job, or a Recipe run while none of its jobs writes
    /// to this node.
    pub fn awaited(&self) -> Option<&str> {
        self.active_job?;
        let job = self.job()?;
        Some(job.id.as_ref().map_or(job.run.as_str(), JobHandle::as_str))
    }

    /// Returns `true` if a job or Recipe made what it shows.
    pub fn is_made(&self) -> bool {
        self.provenance().is_some_and(Provenance::is_made)
    }

    /// Shows another asset, and is no placeholder any more. The previous one moves to the history, with the run that replaced it.
    pub fn replace_asset(&mut self, asset: AssetHandle, at: Timestamp, run: Option<RunHandle>) {
        if self.is_placeholder() {
            self.metadata.placeholder = None;
        }
        if let Some(earlier) = self.asset.replace(asset) {
            let history = &mut self.server.history;
            history.insert(0, HistoryEntry { others: Map::new(), asset: earlier, at, run });
            history.truncate(HISTORY_MAX);
        }
    }

    /// Duration in seconds of the video that it shows, or that a client wants.
    pub fn duration_seconds(&self) -> Option<f64> {
        let shown = self.provenance().and_then(|provenance| provenance.duration_seconds);
        let wanted = || self.metadata.part("durationSeconds", |metadata| metadata.duration_seconds.as_ref());
        shown.or_else(|| wanted().map(|seconds| *seconds as f64))
    }

    /// The sources of its image, as its provenance lists them.
    pub fn sources(&self) -> impl Iterator<Item = Source> {
        let references = self.provenance().into_iter().flat_map(|provenance| &provenance.references);
        references.filter_map(|ReferenceInput { handle, role }| {
            let named = match handle.strip_prefix("node:") {
                Some(_) => Named::Node(NodeId::parse(handle).ok()?),
                None => Named::Asset(AssetHandle::try_from(handle.to_owned()).ok()?),
            };
            Some(Source { named, role: *role })
        })
    }

    /// The asset that it shows and the assets in its provenance.
    pub fn named_assets(&self) -> impl Iterator<Item = AssetHandle> {
        let sources = self.sources().filter_map(|source| match source.named {
            Named::Asset(asset) => Some(asset),
            Named::Node(_) => None,
        });
        self.asset.clone().into_iter().chain(sources)
    }

    /// Plain id of its Section, as stored.
    pub fn section_id(&self) -> Option<&str> {
        self.metadata.part("sectionId", |metadata| metadata.section_id.as_ref()).map(NodeId::as_str)
    }
}

/// A source of an output.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// The image.
    pub named: Named,
    /// Its role as a reference.
    pub role: Option<Role>,
}

/// An image as requests and provenance name it. Displays as the full handle.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Named {
    /// The image that a node of the canvas shows.
    Node(NodeId),
    Asset(AssetHandle),
}

impl Named {
    /// Parses a node or asset handle. An asset handle without an owner names an asset of `caller`. A plain id is
    /// rejected, because it could name a node or an asset.
    pub fn parse(text: &str, caller: &AccountUid) -> Option<Self> {
        match text.split_once(':')?.0 {
            "node" => NodeId::parse(text).ok().map(Self::Node),
            "asset" => AssetRef::parse(text).ok().map(|asset| Self::Asset(asset.resolve(caller))),
            _ => None,
        }
    }

    /// The node, if it names one.
    pub fn node(&self) -> Option<&NodeId> {
        match self {
            Self::Node(node) => Some(node),
            Self::Asset(_) => None,
        }
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(node) => f.write_str(&node.handle()),
            Self::Asset(asset) => asset.fmt(f),
        }
    }
}

/// A connection as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Connection {
    /// Unique in its canvas.
    pub id: ConnectionId,
    /// Its short name, as that of a node.
    pub short: Option<ConnectionRef>,
    /// The source node.
    pub from: NodeId,
    /// The target node.
    pub to: NodeId,
    /// Purpose of the connection.
    pub purpose: Purpose,
    /// Role of the reference; only with purpose `reference`.
    pub role: Option<Role>,
}

/// A deleted node that can be restored, as it was in the last revision that had it.
#[derive(Clone, Debug, PartialEq)]
pub struct DeletedNode {
    /// The node.
    pub node: Node,
    /// The nodes that belonged to it, if it was a Section.
    pub members: Vec<NodeId>,
    /// Number of nodes of the canvas that precede it in the order of creation.
    pub preceding: usize,
}

/// A deleted connection that can be restored, as it was in the last revision that had it.
#[derive(Clone, Debug, PartialEq)]
pub struct DeletedConnection {
    /// The connection.
    pub connection: Connection,
    /// Number of connections of the canvas that precede it in the order of creation.
    pub preceding: usize,
}

/// Rows of a canvas's graph to write and delete. No row is named twice: something that a batch creates and deletes is in no list,
/// and something that it deletes and restores is a change. Other rows are not changed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GraphWrites<'a> {
    /// Nodes to insert or update; new ones in the order of creation.
    pub nodes: Vec<&'a Node>,
    pub deleted_nodes: Vec<&'a NodeId>,
    /// Connections to insert or update; new ones in the order of creation.
    pub connections: Vec<&'a Connection>,
    pub deleted_connections: Vec<&'a ConnectionId>,
    /// Those of the nodes to insert that were deleted before.
    pub restored_nodes: Vec<&'a NodeId>,
    /// Those of the connections to insert that were deleted before.
    pub restored_connections: Vec<&'a ConnectionId>,
    /// Members of the Sections among the deleted nodes: Section and member.
    pub freed: Vec<(&'a NodeId, &'a NodeId)>,
}

impl<'a> GraphWrites<'a> {
    /// Adds nodes to write, in place of an earlier state of them.
    pub fn put_nodes(&mut self, nodes: &'a [Node]) {
        for node in nodes {
            match self.nodes.iter_mut().find(|earlier| earlier.id == node.id) {
                Some(earlier) => *earlier = node,
                None => self.nodes.push(node),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_named_by_a_handle_and_never_by_a_plain_id() {
        let caller = AccountUid::from_stored("me".into());
        for (text, full) in [("node:n", "node:n"), ("asset:a", "asset:me:a"), ("asset:you:a", "asset:you:a")] {
            assert_eq!(Named::parse(text, &caller).map(|named| named.to_string()).as_deref(), Some(full));
        }
        for wrong in ["", "n", "node:", "node:a b", "asset:", "asset::a", "asset:a:b:c", "canvas:c", "element:e@v1"] {
            assert_eq!(Named::parse(wrong, &caller), None, "{wrong:?}");
        }
    }
}
