//! Addresses of pictures: resolved, and matched across sizes.
//!
//! Shops serve one picture under many addresses that differ in a size: `?width=800`, `_600x600.jpg`, `-300x300.jpg`,
//! `/w_400,h_400/`. [`Address::key`] leaves such hints out, so that equal keys mean the same picture. When in doubt, keys differ:
//! the remaining duplicates are found by comparing pixels.

use url::Url;

/// Assumed size of a picture whose address contains no size: probably the original, which is rarely smaller.
const UNHINTED: u32 = 1500;

/// Maximum length of an address in bytes, as of the URLs in requests. Without it, a page with one long base address or link, which
/// many pictures share, takes far more memory than its size.
pub const BYTES_MAX: usize = 4096;

/// Query parameters that select a size or an encoding and never a picture.
const SIZE_PARAMETERS: [&str; 27] = [
    "w",
    "h",
    "width",
    "height",
    "wid",
    "hei",
    "size",
    "sz",
    "sw",
    "sh",
    "imwidth",
    "imheight",
    "maxwidth",
    "maxheight",
    "max-w",
    "max-h",
    "dpr",
    "q",
    "quality",
    "qlt",
    "fit",
    "crop",
    "auto",
    "fm",
    "fmt",
    "format",
    "resmode",
];

/// Those of them that are a width or a longest side.
const WIDTH_PARAMETERS: [&str; 8] = ["w", "width", "wid", "size", "sz", "sw", "imwidth", "maxwidth"];

/// Suffixes of file names by which shop systems mark their sizes, with the size; 0: the original.
const NAMED_SIZES: [(&str, u32); 14] = [
    ("pico", 16),
    ("icon", 32),
    ("thumb", 50),
    ("thumbnail", 150),
    ("small", 100),
    ("compact", 160),
    ("medium", 240),
    ("large", 480),
    ("grande", 600),
    ("xlarge", 1024),
    ("original", 0),
    ("master", 0),
    ("full", 0),
    ("scaled", 0),
];

/// The address of a picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Absolute https URL without a fragment.
    pub url: Url,
    /// Key, the same for every size of the picture.
    pub key: String,
    /// Width, or longest side, in pixels, according to the address; an assumption where it contains no size.
    pub width: u32,
}

impl Address {
    /// Resolves `text` against `base`. Plain http becomes https, as browsers do with pictures of a secure page. `None` when the
    /// text is not a network address (`data:`, `blob:`, a template), or is longer than [`BYTES_MAX`].
    pub fn resolve(base: &Url, text: &str) -> Option<Self> {
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
        Some(Self::of(unwrapped(base, &url).unwrap_or(url)))
    }

    fn of(url: Url) -> Self {
        let mut width = None;
        let mut key =
            format!("{}{}", url.host_str().unwrap_or_default(), url.port().map_or(String::new(), |p| format!(":{p}")));
        let segments: Vec<&str> = url.path_segments().into_iter().flatten().collect();
        for (at, segment) in segments.iter().enumerate() {
            if is_cache(&segments, at) {
                continue;
            }
            let (kept, hint) = plain_segment(segment);
            width = width.or(hint);
            if let Some(kept) = kept {
                key.push('/');
                key.push_str(&kept);
            }
        }
        let mut separator = '?';
        for (name, value) in url.query_pairs() {
            let name = name.to_ascii_lowercase();
            if WIDTH_PARAMETERS.contains(&&*name) {
                width = value.split(['x', ',']).next().and_then(side).or(width);
            }
            if !SIZE_PARAMETERS.contains(&&*name) {
                key.extend([&separator.to_string(), &*name, "=", &*value]);
                separator = '&';
            }
        }
        Self { width: width.unwrap_or(UNHINTED), key, url }
    }

    /// The words of its path, in lower case.
    pub fn words(&self) -> impl Iterator<Item = String> {
        let path = self.url.path().to_ascii_lowercase();
        path.split(|c: char| !c.is_ascii_alphanumeric()).map(str::to_owned).collect::<Vec<_>>().into_iter()
    }
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

/// A path segment without its size hints (`None` when nothing else is left), and the width that they name.
fn plain_segment(segment: &str) -> (Option<String>, Option<u32>) {
    if let Some(width) = transformation(segment) {
        return (None, width);
    }
    let (stem, extension) = match segment.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() && extension.len() <= 5 => (stem, Some(extension)),
        _ => (segment, None),
    };
    let (stem, hint) = plain_stem(stem);
    let kept = match extension {
        Some(extension) => format!("{stem}.{extension}"),
        None => stem.to_owned(),
    };
    (Some(kept), hint)
}

/// Whether a segment is a directory of Magento's `cache`, one for each set of sizes. Elsewhere a digest identifies a picture.
fn is_cache(segments: &[&str], at: usize) -> bool {
    let is_digest = segments[at].len() == 32 && segments[at].bytes().all(|byte| byte.is_ascii_hexdigit());
    is_digest && at > 0 && segments[at - 1] == "cache" && at + 1 < segments.len()
}

/// The width in a segment that consists of transformations only: `640x480`, `w_400,h_400,c_fill`, `width=400,quality=80`.
fn transformation(segment: &str) -> Option<Option<u32>> {
    if let Some(width) = box_width(segment) {
        return Some(Some(width));
    }
    let parts: Vec<(&str, &str)> =
        segment.split(',').map(|part| part.split_once(['_', '=']).unwrap_or((part, ""))).collect();
    let is_side = |name: &str| matches!(name, "w" | "h" | "width" | "height");
    let sized = parts.iter().any(|(name, value)| is_side(name) && side(value).is_some());
    let short = parts.iter().all(|(name, value)| !value.is_empty() && name.len() <= 8 && !value.contains('.'));
    if sized && short {
        let width = parts.iter().find(|(name, _)| matches!(*name, "w" | "width")).and_then(|(_, value)| side(value));
        return Some(width);
    }
    None
}

