//! Decodes the bytes of a page to text (WHATWG HTML, 13.2.3: determining the character encoding).

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

use super::tree::essence;

/// The number of bytes that are searched for a page's own declaration: twice the standard's 1024, for pages that begin with a comment.
const PRESCAN_BYTES: usize = 2048;

/// Returns `true` if a media type is that of markup; without one, the first bytes decide. Of several in one header, the first
/// that is markup
/// counts.
pub fn is_markup(content_type: Option<&str>, bytes: &[u8]) -> bool {
    let types = content_type.unwrap_or_default();
    if types.split(',').any(|one| !essence(one).is_empty()) {
        return types.split(',').any(is_html);
    }
    let start = bytes.trim_ascii_start();
    let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start();
    start.starts_with(b"<")
}

fn is_html(media_type: &str) -> bool {
    matches!(&*essence(media_type), "text/html" | "application/xhtml+xml")
}

/// The text. A byte order mark wins, then the header, then the page's own declaration. Without any, or when the declared encoding
/// does not match the bytes, the encoding is guessed from the bytes.
pub fn text(content_type: Option<&str>, bytes: &[u8]) -> String {
    if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
        return encoding.decode_without_bom_handling(&bytes[mark..]).0.into_owned();
    }
    let declared = content_type.and_then(from_header).or_else(|| from_markup(bytes));
    if let Some(encoding) = declared.filter(|encoding| is_plausible(encoding, bytes)) {
        let (text, _, broken) = encoding.decode(bytes);
        if !broken {
            return text.into_owned();
        }
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(bytes, true);
    detector.guess(None, Utf8Detection::Allow).decode(bytes).0.into_owned()
}

/// Returns `true` if bytes without a byte order mark can have an encoding: markup in UTF-16 has a zero in every other byte.
fn is_plausible(encoding: &'static Encoding, bytes: &[u8]) -> bool {
    (encoding != UTF_16LE && encoding != UTF_16BE) || bytes.iter().take(PRESCAN_BYTES).any(|byte| *byte == 0)
}

/// `charset` of a `Content-Type`: of the first type that is markup and has one.
fn from_header(content_type: &str) -> Option<&'static Encoding> {
    let parameters = content_type.split(',').filter(|one| is_html(one)).flat_map(|one| one.split(';').skip(1));
    let named = parameters.filter_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches(['"', '\'']))
    });
    named.map(str::as_bytes).find_map(Encoding::for_label)
}

/// `<meta charset=…>` or its older form; a page that declares UTF-16 in ASCII is UTF-8 (WHATWG HTML, 13.2.3.2).
fn from_markup(bytes: &[u8]) -> Option<&'static Encoding> {
    let start = bytes[..bytes.len().min(PRESCAN_BYTES)].to_ascii_lowercase();
    let at = start.windows(5).position(|window| window == b"<meta").and_then(|meta| {
        let found = start[meta..].windows(8).position(|window| window == b"charset=")?;
        Some(meta + found + 8)
    })?;
    let label = start[at..].trim_ascii_start();
    let label = label.strip_prefix(b"\"").or_else(|| label.strip_prefix(b"'")).unwrap_or(label);
    let end = label.iter().position(|byte| b"\"' ;/>".contains(byte)).unwrap_or(label.len());
    let encoding = Encoding::for_label(&label[..end])?;
    Some(if encoding == UTF_16LE || encoding == UTF_16BE { UTF_8 } else { encoding })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUSSIAN: &str = "<meta charset=windows-1251><title>Кожаные ботинки ручной работы, осенняя коллекция</title>";

    #[test]
    fn a_page_is_recognized_by_its_type_or_its_first_bytes() {
        assert!(is_markup(Some("text/html"), b"") && is_markup(Some("Text/HTML; charset=x"), b""));
        assert!(is_markup(Some("application/xhtml+xml"), b"") && is_markup(None, b" \n<!doctype html>"));
        for (declared, bytes) in
            [(Some("image/png"), &b"<html>"[..]), (Some("application/json"), b"<"), (None, b"\x89PNG"), (None, b"")]
        {
            assert!(!is_markup(declared, bytes), "{declared:?}");
        }
    }

    #[test]
    fn of_several_types_in_one_header_the_first_that_is_markup_counts() {
        for types in ["text/html, text/html; charset=x", "text/plain,text/html", ", text/html", "text/html,text/plain"]
        {
            assert!(is_markup(Some(types), b"\x89PNG"), "{types}");
        }
        assert!(!is_markup(Some("image/png, text/plain"), b"<html>"));
        assert!(is_markup(Some(", "), b"<html>"), "no type at all");
        let bytes = encoding_rs::WINDOWS_1251.encode("<p>осенняя").0;
        for types in [
            "text/html, text/html; charset=windows-1251",
            "text/plain; charset=utf-8, text/html; charset=windows-1251",
            "text/html; charset=windows-1251, text/html; charset=utf-8",
        ] {
            assert_eq!(text(Some(types), &bytes), "<p>осенняя", "{types}");
        }
    }

    #[test]
    fn header_mark_and_markup_name_the_encoding() {
        let bytes = encoding_rs::WINDOWS_1251.encode(RUSSIAN).0;
        assert_eq!(text(None, &bytes), RUSSIAN);
        assert_eq!(text(Some("text/html; charset=\"windows-1251\""), &bytes), RUSSIAN);
        assert_eq!(text(Some("text/html; charset=latin1"), b"\xef\xbb\xbf\xc3\xa4"), "ä");
        assert_eq!(text(Some("text/html"), "<p>ä".as_bytes()), "<p>ä");
    }

    #[test]
    fn a_wrong_declaration_is_found_out() {
        let bytes = encoding_rs::WINDOWS_1251.encode(RUSSIAN).0;
        assert_eq!(text(Some("text/html; charset=utf-8"), &bytes), RUSSIAN);
        assert_eq!(text(Some("text/html; charset=utf-16le"), b"<p>plain</p>"), "<p>plain</p>");
        assert_eq!(text(Some("text/html; charset=no-such"), "<p>ä".as_bytes()), "<p>ä");
    }
}
