//! `POST /assets/uploads`: links that take one file each without a token (docs/reference/assets.md#upload-links).

use ::canvas::placement::Location;
use ::canvas::targets::{self, Place};
use axum::extract::State;
use db::links::NewLinks;
use domain::Violation;
use domain::account::Scope;
use domain::graph::{NodeType, Position};
use domain::id::{AccountUid, CanvasHandle, CanvasReference, NodeReference};
use domain::limits::{UPLOAD_LINKS_MAX, UPLOAD_MAX};
use domain::link::{Cell, Slot, UploadLink, UploadLinks};
use http::StatusCode;
use serde::Deserialize;
use utoipa::ToSchema;

use super::downloads::OPEN_RETRY;
use super::upload::{file_name, hex};
use crate::extract::caller::{Caller, UploadAsset};
use crate::extract::canvas::{canvas_of, require_writer};
use crate::extract::check::Check;
use crate::extract::json::{Input, JsonBody};
use crate::links::Secret;
use crate::openapi::errors::ReadErrors;
use crate::place::{location_of, position_of};
use crate::problem::{Problem, Result};
use crate::reply;
use crate::state::App;

/// Lifetime of a link in seconds, unless the request names one.
const SECONDS_DEFAULT: u32 = 900;

/// Request for upload links.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UploadRequest {
    /// The files to upload.
    #[schema(min_items = 1, max_items = 20, inline)]
    files: Vec<UploadFile>,
    /// Canvas that stores the uploads and shows each in a new node.
    #[schema(value_type = Option<CanvasReference>)]
    canvas_id: Option<String>,
    /// Where the nodes go, as one block. Only with `canvasId`; a free place is found when it is left out.
    #[schema(inline)]
    place: Option<UploadPlace>,
    /// Lifetime of the links.
    #[schema(minimum = 60, maximum = 3600)]
    expires_in_seconds: Option<u32>,
}

/// A file to upload.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct UploadFile {
    /// Name of the file.
    #[schema(min_length = 1, max_length = 255)]
    name: String,
    /// Size of the file in bytes; another size is refused.
    #[schema(minimum = 1, maximum = 52_428_800)]
    bytes: Option<u64>,
    /// SHA-256 of the file; other bytes are refused.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    sha256: Option<String>,
}

/// Where the nodes of uploads go.
#[derive(Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct UploadPlace {
    /// Node next to which they are placed. Only without `x` and `y`.
    #[schema(value_type = Option<NodeReference>)]
    near: Option<String>,
    /// Section that they join. It grows if it has no room for them.
    #[schema(value_type = Option<NodeReference>)]
    section_id: Option<String>,
    /// Left edge of the block, in canvas units. With `y`.
    #[schema(minimum = -10_000_000, maximum = 10_000_000)]
    x: Option<f64>,
    /// Top edge of the block, in canvas units. With `x`.
    #[schema(minimum = -10_000_000, maximum = 10_000_000)]
    y: Option<f64>,
    /// Title of each node; the name of its file when omitted.
    #[schema(max_length = 160)]
    title: Option<String>,
}

impl Input for UploadRequest {}

/// A checked request.
struct Checked {
    /// The files, each with the name as it was sent.
    files: Vec<(String, Slot)>,
    canvas: Option<CanvasHandle>,
    location: Location,
    at: Option<Position>,
    title: Option<String>,
    seconds: u32,
}

impl UploadRequest {
    fn check(self, account: &AccountUid) -> Result<Checked, Vec<Violation>> {
        let Self { files, canvas_id, place, expires_in_seconds } = self;
        let mut check = Check::default();
        let canvas = canvas_id.as_deref().and_then(|canvas| canvas_of(&mut check, canvas, None, account));
        check.note_if(place.is_some() && canvas_id.is_none(), "place", "needs canvasId");
        let UploadPlace { near, section_id, x, y, title } = place.unwrap_or_default();
        let at = position_of(&mut check, near.is_some(), x, y);
        let location = location_of(&mut check, "place.", near.as_deref(), section_id.as_deref());
        let slot = |UploadFile { name, bytes, sha256 }: UploadFile| {
            let slot = Slot { name: file_name::from_path(&name), bytes, sha256, cell: None };
            (name, slot)
        };
        let files: Vec<_> = files.into_iter().map(slot).collect();
        for (index, (_, slot)) in files.iter().enumerate() {
            check.note_if(slot.name.is_none(), format!("files[{index}].name"), "must name a file");
        }
        let seconds = expires_in_seconds.unwrap_or(SECONDS_DEFAULT);
        check.finish(|| Some(Checked { files, canvas, location, at, title, seconds }))
    }
}

