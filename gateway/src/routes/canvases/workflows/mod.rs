//! `POST /canvases/{canvasId}/workflows`: creates a private workflow and its first instance on the canvas. Nothing runs
//! (docs/reference/recipes.md#instance).

mod rules;

use app::recipe::Given;
use axum::extract::State;
use domain::id::{AccountUid, CanvasReference, NodeId};
use domain::recipe::InputKind;
use domain::recipe::workflow::{NewWorkflow, WorkflowResult};
use http::HeaderMap;
use serde_json::{Value, json};

use crate::extract::caller::WriteCanvas;
use crate::extract::canvas::{CanvasAccess, require_writer};
use crate::extract::idempotency::fingerprint;
use crate::extract::json::{Input, JsonBody};
use crate::extract::prefer;
use crate::extract::query::OwnerQuery;
use crate::openapi::errors::WriteErrors;
use crate::problem::{Result, combine_violations};
use crate::reply;
use crate::state::App;

const PATH: &str = "/canvases/{canvasId}/workflows";

impl Input for NewWorkflow {}

/// Create a private workflow
///
/// Creates a private Recipe and its instance nodes on the canvas. Use it to make a sequence of text and image
/// steps that can be run again. It starts no generation and spends no credit. Only the account that created the
/// workflow can read, fork and run it.
#[utoipa::path(
    post, path = "/canvases/{canvasId}/workflows", operation_id = "createWorkflow", tag = "Canvases", request_body = NewWorkflow,
    security(("bearer" = ["canvas:read", "canvas:write"])),
    params(
        ("canvasId" = CanvasReference, Path, description = "Plain id or handle."),
        OwnerQuery,
        ("Prefer" = Option<String>, Header, description = "`return=minimal` leaves `nodes` and `connections` out of `canvas`."),
    ),
    responses(
        WriteErrors,
        (status = 201, description = "The workflow and the result of the write.", body = WorkflowResult),
        (status = 200, description = "A replay: an earlier request with this key created the workflow.", body = WorkflowResult),
    )
)]
pub async fn workflows(
    State(app): State<App>,
    on: CanvasAccess<WriteCanvas>,
    headers: HeaderMap,
    body: JsonBody,
) -> Result {
    let (request, _) = combine_violations(body.checked(rules::check).await, on.named())?;
    let (canvas, record, role) = on.readable()?;
    require_writer(role)?;
    let minimal = prefer::minimal(&headers);
    let creation = app::recipe::CreateWorkflow {
        models: &app,
        caller: &on.caller,
        canvas,
        fingerprint: fingerprint(PATH, &canvas.to_string(), &canonical(&request, &on.caller.account)),
        workflow: request,
    };
    let permit = app.writers.pass(&on.caller.account, &canvas.to_string()).await?;
    let room = app.documents.reserve(&on.caller.account, record.graph_bytes).await?;
    let (changed, workflow) = on.caller.run(&app, &creation).await?;
    drop(permit);
    let created = (!changed.replayed).then(|| format!("/recipes/{}", workflow.id));
    let result = WorkflowResult { result: changed.document(minimal), workflow };
    let reply = reply::private(reply::document(room.into_json(&result)?));
    let reply = match created {
        None => reply,
        Some(location) => reply::into_created(reply, &location),
    };
    Ok(prefer::applied_minimal(reply, minimal))
}

/// The request with its handles in canonical form, for the fingerprint.
fn canonical(request: &NewWorkflow, account: &AccountUid) -> Value {
    let mut request = request.clone();
    for input in &mut request.inputs {
        if let Some(Ok(node)) = input.source_node_id.as_deref().map(NodeId::parse) {
            input.source_node_id = Some(node.to_string());
        }
        if let Some(value) = input.value.as_mut().filter(|_| input.kind == InputKind::Image) {
            *value = Given::parse(value, account).canonical();
        }
    }
    json!(request)
}
