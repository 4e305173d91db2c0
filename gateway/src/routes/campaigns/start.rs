//! `POST /campaigns/start`: one image job a shot, each in a target node of its own (decisions 16).

use axum::Extension;
use axum::extract::State;
use canvas::pack;
use canvas::placement::Frame;
use canvas::size::serialized_size;
use db::PgConnection;
use db::campaigns::NewCampaign;
use db::canvases::{Change, GraphWrites, NewActivity};
use db::jobs::NewJob;
use domain::Violation;
use domain::campaign::Campaign;
use domain::canvas::{ActivityType, CanvasRecord, Changes};
use domain::graph::{Node, NodeType, Position};
use domain::id::{CanvasHandle, CanvasRef, JobId, NodeId};
use domain::idempotency::Outcome;
use domain::job::{ImageRequest, JobOperation, Request};
use domain::limits::{CANVAS_BYTES_MAX, CANVAS_NODES_MAX, TITLE_MAX};
use domain::model::Capability;
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use uuid::Uuid;

use super::plan::CampaignPlan;
use super::{CampaignRead, require_switched_on};
use crate::extract::caller::{Caller, ManageCampaigns};
use crate::extract::idempotency::fingerprint;
use crate::extract::json::{Input, Unread};
use crate::models::{Runnable, choose};
use crate::observe::Trace;
use crate::problem::{ErrorEnvelope, Problem, Result};
use crate::reply;
use crate::start::{hold, require_room, take_key, target_is_taken};
use crate::state::{App, retrying};

const PATH: &str = "/campaigns/start";

/// Side of the node of a shot, in canvas units: that of a new image node (decisions 3.2).
const NODE_SIDE: u32 = 320;

/// A campaign to start.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CampaignStartRequest {
    /// Plain id or handle.
    #[schema(max_length = 560, pattern = "^(canvas:([A-Za-z0-9_-]{1,180}:)?)?[A-Za-z0-9_-]{1,180}$")]
    canvas_id: String,
    /// The revision that the campaign was made for.
    #[schema(min_length = 1, max_length = 200)]
    base_revision: String,
    /// Names this start, so that sending it again starts nothing twice.
    #[schema(min_length = 8, max_length = 200)]
    idempotency_key: String,
    /// For people.
    #[schema(min_length = 1, max_length = 160, nullable = false)]
    title: Option<String>,
    /// What to make.
    plan: CampaignPlan,
}

impl Input for CampaignStartRequest {
    fn check_value(body: &Value) -> Vec<Violation> {
        let canvas = body["canvasId"].as_str().unwrap_or_default();
        CanvasRef::parse(canvas).err().map(|error| Violation::new("canvasId", error.to_string())).into_iter().collect()
    }
}

/// Start a legacy campaign
#[utoipa::path(
    post, path = "/campaigns/start", operation_id = "startCampaign", tag = "Legacy campaigns",
    request_body = CampaignStartRequest,
    security(("bearer" = ["canvas:read", "canvas:write", "asset:read", "image:generate", "job:manage"])),
    responses(
        (status = 202, body = CampaignRead),
        (status = 402, body = ErrorEnvelope, description = "The account's credit does not cover the work."),
    )
)]
pub async fn start(
    State(app): State<App>,
    caller: Caller<ManageCampaigns>,
    Extension(trace): Extension<Trace>,
    body: Unread,
) -> Result {
    require_switched_on(&app)?;
    let request: CampaignStartRequest = body.json().await?;
    let canvas =
        CanvasRef::parse(&request.canvas_id).map_err(|error| Problem::invalid("canvasId", error.to_string()))?;
    let canvas = canvas.resolve(&caller.account);
    let body = json!({ "baseRevision": request.base_revision, "title": request.title, "plan": request.plan });
    let start = Start { fingerprint: fingerprint(PATH, &canvas.to_string(), &body), canvas, request, trace };
    let turn = app.writers.pass(&start.canvas.to_string()).await?;
    let (campaign, replayed) = retrying(|| start.attempt(&app, &caller)).await?;
    drop(turn);
    app.nudge.nudge();
    let location = format!("{}/campaigns/{}", domain::API_ROOT, campaign.id);
    let replayed = replayed.then_some(true);
    Ok(reply::accepted(&location, &CampaignRead { run: campaign.document(), replayed }))
}

/// A start that is right by itself.
struct Start {
    canvas: CanvasHandle,
    request: CampaignStartRequest,
    fingerprint: [u8; 32],
    trace: Trace,
}

impl Start {
    /// One transaction: key, account, canvas, credit, nodes, jobs, revision, campaign. The campaign, or that of an equal
    /// request and `true`.
    async fn attempt(&self, app: &App, caller: &Caller<ManageCampaigns>) -> Result<(Campaign, bool)> {
        let mut transaction = app.transaction().await?;
        let conn = &mut *transaction;
        let (id, account) = (Uuid::now_v7(), &caller.account);
        let key = (self.request.idempotency_key.as_str(), &self.fingerprint);
        let taken = take_key(conn, account, key, &self.canvas, (&Outcome::Campaign { id }, None)).await?;
        if let Some(outcome) = taken {
            let Outcome::Campaign { id } = outcome else {
                return Err(Problem::internal("the outcome of a campaign is of another kind"));
            };
            let campaign = db::campaigns::get(conn, id, account).await?.ok_or(Problem::NotFound("campaign"))?;
            return Ok((campaign, true));
        }
        let canvas = hold(conn, account, &self.canvas).await?;
        if canvas.revision != self.request.base_revision {
            return Err(Problem::stale(&canvas, &self.request.base_revision));
        }
        require_room(app, conn, &caller.account, self.request.plan.shots.len()).await?;
        let models = app.runnable(conn, &caller.account).await?;
        let model = choose(&models, None, None, Capability::ImageGenerate);
        let model = model.map_err(|violation| Problem::Unprocessable(vec![violation]))?;
        let shots = self.accept(conn, caller, &canvas, model).await?;
        let CampaignPlan { brief, .. } = &self.request.plan;
        let (canvas_key, title) = (canvas.key, self.title());
        let campaign = NewCampaign { id, account, canvas_key, title: &title, brief, shots: &shots };
        db::campaigns::insert(conn, &campaign).await?;
        let campaign = db::campaigns::get(conn, id, account).await?;
        let campaign = campaign.ok_or_else(|| Problem::internal("a campaign that was just started is not there"))?;
        db::pool::commit(transaction).await?;
        Ok((campaign, false))
    }

