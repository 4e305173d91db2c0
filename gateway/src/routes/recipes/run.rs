//! `POST /recipes/{recipeId}/runs`: starts a run of a Recipe, on a new instance or on an existing one
//! (docs/reference/recipes.md#run-inputs).

use std::collections::BTreeMap;

use app::recipe::{Choice, Given, NewRecipeRun, StartRun};
use app::{Acceptance, Base};
use axum::Extension;
use axum::extract::State;
use domain::Violation;
use domain::id::{AccountUid, ModelReference, NodeId, NodeReference, RecipeId};
use domain::job::StartQuote;
use domain::message::Queue;
use domain::recipe::run::{RecipeRun, RunId, RunStatus};
use domain::webhook::WebhookInput;
use egress::Guard;
use http::HeaderMap;
use serde_json::json;
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};

use crate::extract::caller::{Caller, GenerateImages};
use crate::extract::canvas::canvas_of;
use crate::extract::check::Check;
use crate::extract::idempotency::fingerprint;
use crate::extract::json::JsonBody;
use crate::extract::path::PathText;
use crate::extract::prefer;
use crate::models::malformed_name;
use crate::observe::Trace;
use crate::openapi::errors::WriteErrors;
use crate::place::{location_of, with_fit, with_location};
use crate::problem::{Result, combine_violations};
use crate::reply;
use crate::runs::recipe_document;
use crate::start::{accepted_as, quote, start_request, terms_of, webhook_of, with_cap, writable};
use crate::state::App;

const PATH: &str = "/recipes/{recipeId}/runs";

start_request! {
    /// Request to run a Recipe.
    pub struct RunRecipe on a canvas {
        /// Version of the Recipe; when omitted, that of the instance, or the newest.
        #[schema(max_length = 80)]
        version: Option<String>,
        /// Sticky node of an existing instance; a new instance is created when omitted.
        #[schema(value_type = Option<NodeReference>)]
        instance_node_id: Option<String>,
        /// Node next to which a new instance is placed on a free place. Excludes `instanceNodeId`.
        #[schema(value_type = Option<NodeReference>)]
        near: Option<String>,
        /// Section that a new instance lies in and its nodes belong to; it grows if it has no room. Excludes `instanceNodeId`.
        #[schema(value_type = Option<NodeReference>)]
        section_id: Option<String>,
        /// Input values by port node id, key or normalized label: plain text, or a node or asset handle.
        #[serde(default)]
        #[schema(schema_with = inputs)]
        inputs: BTreeMap<String, String>,
        /// Model for the images, or for the texts of a Recipe that makes no images: a model id or `model:` handle. Overrides the
        /// Recipe.
        #[schema(value_type = Option<ModelReference>)]
        model: Option<String>,
        /// Size of the images; overrides the Recipe.
        #[schema(max_length = 80)]
        size: Option<String>,
        /// Quality of the images; overrides the Recipe.
        #[schema(max_length = 80)]
        quality: Option<String>,
        /// `true` if each image output takes the largest size within the present box of its node that shows it whole; one that was
        /// resized meanwhile keeps its size.
        #[serde(default)]
        fit: bool,
        /// Webhook to notify when the run ends.
        webhook: Option<WebhookInput>,
    }
}

/// Schema of the inputs: at most 16 entries of 1 to 8000 characters each.
fn inputs() -> Object {
    let value = ObjectBuilder::new().schema_type(Type::String).min_length(Some(1)).max_length(Some(8000));
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .additional_properties(Some(value))
        .max_properties(Some(domain::limits::RECIPE_INPUTS_MAX))
        .description(Some(
            "Value of each input, under the port's key, node id or normalized label. An image port takes a node or asset handle; a \
             text or sticky port takes text or a node handle, and with `writtenReference` also an image's handle. A port with a \
             default may be left out.",
        ))
        .build()
}

