//! Legacy campaigns: one image job for each shot, each with a target node of its own
//! (docs/reference/campaigns.md#start-a-campaign).

use ::canvas::Footprint;
use ::canvas::pack;
use ::canvas::placement::Frame;
use ::canvas::size::serialized_size;
use db::PgConnection;
use db::accounts::Credential;
use db::campaigns::NewCampaign;
use db::canvases::{Change, NewActivity};
use db::jobs::NewJob;
use domain::campaign::Campaign as Record;
use domain::canvas::{ActivityType, CanvasRecord};
use domain::channel;
use domain::counted;
use domain::graph::{GraphWrites, Node, NodeType, Position};
use domain::id::{AccountUid, CanvasHandle, JobId, NodeId};
use domain::idempotency::{Fingerprint, StoredOutcome};
use domain::job::{ChosenModel, ImageRequest, JobOperation, Request, StartQuote};
use domain::limits::{CANVAS_BYTES_MAX, CANVAS_NODES_MAX, TITLE_MAX};
use domain::message::Queue;
use uuid::Uuid;

use crate::command::{Base, CanvasWrite, Command, Key, KnownOutcome, LockedCanvas};
use crate::job::{JobSettings, require_room, target_is_taken};
use crate::start::{Acceptance, Start, Terms};
use crate::target::{self, Work};
use crate::{Error, Models, Result, storage};

/// A campaign to start.
pub struct Campaign {
    /// Canvas of the shots.
    pub canvas: CanvasHandle,
    /// Canvas revision that the request is based on.
    pub base: Base,
    /// Key and maximum price.
    pub terms: Terms,
    /// Display title.
    pub title: String,
    pub brief: String,
    /// Prompt of each shot.
    pub prompts: Vec<String>,
}

pub struct StartCampaign<'a, M> {
    /// The models that the account can run.
    pub models: &'a M,
    /// Settings of the process.
    pub settings: JobSettings<'a>,
    /// Who starts it.
    pub caller: &'a Credential,
    /// Id of the campaign, if it is accepted.
    pub id: Uuid,
    pub campaign: Campaign,
    /// Fingerprint that the idempotency key is bound to.
    pub fingerprint: Fingerprint,
    /// W3C trace context of the request.
    pub traceparent: String,
}

impl<M: Models> Command for StartCampaign<'_, M> {
    type Subject = ();
    /// The campaign, and how it was accepted.
    type Reply = (Record, Acceptance);

    fn account(&self) -> &AccountUid {
        &self.caller.account
    }

    fn key(&self) -> Option<Key<'_>> {
        self.campaign.terms.key(&self.fingerprint)
    }

    fn known_outcome(&self) -> Option<KnownOutcome> {
        Some(KnownOutcome { outcome: StoredOutcome::Campaign { id: self.id }, record: None })
    }

    fn channels(&self) -> Vec<String> {
        vec![channel::canvas(&self.campaign.canvas), channel::runs(self.account())]
    }

    async fn authorize(&self, _: &mut PgConnection) -> Result<()> {
        Ok(())
    }

    async fn check_access(&self, conn: &mut PgConnection) -> Result<()> {
        self.target().check_access(conn).await.map(drop)
    }

    fn writes_to(&self) -> Option<CanvasWrite<'_>> {
        Some(self.target())
    }

    async fn execute(
        &self,
        conn: &mut PgConnection,
        (): (),
        locked: Option<LockedCanvas>,
    ) -> Result<(Record, Acceptance)> {
        let plan = self.plan(conn, (), locked).await?;
        let (account, canvas_key) = (self.account(), plan.canvas.record.key);
        let acceptance = Acceptance::on(&plan.canvas);
        let jobs: Vec<JobId> = plan.nodes.iter().map(|_| JobId::generate()).collect();
        let works: Vec<_> = jobs.iter().map(|job| (job.0, plan.model.0.credit_cost)).collect();
        self.campaign.terms.reserve(conn, self.caller, &works, works.len() as i64).await?;
        let shots = self.accept(conn, plan, &jobs).await?;
        let (id, Campaign { title, brief, .. }) = (self.id, &self.campaign);
        let campaign = NewCampaign { id, account, canvas_key, title, brief, shots: &shots };
        db::campaigns::insert(conn, &campaign).await?;
        let campaign = db::campaigns::get(conn, id, account).await?;
        let missing = || Error::Inconsistent("a campaign that was just started is missing".into());
        campaign.map(|campaign| (campaign, acceptance)).ok_or_else(missing)
    }

    fn outcome(&self, _: &(Record, Acceptance)) -> Option<StoredOutcome> {
        None
    }

    async fn replay(&self, conn: &mut PgConnection, outcome: StoredOutcome) -> Result<(Record, Acceptance)> {
        self.target().check_access(conn).await?;
        let StoredOutcome::Campaign { id } = outcome else {
            return Err(Error::Inconsistent("the key of a campaign holds an outcome of another kind".into()));
        };
        let campaign = db::campaigns::get(conn, id, self.account()).await?;
        campaign.map(|campaign| (campaign, Acceptance::Replayed)).ok_or(Error::NotFound("campaign"))
    }
}

/// A checked campaign.
pub struct Plan {
    canvas: LockedCanvas,
    /// Model of all shots, and the estimated seconds of one.
    model: (ChosenModel, i32),
    /// Target node of each shot.
    nodes: Vec<Node>,
    /// Bytes that the nodes add to the canvas.
    bytes_delta: i64,
}

impl Plan {
    /// Credits of all shots together.
    fn credit_cost(&self) -> i64 {
        self.model.0.credit_cost.saturating_mul(self.nodes.len() as i64)
    }
}

