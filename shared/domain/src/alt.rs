//! Alternative text of pictures: one rule for whoever shows them. Rules: `docs/reference/canvases.md#alternative-text`.
//!
//! The console applies the same rule to nodes that are changed before the service has answered. `alt.json` has the cases that both are
//! tested with.

use std::borrow::Cow;

use crate::graph::{Node, NodeType};
use crate::job::JobStatus;

/// Alternative text of a picture of which nothing is known.
pub const WITHOUT_DESCRIPTION: &str = "Picture without description";
/// Characters of a prompt in an alternative text.
const PROMPT_EXCERPT: usize = 120;
/// Extensions by which a title is recognized as the name of a file.
const FILE_EXTENSIONS: [&str; 14] =
    ["avif", "bmp", "gif", "heic", "heif", "jpeg", "jpg", "mov", "mp4", "png", "svg", "tif", "tiff", "webp"];

impl Node {
    /// Returns `true` if it shows an image or video.
    pub fn shows_picture(&self) -> bool {
        match self.kind {
            NodeType::Image => self.asset.is_some(),
            // A video that is no asset is known to its job alone, or to the client that wrote the text.
            NodeType::Video => {
                self.asset.is_some()
                    || self.alt_text().is_some()
                    || self.job().is_some_and(|job| job.status == JobStatus::Succeeded)
            }
            NodeType::Text | NodeType::Sticky => false,
        }
    }

    /// The alternative text that a client wrote. Empty if the picture is decorative.
    pub fn alt_text(&self) -> Option<&str> {
        self.metadata.part("altText", |metadata| metadata.alt_text.as_deref())
    }

    /// The alternative text of the picture that it shows. Empty if the picture is decorative.
    pub fn alt(&self) -> Cow<'_, str> {
        let title = self.title.trim();
        let is_given = !title.is_empty() && !title.eq_ignore_ascii_case(self.kind.as_str()) && !is_file_name(title);
        let prompt = match self.provenance() {
            Some(provenance) => provenance.prompt.as_deref(),
            None => self.metadata.part("prompt", |metadata| metadata.prompt.as_deref()),
        };
        match self.alt_text() {
            Some(text) => text.into(),
            None if is_given => title.into(),
            None => of_generated(self.kind, prompt),
        }
    }
}

/// The alternative text of a picture without text and title, made from `prompt` if there is one.
pub fn of_generated(kind: NodeType, prompt: Option<&str>) -> Cow<'static, str> {
    let what = if kind == NodeType::Video { "video" } else { "picture" };
    match prompt.map(str::trim).filter(|prompt| !prompt.is_empty()) {
        Some(prompt) => format!("Generated {what}: {}", prompt.chars().take(PROMPT_EXCERPT).collect::<String>()).into(),
        None => WITHOUT_DESCRIPTION.into(),
    }
}

fn is_file_name(title: &str) -> bool {
    without_extension(title) != title
}

/// A title without the extension of an image or video file, if it ends with one.
pub fn without_extension(title: &str) -> &str {
    match title.rsplit_once('.') {
        Some((stem, extension)) if FILE_EXTENSIONS.iter().any(|one| one.eq_ignore_ascii_case(extension)) => stem,
        _ => title,
    }
}

/// A picture in Markdown. Every punctuation character of `alt` is escaped (CommonMark 2.4), on one line.
pub fn markdown(alt: &str, url: &str) -> String {
    let mut escaped = String::with_capacity(alt.len());
    for c in alt.chars() {
        match c {
            c if c.is_ascii_punctuation() => escaped.extend(['\\', c]),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    format!("![{escaped}]({url})")
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::{Map, Value};

    use super::*;
    use crate::graph::Position;
    use crate::id::NodeId;
    use crate::metadata::{ServerMetadata, WritableMetadata};

    /// Part of a node as it is served, and its alternative text.
    #[derive(Deserialize)]
    struct Case {
        r#type: NodeType,
        title: String,
        metadata: Map<String, Value>,
        alt: String,
    }

    #[test]
    fn the_first_of_text_title_and_prompt_that_says_something_counts() {
        let cases: Vec<Case> = serde_json::from_str(include_str!("alt.json")).expect("the table is JSON");
        assert!(cases.len() > 10);
        for Case { r#type, title, mut metadata, alt } in cases {
            let server = metadata.remove("provenance").map(|provenance| serde_json::json!({"provenance": provenance}));
            let server: ServerMetadata =
                server.map(serde_json::from_value).transpose().expect("a provenance").unwrap_or_default();
            let written: WritableMetadata = serde_json::from_value(metadata.into()).expect("metadata");
            let node = Node {
                id: NodeId::from_stored("n".into()),
                short: None,
                kind: r#type,
                title: title.clone(),
                position: Position { x: 0.0, y: 0.0 },
                width: 1.0,
                height: 1.0,
                agent_owned: false,
                metadata: written.into(),
                server: server.into(),
                asset: None,
                active_job: None,
            };
            assert_eq!(node.alt(), alt, "{title}");
        }
    }

    #[test]
    fn a_text_cannot_leave_its_link() {
        assert_eq!(markdown("Boots 3", "u"), "![Boots 3](u)");
        assert_eq!(markdown("", "u"), "![](u)");
        let hostile = markdown("a](https://evil.example) <b>\nÄ", "u");
        assert_eq!(hostile, r"![a\]\(https\:\/\/evil\.example\) \<b\> Ä](u)");
    }
}
