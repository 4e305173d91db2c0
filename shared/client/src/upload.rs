//! Uploads of images.

/// The media type of an image by its first bytes; `None` for formats that the service does not take
/// (docs/reference/assets.md#upload). Of HEIC, the service says how it can be converted.
pub fn media_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        [_, _, _, _, b'f', b't', b'y', b'p', b'a', b'v', b'i', b'f' | b's', ..] => Some("image/avif"),
        [_, _, _, _, b'f', b't', b'y', b'p', b'h', b'e', b'i' | b'v', ..] => Some("image/heic"),
        // The brands that follow tell an AVIF from a HEIC.
        [_, _, _, _, b'f', b't', b'y', b'p', b'm', b'i' | b's', b'f', b'1', ..] => Some("application/octet-stream"),
        // Other brands are those of videos. Of a QuickTime film, the service says that it is one.
        [_, _, _, _, b'f', b't', b'y', b'p', ..] => Some("video/mp4"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::media_type;

    #[test]
    fn images_are_known_by_their_first_bytes() {
        assert_eq!(media_type(b"\x89PNG\r\n\x1a\n"), Some("image/png"));
        assert_eq!(media_type(b"\xff\xd8\xff\xe0"), Some("image/jpeg"));
        assert_eq!(media_type(b"GIF89a"), Some("image/gif"));
        assert_eq!(media_type(b"RIFF\0\0\0\0WEBPVP8 "), Some("image/webp"));
        assert_eq!(media_type(b"RIFF\0\0\0\0WAVEfmt "), None);
        assert_eq!(media_type(b"\0\0\0\x20ftypavif\0\0\0\0"), Some("image/avif"));
        assert_eq!(media_type(b"\0\0\0\x20ftypheic\0\0\0\0"), Some("image/heic"));
        assert_eq!(media_type(b"\0\0\0\x20ftypmif1\0\0\0\0"), Some("application/octet-stream"));
        assert_eq!(media_type(b"\0\0\0\x20ftypisom\0\0\0\0"), Some("video/mp4"));
        assert_eq!(media_type(b""), None);
    }
}
