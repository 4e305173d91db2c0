//! The form of a render that a client accepts (RFC 9110, 12.5.1; docs/reference/canvases.md#render-formats).

use http::HeaderMap;

use crate::extract::accept::Accepted;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The SVG document.
    Svg,
    /// A PNG rasterized from the document.
    Png,
}

impl Form {
    /// The form with the higher quality, SVG when they are equal; `None` when neither is accepted.
    pub fn accepted(headers: &HeaderMap) -> Option<Self> {
        let accepted = Accepted::from_headers(headers);
        match (accepted.quality("image", "svg+xml"), accepted.quality("image", "png")) {
            (0, 0) => None,
            (svg, png) if png > svg => Some(Self::Png),
            _ => Some(Self::Svg),
        }
    }

    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Svg => "image/svg+xml",
            Self::Png => "image/png",
        }
    }

    /// Suffix that distinguishes the `ETag` of this form from that of the other.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Svg => "svg",
            Self::Png => "png",
        }
    }
}

#[cfg(test)]
mod tests {
    use http::header::ACCEPT;

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
