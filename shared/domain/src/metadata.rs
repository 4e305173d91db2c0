//! Metadata of nodes: what clients write ([`WritableMetadata`]) and what the service writes ([`ServerMetadata`]).
//! Rules: `docs/reference/canvases.md#writable-metadata-keys`.
//!
//! Members stand in the order of their keys, in which every release has written them, so that an equal document is an equal text.
//! Members that other releases write are kept.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};
use utoipa::ToSchema;

use crate::Timestamp;
use crate::action::{ActionHandle, ActionVersion};
use crate::graph::named;
use crate::id::{AssetHandle, ElementVersionHandle, ImageHandle, JobHandle, NodeId, RecipeHandle, RunHandle};
use crate::import::Variant;
use crate::job::{JobStatus, ReferenceInput, WorkOperation};
use crate::model::{ProviderKind, is_stand_in};
use crate::stored::Document;

named! {
    /// Alignment of a text.
    TextAlign {
        /// At the left edge.
        Left = "left",
        /// In the middle.
        Center = "center",
        /// At the right edge.
        Right = "right",
    }
}

/// Metadata that clients write. At most 64 KiB serialized.
///
/// In a request, `null` removes a key. A stored `sectionId` is a plain id.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(description = "Metadata that clients write. At most 64 KiB serialized.")]
pub struct WritableMetadata {
    #[serde(flatten)]
    #[schema(ignore)]
    pub others: Map<String, Value>,
    /// What the picture shows, for those who cannot see it. Empty if it is decorative. Only on `image` and `video` nodes.
    #[schema(max_length = 1000)]
    pub alt_text: Option<String>,
    /// Aspect ratio of results.
    #[schema(max_length = 80)]
    pub aspect_ratio: Option<String>,
    /// Kept for clients. A render draws the node collapsed.
    pub collapsed: Option<bool>,
    /// Color of the node, `#rrggbb`.
    #[schema(pattern = "^#[0-9A-Fa-f]{6}$")]
    pub color: Option<String>,
    /// Text of the node. Only on `text` and `sticky` nodes.
    #[schema(max_length = 24_000)]
    pub content: Option<String>,
    /// Number of results.
    #[schema(minimum = 1, maximum = 4)]
    pub count: Option<i64>,
    /// The client's own data. Replaced as a whole.
    #[schema(value_type = Option<Object>)]
    pub custom: Option<Box<RawValue>>,
    /// Length of a video.
    #[schema(minimum = 1, maximum = 120)]
    pub duration_seconds: Option<i64>,
    /// Size of the text, or of a Section's title, in canvas units.
    #[schema(value_type = Option<f64>, minimum = 1, maximum = 1000)]
    pub font_size: Option<Number>,
    /// Kept for clients; not enforced.
    pub locked: Option<bool>,
    /// Model.
    #[schema(max_length = 650)]
    pub model: Option<String>,
    /// Things that results must not show.
    #[schema(max_length = 8000)]
    pub negative_prompt: Option<String>,
    /// `true` if the node is to stay empty for now. Only on `image` and `video` nodes; a result that fills the node removes it.
    pub placeholder: Option<bool>,
    /// Prompt.
    #[schema(max_length = 8000)]
    pub prompt: Option<String>,
    /// Quality of results.
    #[schema(max_length = 80)]
    pub quality: Option<String>,
    /// `true` if the node is a Section, a titled frame for other nodes. Only on `sticky` nodes.
    pub section: Option<bool>,
    /// Section that the node belongs to: id, handle or `clientId`. Not on a Section.
    #[schema(value_type = Option<String>, pattern = "^(node:)?[A-Za-z0-9_-]{1,180}$")]
    pub section_id: Option<NodeId>,
    /// Size of results.
    #[schema(max_length = 80)]
    pub size: Option<String>,
    /// Labels of at most 80 characters.
    #[schema(max_items = 24)]
    pub tags: Option<Vec<String>>,
    /// Alignment of the text.
    pub text_align: Option<TextAlign>,
    /// Order of drawing: a higher node covers a lower one.
    #[schema(value_type = Option<i64>, minimum = -9_007_199_254_740_991_i64, maximum = 9_007_199_254_740_991_i64)]
    pub z_index: Option<Number>,
}

