//! The checks of an image request against stored state (docs/reference/images.md).

use app::job::{Destination, ExpectedResult, Found, JobPlan, JobStart, PlannedJob, Reads, Work, target_is_taken};
use app::{Base, LockedCanvas, Wanted};
use canvas::Footprint;
use db::PgConnection;
use db::accounts::Credential;
use domain::Violation;
use domain::asset::AssetKind;
use domain::graph::{Node, NodeType, Role};
use domain::id::{JobId, NodeId};
use domain::job::{ImageRequest, JobOperation, Mask, Request};
use domain::limits::PROMPT_MAX;
use domain::model::Capability;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::elements::Elements;
use super::references::Images;
use super::rules::{Checked, CheckedMask, Prompt};
use crate::extract::idempotency::fingerprint_without_defaults;
use crate::models::fit::{self, Asked};
use crate::models::{Need, choose};
use crate::observe::Trace;
use crate::place::with_destination;
use crate::start::{with_cap, with_wanted};
use crate::state::App;

/// Images to generate.
pub struct Generation {
    app: App,
    operation: JobOperation,
    destination: Destination,
    is_listed: bool,
    wanted: Wanted,
    prompt: Prompt,
    images: Images,
    elements: Elements,
    connection: Option<String>,
    model: Option<String>,
    size: Option<String>,
    quality: Option<String>,
}

impl Prompt {
    fn field(&self) -> &'static str {
        match self {
            Self::None | Self::Text(_) => "prompt",
            Self::Node(_) => "promptNodeId",
        }
    }

    fn node(&self) -> Option<&NodeId> {
        match self {
            Self::None | Self::Text(_) => None,
            Self::Node(node) => Some(node),
        }
    }
}

impl Generation {
    /// The start of the work. Different spellings of one request have the same fingerprint.
    pub fn start(
        app: &App,
        caller: &Credential,
        operation: JobOperation,
        request: Checked,
        elements: Elements,
        lenient: bool,
        trace: Trace,
    ) -> JobStart {
        let Checked {
            canvas, terms, destination, is_listed, wanted, prompt, references, source, mask, webhook, ..
        } = request;
        let spelled = references.as_ref().map(|them| {
            them.iter().map(|(named, role)| json!({"handle": named.to_string(), "role": role})).collect::<Vec<_>>()
        });
        let mut body = json!({
            "baseRevision": request.base_revision, "targetNodeIds": destination.existing(),
            "one": !is_listed && !destination.existing().is_empty(), "count": request.count,
            "prompt": match &prompt { Prompt::Text(text) => Some(text), _ => None },
            "promptNodeId": match &prompt { Prompt::Node(node) => Some(node), _ => None },
            "references": spelled, "source": source.as_ref().map(ToString::to_string),
            "elements": elements.handles, "connectionId": request.connection, "model": request.model,
            "size": request.size, "quality": request.quality, "webhook": webhook,
        });
        if let Some(CheckedMask { named, mode, invert, feather, composite }) = &mask {
            body["mask"] = json!([named.to_string(), mode, invert, feather, composite]);
        }
        let omit_defaults = |body: &mut Value| {
            // A count that is sent equals the number of targets.
            body["count"] = json!(null);
        };
        let body = with_destination(with_wanted(with_cap(body, &terms), &wanted), &destination);
        let (path, resource) = (format!("/images/{operation}"), canvas.to_string());
        let needed = matches!(operation, JobOperation::Edit | JobOperation::Variations);
        JobStart {
            caller: caller.clone(),
            ids: vec![JobId::generate()],
            fingerprint: fingerprint_without_defaults(&path, &resource, body, omit_defaults),
            canvas,
            base: Base { revision: request.base_revision, lenient },
            terms,
            webhook,
            traceparent: trace.0.to_string(),
            work: Box::new(Self {
                app: app.clone(),
                operation,
                destination,
                is_listed,
                wanted,
                prompt,
                images: Images { references, source, mask, needed },
                elements,
                connection: request.connection,
                model: request.model,
                size: request.size,
                quality: request.quality,
            }),
        }
    }
}

impl Work for Generation {
    fn destination(&self) -> &Destination {
        &self.destination
    }

    fn wanted(&self) -> Option<Wanted> {
        Some(self.wanted)
    }

    fn footprint(&self) -> Footprint {
        // A version of an Element never changes.
        let named = self.prompt.node().into_iter().chain(self.images.nodes());
        Footprint::of_nodes(named).with_links_into(self.images.connected_to(&self.destination))
    }

