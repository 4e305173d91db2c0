//! The answers of operations: types of `domain`, which read every member that they know and ignore others.

pub use domain::account::AuthStatus;
pub use domain::action::{ActionPage, ActionRead};
pub use domain::asset::{AssetList, AssetRead};
pub use domain::campaign::{CampaignList, CampaignPlanned, CampaignRead};
pub use domain::canvas::{CanvasChanges, CanvasList, CanvasRead, MutationResult, NodeRead};
pub use domain::element::{
    CollectionDeleted, CollectionList, CollectionRead, ElementList, ElementOrVersion, ElementRead, VersionList,
};
pub use domain::import::{ImageImport, ProductImport};
pub use domain::job::{ActionRuns, ImageJob, JobDocument, RunList, StartQuote, VideoJob};
pub use domain::lineage::AssetLineage;
pub use domain::link::{DownloadLinks, UploadLinks};
pub use domain::model::{ConnectionList, ModelPage, ModelRead};
pub use domain::operation::{BatchSetAside, OperationsAnswer};
pub use domain::queue::ServiceStatus;
pub use domain::recipe::run::{RecipeRun, RunDocument};
pub use domain::recipe::workflow::WorkflowResult;
pub use domain::recipe::{RecipePage, RecipeRead};
pub use domain::review::CanvasReview;
pub use domain::webhook::{DeliveriesReplayed, DeliveryList, DeliveryReplayed};
use serde::Deserialize;

/// The answer to a start of a `T`.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Started<T> {
    /// 202: it was accepted, now or by an earlier equal request. First, because a record has all members of a quote.
    Accepted(Box<T>),
    /// 200: what it would cost, in answer to `validateOnly`.
    Quote(StartQuote),
}

/// A file or image: its bytes are the body of the answer ([`Call::read`](crate::Call::read)).
#[derive(Clone, Copy, Debug)]
pub enum File {}

/// A text that is not JSON ([`Answer::text`](crate::Answer::text)).
#[derive(Clone, Copy, Debug)]
pub enum Text {}

/// A stream of events ([`Call::events`](crate::Call::events)).
#[derive(Clone, Copy, Debug)]
pub enum EventStream {}