impl Document for WritableMetadata {
    fn others(&self) -> &Map<String, Value> {
        &self.others
    }

    fn others_mut(&mut self) -> &mut Map<String, Value> {
        &mut self.others
    }
}

/// The metadata of a node that the service writes.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ServerMetadata {
    #[serde(flatten)]
    #[schema(ignore)]
    pub others: Map<String, Value>,
    /// Text that the service wrote. It is shown until a client writes its own.
    pub content: Option<String>,
    /// Assets that the node showed before, newest first. Written by the service.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 50)]
    pub history: Vec<HistoryEntry>,
    /// The work that fills the node or filled it last. Written by the service.
    pub job: Option<NodeJob>,
    /// Where the content comes from. Written by the service.
    pub provenance: Option<Box<Provenance>>,
    /// The node's part in a Recipe. Written by the service.
    pub recipe: Option<Box<NodeRecipe>>,
    /// Where an import found the images. Written by the service.
    pub source: Option<Box<NodeSource>>,
}

impl Document for ServerMetadata {
    fn others(&self) -> &Map<String, Value> {
        &self.others
    }

    fn others_mut(&mut self) -> &mut Map<String, Value> {
        &mut self.others
    }
}

named! {
    /// Kind of origin of a node's content.
    ProvenanceKind {
        /// A model made it.
        Generated = "generated",
        /// An Action made it.
        Action = "action",
        /// An import brought it.
        Import = "import",
        /// A client uploaded it.
        Upload = "upload",
        /// A step of a Recipe run made it.
        Recipe = "recipe",
    }
}

/// One of several Actions in a row.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProvenanceStep {
    /// The Action.
    #[schema(value_type = ActionHandle)]
    pub action_id: String,
    /// Version of the Action.
    #[schema(value_type = ActionVersion)]
    pub action_version: String,
    /// Parameters of the Action, with its defaults.
    #[schema(value_type = Object)]
    pub params: Map<String, Value>,
    /// Second image of the Action.
    #[schema(value_type = Option<ImageHandle>)]
    pub with: Option<String>,
}

/// How the content of a node came to be.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Provenance {
    #[serde(flatten)]
    #[schema(ignore)]
    pub others: Map<String, Value>,
    /// The Action.
    #[schema(value_type = ActionHandle)]
    pub action_id: Option<String>,
    /// Version of the Action.
    #[schema(value_type = ActionVersion)]
    pub action_version: Option<String>,
    /// When the content was made.
    #[schema(nullable = false, required)]
    pub created_at: Option<Timestamp>,
    /// Versions of Elements that the work used.
    #[serde(default)]
    #[schema(value_type = Vec<ElementVersionHandle>, required)]
    pub elements: Vec<String>,
    /// Duration of a video in seconds.
    pub duration_seconds: Option<f64>,
    /// Kind of origin.
    pub kind: ProvenanceKind,
    /// Mask of the edit: a node or asset handle.
    #[schema(value_type = ImageHandle)]
    pub mask: Option<String>,
    /// `true` if the mask could not be applied to what the model made.
    pub mask_not_applied: Option<bool>,
    /// The provider's id of the model.
    pub model: Option<String>,
    /// Operation of the run.
    pub operation: Option<WorkOperation>,
    /// Parameters of the Action, with its defaults.
    #[schema(value_type = Object)]
    pub params: Option<Map<String, Value>>,
    /// Prompt as it was sent. User-authored.
    pub prompt: Option<String>,
    /// Provider of the model.
    pub provider: Option<ProviderKind>,
    /// Quality that was requested.
    pub quality: Option<String>,
    /// Images that the work read.
    #[serde(default)]
    #[schema(required)]
    pub references: Vec<ReferenceInput>,
    /// Handle of the run.
    pub run: Option<RunHandle>,
    /// Size that was requested.
    pub size: Option<String>,
    /// URL that an import fetched the image from.
    #[schema(format = Uri)]
    pub source_url: Option<String>,
    /// All of several Actions in a row. `actionId`, `actionVersion` and `params` are those of the last.
    pub steps: Option<Vec<ProvenanceStep>>,
    /// `true` if the embedded runtime made the content: it stands in for that of a model.
    pub stand_in: Option<bool>,
}

