//! Where documents and images are served, and what their relative links lead to.

use super::files::{IMAGES, documents};

/// Where the guides are. The document that all others are found from is served there.
pub const ROOT: &str = "/docs/guides";

/// What a link of a document leads to.
pub enum Target {
    /// An address of this service or of another one.
    Address(String),
    /// A file of the repository that is not served: its path.
    File(String),
}

/// The address of a file: its path without `docs/`, `guides/`, `README` and `.md`, in lower case.
pub fn of(file: &str) -> String {
    let path = file.strip_prefix("docs/").unwrap_or(file);
    let path = path.strip_prefix("guides/").unwrap_or(path).to_lowercase();
    let path = path.strip_suffix(".md").unwrap_or(&path);
    let path = path.strip_suffix("readme").unwrap_or(path).trim_end_matches('/');
    format!("{ROOT}/{path}").trim_end_matches('/').to_owned()
}

/// What the link `target` of the document `file` leads to.
pub fn resolve(file: &str, target: &str) -> Target {
    if target.starts_with('#') || target.contains("://") || target.starts_with("mailto:") {
        return Target::Address(target.to_owned());
    }
    let (path, anchor) = target.split_at(target.find('#').unwrap_or(target.len()));
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    let path = parts.join("/");
    let mut served = documents().map(|document| document.file).chain(IMAGES.iter().map(|(file, _)| *file));
    if served.any(|file| file == path) { Target::Address(of(&path) + anchor) } else { Target::File(path) }
}
