//! The name of an uploaded file (docs/reference/assets.md#file-names).

use domain::Violation;
use domain::limits::FILE_NAME_MAX;
use http::{HeaderMap, HeaderName};
use percent_encoding::percent_decode;

use crate::extract::header::single;

/// The header, and its former name, which counts when the header is missing.
const NAMES: [HeaderName; 2] =
    [HeaderName::from_static("x-service-file-name"), HeaderName::from_static("x-canvas-file-name")];

/// The file name from the headers; `None` when there is none or it is empty.
pub fn from_headers(headers: &HeaderMap) -> Result<Option<String>, Vec<Violation>> {
    let [name, former] = NAMES.map(|name| single(headers, &name));
    match (name, former) {
        (Ok(name), Ok(former)) => {
            let value = name.or(former).map_or(&[][..], |value| value.as_bytes());
            decoded(value).map_err(|message| vec![Violation::new("X-Service-File-Name", message)])
        }
        (name, former) => Err(name.err().into_iter().chain(former.err()).collect()),
    }
}

/// The last part of the path that a header names. The error says what is wrong with it.
fn decoded(encoded: &[u8]) -> Result<Option<String>, &'static str> {
    if !is_percent_encoded(encoded) {
        return Err("has a malformed percent sequence");
    }
    let decoded = percent_decode(encoded).decode_utf8().map_err(|_| "must be percent-encoded UTF-8")?;
    if decoded.chars().count() > FILE_NAME_MAX {
        return Err("must have at most 255 characters");
    }
    Ok(from_path(&decoded))
}

/// The name of the file of a path, without control characters; `None` if nothing is left.
pub fn from_path(path: &str) -> Option<String> {
    let last = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let name: String = last.chars().filter(|character| !character.is_control()).collect();
    (!name.trim().is_empty()).then_some(name)
}

/// Returns `true` if every `%` is followed by two hexadecimal digits.
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

    fn name(value: &str) -> Result<Option<String>, Vec<Violation>> {
        let mut headers = HeaderMap::new();
        headers.insert(&NAMES[0], HeaderValue::from_bytes(value.as_bytes()).expect("a header value"));
        from_headers(&headers)
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
        assert_eq!(from_headers(&HeaderMap::new()), Ok(None));
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
        headers.insert(&NAMES[1], HeaderValue::from_static("old.png"));
        assert_eq!(from_headers(&headers), Ok(Some("old.png".into())));
        headers.insert(&NAMES[0], HeaderValue::from_static("new.png"));
        assert_eq!(from_headers(&headers), Ok(Some("new.png".into())));
    }

    #[test]
    fn a_header_counts_once() {
        let mut headers = HeaderMap::new();
        for name in NAMES.iter().chain(&NAMES) {
            headers.append(name, HeaderValue::from_static("a.png"));
        }
        let fields =
            from_headers(&headers).expect_err("each was sent twice").into_iter().map(|violation| violation.field);
        assert_eq!(fields.collect::<Vec<_>>(), ["X-Service-File-Name", "X-Canvas-File-Name"]);
    }
}
