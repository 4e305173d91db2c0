//! The page around a document: the list of all documents, search, the parts of the document, and what is before and after it.

use pulldown_cmark::HeadingLevel;

use super::address::{self, ROOT};
use super::article::{Article, Section, escaped};
use super::files::{Document, GROUPS, Group, documents};
use super::{INDEX, SCRIPT, STYLES};

/// The page of an article, whose document is at this place among all.
pub fn page(article: &Article, at: usize) -> String {
    let file = article.document.file;
    let title = escaped(&article.document.title());
    let neighbor = |at: Option<usize>, relation: &str, label: &str| {
        let Some(document) = at.and_then(|at| documents().nth(at)) else { return String::new() };
        let (title, address) = (escaped(&document.title()), address::of(document.file));
        format!(r#"<a rel="{relation}" href="{address}"><small>{label}</small><span>{title}</span></a>"#)
    };
    format!(
        r##"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title} · Canvas Service</title>
<link rel="icon" href="/icon.svg">
<link rel="stylesheet" href="{STYLES}">
<script src="{SCRIPT}"></script>
</head>
<body data-index="{INDEX}">
<header>
<a class="skip" href="#main">Skip to the content</a>
<a class="home" href="{ROOT}"><img src="/icon.svg" alt="" aria-hidden="true" width="26" height="26"><span>Canvas Service</span> <b>Guides</b></a>
<search hidden>
<input type="search" aria-label="Search the guides" placeholder="Search the guides" autocomplete="off" spellcheck="false">
<kbd aria-hidden="true">/</kbd>
<div class="found" hidden><p role="status"></p><ol></ol></div>
</search>
<nav aria-label="Service"><a href="/docs">API</a><a href="/">Console</a></nav>
</header>
<div class="columns">
<nav class="pages" aria-label="Guides"><details><summary>All guides</summary><div>{pages}</div></details></nav>
{contents}
<main id="main" tabindex="-1"><article>
{html}</article>
<nav class="neighbors" aria-label="Next to this guide">{before}{after}</nav>
<footer><p>Canvas Service {version}</p><p><code>{file}</code></p></footer>
</main>
</div>
</body>
</html>
"##,
        pages = pages(file),
        contents = contents(article),
        html = article.html,
        before = neighbor(at.checked_sub(1), "prev", "Before"),
        after = neighbor(at.checked_add(1), "next", "Next"),
        version = env!("CARGO_PKG_VERSION"),
    )
}

/// The list of all documents in their groups, of which the first two and the one with the page are open.
fn pages(current: &str) -> String {
    let group = |(at, group): (usize, &Group)| {
        let has_current = group.documents.iter().any(|document| document.file == current);
        let open = if at < 2 || has_current { " open" } else { "" };
        let entry = |document: &Document| {
            let mark = if document.file == current { r#" aria-current="page""# } else { "" };
            format!(r#"<li><a href="{}"{mark}>{}</a></li>"#, address::of(document.file), escaped(&document.title()))
        };
        let entries: String = group.documents.iter().map(entry).collect();
        format!("<details{open}><summary>{}</summary><ul>{entries}</ul></details>\n", group.title)
    };
    GROUPS.iter().enumerate().map(group).collect()
}

/// The larger parts of a document, if it has several.
fn contents(article: &Article) -> String {
    let level = |level| article.sections.iter().filter(move |section| section.level == level);
    let with_smaller = level(HeadingLevel::H2).count() + level(HeadingLevel::H3).count() <= 30;
    let is_listed = |level| level == HeadingLevel::H2 || (level == HeadingLevel::H3 && with_smaller);
    let listed: Vec<_> = article.sections.iter().filter(|section| is_listed(section.level)).collect();
    if listed.len() < 2 {
        return String::new();
    }
    let entry = |section: &&Section| {
        let level = section.level as usize;
        format!(r##"<li data-level="{level}"><a href="#{}">{}</a></li>"##, section.anchor, escaped(&section.heading))
    };
    let entries: String = listed.iter().map(entry).collect();
    format!(
        r#"<nav class="contents" aria-label="On this page"><details><summary>On this page</summary><ul>{entries}</ul></details></nav>"#
    )
}