/// Make upload links
///
/// Returns, for each file, a URL to which anybody sends its bytes once with a PUT and without a token, until the link
/// expires or the token that made it ends, and a curl command that does so. Use it to upload images with a shell that has
/// no token. The PUT answers like an upload, with `asset`, `node` and `canvas`. Images only, at most 52428800 bytes each.
/// With `canvasId`, which also needs the scopes canvas:read and canvas:write, a new node shows each image. An account has
/// at most 100 open links (429).
#[utoipa::path(
    post, path = "/assets/uploads", operation_id = "createUploads", tag = "Assets", request_body = UploadRequest,
    security(("bearer" = ["asset:read", "image:generate"]), ("bearer" = ["asset:read", "video:generate"])),
    responses(ReadErrors, (status = 422), (status = 201, description = "The links.", body = UploadLinks))
)]
pub async fn create(State(app): State<App>, caller: Caller<UploadAsset>, body: JsonBody) -> Result {
    let mut checked = body.checked(|body: UploadRequest| body.check(&caller.account)).await?;
    let canvas_key = match checked.canvas.take() {
        None => None,
        Some(canvas) => {
            caller.require(&[Scope::CanvasRead, Scope::CanvasWrite])?;
            Some(choose_cells(&app, &caller.account, &canvas, &mut checked).await?)
        }
    };
    caller.require_acceptable()?;
    let Checked { files, seconds, .. } = checked;
    let made: Vec<(String, Slot, Secret)> =
        files.into_iter().map(|(name, slot)| (name, slot, Secret::generate())).collect();
    let links: Vec<_> = made.iter().map(|(_, slot, secret)| (secret.hash(), slot.clone())).collect();
    let mut transaction = app.transaction().await?;
    let of = (&caller.account, caller.token);
    let links = NewLinks::Uploads(&links, canvas_key);
    let expires_at = db::links::create(&mut transaction, of, links, seconds).await?.ok_or_else(|| {
        Problem::RateLimited(format!("an account has at most {UPLOAD_LINKS_MAX} open upload links"), OPEN_RETRY)
    })?;
    db::pool::commit(transaction).await?;
    let link = |(path, slot, secret): (String, Slot, Secret)| {
        let url = secret.upload_url(&app);
        UploadLink {
            id: hex(&secret.hash()[..8]),
            name: slot.name.unwrap_or_default(),
            curl: curl(&path, &url),
            url,
            max_bytes: slot.bytes.unwrap_or(UPLOAD_MAX),
            expires_at,
        }
    };
    Ok(reply::with_status(StatusCode::CREATED, &UploadLinks { uploads: made.into_iter().map(link).collect() }))
}

/// Gives each file its cell of one block on the canvas, which the account may change. Returns the key of the canvas.
async fn choose_cells(
    app: &App,
    account: &AccountUid,
    canvas: &CanvasHandle,
    Checked { files, location, at, title, .. }: &mut Checked,
) -> Result<i64> {
    let mut snapshot = db::pool::snapshot(&app.pool).await?;
    let found = db::canvases::find(&mut snapshot, account, canvas).await?;
    let (record, role) = found.ok_or(Problem::NotFound("canvas"))?;
    require_writer(role)?;
    let mut graph = app.graphs.copy(&mut snapshot, &record).await?;
    drop(snapshot);
    let refused = location.violations(&graph).into_iter();
    let refused: Vec<_> = refused.map(|it| Violation::new(format!("place.{}", it.field), it.message)).collect();
    if !refused.is_empty() {
        return Err(Problem::Unprocessable(refused));
    }
    let kind = NodeType::Image;
    let place = Place { kind, location: location.clone(), at: *at, title: None, count: files.len() };
    let cells = targets::block(&mut graph, &place, kind.default_size());
    for ((_, slot), at) in files.iter_mut().zip(cells) {
        slot.cell = Some(Cell { at, section: location.section.clone(), title: title.clone() });
    }
    Ok(record.key)
}

/// A command that sends the file with this path, for a POSIX shell.
fn curl(path: &str, url: &str) -> String {
    let path: String = path.chars().filter(|character| !character.is_control()).collect();
    // curl reads brackets and braces as a list of files unless it is told not to.
    let literal = if path.contains(['[', ']', '{', '}']) { "g" } else { "" };
    format!("curl -{literal}fsS -T {} '{url}'", quoted(&path))
}

/// A text as one word of a POSIX shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_one_word_of_the_shell() {
        let url = "https://h/u/s";
        assert_eq!(curl("hero.jpg", url), "curl -fsS -T 'hero.jpg' 'https://h/u/s'");
        assert_eq!(curl("it's $(a) `b`.jpg", url), r"curl -fsS -T 'it'\''s $(a) `b`.jpg' 'https://h/u/s'");
        assert_eq!(curl("a\n[1].jpg", url), "curl -gfsS -T 'a[1].jpg' 'https://h/u/s'");
    }
}