impl Provenance {
    /// One that says the kind alone.
    pub fn new(kind: ProvenanceKind) -> Self {
        Self {
            others: Map::new(),
            action_id: None,
            action_version: None,
            created_at: None,
            duration_seconds: None,
            elements: Vec::new(),
            kind,
            mask: None,
            mask_not_applied: None,
            model: None,
            operation: None,
            params: None,
            prompt: None,
            provider: None,
            quality: None,
            references: Vec::new(),
            run: None,
            size: None,
            source_url: None,
            steps: None,
            stand_in: None,
        }
    }

    /// Returns `true` if a job or Recipe made the content.
    pub fn is_made(&self) -> bool {
        matches!(self.kind, ProvenanceKind::Generated | ProvenanceKind::Action | ProvenanceKind::Recipe)
    }

    /// Returns `true` if the embedded runtime made the content. The mark counts for good; what was made before there was one has none.
    pub fn is_stand_in(&self) -> bool {
        let of_model = |(provider, model)| is_stand_in(provider, model);
        self.stand_in == Some(true) || self.provider.zip(self.model.as_deref()).is_some_and(of_model)
    }
}

/// The work that fills a node. It changes only when that work starts and ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NodeJob {
    #[serde(flatten)]
    #[schema(ignore)]
    pub others: Map<String, Value>,
    /// Width and height of the node at the start, of a start with `fit` that is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<f64>>, min_items = 2, max_items = 2)]
    pub fit: Option<(f64, f64)>,
    /// Handle of the job; absent while no job of a Recipe run writes to the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<JobHandle>,
    /// Operation of the work.
    pub operation: WorkOperation,
    /// Handle of the run.
    pub run: RunHandle,
    /// Status of the work.
    pub status: JobStatus,
}

/// An asset that a node showed before.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HistoryEntry {
    #[serde(flatten)]
    #[schema(ignore)]
    pub others: Map<String, Value>,
    /// The replaced asset.
    pub asset: AssetHandle,
    /// When it was replaced.
    pub at: Timestamp,
    /// The run that replaced it; absent if a batch of operations did.
    pub run: Option<RunHandle>,
}

/// Where an import found an image, or the images of a Section.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeSource {
    #[serde(flatten)]
    #[schema(ignore)]
    pub others: Map<String, Value>,
    /// URL of the image. On image nodes.
    #[schema(format = Uri)]
    pub image_url: Option<String>,
    /// URL of the product page as requested.
    #[schema(format = Uri)]
    pub page_url: Option<String>,
    /// URL of the page after redirects. On the Section.
    #[schema(format = Uri)]
    pub resolved_url: Option<String>,
    /// The variant that the images show. On the Section.
    pub variant: Option<Variant>,
}

named! {
    /// Part of a node in a Recipe.
    RecipeRole {
        /// It stands for the Recipe on its canvas.
        Instance = "instance",
        /// A port for an input.
        Input = "input",
        /// The node of an output.
        Output = "output",
    }
}

/// The node that stands for a Recipe on its canvas (`instance`), a port for an input, or the node of an output.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NodeRecipe {
    #[serde(flatten)]
    #[schema(ignore)]
    pub others: Map<String, Value>,
    /// Ports of the inputs. With role `instance`.
    pub inputs: Option<Vec<InstancePort>>,
    /// Plain id of the instance's node. With roles `input` and `output`.
    pub instance: Option<NodeId>,
    /// Key of the port. With roles `input` and `output`.
    pub key: Option<String>,
    /// Name of the Recipe. With role `instance`.
    pub name: Option<String>,
    /// Nodes of the outputs. With role `instance`.
    pub outputs: Option<Vec<InstancePort>>,
    /// The Recipe. With role `instance`.
    pub recipe: Option<RecipeHandle>,
    /// Part of the node.
    pub role: RecipeRole,
    /// Version of the Recipe. With role `instance`.
    pub version: Option<String>,
}

