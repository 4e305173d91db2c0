//! Reads MP4 files: ISO media (ISO/IEC 14496-12), MP4 (14496-14), and H.264 in them (14496-15).
//!
//! **Guarantee.** Nothing is decoded. Bytes from anyone cause no panic, no loop without progress, and no memory beyond the index
//! ([`INDEX_MAX`]) and its samples ([`SAMPLES_MAX`]). A box that contradicts its parent is an error, never a guess.
//!
//! **Mechanism.** A [`Scanner`] walks over the boxes of the file and keeps `moov`, the index, wherever it is. It says which bytes it
//! [wants](Scanner::wants) next, so that it reads a stream as well as ranges of a stored file. A [`Movie`] is a view of the index:
//! its tracks, their codecs and sizes. [`Track::samples`] reads the tables that say where each coded frame is and when it is shown.
//! [`avc`] reads the parameter sets of H.264.
//!
//! **Reason.** The gateway checks uploads, and the workers find the frame to decode. A library for the whole format reads all boxes
//! of a file into memory as they claim to be.

pub mod avc;

mod boxes;
mod movie;
pub mod private;
mod samples;
mod scan;

#[cfg(test)]
mod testing;

pub use movie::{Codec, Color, Kind, Movie, Track, Turn};
pub use private::Private;
pub use samples::{Sample, Samples};
pub use scan::{Piece, Scanner};

/// The largest index (`moov`) in bytes that is read. An hour with 60 frames and 47 sound samples in a second takes 5 MB.
pub const INDEX_MAX: u64 = 8 << 20;

/// The largest number of samples of a track that is read: two hours with 36 frames in a second.
pub const SAMPLES_MAX: u32 = 1 << 18;

/// The four characters that name a box, a codec or a brand.
pub type Name = [u8; 4];

/// The reason why a file cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It does not begin with a file type box.
    #[error("it is not an MP4 file")]
    NotIsoMedia,
    /// It ends within a box.
    #[error("it is cut off")]
    CutOff,
    /// It has no index, or more than one.
    #[error("it has no single index (a moov box)")]
    NoIndex,
    /// Its index is larger than [`INDEX_MAX`].
    #[error("its index (the moov box) has more than 8 MiB")]
    IndexTooLarge,
    /// A box contradicts the standard.
    #[error("its box {} is damaged", text(.0))]
    Damaged(Name),
    /// A track has more than [`SAMPLES_MAX`] samples.
    #[error("it has more than 262144 frames")]
    TooManySamples,
}

/// A name as text. Bytes that are not printable ASCII become `?`.
pub fn text(name: &Name) -> String {
    let shown = |byte: &u8| if byte.is_ascii_graphic() || *byte == b' ' { char::from(*byte) } else { '?' };
    name.iter().map(shown).collect::<String>().trim_end().to_owned()
}
