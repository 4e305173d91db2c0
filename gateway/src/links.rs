//! `/d/{secret}` and `/u/{secret}`: one download or one upload for whoever has the secret
//! (docs/reference/assets.md#capability-links).
//!
//! **Guarantee.** A link gives what its token may have at that moment, and the answer is the same 404 whatever is missing. **Mechanism.**
//! A link is found by the hash of its secret, and its token, its account and the access to what it names are looked up at each use. An
//! upload is that of `POST /assets`, in the name of the token; the transaction that stores it also fills the link.

use std::time::Duration;

use app::upload::Uploaded;
use axum::body::{Body, HttpBody};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use axum::{Extension, Router};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use blob::BlobKey;
use db::PgConnection;
use db::accounts::Credential;
use db::links::{Download, SecretHash, Served, Upload as UploadLink};
use domain::asset::AssetMediaType;
use domain::id::{AccountUid, CanvasHandle};
use domain::link::{Filled, Uploaded as UploadAnswer, UploadedInto};
use http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, HeaderName, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use service::shares::Key;
use sha2::{Digest, Sha256};
use tokio::{runtime::Handle, task::JoinHandle};
use uuid::Uuid;

use crate::address::ClientAddress;
use crate::admission::admitted;
use crate::extract::caller::{Caller, UploadAsset, record_caller};
use crate::extract::json::declared_length;
use crate::extract::path::PathText;
use crate::observe::Trace;
use crate::problem::{Problem, Result};
use crate::rates::Charges;
use crate::reply;
use crate::routes::assets::upload::receive::{Declared, EMPTY, digest};
use crate::routes::assets::upload::{FromLink, Place, Upload};
use crate::runs::video_of;
use crate::state::App;
use crate::stored::{self, Selection};

/// How long a lease of an upload link lasts without a renewal, in seconds, and the pause between renewals.
const LEASE_SECONDS: i32 = 15;
const RENEWAL: Duration = Duration::from_secs(5);

/// The paths of the routes, in front of the secret.
const DOWNLOAD: &str = "/d/";
const UPLOAD: &str = "/u/";

/// The routes.
pub fn router() -> Router<App> {
    Router::new().route("/d/{secret}", get(download)).route("/u/{secret}", put(upload))
}

/// Returns `true` if a path is one of these routes. They are for no page of another origin.
pub fn contains(path: &str) -> bool {
    path.starts_with(DOWNLOAD) || path.starts_with(UPLOAD)
}

/// A secret, to be told once.
pub struct Secret([u8; 16]);

impl Secret {
    pub fn generate() -> Self {
        Self(service::random::link_secret())
    }

    /// The secret of a path; `None` if it has not the form of one.
    fn parse(text: &str) -> Option<Self> {
        URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok().map(Self)
    }

    pub fn hash(&self) -> SecretHash {
        Sha256::digest(self.0).into()
    }

    pub fn download_url(&self, app: &App) -> String {
        self.url(app, DOWNLOAD)
    }

    pub fn upload_url(&self, app: &App) -> String {
        self.url(app, UPLOAD)
    }

    fn url(&self, app: &App, path: &str) -> String {
        format!("{}{path}{}", app.config.public_url.trim_end_matches('/'), URL_SAFE_NO_PAD.encode(self.0))
    }
}

/// The answer to whatever a link does not give.
fn gone() -> Problem {
    Problem::NotFound("link")
}

/// A problem as the holder of a link may see it: without what tells about the account of its token.
fn hidden(problem: Problem) -> Problem {
    match problem {
        Problem::Unauthorized | Problem::NotFound(_) | Problem::Forbidden(_) | Problem::ScopesMissing(..) => gone(),
        Problem::StorageFull { field, .. } => Problem::StorageFull { field, own: None },
        other => other,
    }
}

