//! Generation of images.

use domain::account::Scope;
use domain::graph::Role;
use domain::job::MaskMode;
use domain::model::Capability;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::call::Call;
use crate::canvas_name::CanvasName;
use crate::funds;
use crate::place::{Place, image};
use crate::schema::one_of;
use crate::tool::{Hints, Result, Tool};
use crate::work::{self, Wait, Work};

pub struct ImageGenerate;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Arguments {
    canvas: CanvasName,
    /// From your last read or write
    revision: String,
    mode: Mode,
    #[schemars(length(max = 8000))]
    prompt: Option<String>,
    /// Text node whose text is the prompt
    prompt_node: Option<String>,
    /// Images to work from, nodes or assets; edit and variations need one
    #[schemars(length(min = 1, max = 16))]
    references: Option<Vec<Reference>>,
    /// Image to edit
    source: Option<String>,
    /// White, or transparent, parts of source change
    mask: Option<Mask>,
    #[schemars(range(max = 64))]
    mask_feather: Option<u32>,
    /// element:<id>@v<n>
    #[schemars(length(max = 8))]
    elements: Option<Vec<String>>,
    model: Option<String>,
    size: Option<String>,
    quality: Option<String>,
    #[schemars(range(min = 1, max = 4))]
    count: Option<u32>,
    /// Empty image nodes; else new ones are made
    #[schemars(length(min = 1, max = 4))]
    targets: Option<Vec<String>>,
    place: Option<Place>,
    /// How many the user wants, if fewer are possible
    #[schemars(range(min = 1, max = 64))]
    asked: Option<u32>,
    /// Ended work made up for
    retry_of: Option<String>,
    #[schemars(range(min = 0))]
    max_credits: Option<i64>,
    wait: Option<Wait>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Mode {
    Generate,
    Edit,
    Variations,
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum Reference {
    Plain(String),
    WithRole(WithRole),
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WithRole {
    handle: String,
    #[schemars(schema_with = "roles")]
    role: Role,
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum Mask {
    Plain(String),
    Detailed(DetailedMask),
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DetailedMask {
    handle: String,
    #[schemars(schema_with = "modes")]
    mode: Option<MaskMode>,
    invert: Option<bool>,
}

impl Mask {
    fn form(&self) -> Value {
        match self {
            Mask::Plain(handle) => image(handle).into(),
            Mask::Detailed(DetailedMask { handle, mode, invert }) => {
                let mut form = json!({"handle": image(handle)});
                if let Some(mode) = mode {
                    form["mode"] = json!(mode);
                }
                if let Some(invert) = invert {
                    form["invert"] = json!(invert);
                }
                form
            }
        }
    }
}

fn modes(_: &mut SchemaGenerator) -> Schema {
    one_of(MaskMode::ALL.iter().map(|mode| mode.as_str()))
}

fn roles(_: &mut SchemaGenerator) -> Schema {
    one_of(Role::ALL.iter().map(|role| role.as_str()))
}

impl Reference {
    fn handle(&self) -> String {
        match self {
            Reference::Plain(handle) | Reference::WithRole(WithRole { handle, .. }) => image(handle),
        }
    }

    fn form(&self) -> Value {
        match self {
            Reference::Plain(_) => self.handle().into(),
            Reference::WithRole(WithRole { role, .. }) => json!({"handle": self.handle(), "role": role}),
        }
    }
}

impl Tool for ImageGenerate {
    const NAME: &'static str = "image_generate";
    const TITLE: &'static str = "Generate images";
    const ABOUT: &'static str = "Generate, edit or vary images. Spends credit: maxCredits refuses what is dearer. The same call with \
                                 the same revision is never charged twice.";
    const HINTS: Hints = Hints::REACH_OUT;
    const SCOPES: &'static [Scope] = &[Scope::ImageGenerate];
    type Arguments = Arguments;
    type Output = Work;

    async fn run(call: &Call, arguments: Arguments) -> Result<Answer<Work>> {
        let canvas = arguments.canvas.handle();
        let mut body = json!({"canvasId": canvas, "baseRevision": arguments.revision, "idempotencyKey": call.key()});
        let references = arguments.references.unwrap_or_default();
        if !references.is_empty() {
            body["references"] = references.iter().map(Reference::form).collect();
        }
        for (name, value) in [
            ("prompt", arguments.prompt.map(Value::from)),
            ("promptNodeId", arguments.prompt_node.map(Value::from)),
            ("source", arguments.source.as_deref().map(|source| image(source).into())),
            ("mask", arguments.mask.as_ref().map(Mask::form)),
            ("maskFeather", arguments.mask_feather.map(Value::from)),
            ("elements", arguments.elements.map(Value::from)),
            ("model", arguments.model.map(Value::from)),
            ("size", arguments.size.map(Value::from)),
            ("quality", arguments.quality.map(Value::from)),
            ("asked", arguments.asked.map(Value::from)),
            ("retryOf", arguments.retry_of.map(Value::from)),
            ("maxCredits", arguments.max_credits.map(Value::from)),
        ] {
            if let Some(value) = value {
                body[name] = value;
            }
        }
        let outputs = arguments.targets.as_ref().map_or(arguments.count.unwrap_or(1) as usize, Vec::len);
        match arguments.targets {
            Some(targets) => {
                body["targetNodeIds"] = targets.into();
                if let Some(count) = arguments.count {
                    body["count"] = count.into();
                }
            }
            None => {
                let first = || references.first().map(Reference::handle);
                let source = arguments.source.as_deref().map(image).or_else(first);
                body["place"] = Place::resolve(arguments.place, source.as_deref(), Some(arguments.count.unwrap_or(1)));
            }
        }
        let (request, capability) = match arguments.mode {
            Mode::Generate => (call.client.generate_images(), Capability::ImageGenerate),
            Mode::Edit => (call.client.edit_images(), Capability::ImageEdit),
            Mode::Variations => (call.client.vary_images(), Capability::ImageVariations),
        };
        let on = Some((canvas.as_str(), arguments.revision.as_str()));
        match work::start(call, request.json(&body), on, arguments.wait).await {
            Err(failure) if failure.code == "payment_required" => {
                Err(funds::add_affordable_models(failure, call, &[capability], outputs).await)
            }
            done => done,
        }
    }
}
