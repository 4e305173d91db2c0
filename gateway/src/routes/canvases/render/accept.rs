//! Which form of a render a client accepts (RFC 9110, 12.5.1; decisions 3.10).

use http::HeaderMap;
use http::header::ACCEPT;

/// A form of a render.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The document itself.
    Svg,
    /// A picture of it.
    Png,
}

impl Form {
    /// The form that is accepted with the higher quality, SVG of two alike; nothing when neither is accepted.
    pub fn accepted(headers: &HeaderMap) -> Option<Self> {
        let ranges: Vec<Range<'_>> = headers
            .get_all(ACCEPT)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .filter_map(Range::parse)
            .collect();
        // A client that says nothing accepts everything.
        if !headers.get_all(ACCEPT).iter().any(|value| !value.as_bytes().trim_ascii().is_empty()) {
            return Some(Self::Svg);
        }
        let (svg, png) = (quality(&ranges, "svg+xml"), quality(&ranges, "png"));
        match (svg, png) {
            (0, 0) => None,
            (svg, png) if png > svg => Some(Self::Png),
            _ => Some(Self::Svg),
        }
    }

    /// Its media type.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Svg => "image/svg+xml",
            Self::Png => "image/png",
        }
    }

    /// What tells its `ETag` from the other form's (decisions 1.9).
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Svg => "svg",
            Self::Png => "png",
        }
    }
}

/// A media range of an `Accept` header.
struct Range<'a> {
    kind: &'a str,
    subtype: &'a str,
    /// In thousandths.
    quality: u16,
}

impl<'a> Range<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let (kind, subtype) = parts.next()?.split_once('/')?;
        let quality =
            parts.filter_map(|part| part.split_once('=')).find(|(name, _)| name.trim().eq_ignore_ascii_case("q"));
        let quality = match quality {
            None => 1000,
            Some((_, value)) => thousandths(value.trim())?,
        };
        Some(Self { kind, subtype, quality })
    }

    /// How closely it names `image/<subtype>`; nothing when it does not.
    fn precision(&self, subtype: &str) -> Option<u8> {
        match (self.kind, self.subtype) {
            ("*", "*") => Some(0),
            (kind, "*") if kind.eq_ignore_ascii_case("image") => Some(1),
            (kind, own) if kind.eq_ignore_ascii_case("image") && own.eq_ignore_ascii_case(subtype) => Some(2),
            _ => None,
        }
    }
}

/// A quality: 0 to 1 with at most three decimals.
fn thousandths(text: &str) -> Option<u16> {
    let value: f64 = text.parse().ok()?;
    (text.len() <= 5 && (0.0..=1.0).contains(&value)).then(|| (value * 1000.0).round() as u16)
}

/// The quality with which `image/<subtype>` is accepted: that of the range that names it most closely.
fn quality(ranges: &[Range<'_>], subtype: &str) -> u16 {
    let matching = ranges.iter().filter_map(|range| Some((range.precision(subtype)?, range.quality)));
    matching.max().map_or(0, |(_, quality)| quality)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(values: &[&str]) -> Option<Form> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(ACCEPT, value.parse().expect("a header value"));
        }
        Form::accepted(&headers)
    }

    #[test]
    fn svg_is_served_unless_png_is_wanted_more() {
        for svg in [
            &[][..],
            &[""],
            &["image/svg+xml"],
            &["IMAGE/SVG+XML; charset=utf-8"],
            &["*/*"],
            &["image/*"],
            &["image/png, image/svg+xml"],
            &["image/png;q=0.5, */*;q=0.6"],
            &["image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"],
            &["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"],
            &["image/png;q=0", "*/*;q=0.1"],
            &["image/png;q=nonsense, image/*;q=0.1"],
        ] {
            assert_eq!(accepted(svg), Some(Form::Svg), "{svg:?}");
        }
        for png in [
            &["image/png"][..],
            &["image/png, */*;q=0.9"],
            &["image/svg+xml;q=0.3, image/*;q=0.4"],
            &["text/plain", "image/png ; q=0.001"],
            &["image/svg+xml;q=0, */*"],
        ] {
            assert_eq!(accepted(png), Some(Form::Png), "{png:?}");
        }
    }

    #[test]
    fn an_accept_that_admits_neither_is_refused() {
        for neither in [
            &["application/json"][..],
            &["image/jpeg, text/html"],
            &["image/svg+xml;q=0"],
            &["*/*;q=0"],
            &["image/*;q=0.0, text/*"],
            &["nonsense"],
            &["image/png;q=2"],
        ] {
            assert_eq!(accepted(neither), None, "{neither:?}");
        }
    }
}
