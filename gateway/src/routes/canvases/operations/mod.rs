//! `POST /canvases/{canvasId}/operations`: a batch, atomic and in order, safe against concurrent change (decisions 4).

mod dry_run;

use std::collections::HashSet;

use axum::extract::State;
use canvas::{Batch, Options};
use db::canvases::NewActivity;
use domain::Violation;
use domain::account::Scope;
use domain::canvas::{ActivityType, MutationResult};
use domain::id::CanvasHandle;
use domain::idempotency::Outcome;
use domain::limits::OPERATIONS_BODY_MAX;
use domain::operation::Operation;
use domain::review::{DryRun, Validation};
use http::HeaderMap;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};

use self::dry_run::Trial;
use super::review::stored_assets;
use super::write::{self, refusal};
use crate::extract::caller::{Caller, ReadCanvas};
use crate::extract::canvas::{OnCanvas, require_writer};
use crate::extract::idempotency::{fingerprint, replay};
use crate::extract::json::{Either, Input, Unread, items, only};
use crate::extract::prefer;
use crate::problem::{Problem, Result};
use crate::reply;
use crate::state::{App, retrying};

const PATH: &str = "/canvases/{canvasId}/operations";

/// A batch of operations, to apply or to try.
#[derive(ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "the document's form of the two bodies, of which each request has one")]
pub enum OperationsRequest {
    /// To apply.
    Apply(ApplyOperations),
    /// To try.
    Validate(ValidateOperations),
}

/// A batch to apply.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApplyOperations {
    /// The revision that the batch was made for.
    #[schema(min_length = 1, max_length = 200)]
    base_revision: String,
    /// Names this batch, so that sending it again does nothing twice.
    #[schema(min_length = 8, max_length = 200)]
    idempotency_key: String,
    /// Applies the batch even where it would take a node from an unfinished job, or findings of severity error block it.
    #[serde(default)]
    force: bool,
    /// Whether to try the batch and write nothing.
    #[serde(default)]
    #[schema(schema_with = only_false)]
    validate_only: bool,
    /// What to do, in order.
    #[schema(min_items = 1, max_items = 200)]
    operations: Vec<Operation>,
}

/// A batch to try: nothing is written.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ValidateOperations {
    /// The revision that the batch was made for; the current one when left out.
    #[schema(min_length = 1, max_length = 200, nullable = false)]
    base_revision: Option<String>,
    /// Not looked at, whatever its form.
    #[serde(default, rename = "idempotencyKey")]
    #[schema(value_type = Value, required = false)]
    _idempotency_key: IgnoredAny,
    /// Tries the batch even where it would take a node from an unfinished job.
    #[serde(default)]
    force: bool,
    /// Tries the batch and writes nothing.
    #[serde(rename = "validateOnly")]
    #[schema(schema_with = only::<true>)]
    _validate_only: bool,
    /// What to try, in order.
    #[schema(min_items = 1, max_items = 200)]
    operations: Vec<Operation>,
}

impl Input for ApplyOperations {
    const LIMIT: usize = OPERATIONS_BODY_MAX;

    fn check_value(body: &Value) -> Vec<Violation> {
        violations(body)
    }
}

impl Input for ValidateOperations {
    const LIMIT: usize = OPERATIONS_BODY_MAX;
    const IGNORED: &[&str] = &["idempotencyKey"];

    fn check_value(body: &Value) -> Vec<Violation> {
        violations(body)
    }
}

/// What is wrong with the operations of a body that its schema refuses. Of one that cannot be read the schema has spoken; in
/// its place stands one of which there is nothing to say.
fn violations(body: &Value) -> Vec<Violation> {
    let read = |item| Operation::deserialize(item).unwrap_or(Operation::CanvasUpdate { title: String::new() });
    Batch::new(items(&body["operations"]).iter().map(read).collect()).err().unwrap_or_default()
}

/// The schema of a switch that is off.
fn only_false() -> impl Into<RefOr<Schema>> {
    ObjectBuilder::new().schema_type(Type::Boolean).enum_values(Some([false])).default(Some(false.into()))
}

/// What came of a batch.
#[derive(ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "the document's form of the two answers, of which each request gets one")]
pub enum OperationsAnswer {
    /// It was applied.
    Applied(Box<MutationResult>),
    /// It was tried.
    Tried(Box<DryRun>),
}

