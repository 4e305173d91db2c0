//! Keeping the video of a job as an asset (docs/reference/videos.md#keep-a-video).
//!
//! **Guarantee.** A video becomes an asset at most once, however often that is asked for. Its bytes count for one account at any
//! time: for that of the job, and from the moment there is an asset, for the owner of the asset.
//!
//! **Mechanism.** The transaction locks the canvas, if there is one, and then the job. It hands the reference to the file from the
//! job to the asset; triggers move the count with it.

use ::canvas::Footprint;
use db::PgConnection;
use db::accounts::Credential;
use db::assets::NewAsset;
use db::canvases::{Change, NewActivity};
use domain::asset::{AssetKind, AssetMediaType, AssetRecord, Poster, VideoDetails};
use domain::canvas::{ActivityType, Actor, CanvasRecord};
use domain::channel;
use domain::graph::{GraphWrites, Node, NodeType};
use domain::id::{AccountUid, AssetHandle, AssetId, CanvasHandle, JobId, NodeId};
use domain::idempotency::StoredOutcome;
use domain::job::{JobKind, JobStatus, Preview, Request, StoredVideo, VideoRequest};
use domain::limits::RENDITION_EAGER;
use domain::lineage;
use domain::message::ReadyTasks;
use domain::metadata::Provenance;
use domain::origin::Origin;
use domain::problem::ErrorReason;

use super::JobSettings;
use super::placement::column;
use super::start::target_is_taken;
use crate::command::{Base, CanvasWrite, Command, Key, LockedCanvas, Locks};
use crate::target::{self, Made};
use crate::{Error, Result, storage};

/// Where a kept video goes.
pub struct KeptIn<'a> {
    /// The canvas that stores it.
    pub canvas: &'a CanvasHandle,
    /// The video node that shows it, and the canvas revision that this is based on.
    pub node: Option<(&'a NodeId, &'a Base)>,
}

/// Makes an asset of the video of a job.
pub struct KeepVideo<'a> {
    /// Who started the job.
    pub caller: &'a Credential,
    pub job: JobId,
    /// `None`: the asset is stored in no canvas and belongs to the caller.
    pub kept_in: Option<KeptIn<'a>>,
    pub settings: JobSettings<'a>,
    /// W3C trace context of the request.
    pub traceparent: String,
    /// Receives the tasks that the command makes ready, which the caller announces after the commit.
    pub ready: ReadyTasks,
}

impl Command for KeepVideo<'_> {
    /// The asset that the video has become already.
    type Subject = Option<AssetRecord>;
    /// The asset, and whether it was there before.
    type Reply = (AssetRecord, bool);

    fn account(&self) -> &AccountUid {
        &self.caller.account
    }

    fn key(&self) -> Option<Key<'_>> {
        None
    }

    fn channels(&self) -> Vec<String> {
        let canvas = self.kept_in.as_ref().map(|kept_in| channel::canvas(kept_in.canvas));
        [channel::job(self.job), channel::runs(self.account())].into_iter().chain(canvas).collect()
    }

    async fn authorize(&self, conn: &mut PgConnection) -> Result<Option<AssetRecord>> {
        let (_, video) = self.video(conn).await?;
        self.kept(conn, &video).await
    }

    fn writes_to(&self) -> Option<CanvasWrite<'_>> {
        let KeptIn { canvas, node } = self.kept_in.as_ref()?;
        let base = node.as_ref().map(|(_, base)| *base);
        Some(CanvasWrite { account: self.account(), canvas, base, locks: Locks::Canvas })
    }

    async fn execute(
        &self,
        conn: &mut PgConnection,
        kept: Option<AssetRecord>,
        locked: Option<LockedCanvas>,
    ) -> Result<(AssetRecord, bool)> {
        if let Some(kept) = kept {
            return Ok((kept, true));
        }
        let target = self.kept_in.as_ref().and_then(|kept_in| kept_in.node.as_ref()).map(|(node, _)| *node);
        let canvas = match self.writes_to() {
            None => None,
            Some(write) => {
                let footprint = Footprint::of_nodes(target);
                Some(write.lock_checked(conn, locked, &footprint).await?.record)
            }
        };
        let node = match (&canvas, target) {
            (Some(canvas), Some(node)) => Some(video_node(conn, canvas, node).await?),
            _ => None,
        };
        let by = db::jobs::hold_video(conn, self.job).await?.ok_or(Error::NotFound("job"))?;
        let (request, video) = self.video(conn).await?;
        if let Some(kept) = self.kept(conn, &video).await? {
            return Ok((kept, true));
        }
        let asset = self.store(conn, canvas.as_ref(), (&request, &by), &video).await?;
        db::jobs::hand_over_video(conn, self.job, &asset.handle).await?;
        if let (Some(canvas), Some(node)) = (&canvas, node) {
            let provenance = request.provenance(self.job, &video.facts);
            self.show(conn, canvas, node, provenance, &asset).await?;
        }
        Ok((asset, false))
    }

    fn outcome(&self, _: &(AssetRecord, bool)) -> Option<StoredOutcome> {
        None
    }

    async fn replay(&self, _: &mut PgConnection, _: StoredOutcome) -> Result<(AssetRecord, bool)> {
        Err(Error::Inconsistent("keeping a video takes no key".into()))
    }
}

