//! Photographs with private metadata.

/// Stands in the place of a photograph.
pub const PLACE: &[u8; 12] = b"PRIVATE-7731";
/// Stands in its author.
pub const AUTHOR: &[u8; 11] = b"Author-4419";

/// A JPEG as a photograph that must be rotated by 90 degrees for display, with [`AUTHOR`] and [`PLACE`] in its EXIF data (TIFF 6.0,
/// section 2).
pub fn with_place(jpeg: &[u8]) -> Vec<u8> {
    let entry = |tag: u16, kind: u16, count: u32, value: [u8; 4]| {
        [&tag.to_be_bytes()[..], &kind.to_be_bytes(), &count.to_be_bytes(), &value].concat()
    };
    // Two directories of 3 and 1 entries, at 8 and 50, then the two texts.
    let block = [
        b"Exif\0\0MM\0*\0\0\0\x08\0\x03".to_vec(),
        entry(0x0112, 3, 1, [0, 6, 0, 0]),
        entry(0x013b, 2, 12, [0, 0, 0, 68]),
        entry(0x8825, 4, 1, [0, 0, 0, 50]),
        b"\0\0\0\0\0\x01".to_vec(),
        entry(0x001d, 2, 12, [0, 0, 0, 80]),
        [&b"\0\0\0\0"[..], AUTHOR, b"\0", PLACE].concat(),
    ]
    .concat();
    let segment = [&[0xff, 0xe1, 0, block.len() as u8 + 2], &block[..]].concat();
    [&jpeg[..2], &segment, &jpeg[2..]].concat()
}