/// Apply a batch of operations, or try it
#[utoipa::path(
    post, path = "/canvases/{canvasId}/operations", operation_id = "applyOperations", tag = "Canvases", request_body = OperationsRequest,
    security(("bearer" = ["canvas:read"])),
    params(
        ("canvasId" = String, Path, pattern = "^(canvas:([A-Za-z0-9_-]{1,180}:)?)?[A-Za-z0-9_-]{1,180}$", description = "Plain id or handle."),
        ("ownerUid" = Option<String>, Query, pattern = "^[A-Za-z0-9_-]{1,180}$", description = "Owner, with a plain id."),
        ("Prefer" = Option<String>, Header, description = "`return=minimal` leaves the lists of nodes and connections out of `canvas` (an extension)."),
    ),
    responses((status = 200, body = OperationsAnswer))
)]
pub async fn operations(State(app): State<App>, on: OnCanvas<ReadCanvas>, headers: HeaderMap, body: Unread) -> Result {
    let sent = body.json_of(|body| body["validateOnly"] == true).await;
    let (sent, _share) = sent.map_err(|problem| problem.and(on.violations()))?;
    match sent {
        Either::First(request) => try_batch(&app, &on, request).await,
        Either::Second(request) => apply_batch(&app, &on, prefer::minimal(&headers), request).await,
    }
}

async fn try_batch(app: &App, on: &OnCanvas<ReadCanvas>, request: ValidateOperations) -> Result {
    let batch = checked(on, request.operations)?;
    let (handle, record, _) = on.readable()?;
    let _room = app.documents.room(record.graph_bytes).await?;
    let base_revision = request.base_revision.as_deref();
    let trial = Trial { caller: &on.caller, handle, batch: &batch, force: request.force, base_revision };
    Ok(reply::ok(&trial.run(app).await?))
}

async fn apply_batch(app: &App, on: &OnCanvas<ReadCanvas>, minimal: bool, request: ApplyOperations) -> Result {
    // The copy that it is taken of is gone before the batch is copied into the graph.
    let fingerprint = on.named().map(|handle| fingerprint(PATH, &handle.to_string(), &canonical(&request)));
    let batch = checked(on, request.operations)?;
    let fingerprint = fingerprint?;
    on.caller.require(&[Scope::CanvasWrite])?;
    let (handle, record, role) = on.readable()?;
    require_writer(role)?;
    let write = Write {
        caller: &on.caller,
        handle,
        batch: &batch,
        force: request.force,
        base_revision: &request.base_revision,
        key: &request.idempotency_key,
        fingerprint,
        minimal,
    };
    let turn = app.writers.pass(&handle.to_string()).await?;
    let room = app.documents.room(record.graph_bytes).await?;
    let result = retrying(|| write.attempt(app)).await?;
    drop(turn);
    let reply = reply::private(reply::document(room.house_json(&result)?));
    Ok(if minimal { prefer::applied_minimal(reply) } else { reply })
}

/// The operations as a batch; what is wrong with them is told together with what is wrong with the path.
fn checked(on: &OnCanvas<ReadCanvas>, operations: Vec<Operation>) -> Result<Batch> {
    Batch::new(operations).map_err(|violations| Problem::Invalid(violations).and(on.violations()))
}

/// The request with handles brought to plain ids, so that two spellings of one batch are one batch (decisions 18.2).
///
/// A handle that a `clientId` of the batch equals stays one: there the plain form means what the batch makes.
fn canonical(request: &ApplyOperations) -> Value {
    let mut body = serde_json::to_value(request).expect("a parsed request serializes");
    let made: HashSet<String> = body["operations"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|operation| operation["clientId"].as_str().map(str::to_owned))
        .collect();
    for operation in body["operations"].as_array_mut().into_iter().flatten() {
        for field in ["nodeId", "fromNodeId", "toNodeId", "connectionId"] {
            strip_kind(operation.get_mut(field), &made);
        }
        for holder in ["node", "patch"] {
            strip_kind(operation.pointer_mut(&format!("/{holder}/metadata/sectionId")), &made);
        }
    }
    body
}

fn strip_kind(id: Option<&mut Value>, made: &HashSet<String>) {
    if let Some(Value::String(id)) = id
        && let Some((_, plain)) = id.split_once(':')
        && !made.contains(plain)
    {
        *id = plain.to_owned();
    }
}

struct Write<'a> {
    caller: &'a Caller<ReadCanvas>,
    handle: &'a CanvasHandle,
    batch: &'a Batch,
    force: bool,
    base_revision: &'a str,
    key: &'a str,
    fingerprint: [u8; 32],
    /// Whether the answer leaves out nodes and connections.
    minimal: bool,
}

