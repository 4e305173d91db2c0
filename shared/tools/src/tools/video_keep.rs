//! Keeping a video.

use client::answers::AssetRead;
use domain::account::Scope;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::answer::Answer;
use crate::call::Call;
use crate::canvas_name::CanvasName;
use crate::tool::{Hints, Result, Tool};
use crate::work;

pub struct VideoKeep;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    job: String,
    /// Store it in this canvas
    canvas: Option<CanvasName>,
    /// Show it in this video node of the canvas
    target: Option<String>,
    /// With target
    revision: Option<String>,
}

#[serde_with::skip_serializing_none]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    asset: String,
    duration_seconds: Option<f64>,
    /// `true` if it was kept before.
    was_kept: bool,
}

impl Tool for VideoKeep {
    const NAME: &'static str = "video_keep";
    const TITLE: &'static str = "Keep a video";
    const ABOUT: &'static str = "Make an asset of the video of a job, which stays after the job's 30 days.";
    const HINTS: Hints = Hints::ADD_ONCE;
    const SCOPES: &'static [Scope] = &[Scope::JobManage];
    type Arguments = Arguments;
    type Output = Output;

    async fn run(call: &Call, arguments: Arguments) -> Result<Answer<Output>> {
        let mut body = json!({});
        for (name, value) in [
            ("canvasId", arguments.canvas.map(|canvas| canvas.handle())),
            ("targetNodeId", arguments.target),
            ("baseRevision", arguments.revision),
        ] {
            if let Some(value) = value {
                body[name] = value.into();
            }
        }
        let kept = call.client.keep_job_video(&arguments.job).json(&body).prefer("handling=lenient").await?;
        let AssetRead { asset, replayed } = kept.value()?;
        let handle = asset.handle.to_string();
        let output = Output {
            asset: handle.clone(),
            duration_seconds: asset.duration_seconds,
            was_kept: replayed == Some(true),
        };
        Ok(work::show(&call.client, Answer::new(output), &[handle]).await)
    }
}
