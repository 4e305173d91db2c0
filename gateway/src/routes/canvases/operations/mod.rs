//! `POST /canvases/{canvasId}/operations`: a batch, atomic, in order, and safe against concurrent writes
//! (docs/reference/operations.md).

mod canonical;
mod dry_run;

use app::canvas::ApplyBatch;
use app::{Base, CanvasWrite, Key, Locks};
use axum::extract::State;
use canvas::Batch;
use domain::account::Scope;
use domain::constant::{False, True};
use domain::id::{BaseRevision, CanvasReference, IdempotencyKey};
use domain::limits::OPERATIONS_BODY_MAX;
use domain::operation::{Operation, OperationsAnswer};
use http::HeaderMap;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use self::canonical::{canonical, omit_defaults};
use self::dry_run::BatchDryRun;
use crate::extract::caller::ReadCanvas;
use crate::extract::canvas::{CanvasAccess, require_writer};
use crate::extract::idempotency::fingerprint_without_defaults;
use crate::extract::json::{Either, Input, JsonBody};
use crate::extract::prefer;
use crate::extract::query::OwnerQuery;
use crate::openapi::errors::WriteErrors;
use crate::problem::{Problem, Result};
use crate::reply;
use crate::state::App;

const PATH: &str = "/canvases/{canvasId}/operations";

/// A batch of operations, to apply or to validate.
#[derive(ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "the document's form of the two bodies, of which each request has one")]
pub enum OperationsRequest {
    /// A batch to apply.
    Apply(ApplyOperations),
    /// A batch to validate.
    Validate(ValidateOperations),
}

/// A batch to apply.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApplyOperations {
    /// The canvas revision that the batch is based on.
    #[schema(value_type = BaseRevision)]
    base_revision: String,
    /// Idempotency key: an equal batch with the same key is applied once.
    #[schema(value_type = IdempotencyKey)]
    idempotency_key: String,
    /// Applies the batch even where it would take a node from an active job, or findings of severity error would block it.
    /// Default: `false`.
    #[serde(default)]
    force: bool,
    /// `false` or absent: the batch is applied.
    #[serde(default)]
    #[schema(value_type = False, inline)]
    validate_only: bool,
    /// Operations, applied in order.
    #[schema(min_items = 1, max_items = 200)]
    operations: Vec<Operation>,
}

/// A batch to validate; nothing is written.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ValidateOperations {
    /// The canvas revision that the batch is based on; the current one when omitted.
    #[schema(value_type = Option<BaseRevision>)]
    base_revision: Option<String>,
    /// Ignored, whatever its form.
    #[serde(default, rename = "idempotencyKey")]
    #[schema(value_type = Value, required = false)]
    _idempotency_key: IgnoredAny,
    /// Validates the batch even where it would take a node from an active job. Default: `false`.
    #[serde(default)]
    force: bool,
    /// Always `true`: the batch is validated and nothing is written.
    #[serde(rename = "validateOnly")]
    #[schema(value_type = True, inline)]
    _validate_only: bool,
    /// Operations, validated in order.
    #[schema(min_items = 1, max_items = 200)]
    operations: Vec<Operation>,
}

impl Input for ApplyOperations {
    const LIMIT: usize = OPERATIONS_BODY_MAX;
}

impl Input for ValidateOperations {
    const LIMIT: usize = OPERATIONS_BODY_MAX;

    fn ignored(_: &Value) -> &'static [&'static str] {
        &["idempotencyKey"]
    }
}

