//! Nodes and connections as the service holds them; `canvas` has the forms that are served.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::id::{AccountUid, AssetHandle, AssetRef, ConnectionId, NodeId};
use crate::object::Object;

macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
        )]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $text)] $variant,)+ }

        impl $name {
            /// Every value, in the order of the contract.
            pub const ALL: &[$name] = &[$($name::$variant),+];

            /// The name in the contract.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text),+ }
            }
        }

        // By hand: the derive does not see the names through the macro.
        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                utoipa::openapi::schema::ObjectBuilder::new()
                    .schema_type(utoipa::openapi::schema::Type::String)
                    .enum_values(Some([$($text),+]))
                    .into()
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

named! {
    /// What a node is (specification, Node).
    NodeType {
        /// A picture, or an empty slot for one.
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
    /// Width and height on creation, in canvas units (decisions 3.2).
    pub const fn default_size(self) -> (f64, f64) {
        match self {
            NodeType::Image => (320.0, 320.0),
            NodeType::Video => (480.0, 270.0),
            NodeType::Text => (320.0, 160.0),
            NodeType::Sticky => (240.0, 240.0),
        }
    }

    /// Whether `metadata.content` may be written (specification, Node rule 1).
    pub const fn holds_text(self) -> bool {
        matches!(self, NodeType::Text | NodeType::Sticky)
    }
}

named! {
    /// What a connection is for (specification, Connection).
    Purpose {
        /// A plain dependency or transformation.
        Flow = "flow",
        /// An image reference guiding another node.
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
    /// Whether it joins an image to a video, which has at most one of each kind (specification, Connection).
    pub const fn is_frame(self) -> bool {
        matches!(self, Purpose::FirstFrame | Purpose::LastFrame)
    }
}

named! {
    /// What a reference image is for.
    Role {
        /// Who or what it shows.
        Identity = "identity",
        /// How it is built.
        Construction = "construction",
        /// What it is made of.
        Texture = "texture",
        /// How it sits.
        Fit = "fit",
        /// How it looks.
        Style = "style",
    }
}

impl Role {
    /// Whether the picture stands for a product that outputs must match (decisions 5.4).
    pub const fn is_product(self) -> bool {
        matches!(self, Role::Identity | Role::Construction | Role::Texture | Role::Fit)
    }
}

/// A point on the canvas, in canvas units.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Position {
    /// Rightwards.
    #[schema(minimum = -10_000_000, maximum = 10_000_000)]
    pub x: f64,
    /// Downwards.
    #[schema(minimum = -10_000_000, maximum = 10_000_000)]
    pub y: f64,
}

/// A node.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Unique in its canvas.
    pub id: NodeId,
    /// What it is.
    pub kind: NodeType,
    /// At most 160 characters.
    pub title: String,
    /// Its top left corner.
    pub position: Position,
    /// 1 to 100000 canvas units.
    pub width: f64,
    /// 1 to 100000 canvas units.
    pub height: f64,
    /// Whether an agent made it (decisions 3.3).
    pub agent_owned: bool,
    /// What clients wrote: the writable keys of decisions 3.5.
    pub metadata: Object,
    /// What the service owns: `provenance`, `job`, `history`, `upload`, `source`, `recipe`; and `content` where the
    /// service wrote it, which is outside the cap on what clients write (decisions 3.5).
    pub server: Object,
    /// The asset that it shows.
    pub asset: Option<AssetHandle>,
    /// The unfinished job that will fill it.
    pub active_job: Option<Uuid>,
}

impl Node {
    /// Whether it is a titled frame for other nodes (decisions 3.4).
    pub fn is_section(&self) -> bool {
        self.kind == NodeType::Sticky && self.metadata.get("section") == Some(&Value::Bool(true))
    }

    /// Its text, whoever wrote it: the service's stands until a client writes its own.
    pub fn content(&self) -> Option<&str> {
        self.server.get("content").or_else(|| self.metadata.get("content")).and_then(Value::as_str)
    }

    /// The handle of what will fill it, as `metadata.job` has it: a job's, or a Recipe run's while none of its jobs is at this node.
    pub fn awaited(&self) -> Option<&str> {
        self.active_job?;
        let note = self.server.get("job")?;
        note.get("id").or_else(|| note.get("run"))?.as_str()
    }

    /// What it was made from, as its provenance says (decisions 3.5).
    pub fn sources(&self) -> impl Iterator<Item = Source> {
        let references = self.server.get("provenance").and_then(|provenance| provenance.get("references"));
        references.and_then(Value::as_array).into_iter().flatten().filter_map(|reference| {
            let handle = reference.get("handle")?.as_str()?;
            let role = reference.get("role").and_then(Value::as_str).and_then(|role| role.parse().ok());
            let named = match handle.strip_prefix("node:") {
                Some(_) => Named::Node(NodeId::parse(handle).ok()?),
                None => Named::Asset(AssetHandle::try_from(handle.to_owned()).ok()?),
            };
            Some(Source { named, role })
        })
    }

    /// The assets that it shows or was made from.
    pub fn named_assets(&self) -> impl Iterator<Item = AssetHandle> {
        let sources = self.sources().filter_map(|source| match source.named {
            Named::Asset(asset) => Some(asset),
            Named::Node(_) => None,
        });
        self.asset.clone().into_iter().chain(sources)
    }

    /// The Section that it belongs to, as stored: a plain id.
    pub fn section_id(&self) -> Option<&str> {
        self.metadata.get("sectionId").and_then(Value::as_str)
    }
}

/// What an output was made from.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// What it was called.
    pub named: Named,
    /// What it was for.
    pub role: Option<Role>,
}

/// A picture as requests and provenance name it. Its text is the full handle.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Named {
    /// What a node of the canvas shows.
    Node(NodeId),
    /// An asset.
    Asset(AssetHandle),
}

impl Named {
    /// Takes a node or asset handle, `caller`'s when it names no owner; a plain id would not tell which of the two it is.
    pub fn parse(text: &str, caller: &AccountUid) -> Option<Self> {
        match text.split_once(':')?.0 {
            "node" => NodeId::parse(text).ok().map(Self::Node),
            "asset" => AssetRef::parse(text).ok().map(|asset| Self::Asset(asset.resolve(caller))),
            _ => None,
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

/// A connection from one node to another.
#[derive(Clone, Debug, PartialEq)]
pub struct Connection {
    /// Unique in its canvas.
    pub id: ConnectionId,
    /// Where it starts.
    pub from: NodeId,
    /// Where it ends.
    pub to: NodeId,
    /// What it is for.
    pub purpose: Purpose,
    /// Only on references.
    pub role: Option<Role>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_named_by_a_handle_and_never_by_a_plain_id() {
        let caller = AccountUid::from_stored("me".into());
        for (text, full) in [("node:n", "node:n"), ("asset:a", "asset:me:a"), ("asset:you:a", "asset:you:a")] {
            assert_eq!(Named::parse(text, &caller).map(|named| named.to_string()).as_deref(), Some(full));
        }
        for wrong in ["", "n", "node:", "node:a b", "asset:", "asset::a", "asset:a:b:c", "canvas:c", "element:e@v1"] {
            assert_eq!(Named::parse(wrong, &caller), None, "{wrong:?}");
        }
    }
}
