//! The media types that a client accepts (RFC 9110, 12.5.1).

use http::HeaderMap;
use http::header::ACCEPT;

/// The `Accept` headers of a request.
pub struct Accepted<'a> {
    /// `None`: a request without `Accept`, or with empty ones, accepts everything.
    ranges: Option<Vec<Range<'a>>>,
}

impl<'a> Accepted<'a> {
    /// Reads the headers; ranges of malformed form are left out.
    pub fn from_headers(headers: &'a HeaderMap) -> Self {
        let values = || headers.get_all(ACCEPT).iter().filter(|value| !value.as_bytes().trim_ascii().is_empty());
        let texts = values().filter_map(|value| value.to_str().ok());
        let ranges = values().next().map(|_| texts.flat_map(|text| text.split(',')).filter_map(Range::parse).collect());
        Self { ranges }
    }

    /// The quality of a media type in thousandths, 0 when it is not accepted.
    pub fn quality(&self, kind: &str, subtype: &str) -> u16 {
        match &self.ranges {
            None => 1000,
            Some(ranges) => best(ranges, kind, subtype).map_or(0, |range| range.quality),
        }
    }

    /// Returns `true` if the client would rather have HTML than JSON, as a browser does that navigates.
    pub fn prefers_html(&self) -> bool {
        self.quality("text", "html") > self.quality("application", "json")
    }

    /// Returns `true` if the client would rather have JSON lines than JSON.
    pub fn prefers_lines(&self) -> bool {
        self.quality("application", "x-ndjson") > self.quality("application", "json")
    }

    /// Returns `true` if the client rejects the media type by `q=0`. A type that it merely leaves out is not rejected, and
    /// neither is one of
    /// which it rejects a variant.
    pub fn rejects(&self, kind: &str, subtype: &str) -> bool {
        let range = self.ranges.as_ref().and_then(|ranges| best(ranges, kind, subtype));
        range.is_some_and(|range| range.quality == 0 && !range.is_variant)
    }
}

/// The `Accept` headers of a request by which it may reject a media type, kept until the type of the response is known. `None`
/// when no range has a weight: then it rejects none.
pub fn weighted(headers: &HeaderMap) -> Option<HeaderMap> {
    let values = headers.get_all(ACCEPT);
    let has_weights = values.iter().any(|value| value.as_bytes().contains(&b';'));
    has_weights.then(|| values.iter().map(|value| (ACCEPT, value.clone())).collect())
}

/// The most specific range that matches; of several, the one with the highest quality.
fn best<'r, 'a>(ranges: &'r [Range<'a>], kind: &str, subtype: &str) -> Option<&'r Range<'a>> {
    let matching = ranges.iter().filter_map(|range| Some((range.precision(kind, subtype)?, range)));
    matching.max_by_key(|(precision, range)| (*precision, range.quality)).map(|(_, range)| range)
}

/// A media range.
struct Range<'a> {
    kind: &'a str,
    subtype: &'a str,
    /// Quality in thousandths.
    quality: u16,
    /// `true` if it has parameters, such as `version=1`. Such a range is about one variant of the media type.
    is_variant: bool,
}

impl<'a> Range<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let (kind, subtype) = parts.next()?.split_once('/')?;
        let is_weight = |name: &str| name.trim().eq_ignore_ascii_case("q");
        let parameters: Vec<(&str, &str)> = parts.filter_map(|part| part.split_once('=')).collect();
        let quality = match parameters.iter().find(|(name, _)| is_weight(name)) {
            None => 1000,
            Some((_, value)) => thousandths(value.trim())?,
        };
        let is_variant = parameters.first().is_some_and(|(name, _)| !is_weight(name));
        Some(Self { kind, subtype, quality, is_variant })
    }

    /// How specifically the range matches a media type; `None` when it does not match.
    fn precision(&self, kind: &str, subtype: &str) -> Option<u8> {
        match (self.kind, self.subtype) {
            ("*", "*") => Some(0),
            (own, "*") if own.eq_ignore_ascii_case(kind) => Some(1),
            (own, name) if own.eq_ignore_ascii_case(kind) && name.eq_ignore_ascii_case(subtype) => Some(2),
            _ => None,
        }
    }
}

/// Parses a quality: 0 to 1 with at most three decimals.
pub fn thousandths(text: &str) -> Option<u16> {
    let value: f64 = text.parse().ok()?;
    (text.len() <= 5 && (0.0..=1.0).contains(&value)).then(|| (value * 1000.0).round() as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(ACCEPT, value.parse().expect("a header value"));
        }
        headers
    }

    #[test]
    fn a_type_is_rejected_by_the_most_specific_range_alone() {
        let rejects = |values: &[&str]| Accepted::from_headers(&headers(values)).rejects("application", "json");
        for rejected in [
            &["application/json;q=0"][..],
            &["application/json;q=0, */*"],
            &["application/*;q=0.0", "*/*;q=1"],
            &["*/*;q=0"],
        ] {
            assert!(rejects(rejected), "{rejected:?}");
        }
        for served in [
            &[][..],
            &[""],
            &["text/html"],
            &["application/json", "*/*;q=0"],
            &["application/json;q=2"],
            &["application/json;v=1;q=0"],
        ] {
            assert!(!rejects(served), "{served:?}");
        }
    }

    #[test]
    fn a_type_that_no_range_matches_has_no_quality() {
        let quality = |values: &[&str]| Accepted::from_headers(&headers(values)).quality("text", "event-stream");
        assert_eq!(quality(&[]), 1000);
        assert_eq!(quality(&[" "]), 1000);
        assert_eq!(quality(&["text/*;q=0.5, */*"]), 500);
        assert_eq!(quality(&["TEXT/EVENT-STREAM ; Q=0.3", "text/*"]), 300);
        assert_eq!(quality(&["application/json"]), 0);
        assert_eq!(quality(&["text/event-stream;q=0, */*"]), 0);
    }
}
