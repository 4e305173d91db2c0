//! `POST /recipes/{recipeId}/fork`: an instance of a Recipe on a canvas, which never runs (decisions 13.4).

use axum::extract::State;
use canvas::Options;
use canvas::instance::{self, Filling, Ids, Instance};
use db::canvases::NewActivity;
use domain::Violation;
use domain::canvas::{ActivityType, CanvasRecord, MutationResult};
use domain::id::{AccountUid, CanvasHandle, RecipeId};
use domain::idempotency::Outcome;
use domain::recipe::{Held, RecipeRecord, Version};
use http::HeaderMap;
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::extract::caller::{Caller, WriteCanvas};
use crate::extract::canvas::{canvas_of, canvas_violations, require_writer};
use crate::extract::idempotency::{fingerprint, replay};
use crate::extract::json::{Input, Unread};
use crate::extract::path::PathText;
use crate::extract::prefer;
use crate::problem::{Problem, Result, both};
use crate::reply;
use crate::routes::canvases::write::{self, refusal};
use crate::state::{App, retrying};

const PATH: &str = "/recipes/{recipeId}/fork";

/// A Recipe to copy into a canvas.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ForkRecipe {
    /// Plain id or handle.
    #[schema(max_length = 560, pattern = "^(canvas:([A-Za-z0-9_-]{1,180}:)?)?[A-Za-z0-9_-]{1,180}$")]
    canvas_id: String,
    /// Owner of the canvas, with a plain id.
    #[schema(pattern = "^[A-Za-z0-9_-]{1,180}$", nullable = false)]
    owner_uid: Option<String>,
    /// Exactly this version; the newest when left out.
    #[schema(max_length = 80, nullable = false)]
    version: Option<String>,
    /// The revision that the copy was made for.
    #[schema(min_length = 1, max_length = 200)]
    base_revision: String,
    /// Names this copy, so that sending it again makes no second one.
    #[schema(min_length = 8, max_length = 200)]
    idempotency_key: String,
    /// Its left edge, or as far to the right as it can stand; right of the content when left out.
    #[schema(minimum = -10_000_000, maximum = 10_000_000, nullable = false)]
    x: Option<f64>,
    /// Its top edge, or as far down as it can stand; level with the content when left out.
    #[schema(minimum = -10_000_000, maximum = 10_000_000, nullable = false)]
    y: Option<f64>,
}

impl Input for ForkRecipe {}

/// Fork a Recipe
#[utoipa::path(
    post, path = "/recipes/{recipeId}/fork", operation_id = "forkRecipe", tag = "Recipes", request_body = ForkRecipe,
    security(("bearer" = ["canvas:read", "canvas:write"])),
    params(
        ("recipeId" = String, Path, pattern = "^(recipe:)?[A-Za-z0-9_-]{1,180}$", description = "Plain id or handle."),
        ("Prefer" = Option<String>, Header, description = "`return=minimal` leaves the lists of nodes and connections out of `canvas` (an extension)."),
    ),
    responses(
        (status = 201, body = MutationResult, description = "It was made."),
        (status = 200, body = MutationResult, description = "It had been made by an earlier, equal request."),
    )
)]
pub async fn fork(
    State(app): State<App>,
    caller: Caller<WriteCanvas>,
    params: PathText,
    headers: HeaderMap,
    body: Unread,
) -> Result {
    let rules = |body: &Value| canvas_violations(body, &caller.account);
    let (request, id) = both(body.json_by::<ForkRecipe, _>(rules).await, params.parameter::<RecipeId>("recipeId"))?;
    let canvas = canvas_of(&request.canvas_id, request.owner_uid.as_deref(), &caller.account)?;
    let body = json!({
        "recipe": id, "version": request.version, "baseRevision": request.base_revision, "x": request.x, "y": request.y,
    });
    let fork = Fork {
        caller: &caller,
        fingerprint: fingerprint(PATH, &canvas.to_string(), &body),
        id,
        canvas,
        request,
        minimal: prefer::minimal(&headers),
    };
    let record = writable(&app, &caller.account, &fork.canvas).await?;
    let turn = app.writers.pass(&fork.canvas.to_string()).await?;
    let room = app.documents.room(record.graph_bytes).await?;
    let result = retrying(|| fork.attempt(&app)).await?;
    drop(turn);
    let reply = reply::private(reply::document(room.house_json(&result)?));
    let reply = match result.replayed {
        true => reply,
        false => reply::into_created(reply, &format!("/canvases/{}", fork.canvas)),
    };
    Ok(if fork.minimal { prefer::applied_minimal(reply) } else { reply })
}

/// The canvas that a Recipe is to be put on, before its turn is waited for: who has no access is told so before the Recipe and the
/// key are looked at (decisions 1.2).
pub(super) async fn writable(app: &App, account: &AccountUid, canvas: &CanvasHandle) -> Result<CanvasRecord> {
    let mut connection = app.connection().await?;
    let (record, role) =
        db::canvases::find(&mut connection, account, canvas).await?.ok_or(Problem::NotFound("canvas"))?;
    require_writer(role)?;
    Ok(record)
}

