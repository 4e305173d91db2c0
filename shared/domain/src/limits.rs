//! Numbers of the specification and the decisions that the code looks at. Schemas of requests say theirs where the fields are.

/// A plain id: `^[A-Za-z0-9_-]{1,180}$` (specification, Identifiers).
pub const PLAIN_ID_MAX: usize = 180;
/// Title of a canvas or node.
pub const TITLE_MAX: usize = 160;
/// `baseRevision`.
pub const BASE_REVISION_MAX: usize = 200;
/// `idempotencyKey`, shortest.
pub const IDEMPOTENCY_KEY_MIN: usize = 8;
/// `idempotencyKey`, longest.
pub const IDEMPOTENCY_KEY_MAX: usize = 200;
/// Operations in a batch.
pub const OPERATIONS_MAX: usize = 200;
/// Each coordinate of a position, either way.
pub const COORDINATE_MAX: f64 = 10_000_000.0;
/// Width and height of a node, from 1 (decisions 3.2).
pub const NODE_SIDE_MAX: f64 = 100_000.0;
/// Client-written metadata of one node, serialized (specification, Node rule 2).
pub const METADATA_BYTES_MAX: usize = 64 * 1024;
/// Nodes of a canvas (decisions 3.2).
pub const CANVAS_NODES_MAX: usize = 20_000;
/// Connections of a canvas (decisions 3.2).
pub const CANVAS_CONNECTIONS_MAX: usize = 40_000;
/// Serialized nodes and connections of a canvas (decisions 3.7).
pub const CANVAS_BYTES_MAX: i64 = 64 * 1024 * 1024;
/// Findings in one validation (decisions 4.5).
pub const FINDINGS_MAX: usize = 200;
/// Activity entries in a canvas read (decisions 3.6).
pub const ACTIVITY_MAX: i64 = 50;
/// Revisions whose changes are kept (decisions 4.7).
pub const CHANGES_KEPT: i64 = 1000;
/// Body of an operations batch (decisions 1.5).
pub const OPERATIONS_BODY_MAX: usize = 16 * 1024 * 1024;
/// Any other JSON body (decisions 1.5).
pub const JSON_BODY_MAX: usize = 1024 * 1024;
/// Nesting of a JSON body (decisions 1.5).
pub const JSON_DEPTH_MAX: usize = 64;
/// An upload (decisions 1.5).
pub const UPLOAD_MAX: u64 = 52_428_800;
/// A file name, decoded, in characters (decisions 6.3).
pub const FILE_NAME_MAX: usize = 255;
/// Length of a cursor.
pub const CURSOR_MAX: usize = 8192;
/// A page of canvases, most and default.
pub const CANVAS_PAGE_MAX: u32 = 25;
/// A page of assets, most.
pub const ASSET_PAGE_MAX: u32 = 200;
/// A page of anything else, most.
pub const PAGE_MAX: u32 = 100;
/// A page of anything but canvases when no `limit` is sent (decisions 1.8).
pub const PAGE_DEFAULT: u32 = 50;
/// Active tokens of an account.
pub const ACTIVE_TOKENS_MAX: i64 = 20;
/// A token's label, in characters.
pub const TOKEN_LABEL_MAX: usize = 80;
/// Days until a token expires, at most.
pub const TOKEN_EXPIRY_DAYS_MAX: u32 = 90;
/// Attempts of a webhook delivery (specification, Events).
pub const WEBHOOK_ATTEMPTS_MAX: i32 = 4;
/// Claims of one task before it fails with `runtime_failed` (reliability.md 2).
pub const TASK_CLAIMS_MAX: i32 = 5;
/// Side of an Action's output (decisions 8.1).
pub const OUTPUT_SIDE_MAX: u32 = 16_384;
/// Widths that a preview can be asked in (decisions 6.4).
pub const RENDITION_WIDTHS: [u32; 6] = [64, 128, 256, 512, 1024, 2048];
/// The rendition that is made when an asset is stored (decisions 6.4).
pub const RENDITION_EAGER: u32 = 512;
/// Element search text.
pub const ELEMENT_QUERY_MAX: usize = 160;
/// The longest side of a render as PNG, in pixels (decisions 3.10).
pub const RENDER_SIDE_MAX: u32 = 2048;
/// References of an image request, the source and the pictures of its Elements among them (specification, Images rule 2).
pub const IMAGE_REFERENCES_MAX: usize = 16;
/// References of a video request.
pub const VIDEO_REFERENCES_MAX: usize = 9;
/// A frame or a reference of a video request.
pub const VIDEO_PICTURE_MAX: usize = 2048;
/// Model search text.
pub const MODEL_QUERY_MAX: usize = 240;
/// Action search text.
pub const ACTION_QUERY_MAX: usize = 240;
/// Pictures of a product page that one import brings (specification, Limits).
pub const PACK_IMAGES_MAX: usize = 12;
/// Pictures of a page that are looked at (decisions 14.3).
pub const PACK_CANDIDATES_MAX: usize = 200;
/// HTML of a page that is read, in bytes (decisions 14.3).
pub const PAGE_BYTES_MAX: usize = 5 * 1024 * 1024;
/// The shortest side of a picture of a pack, in pixels (decisions 14.3).
pub const PACK_SIDE_MIN: u32 = 200;
/// Recipe search text.
pub const RECIPE_QUERY_MAX: usize = 500;
/// A Recipe's version as a request writes it.
pub const RECIPE_VERSION_MAX: usize = 80;
/// Inputs of a Recipe, and entries in the `inputs` of a run.
pub const RECIPE_INPUTS_MAX: usize = 16;
/// Outputs of a Recipe.
pub const RECIPE_OUTPUTS_MAX: usize = 8;
/// A Recipe's text output, in characters.
pub const RECIPE_TEXT_MAX: usize = 24_000;
/// A prompt, in characters.
pub const PROMPT_MAX: usize = 8000;