/// Apply a batch of operations, or validate it
///
/// Changes the graph: creates, updates, moves, duplicates, deletes and restores nodes and connections, in order. Either the
/// whole batch is applied and the canvas has a new revision, or nothing is. With `validateOnly: true` it reports
/// what the batch would do and which findings it would raise, and writes nothing. Retrying with the same
/// `idempotencyKey` and body replays the first result. A batch never starts work and never spends credit. Deleting
/// nodes is destructive; the dry run lists what would be lost. Applying also needs the scope canvas:write.
#[utoipa::path(
    post, path = "/canvases/{canvasId}/operations", operation_id = "applyOperations", tag = "Canvases", request_body = OperationsRequest,
    security(("bearer" = ["canvas:read"])),
    params(
        ("canvasId" = CanvasReference, Path, description = "Plain id or handle."),
        OwnerQuery,
        ("Prefer" = Option<String>, Header, description = "`return=minimal` leaves `nodes` and `connections` out of `canvas`. `handling=lenient` accepts a stale `baseRevision` where nothing that the request reads or writes has changed since."),
    ),
    responses(WriteErrors, (status = 200, description = "The result of the batch, or of its dry run.", body = OperationsAnswer))
)]
pub async fn operations(
    State(app): State<App>,
    on: CanvasAccess<ReadCanvas>,
    headers: HeaderMap,
    body: JsonBody,
) -> Result {
    let sent = body.json_of(|body| body["validateOnly"] == true).await;
    let (sent, _share) = sent.map_err(|problem| problem.and(on.violations()))?;
    match sent {
        Either::First(request) => try_batch(&app, &on, &headers, request).await,
        Either::Second(request) => apply_batch(&app, &on, &headers, request).await,
    }
}

async fn try_batch(
    app: &App,
    on: &CanvasAccess<ReadCanvas>,
    headers: &HeaderMap,
    request: ValidateOperations,
) -> Result {
    let batch = checked(on, request.operations)?;
    let (handle, record, _) = on.readable()?;
    on.caller.require_acceptable()?;
    let _room = app.documents.reserve(&on.caller.account, record.graph_bytes).await?;
    let base = request.base_revision.map(|revision| Base { revision, lenient: prefer::lenient(headers) });
    let (answer, is_stale) =
        BatchDryRun { caller: &on.caller, handle, batch: &batch, force: request.force, base }.run(app).await?;
    Ok(prefer::applied_lenient(reply::ok(&answer), is_stale))
}

async fn apply_batch(
    app: &App,
    on: &CanvasAccess<ReadCanvas>,
    headers: &HeaderMap,
    request: ApplyOperations,
) -> Result {
    // The copy for the fingerprint is dropped before the batch is copied into the graph.
    let fingerprint = on.named().map(|handle| {
        let body = canonical(&request, &on.caller.account);
        fingerprint_without_defaults(PATH, &handle.to_string(), body, omit_defaults)
    });
    let batch = checked(on, request.operations)?;
    let fingerprint = fingerprint?;
    on.caller.require(&[Scope::CanvasWrite])?;
    let (handle, record, role) = on.readable()?;
    require_writer(role)?;
    let base = Base { revision: request.base_revision, lenient: prefer::lenient(headers) };
    let command = ApplyBatch {
        target: CanvasWrite { account: &on.caller.account, canvas: handle, base: Some(&base), locks: Locks::Canvas },
        canvas_key: record.key,
        key: Key { text: &request.idempotency_key, fingerprint: &fingerprint },
        actor: on.caller.actor(),
        batch: &batch,
        force: request.force,
        graphs: &app.graphs,
    };
    let permit = app.writers.pass(&on.caller.account, &handle.to_string()).await?;
    let room = app.documents.reserve(&on.caller.account, record.graph_bytes).await?;
    let changed = on.caller.run(app, &command).await?;
    let (lenient, minimal) = (changed.lenient, prefer::minimal(headers));
    // The next writer takes the graph that this answer is made of.
    let answer = changed.document(minimal);
    drop(permit);
    let reply = reply::private(reply::document(room.into_json(&answer)?));
    Ok(prefer::applied_lenient(prefer::applied_minimal(reply, minimal), lenient))
}

/// The operations as a batch; its violations are reported together with those of the path.
fn checked(on: &CanvasAccess<ReadCanvas>, operations: Vec<Operation>) -> Result<Batch> {
    Batch::new(operations).map_err(|violations| Problem::Invalid(violations).and(on.violations()))
}

#[cfg(test)]
mod tests;
