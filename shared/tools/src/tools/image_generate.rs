//! Generation of images.

use std::ops::Range;

use client::answers::{ImageJob, StartQuote, Started};
use client::{Client, WorkRecord};
use domain::account::Scope;
use domain::graph::Role;
use domain::job::MaskMode;
use domain::model::Capability;
use domain::problem::{ErrorCode, ErrorDetails};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::answer::{Answer, Next};
use crate::call::Call;
use crate::canvas_name::CanvasName;
use crate::failure::Failure;
use crate::funds;
use crate::place::{Place, image};
use crate::schema::one_of;
use crate::tool::{Hints, Result, Tool};
use crate::work::{self, IMAGES_MAX, Wait, Work};

/// Outputs of one start.
const START_MAX: usize = 4;
const PAYMENT_REQUIRED: &str = ErrorCode::PaymentRequired.as_str();
const CONFLICT: &str = ErrorCode::Conflict.as_str();
/// The first work, in the details of a refusal of the second.
const STARTED: &str = "started";

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
    #[schemars(range(min = 1, max = 8))]
    count: Option<u32>,
    /// Empty image nodes; else new ones are made
    #[schemars(length(min = 1, max = 8))]
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
    type Output = Output;

    async fn run(call: &Call, arguments: Arguments) -> Result<Answer<Output>> {
        let canvas = arguments.canvas.handle();
        let mut body = json!({"canvasId": canvas, "baseRevision": arguments.revision});
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
            ("retryOf", arguments.retry_of.map(Value::from)),
            ("maxCredits", arguments.max_credits.map(Value::from)),
        ] {
            if let Some(value) = value {
                body[name] = value;
            }
        }
        let outputs = arguments.targets.as_ref().map_or(arguments.count.unwrap_or(1) as usize, Vec::len);
        let first = || references.first().map(Reference::handle);
        let source = arguments.source.as_deref().map(image).or_else(first);
        let starts = Starts {
            call,
            mode: arguments.mode,
            on: (&canvas, &arguments.revision),
            body,
            outputs,
            count: arguments.count,
            targets: arguments.targets,
            place: arguments.place,
            source,
            asked: arguments.asked,
            max_credits: arguments.max_credits,
        };
        let done = match outputs {
            ..=START_MAX => starts.one(arguments.wait).await,
            _ => starts.two(arguments.wait).await,
        };
        match done {
            Err(failure) if failure.code == PAYMENT_REQUIRED && failure.details.get(STARTED).is_none() => {
                Err(funds::add_affordable_models(failure, call, &[arguments.mode.capability()], outputs).await)
            }
            done => done,
        }
    }
}

/// One work, or two that were started together.
#[derive(Serialize)]
#[serde(untagged)]
pub enum Output {
    One(Box<Work>),
    Two { runs: Vec<Work> },
}

impl Mode {
    fn request(self, client: &Client) -> client::Call<Started<ImageJob>> {
        match self {
            Mode::Generate => client.generate_images(),
            Mode::Edit => client.edit_images(),
            Mode::Variations => client.vary_images(),
        }
    }

    const fn capability(self) -> Capability {
        match self {
            Mode::Generate => Capability::ImageGenerate,
            Mode::Edit => Capability::ImageEdit,
            Mode::Variations => Capability::ImageVariations,
        }
    }
}

/// What a call asks for, as one start or two.
struct Starts<'a> {
    call: &'a Call,
    mode: Mode,
    on: (&'a str, &'a str),
    /// What both starts have in common.
    body: Value,
    outputs: usize,
    count: Option<u32>,
    targets: Option<Vec<String>>,
    place: Option<Place>,
    source: Option<String>,
    asked: Option<u32>,
    max_credits: Option<i64>,
}

