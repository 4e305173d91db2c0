//! `GET /canvases/{canvasId}/review`: the findings and the review of a canvas in its present state
//! (docs/reference/canvases.md#review).

use axum::extract::{OriginalUri, State};
use canvas::repair::{Repaired, repair};
use canvas::{Graph, Touched};
use db::PgConnection;
use domain::canvas::CanvasRecord;
use domain::id::{AccountUid, CanvasReference, JobId};
use domain::job::{Record, Request};
use domain::review::{CanvasReview, OwingWork, Remedy, RemedyKind, Repairs, WorkRepair};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::IntoParams;
use uuid::Uuid;

use crate::extract::caller::ReadCanvas;
use crate::extract::canvas::CanvasAccess;
use crate::extract::query::{OwnerQuery, QueryReader};
use crate::openapi::errors::ReadErrors;
use crate::problem::{Problem, Result, combine_violations};
use crate::reply;
use crate::state::App;

/// Targets of an image start at most.
const TARGETS_MAX: u32 = 4;

/// What a review has besides findings and status.
#[derive(Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ReviewQuery {
    /// `true` adds what would end the findings and debts that hold the claim.
    #[serde(default)]
    repairs: bool,
}

/// Review a canvas as it is
///
/// Returns the findings and the completion review of the stored canvas. Use it before reporting that work is
/// done: do not claim completion while `completionReview.doneClaimAllowed` is false. With `repairs=true` it says what
/// would make it true: a batch of operations, deletions apart from it, and requests for work that owes outputs. It
/// changes nothing.
#[utoipa::path(
    get, path = "/canvases/{canvasId}/review", operation_id = "reviewCanvas", tag = "Canvases",
    security(("bearer" = ["canvas:read"])),
    params(
        ("canvasId" = CanvasReference, Path, description = "Plain id or handle."),
        OwnerQuery,
        ReviewQuery,
    ),
    responses(ReadErrors, (status = 200, description = "Findings and completion review.", body = CanvasReview))
)]
pub async fn review(State(app): State<App>, on: CanvasAccess<ReadCanvas>, OriginalUri(uri): OriginalUri) -> Result {
    let mut query = QueryReader::new(&uri);
    let ReviewQuery { repairs } = query.read().unwrap_or_default();
    combine_violations(on.named(), query.finish())?;
    let (handle, record, _) = on.readable()?;
    let room = app.documents.reserve(&on.caller.account, record.graph_bytes).await?;
    let mut snapshot = db::pool::snapshot(&app.pool).await?;
    let (record, role) =
        db::canvases::find(&mut snapshot, &on.caller.account, handle).await?.ok_or(Problem::NotFound("canvas"))?;
    let graph = match app.graphs.present(&record) {
        Some(graph) => Graph::clone(&graph),
        None => {
            let (nodes, connections) = db::canvases::skeleton(&mut snapshot, record.key).await?;
            Graph::new(record.title.clone(), record.graph_bytes, nodes, connections)
        }
    };
    let assets = app::canvas::stored_assets(&mut snapshot, &graph).await?;
    let works = db::jobs::owing(&mut snapshot, record.key, &on.caller.account).await?;
    let validation = canvas::validate(&graph, &Touched::default(), &assets, &works);
    let repairs = match repairs {
        true => {
            let works = work_repairs(&app, &mut snapshot, &on.caller.account, &record, &works).await?;
            let Repaired { operations, deletions, leaves } = repair(graph, &assets);
            Some(Repairs { operations, deletions, works, leaves })
        }
        false => None,
    };
    let review = CanvasReview { canvas: record.summary(Some(role)), validation, repairs };
    Ok(reply::private(reply::document(room.into_json(&review)?)))
}

/// The remedies of the works that owe outputs.
async fn work_repairs(
    app: &App,
    conn: &mut PgConnection,
    account: &AccountUid,
    canvas: &CanvasRecord,
    works: &[OwingWork],
) -> Result<Vec<WorkRepair>> {
    let mut repairs = Vec::new();
    for work in works.iter().filter(|work| work.owed > 0) {
        let (kind, id) = work.handle.split_once(':').unwrap_or_default();
        let path = format!("/{kind}s/{id}");
        let remedy = |kind: RemedyKind, path: String| Remedy { kind: kind.into(), path, body: None };
        let mut remedies = Vec::new();
        if work.is_active {
            remedies.push(remedy(RemedyKind::Wait, path));
        } else {
            let id = Uuid::try_parse(id).map(JobId).map_err(Problem::internal)?;
            let record = db::jobs::get(conn, id, account, app.config.retention_tombstone).await?;
            remedies.extend(record.and_then(|record| retry(&record, work, canvas)));
            remedies.push(remedy(RemedyKind::GiveUp, format!("{path}?removeTargets=true")));
        }
        repairs.push(WorkRepair { handle: work.handle.clone(), remedies });
    }
    Ok(repairs)
}

/// The start of what ended work owes, or of as much of it as one start makes: the rest is still owed.
fn retry(record: &Record, work: &OwingWork, canvas: &CanvasRecord) -> Option<Remedy> {
    let handle = canvas.handle.to_string();
    let (path, body) = match &record.request {
        Request::Image(image) => {
            let mask = image.mask.as_ref();
            // What a mask is of comes first.
            let (source, references) = image.references.split_at(mask.map_or(0, |_| 1));
            let references: Vec<Value> =
                references.iter().map(|it| json!({"handle": it.handle, "role": it.role})).collect();
            let body = json!({
                "canvasId": handle, "baseRevision": canvas.revision, "model": model(&image.model.key),
                "prompt": Some(&image.prompt).filter(|prompt| !prompt.is_empty()), "size": image.size, "quality": image.quality,
                "references": Some(references).filter(|references| !references.is_empty()), "place": {"count": work.owed.min(TARGETS_MAX)},
                "source": source.first().map(|it| &it.handle),
                "mask": mask.map(|it| json!({"handle": it.handle, "mode": it.mode, "invert": it.invert})),
                "maskFeather": mask.map(|it| it.feather),
                "maskComposite": mask.filter(|it| !it.composite).map(|it| it.composite),
            });
            (format!("/images/{}", record.operation), body)
        }
        Request::Video(video) => {
            let references = video.references.iter().map(|it| json!({"handle": it.named, "role": it.role}));
            let body = json!({
                "canvasId": handle, "model": model(&video.model.key), "prompt": video.prompt,
                "durationSeconds": video.duration_seconds, "aspectRatio": video.aspect_ratio, "resolution": video.resolution,
                "generateAudio": video.generate_audio, "firstFrame": video.first_frame.as_ref().map(|it| &it.named),
                "lastFrame": video.last_frame.as_ref().map(|it| &it.named), "references": references.collect::<Vec<_>>(),
            });
            ("/videos/generate".to_owned(), body)
        }
        _ => return None,
    };
    let Value::Object(mut body) = without_nulls(body) else { return None };
    body.insert("retryOf".into(), work.handle.clone().into());
    Some(Remedy { kind: RemedyKind::Retry.into(), path, body: Some(body) })
}

fn model(key: &str) -> String {
    format!("model:{key}")
}

/// The value without members that are `null`.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(members.map(|(name, value)| (name, without_nulls(value))).collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        value => value,
    }
}
