//! Where an asset comes from, and what became of it (`docs/reference/assets.md#lineage`).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::Timestamp;
use crate::action::{ActionHandle, ActionVersion};
use crate::asset::Asset;
use crate::canvas::Actor;
use crate::graph::{Role, named};
use crate::id::{AssetHandle, CanvasHandle, ElementVersionHandle, NodeHandle, RunHandle};
use crate::job::WorkOperation;
use crate::known::Name;
use crate::metadata::{Provenance, ProvenanceKind, ProvenanceStep};
use crate::model::ProviderKind;
use crate::refs::NodeRef;

named! {
    /// Role of an input of the work that made an asset.
    InputRole {
        /// A reference: who or what it shows.
        Identity = "identity",
        /// A reference: how it is built.
        Construction = "construction",
        /// A reference: the material that it is made of.
        Texture = "texture",
        /// A reference: how it sits.
        Fit = "fit",
        /// A reference: how it looks.
        Style = "style",
        /// The mask of an edit.
        Mask = "mask",
        /// The first frame of a video.
        FirstFrame = "first-frame",
        /// The last frame of a video.
        LastFrame = "last-frame",
    }
}

impl From<Role> for InputRole {
    fn from(role: Role) -> Self {
        match role {
            Role::Identity => Self::Identity,
            Role::Construction => Self::Construction,
            Role::Texture => Self::Texture,
            Role::Fit => Self::Fit,
            Role::Style => Self::Style,
        }
    }
}

/// An asset that work read, as it was when the work was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parent {
    pub asset: AssetHandle,
    /// `None`: the source of an edit, the input of an Action, or a reference without a role.
    pub role: Option<InputRole>,
}

/// How an asset came to be. It is stored with the asset and outlives jobs and nodes.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Made {
    /// Kind of origin.
    pub kind: ProvenanceKind,
    /// Handle of the run. Its record expires.
    pub run: Option<RunHandle>,
    /// Operation of the run.
    pub operation: Option<WorkOperation>,
    /// Provider of the model.
    pub provider: Option<ProviderKind>,
    /// The provider's id of the model.
    pub model: Option<String>,
    /// Prompt as it was sent. User-authored.
    pub prompt: Option<String>,
    /// Size that was requested.
    pub size: Option<String>,
    /// Quality that was requested.
    pub quality: Option<String>,
    /// The Action.
    #[schema(value_type = Option<ActionHandle>)]
    pub action_id: Option<String>,
    /// Version of the Action.
    #[schema(value_type = Option<ActionVersion>)]
    pub action_version: Option<String>,
    /// Parameters of the Action, with its defaults.
    #[schema(value_type = Option<Object>)]
    pub params: Option<Map<String, Value>>,
    /// All of several Actions in a row.
    pub steps: Option<Vec<ProvenanceStep>>,
    /// Versions of Elements that the work used.
    #[serde(default)]
    #[schema(value_type = Vec<ElementVersionHandle>, required)]
    pub elements: Vec<String>,
    /// URL that an import fetched the image from.
    #[schema(format = Uri)]
    pub source_url: Option<String>,
    /// Credits that it cost.
    #[schema(minimum = 0)]
    pub credit_cost: i64,
    /// Who uploaded it, or started the work.
    pub by: Option<Actor>,
    /// When it was stored.
    #[schema(nullable = false, required)]
    pub at: Option<Timestamp>,
}

impl Made {
    /// That of an upload.
    pub fn uploaded(by: &Actor) -> Self {
        Self::new(&Provenance::new(ProvenanceKind::Upload), by, 0)
    }

    /// That of an asset with this provenance. The time is that of the asset, which is stored with it.
    pub fn new(provenance: &Provenance, by: &Actor, credit_cost: i64) -> Self {
        let it = provenance.clone();
        Self {
            kind: it.kind,
            run: it.run,
            operation: it.operation,
            provider: it.provider,
            model: it.model,
            prompt: it.prompt,
            size: it.size,
            quality: it.quality,
            action_id: it.action_id,
            action_version: it.action_version,
            params: it.params,
            steps: it.steps,
            elements: it.elements,
            source_url: it.source_url,
            credit_cost,
            by: Some(by.clone()),
            at: None,
        }
    }
}

