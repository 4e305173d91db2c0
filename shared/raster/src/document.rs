//! Rasterizes the service's own SVG documents: renders of canvases
//! (`docs/reference/canvases.md#render`).
//!
//! **Guarantee.** Only the document's own bytes and the bundled fonts are read: no files, no
//! network, no system fonts. Embedded images are PNG or JPEG data; anything else is not drawn.
//! The memory required is that of the document plus several times four bytes per pixel of the
//! result.

use std::sync::{Arc, LazyLock};

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::{self, Database, Family, Query, Source, Stretch, Style, Weight};
use resvg::usvg::{self, FontResolver, ImageHrefResolver, ImageKind, Options, Tree};
use skrifa::{FontRef, MetadataProvider};
use unicode_segmentation::UnicodeSegmentation;

use crate::bitmap::{Bitmap, Channels};
use crate::color::Color;
use crate::encode::{EncodeError, Encoding, encode};
use crate::format::OutputFormat;
use crate::geometry::Size;
use crate::pipeline::Output;
use crate::text;
use crate::xmp::insert_xmp;

/// The font family that replaces all others.
const FAMILY: &str = "Noto Sans";

/// The maximum number of pixels per unit of a small document.
const SCALE_MAX: f32 = 2.0;

/// The number of buffers of the result's size that may exist at once: the result, the layers of
/// clips and groups, and the encoded output.
const LAYERS: u64 = 6;

/// The memory of the parsed form per byte of a document.
const PARSED_FACTOR: u64 = 12;

/// The maximum number of runs per line, because a line is shaped once per run.
const STRETCHES_MAX: usize = 16;

/// Lines with more bytes are not split into runs.
const ITEMIZED_BYTES_MAX: usize = 2000;

/// Families without a space glyph, or whose space comes from another font.
const SPACELESS: [&str; 3] = [FAMILY, "Noto Sans CJK SC", "Twemoji Mozilla"];

