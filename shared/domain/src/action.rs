//! Image Actions as the service describes them. The crate `actions` defines each of them.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;
use utoipa::{PartialSchema, ToSchema};

use crate::graph::{enumeration, named};
use crate::known;
use crate::page::{CatalogEntry, Page};

// The list of Actions, in the order in which lists serve them.
named! {
    /// Slug of an Action.
    ActionSlug {
        /// Scales an image.
        Resize = "resize",
        /// Cuts a rectangle out of an image.
        Crop = "crop",
        /// Brings an image into a ratio.
        ChangeAspectRatio = "change-aspect-ratio",
        /// Puts two images beside or above each other.
        SideBySideComposite = "side-by-side-composite",
        /// Writes text onto an image.
        AddTextToImage = "add-text-to-image",
        /// Lays an image over another one.
        OverlayImage = "overlay-image",
        /// Changes the colors of an image.
        ColorGrade = "color-grade",
        /// Turns or mirrors an image.
        Rotate = "rotate",
        /// Makes an image of a frame of a video.
        VideoFrame = "video-frame",
    }
}

named! {
    /// What an Action reads.
    Medium {
        /// Images.
        Image = "image",
        /// A video.
        Video = "video",
    }
}

/// `action:<slug>`.
pub struct ActionHandle;

impl PartialSchema for ActionHandle {
    fn schema() -> RefOr<Schema> {
        let handles: Vec<_> = ActionSlug::ALL.iter().map(|slug| format!("action:{slug}")).collect();
        let values = handles.iter().zip(ActionSlug::DESCRIBED);
        let values: Vec<_> =
            values.map(|(handle, (variant, _, description))| (*variant, &**handle, *description)).collect();
        enumeration("`action:<slug>`.", &values)
    }
}

impl ToSchema for ActionHandle {}

// An Action gets the next version when it takes more parameters. Stored requests and provenance keep the one that made a result.
named! {
    /// Version of an Action.
    ActionVersion {
        /// The first one.
        First = "1.0.0",
        /// Takes more parameters, of which none is required.
        Second = "1.1.0",
    }
}

named! {
    /// Type of a parameter.
    ParameterType {
        /// A number.
        Number = "number",
        /// One of the options.
        Select = "select",
        /// Free text.
        Text = "text",
        /// `#rgb`, `#rrggbb` or `#rrggbbaa`.
        Color = "color",
    }
}

/// An image or a video that an Action reads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ActionInput {
    /// Name of the input.
    #[schema(pattern = "^[A-Za-z][A-Za-z0-9_-]{0,79}$")]
    pub id: Cow<'static, str>,
    /// Title for people.
    pub title: Cow<'static, str>,
    /// Description for people.
    pub description: Cow<'static, str>,
}

/// Result of an Action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ActionOutput {
    /// Title for people.
    pub title: Cow<'static, str>,
    /// Description for people.
    pub description: Cow<'static, str>,
}

/// An option of a parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ParameterOption {
    /// Value to send: a text or a number.
    #[schema(value_type = OptionValue)]
    pub value: Value,
    /// Label for people.
    pub label: Cow<'static, str>,
}

/// Value of an option.
#[derive(ToSchema)]
#[schema(as = OptionValue)]
#[serde(untagged)]
pub enum OptionValue {
    /// A text.
    Text(String),
    /// A number.
    Number(f64),
}

/// A parameter of an Action.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Parameter {
    /// Name of the parameter in `params`.
    #[schema(pattern = "^[A-Za-z][A-Za-z0-9_-]{0,79}$")]
    pub id: Cow<'static, str>,
    /// Title for people.
    pub title: Cow<'static, str>,
    /// Description for people.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub description: Cow<'static, str>,
    /// Type of the value.
    #[serde(rename = "type")]
    pub kind: ParameterType,
    /// `true` if the request must contain it.
    pub required: bool,
    /// `true` if a number must be whole.
    pub integer: Option<bool>,
    /// Least number.
    pub min: Option<f64>,
    /// Greatest number.
    pub max: Option<f64>,
    /// Suggested step of a control.
    pub step: Option<f64>,
    /// Longest text in characters.
    #[schema(minimum = 1)]
    pub max_length: Option<usize>,
    /// Options of a `select`; suggestions for a `text`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<ParameterOption>,
    /// Value that is used when the parameter is omitted.
    #[schema(value_type = Option<OptionValue>)]
    pub default: Option<Value>,
}

/// An Image Action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Action {
    /// Id of the Action.
    #[schema(value_type = ActionHandle)]
    pub id: String,
    /// Slug of the Action.
    #[schema(value_type = ActionSlug)]
    pub slug: Cow<'static, str>,
    /// Version of the Action.
    #[schema(value_type = ActionVersion)]
    pub version: Cow<'static, str>,
    /// Title for people.
    #[schema(min_length = 1)]
    pub title: Cow<'static, str>,
    /// Summary for people.
    #[schema(min_length = 1)]
    pub summary: Cow<'static, str>,
    /// Estimated seconds for images of twelve megapixels. Guidance.
    #[schema(minimum = 1)]
    pub estimated_seconds: i32,
    /// What the Action reads.
    pub medium: Medium,
    /// Images, or the video, that the Action reads, in order.
    #[schema(min_items = 1, max_items = 2)]
    pub inputs: Vec<ActionInput>,
    /// Result of the Action.
    pub output: ActionOutput,
    /// Parameters of the Action.
    #[serde(deserialize_with = "known::items")]
    pub parameters: Vec<Parameter>,
}

/// One Action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ActionRead {
    /// The Action with its parameter schema.
    pub action: Action,
}

/// A page of Actions, in a fixed order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ActionList {
    /// Actions with their full schemas.
    pub actions: Vec<Action>,
    /// Position in the list.
    pub page: Page,
}

/// A page of Actions in short.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ActionSummaries {
    /// Actions in short.
    pub actions: Vec<CatalogEntry>,
    /// Position in the list.
    pub page: Page,
}

/// A page of Actions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum ActionPage {
    /// Actions with their full schemas.
    Full(ActionList),
    /// Actions in short, with `view=summary`.
    Summary(ActionSummaries),
}