    fn reads(&self) -> Reads<'_> {
        Reads {
            nodes: self.prompt.node().into_iter().collect(),
            images: self.images.named().collect(),
            kind: AssetKind::Image,
        }
    }

    fn plan<'a>(
        &'a self,
        conn: &'a mut PgConnection,
        caller: &'a Credential,
        canvas: &'a LockedCanvas,
        found: Found,
    ) -> BoxFuture<'a, app::Result<JobPlan>> {
        Box::pin(async move {
            let (existing, mut refused) = self.check_targets(found.targets)?;
            let graph = self.destination.load(conn, &canvas.record, &mut refused).await?;
            let written = self.prompt(found.nodes.iter().flatten().next(), &mut refused);
            let prompt = self.elements.guide(&written, providers::VARIATION_PROMPT);
            let target = self.images.connected_to(&self.destination);
            let (references, mask) =
                self.images.resolve(conn, canvas, target, found.images, &self.elements, &mut refused).await?;
            refused.extend_from_slice(&self.elements.refused);
            let roles: Vec<Option<Role>> = references.iter().map(|reference| reference.role).collect();
            let asked = Asked {
                capability: capability(self.operation),
                prompt: &prompt,
                prompt_field: self.prompt.field(),
                roles: &roles,
                masked: self.images.mask.is_some(),
                size: self.size.as_deref(),
                quality: self.quality.as_deref(),
            };
            let models = self.app.runnable(conn, &caller.account).await?;
            let need = Need { capability: asked.capability, masked: asked.masked };
            let model = choose(&models, self.model.as_deref(), self.connection.as_deref(), need);
            let model = match model {
                Ok(model) => {
                    refused.extend(fit::violations(&model.entry, &asked));
                    model
                }
                Err(violation) => {
                    refused.push(violation);
                    return Err(app::Error::Unprocessable(refused));
                }
            };
            if !refused.is_empty() {
                return Err(app::Error::Unprocessable(refused));
            }
            let size = match &mask {
                Some((Mask { composite: true, .. }, source)) => Some((source.width.into(), source.height.into())),
                _ => fit::image_size(&model.entry, &asked),
            };
            let results = vec![ExpectedResult { size, read: self.images.links() }];
            let targets = self.destination.prepare(caller, graph, existing, results, Some(&written))?;
            let (model, estimated_seconds) = (model.chosen(), model.estimated_seconds());
            // At most four targets, and prices are far below the maximum of the type.
            let credit_cost = model.credit_cost.saturating_mul(targets.nodes.len() as i64);
            let request = Request::Image(ImageRequest {
                model,
                prompt,
                caption: None,
                size: self.size.clone(),
                quality: self.quality.clone(),
                references,
                mask: mask.map(|(mask, _)| mask),
                elements: self.elements.handles.clone(),
                targets: targets.ids(),
            });
            Ok(JobPlan {
                operation: self.operation,
                jobs: vec![PlannedJob { request, estimated_seconds, credit_cost }],
                summary: summary(self.operation).to_owned(),
                targets,
            })
        })
    }
}

impl Generation {
    /// Checks the targets: image nodes of the canvas (422) without an active job (409, reported first). A target may show an
    /// asset (docs/reference/images.md#targets).
    fn check_targets(&self, targets: Vec<Option<Node>>) -> app::Result<(Vec<Node>, Vec<Violation>)> {
        let (mut found, mut refused) = (Vec::new(), Vec::new());
        for (index, node) in targets.into_iter().enumerate() {
            let message = match node {
                Some(Node { active_job: Some(_), .. }) => return Err(target_is_taken()),
                Some(node) if node.kind == NodeType::Image => {
                    found.push(node);
                    continue;
                }
                Some(_) => "must be an image node",
                None => "is not a node of the canvas",
            };
            let field = if self.is_listed { format!("targetNodeIds[{index}]") } else { "targetNodeId".to_owned() };
            refused.push(Violation::new(field, message));
        }
        Ok((found, refused))
    }

    /// The prompt: that of the request, or the content of a text or sticky node (docs/reference/images.md#prompt).
    fn prompt(&self, node: Option<&Node>, refused: &mut Vec<Violation>) -> String {
        match &self.prompt {
            Prompt::None => return String::new(),
            Prompt::Text(text) => return text.clone(),
            Prompt::Node(_) => {}
        }
        let message = match node.map(|node| (node.kind.holds_text(), node.content().unwrap_or_default())) {
            None => "is not a node of the canvas".to_owned(),
            Some((false, _)) => "must be a text or sticky node".to_owned(),
            Some((true, content)) if content.trim().is_empty() => "has no content".to_owned(),
            Some((true, content)) if content.chars().count() > PROMPT_MAX => {
                format!("has more than {PROMPT_MAX} characters of content")
            }
            Some((true, content)) => return content.to_owned(),
        };
        refused.push(Violation::new("promptNodeId", message));
        String::new()
    }
}

fn capability(operation: JobOperation) -> Capability {
    match operation {
        JobOperation::Generate | JobOperation::Action => Capability::ImageGenerate,
        JobOperation::Edit => Capability::ImageEdit,
        JobOperation::Variations => Capability::ImageVariations,
    }
}

fn summary(operation: JobOperation) -> &'static str {
    match operation {
        JobOperation::Generate | JobOperation::Action => "started image generation",
        JobOperation::Edit => "started an image edit",
        JobOperation::Variations => "started image variations",
    }
}
