//! Small films, made by `tests/films/make`.

/// Twelve frames of 96 × 64 pixels, a tenth of a second each, decoded in another order than they are shown, with sound. The index is at
/// the end.
pub const REORDERED: &[u8] = include_bytes!("../films/reordered.mp4");
/// A film without sound, whose index is at the beginning.
pub const SILENT: &[u8] = include_bytes!("../films/silent.mp4");
/// A film of 96 × 64 pixels that is shown turned.
pub const TURNED: &[u8] = include_bytes!("../films/turned.mp4");
/// A film that names place and device, as newer telephones write them.
pub const PLACE: &[u8] = include_bytes!("../films/place.mp4");
/// The same in the older form (3GPP).
pub const PLACE_3GP: &[u8] = include_bytes!("../films/place-3gp.mp4");
/// HEVC.
pub const HEVC: &[u8] = include_bytes!("../films/hevc.mp4");
/// AV1 with Opus.
pub const AV1: &[u8] = include_bytes!("../films/av1.mp4");
/// H.264 with 10 bits in a sample.
pub const TEN_BITS: &[u8] = include_bytes!("../films/ten-bits.mp4");
/// A film of fragments.
pub const FRAGMENTED: &[u8] = include_bytes!("../films/fragmented.mp4");
/// A film whose sound is MP3.
pub const MP3: &[u8] = include_bytes!("../films/mp3.mp4");

/// A film with a box that makes it unique, so that no other test has stored it.
pub fn unique(film: &[u8]) -> Vec<u8> {
    let id = uuid::Uuid::now_v7();
    [film, &24_u32.to_be_bytes(), b"free", id.as_bytes()].concat()
}
