//! `POST /jobs/{jobId}/asset`: makes an asset of the video of a job (docs/reference/videos.md#keep-a-video).

use app::Base;
use app::job::{KeepVideo, KeptIn};
use axum::Extension;
use axum::extract::State;
use domain::Violation;
use domain::account::Scope;
use domain::asset::AssetRead;
use domain::id::{AccountUid, BaseRevision, CanvasHandle, CanvasReference, NodeId, NodeReference};
use domain::message::ReadyTasks;
use http::HeaderMap;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::extract::caller::{Caller, ManageJobs};
use crate::extract::canvas::canvas_of;
use crate::extract::check::Check;
use crate::extract::json::{Input, JsonBody};
use crate::extract::path::{JobInPath, PathText};
use crate::extract::prefer;
use crate::observe::Trace;
use crate::openapi::errors::WriteErrors;
use crate::problem::{Problem, Result, combine_violations};
use crate::reply;
use crate::start::writable;
use crate::state::App;

/// Where a kept video goes.
#[derive(Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VideoKeeping {
    /// Canvas that stores the video, as plain id or handle. Without one, the asset belongs to the account alone.
    #[schema(value_type = Option<CanvasReference>)]
    canvas_id: Option<String>,
    /// Video node of the canvas that shows the video from now on. Needs `canvasId` and `baseRevision`.
    #[schema(value_type = Option<NodeReference>)]
    target_node_id: Option<String>,
    /// The canvas revision that the request is based on. Only with `targetNodeId`.
    #[schema(value_type = Option<BaseRevision>)]
    base_revision: Option<String>,
}

impl Input for VideoKeeping {}

/// A checked request.
#[derive(Default)]
struct Checked {
    canvas: Option<CanvasHandle>,
    node: Option<NodeId>,
    base_revision: Option<String>,
}

impl VideoKeeping {
    fn check(self, account: &AccountUid) -> Result<Checked, Vec<Violation>> {
        let mut check = Check::default();
        let canvas = self.canvas_id.as_deref().and_then(|canvas| canvas_of(&mut check, canvas, None, account));
        let node = self.target_node_id.as_deref();
        check.note_if(node.is_some() && self.canvas_id.is_none(), "canvasId", "is required with targetNodeId");
        check.note_if(node.is_some() && self.base_revision.is_none(), "baseRevision", "is required with targetNodeId");
        check.note_if(node.is_none() && self.base_revision.is_some(), "baseRevision", "needs targetNodeId");
        let node = node.and_then(|node| check.parsed("targetNodeId", NodeId::parse(node)));
        check.finish(|| Some(Checked { canvas, node, base_revision: self.base_revision }))
    }
}

/// Keep a video as an asset
///
/// Makes an asset of the video of a job that has succeeded, so that it stays when the record is removed. Use it for a
/// video that was started without a target. With `canvasId`, which also needs the scope canvas:write, the asset is
/// stored in the canvas and belongs to its owner; with `targetNodeId` and `baseRevision` as well, the node shows it.
/// A repetition changes nothing and returns the same asset, whatever it asks for.
#[utoipa::path(
    post, path = "/jobs/{jobId}/asset", operation_id = "keepJobVideo", tag = "Jobs", request_body = VideoKeeping,
    security(("bearer" = ["job:manage"])),
    params(
        ("jobId" = String, Path, pattern = "^(?:job:)?[0-9a-fA-F-]{36}$", description = "Id or `job:` handle."),
        ("Prefer" = Option<String>, Header, description = "`handling=lenient` accepts a stale `baseRevision` where nothing that the request reads or writes has changed since."),
    ),
    responses(
        WriteErrors,
        (status = 201, description = "The new asset.", body = AssetRead),
        (status = 200, description = "The asset that the video has become before.", body = AssetRead),
    )
)]
pub async fn keep(
    State(app): State<App>,
    caller: Caller<ManageJobs>,
    Extension(trace): Extension<Trace>,
    params: PathText,
    headers: HeaderMap,
    body: JsonBody,
) -> Result {
    let checked = body.checked(|request: VideoKeeping| request.check(&caller.account)).await;
    let (checked, JobInPath(id)) = combine_violations(checked, params.parameter("jobId"))?;
    let Checked { canvas, node, base_revision } = checked;
    let id = id.ok_or(Problem::NotFound("job"))?;
    if let Some(canvas) = &canvas {
        caller.require(&[Scope::CanvasWrite])?;
        // Before the caller waits for the canvas.
        writable(&app, &caller.account, canvas).await?;
    }
    let base = base_revision.map(|revision| Base { revision, lenient: prefer::lenient(&headers) });
    let keep = KeepVideo {
        caller: &caller,
        job: id,
        kept_in: canvas.as_ref().map(|canvas| KeptIn { canvas, node: node.as_ref().zip(base.as_ref()) }),
        settings: app.job_settings(),
        traceparent: trace.0.to_string(),
        ready: ReadyTasks::new(),
    };
    let resource = canvas.as_ref().map_or_else(|| caller.account.to_string(), ToString::to_string);
    let permit = app.writers.pass(&caller.account, &resource).await?;
    let (record, was_kept) = caller.run(&app, &keep).await?;
    taskqueue::failpoint!("keep.committed");
    drop(permit);
    app.waker.wake_all(&keep.ready);
    let location = format!("/assets/{}", record.handle);
    let urls = app.previews.urls(&app.keys, &record, service::clock::now());
    let asset = record.document(&caller.account, urls);
    Ok(match was_kept {
        true => reply::ok(&AssetRead::new(asset, Some(true))),
        false => reply::created(&location, &AssetRead::new(asset, None)),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_target_needs_its_canvas_and_a_revision() {
        let fields = |body: Value| {
            let request: VideoKeeping = serde_json::from_value(body).expect("has the right shape");
            let checked = request.check(&AccountUid::from_stored("me".into()));
            checked.err().unwrap_or_default().into_iter().map(|violation| violation.field).collect::<Vec<_>>()
        };
        for (body, expected) in [
            (json!({}), &[][..]),
            (json!({"canvasId": "c"}), &[]),
            (json!({"canvasId": "c", "targetNodeId": "n", "baseRevision": "r"}), &[]),
            (json!({"targetNodeId": "n"}), &["canvasId", "baseRevision"]),
            (json!({"canvasId": "c", "targetNodeId": "a b"}), &["baseRevision", "targetNodeId"]),
            (json!({"canvasId": "c", "baseRevision": "r"}), &["baseRevision"]),
        ] {
            assert_eq!(fields(body.clone()), expected, "{body}");
        }
    }
}