/// Run a Recipe
///
/// Starts a run of the Recipe's steps, in order. Use `instanceNodeId` to run an instance on the canvas; otherwise
/// one is created. The scope image:generate is needed even for a Recipe that only makes text. The credit of all
/// steps is reserved when the run is accepted, and what is not used is returned. Follow the run with the returned
/// `pollUrl` or a webhook. A replay never starts or charges a second run.
#[utoipa::path(
    post, path = "/recipes/{recipeId}/runs", operation_id = "runRecipe", tag = "Recipes", request_body = RunRecipe,
    security(("bearer" = ["canvas:read", "canvas:write", "asset:read", "image:generate"])),
    params(
        ("recipeId" = String, Path, pattern = "^(recipe:)?[A-Za-z0-9_-]{1,180}$", description = "Plain id or handle."),
        ("Prefer" = Option<String>, Header, description = "`handling=lenient` accepts a stale `baseRevision` where nothing that the request reads or writes has changed since."),
    ),
    responses(
        WriteErrors,
        (status = 200, description = "The quote, with `validateOnly: true`; nothing is started.", body = StartQuote),
        (status = 202, description = "The run is queued, or is a replay of an earlier start.", body = RecipeRun),
        (status = 402),
    )
)]
pub async fn run(
    State(app): State<App>,
    caller: Caller<GenerateImages>,
    params: PathText,
    Extension(trace): Extension<Trace>,
    headers: HeaderMap,
    body: JsonBody,
) -> Result {
    let lenient = prefer::lenient(&headers);
    let check = |request: RunRecipe| request.check(&caller.account, lenient, &app.guard);
    let (request, id) = combine_violations(body.checked(check).await, params.parameter::<RecipeId>("recipeId"))?;
    let start = start_of(&app, &caller, id, request, trace);
    let record = writable(&app, &caller.account, &start.run.canvas).await?;
    if start.run.terms.is_dry_run() {
        let _room = app.documents.reserve(&caller.account, record.graph_bytes).await?;
        return quote(&app, &caller, &start).await;
    }
    let permit = app.writers.pass(&caller.account, &start.run.canvas.to_string()).await?;
    let _room = app.documents.reserve(&caller.account, record.graph_bytes).await?;
    let (mut run, acceptance) = caller.run(&app, &start).await?;
    drop(permit);
    if run.status == RunStatus::Queued {
        run.waiting_for = app.waiting_when_accepted(Queue::Recipe, run.created_at).await;
    }
    let mut document = recipe_document(&app, caller.scopes, &run);
    match acceptance {
        Acceptance::Replayed => document.replayed = Some(true),
        Acceptance::New | Acceptance::Lenient => app.waker.wake(Queue::Recipe, run.id.0),
    }
    Ok(accepted_as(acceptance, reply::accepted(&document.poll_url, &document)))
}

impl RunRecipe {
    /// The rules that a schema cannot express.
    fn check(self, account: &AccountUid, lenient: bool, guard: &Guard) -> Result<NewRecipeRun, Vec<Violation>> {
        let mut check = Check::default();
        check.extend(self.model.as_deref().and_then(|model| malformed_name("model", model)));
        let webhook = webhook_of(&mut check, guard, self.webhook);
        let terms = terms_of(&mut check, self.idempotency_key, self.max_credits, self.validate_only);
        let canvas = canvas_of(&mut check, &self.canvas_id, None, account);
        for (field, is_present) in [("near", self.near.is_some()), ("sectionId", self.section_id.is_some())] {
            check.note_if(
                is_present && self.instance_node_id.is_some(),
                field,
                "must be omitted when `instanceNodeId` is given",
            );
        }
        let location = location_of(&mut check, "", self.near.as_deref(), self.section_id.as_deref());
        let instance = self.instance_node_id;
        let instance = instance.and_then(|node| check.parsed("instanceNodeId", NodeId::parse(&node)));
        let given = |(name, value): (String, String)| (name, Given::parse(&value, account));
        let inputs = self.inputs.into_iter().map(given).collect();
        check.finish(|| {
            Some(NewRecipeRun {
                canvas: canvas?,
                terms,
                base: Base { revision: self.base_revision, lenient },
                version: self.version,
                instance,
                location,
                inputs,
                choice: Choice { model: self.model, size: self.size, quality: self.quality },
                fit: self.fit,
                webhook,
            })
        })
    }
}

/// The start of a run. Different spellings of one request have the same fingerprint.
fn start_of<'a>(
    app: &'a App,
    caller: &'a Caller<GenerateImages>,
    recipe: RecipeId,
    run: NewRecipeRun,
    trace: Trace,
) -> StartRun<'a, App> {
    let spelled: BTreeMap<&String, String> = run.inputs.iter().map(|(name, given)| (name, given.canonical())).collect();
    let Choice { model, size, quality } = &run.choice;
    let body = json!({
        "recipe": recipe, "version": run.version, "baseRevision": run.base.revision, "inputs": spelled,
        "instanceNodeId": run.instance, "model": model, "size": size, "quality": quality,
        "webhook": run.webhook,
    });
    let body = with_location(with_fit(with_cap(body, &run.terms), run.fit), &run.location);
    let fingerprint = fingerprint(PATH, &run.canvas.to_string(), &body);
    StartRun {
        models: app,
        settings: app.job_settings(),
        caller,
        id: RunId::generate(),
        recipe,
        run,
        fingerprint,
        traceparent: trace.0.to_string(),
    }
}