impl NodeRecipe {
    /// One that says the part alone.
    pub fn new(role: RecipeRole) -> Self {
        Self {
            others: Map::new(),
            inputs: None,
            instance: None,
            key: None,
            name: None,
            outputs: None,
            recipe: None,
            role,
            version: None,
        }
    }
}

/// A port of a Recipe's instance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstancePort {
    /// Key of the port.
    pub key: String,
    /// Plain id of the port's node.
    pub node_id: NodeId,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stored::Stored;

    /// The text of a document after it was changed and changed back.
    fn rewritten<T: Document>(text: &str) -> String {
        let mut document = Stored::<T>::from_stored(text.to_owned()).expect("an object");
        assert!(document.others_mut().is_empty());
        document.text().into_owned()
    }

    #[test]
    fn a_document_is_written_as_the_releases_before_wrote_it() {
        for text in [
            r#"{"content":"c","history":[{"asset":"asset:me:a","at":"2026-01-02T03:04:05.678Z","run":"run:1"}],"job":{"id":"job:1","operation":"action","run":"run:1","status":"succeeded"},"provenance":{"actionId":"action:resize","actionVersion":"1.0.0","createdAt":"2026-01-02T03:04:05.678Z","elements":["element:e@v1"],"kind":"action","model":"m","operation":"action","params":{"fit":"inside","width":1.5},"prompt":"p","provider":"openai","quality":"high","references":[{"handle":"node:n","role":"style"}],"run":"run:1","size":"1x1","sourceUrl":"https://a.example/b","standIn":true},"recipe":{"inputs":[{"key":"k","nodeId":"n"}],"instance":"i","key":"k","name":"n","outputs":[],"recipe":"recipe:r","role":"instance","version":"1.0.0"},"source":{"imageUrl":"https://a.example/b","pageUrl":"https://a.example","resolvedUrl":"https://a.example","variant":{"evidence":"selected","selector":"a=b"}}}"#,
            r#"{"job":{"fit":[320.0,180.5],"operation":"recipe","run":"run:recipe-1","status":"queued"}}"#,
            r#"{"job":{"operation":"recipe","run":"run:recipe-1","status":"queued"}}"#,
            "{}",
        ] {
            let text = text.replace(r#""selected""#, &serde_json::json!(crate::import::Evidence::ALL[0]).to_string());
            assert_eq!(rewritten::<ServerMetadata>(&text), text);
        }
        let text = r##"{"altText":"a","aspectRatio":"1:1","collapsed":true,"color":"#00ffAA","content":"c","count":1,"custom":{"b":[1e300,null],"c":{"a":"ü"}},"durationSeconds":2,"fontSize":12.5,"locked":false,"model":"m","negativePrompt":"n","placeholder":true,"prompt":"p","quality":"q","section":true,"sectionId":"s","size":"z","tags":["t"],"textAlign":"left","zIndex":-3}"##;
        assert_eq!(rewritten::<WritableMetadata>(text), text);
    }

    #[test]
    fn members_of_other_releases_are_kept_wherever_they_are() {
        let mut server = Stored::<ServerMetadata>::from_stored(
            r#"{"job":{"operation":"edit","run":"run:1","since":1,"status":"running"},"provenance":{"kind":"edited","seed":2}}"#
                .to_owned(),
        )
        .expect("an object");
        assert!(server.provenance.is_none(), "its kind is none that this release knows");
        server.job.as_mut().expect("is known").status = JobStatus::Failed;
        let kept: Value = serde_json::from_str(&server.text()).expect("JSON");
        assert_eq!((&kept["job"]["since"], &kept["job"]["status"]), (&1.into(), &"failed".into()));
        assert_eq!(kept["provenance"], serde_json::json!({"kind": "edited", "seed": 2}));
    }
}
