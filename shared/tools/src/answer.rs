//! Successful answers of tools.

use domain::id::is_slug;
use rmcp::model::{CallToolResult, ContentBlock, Resource};
use serde::Serialize;
use serde_json::{Value, json};

/// The longest text of a result, in bytes: more would crowd out what else a model has to keep in mind.
pub const TEXT_MAX: usize = 32 * 1024;

/// An image of a result.
pub struct AnswerImage {
    /// Its bytes, in base64.
    pub data: String,
    pub media_type: String,
}

/// A successful result: a value for programs, and a text with images for the model.
pub struct Answer<T> {
    pub output: T,
    text: Option<String>,
    images: Vec<AnswerImage>,
    links: Vec<Resource>,
}

/// A step that may come next.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Next {
    /// The tool to call.
    pub tool: &'static str,
    /// Its arguments.
    pub arguments: Value,
    /// The reason for this step.
    pub why: String,
}

impl Next {
    pub fn new(tool: &'static str, arguments: Value, why: impl Into<String>) -> Self {
        Self { tool, arguments, why: why.into() }
    }

    /// Waits for work that goes on.
    pub fn wait(run: &str) -> Self {
        Self::new("run_wait", json!({"runs": [run]}), "it is still running; this waits for it, never start it again")
    }

    /// Waits for work that nobody is there to do.
    pub fn wait_later(run: &str) -> Self {
        Self::new("run_wait", json!({"runs": [run]}), "later, once a worker is started; never start it again")
    }
}

impl<T> Answer<T> {
    pub fn new(output: T) -> Self {
        Self { output, text: None, images: Vec::new(), links: Vec::new() }
    }

    /// The same answer with another output.
    pub fn map<U>(self, output: impl FnOnce(T) -> U) -> Answer<U> {
        let Self { output: before, text, images, links } = self;
        Answer { output: output(before), text, images, links }
    }

    /// The text, where it is not the output as JSON.
    pub fn with_text(mut self, text: String) -> Self {
        self.text = Some(text);
        self
    }

    pub fn with_image(mut self, image: AnswerImage) -> Self {
        self.images.push(image);
        self
    }

    /// Links to an asset, or to a canvas as an image, as a resource that a host can read.
    pub fn with_link(mut self, handle: &str) -> Self {
        if let Some(uri) = asset_uri(handle).or_else(|| canvas_uri(handle)) {
            self.links.push(Resource::new(uri, handle));
        }
        self
    }
}

/// The address of a canvas, seen as an image, as a resource: of `canvas:<owner>:<id>` or its slug.
pub fn canvas_uri(named: &str) -> Option<String> {
    if is_slug(named) {
        return Some(format!("canvas://{named}/render.png"));
    }
    let (owner, id) = named.strip_prefix("canvas:")?.split_once(':')?;
    Some(format!("canvas://{owner}/{id}/render.png"))
}

/// The address of an asset as a resource: of `asset:<owner>:<id>`.
pub fn asset_uri(handle: &str) -> Option<String> {
    let (owner, id) = handle.strip_prefix("asset:")?.split_once(':')?;
    Some(format!("canvas://asset/{owner}/{id}"))
}

impl<T: Serialize> Answer<T> {
    /// The result of the protocol.
    pub fn into_result(self) -> CallToolResult {
        let output = serde_json::to_value(&self.output).unwrap_or_default();
        let text = self.text.unwrap_or_else(|| output.to_string());
        let mut content = vec![ContentBlock::text(cut(text, "ask for less"))];
        content.extend(self.images.into_iter().map(|it| ContentBlock::image(it.data, it.media_type)));
        content.extend(self.links.into_iter().map(ContentBlock::ResourceLink));
        let mut result = CallToolResult::success(content);
        result.structured_content = Some(output);
        result
    }
}

/// The text, or as many of its lines as fit with a last one that says how to read on.
pub fn cut(text: String, read_on: &str) -> String {
    cut_at(text, TEXT_MAX, read_on)
}

/// As [`cut`], with another limit.
pub fn cut_at(text: String, bytes_max: usize, read_on: &str) -> String {
    if text.len() <= bytes_max {
        return text;
    }
    let whole = text.len();
    let last = format!("\n… {whole} bytes in all; {read_on}");
    let fits = text.floor_char_boundary(bytes_max.saturating_sub(last.len()));
    // A text without line breaks is cut in its line.
    let end = text[..fits].rfind('\n').unwrap_or(fits);
    format!("{}{last}", &text[..end])
}

/// An object without its members that are `null`.
pub fn present(mut object: Value) -> Value {
    if let Some(members) = object.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    object
}

/// Converts ids to texts.
pub fn texts(ids: Vec<impl Into<String>>) -> Vec<String> {
    ids.into_iter().map(Into::into).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_ends_with_a_whole_line_and_says_how_to_read_on() {
        let lines = "ü line\n".repeat(10_000);
        let text = cut(lines.clone(), "read on with nodes=[…]");
        assert!(text.len() <= TEXT_MAX);
        let (kept, last) = text.rsplit_once('\n').expect("lines");
        assert!(kept.ends_with("ü line") && last == "… 80000 bytes in all; read on with nodes=[…]", "{last}");
        let line = cut("x".repeat(TEXT_MAX + 1), "ask for less");
        assert!(line.len() <= TEXT_MAX && line.ends_with("ask for less"));
        assert_eq!(cut("short".into(), ""), "short");
    }

    #[test]
    fn assets_and_canvases_have_addresses() {
        assert_eq!(canvas_uri("canvas:ana:board").as_deref(), Some("canvas://ana/board/render.png"));
        assert_eq!(canvas_uri("~7kq2m9xa").as_deref(), Some("canvas://~7kq2m9xa/render.png"));
        assert_eq!(canvas_uri("canvas:board"), None);
        assert_eq!(asset_uri("asset:ana:a1").as_deref(), Some("canvas://asset/ana/a1"));
        assert_eq!(asset_uri("asset:a1"), None);
    }
}