    fn title(&self) -> String {
        self.request.title.clone().unwrap_or_else(|| "Campaign".to_owned())
    }

    /// Makes nodes and jobs, and gives the canvas its next revision.
    async fn accept(
        &self,
        conn: &mut PgConnection,
        caller: &Caller<ManageCampaigns>,
        canvas: &CanvasRecord,
        model: &Runnable,
    ) -> Result<Vec<(String, JobId, NodeId)>> {
        let mut nodes = self.nodes(conn, caller, canvas).await?;
        let mut bytes_delta: i64 = nodes.iter().map(serialized_size).sum();
        if canvas.node_count as usize + nodes.len() > CANVAS_NODES_MAX
            || canvas.graph_bytes + bytes_delta > CANVAS_BYTES_MAX
        {
            return Err(Problem::unprocessable("canvasId", "the canvas is full"));
        }
        let revision = service::random::revision();
        let mut shots = Vec::with_capacity(nodes.len());
        for (node, shot) in nodes.iter_mut().zip(&self.request.plan.shots) {
            let id = JobId::generate();
            self.start_job(conn, caller, canvas, (id, &node.id, &shot.prompt), model, &revision).await?;
            let marked = db::jobs::mark_targets(std::slice::from_mut(node), id, JobOperation::Generate)?;
            bytes_delta += marked.ok_or_else(target_is_taken)?;
            shots.push((shot.prompt.clone(), id, node.id.clone()));
        }
        let writes = GraphWrites { nodes: nodes.iter().collect(), ..GraphWrites::default() };
        db::canvases::write_graph(conn, canvas.key, &writes).await?;
        let ids: Vec<NodeId> = nodes.iter().map(|node| node.id.clone()).collect();
        let change = Change {
            revision: &revision,
            title: None,
            // At most eight.
            nodes_delta: ids.len() as i32,
            connections_delta: 0,
            bytes_delta,
            changes: &Changes { changed_node_ids: ids.clone(), ..Changes::default() },
            activity: Some(NewActivity {
                kind: ActivityType::JobStarted,
                actor: &caller.actor(),
                summary: format!("started a campaign of {} shots", ids.len()),
                nodes: &ids,
            }),
        };
        db::canvases::commit_change(conn, canvas.key, &change).await?;
        Ok(shots)
    }

    /// A target node for each shot, in a grid to the right of the content.
    async fn nodes(
        &self,
        conn: &mut PgConnection,
        caller: &Caller<ManageCampaigns>,
        canvas: &CanvasRecord,
    ) -> Result<Vec<Node>> {
        let content = db::canvases::frames(conn, canvas.key).await?;
        let content = content.into_iter().map(|frame| Frame::new(frame.position, frame.width, frame.height));
        let sides = vec![(NODE_SIDE, NODE_SIDE); self.request.plan.shots.len()];
        let places = pack::arrange(content, &sides).places;
        let title = self.title();
        let nodes = places.into_iter().enumerate().map(|(index, frame)| Node {
            id: NodeId::generate(),
            kind: NodeType::Image,
            title: format!("{title} {}", index + 1).chars().take(TITLE_MAX).collect(),
            position: Position { x: frame.left, y: frame.top },
            width: frame.right - frame.left,
            height: frame.bottom - frame.top,
            agent_owned: caller.surface.is_agent(),
            metadata: Default::default(),
            server: Default::default(),
            asset: None,
            active_job: None,
        });
        Ok(nodes.collect())
    }

    async fn start_job(
        &self,
        conn: &mut PgConnection,
        caller: &Caller<ManageCampaigns>,
        canvas: &CanvasRecord,
        (id, target, prompt): (JobId, &NodeId, &str),
        model: &Runnable,
        revision: &str,
    ) -> Result<()> {
        let chosen = model.chosen();
        let credit_cost = chosen.credit_cost;
        if !db::ledger::reserve(conn, &caller.account, id, credit_cost).await? {
            return Err(Problem::PaymentRequired);
        }
        let request = Request::Image(ImageRequest {
            model: chosen,
            prompt: prompt.to_owned(),
            size: None,
            quality: None,
            references: Vec::new(),
            elements: Vec::new(),
            targets: vec![target.clone()],
        });
        let job = NewJob {
            id,
            account: &caller.account,
            token_id: caller.token,
            operation: JobOperation::Generate,
            canvas: Some((canvas.key, &canvas.handle)),
            canvas_revision: Some(revision),
            request: &request,
            estimated_seconds: i32::try_from(model.entry.estimated_seconds).unwrap_or(i32::MAX),
            credit_cost,
            recipe_run: None,
            traceparent: Some(&self.trace.0.to_string()),
        };
        db::jobs::insert(conn, &job).await?;
        Ok(())
    }
}
