//! Addresses of images, resolved.

use url::Url;

/// Maximum length of an address in bytes, as of the URLs in requests. Without it, a page with one long base address or link, which
/// many images share, takes far more memory than its size.
pub const BYTES_MAX: usize = 4096;

/// Resolves `text` against `base`. Plain http becomes https, as browsers do with images of a secure page. `None` when the
/// text is not a network address (`data:`, `blob:`, a template), or is longer than [`BYTES_MAX`].
pub fn resolve(base: &Url, text: &str) -> Option<Url> {
    if text.len() > BYTES_MAX {
        return None;
    }
    // JSON in pages is sometimes escaped like markup.
    let text = text.trim().replace("&amp;", "&").replace("\\/", "/");
    if text.is_empty() || text.starts_with('#') || text.contains("{{") || text.contains('<') {
        return None;
    }
    let mut url = base.join(&text).ok()?;
    if url.scheme() == "http" {
        url.set_scheme("https").ok()?;
    }
    url.set_fragment(None);
    if url.scheme() != "https" || url.host().is_none() || url.path() == "/" && url.query().is_none() {
        return None;
    }
    if url.as_str().len() > BYTES_MAX {
        return None;
    }
    Some(unwrapped(base, &url).unwrap_or(url))
}

/// The address behind a resizing proxy, such as Next.js's `/_next/image?url=…&w=640`.
fn unwrapped(base: &Url, url: &Url) -> Option<Url> {
    if !url.path().ends_with("/_next/image") && !url.path().ends_with("/_vercel/image") {
        return None;
    }
    let (_, inner) = url.query_pairs().find(|(name, _)| name == "url")?;
    let mut inner = base.join(&inner).ok()?;
    if inner.scheme() == "http" {
        inner.set_scheme("https").ok()?;
    }
    (inner.scheme() == "https").then_some(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Url {
        let base = Url::parse("https://shop.example/products/shoe?a=b").expect("a URL");
        resolve(&base, text).unwrap_or_else(|| panic!("{text} is an address"))
    }

    #[test]
    fn relative_and_protocol_relative_addresses_are_made_absolute_and_https() {
        for (text, url) in [
            ("a.jpg", "https://shop.example/products/a.jpg"),
            ("/a.jpg", "https://shop.example/a.jpg"),
            ("//cdn.example/a.jpg", "https://cdn.example/a.jpg"),
            ("http://cdn.example/a.jpg", "https://cdn.example/a.jpg"),
            (" https://cdn.example/a b.jpg#top ", "https://cdn.example/a%20b.jpg"),
            ("https:\\/\\/cdn.example\\/a.jpg", "https://cdn.example/a.jpg"),
            ("/a.jpg?x=1&amp;y=2", "https://shop.example/a.jpg?x=1&y=2"),
            ("/_next/image?url=%2Fm%2Fa.jpg&w=640&q=75", "https://shop.example/m/a.jpg"),
        ] {
            assert_eq!(at(text).as_str(), url, "{text}");
        }
    }

    #[test]
    fn what_is_no_address_of_the_network_is_none() {
        let base = Url::parse("https://shop.example/").expect("a URL");
        for text in
            ["", " ", "#top", "data:image/gif;base64,R0", "blob:x", "javascript:1", "{{ image }}", "https://", "/"]
        {
            assert_eq!(resolve(&base, text), None, "{text:?}");
        }
    }
}