impl KeepVideo<'_> {
    /// The request of the job, and its video.
    async fn video(&self, conn: &mut PgConnection) -> Result<(VideoRequest, StoredVideo)> {
        let found = db::jobs::get(conn, self.job, self.account(), self.settings.retention_tombstone).await?;
        let record = found.filter(|job| job.kind == JobKind::Video).ok_or(Error::NotFound("job"))?;
        if !record.status.is_terminal() {
            return Err(Error::Conflict(ErrorReason::State, "the video is not finished"));
        }
        match (record.outcome.video, record.request) {
            (Some(video), Request::Video(request)) if record.status == JobStatus::Succeeded => Ok((request, video)),
            _ => Err(Error::NotFound("video")),
        }
    }

    /// The asset that the video has become, if it has become one.
    async fn kept(&self, conn: &mut PgConnection, video: &StoredVideo) -> Result<Option<AssetRecord>> {
        let Some(asset) = &video.asset else { return Ok(None) };
        let found = db::assets::get_readable(conn, self.account(), asset).await?;
        found.map(|(asset, _)| Some(asset)).ok_or(Error::NotFound("asset"))
    }

    async fn store(
        &self,
        conn: &mut PgConnection,
        canvas: Option<&CanvasRecord>,
        (request, by): (&VideoRequest, &Actor),
        video: &StoredVideo,
    ) -> Result<AssetRecord> {
        let (account, facts) = (self.account(), &video.facts);
        let owner = canvas.map_or(account, |canvas| &canvas.handle.owner);
        let bytes: i64 = column("assets.bytes", video.bytes)?;
        // What the video counts for the caller moves with it.
        let counted = storage::of_files([bytes]);
        let more = if owner == account { counted - bytes } else { counted };
        // In the order in which the counts of several accounts are locked everywhere.
        if account < owner {
            db::storage::hold(conn, account, 0).await?;
        }
        if more > 0 {
            let field = canvas.map(|_| "canvasId");
            storage::Place { owner, caller: account, field }.hold(conn, more).await?;
        }
        let poster = match &video.poster {
            Some(poster) => Some(poster.clone()),
            None => first_frame(conn, request).await?,
        };
        let of_provider = || request.provider_origin().filter(|_| !request.model.is_stand_in());
        let asset = NewAsset {
            handle: AssetHandle { owner: owner.clone(), id: AssetId::generate() },
            canvas_key: canvas.map(|canvas| canvas.key),
            node: None,
            kind: AssetKind::Video,
            name: request.file_name(),
            mime_type: AssetMediaType::Mp4.to_string(),
            width: column("assets.width", facts.width)?,
            height: column("assets.height", facts.height)?,
            bytes,
            blob_key: video.blob_key,
            origin: facts.origin.or_else(of_provider).map(Origin::service),
            metadata_removed: Vec::new(),
            original: None,
            video: Some(VideoDetails {
                duration_ms: facts.duration_ms,
                has_audio: facts.has_audio,
                poster: poster.map(|Preview { blob_key, mime_type, .. }| Poster { blob_key, mime_type }),
            }),
            made: lineage::Made::new(&request.provenance(self.job, facts), by, request.model.credit_cost),
            parents: request.parents(),
        };
        db::assets::insert_all(conn, std::slice::from_ref(&asset)).await?;
        if let Some(poster) = asset.video.as_ref().and_then(|video| video.poster.as_ref()) {
            let (size, trace) = ((asset.width, asset.height), Some(self.traceparent.as_str()));
            db::renditions::request_eager(conn, poster.blob_key, size, owner, trace, &self.ready).await?;
        }
        let stored = db::assets::get(conn, &asset.handle).await?;
        stored.ok_or_else(|| Error::Inconsistent("an asset that was stored is not there".into()))
    }

    /// Makes a video node show the asset, as the end of the job does for its target.
    async fn show(
        &self,
        conn: &mut PgConnection,
        canvas: &CanvasRecord,
        mut node: Node,
        provenance: Provenance,
        asset: &AssetRecord,
    ) -> Result<()> {
        let made = Made {
            asset: asset.handle.clone(),
            size: (asset.width.into(), asset.height.into()),
            provenance,
            at: asset.created_at,
        };
        let bytes_delta = target::change(&mut node, |node| target::fill(node, self.job, made));
        let revision = service::random::revision();
        let change = Change {
            graph: GraphWrites { nodes: vec![&node], ..GraphWrites::default() },
            bytes_delta,
            activity: Some(NewActivity {
                kind: ActivityType::JobFinished,
                actor: &self.caller.actor(),
                summary: "kept a video".into(),
                nodes: std::slice::from_ref(&node.id),
            }),
            ..Change::new(&revision)
        };
        db::canvases::write(conn, canvas.key, &change).await?;
        Ok(())
    }
}

/// A video node of a locked canvas that nothing is made for.
async fn video_node(conn: &mut PgConnection, canvas: &CanvasRecord, id: &NodeId) -> Result<Node> {
    const FIELD: &str = "targetNodeId";
    match db::canvases::node(conn, canvas.key, id).await? {
        None => Err(Error::unprocessable(FIELD, "is not a node of the canvas")),
        Some(node) if node.kind != NodeType::Video => Err(Error::unprocessable(FIELD, "must be a video node")),
        Some(Node { active_job: Some(_), .. }) => Err(target_is_taken()),
        Some(node) => Ok(node),
    }
}

/// The image that a video was made to begin with, in a size that fits a poster. A stored image has had this rendition since it was
/// stored; `None` for the image of a URL.
pub async fn first_frame(conn: &mut PgConnection, request: &VideoRequest) -> db::Result<Option<Preview>> {
    let Some(image) = request.first_frame.as_ref().and_then(|image| image.asset.as_ref()) else { return Ok(None) };
    let Some(image) = db::assets::get(conn, image).await? else { return Ok(None) };
    db::renditions::file(conn, image.blob_key, RENDITION_EAGER).await
}