/// The stem of a file name without suffixes that name a size, and the width that they name.
fn plain_stem(stem: &str) -> (&str, Option<u32>) {
    // Amazon: `name._AC_SX300_`.
    if let Some((name, modifiers)) = stem.split_once("._")
        && modifiers.ends_with('_')
    {
        let digits = modifiers.trim_start_matches(|c: char| !c.is_ascii_digit());
        return (name, digits.split(|c: char| !c.is_ascii_digit()).next().and_then(side));
    }
    let (mut rest, mut hint) = (stem, None);
    if let Some((name, density)) = rest.rsplit_once('@')
        && density.ends_with('x')
        && density.len() <= 3
    {
        rest = name;
    }
    rest = rest.strip_suffix("_crop_center").unwrap_or(rest);
    let Some(at) = rest.rfind(['_', '-']) else { return (rest, None) };
    let (name, suffix) = (&rest[..at], &rest[at + 1..]);
    if name.is_empty() {
        return (rest, None);
    }
    if let Some(width) = box_width(suffix) {
        return (name, Some(width));
    }
    let lower = suffix.to_ascii_lowercase();
    // Shopify's size names follow an underscore, WordPress's `-scaled` a hyphen; elsewhere they are part of the name.
    let hyphen = rest.as_bytes()[at] == b'-';
    if let Some((word, width)) = NAMED_SIZES.iter().find(|(word, _)| *word == lower)
        && hyphen == (*word == "scaled")
    {
        hint = (*width > 0).then_some(*width);
        rest = name;
    }
    (rest, hint)
}

/// The width of `600x400`, `600x` or `x400`.
fn box_width(text: &str) -> Option<u32> {
    let (width, height) = text.split_once(['x', 'X'])?;
    match (width, height) {
        ("", height) => side(height),
        (width, "") => side(width),
        (width, height) => side(height).and(side(width)),
    }
}

/// A side in pixels: two to five digits.
fn side(text: &str) -> Option<u32> {
    ((2..=5).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| text.parse().ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Address {
        let base = Url::parse("https://shop.example/products/shoe?a=b").expect("a URL");
        Address::resolve(&base, text).unwrap_or_else(|| panic!("{text} is an address"))
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
            assert_eq!(at(text).url.as_str(), url, "{text}");
        }
    }

    #[test]
    fn what_is_no_address_of_the_network_is_none() {
        let base = Url::parse("https://shop.example/").expect("a URL");
        for text in
            ["", " ", "#top", "data:image/gif;base64,R0", "blob:x", "javascript:1", "{{ image }}", "https://", "/"]
        {
            assert_eq!(Address::resolve(&base, text), None, "{text:?}");
        }
    }

    #[test]
    fn sizes_of_one_picture_have_one_key() {
        for (key, texts) in [
            (
                "shop.example/shoe.jpg",
                &[
                    "/shoe.jpg",
                    "/shoe_600x600.jpg",
                    "/shoe_1024x.jpg",
                    "/shoe_x400.jpg",
                    "/shoe-300x300.jpg",
                    "/shoe-scaled.jpg",
                    "/shoe_grande.jpg",
                    "/shoe_600x600_crop_center@2x.jpg",
                    "/shoe.jpg?width=400&q=80",
                    "/640x640/shoe.jpg",
                    "/w_400,h_400,c_fill/shoe.jpg",
                    "/shoe._AC_SX300_.jpg",
                ][..],
            ),
            ("shop.example/cache/shoe.jpg", &["/cache/shoe.jpg", "/cache/0123456789abcdef0123456789abcdef/shoe.jpg"]),
            ("shop.example/a/shoe.jpg?v=7", &["/a/shoe.jpg?v=7", "/a/shoe_small.jpg?v=7&width=90"]),
        ] {
            for text in texts {
                assert_eq!(at(text).key, key, "{text}");
            }
        }
    }

    #[test]
    fn other_pictures_have_other_keys() {
        let texts = [
            "/shoe.jpg",
            "/shoe-2.jpg",
            "/shoe_02.jpg",
            "/shoe-front.jpg",
            "/shoe-large.jpg",
            "/shoe.png",
            "/a/shoe.jpg",
            "/shoe.jpg?id=1",
            "/shoe.jpg?id=2",
            "//other.example/shoe.jpg",
            "//shop.example:8443/shoe.jpg",
            "/0123456789abcdef0123456789abcdef",
            "/0123456789abcdef0123456789abcdea",
            "/0123456789abcdef0123456789abcdef/shoe.jpg",
            "/cache/0123456789abcdef0123456789abcdef",
            "/cache/0123456789abcdef0123456789abcdea",
        ];
        let keys: std::collections::HashSet<String> = texts.iter().map(|text| at(text).key).collect();
        assert_eq!(keys.len(), texts.len(), "{keys:?}");
    }

    #[test]
    fn the_width_is_read_out_of_the_hint() {
        for (text, width) in [
            ("/a.jpg", UNHINTED),
            ("/a_600x400.jpg", 600),
            ("/a.jpg?w=320", 320),
            ("/a.jpg?size=90x80", 90),
            ("/w_400,h_300/a.jpg", 400),
            ("/a_thumb.jpg", 50),
            ("/a_master.jpg", UNHINTED),
            ("/a._AC_SX300_.jpg", 300),
        ] {
            assert_eq!(at(text).width, width, "{text}");
        }
    }
}
