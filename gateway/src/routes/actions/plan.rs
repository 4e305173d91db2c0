//! The checks of Action runs against stored state (docs/reference/actions.md). A run of one Action is a chain of one step.

use actions::{DefinedAction, Estimate, Frame, NotUnderstood, Prepared, Source, Unfit};
use app::job::{Destination, ExpectedResult, Found, JobPlan, JobStart, PlannedJob, Reads, Work, link, target_is_taken};
use app::{Base, LockedCanvas, Terms};
use canvas::Footprint;
use db::PgConnection;
use db::accounts::Credential;
use db::assets::InputImage;
use domain::Violation;
use domain::action::Medium;
use domain::asset::AssetKind;
use domain::graph::{Named, Node, NodeType, Purpose};
use domain::id::{CanvasHandle, JobId};
use domain::job::{ActionRequest, ActionStep, Input as JobInput, JobOperation, Request};
use domain::webhook::WebhookInput;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

use crate::extract::idempotency::fingerprint;
use crate::observe::Trace;
use crate::place::with_destination;
use crate::start::with_cap;

/// Violation of an input that is not a handle.
pub(super) const NOT_AN_IMAGE: &str = "must be a node or asset handle";

/// What all starts of Actions have, checked.
pub(super) struct Checked {
    pub canvas: CanvasHandle,
    pub base_revision: String,
    pub terms: Terms,
    pub webhook: Option<WebhookInput>,
    pub destination: Destination,
}

/// An Action with its parameters, normalized.
pub(super) struct Step {
    pub action: &'static DefinedAction,
    pub params: Map<String, Value>,
    /// Its second input.
    pub with: Option<Named>,
}

/// Actions, each of which reads what the one before it made, on each of the inputs. The images are not looked up yet.
pub(super) struct Run {
    pub form: Form,
    /// At least one.
    pub steps: Vec<Step>,
    /// What the first step of each job reads.
    pub inputs: Vec<Named>,
    pub destination: Destination,
}

/// The names of the members of a request.
#[derive(Clone, Copy)]
pub(super) enum Form {
    /// Those of a run of one Action.
    One,
    /// Those of a chain.
    Chain,
}

impl Form {
    /// A member of a step that reads this input. `field` is its name in a run of one Action.
    fn field(self, step: usize, input: usize, field: &str) -> String {
        match (self, field, step) {
            (Self::One, ..) => field.to_owned(),
            (Self::Chain, "inputs[0]", 0) => format!("inputs[{input}]"),
            (Self::Chain, "inputs[1]", _) => format!("steps[{step}].with"),
            // What the step before made, or both images.
            (Self::Chain, "inputs" | "inputs[0]", _) => format!("steps[{step}]"),
            (Self::Chain, field, _) => format!("steps[{step}].{field}"),
        }
    }

    fn target(self, index: usize) -> String {
        match self {
            Self::One => "targetNodeId".to_owned(),
            Self::Chain => format!("targetNodeIds[{index}]"),
        }
    }
}

impl Checked {
    /// The start of the runs. `body` is the canonical request without its cap and destination.
    pub fn start(
        self,
        caller: &Credential,
        path: &'static str,
        body: Value,
        run: Run,
        lenient: bool,
        trace: Trace,
    ) -> JobStart {
        let Self { canvas, base_revision, terms, webhook, destination } = self;
        let body = with_destination(with_cap(body, &terms), &destination);
        JobStart {
            caller: caller.clone(),
            ids: run.inputs.iter().map(|_| JobId::generate()).collect(),
            fingerprint: fingerprint(path, &canvas.to_string(), &body),
            canvas,
            base: Base { revision: base_revision, lenient },
            terms,
            webhook,
            traceparent: trace.0.to_string(),
            work: Box::new(run),
        }
    }
}

impl Work for Run {
    fn is_free(&self) -> bool {
        true
    }

    fn destination(&self) -> &Destination {
        &self.destination
    }

    fn footprint(&self) -> Footprint {
        Footprint::of_nodes(self.images().filter_map(Named::node))
    }

    fn reads(&self) -> Reads<'_> {
        let kind = match self.medium() {
            Medium::Image => AssetKind::Image,
            Medium::Video => AssetKind::Video,
        };
        Reads { nodes: Vec::new(), images: self.images().collect(), kind }
    }

    fn plan<'a>(
        &'a self,
        conn: &'a mut PgConnection,
        caller: &'a Credential,
        canvas: &'a LockedCanvas,
        found: Found,
    ) -> BoxFuture<'a, app::Result<JobPlan>> {
        Box::pin(async move {
            let mut refused = Vec::new();
            for (index, target) in found.targets.iter().enumerate() {
                refused.extend(self.check_target(index, target.as_ref())?);
            }
            let graph = self.destination.load(conn, &canvas.record, &mut refused).await?;
            let images = self.readable(found.images, &mut refused);
            if !refused.is_empty() {
                return Err(app::Error::Unprocessable(refused));
            }
            let (inputs, seconds) = images.split_at(self.inputs.len());
            let steps = self.stored_steps();
            let estimates = self.estimates(&steps, inputs, seconds)?;
            let existing = found.targets.into_iter().flatten().collect();
            let results = self.inputs.iter().zip(&estimates).map(|(input, estimate)| self.expected(input, *estimate));
            let targets = self.destination.prepare(caller, graph, existing, results.collect(), None)?;
            let planned = self.inputs.iter().zip(inputs).zip(&estimates).zip(&targets.nodes);
            let jobs = planned.map(|(((named, image), estimate), target)| -> app::Result<PlannedJob> {
                let second = self.steps.iter().filter_map(|step| step.with.as_ref()).zip(seconds);
                let read = std::iter::once((named, image)).chain(second);
                let read =
                    read.map(|(named, image)| JobInput { handle: named.to_string(), asset: image.handle.clone() });
                let request = ActionRequest::new(steps.clone(), read.collect(), target.id.clone());
                let request = request.ok_or_else(|| app::Error::Inconsistent("a run without an Action".into()))?;
                let estimated_seconds = estimate.map_or(1, |estimate| estimate.seconds);
                Ok(PlannedJob { request: Request::Action(request), estimated_seconds, credit_cost: 0 })
            });
            let jobs = jobs.collect::<app::Result<Vec<_>>>()?;
            Ok(JobPlan { operation: JobOperation::Action, jobs, targets, summary: self.summary() })
        })
    }
}