/// An input of the work that made an asset: the asset that it meant when the work was accepted.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AssetInput {
    /// Handle of the input.
    pub handle: AssetHandle,
    /// Role of the input.
    #[schema(value_type = Option<InputRole>)]
    pub role: Option<Name<InputRole>>,
    /// File name, unless it is gone. User-authored.
    pub name: Option<String>,
    /// `true` if it was deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub gone: bool,
}

/// A node that shows an asset.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AssetPlace {
    /// Handle of the canvas.
    pub canvas: CanvasHandle,
    /// Handle of the node.
    #[schema(value_type = NodeHandle)]
    pub node: String,
    /// Short name of the node.
    #[serde(rename = "ref")]
    pub short: Option<NodeRef>,
    /// Title of the node. User-authored.
    pub title: String,
}

/// Numbers of what the caller cannot read.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HiddenOrigins {
    /// Nodes that show the asset. Present with `usedIn`.
    #[schema(minimum = 0)]
    pub used_in: Option<i64>,
    /// Inputs. Present with `inputs`.
    #[schema(minimum = 0)]
    pub inputs: Option<i64>,
}

named! {
    /// What a read of an asset returns besides it.
    AssetInclude {
        /// The nodes that show it.
        UsedIn = "usedIn",
        /// The inputs of the work that made it.
        Inputs = "inputs",
        /// Both.
        #[serde(alias = "inputs,usedIn")]
        UsedInAndInputs = "usedIn,inputs",
    }
}

named! {
    /// Directions of a lineage that are followed.
    LineageDirections {
        /// Both.
        Both = "both",
        /// What the asset was made of.
        Parents = "parents",
        /// What was made of the asset.
        Children = "children",
    }
}

impl LineageDirections {
    /// Each of them.
    pub fn followed(self) -> &'static [LineageDirection] {
        match self {
            Self::Both => LineageDirection::ALL,
            Self::Parents => &[LineageDirection::Parents],
            Self::Children => &[LineageDirection::Children],
        }
    }
}

named! {
    /// Direction in a lineage, seen from its asset.
    LineageDirection {
        /// What it was made from.
        Parents = "parents",
        /// What was made from it.
        Children = "children",
    }
}

/// A relative of an asset. One that the caller cannot read has `hidden`, `depth` and `direction` alone; one of the caller that was
/// deleted has `gone` and its handle besides. Neither is followed further.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LineageItem {
    /// Handle of the asset.
    pub handle: Option<AssetHandle>,
    /// Number of works between it and the asset.
    #[schema(minimum = 1, maximum = 20)]
    pub depth: u32,
    /// Where it stands.
    #[schema(value_type = LineageDirection)]
    pub direction: Name<LineageDirection>,
    /// How it came to be, if that is recorded.
    pub made: Option<Made>,
    /// The nodes that show it and that the caller can read, newest first.
    #[schema(max_items = 20)]
    pub shown_in: Option<Vec<AssetPlace>>,
    /// `true` if the caller cannot read it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub hidden: bool,
    /// `true` if it was deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub gone: bool,
}

/// An asset that was made from another one.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LineageEdge {
    /// What was made.
    pub child: AssetHandle,
    /// What it was made from.
    pub parent: AssetHandle,
    /// Role of the parent.
    #[schema(value_type = Option<InputRole>)]
    pub role: Option<Name<InputRole>>,
}

/// Credits of a lineage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LineageCost {
    /// Of the asset.
    #[schema(minimum = 0)]
    pub own: i64,
    /// Of the asset and all items that the caller can read.
    #[schema(minimum = 0)]
    pub total: i64,
}

/// What an asset was made from, and what was made from it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AssetLineage {
    /// The asset.
    pub asset: Asset,
    /// How it came to be, if that is recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub made: Option<Made>,
    /// Its relatives, each once: by depth, parents before children.
    #[schema(max_items = 500)]
    pub items: Vec<LineageItem>,
    /// Which of the named assets were made from which.
    pub edges: Vec<LineageEdge>,
    /// Credits.
    pub cost: LineageCost,
    /// `true` if there are more items within the depth than the limit.
    pub truncated: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_role_of_an_input_that_is_a_reference_is_that_of_the_reference() {
        for role in Role::ALL {
            assert_eq!(InputRole::from(*role).as_str(), role.as_str());
        }
    }
}