/// The Recipe of a path in the version that the body asks for: an absent Recipe is 404, an absent version 422 (decisions
/// 18.10). The version is looked at only by [`Asked::version`], after a replay.
pub(super) struct Asked {
    newest: RecipeRecord,
}

impl Asked {
    /// Looks the Recipe up.
    pub(super) async fn find(conn: &mut db::PgConnection, caller: &AccountUid, id: &RecipeId) -> Result<Self> {
        let newest = db::recipes::find(conn, caller, id, None).await?.ok_or(Problem::NotFound("recipe"))?;
        Ok(Self { newest })
    }

    /// The version.
    pub(super) async fn version(
        self,
        conn: &mut db::PgConnection,
        caller: &AccountUid,
        version: Option<&str>,
    ) -> Result<RecipeRecord> {
        let Some(version) = version else { return Ok(self.newest) };
        let unknown = || Problem::unprocessable("version", "is no version of this Recipe");
        let version: Version = version.parse().map_err(|_| unknown())?;
        db::recipes::find(conn, caller, &self.newest.id, Some(version)).await?.ok_or_else(unknown)
    }
}

struct Fork<'a> {
    caller: &'a Caller<WriteCanvas>,
    id: RecipeId,
    canvas: CanvasHandle,
    request: ForkRecipe,
    fingerprint: [u8; 32],
    /// Whether the answer leaves out nodes and connections.
    minimal: bool,
}

impl Fork<'_> {
    /// One transaction: Recipe, key, canvas row, revision, graph, rows, revision, outcome.
    async fn attempt(&self, app: &App) -> Result<MutationResult> {
        let account = &self.caller.account;
        let mut transaction = app.transaction().await?;
        let asked = Asked::find(&mut transaction, account, &self.id).await?;
        let key = &self.request.idempotency_key;
        let taken = db::idempotency::take(&mut transaction, account, key, &self.fingerprint).await?;
        let replayed = replay(taken)?;
        let (record, role) = write::lock(&mut transaction, account, &self.canvas).await?;
        if replayed.is_none() && record.revision != self.request.base_revision {
            return Err(Problem::stale(&record, &self.request.base_revision));
        }
        let mut graph = write::graph(&mut transaction, &record).await?;
        if let Some(outcome) = replayed {
            let Outcome::Operations { resolved_ids, changes } = outcome else {
                return Err(Problem::internal("the outcome of a fork is of another kind"));
            };
            let canvas = write::after(self.minimal, &record, role, graph);
            return Ok(MutationResult { canvas, replayed: true, resolved_ids, changes });
        }
        let recipe = asked.version(&mut transaction, account, self.request.version.as_deref()).await?;
        let fillings = defaults(&mut transaction, account, &recipe).await?;
        let definition = &recipe.definition;
        let instance = Instance {
            recipe: &recipe.id,
            version: recipe.version,
            definition,
            ids: &Ids::generate(definition.inputs.len(), definition.outputs.len()),
            fillings: &fillings,
            x: self.request.x,
            y: self.request.y,
        };
        let options = Options { agent: self.caller.surface.is_agent(), force: false };
        let applied = instance::place(&mut graph, &instance, options).map_err(full)?;
        let activity = NewActivity {
            kind: ActivityType::RecipeForked,
            actor: &self.caller.actor(),
            summary: format!("forked {}", definition.name),
            nodes: &applied.changes.changed_node_ids,
        };
        let record = write::commit(&mut transaction, &record, &graph, &applied, activity).await?;
        let (resolved_ids, changes) = (applied.resolved_ids, applied.changes);
        let outcome = Outcome::Operations { resolved_ids: resolved_ids.clone(), changes: changes.clone() };
        db::idempotency::store(&mut transaction, account, key, &outcome).await?;
        db::pool::commit(transaction).await?;
        Ok(MutationResult {
            canvas: write::after(self.minimal, &record, role, graph),
            replayed: false,
            resolved_ids,
            changes,
        })
    }
}

/// The saved defaults of a Recipe's inputs as far as they are still there: a picture that the account can no longer read
/// leaves its port empty.
async fn defaults(conn: &mut db::PgConnection, account: &AccountUid, recipe: &RecipeRecord) -> Result<Vec<Filling>> {
    let mut fillings = Vec::new();
    for input in &recipe.definition.inputs {
        let held = match &input.default {
            Some(Held::Asset(asset)) if db::assets::get_readable(conn, account, asset).await?.is_none() => None,
            held => held.clone(),
        };
        fillings.push(Filling { held, source: None });
    }
    Ok(fillings)
}

/// A canvas that has no room: the engine speaks of operations, the request of a canvas.
pub fn full(refused: canvas::Refused) -> Problem {
    let of_canvas = |violations: Vec<Violation>| -> Vec<Violation> {
        violations.into_iter().map(|violation| Violation::new("canvasId", violation.message)).collect()
    };
    match refusal(refused) {
        Problem::Unprocessable(violations) => Problem::Unprocessable(of_canvas(violations)),
        Problem::Invalid(violations) => Problem::Internal(format!("an instance breaks {violations:?}").into()),
        other => other,
    }
}
