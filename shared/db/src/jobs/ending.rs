//! How a job ends, what its end needs, and what comes of the attempt.

use domain::graph::{Connection, Node};
use domain::id::{AssetId, NodeId};
use domain::job::{CancelReason, Failure, Output, Record};
use domain::review::{CompletionReview, StoredAssets};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::Windows;

/// A result to store and to show.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Placement {
    /// The node that shows it, if it still waits for it.
    pub node: NodeId,
    /// The id of the new asset; its owner is the canvas's.
    pub asset: AssetId,
    /// The asset's file name.
    pub name: String,
    /// Media type.
    pub mime_type: String,
    /// Pixels.
    pub width: u32,
    /// Pixels.
    pub height: u32,
    /// Of the stored file.
    pub bytes: u64,
    /// SHA-256 of the stored file.
    pub sha256: [u8; 32],
    /// The blob that was put.
    pub blob_key: Uuid,
    /// The node's new `provenance`; its `createdAt` is filled in.
    pub provenance: Map<String, Value>,
}

/// A video to store; the job's record has it and no asset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Film {
    /// The blob that was put: an MP4.
    pub blob_key: Uuid,
    /// SHA-256 of the stored file.
    pub sha256: [u8; 32],
    /// Of the stored file.
    pub bytes: u64,
}

/// How a job ends.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    /// With the video of a video job.
    Filmed(Film),
    /// With every output.
    Succeeded(Vec<Placement>),
    /// Without all of them; with those that were made all the same (decisions 10.6).
    Failed(Failure, Vec<Placement>),
    /// Because it was stopped.
    Canceled(CancelReason),
}

/// What the end of a job takes from the process that brings it about.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// A fresh revision, for the canvas.
    pub revision: &'a str,
    /// The origin of `canvasUrl` in the event.
    pub public_url: &'a str,
    /// How long the record is kept.
    pub windows: &'a Windows,
    /// W3C trace context of what ends it, carried on to the webhook.
    pub traceparent: Option<&'a str>,
    /// Makes the review that the job leaves behind.
    pub review: Review,
    /// Bytes that an account without a quota of its own may store; 0: no limit.
    pub storage_max: i64,
}

/// Reviews a canvas: nodes and connections, the stored ones among the assets that they name, and the outputs whose nodes
/// are gone (decisions 9.6).
pub type Review = fn(Vec<Node>, Vec<Connection>, &StoredAssets, &[Output]) -> CompletionReview;

/// What came of an attempt to end a job. Only after `Done` the transaction is to be committed, and the relay nudged.
#[derive(Clone, Debug, PartialEq)]
pub enum Concluded {
    /// It is over; the record as it is now.
    Done(Box<Record>),
    /// The lease is no longer current: somebody else has it, or has ended it.
    Stale,
    /// A blob was swept between its put and this; it has to be put again.
    BlobGone,
}
