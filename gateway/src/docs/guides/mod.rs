//! `/docs/guides/…`: the documents of this release as web pages (docs/reference/conventions.md#guides).
//!
//! **Guarantee.** They need no credential and are the same for every caller. A page loads nothing from elsewhere, and what is searched for
//! is not sent. Every link of a document leads to a page that is served, or names a file of the source code.
//!
//! **Mechanism.** The Markdown is embedded ([`files`]) and becomes pages at the first request for one. The search reads an index of all
//! texts, which the browser fetches when somebody begins to search.

mod address;
mod article;
mod files;
mod layout;

use std::collections::HashMap;
use std::sync::LazyLock;

use axum::Router;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use bytes::Bytes;
use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use serde_json::json;
use sha2::{Digest, Sha256};

use self::address::ROOT;
use self::article::Article;
use self::files::{Document, GROUPS, IMAGES, documents};
use super::KEPT;
use crate::compression::Unchanging;
use crate::console;
use crate::reply::none_match;

const STYLES: &str = "/docs/guides.css";
const SCRIPT: &str = "/docs/guides.js";
const INDEX: &str = "/docs/guides.json";

/// The colors and the base of the console, and what pages of text add.
const STYLE_SHEETS: [&str; 2] = [include_str!("../../../console/src/ui/base.css"), include_str!("guides.css")];

/// Every file carries these.
const HEADERS: [(HeaderName, HeaderValue); 4] = [
    (
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; \
             form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
        ),
    ),
    (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    KEPT,
];

/// What is served at an address.
struct File {
    media_type: HeaderValue,
    etag: HeaderValue,
    content: Bytes,
}

impl File {
    fn new(media_type: &'static str, content: impl Into<Bytes>) -> Self {
        let content = content.into();
        let hash: String = Sha256::digest(&content)[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        let etag = HeaderValue::from_str(&format!("\"{hash}\"")).expect("digits in quotes");
        Self { media_type: HeaderValue::from_static(media_type), etag, content }
    }
}

/// Everything that is served, by its address.
static FILES: LazyLock<HashMap<String, File>> = LazyLock::new(|| {
    let articles: Vec<Article> = documents().map(Article::from_document).collect();
    let page = |(at, article): (usize, &Article)| {
        (address::of(article.document.file), File::new("text/html; charset=utf-8", layout::page(article, at)))
    };
    let pages = articles.iter().enumerate().map(page);
    let images = IMAGES.iter().map(|(file, bytes)| (address::of(file), File::new("image/jpeg", *bytes)));
    let others = [
        (STYLES.into(), File::new("text/css; charset=utf-8", STYLE_SHEETS.concat())),
        (SCRIPT.into(), File::new("text/javascript; charset=utf-8", include_str!("guides.js"))),
        (INDEX.into(), File::new("application/json", index(&articles))),
    ];
    pages.chain(images).chain(others).collect()
});

/// What a search looks in: for each page its address and its title, and its parts as anchor, heading and text.
fn index(articles: &[Article]) -> String {
    let page = |article: &Article| {
        let part = |it: &article::Section| {
            let text: Vec<&str> = it.text.split_whitespace().collect();
            json!([it.anchor, it.heading, text.join(" ")])
        };
        let document = article.document;
        json!([address::of(document.file), document.title(), article.sections.iter().map(part).collect::<Vec<_>>()])
    };
    json!(articles.iter().map(page).collect::<Vec<_>>()).to_string()
}

/// What explains the service to those who use it, for a list: titles of groups, and of their documents with the addresses.
pub fn for_users() -> impl Iterator<Item = (&'static str, Vec<(String, String)>)> {
    let entry = |document: &Document| (document.title(), address::of(document.file));
    GROUPS[..3].iter().map(move |group| (group.title, group.documents.iter().map(entry).collect()))
}

/// The routes.
pub fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let at_root = || async { Redirect::permanent(ROOT) };
    let router = Router::new().route("/docs/guides/", get(at_root));
    [ROOT, "/docs/guides/{*path}", STYLES, SCRIPT, INDEX]
        .iter()
        .fold(router, |router, path| router.route(path, get(file)))
}