/// The reason why a document was not rasterized.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// It is not valid UTF-8.
    #[error("the document is not UTF-8")]
    Encoding(#[source] std::str::Utf8Error),
    /// It is not valid SVG.
    #[error("the document cannot be parsed")]
    Parse(#[source] Box<usvg::Error>),
    /// It has no size.
    #[error("the document has no size")]
    Empty,
    /// The result cannot be encoded.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

/// Returns `true` if bytes are a document rather than an image. No image format begins like this.
pub fn is_document(bytes: &[u8]) -> bool {
    bytes.starts_with(b"<?xml ") || bytes.starts_with(b"<svg")
}

/// An approximate upper limit of the memory that [`rasterize`] uses, in bytes.
pub fn rasterize_bytes(document_bytes: u64, longest_side: u32) -> u64 {
    let pixels = u64::from(longest_side).pow(2);
    LAYERS * 4 * pixels + PARSED_FACTOR * document_bytes
}

/// Rasterizes a document to an opaque PNG whose longest side is at most `longest_side`, at twice
/// its natural size if that fits.
///
/// # Errors
///
/// Any [`DocumentError`].
pub fn rasterize(document: &[u8], longest_side: u32) -> Result<Output, DocumentError> {
    let document = itemized(std::str::from_utf8(document).map_err(DocumentError::Encoding)?);
    let tree = Tree::from_str(&document, &options()).map_err(|error| DocumentError::Parse(Box::new(error)))?;
    let natural = tree.size();
    let longest = longest_side.max(1);
    // Sides are below 2^24, so an `f32` represents them exactly.
    let scale = (longest as f32 / natural.width().max(natural.height())).min(SCALE_MAX);
    let side = |length: f32| ((length * scale).round() as u32).clamp(1, longest);
    let size = Size::new(side(natural.width()), side(natural.height()));
    let mut pixmap = Pixmap::new(size.width, size.height).ok_or(DocumentError::Empty)?;
    pixmap.fill(resvg::tiny_skia::Color::WHITE);
    // Each axis is scaled separately, so that the document fills the rounded size up to the last
    // row.
    let stretch = Transform::from_scale(size.width as f32 / natural.width(), size.height as f32 / natural.height());
    resvg::render(&tree, stretch, &mut pixmap.as_mut());
    // The background is opaque, so every pixel is premultiplied by 1.
    let pixels = pixmap.data().chunks_exact(4).flat_map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect();
    let image = Bitmap::made(size, Channels::Rgb, pixels);
    let encoding = Encoding { format: OutputFormat::Png, quality: 100, flatten: Color::WHITE };
    let bytes = encode(&image, &encoding)?;
    let bytes = match metadata(&document) {
        Some(packet) => insert_xmp(bytes, packet.as_bytes()),
        None => bytes,
    };
    Ok(Output { bytes, format: OutputFormat::Png, width: size.width, height: size.height })
}

/// The XMP packet of a document. User-authored text cannot contain these tags, because it is escaped.
fn metadata(document: &str) -> Option<&str> {
    let (_, after) = document.split_once("<metadata>")?;
    after.split_once("</metadata>").map(|(packet, _)| packet)
}

fn options() -> Options<'static> {
    Options {
        font_family: FAMILY.to_owned(),
        fontdb: Arc::clone(&FONTS),
        font_resolver: FontResolver { select_font: Box::new(font), select_fallback: Box::new(fallback) },
        image_href_resolver: ImageHrefResolver {
            resolve_data: Box::new(|media_type, bytes, _| match media_type {
                "image/jpeg" => Some(ImageKind::JPEG(bytes)),
                "image/png" => Some(ImageKind::PNG(bytes)),
                _ => None,
            }),
            resolve_string: Box::new(|_, _| None),
        },
        ..Options::default()
    }
}

static FONTS: LazyLock<Arc<Database>> = LazyLock::new(|| {
    let mut database = Database::new();
    load_fonts(&mut database);
    Arc::new(database)
});

/// Loads the bundled fonts into a database, in the order of their priority.
fn load_fonts(database: &mut Database) {
    for font in text::fonts() {
        database.load_font_source(Source::Binary(Arc::new(font.bytes)));
    }
}

/// The first of the families that is bundled, in the requested weight.
fn font(font: &usvg::Font, fonts: &mut Arc<Database>) -> Option<fontdb::ID> {
    let find = |name: &str| {
        let (families, weight) = (&[Family::Name(name)], Weight(font.weight()));
        fonts.query(&Query { families, weight, stretch: Stretch::Normal, style: Style::Normal })
    };
    let mut named = font.families().iter().filter_map(|family| match family {
        usvg::FontFamily::Named(name) => Some(name.as_str()),
        _ => None,
    });
    named.find_map(find).or_else(|| find(FAMILY))
}

/// Adds the font family to each run of the document's text lines. The resolver draws a line with
/// one font and replaces missing glyphs one by one. This fails if a second font has more or fewer
/// glyphs for the line: in ligatures, emoji sequences, and between two scripts.
fn itemized(document: &str) -> String {
    let mut out = String::with_capacity(document.len() + document.len() / 8);
    let mut rest = document;
    while let Some(begin) = rest.find("<text ")
        && let Some(start) = rest[begin..].find('>').map(|end| begin + end + 1)
        && let Some(length) = rest[start..].find("</text>")
    {
        out.push_str(&rest[..start]);
        itemize(&mut out, &rest[start..start + length]);
        rest = &rest[start + length..];
    }
    out.push_str(rest);
    out
}

/// Appends a line, split into runs of one font family each. A line is not changed if it is plain,
/// already marked up, or too long to be shaped once per run.
fn itemize(out: &mut String, line: &str) {
    if line.is_ascii() || line.contains('<') || line.len() > ITEMIZED_BYTES_MAX {
        out.push_str(line);
        return;
    }
    let mut stretches: Vec<(&str, usize)> = Vec::new();
    for (at, cluster) in line.grapheme_indices(true) {
        let space = cluster == " " && stretches.last().is_some_and(|(family, _)| !SPACELESS.contains(family));
        let family = text::family_for(cluster);
        if !space && stretches.last().is_none_or(|(last, _)| *last != family) && stretches.len() < STRETCHES_MAX {
            // The line is escaped. A mark can join the last character of an entity, such as `&lt;`,
            // which must not be split.
            let entity = line[..at].rfind('&').filter(|start| !line[*start..at].contains(';'));
            stretches.push((family, entity.unwrap_or(at)));
        }
    }
    let ends = stretches.iter().skip(1).map(|(_, at)| *at).chain([line.len()]);
    for ((family, at), end) in stretches.iter().zip(ends) {
        let stretch = &line[*at..end];
        if *family == FAMILY {
            out.push_str(stretch);
        } else {
            out.extend(["<tspan font-family=\"", family, "\">", stretch, "</tspan>"]);
        }
    }
}

/// The first font that contains a character, in the weight of the text if possible. The resolver's
/// own choice would log a warning each time.
fn fallback(c: char, tried: &[fontdb::ID], fonts: &mut Arc<Database>) -> Option<fontdb::ID> {
    let weight = fonts.face(*tried.first()?)?.weight;
    let mut others = fonts.faces().filter(|face| !tried.contains(&face.id) && has(fonts, face.id, c));
    let first = others.next()?;
    if first.weight == weight {
        return Some(first.id);
    }
    Some(others.find(|face| face.weight == weight && face.families == first.families).unwrap_or(first).id)
}

fn has(fonts: &Database, id: fontdb::ID, c: char) -> bool {
    let glyph = fonts.with_face_data(id, |file, index| FontRef::from_index(file, index).ok()?.charmap().map(c));
    glyph.flatten().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::decode;

    fn document(width: f64, height: f64, body: &str) -> String {
        format!(
            "<?xml version=\"1.0\"?><svg xmlns=\"http://www.w3.org/2000/svg\" \
             xmlns:xlink=\"http://www.w3.org/1999/xlink\" viewBox=\"-10 -10 {width} {height}\" \
             width=\"{width}\" height=\"{height}\">{body}</svg>"
        )
    }

    /// The center pixel of a rasterized document.
    fn middle(body: &str) -> [u8; 3] {
        let output = rasterize(document(20.0, 20.0, body).as_bytes(), 2048).expect("rasterizes");
        let image = decode(&output.bytes).expect("is an image");
        let (width, count) = (image.width() as usize, image.channels().count());
        let at = (image.height() as usize / 2 * width + width / 2) * count;
        [0, 1, 2].map(|channel| image.pixels()[at + channel])
    }

    #[test]
    fn the_longest_side_is_bounded_and_a_small_document_doubled() {
        let size = |width, height| {
            let output = rasterize(document(width, height, "").as_bytes(), 2048).expect("rasterizes");
            (output.width, output.height)
        };
        assert_eq!(size(100.0, 50.0), (200, 100));
        assert_eq!(size(1024.0, 512.0), (2048, 1024));
        assert_eq!(size(4096.0, 1000.0), (2048, 500));
        assert_eq!(size(10.0, 4096.0), (5, 2048));
        assert_eq!(size(1.0, 4096.0), (1, 2048));
    }

    #[test]
    fn shapes_are_drawn_on_white() {
        assert_eq!(middle(""), [255, 255, 255]);
        assert_eq!(middle("<rect x=\"-10\" y=\"-10\" width=\"20\" height=\"20\" fill=\"#0a1420\"/>"), [10, 20, 32]);
    }

    #[test]
    fn text_of_any_script_is_drawn_with_the_bundled_fonts() {
        for text in ["H", "漢", "ش", "ש", "ก", "😀"] {
            let body = format!("<text x=\"-9\" y=\"9\" font-size=\"20\" font-family=\"No Such Font\">{text}</text>");
            let drawn = rasterize(document(20.0, 20.0, &body).as_bytes(), 2048).expect("rasterizes");
            let blank = rasterize(document(20.0, 20.0, "").as_bytes(), 2048).expect("rasterizes");
            assert_ne!(drawn.bytes, blank.bytes, "{text}");
        }
    }

    #[test]
    fn each_stretch_of_a_line_names_its_family() {
        let plain = "<svg><text x=\"1\">a &lt; b</text><text>ä</text></svg>";
        assert_eq!(itemized(plain), plain);
        assert_eq!(
            itemized("<text x=\"1\">a &lt; हिन्दी भाषा, ไทย 👩‍👩‍👧 🎉</text><rect/>"),
            "<text x=\"1\">a &lt; <tspan font-family=\"Noto Sans Devanagari\">हिन्दी भाषा</tspan>, \
             <tspan font-family=\"Noto Sans Thai\">ไทย </tspan><tspan font-family=\"Twemoji Mozilla\">👩‍👩‍👧</tspan> \
             <tspan font-family=\"Twemoji Mozilla\">🎉</tspan></text><rect/>"
        );
        let many = format!("<text x=\"1\">{}</text>", "a漢".repeat(300));
        assert_eq!(itemized(&many).matches("<tspan").count(), STRETCHES_MAX / 2);
        let long = format!("<text x=\"1\">{}</text>", "a漢".repeat(600));
        assert_eq!(itemized(&long), long);
    }

    #[test]
    fn a_mark_after_an_escaped_character_takes_the_whole_entity_along() {
        assert_eq!(
            itemized("<text x=\"1\">a&#39;\u{bbe} b</text>"),
            "<text x=\"1\">a<tspan font-family=\"Noto Sans Tamil\">&#39;\u{bbe} </tspan>b</text>"
        );
        for entity in ["&amp;", "&lt;", "&gt;", "&quot;", "&#39;"] {
            for mark in ["\u{bbe}", "\u{abe}", "\u{9be}", "\u{20d7}"] {
                let body =
                    format!("<text x=\"-9\" y=\"0\" font-size=\"4\">\u{bbe}{entity}{mark}{entity}{mark}a</text>");
                assert!(rasterize(document(20.0, 20.0, &body).as_bytes(), 2048).is_ok(), "{body}");
            }
        }
    }

    #[test]
    fn an_arrow_leaves_the_letters_of_its_line_alone() {
        // The text is already marked up, so only the fallback selects the font of the arrow.
        let rendered = |text: &str| {
            let body = format!("<text x=\"-9\" y=\"0\" font-size=\"4\"><tspan>{text}</tspan></text>");
            let output = rasterize(document(40.0, 20.0, &body).as_bytes(), 2048).expect("rasterizes");
            decode(&output.bytes).expect("is an image")
        };
        // The part to the left of the arrow, at two pixels per unit. The font with symbols has
        // letters of the same width but other curves; in the monospaced font they are much wider.
        let letters =
            |text: &str| rendered(text).cropped(crate::geometry::Rect { x: 0, y: 0, size: Size::new(17, 40) });
        let ink = |image: &Bitmap| image.pixels().iter().map(|sample| u32::from(255 - sample)).sum::<u32>();
        let plain = letters("Will");
        for arrow in ["←", "→", "⇒"] {
            let line = format!("Will {arrow}");
            let beside = letters(&line);
            let differences = beside.pixels().iter().zip(plain.pixels()).map(|(a, b)| u32::from(a.abs_diff(*b)));
            assert!(differences.sum::<u32>() * 10 < ink(&plain), "{arrow}");
            assert!(ink(&rendered(&line)) > ink(&plain) * 51 / 50, "{arrow} is drawn");
        }
    }

    #[test]
    fn emoji_are_in_colour_beside_other_scripts() {
        let body = "<text x=\"-9\" y=\"2\" font-size=\"6\">ห😀हि</text>";
        let output = rasterize(document(20.0, 20.0, body).as_bytes(), 2048).expect("rasterizes");
        let image = decode(&output.bytes).expect("is an image");
        let yellow = |pixel: &&[u8]| pixel[0] > 200 && pixel[1] > 150 && pixel[2] < 120;
        assert!(image.pixels().chunks_exact(image.channels().count()).filter(yellow).count() > 20);
    }

    #[test]
    fn nothing_outside_of_the_document_is_looked_at() {
        let image = |href: &str| {
            middle(&format!("<image x=\"-10\" y=\"-10\" width=\"20\" height=\"20\" xlink:href=\"{href}\"/>"))
        };
        let dir = std::env::temp_dir().join(format!("raster-document-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("makes a directory");
        let path = dir.join("black.png");
        let black = Bitmap::made(Size::new(4, 4), Channels::Rgb, vec![0; 48]);
        let encoding = Encoding { format: OutputFormat::Png, quality: 100, flatten: Color::WHITE };
        let png = encode(&black, &encoding).expect("encodes");
        std::fs::write(&path, &png).expect("writes");
        assert_eq!(image(path.to_str().expect("UTF-8")), [255, 255, 255]);
        std::fs::remove_dir_all(&dir).expect("removes");
        assert_eq!(image("http://127.0.0.1:9/x.png"), [255, 255, 255]);
        let nested = "data:image/svg+xml,&lt;svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'>\
                      &lt;rect width='9' height='9'/>&lt;/svg>";
        assert_eq!(image(nested), [255, 255, 255], "no document within the document");
        assert_eq!(image(&format!("data:image/png,{}", percent(&png))), [0, 0, 0], "its own data is drawn");
    }

    fn percent(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("%{byte:02x}")).collect()
    }

    #[test]
    fn what_is_no_document_is_refused() {
        assert!(matches!(rasterize(b"<svg", 2048), Err(DocumentError::Parse(_))));
        assert!(matches!(rasterize(b"", 2048), Err(DocumentError::Parse(_))));
        assert!(is_document(b"<?xml version") && is_document(b"<svg xmlns") && !is_document(b"\x89PNG"));
    }
}
