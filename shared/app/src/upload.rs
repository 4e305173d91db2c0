//! Uploads: an asset whose bytes are in the object store, and a node that shows it (docs/reference/assets.md#upload).

use ::canvas::Footprint;
use ::canvas::Options;
use ::canvas::geometry::{fitted, fitted_as, fitted_within};
use ::canvas::placement::Location;
use ::canvas::targets;
use db::PgConnection;
use db::accounts::Credential;
use db::assets::NewAsset;
use db::blobs::PutFile;
use db::canvases::{Change, NewActivity};
use db::links::SecretHash;
use domain::asset::{AssetKind, AssetRecord, MetadataClass, OriginalFile, OriginalReason, VideoDetails};
use domain::canvas::{ActivityType, CanvasRecord};
use domain::channel;
use domain::graph::NodeType;
use domain::id::{AccountUid, AssetHandle, AssetId, CanvasHandle, NodeId};
use domain::idempotency::StoredOutcome;
use domain::limits::{POSTER_SIDE, TITLE_MAX};
use domain::lineage::Made;
use domain::link::{Cell, Filled};
use domain::message::ReadyTasks;
use domain::metadata::{Provenance, ProvenanceKind, ServerMetadata};
use domain::origin::Origin;
use uuid::Uuid;

use crate::canvas::{addition_refused, change};
use crate::command::{CanvasWrite, Command, Key, LockedCanvas, Locks};
use crate::graphs::load;
use crate::{Error, Result, storage};

/// A stored image or video that nothing refers to yet.
pub struct StoredFile {
    /// The file under the key of a staged blob.
    pub file: PutFile,
    pub media_type: &'static str,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// The origin that its metadata state.
    pub origin: Option<Origin>,
    /// The classes of metadata that were removed from the file.
    pub metadata_removed: Vec<MetadataClass>,
    /// It has more than one frame.
    pub is_animated: bool,
    /// The file as it came, if it is another one and is kept.
    pub original: Option<KeptOriginal>,
    /// Of a video. Its poster is made later.
    pub video: Option<VideoDetails>,
}

/// A stored file that becomes an original.
pub struct KeptOriginal {
    /// The file under the key of a staged blob.
    pub file: PutFile,
    pub media_type: &'static str,
    pub reason: OriginalReason,
}

/// The upload link through which a file came.
pub struct UploadLink<'a> {
    /// SHA-256 of the link's secret.
    pub hash: &'a SecretHash,
    /// The lease of the link, which this request holds.
    pub lease: Uuid,
    /// SHA-256 of the upload.
    pub sha256: [u8; 32],
    /// Where its node goes.
    pub cell: Option<&'a Cell>,
}

/// Makes an asset of a stored image or video.
pub struct UploadAsset<'a> {
    /// Who uploads it.
    pub caller: &'a Credential,
    /// Canvas that the asset belongs to.
    pub canvas: Option<&'a CanvasHandle>,
    /// `true` if the canvas gets a node that shows it.
    pub is_shown: bool,
    pub name: String,
    pub file: StoredFile,
    pub key: Option<Key<'a>>,
    /// The link that it fills.
    pub link: Option<UploadLink<'a>>,
    /// W3C trace context of the request.
    pub traceparent: String,
    /// Receives the tasks that the upload makes ready, which the caller announces after the commit.
    pub ready: ReadyTasks,
}

/// The result of an upload.
pub struct Uploaded {
    pub asset: AssetRecord,
    /// Revision of the canvas that has its node, unless it is that of an earlier upload.
    pub revision: Option<String>,
    /// `true` if an earlier, equal request made it.
    pub replayed: bool,
}

