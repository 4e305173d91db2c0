//! Limits that the code checks. Request schemas state theirs at the fields. All limits: `docs/reference/limits.md`.

/// Length of a plain id, `^[A-Za-z0-9_-]{1,180}$`.
pub const PLAIN_ID_MAX: usize = 180;
/// Title of a canvas or node, in characters.
pub const TITLE_MAX: usize = 160;
/// Title of a run in a list, in characters.
pub const RUN_TITLE_MAX: i32 = 120;
/// Results of a run in a list.
pub const RUN_RESULTS_MAX: i64 = 4;
/// Nodes and connections together that a read of changes returns in full.
pub const CHANGES_GRAPH_MAX: usize = 1000;
/// Shortest `idempotencyKey`, in characters.
pub const IDEMPOTENCY_KEY_MIN: usize = 8;
/// Longest `idempotencyKey`, in characters.
pub const IDEMPOTENCY_KEY_MAX: usize = 200;
/// Operations in a batch.
pub const OPERATIONS_MAX: usize = 200;
/// Absolute value of each coordinate of a position, in canvas units.
pub const COORDINATE_MAX: f64 = 10_000_000.0;
/// Width and height of a node, in canvas units; the least is 1.
pub const NODE_SIDE_MAX: f64 = 100_000.0;
/// Largest gap between arranged nodes, and largest padding of a Section, in canvas units.
pub const GAP_MAX: f64 = 1000.0;
/// Most nodes that a layout operation names.
pub const ARRANGED_MAX: usize = 200;
/// Most nodes that the layout operations of a batch move: as many as a canvas holds.
pub const BATCH_MOVES_MAX: usize = CANVAS_NODES_MAX;
/// Maximum number of members that the Sections that a batch deletes and restores have together, each time counted: enough to delete
/// the largest Section and to restore it.
pub const BATCH_REGROUPED_MAX: usize = 2 * CANVAS_NODES_MAX;
/// Client-written metadata of one node, in bytes of JSON.
pub const METADATA_BYTES_MAX: usize = 64 * 1024;
/// Nodes of a canvas.
pub const CANVAS_NODES_MAX: usize = 20_000;
/// Connections of a canvas.
pub const CANVAS_CONNECTIONS_MAX: usize = 40_000;
/// Nodes and connections of a canvas, in bytes of served JSON (`docs/reference/canvases.md#canvas-limits`).
pub const CANVAS_BYTES_MAX: i64 = 64 * 1024 * 1024;
/// Findings in one validation (`docs/reference/findings.md#order-and-truncation`).
pub const FINDINGS_MAX: usize = 200;
/// Canvases of an account.
pub const CANVASES_MAX: i64 = 10_000;
/// Private workflows of an account.
pub const WORKFLOWS_MAX: i64 = 1000;
/// Elements of an account, archived ones included.
pub const ELEMENTS_MAX: i64 = 5000;
/// Versions of an Element.
pub const ELEMENT_VERSIONS_MAX: i32 = 500;
/// Element collections of an account.
pub const COLLECTIONS_MAX: i64 = 500;
/// Activity entries in a canvas read.
pub const ACTIVITY_MAX: i64 = 50;
/// Revisions of a canvas whose changes are kept (`docs/reference/canvases.md#changes-since-a-revision`).
pub const CHANGES_KEPT: i64 = 1000;
/// Deletions of a canvas that are kept, in bytes of what they deleted (`docs/reference/operations.md#kept-deletions`).
pub const DELETED_BYTES_MAX: i64 = CANVAS_BYTES_MAX;
/// Maximum changed nodes that a revision conflict names.
pub const CONFLICT_NODES_MAX: usize = 50;
/// Violations that a response lists (docs/reference/limits.md). The others are counted.
pub const VIOLATIONS_MAX: usize = 100;
/// Violations at which a check may stop.
pub const VIOLATIONS_COUNTED_MAX: usize = 10_000;
/// Body of an operations batch, in bytes.
pub const OPERATIONS_BODY_MAX: usize = 16 * 1024 * 1024;
/// Body with a batch to set aside, in bytes.
pub const SET_ASIDE_BODY_MAX: usize = 256 * 1024;
/// Batches of an account that are set aside.
pub const SET_ASIDE_MAX: i64 = 20;
/// How long a batch is set aside.
pub const SET_ASIDE_SECONDS: i32 = 600;
/// The body that signs in to the console, in bytes: nothing is known of who sends it.
pub const SIGN_IN_BODY_MAX: usize = 4096;
/// Any other JSON body, in bytes.
pub const JSON_BODY_MAX: usize = 1024 * 1024;
/// Nesting of a JSON body, in levels.
pub const JSON_DEPTH_MAX: usize = 64;
/// An upload, in bytes.
pub const UPLOAD_MAX: u64 = 52_428_800;
/// An upload of a video, in bytes.
pub const FILM_BYTES_MAX: u64 = 524_288_000;
/// An uploaded video, in seconds.
pub const FILM_SECONDS_MAX: u64 = 600;
/// A side of an uploaded video, in pixels.
pub const FILM_SIDE_MAX: u16 = 4096;
/// Tracks of an uploaded video: pictures, sound, subtitles and what cameras add.
pub const FILM_TRACKS_MAX: usize = 32;
/// The longest side of the poster that is made of a video, in pixels. It is recorded as the rendition of this width.
pub const POSTER_SIDE: u32 = 1280;
/// What one import reads of foreign servers, in bytes.
pub const IMPORT_BYTES_MAX: u64 = 200 << 20;
/// What a stored file or canvas counts at least towards the storage of its account, in bytes (`docs/reference/assets.md#storage-quota`).
pub const STORED_MIN: i64 = 64 * 1024;
/// Open download links of an account.
pub const DOWNLOAD_LINKS_MAX: i64 = 1000;
/// Open upload links of an account.
pub const UPLOAD_LINKS_MAX: i64 = 100;
/// A file name after decoding, in characters.
pub const FILE_NAME_MAX: usize = 255;
/// Nodes that are listed of those that show an asset.
pub const PLACES_MAX: i64 = 20;
/// Depth of a lineage, unless the request names another.
pub const LINEAGE_DEPTH: u32 = 3;
/// Depth of a lineage, at most.
pub const LINEAGE_DEPTH_MAX: u32 = 20;
/// Items of a lineage, unless the request names another number.
pub const LINEAGE_ITEMS: u32 = 100;
/// Items of a lineage, at most.
pub const LINEAGE_ITEMS_MAX: u32 = 500;
/// Cursor of a list, in characters.
pub const CURSOR_MAX: usize = 8192;
/// Canvases in a page; also the default.
pub const CANVAS_PAGE_MAX: u32 = 25;
/// Assets in a page.
pub const ASSET_PAGE_MAX: u32 = 200;
/// Entries in a page of any other list.
pub const PAGE_MAX: u32 = 100;
/// Entries in a page when a request has no `limit`. Lists of canvases default to [`CANVAS_PAGE_MAX`].
pub const PAGE_DEFAULT: u32 = 50;
/// Active tokens of an account.
pub const ACTIVE_TOKENS_MAX: i64 = 20;
/// Apps of a person. One more ends the one that was not used for the longest time.
pub const APPS_MAX: i64 = 50;
/// Lifetime of an authorization code, in seconds.
pub const CODE_SECONDS: u32 = 60;
/// Time within which a refresh may be repeated, in seconds.
pub const REFRESH_REPLAY_SECONDS: u32 = 60;
/// Time for which the access token before a refresh stays valid, in seconds.
pub const ACCESS_OVERLAP_SECONDS: u32 = 120;
/// Name of an OAuth client, in characters.
pub const CLIENT_NAME_MAX: usize = 80;
/// Redirect address of an OAuth client, in bytes.
pub const REDIRECT_URI_MAX: usize = 512;
/// Redirect addresses of a registered or listed OAuth client.
pub const REDIRECT_URIS_MAX: usize = 5;
/// `client_id` of a registered OAuth client, in characters.
pub const CLIENT_ID_MAX: usize = 1500;
/// Outputs a day of an app that may generate, unless the person decides otherwise.
pub const OAUTH_DEFAULT_OUTPUTS: i64 = 100;
/// Seconds that a device code waits for a person.
pub const DEVICE_SECONDS: u32 = 600;
/// Seconds between two requests with a device code; each that comes too early adds as many, up to [`DEVICE_INTERVAL_MAX`].
pub const DEVICE_INTERVAL: u32 = 5;
/// The most seconds between two requests with a device code: less than the 60 that it is good for once a person has allowed it.
pub const DEVICE_INTERVAL_MAX: u32 = 30;
/// Device codes that wait for a person, in the installation.
pub const DEVICES_MAX: i64 = 1000;
/// Device codes from an address in a minute.
pub const DEVICES_PER_MINUTE: u32 = 5;
/// User codes that wait for nobody, of an account in an hour.
pub const DEVICE_MISSES_MAX: i64 = 10;
/// `state` of an authorization request, in bytes.
pub const OAUTH_STATE_MAX: usize = 2048;
/// Query of an authorization request, in bytes.
pub const OAUTH_QUERY_MAX: usize = 16_384;
/// Body of a request to an OAuth endpoint, in bytes.
pub const OAUTH_BODY_MAX: usize = 16 * 1024;
/// Requests to the token endpoint from an address in a minute.
pub const OAUTH_TOKENS_PER_MINUTE: u32 = 60;
/// Registrations of OAuth clients from an address in a minute.
pub const OAUTH_REGISTRATIONS_PER_MINUTE: u32 = 20;
/// Active sessions of a person. One more ends the oldest.
pub const SESSIONS_MAX: i64 = 10;
/// Lifetime of a session, in days.
pub const SESSION_DAYS: i32 = 30;
/// Time after which an unused session ends, in hours.
pub const SESSION_IDLE_HOURS: i32 = 12;
/// Lifetime of a sign-in link, in minutes.
pub const SIGNIN_LINK_MINUTES: u32 = 15;
/// Maximum lifetime of a sign-in link, in minutes: one day.
pub const SIGNIN_LINK_MINUTES_MAX: u32 = 24 * 60;
/// Minutes from the start of a sign-in with a provider to its end.
pub const SIGNIN_PROVIDER_MINUTES: i64 = 10;
/// Minutes after a sign-in in which a person links and unlinks identities.
pub const SIGNIN_RECENT_MINUTES: i32 = 15;
/// Identities of an account.
pub const IDENTITIES_MAX: i64 = 20;
/// Label of a token, in characters.
pub const TOKEN_LABEL_MAX: usize = 80;
/// Lifetime of a token, in days.
pub const TOKEN_EXPIRY_DAYS_MAX: u32 = 90;
/// Budgets of a token, an app or an account.
pub const BUDGETS_MAX: usize = 8;
/// Maximum of a budget: the largest whole number that every JSON parser keeps.
pub const BUDGET_MAX: i64 = (1 << 53) - 1;
/// Email of an account, in bytes.
pub const EMAIL_MAX: usize = 254;
/// Name of a saved connection, in characters.
pub const CONNECTION_NAME_MAX: usize = 80;
/// API key of a saved connection, in bytes. No provider's key is as long; a file sent by mistake is longer.
pub const CONNECTION_KEY_MAX: usize = 4096;
/// Saved connections of an account.
pub const CONNECTIONS_MAX: i64 = 100;
/// Changes of the members of canvases that an owner may make in a minute.
pub const MEMBER_CHANGES_PER_MINUTE: u32 = 20;
/// Tokens that an account may create in the console in an hour.
pub const TOKENS_PER_HOUR: u32 = 20;
/// Sign-ins to the console from one address in a minute.
pub const SIGN_INS_PER_MINUTE: u32 = 30;
/// Pointers that a session may send in a minute.
pub const POINTERS_PER_MINUTE: u32 = 600;
/// Body of a pointer, in bytes.
pub const POINTER_BODY_MAX: usize = 2048;
/// People whose pointers are shown on a canvas.
pub const POINTERS_MAX: usize = 32;
/// Time for which a pointer is shown after it was sent, in seconds.
pub const POINTER_SECONDS: u64 = 10;
/// Attempts of a webhook delivery.
pub const WEBHOOK_ATTEMPTS_MAX: i32 = 4;
/// Claims of one task before it fails with `runtime_failed` (`docs/reliability.md#retries`).
pub const TASK_CLAIMS_MAX: i32 = 5;
/// Width and height of an Action's output, in pixels.
pub const OUTPUT_SIDE_MAX: u32 = 16_384;
/// Widths in which a preview can be requested, in pixels.
pub const RENDITION_WIDTHS: [u32; 6] = [64, 128, 256, 512, 1024, 2048];
/// Width of the rendition that is made when an asset is stored, in pixels.
pub const RENDITION_EAGER: u32 = 512;
/// Longest side of a render as PNG, in pixels.
pub const RENDER_SIDE_MAX: u32 = 2048;
/// Nodes that a render of a part of a canvas can name.
pub const RENDER_NODES_MAX: usize = 200;
/// References of an image request, including its source and the images of its Elements.
pub const IMAGE_REFERENCES_MAX: usize = 16;
/// References of a video request.
pub const VIDEO_REFERENCES_MAX: usize = 9;
/// A frame or reference of a video request as it is written, in characters.
pub const VIDEO_IMAGE_MAX: usize = 2048;
/// Images that one product import stores.
pub const PACK_IMAGES_MAX: usize = 12;
/// Images of a product page that one import examines.
pub const PACK_CANDIDATES_MAX: usize = 200;
/// HTML that is read of a product page, in bytes.
pub const PAGE_BYTES_MAX: usize = 5 * 1024 * 1024;
/// Least length of the shorter side of an imported product image, in pixels.
pub const PACK_SIDE_MIN: u32 = 200;
/// Inputs of a Recipe, and entries in the `inputs` of a run.
pub const RECIPE_INPUTS_MAX: usize = 16;
/// Outputs of a Recipe.
pub const RECIPE_OUTPUTS_MAX: usize = 8;
/// Text output of a Recipe, in characters.
pub const RECIPE_TEXT_MAX: usize = 24_000;
/// A prompt, in characters.
pub const PROMPT_MAX: usize = 8000;
/// Maximum width of the transition at the edge of a mask, in pixels.
pub const MASK_FEATHER_MAX: u32 = 64;
/// Its default.
pub const MASK_FEATHER_DEFAULT: u32 = 8;
