//! The name of an uploaded file (decisions 6.3, 18.7, 18.20).

use domain::limits::FILE_NAME_MAX;
use http::HeaderMap;
use percent_encoding::percent_decode;

const NAMES: [&str; 2] = ["x-service-file-name", "x-canvas-file-name"];

/// The name that the headers give; `None` when there is none, or nothing is left of it. An error says what is wrong with it.
pub fn of(headers: &HeaderMap) -> Result<Option<String>, &'static str> {
    let Some(value) = NAMES.iter().find_map(|name| headers.get(*name)) else { return Ok(None) };
    let encoded = value.as_bytes();
    if !is_percent_encoded(encoded) {
        return Err("has a malformed percent sequence");
    }
    let decoded = percent_decode(encoded).decode_utf8().map_err(|_| "must be percent-encoded UTF-8")?;
    if decoded.chars().count() > FILE_NAME_MAX {
        return Err("must have at most 255 characters");
    }
    let last = decoded.rsplit(['/', '\\']).next().unwrap_or_default();
    let name: String = last.chars().filter(|character| !character.is_control()).collect();
    Ok((!name.trim().is_empty()).then_some(name))
}

/// Whether every `%` is followed by two hexadecimal digits.
fn is_percent_encoded(text: &[u8]) -> bool {
    text.iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'%')
        .all(|(index, _)| text.get(index + 1..index + 3).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn name(value: &str) -> Result<Option<String>, &'static str> {
        let mut headers = HeaderMap::new();
        headers.insert(NAMES[0], HeaderValue::from_bytes(value.as_bytes()).expect("a header value"));
        of(&headers)
    }

    #[test]
    fn a_name_is_decoded_and_stripped_of_its_path() {
        assert_eq!(name("caf%C3%A9.png"), Ok(Some("café.png".into())));
        assert_eq!(name("a/b\\c%2Fd.png"), Ok(Some("d.png".into())));
        assert_eq!(name("a%0Ab%00.png"), Ok(Some("ab.png".into())));
        assert_eq!(name("naïve.png"), Ok(Some("naïve.png".into())));
    }

    #[test]
    fn nothing_left_means_the_default() {
        for empty in ["", "a/", "%00", "%20"] {
            assert_eq!(name(empty), Ok(None), "{empty:?}");
        }
        assert_eq!(of(&HeaderMap::new()), Ok(None));
    }

    #[test]
    fn a_name_has_at_most_255_characters_after_decoding() {
        assert_eq!(name(&"%C3%A9".repeat(255)), Ok(Some("é".repeat(255))));
        assert!(name(&"x".repeat(256)).is_err());
    }

    #[test]
    fn what_does_not_decode_is_refused() {
        for wrong in ["%", "%4", "%zz", "a%C3", "%ff.png"] {
            assert!(name(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn the_earlier_header_still_counts() {
        let mut headers = HeaderMap::new();
        headers.insert(NAMES[1], HeaderValue::from_static("old.png"));
        assert_eq!(of(&headers), Ok(Some("old.png".into())));
    }
}
