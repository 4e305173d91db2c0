//! One method for each operation of the contract.

use http::Method;
use serde_json::Value;

use crate::answers::*;
use crate::{Call, Client};

/// An operation of the contract: its `operationId`, method and path.
pub type Operation = (&'static str, Method, &'static str);

macro_rules! operations {
    ($($(#[$doc:meta])+ $name:ident, $id:literal, $method:ident $path:literal $(, $segment:ident)* => $answer:ty;)+) => {
        /// All operations. A test holds them equal to those of the contract document.
        pub const OPERATIONS: &[Operation] = &[$(($id, Method::$method, $path)),+];

        impl Client {
            $(
                $(#[$doc])+
                pub fn $name(&self $(, $segment: &str)*) -> Call<$answer> {
                    Call::new(self, Method::$method, $path, &[$($segment),*])
                }
            )+
        }
    };
}

operations! {
    /// Image Actions. Query: `q`, `view`, `limit`, `cursor`.
    list_actions, "listActions", GET "/actions" => ActionPage;
    /// An Action with its parameters.
    get_action, "getAction", GET "/actions/{actionKey}", action => ActionRead;
    /// Starts an Action.
    run_action, "runAction", POST "/actions/{actionKey}/runs", action => Started<ImageJob>;
    /// Starts Actions in a row on each of several images.
    run_actions, "runActions", POST "/actions/runs" => Started<ActionRuns>;
    /// Assets of the account, or of a canvas. Query: `canvasId`, `kind`, `limit`, `cursor`.
    list_assets, "listAssets", GET "/assets" => AssetList;
    /// Stores an image. Query: `canvasId`. Takes its key as a header ([`Call::key`]).
    upload_asset, "uploadAsset", POST "/assets" => AssetRead;
    /// Makes links that download files without a token.
    create_downloads, "createDownloads", POST "/assets/downloads" => DownloadLinks;
    /// Makes links that take one file each without a token.
    create_uploads, "createUploads", POST "/assets/uploads" => UploadLinks;
    /// An image by its preview token. Query: `token`, `w`.
    get_asset_preview, "getAssetPreview", GET "/assets/preview" => File;
    /// A video by its token. Query: `token`.
    get_asset_video, "getAssetVideo", GET "/assets/video" => File;
    /// An asset. Query: `include`.
    get_asset, "getAsset", GET "/assets/{assetId}", asset => AssetRead;
    /// The bytes of an asset. Query: `w` for a rendition.
    get_asset_content, "getAssetContent", GET "/assets/{assetId}/content", asset => File;
    /// What an asset was made from, and what was made from it. Query: `direction`, `depth`, `limit`.
    get_asset_lineage, "getAssetLineage", GET "/assets/{assetId}/lineage", asset => AssetLineage;
    /// The account and the scopes of the token.
    get_auth_status, "getAuthStatus", GET "/auth/status" => AuthStatus;
    /// Campaigns (deprecated).
    list_campaigns, "listCampaigns", GET "/campaigns" => CampaignList;
    /// Plans a campaign (deprecated).
    plan_campaign, "planCampaign", POST "/campaigns/plan" => CampaignPlanned;
    /// Starts a campaign (deprecated).
    start_campaign, "startCampaign", POST "/campaigns/start" => Started<CampaignRead>;
    /// Cancels a campaign (deprecated).
    cancel_campaign, "cancelCampaign", DELETE "/campaigns/{runId}", run => CampaignRead;
    /// A campaign (deprecated).
    read_campaign, "readCampaign", GET "/campaigns/{runId}", run => CampaignRead;
    /// Reviews a campaign (deprecated).
    review_campaign, "reviewCampaign", POST "/campaigns/{runId}/review", run => CampaignRead;
    /// Canvases of the account, owned and shared. Query: `limit`, `cursor`.
    list_canvases, "listCanvases", GET "/canvases" => CanvasList;
    /// Makes a canvas.
    create_canvas, "createCanvas", POST "/canvases" => CanvasRead;
    /// A canvas with all nodes and connections.
    get_canvas, "getCanvas", GET "/canvases/{canvasId}", canvas => CanvasRead;
    /// The changes since a revision. Query: `since`, `include`. Preference: `wait=N`.
    get_canvas_changes, "getCanvasChanges", GET "/canvases/{canvasId}/changes", canvas => CanvasChanges;
    /// A node.
    get_node, "getNode", GET "/canvases/{canvasId}/nodes/{nodeId}", canvas, node => NodeRead;
    /// Applies a batch of operations, or tries it. Preferences: `return=minimal`, `handling=lenient`.
    apply_operations, "applyOperations", POST "/canvases/{canvasId}/operations", canvas => OperationsAnswer;
    /// Sets a batch of operations aside.
    set_batch_aside, "setBatchAside", POST "/canvases/{canvasId}/set-aside", canvas => BatchSetAside;
    /// A batch that was set aside.
    get_batch_set_aside, "getBatchSetAside", GET "/canvases/{canvasId}/set-aside/{batchId}", canvas, batch => BatchSetAside;
    /// A canvas as text for a model.
    get_canvas_outline, "getCanvasOutline", GET "/canvases/{canvasId}/outline", canvas => Text;
    /// A canvas as an image. Query: `section`, `nodes`, `width`, `labels`.
    render_canvas, "renderCanvas", GET "/canvases/{canvasId}/render", canvas => File;
    /// The findings of a canvas, and whether it may be called done.
    review_canvas, "reviewCanvas", GET "/canvases/{canvasId}/review", canvas => CanvasReview;
    /// Makes a Recipe from a part of a canvas.
    create_workflow, "createWorkflow", POST "/canvases/{canvasId}/workflows", canvas => WorkflowResult;
    /// The contract for language models.
    get_digest, "getDigest", GET "/digest.md" => Text;
    /// Collections of Elements. Query: `limit`, `cursor`.
    list_element_collections, "listElementCollections", GET "/element-collections" => CollectionList;
    /// Makes a collection.
    create_element_collection, "createElementCollection", POST "/element-collections" => CollectionRead;
    /// Deletes a collection.
    delete_element_collection, "deleteElementCollection", DELETE "/element-collections/{collectionId}", collection => CollectionDeleted;
    /// Renames a collection.
    rename_element_collection, "renameElementCollection", PATCH "/element-collections/{collectionId}", collection => CollectionRead;
    /// Elements. Query: `state`, `search`, `limit`, `cursor`.
    list_elements, "listElements", GET "/elements" => ElementList;
    /// Makes an Element.
    create_element, "createElement", POST "/elements" => ElementRead;
    /// An Element, or one of its versions. Query: `version`.
    get_element, "getElement", GET "/elements/{elementId}", element => ElementOrVersion;
    /// Changes an Element, or archives it.
    update_element, "updateElement", PATCH "/elements/{elementId}", element => ElementRead;
    /// The versions of an Element. Query: `limit`, `cursor`.
    list_element_versions, "listElementVersions", GET "/elements/{elementId}/versions", element => VersionList;
    /// Streams the present state of canvases and runs ([`Client::follow`]). Query: `canvas`, `runs`.
    follow_events, "followEvents", GET "/events" => EventStream;
    /// Starts an edit of images.
    edit_images, "editImages", POST "/images/edit" => Started<ImageJob>;
    /// Starts a generation of images.
    generate_images, "generateImages", POST "/images/generate" => Started<ImageJob>;
    /// Imports an image from a URL.
    import_image, "importImage", POST "/images/import" => ImageImport;
    /// Starts variations of an image.
    vary_images, "varyImages", POST "/images/variations" => Started<ImageJob>;
    /// Cancels a job. Query: `removeTargets`.
    cancel_job, "cancelJob", DELETE "/jobs/{jobId}", job => JobDocument;
    /// A job. Query: `view`. Preference: `wait=N`.
    get_job, "getJob", GET "/jobs/{jobId}", job => JobDocument;
    /// The file of a video job.
    get_job_output, "getJobOutput", GET "/jobs/{jobId}/output", job => File;
    /// Makes an asset of the video of a job.
    keep_job_video, "keepJobVideo", POST "/jobs/{jobId}/asset", job => AssetRead;
    /// Models. Query: `q`, `provider`, `capability`, `view`, `limit`, `cursor`.
    list_models, "listModels", GET "/models" => ModelPage;
    /// A model.
    get_model, "getModel", GET "/models/{modelKey}", model => ModelRead;
    /// The contract document.
    get_contract, "getContract", GET "/openapi.json" => Value;
    /// Imports the images of a product page.
    import_product_references, "importProductReferences", POST "/product-references/import" => ProductImport;
    /// The account's connections to providers. Query: `limit`, `cursor`.
    list_providers, "listProviders", GET "/providers" => ConnectionList;
    /// Recipes. Query: `q`, `visibility`, `view`, `limit`, `cursor`.
    list_recipes, "listRecipes", GET "/recipes" => RecipePage;
    /// A Recipe. Query: `version`.
    get_recipe, "getRecipe", GET "/recipes/{recipeId}", recipe => RecipeRead;
    /// Copies a Recipe onto a canvas.
    fork_recipe, "forkRecipe", POST "/recipes/{recipeId}/fork", recipe => MutationResult;
    /// Starts a Recipe.
    run_recipe, "runRecipe", POST "/recipes/{recipeId}/runs", recipe => Started<RecipeRun>;
    /// Runs and jobs of the account. Query: `kind`, `status`, `canvasId`, `limit`, `cursor`.
    list_runs, "listRuns", GET "/runs" => RunList;
    /// Cancels a run. Query: `removeTargets`.
    cancel_run, "cancelRun", DELETE "/runs/{runId}", run => RunDocument;
    /// A run. Query: `view`. Preference: `wait=N`.
    get_run, "getRun", GET "/runs/{runId}", run => RunDocument;
    /// Streams the states of a run. Query: `view`.
    follow_run, "followRun", GET "/runs/{runId}/events", run => EventStream;
    /// The queues, and whether workers are seen.
    get_status, "getStatus", GET "/status" => ServiceStatus;
    /// Deliveries of webhooks. Query: `status`, `limit`, `cursor`.
    list_webhook_deliveries, "listWebhookDeliveries", GET "/webhook-deliveries" => DeliveryList;
    /// Replays all failed deliveries. Query: `since`.
    replay_failed_webhook_deliveries, "replayFailedWebhookDeliveries", POST "/webhook-deliveries/replay" => DeliveriesReplayed;
    /// Replays a delivery.
    replay_webhook_delivery, "replayWebhookDelivery", POST "/webhook-deliveries/{deliveryId}/replay", delivery => DeliveryReplayed;
    /// Starts a video.
    generate_video, "generateVideo", POST "/videos/generate" => Started<VideoJob>;
    /// The contract document as a page.
    get_docs, "getDocs", GET "/docs" => Text;
}

impl Client {
    /// A request of any method to any path of the API, relative to its root, with its query.
    pub fn request(&self, method: Method, path: &str) -> Call<Value> {
        Call::to(self, method, format!("{}/{}", domain::API_ROOT, path.trim_start_matches('/')))
    }
}