impl Command for UploadAsset<'_> {
    type Subject = ();
    type Reply = Uploaded;

    fn account(&self) -> &AccountUid {
        &self.caller.account
    }

    fn key(&self) -> Option<Key<'_>> {
        self.key
    }

    fn channels(&self) -> Vec<String> {
        self.canvas.map(channel::canvas).into_iter().collect()
    }

    async fn authorize(&self, _: &mut PgConnection) -> Result<()> {
        Ok(())
    }

    fn writes_to(&self) -> Option<CanvasWrite<'_>> {
        self.canvas.map(|canvas| CanvasWrite { account: self.account(), canvas, base: None, locks: Locks::Canvas })
    }

    async fn execute(&self, conn: &mut PgConnection, (): (), locked: Option<LockedCanvas>) -> Result<Uploaded> {
        let account = self.account();
        let canvas = match self.writes_to() {
            None => None,
            Some(target) => Some(target.lock_checked(conn, locked, &Footprint::default()).await?.record),
        };
        let StoredFile { file, media_type, width, height, origin, metadata_removed, is_animated, original, video } =
            &self.file;
        let owner = canvas.as_ref().map_or(account, |canvas| &canvas.handle.owner);
        let inconsistent = |message: &str| Error::Inconsistent(message.to_owned());
        let files: Vec<PutFile> =
            std::iter::once(*file).chain(original.as_ref().map(|original| original.file)).collect();
        let counted = storage::of_files(files.iter().map(|file| file.bytes));
        storage::Place { owner, caller: account, field: Some("body") }.hold(conn, counted).await?;
        let adopted = db::blobs::adopt_all(conn, &files).await?;
        let adopted = |file: &PutFile| {
            let key = adopted.get(&file.key).copied();
            key.ok_or_else(|| inconsistent("an upload was swept before it was stored"))
        };
        let blob_key = adopted(file)?;
        if *is_animated {
            db::blobs::set_animated(conn, blob_key).await?;
        }
        let original = match original {
            None => None,
            Some(original) => Some(OriginalFile {
                blob_key: adopted(&original.file)?,
                mime_type: original.media_type.into(),
                bytes: original.file.bytes,
                reason: original.reason,
            }),
        };
        let node = canvas.as_ref().filter(|_| self.is_shown).map(|_| NodeId::generate());
        let side = |pixels: u32| i32::try_from(pixels).map_err(|_| inconsistent("an image is larger than its limit"));
        let trace = Some(self.traceparent.as_str());
        let video = match video {
            None => None,
            Some(video) => {
                db::renditions::request(conn, blob_key, POSTER_SIDE, owner, trace, &self.ready).await?;
                let poster = db::renditions::poster(conn, blob_key).await?;
                Some(VideoDetails { poster, ..video.clone() })
            }
        };
        let asset = NewAsset {
            handle: AssetHandle { owner: owner.clone(), id: AssetId::generate() },
            canvas_key: canvas.as_ref().map(|canvas| canvas.key),
            node: node.clone(),
            kind: if video.is_some() { AssetKind::Video } else { AssetKind::Image },
            name: self.name.clone(),
            mime_type: (*media_type).into(),
            width: side(*width)?,
            height: side(*height)?,
            bytes: file.bytes,
            blob_key,
            origin: *origin,
            metadata_removed: metadata_removed.clone(),
            original,
            video,
            made: Made::uploaded(&self.caller.actor()),
            parents: Vec::new(),
        };
        let record = db::assets::insert(conn, &asset).await?;
        let revision = match (&canvas, node) {
            (Some(canvas), Some(node)) => Some(self.place(conn, canvas, node, &record).await?),
            _ => None,
        };
        if asset.kind == AssetKind::Image {
            let size = (asset.width, asset.height);
            db::renditions::request_eager(conn, blob_key, size, owner, trace, &self.ready).await?;
        }
        if let Some(UploadLink { hash, lease, sha256, .. }) = self.link {
            let filled = Filled { asset: record.handle.clone(), revision: revision.clone() };
            if !db::links::fill(conn, (hash, lease), &sha256, &filled).await? {
                return Err(Error::NotFound("link"));
            }
        }
        Ok(Uploaded { asset: record, revision, replayed: false })
    }

    fn outcome(&self, Uploaded { asset, .. }: &Uploaded) -> Option<StoredOutcome> {
        Some(StoredOutcome::Asset { handle: asset.handle.clone() })
    }

    /// The sweeper removes the bytes that were sent again.
    async fn replay(&self, conn: &mut PgConnection, outcome: StoredOutcome) -> Result<Uploaded> {
        let StoredOutcome::Asset { handle } = outcome else {
            return Err(Error::Inconsistent("the key of an upload holds an outcome of another kind".into()));
        };
        let found = db::assets::get_readable(conn, self.account(), &handle).await?;
        let (asset, _) = found.ok_or(Error::NotFound("asset"))?;
        Ok(Uploaded { asset, revision: None, replayed: true })
    }
}

impl UploadAsset<'_> {
    /// Adds an image or video node: at the cell of its link or the nearest free place, or else at the first free spot to the right of
    /// the content (docs/reference/assets.md#upload-into-a-canvas). Returns the revision that it gives the canvas.
    async fn place(
        &self,
        conn: &mut PgConnection,
        canvas: &CanvasRecord,
        id: NodeId,
        asset: &AssetRecord,
    ) -> Result<String> {
        let cell = self.link.as_ref().and_then(|link| link.cell);
        let title = cell.and_then(|cell| cell.title.as_ref()).unwrap_or(&asset.name);
        let title: String = title.chars().take(TITLE_MAX).collect();
        let size = (f64::from(asset.width), f64::from(asset.height));
        let (kind, summary, (width, height)) = match asset.kind {
            AssetKind::Video => (NodeType::Video, "uploaded a video", fitted_as(NodeType::Video, size, &title)),
            // A cell is as large as an image node usually is, and the image covers nothing beyond it.
            _ if cell.is_some() => {
                (NodeType::Image, "uploaded an image", fitted_within(size, &title, NodeType::Image.default_size()))
            }
            _ => (NodeType::Image, "uploaded an image", fitted(size, &title)),
        };
        let provenance = Provenance { created_at: Some(asset.created_at), ..Provenance::new(ProvenanceKind::Upload) };
        let server = ServerMetadata { provenance: Some(Box::new(provenance)), ..ServerMetadata::default() };
        let revision = service::random::revision();
        let activity = NewActivity {
            kind: ActivityType::AssetUploaded,
            actor: &self.caller.actor(),
            summary: summary.into(),
            nodes: std::slice::from_ref(&id),
        };
        let agent = self.caller.surface.is_agent();
        let mut graph = load(conn, canvas).await?;
        let shown =
            targets::Shown { id: id.clone(), kind, title, size: (width, height), asset: asset.handle.clone(), server };
        let location = Location { near: None, section: cell.and_then(|cell| cell.section.clone()) };
        let at = cell.map(|cell| cell.at);
        let applied = targets::show(&mut graph, shown, (at, location), Options { agent, force: false })
            .map_err(|refused| addition_refused(refused, "place."))?;
        let change = Change { activity: Some(activity), ..change(&revision, &graph, &applied) };
        db::canvases::write(conn, canvas.key, &change).await?;
        Ok(revision)
    }
}