async fn file(method: Method, uri: Uri, headers: HeaderMap) -> Response {
    let Some(file) = FILES.get(uri.path()) else { return console::unknown(method, uri, headers).await };
    let tag = [(ETAG, file.etag.clone())];
    if file.etag.to_str().is_ok_and(|etag| none_match(&headers, etag)) {
        return (StatusCode::NOT_MODIFIED, HEADERS, tag).into_response();
    }
    let kind = [(CONTENT_TYPE, file.media_type.clone())];
    (Unchanging::named(uri.path()), HEADERS, tag, kind, file.content.clone()).into_response()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::fs;
    use std::path::Path;

    use serde_json::Value;

    use super::*;

    /// Documents of `docs/` that are not served: see [`files::GROUPS`].
    const LEFT_OUT: [&str; 1] = ["docs/guides/console-screens.md"];

    fn html(address: &str) -> &'static str {
        std::str::from_utf8(&FILES[address].content).expect("UTF-8")
    }

    /// The values of an attribute in a page.
    fn values<'a>(html: &'a str, attribute: &str) -> impl Iterator<Item = &'a str> {
        html.split(&format!(" {attribute}=\""))
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .collect::<Vec<_>>()
            .into_iter()
    }

    #[test]
    fn every_document_is_served_at_an_address_of_its_own() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut found = HashSet::new();
        for folder in ["docs", "docs/guides", "docs/reference", "docs/adr"] {
            let names =
                fs::read_dir(root.join(folder)).expect("a folder").map(|entry| entry.expect("an entry").file_name());
            let names = names.map(|name| format!("{folder}/{}", name.display())).filter(|name| name.ends_with(".md"));
            found.extend(names.filter(|name| !LEFT_OUT.contains(&name.as_str())));
        }
        let served: HashSet<String> = documents().map(|document| document.file.to_owned()).collect();
        let missing: Vec<_> = found.difference(&served).collect();
        assert!(missing.is_empty(), "gateway/src/docs/guides/files.rs lacks {missing:?}");
        let addresses: HashSet<String> = documents().map(|document| address::of(document.file)).collect();
        assert_eq!(addresses.len(), documents().count(), "no two have the same address");
        for address in [ROOT, "/docs/guides/console", "/docs/guides/reference", "/docs/guides/deploy/runbook"] {
            assert!(addresses.contains(address), "{address}");
        }
    }

    #[test]
    fn every_link_of_a_page_leads_somewhere() {
        let mut wrong = Vec::new();
        let (mut links, mut shown) = (0, HashSet::new());
        for page in FILES.keys().filter(|address| FILES[*address].media_type == "text/html; charset=utf-8") {
            let targets = values(html(page), "href").chain(values(html(page), "src"));
            for target in targets.filter(|target| !target.contains("://")) {
                links += 1;
                let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
                let path = if path.is_empty() { page } else { path };
                shown.insert(path.to_owned());
                let is_there = FILES.contains_key(path) || ["/", "/docs", "/icon.svg"].contains(&path);
                if !is_there || !(anchor.is_empty() || values(html(path), "id").any(|id| id == anchor)) {
                    wrong.push(format!("{page}: {target}"));
                }
            }
        }
        assert!(wrong.is_empty() && links > 1000, "{wrong:#?}");
        let unused: Vec<_> = FILES.keys().filter(|file| !shown.contains(*file) && *file != INDEX).collect();
        assert!(unused.is_empty(), "nothing leads to {unused:?}");
    }

    #[test]
    fn every_id_of_a_page_is_there_once_and_no_image_is_missing() {
        for document in documents() {
            let page = html(&address::of(document.file));
            let ids: Vec<_> = values(page, "id").collect();
            assert_eq!(ids.len(), ids.iter().collect::<HashSet<_>>().len(), "{}", document.file);
            let shown = values(page, "src").filter(|source| source.starts_with("/docs/guides/")).count();
            assert_eq!(
                shown,
                document.text.matches("](../images/").count(),
                "{}: images are listed in files.rs",
                document.file
            );
        }
    }

    #[test]
    fn the_index_names_every_part_of_every_page() {
        let index: Value = serde_json::from_slice(&FILES[INDEX].content).expect("JSON");
        let pages = index.as_array().expect("pages");
        assert_eq!(pages.len(), documents().count());
        for page in pages {
            let address = page[0].as_str().expect("an address");
            let parts = page[2].as_array().expect("parts");
            assert_eq!(page[1], parts[0][1], "{address}: its title is its first heading");
            for part in parts {
                let anchor = part[0].as_str().expect("an anchor");
                assert!(values(html(address), "id").any(|id| id == anchor), "{address}#{anchor}");
            }
        }
        assert!(FILES[INDEX].content.len() < 1_500_000, "{} bytes", FILES[INDEX].content.len());
    }

    #[test]
    fn pages_have_neither_scripts_nor_styles_of_their_own() {
        for document in documents() {
            let page = html(&address::of(document.file));
            assert_eq!(page.matches("<script").count(), 1, "{}", document.file);
            assert!(
                !page.contains("<style") && !page.contains(" style=\"") && !page.contains(" onclick"),
                "{}",
                document.file
            );
        }
    }
}