/// Adds the headers that keep a link from being stored, told to others or shown as a page.
fn with_headers(result: Result) -> Response {
    let mut response = result.into_response();
    let headers = response.headers_mut();
    for (name, value) in [
        (CACHE_CONTROL, "no-store"),
        (REFERRER_POLICY, "no-referrer"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"),
        (HeaderName::from_static("x-robots-tag"), "noindex"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// A kind of links.
trait Link: Sized + Send {
    /// The link with this secret, unless it has ended.
    fn find(conn: &mut PgConnection, hash: &SecretHash) -> impl Future<Output = db::Result<Option<Self>>> + Send;

    /// The token that made it.
    fn token(&self) -> Uuid;
}

impl Link for Download {
    async fn find(conn: &mut PgConnection, hash: &SecretHash) -> db::Result<Option<Self>> {
        db::links::find_download(conn, hash).await
    }

    fn token(&self) -> Uuid {
        self.token
    }
}

impl Link for UploadLink {
    async fn find(conn: &mut PgConnection, hash: &SecretHash) -> db::Result<Option<Self>> {
        db::links::find_upload(conn, hash).await
    }

    fn token(&self) -> Uuid {
        self.token
    }
}

/// The link whose secret is in the path, the hash of the secret, and the token, which is valid. Anything else counts as a failed
/// credential of the address.
async fn open<L: Link>(app: &App, address: ClientAddress, params: &PathText) -> Result<(SecretHash, L, Credential)> {
    let text = params.parameter::<String>("secret").unwrap_or_default();
    let hash = Secret::parse(&text).map(|secret| secret.hash());
    // Told apart by their hashes, links that were valid lately are not refused for the failures of an address.
    let id = hash.and_then(|hash| Uuid::from_slice(&hash[..16]).ok());
    let lookup = async {
        let Some(hash) = hash else { return Ok(None) };
        let Some(link) = L::find(&mut *app.connection().await?, &hash).await? else { return Ok(None) };
        let found = app.credentials.look_up(link.token(), None).await?;
        Ok(found.filter(|(credential, _)| credential.valid).map(|(credential, _)| (hash, link, credential)))
    };
    let opened = app.failures.judge(address, id, lookup).await.map_err(hidden)?;
    record_caller(&opened.2);
    Ok(opened)
}

async fn download(
    State(app): State<App>,
    Extension(address): Extension<ClientAddress>,
    params: PathText,
    method: Method,
    headers: HeaderMap,
) -> Response {
    with_headers(serve(&app, address, &params, &method, &headers).await)
}

/// Streams the file of a download link.
async fn serve(app: &App, address: ClientAddress, params: &PathText, method: &Method, headers: &HeaderMap) -> Result {
    let selection = Selection::from_headers(method, headers).map_err(Problem::Invalid)?;
    let (_, link, credential) = open::<Download>(app, address, params).await?;
    // Whoever holds a URL is nobody to its owner, as with previews.
    let _place = admitted(&app.requests, &Key::Address(address.into()), 1).await?;
    let account = &credential.account;
    let mut response = match &link.served {
        Served::Asset(asset) => {
            let content = db::assets::content(&mut *app.connection().await?, asset, Some(account)).await?;
            let content = content.ok_or_else(gone)?;
            let served = stored::Served {
                key: BlobKey(content.blob_key),
                sha256: &content.sha256,
                owner: &content.owner,
                media_type: &content.mime_type,
            };
            stored::serve(app, served, &selection).await?
        }
        Served::Video(job) => {
            let video = video_of(app, account, *job).await.map_err(hidden)?;
            let served = stored::Served {
                key: BlobKey(video.blob_key),
                sha256: &video.sha256,
                owner: account,
                media_type: AssetMediaType::Mp4.as_str(),
            };
            stored::serve(app, served, &selection).await?
        }
    };
    stored::set(response.headers_mut(), CONTENT_DISPOSITION, &attachment(&link.name))?;
    Ok(response)
}

/// `Content-Disposition` of a file with this name (RFC 6266).
fn attachment(name: &str) -> String {
    let plain =
        |character: char| character.is_ascii_graphic() && !matches!(character, '"' | '\\' | '%') || character == ' ';
    let ascii: String = name.chars().map(|character| if plain(character) { character } else { '_' }).collect();
    match ascii == name {
        true => format!("attachment; filename=\"{ascii}\""),
        false => {
            let encoded = utf8_percent_encode(name, NON_ALPHANUMERIC);
            format!("attachment; filename=\"{ascii}\"; filename*=UTF-8''{encoded}")
        }
    }
}

async fn upload(
    State(app): State<App>,
    Extension(trace): Extension<Trace>,
    Extension(address): Extension<ClientAddress>,
    Extension(charges): Extension<Charges>,
    params: PathText,
    headers: HeaderMap,
    body: Body,
) -> Response {
    with_headers(receive(&app, (trace, address, &charges), &params, declared_length(&headers), body).await)
}

/// Takes the file of an upload link.
async fn receive(
    app: &App,
    (trace, address, charges): (Trace, ClientAddress, &Charges),
    params: &PathText,
    length: Option<u64>,
    body: Body,
) -> Result {
    let (hash, link, credential) = open::<UploadLink>(app, address, params).await?;
    let caller = Caller::<UploadAsset>::from_link(app, charges, credential).await.map_err(hidden)?;
    if let Some(canvas) = &link.canvas {
        let found = db::canvases::find(&mut *app.connection().await?, &caller.account, canvas).await?;
        found.filter(|(_, role)| role.may_write()).ok_or_else(gone)?;
    }
    let declared = Declared::Image(None);
    if length.is_some_and(|length| length > declared.bytes_max()) {
        return Err(Problem::PayloadTooLarge(declared.bytes_max()));
    }
    if body.size_hint().exact() == Some(0) {
        return Err(Problem::invalid("body", EMPTY));
    }
    if let Some((sha256, filled)) = link.filled {
        return match digest(app, &caller, length, body).await?[..] == sha256[..] {
            true => replay(app, &caller, link.canvas, filled).await,
            false => Err(Problem::conflict("the link received another file")),
        };
    }
    if let (Some(declared), Some(length)) = (link.slot.bytes, length)
        && declared != length
    {
        return Err(Problem::unprocessable("bytes", format!("is {length}, not {declared} as declared")));
    }
    let mut lease = Lease::take(app, hash).await?;
    taskqueue::failpoint!("link.leased");
    let from_link = FromLink { hash: &hash, lease: lease.id, slot: &link.slot };
    let upload = Upload {
        place: Place { canvas: link.canvas.clone(), is_shown: true },
        name: link.slot.name.clone(),
        metadata: None,
        key: None,
        link: Some(from_link),
        declared,
        length,
        body,
    };
    let uploaded = tokio::select! {
        uploaded = upload.perform(app, &caller, trace) => uploaded.map_err(hidden),
        never = lease.renew() => match never {},
    };
    // Before the answer, so that the next request finds the link free.
    if let Some(release) = lease.release() {
        release.await.ok();
    }
    taskqueue::failpoint!("link.released");
    answer(app, &caller, link.canvas, uploaded?).await
}

/// The answer to the same bytes, sent again.
async fn replay(
    app: &App,
    caller: &Caller<UploadAsset>,
    canvas: Option<CanvasHandle>,
    Filled { asset, revision }: Filled,
) -> Result {
    let found = db::assets::get_readable(&mut *app.connection().await?, &caller.account, &asset).await?;
    let (asset, _) = found.ok_or_else(gone)?;
    answer(app, caller, canvas, Uploaded { asset, revision, replayed: true }).await
}

async fn answer(
    app: &App,
    caller: &Caller<UploadAsset>,
    canvas: Option<CanvasHandle>,
    Uploaded { asset, revision, replayed }: Uploaded,
) -> Result {
    let urls = app.previews.urls(&app.keys, &asset, service::clock::now());
    let asset = asset.document(&caller.account, urls);
    let node = asset.node.clone();
    let short = match (&canvas, &node) {
        (Some(canvas), Some(node)) => ref_of(&mut *app.connection().await?, &caller.account, canvas, node).await?,
        _ => None,
    };
    let into = canvas.zip(revision).map(|(handle, revision)| UploadedInto { handle, revision });
    let status = if replayed { StatusCode::OK } else { StatusCode::CREATED };
    let replayed = replayed.then_some(true);
    Ok(reply::with_status(status, &UploadAnswer { asset, node, short, canvas: into, replayed }))
}

/// The ref of the node that shows an upload.
async fn ref_of(
    conn: &mut PgConnection,
    account: &AccountUid,
    canvas: &CanvasHandle,
    node: &str,
) -> Result<Option<String>> {
    let Some((record, _)) = db::canvases::find(conn, account, canvas).await? else { return Ok(None) };
    let id = node.strip_prefix("node:").unwrap_or(node).to_owned();
    Ok(db::canvases::refs_of_ids(conn, record.key, &[id], &[]).await?.into_values().next())
}

/// The lease of an upload link. It is given back when the request ends, however it ends.
struct Lease {
    app: App,
    hash: SecretHash,
    id: Uuid,
    is_held: bool,
}

impl Lease {
    /// Takes the lease; 409 while another request has it.
    async fn take(app: &App, hash: SecretHash) -> Result<Self> {
        let id = Uuid::now_v7();
        match db::links::lease(&mut *app.connection().await?, &hash, id, LEASE_SECONDS).await? {
            true => Ok(Self { app: app.clone(), hash, id, is_held: true }),
            false => Err(Problem::conflict("another upload to this link is in progress")),
        }
    }

    /// Renews the lease for as long as it is polled. One that was lost is noticed where the link is filled.
    async fn renew(&self) -> std::convert::Infallible {
        loop {
            tokio::time::sleep(RENEWAL).await;
            let renewed = async {
                let mut connection = self.app.connection().await?;
                Ok::<_, Problem>(db::links::lease(&mut connection, &self.hash, self.id, LEASE_SECONDS).await?)
            };
            if renewed.await.is_err() {
                tracing::debug!("the lease of an upload link was not renewed");
            }
        }
    }

    /// Gives the lease back, once, in a task that outlives a request that breaks off.
    fn release(&mut self) -> Option<JoinHandle<()>> {
        if !std::mem::take(&mut self.is_held) {
            return None;
        }
        let (app, hash, id) = (self.app.clone(), self.hash, self.id);
        let release = async move {
            let released = async {
                let mut connection = app.connection().await?;
                Ok::<_, Problem>(db::links::release(&mut connection, &hash, id).await?)
            };
            if released.await.is_err() {
                tracing::debug!("the lease of an upload link was not given back");
            }
        };
        Some(Handle::try_current().ok()?.spawn(release))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_has_128_bits_and_one_spelling() {
        let secret = Secret::generate();
        let text = URL_SAFE_NO_PAD.encode(secret.0);
        assert_eq!(text.len(), 22);
        assert_eq!(Secret::parse(&text).map(|read| read.hash()), Some(secret.hash()));
        for wrong in [&text[1..], &format!("{text}A"), &format!("{text}="), "", "AAAAAAAAAAAAAAAAAAAAAB"] {
            assert!(Secret::parse(wrong).is_none(), "{wrong:?}");
        }
    }

    #[test]
    fn a_file_is_an_attachment_under_its_name() {
        assert_eq!(attachment("a b.png"), "attachment; filename=\"a b.png\"");
        assert_eq!(
            attachment("caf\u{e9}\"\r\n.png"),
            "attachment; filename=\"caf____.png\"; filename*=UTF-8''caf%C3%A9%22%0D%0A%2Epng"
        );
    }

    #[test]
    fn the_paths_of_links_are_known() {
        assert!(contains("/d/x") && contains("/u/x"));
        assert!(!contains("/docs") && !contains("/d") && !contains("/api/canvas-agent/v1/d/x"));
    }
}
