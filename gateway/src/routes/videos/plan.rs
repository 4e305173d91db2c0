//! The checks of a video request against stored state (docs/reference/videos.md), and the start of one with a target.

use app::job::{Destination, ExpectedResult, Found, JobPlan, JobStart, PlannedJob, Reads, Work, target_is_taken};
use app::{Base, LockedCanvas, Wanted};
use canvas::Footprint;
use db::PgConnection;
use db::accounts::Credential;
use db::assets::InputImage;
use domain::Violation;
use domain::asset::AssetKind;
use domain::graph::{Named, Node, NodeType};
use domain::id::{AccountUid, JobId, NodeId};
use domain::job::{ChosenModel, JobOperation, Request, VideoRequest};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::images::RequestedImage;
use super::rules::{Checked, Target, capability, not_offered};
use crate::extract::idempotency::fingerprint;
use crate::models::choose;
use crate::observe::Trace;
use crate::place::with_destination;
use crate::start::{with_cap, with_wanted};
use crate::state::App;

pub(super) const PATH: &str = "/videos/generate";

/// The canonical body of a request, without its target.
pub fn canonical(request: &Checked) -> Value {
    let images = &request.images;
    let reference = |it: &RequestedImage| json!({"handle": it.named.to_string(), "role": it.role});
    let mut body = json!({
        "model": request.model, "connectionId": request.connection, "prompt": request.prompt,
        "aspectRatio": request.aspect_ratio, "durationSeconds": request.duration_seconds,
        "resolution": request.resolution, "generateAudio": request.generate_audio,
        "firstFrame": images.first.as_ref().map(|it| it.named.to_string()),
        "lastFrame": images.last.as_ref().map(|it| it.named.to_string()),
        "references": images.references.iter().map(reference).collect::<Vec<_>>(),
    });
    if let Some(webhook) = &request.webhook {
        body["webhook"] = json!(webhook);
    }
    with_wanted(with_cap(body, &request.terms), &request.wanted)
}

/// The model of a request that passed all checks, and the request as it is stored, without a target.
pub struct Chosen {
    pub model: ChosenModel,
    pub estimated_seconds: i32,
    pub request: VideoRequest,
}

impl Chosen {
    /// Checks a request whose [handles](super::images::Images::stored) mean the images `found`. 422 with every violation, also those
    /// in `refused`.
    pub async fn choose(
        app: &App,
        conn: &mut PgConnection,
        account: &AccountUid,
        request: &Checked,
        found: Vec<Option<InputImage>>,
        mut refused: Vec<Violation>,
    ) -> app::Result<Self> {
        let capability = capability(&request.images);
        let models = app.runnable(conn, account).await?;
        let chosen = choose(&models, Some(&request.model), request.connection.as_deref(), capability.into());
        let model = chosen.map_err(|violation| refused.push(violation)).ok();
        if let Some(model) = model {
            refused.extend(not_offered(&model.entry, request));
        }
        let found = request.images.resolve(found, &mut refused);
        let Some(model) = model.filter(|_| refused.is_empty()) else {
            return Err(app::Error::Unprocessable(refused));
        };
        let (estimated_seconds, model) = (model.estimated_seconds(), model.chosen());
        let request = VideoRequest {
            model: model.clone(),
            capability,
            prompt: request.prompt.clone(),
            duration_seconds: request.duration_seconds,
            aspect_ratio: request.aspect_ratio.clone(),
            resolution: request.resolution.clone(),
            generate_audio: request.generate_audio,
            first_frame: found.first,
            last_frame: found.last,
            references: found.references,
            target: None,
        };
        Ok(Self { model, estimated_seconds, request })
    }
}

/// A video to make for a node.
struct Video {
    app: App,
    request: Checked,
    destination: Destination,
}

