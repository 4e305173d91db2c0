//! File formats of inputs and outputs.

use std::str::FromStr;

use crate::geometry::ParseError;

/// A format that is accepted as input (`docs/reference/assets.md#accepted-formats`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// PNG, including APNG, of which the default image is used.
    Png,
    /// JPEG: baseline, extended and progressive.
    Jpeg,
    /// WebP: lossy, lossless, and animated, of which the first frame is used.
    Webp,
    /// GIF, of which the first frame is used.
    Gif,
}

impl Format {
    /// Number of leading bytes that [`Format::sniff`] reads.
    pub const SNIFF_BYTES: usize = 12;

    /// The format by its magic bytes; `None` for any other format.
    ///
    /// [`Format::SNIFF_BYTES`] bytes always suffice; fewer suffice for formats with a shorter signature.
    pub fn sniff(bytes: &[u8]) -> Option<Self> {
        if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
            Some(Self::Png)
        } else if bytes.starts_with(b"\xff\xd8\xff") {
            Some(Self::Jpeg)
        } else if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") {
            Some(Self::Gif)
        } else if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
            Some(Self::Webp)
        } else {
            None
        }
    }

    /// The format that a media type names, whatever its case and parameters; `None` for any other type. `image/jpg` and
    /// `image/pjpeg` are names that some software gives to `image/jpeg`.
    pub fn of_media_type(media_type: &str) -> Option<Self> {
        let essence = media_type.split(';').next().unwrap_or_default().trim();
        let names = [
            ("image/png", Self::Png),
            ("image/jpeg", Self::Jpeg),
            ("image/jpg", Self::Jpeg),
            ("image/pjpeg", Self::Jpeg),
            ("image/webp", Self::Webp),
            ("image/gif", Self::Gif),
        ];
        names.into_iter().find_map(|(name, format)| essence.eq_ignore_ascii_case(name).then_some(format))
    }

    /// The media type, as sent in `Content-Type`.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Webp => "image/webp",
            Self::Gif => "image/gif",
        }
    }

    /// The file name extension without its dot; `jpg` for a JPEG.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Jpeg => "jpg",
            Self::Webp => "webp",
            Self::Gif => "gif",
        }
    }
}

/// The number of bytes of a color table of a GIF, from the flags of the screen or of an image (GIF89a, 18 and 20).
pub(crate) fn color_table(flags: u8) -> usize {
    if flags & 0x80 == 0 { 0 } else { 3 << ((flags & 7) + 1) }
}

/// A format of outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OutputFormat {
    /// PNG, lossless.
    Png,
    /// JPEG, lossy, without alpha.
    Jpeg,
    /// WebP, lossy, with alpha.
    Webp,
}

impl From<OutputFormat> for Format {
    fn from(format: OutputFormat) -> Self {
        match format {
            OutputFormat::Png => Self::Png,
            OutputFormat::Jpeg => Self::Jpeg,
            OutputFormat::Webp => Self::Webp,
        }
    }
}

impl OutputFormat {
    /// The output format for `choice` when the source has the format `source`.
    ///
    /// `auto`: JPEG stays JPEG unless the result needs alpha (then PNG), WebP stays WebP, everything else becomes PNG.
    pub fn resolve(choice: FormatChoice, source: Format, needs_alpha: bool) -> Self {
        match (choice, source) {
            (FormatChoice::Png, _) => Self::Png,
            (FormatChoice::Jpeg, _) => Self::Jpeg,
            (FormatChoice::Webp, _) => Self::Webp,
            (FormatChoice::Auto, Format::Jpeg) if !needs_alpha => Self::Jpeg,
            (FormatChoice::Auto, Format::Webp) => Self::Webp,
            (FormatChoice::Auto, _) => Self::Png,
        }
    }
}

/// The parameter `format` of the Actions (`docs/reference/actions.md#output-format`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum FormatChoice {
    /// Depends on the source. See [`OutputFormat::resolve`].
    #[default]
    Auto,
    /// Always PNG.
    Png,
    /// Always JPEG.
    Jpeg,
    /// Always WebP.
    Webp,
}

impl FromStr for FormatChoice {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text {
            "auto" => Ok(Self::Auto),
            "png" => Ok(Self::Png),
            "jpeg" => Ok(Self::Jpeg),
            "webp" => Ok(Self::Webp),
            _ => Err(ParseError),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn magic_bytes_tell_the_format() {
        assert_eq!(Format::sniff(b"\x89PNG\r\n\x1a\n"), Some(Format::Png));
        assert_eq!(Format::sniff(b"\xff\xd8\xff\xe0"), Some(Format::Jpeg));
        assert_eq!(Format::sniff(b"GIF87a"), Some(Format::Gif));
        assert_eq!(Format::sniff(b"GIF89a"), Some(Format::Gif));
        assert_eq!(Format::sniff(b"RIFF\0\0\0\0WEBP"), Some(Format::Webp));
        for foreign in [&b""[..], b"\xff\xd8", b"GIF88a", b"RIFF\0\0\0\0WAVE", b"RIFF\0\0\0\0WEB", b"<svg>", b"BM"] {
            assert_eq!(Format::sniff(foreign), None, "{foreign:?}");
        }
    }

    #[test]
    fn a_media_type_names_its_format_however_it_is_written() {
        for format in [Format::Png, Format::Jpeg, Format::Webp, Format::Gif] {
            assert_eq!(Format::of_media_type(format.media_type()), Some(format));
        }
        for jpeg in ["image/jpg", "image/pjpeg", "IMAGE/JPG", " image/jpeg ; q=1"] {
            assert_eq!(Format::of_media_type(jpeg), Some(Format::Jpeg), "{jpeg}");
        }
        for other in ["", "image", "image/", "image/jp", "image/jpeg2", "image/svg+xml", "text/plain", "jpeg"] {
            assert_eq!(Format::of_media_type(other), None, "{other}");
        }
    }

    #[test]
    fn auto_keeps_jpeg_and_webp_and_turns_the_rest_to_png() {
        let auto = |source, alpha| OutputFormat::resolve(FormatChoice::Auto, source, alpha);
        assert_eq!(auto(Format::Jpeg, false), OutputFormat::Jpeg);
        assert_eq!(auto(Format::Jpeg, true), OutputFormat::Png);
        assert_eq!(auto(Format::Webp, false), OutputFormat::Webp);
        assert_eq!(auto(Format::Webp, true), OutputFormat::Webp);
        assert_eq!(auto(Format::Png, false), OutputFormat::Png);
        assert_eq!(auto(Format::Gif, true), OutputFormat::Png);
    }

    #[test]
    fn a_named_format_wins_over_the_source() {
        for (text, format) in [("png", OutputFormat::Png), ("jpeg", OutputFormat::Jpeg), ("webp", OutputFormat::Webp)] {
            let choice = text.parse().unwrap();
            assert_eq!(OutputFormat::resolve(choice, Format::Gif, true), format);
        }
        assert_eq!("auto".parse(), Ok(FormatChoice::Auto));
        assert_eq!("jpg".parse::<FormatChoice>(), Err(ParseError));
    }

    #[test]
    fn names_of_files_and_media_are_the_usual_ones() {
        assert_eq!((Format::Jpeg.media_type(), Format::Jpeg.extension()), ("image/jpeg", "jpg"));
        assert_eq!((Format::Png.media_type(), Format::Png.extension()), ("image/png", "png"));
        assert_eq!((Format::Webp.media_type(), Format::Webp.extension()), ("image/webp", "webp"));
        assert_eq!((Format::Gif.media_type(), Format::Gif.extension()), ("image/gif", "gif"));
    }
}
