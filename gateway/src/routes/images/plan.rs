//! A generation, judged by what is stored (decisions 10).

use db::PgConnection;
use db::accounts::Credential;
use domain::Violation;
use domain::canvas::CanvasRecord;
use domain::graph::{Node, NodeType, Role};
use domain::id::{AccountUid, CanvasRef, NodeId};
use domain::job::{ImageRequest, JobOperation, Request};
use domain::limits::PROMPT_MAX;
use domain::model::Capability;
use serde_json::json;

use super::body::{ImageStart, ReferenceItem};
use super::elements::Elements;
use super::fit::{self, Asked};
use super::references::Pictures;
use crate::extract::idempotency::fingerprint;
use crate::models::choose;
use crate::observe::Trace;
use crate::problem::{Problem, Result};
use crate::start::{Plan, Start, Work, checked_webhook, target_is_taken};
use crate::state::App;

/// Images to make.
pub struct Generation {
    operation: JobOperation,
    targets: Targets,
    prompt: Prompt,
    pictures: Pictures,
    elements: Elements,
    connection: Option<String>,
    model: Option<String>,
    size: Option<String>,
    quality: Option<String>,
}

/// The nodes that take the results, as the request names them.
enum Targets {
    One(NodeId),
    Listed(Vec<NodeId>),
}

impl Targets {
    fn ids(&self) -> &[NodeId] {
        match self {
            Self::One(target) => std::slice::from_ref(target),
            Self::Listed(targets) => targets,
        }
    }

    /// The field that names the target of this place.
    fn field(&self, index: usize) -> String {
        match self {
            Self::One(_) => "targetNodeId".to_owned(),
            Self::Listed(_) => format!("targetNodeIds[{index}]"),
        }
    }
}

/// Where the words come from.
enum Prompt {
    /// Variations need none.
    None,
    Text(String),
    Node(NodeId),
}

impl Prompt {
    fn field(&self) -> &'static str {
        match self {
            Self::None | Self::Text(_) => "prompt",
            Self::Node(_) => "promptNodeId",
        }
    }
}

impl Generation {
    /// A request whose form and rules hold, as it can be started. Two spellings of one request have one fingerprint.
    pub fn judge(
        app: &App,
        account: &AccountUid,
        operation: JobOperation,
        request: ImageStart,
        elements: Elements,
        trace: Trace,
    ) -> Result<Start<Self>> {
        let malformed =
            |field: &'static str| move |error: domain::id::MalformedId| Problem::invalid(field, error.to_string());
        let node = |field, id: &String| NodeId::parse(id).map_err(malformed(field));
        let canvas = CanvasRef::parse(&request.canvas_id).map_err(malformed("canvasId"))?.resolve(account);
        let targets = match (&request.target_node_id, &request.target_node_ids) {
            (Some(target), _) => Targets::One(node("targetNodeId", target)?),
            (None, listed) => {
                let listed = listed.iter().flatten().map(|target| node("targetNodeIds", target));
                Targets::Listed(listed.collect::<Result<_>>()?)
            }
        };
        let prompt = match (request.prompt, &request.prompt_node_id) {
            (Some(text), _) => Prompt::Text(text),
            (None, Some(id)) => Prompt::Node(node("promptNodeId", id)?),
            (None, None) => Prompt::None,
        };
        let not_a_handle = |field: &str| Problem::invalid(field, "must be a node or asset handle");
        let named = |items: &Vec<ReferenceItem>| {
            let named = items.iter().map(|item| item.named(account));
            named.collect::<Option<Vec<_>>>().ok_or_else(|| not_a_handle("references"))
        };
        let source = request
            .source
            .as_deref()
            .map(|source| domain::graph::Named::parse(source, account).ok_or_else(|| not_a_handle("source")));
        let pictures = Pictures {
            references: request.references.as_ref().map(named).transpose()?,
            source: source.transpose()?,
            needed: matches!(operation, JobOperation::Edit | JobOperation::Variations),
        };
        let webhook = request.webhook.map(|webhook| checked_webhook(app, webhook)).transpose()?;

        let references = pictures.references.as_ref().map(|them| {
            them.iter().map(|(named, role)| json!({"handle": named.to_string(), "role": role})).collect::<Vec<_>>()
        });
        let body = json!({
            "baseRevision": request.base_revision, "targetNodeIds": targets.ids(),
            "one": matches!(targets, Targets::One(_)), "count": request.count,
            "prompt": match &prompt { Prompt::Text(text) => Some(text), _ => None },
            "promptNodeId": match &prompt { Prompt::Node(node) => Some(node), _ => None },
            "references": references, "source": pictures.source.as_ref().map(ToString::to_string),
            "elements": elements.handles, "connectionId": request.connection_id, "model": request.model,
            "size": request.size, "quality": request.quality, "webhook": webhook,
        });
        Ok(Start {
            fingerprint: fingerprint(&format!("/images/{operation}"), &canvas.to_string(), &body),
            canvas,
            base_revision: request.base_revision,
            key: request.idempotency_key,
            webhook,
            traceparent: trace.0.to_string(),
            work: Self {
                operation,
                targets,
                prompt,
                pictures,
                elements,
                connection: request.connection_id,
                model: request.model,
                size: request.size,
                quality: request.quality,
            },
        })
    }
}