/// The start of a request with a target. Different spellings of one request have the same fingerprint.
pub fn on_canvas(
    app: &App,
    caller: &Credential,
    mut request: Checked,
    Target { canvas, base_revision, destination }: Target,
    lenient: bool,
    trace: Trace,
) -> JobStart {
    let mut body = canonical(&request);
    body["baseRevision"] = json!(base_revision);
    body["targetNodeId"] = json!(destination.existing().first());
    JobStart {
        caller: caller.clone(),
        ids: vec![JobId::generate()],
        fingerprint: fingerprint(PATH, &canvas.to_string(), &with_destination(body, &destination)),
        canvas,
        base: Base { revision: base_revision, lenient },
        terms: request.terms.clone(),
        webhook: request.webhook.take(),
        traceparent: trace.0.to_string(),
        work: Box::new(Video { app: app.clone(), request, destination }),
    }
}

impl Work for Video {
    fn destination(&self) -> &Destination {
        &self.destination
    }

    fn wanted(&self) -> Option<Wanted> {
        Some(self.request.wanted)
    }

    fn footprint(&self) -> Footprint {
        Footprint::of_nodes(self.request.images.stored().filter_map(Named::node))
    }

    fn reads(&self) -> Reads<'_> {
        Reads { nodes: Vec::<&NodeId>::new(), images: self.request.images.stored().collect(), kind: AssetKind::Image }
    }

    fn plan<'a>(
        &'a self,
        conn: &'a mut PgConnection,
        caller: &'a Credential,
        canvas: &'a LockedCanvas,
        found: Found,
    ) -> BoxFuture<'a, app::Result<JobPlan>> {
        Box::pin(async move {
            let (existing, mut refused) = target(found.targets)?;
            let graph = self.destination.load(conn, &canvas.record, &mut refused).await?;
            let chosen = Chosen::choose(&self.app, conn, &caller.account, &self.request, found.images, refused).await?;
            let Chosen { model, estimated_seconds, request } = chosen;
            let ratio = request.aspect_ratio.as_deref().and_then(ratio);
            let read = self.request.images.links();
            let results = vec![ExpectedResult { size: ratio, read }];
            let targets = self.destination.prepare(caller, graph, existing, results, Some(&request.prompt))?;
            let request = Request::Video(VideoRequest { target: targets.ids().pop(), ..request });
            Ok(JobPlan {
                operation: JobOperation::Generate,
                jobs: vec![PlannedJob { request, estimated_seconds, credit_cost: model.credit_cost }],
                summary: "started a video".to_owned(),
                targets,
            })
        })
    }
}

/// Checks the target, if it exists already: a video node of the canvas (422) without an active job (409).
fn target(targets: Vec<Option<Node>>) -> app::Result<(Vec<Node>, Vec<Violation>)> {
    let (mut found, mut refused) = (Vec::new(), Vec::new());
    for node in targets {
        match node {
            Some(Node { active_job: Some(_), .. }) => return Err(target_is_taken()),
            Some(node) if node.kind == NodeType::Video => found.push(node),
            Some(_) => refused.push(Violation::new("targetNodeId", "must be a video node")),
            None => refused.push(Violation::new("targetNodeId", "is not a node of the canvas")),
        }
    }
    Ok((found, refused))
}

/// Width and height of an aspect ratio such as `16:9`; `None` for one that is not of two numbers.
fn ratio(text: &str) -> Option<(f64, f64)> {
    let (width, height) = text.split_once(':')?;
    let side = |text: &str| text.parse::<f64>().ok().filter(|side| (0.1..=100.0).contains(side));
    Some((side(width)?, side(height)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_aspect_ratio_is_two_numbers() {
        for (text, sides) in [
            ("16:9", Some((16.0, 9.0))),
            ("2.4:1", Some((2.4, 1.0))),
            ("auto", None),
            ("16:", None),
            ("0:9", None),
            ("1:1000", None),
            ("NaN:1", None),
        ] {
            assert_eq!(ratio(text), sides, "{text}");
        }
    }
}