impl Run {
    /// What the first steps read, then the second images of the steps.
    fn images(&self) -> impl Iterator<Item = &Named> {
        self.inputs.iter().chain(self.steps.iter().filter_map(|step| step.with.as_ref()))
    }

    /// What the inputs are. Only the first step may read a video.
    fn medium(&self) -> Medium {
        self.steps.first().map_or(Medium::Image, |step| step.action.medium)
    }

    fn stored_steps(&self) -> Vec<ActionStep> {
        let step = |step: &Step| ActionStep {
            slug: step.action.slug.to_string(),
            version: step.action.version.to_string(),
            params: step.params.clone(),
        };
        self.steps.iter().map(step).collect()
    }

    fn summary(&self) -> String {
        let titles: Vec<String> = self.steps.iter().map(|step| step.action.title.to_lowercase()).collect();
        format!("started {}", titles.join(", "))
    }

    /// Requires that a target is a new, empty image node without an active job (docs/reference/actions.md#target-node). A node with an
    /// active job is a conflict, which is reported before all violations.
    fn check_target(&self, index: usize, target: Option<&Node>) -> app::Result<Option<Violation>> {
        let message = match target {
            Some(node) if node.active_job.is_some() => return Err(target_is_taken()),
            None => "is not a node of the canvas",
            Some(node) if node.kind != NodeType::Image => "must be an image node",
            Some(node) if node.asset.is_some() => "must be empty: it shows an asset already",
            Some(node) if node.recipe().is_some() => "is bound to a Recipe",
            Some(_) => return Ok(None),
        };
        Ok(Some(Violation::new(self.form.target(index), message)))
    }

    /// The images or videos that the run reads now; missing ones are added to `refused`.
    fn readable(&self, found: Vec<Option<InputImage>>, refused: &mut Vec<Violation>) -> Vec<InputImage> {
        let inputs = (0..self.inputs.len()).map(|input| self.form.field(0, input, "inputs[0]"));
        let seconds = self.steps.iter().enumerate().filter(|(_, step)| step.with.is_some());
        let fields = inputs.chain(seconds.map(|(step, _)| self.form.field(step, 0, "inputs[1]")));
        let missing = fields.zip(&found).filter(|(_, image)| image.is_none());
        let message = format!("holds no {} that you can read", self.medium());
        refused.extend(missing.map(|(field, _)| Violation::new(field, message.clone())));
        found.into_iter().flatten().collect()
    }

    /// The estimate for each input; `None` where a step has no result for it, so that its job fails and the others go on.
    ///
    /// # Errors
    ///
    /// If the steps have a result for no input.
    fn estimates(
        &self,
        steps: &[ActionStep],
        inputs: &[InputImage],
        seconds: &[InputImage],
    ) -> app::Result<Vec<Option<Estimate>>> {
        let source = |image: &InputImage| Source::stored(&image.mime_type, (image.width, image.height), 0);
        let (mut estimates, mut refused) = (Vec::with_capacity(inputs.len()), Vec::new());
        for (index, input) in inputs.iter().enumerate() {
            let sources = std::iter::once(input).chain(seconds).map(source).collect();
            let prepared = Prepared::new(steps, sources).map_err(inconsistent)?;
            let judged = within(prepared.frame(), input).and_then(|()| prepared.estimate());
            let judged = judged.map_err(|Unfit { step, violation }| {
                refused.push(Violation::new(self.form.field(step, index, &violation.field), violation.message));
            });
            estimates.push(judged.ok());
        }
        if estimates.iter().all(Option::is_none) {
            refused.dedup();
            return Err(app::Error::Unprocessable(refused));
        }
        Ok(estimates)
    }

    /// What is known of the result for an input.
    fn expected(&self, input: &Named, estimate: Option<Estimate>) -> ExpectedResult {
        let second = self.steps.iter().filter_map(|step| step.with.as_ref());
        ExpectedResult {
            size: estimate.map(|Estimate { output, .. }| (f64::from(output.width), f64::from(output.height))),
            read: std::iter::once(input).chain(second).filter_map(|named| link(named, Purpose::Flow, None)).collect(),
        }
    }
}

fn inconsistent(error: NotUnderstood) -> app::Error {
    app::Error::Inconsistent(format!("a checked run cannot be prepared: {error:?}"))
}

/// Requires that a video lasts until the frame that is read of it, if its duration is known.
fn within(frame: Option<Frame>, input: &InputImage) -> Result<(), Unfit> {
    match (frame, input.duration_ms) {
        (Some(Frame::Seconds(seconds)), Some(duration)) if seconds * 1000.0 >= duration as f64 => {
            let message = format!("must be less than {}, the duration of the video", duration as f64 / 1000.0);
            Err(Unfit { step: 0, violation: Violation::new("params.seconds", message) })
        }
        _ => Ok(()),
    }
}