impl Work for Generation {
    async fn plan(
        &self,
        app: &App,
        conn: &mut PgConnection,
        caller: &Credential,
        canvas: &CanvasRecord,
    ) -> Result<Plan> {
        let (targets, mut refused) = self.find_targets(conn, canvas).await?;
        let prompt = self.find_prompt(conn, canvas, &mut refused).await?;
        let prompt = self.elements.guide(&prompt, providers::VARIATION_PROMPT);
        let target = match self.targets.ids() {
            [only] => Some(only),
            _ => None,
        };
        let references = self.pictures.resolve(conn, caller, canvas, target, &self.elements, &mut refused).await?;
        refused.extend_from_slice(&self.elements.refused);
        let roles: Vec<Option<Role>> = references.iter().map(|reference| reference.role).collect();
        let asked = Asked {
            capability: capability(self.operation),
            prompt: &prompt,
            prompt_field: self.prompt.field(),
            roles: &roles,
            size: self.size.as_deref(),
            quality: self.quality.as_deref(),
        };
        let models = app.runnable(conn, &caller.account).await?;
        let model = choose(&models, self.model.as_deref(), self.connection.as_deref(), asked.capability);
        let model = match model {
            Ok(model) => {
                refused.extend(fit::violations(&model.entry, &asked));
                model
            }
            Err(violation) => {
                refused.push(violation);
                return Err(Problem::Unprocessable(refused));
            }
        };
        if !refused.is_empty() {
            return Err(Problem::Unprocessable(refused));
        }
        let (model, estimated_seconds) = (model.chosen(), model.entry.estimated_seconds);
        Ok(Plan {
            operation: self.operation,
            estimated_seconds: i32::try_from(estimated_seconds).unwrap_or(i32::MAX),
            // At most four targets, and prices are far from the end of the type.
            credit_cost: model.credit_cost.saturating_mul(targets.len() as i64),
            summary: summary(self.operation).to_owned(),
            request: Request::Image(ImageRequest {
                model,
                prompt,
                size: self.size.clone(),
                quality: self.quality.clone(),
                references,
                elements: self.elements.handles.clone(),
                targets: self.targets.ids().to_vec(),
            }),
            targets,
        })
    }
}

impl Generation {
    /// Image nodes of the canvas (422) that no other job will fill (409, which comes first); what they show does not matter
    /// (decisions 10.2).
    async fn find_targets(
        &self,
        conn: &mut PgConnection,
        canvas: &CanvasRecord,
    ) -> Result<(Vec<Node>, Vec<Violation>)> {
        let (mut found, mut refused) = (Vec::new(), Vec::new());
        for (index, target) in self.targets.ids().iter().enumerate() {
            let node = db::canvases::node(conn, canvas.key, target).await?;
            let message = match node {
                Some(Node { active_job: Some(_), .. }) => return Err(target_is_taken()),
                Some(node) if node.kind == NodeType::Image => {
                    found.push(node);
                    continue;
                }
                Some(_) => "must be an image node",
                None => "is no node of the canvas",
            };
            refused.push(Violation::new(self.targets.field(index), message));
        }
        Ok((found, refused))
    }

    /// The words: the request's, or a text or sticky node's (decisions 10.3).
    async fn find_prompt(
        &self,
        conn: &mut PgConnection,
        canvas: &CanvasRecord,
        refused: &mut Vec<Violation>,
    ) -> Result<String> {
        let id = match &self.prompt {
            Prompt::None => return Ok(String::new()),
            Prompt::Text(text) => return Ok(text.clone()),
            Prompt::Node(id) => id,
        };
        let node = db::canvases::node(conn, canvas.key, id).await?;
        let message = match node.as_ref().map(|node| (node.kind.holds_text(), node.content().unwrap_or_default())) {
            None => "is no node of the canvas".to_owned(),
            Some((false, _)) => "must be a text or sticky node".to_owned(),
            Some((true, content)) if content.trim().is_empty() => "has no content".to_owned(),
            Some((true, content)) if content.chars().count() > PROMPT_MAX => {
                format!("has more than {PROMPT_MAX} characters of content")
            }
            Some((true, content)) => return Ok(content.to_owned()),
        };
        refused.push(Violation::new("promptNodeId", message));
        Ok(String::new())
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