impl Write<'_> {
    /// One transaction: key, canvas row, revision, graph, rows, revision, outcome.
    async fn attempt(&self, app: &App) -> Result<MutationResult> {
        let caller = self.caller;
        let mut transaction = app.transaction().await?;
        let taken = db::idempotency::take(&mut transaction, &caller.account, self.key, &self.fingerprint).await?;
        let replayed = replay(taken)?;
        let (record, role) = write::lock(&mut transaction, &caller.account, self.handle).await?;
        if replayed.is_none() && record.revision != self.base_revision {
            return Err(Problem::stale(&record, self.base_revision));
        }
        let mut graph = write::graph(&mut transaction, &record).await?;
        if let Some(outcome) = replayed {
            let Outcome::Operations { resolved_ids, changes } = outcome else {
                return Err(Problem::internal("the outcome of a batch is of another kind"));
            };
            let canvas = write::after(self.minimal, &record, role, graph);
            return Ok(MutationResult { canvas, replayed: true, resolved_ids, changes });
        }
        let options = Options { agent: caller.surface.is_agent(), force: self.force };
        let mut applied = canvas::apply(&mut graph, self.batch, options).map_err(refusal)?;
        if !self.force && canvas::is_blocked(&graph, &applied.touched) {
            let assets = stored_assets(&mut transaction, &graph).await?;
            let Validation { findings, completion_review, .. } = canvas::validate(&graph, &applied.touched, &assets);
            return Err(Problem::Blocked(json!({"findings": findings, "completionReview": completion_review})));
        }
        let count = self.batch.operation_count();
        let activity = NewActivity {
            kind: ActivityType::OperationsApplied,
            actor: &caller.actor(),
            summary: format!("applied {count} operation{}", if count == 1 { "" } else { "s" }),
            nodes: &applied.changes.changed_node_ids,
        };
        let record = write::commit(&mut transaction, &record, &graph, &applied, activity).await?;
        let outcome = Outcome::Operations {
            resolved_ids: std::mem::take(&mut applied.resolved_ids),
            changes: std::mem::take(&mut applied.changes),
        };
        db::idempotency::store(&mut transaction, &caller.account, self.key, &outcome).await?;
        db::pool::commit(transaction).await?;
        let Outcome::Operations { resolved_ids, changes } = outcome else { unreachable!("made above") };
        let canvas = write::after(self.minimal, &record, role, graph);
        Ok(MutationResult { canvas, replayed: false, resolved_ids, changes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::peak_of;
    use crate::extract::json::{REFUSAL_COPIES, validate};

    fn batch(operation: &Value) -> Value {
        json!({"baseRevision": "r", "idempotencyKey": "12345678", "operations": vec![operation; 50]})
    }

    /// The most that the refusal of a body holds, against the body's size.
    fn copies_to_refuse(operation: &Value) -> f64 {
        // The schema is compiled at its first use.
        assert!(validate::<ApplyOperations>(json!({})).is_err());
        let body = batch(operation);
        let bytes = body.to_string().len();
        peak_of(|| assert!(validate::<ApplyOperations>(body).is_err())) as f64 / bytes as f64
    }

    /// A refused body is copied for each form that it has not, and there is memory for so many copies of it.
    #[test]
    fn a_refusal_takes_no_more_than_is_reserved_for_it() {
        let text = "x".repeat(20_000);
        let node = |more: Value| json!({"type": "text", "position": {"x": 0, "y": 0}, "metadata": more});
        for operation in [
            json!({"type": "node.create", "node": node(json!({"content": text})), "surplus": 1}),
            json!({"type": "absent", "node": node(json!({"content": text}))}),
            json!({"a": text}),
            json!({"type": text}),
            json!([text]),
            json!({"type": "node.update", "nodeId": "n", "patch": {"surplus": text}}),
        ] {
            let copies = copies_to_refuse(&operation);
            println!("{copies:.1} copies: {:.60}", operation.to_string());
            assert!(copies <= REFUSAL_COPIES as f64, "{copies} copies: {:.60}", operation.to_string());
        }
    }

    #[test]
    fn what_is_in_custom_is_not_copied_for_a_refusal() {
        let custom = json!({"a": "x".repeat(60_000)});
        let node = json!({"type": "text", "position": {"x": 0, "y": 0}, "metadata": {"custom": custom}});
        let copies = copies_to_refuse(&json!({"type": "node.create", "node": node, "surplus": 1}));
        assert!(copies <= 1.0, "{copies} copies");
    }

    #[test]
    fn a_large_body_is_refused_within_the_memory_there_is() {
        let node = json!({"type": "text", "position": {"x": 0, "y": 0}, "metadata": {"content": "x".repeat(60_000)}});
        let operation = json!({"type": "node.create", "node": node, "surplus": 1});
        let body = json!({"baseRevision": "r", "idempotencyKey": "12345678", "operations": vec![operation; 200]});
        let peak = peak_of(|| {
            let refused = validate::<ApplyOperations>(body).err();
            assert!(matches!(refused, Some(Problem::Invalid(told)) if !told.is_empty()));
        });
        assert!(peak <= 256 * 1024 * 1024, "{peak}");
    }
}
