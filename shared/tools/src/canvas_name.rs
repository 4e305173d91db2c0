//! The canvas that a call is about.

use schemars::JsonSchema;
use serde::Deserialize;

/// Canvas handle, slug or canvasUrl
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct CanvasName(String);

impl From<&str> for CanvasName {
    fn from(name: &str) -> Self {
        Self(name.to_owned())
    }
}

impl CanvasName {
    /// The handle or slug. The URL of a canvas ends in `/c/<owner>/<id>` or `/c/<slug>`.
    pub fn handle(&self) -> String {
        let of_url = || {
            let (_, path) = self.0.split_once("://")?.1.split_once("/c/")?;
            match path.trim_end_matches('/').split_once('/') {
                Some((owner, id)) => Some(format!("canvas:{owner}:{id}")),
                None => Some(path.trim_end_matches('/').to_owned()),
            }
        };
        of_url().unwrap_or_else(|| self.0.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_canvas_is_named_by_handle_slug_or_url() {
        for (given, handle) in [
            ("canvas:ana:board", "canvas:ana:board"),
            ("board", "board"),
            ("https://canvas.example.com/c/ana/board", "canvas:ana:board"),
            ("http://127.0.0.1:8080/c/ana/board/", "canvas:ana:board"),
            ("~7kq2m9xa", "~7kq2m9xa"),
            ("https://canvas.example.com/c/~7kq2m9xa", "~7kq2m9xa"),
            ("https://canvas.example.com/runs", "https://canvas.example.com/runs"),
        ] {
            assert_eq!(CanvasName(given.to_owned()).handle(), handle);
        }
    }
}
