//! `POST /recipes/{recipeId}/fork`: puts an instance of a Recipe on a canvas; nothing runs
//! (docs/reference/recipes.md#fork-a-recipe).

use app::{Base, CanvasWrite, Key, Locks};
use axum::extract::State;
use canvas::placement::Location;
use domain::Violation;
use domain::canvas::MutationResult;
use domain::id::{AccountUid, BaseRevision, CanvasHandle, CanvasReference, IdempotencyKey, NodeReference, RecipeId};
use http::HeaderMap;
use serde::Deserialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::extract::caller::{Caller, WriteCanvas};
use crate::extract::canvas::canvas_of;
use crate::extract::check::Check;
use crate::extract::idempotency::fingerprint;
use crate::extract::json::{Input, JsonBody};
use crate::extract::path::PathText;
use crate::extract::prefer;
use crate::openapi::errors::WriteErrors;
use crate::place::{location_of, with_location};
use crate::problem::{Result, combine_violations};
use crate::reply;
use crate::start::writable;
use crate::state::App;

const PATH: &str = "/recipes/{recipeId}/fork";

/// Request to put an instance of a Recipe on a canvas.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ForkRecipe {
    /// Plain id or handle of the canvas.
    #[schema(value_type = CanvasReference)]
    canvas_id: String,
    /// Owner of the canvas, for a plain id.
    #[schema(value_type = Option<AccountUid>)]
    owner_uid: Option<String>,
    /// Version of the Recipe; the newest when omitted.
    #[schema(max_length = 80)]
    version: Option<String>,
    /// The canvas revision that the request is based on.
    #[schema(value_type = BaseRevision)]
    base_revision: String,
    /// Idempotency key: an equal request with the same key creates one instance.
    #[schema(value_type = IdempotencyKey)]
    idempotency_key: String,
    /// Left edge of the instance, in canvas units, moved left where it would not fit the canvas; right of the content when
    /// omitted.
    #[schema(minimum = -10_000_000, maximum = 10_000_000)]
    x: Option<f64>,
    /// Top edge of the instance, in canvas units, moved up where it would not fit the canvas; level with the content when
    /// omitted.
    #[schema(minimum = -10_000_000, maximum = 10_000_000)]
    y: Option<f64>,
    /// Node next to which the instance is placed on a free place. Only without `x` and `y`.
    #[schema(value_type = Option<NodeReference>)]
    near: Option<String>,
    /// Section that the instance lies in and its nodes belong to; it grows if it has no room. Only without `x` and `y`.
    #[schema(value_type = Option<NodeReference>)]
    section_id: Option<String>,
}

impl Input for ForkRecipe {}

/// A checked request.
struct Checked {
    canvas: CanvasHandle,
    version: Option<String>,
    base_revision: String,
    key: String,
    x: Option<f64>,
    y: Option<f64>,
    location: Location,
}

impl ForkRecipe {
    fn check(self, account: &AccountUid) -> Result<Checked, Vec<Violation>> {
        let mut check = Check::default();
        let canvas = canvas_of(&mut check, &self.canvas_id, self.owner_uid.as_deref(), account);
        let is_positioned = self.x.is_some() || self.y.is_some();
        for (field, is_present) in [("near", self.near.is_some()), ("sectionId", self.section_id.is_some())] {
            check.note_if(is_present && is_positioned, field, "must be omitted when `x` or `y` is given");
        }
        let location = location_of(&mut check, "", self.near.as_deref(), self.section_id.as_deref());
        let Self { version, base_revision, idempotency_key: key, x, y, .. } = self;
        check.finish(|| Some(Checked { canvas: canvas?, version, base_revision, key, x, y, location }))
    }
}

/// Fork a Recipe into a canvas
///
/// Copies a Recipe into a canvas as a private, editable instance with port and output nodes. Use it to adapt a
/// Recipe before running it. It never runs the Recipe and spends no credit.
#[utoipa::path(
    post, path = "/recipes/{recipeId}/fork", operation_id = "forkRecipe", tag = "Recipes", request_body = ForkRecipe,
    security(("bearer" = ["canvas:read", "canvas:write"])),
    params(
        ("recipeId" = String, Path, pattern = "^(recipe:)?[A-Za-z0-9_-]{1,180}$", description = "Plain id or handle."),
        ("Prefer" = Option<String>, Header, description = "`return=minimal` leaves `nodes` and `connections` out of `canvas`. `handling=lenient` accepts a stale `baseRevision` where nothing that the request reads or writes has changed since."),
    ),
    responses(
        WriteErrors,
        (status = 201, description = "The result of the write.", body = MutationResult),
        (status = 200, description = "A replay: an earlier request with this key made the fork.", body = MutationResult),
    )
)]
pub async fn fork(
    State(app): State<App>,
    caller: Caller<WriteCanvas>,
    params: PathText,
    headers: HeaderMap,
    body: JsonBody,
) -> Result {
    let check = |request: ForkRecipe| request.check(&caller.account);
    let (request, id) = combine_violations(body.checked(check).await, params.parameter::<RecipeId>("recipeId"))?;
    let Checked { canvas, version, base_revision, key, x, y, location } = request;
    let body = json!({ "recipe": id, "version": version, "baseRevision": base_revision, "x": x, "y": y });
    let body = with_location(body, &location);
    let fingerprint = fingerprint(PATH, &canvas.to_string(), &body);
    let base = Base { revision: base_revision, lenient: prefer::lenient(&headers) };
    let command = app::recipe::ForkRecipe {
        target: CanvasWrite { account: &caller.account, canvas: &canvas, base: Some(&base), locks: Locks::Canvas },
        key: Key { text: &key, fingerprint: &fingerprint },
        actor: caller.actor(),
        recipe: &id,
        version: version.as_deref(),
        x,
        y,
        location,
    };
    let record = writable(&app, &caller.account, &canvas).await?;
    let permit = app.writers.pass(&caller.account, &canvas.to_string()).await?;
    let room = app.documents.reserve(&caller.account, record.graph_bytes).await?;
    let changed = caller.run(&app, &command).await?;
    drop(permit);
    let (replayed, lenient, minimal) = (changed.replayed, changed.lenient, prefer::minimal(&headers));
    let reply = reply::private(reply::document(room.into_json(&changed.document(minimal))?));
    let reply = if replayed { reply } else { reply::into_created(reply, &format!("/canvases/{canvas}")) };
    Ok(prefer::applied_lenient(prefer::applied_minimal(reply, minimal), lenient))
}