impl Starts<'_> {
    async fn one(&self, wait: Option<Wait>) -> Result<Answer<Output>> {
        let mut body = self.part(0..self.outputs, &self.call.key(), self.place.clone());
        if self.targets.is_some()
            && let Some(count) = self.count
        {
            body["count"] = count.into();
        }
        if let Some(asked) = self.asked {
            body["asked"] = asked.into();
        }
        let request = self.mode.request(&self.call.client).json(&body);
        let done = work::start(self.call, request, Some(self.on), wait).await?;
        Ok(done.map(|work| Output::One(Box::new(work))))
    }

    /// Starts as many outputs as one start makes, then the rest. Nothing is started that cannot be paid as a whole.
    async fn two(&self, wait: Option<Wait>) -> Result<Answer<Output>> {
        if let Some(count) = self.count
            && self.targets.is_some()
            && count as usize != self.outputs
        {
            return Err(Failure::argument("count", "must be the number of targets"));
        }
        if self.asked.is_some_and(|asked| (asked as usize) < self.outputs) {
            return Err(Failure::argument("asked", "must be at least the number of outputs"));
        }
        let key = self.call.key();
        let first = self.part(0..START_MAX, &format!("{key}:1"), self.place.clone());
        self.check_price(&first).await?;
        let request = |body: &Value| self.mode.request(&self.call.client).json(body);
        let first = work::begin(self.call, request(&first), Some(self.on)).await?;
        let mut second = self.part(START_MAX..self.outputs, &format!("{key}:2"), self.place_of_rest());
        if let Some(asked) = self.asked {
            // The first one owes nothing.
            second["asked"] = (asked as usize - START_MAX).into();
        }
        let second = match work::begin(self.call, request(&second), Some(self.on)).await {
            Ok(second) => second,
            Err(failure) => return Err(half_done(failure, &first.0, self.outputs)),
        };
        let mut runs = work::end(self.call, vec![first, second], Some(self.on), wait).await;
        if runs.iter().all(Work::has_failed) {
            return Err(work::failed(runs.remove(0)));
        }
        let assets: Vec<String> = runs.iter().flat_map(Work::assets).take(IMAGES_MAX).cloned().collect();
        Ok(work::show(&self.call.client, Answer::new(Output::Two { runs }), &assets).await)
    }

    /// The start of a part of the outputs.
    fn part(&self, part: Range<usize>, key: &str, place: Option<Place>) -> Value {
        let mut body = self.body.clone();
        body["idempotencyKey"] = key.into();
        match &self.targets {
            Some(targets) => {
                body["targetNodeIds"] = json!(targets[part]);
                body["fit"] = true.into();
            }
            None => body["place"] = Place::resolve(place, self.source.as_deref(), Some(part.len() as u32)),
        }
        body
    }

    /// The place of the second start. One point is not free for both, and the nodes of the first are newer than the revision.
    fn place_of_rest(&self) -> Option<Place> {
        self.place.clone().map(|place| Place { x: None, y: None, ..place })
    }

    /// Refuses what both starts together cost if that is too much. A call that is repeated passes, whatever is left by now.
    async fn check_price(&self, first: &Value) -> Result<()> {
        let mut tried = first.clone();
        tried["validateOnly"] = true.into();
        if let Some(members) = tried.as_object_mut() {
            members.remove("maxCredits");
        }
        let request = self.mode.request(&self.call.client).json(&tried).prefer("handling=lenient");
        let price = match request.cast::<StartQuote>().await.and_then(|quote| quote.value()) {
            Ok(quote) => quote.credit_cost,
            // Of a call that is repeated, too: the first start says so, or what is wrong.
            Err(error) => match error.problem().and_then(|problem| problem.details.credit_cost) {
                Some(price) => price,
                None => return Ok(()),
            },
        };
        let price = price * self.outputs as i64 / START_MAX as i64;
        let balance = self.call.client.get_auth_status().await?.value()?.credit_balance;
        if price <= self.max_credits.map_or(balance, |cap| cap.min(balance)) {
            return Ok(());
        }
        // Its key is used if the first start was accepted before. A start for nothing finds that out: it has a price.
        let mut known = first.clone();
        known["maxCredits"] = 0.into();
        match work::begin(self.call, self.mode.request(&self.call.client).json(&known), None).await {
            Err(failure) if failure.code == PAYMENT_REQUIRED => {
                let refusal =
                    ErrorDetails { credit_cost: Some(price), max_credits: self.max_credits, ..ErrorDetails::default() };
                let details = json!(refusal);
                Err(Failure { refusal, details, ..failure })
            }
            Err(failure) if failure.code == CONFLICT => Ok(()),
            Err(failure) => Err(failure),
            Ok(_) => Ok(()),
        }
    }
}

/// The refusal of the second of two starts.
fn half_done(mut failure: Failure, first: &WorkRecord, outputs: usize) -> Failure {
    let started = first.handle();
    failure.message = format!("{started} makes {START_MAX} of {outputs}; the others were refused: {}", failure.message);
    failure.with_detail(STARTED, started.into()).then(Next::wait(started))
}
