//! Origin marks: the origin of an image or video, in its file (docs/reference/assets.md#origin-marks).

use domain::origin::{DigitalSourceType, Origin};
use raster::xmp::{self, Properties};

/// Setting of origin marks (`CANVAS_ORIGIN_MARKS`).
#[derive(Clone, Copy, Debug)]
pub struct OriginMarks(pub bool);

impl OriginMarks {
    /// The XMP packet of a file with this origin that is made of `input`; `None` if the file gets none.
    pub fn packet(self, origin: Option<DigitalSourceType>, input: &[u8]) -> Option<String> {
        let origin = origin.filter(|_| self.0)?;
        Some(xmp::packet(&origin.uri(), Properties::of_file(input).provenance.as_deref()))
    }
}

/// `file` with this packet.
pub fn marked(file: Vec<u8>, packet: Option<&str>) -> Vec<u8> {
    match packet {
        Some(packet) => xmp::insert_xmp(file, packet.as_bytes()),
        None => file,
    }
}

/// The origin that a file's metadata states.
pub fn claimed_origin(file: &[u8]) -> Option<Origin> {
    Origin::from_file(&Properties::of_file(file).digital_source_types)
}