impl<M: Models> Start for StartCampaign<'_, M> {
    type Plan = Plan;

    fn caller(&self) -> &Credential {
        self.caller
    }

    fn terms(&self) -> &Terms {
        &self.campaign.terms
    }

    async fn plan(&self, conn: &mut PgConnection, (): (), locked: Option<LockedCanvas>) -> Result<Plan> {
        let account = self.account();
        // It reads no node: its nodes are new, and the service chooses their places.
        let canvas = self.target().lock_checked(conn, locked, &Footprint::default()).await?;
        require_room(conn, self.settings, account, self.campaign.prompts.len()).await?;
        let model = self.models.first(conn, account, &self.campaign.prompts).await?;
        let nodes = self.nodes(conn, &canvas.record).await?;
        let bytes_delta: i64 = nodes.iter().map(serialized_size).sum();
        if canvas.record.node_count as usize + nodes.len() > CANVAS_NODES_MAX
            || canvas.record.graph_bytes + bytes_delta > CANVAS_BYTES_MAX
        {
            return Err(Error::unprocessable("canvasId", "the canvas is full"));
        }
        let owner = &canvas.record.handle.owner;
        let place = storage::Place { owner, caller: account, field: Some("canvasId") };
        place.require(conn, storage::of_outputs(nodes.len())).await?;
        Ok(Plan { canvas, model, nodes, bytes_delta })
    }

    fn outputs(&self, plan: &Plan) -> i64 {
        plan.nodes.len() as i64
    }

    fn queue(&self, _: &Plan) -> Queue {
        Queue::Generation
    }

    fn quote(&self, plan: &Plan) -> StartQuote {
        let (model, estimated_seconds) = &plan.model;
        // The nodes exist only after the start, under other ids.
        StartQuote::new(plan.credit_cost(), *estimated_seconds, Some(model), &[])
    }

    fn is_lenient(&self, plan: &Plan) -> bool {
        Acceptance::on(&plan.canvas) == Acceptance::Lenient
    }
}

impl<M> StartCampaign<'_, M> {
    fn target(&self) -> CanvasWrite<'_> {
        CanvasWrite {
            account: &self.caller.account,
            canvas: &self.campaign.canvas,
            base: Some(&self.campaign.base),
            locks: self.campaign.terms.locks(),
        }
    }

    /// Creates nodes and jobs, and advances the canvas revision.
    async fn accept(
        &self,
        conn: &mut PgConnection,
        plan: Plan,
        jobs: &[JobId],
    ) -> Result<Vec<(String, JobId, NodeId)>> {
        let Plan { canvas: LockedCanvas { record: canvas, .. }, model, mut nodes, mut bytes_delta } = plan;
        let revision = service::random::revision();
        let mut shots = Vec::with_capacity(nodes.len());
        db::canvases::give_node_refs(conn, canvas.key, &mut nodes).await?;
        for ((node, prompt), &id) in nodes.iter_mut().zip(&self.campaign.prompts).zip(jobs) {
            self.start_job(conn, &canvas, (id, &node.id, prompt), &model, &revision).await?;
            let marked = target::bind(std::slice::from_mut(node), Work::Job(id, JobOperation::Generate), false);
            bytes_delta += marked.ok_or_else(target_is_taken)?;
            shots.push((prompt.clone(), id, node.id.clone()));
        }
        let ids: Vec<NodeId> = nodes.iter().map(|node| node.id.clone()).collect();
        let change = Change {
            graph: GraphWrites { nodes: nodes.iter().collect(), ..GraphWrites::default() },
            bytes_delta,
            activity: Some(NewActivity {
                kind: ActivityType::JobStarted,
                actor: &self.caller.actor(),
                summary: format!("started a campaign of {}", counted(ids.len(), "shot")),
                nodes: &ids,
            }),
            ..Change::new(&revision)
        };
        db::canvases::write(conn, canvas.key, &change).await?;
        Ok(shots)
    }

    /// A target node for each shot, in a grid to the right of the content.
    async fn nodes(&self, conn: &mut PgConnection, canvas: &CanvasRecord) -> Result<Vec<Node>> {
        let content = db::canvases::frames(conn, canvas.key).await?;
        let content = content.into_iter().map(|frame| Frame::new(frame.position, frame.width, frame.height));
        let sizes = vec![NodeType::Image.default_size(); self.campaign.prompts.len()];
        let places = pack::arrange(content, &sizes).places;
        let title = &self.campaign.title;
        let nodes = places.into_iter().enumerate().map(|(index, frame)| Node {
            id: NodeId::generate(),
            short: None,
            kind: NodeType::Image,
            title: format!("{title} {}", index + 1).chars().take(TITLE_MAX).collect(),
            position: Position { x: frame.left, y: frame.top },
            width: frame.right - frame.left,
            height: frame.bottom - frame.top,
            agent_owned: self.caller.surface.is_agent(),
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
        canvas: &CanvasRecord,
        (id, target, prompt): (JobId, &NodeId, &str),
        model: &(ChosenModel, i32),
        revision: &str,
    ) -> Result<()> {
        let ((chosen, estimated_seconds), caller) = (model.clone(), self.caller);
        let credit_cost = chosen.credit_cost;
        let request = Request::Image(ImageRequest {
            model: chosen,
            prompt: prompt.to_owned(),
            caption: None,
            size: None,
            quality: None,
            references: Vec::new(),
            mask: None,
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
            estimated_seconds,
            credit_cost,
            recipe_run: None,
            about: None,
            traceparent: Some(&self.traceparent),
        };
        db::jobs::insert(conn, &job).await?;
        Ok(())
    }
}
