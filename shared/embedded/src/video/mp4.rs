//! Writes an MP4 file with one video track (ISO/IEC 14496-12, the ISO base media file format;
//! 14496-14, MP4; 14496-15, H.264 in MP4).
//!
//! **Guarantee.** The index (`moov`) precedes the data (`mdat`), so that playback can begin before
//! the file is complete. Every box has version 0; a comment names the section that defines it. The
//! file contains no timestamps, so equal input gives equal files.
//!
//! **Mechanism.** Samples are collected in one chunk. The size of the index does not depend on the
//! offset of the data, so the index is written twice: the first time to measure it.
//!
//! **Reason.** A single silent track needs only these boxes. A library for the whole format is
//! fifty times as large.

use raster::Size;

/// Duration of a frame in ticks of the track's time scale. Any frame rate gives a whole number of
/// ticks.
const FRAME_TICKS: u32 = 512;

/// Ticks per second of the movie's time scale.
const MOVIE_TICKS: u32 = 1000;

/// The id of the only track.
const TRACK: u32 = 1;

/// The identity matrix (14496-12, 8.2.2.3). The last column has the fixed-point format 2.30, the
/// others 16.16.
const UPRIGHT: [u32; 9] = [1 << 16, 0, 0, 0, 1 << 16, 0, 0, 0, 1 << 30];

/// 72 pixels per inch in 16.16, the only permitted value (14496-12, 12.1.3).
const RESOLUTION: u32 = 72 << 16;

/// A track under construction.
pub struct Track {
    size: Size,
    frames_per_second: u32,
    data: Vec<u8>,
    /// The size of each sample in bytes.
    samples: Vec<u32>,
    /// The numbers of the key frames, from 1.
    keys: Vec<u32>,
    sequence_parameters: Vec<u8>,
    picture_parameters: Vec<u8>,
}

/// A sample (one coded frame) under construction from NAL units.
pub struct Sample<'a> {
    track: &'a mut Track,
    start: usize,
    is_key: bool,
}

impl<'a> Sample<'a> {
    /// Starts a new sample at the end of `track`. `is_key` marks a sample that can be decoded
    /// without the previous ones.
    pub fn new(track: &'a mut Track, is_key: bool) -> Self {
        let start = track.data.len();
        Self { track, start, is_key }
    }

    /// Stores the sequence parameter set, without its start code, in the index. Repetitions are
    /// ignored.
    pub fn set_sequence_parameters(&mut self, unit: &[u8]) {
        keep(&mut self.track.sequence_parameters, unit);
    }

    /// Stores the picture parameter set likewise.
    pub fn set_picture_parameters(&mut self, unit: &[u8]) {
        keep(&mut self.track.picture_parameters, unit);
    }

    /// Adds a NAL unit without its start code, preceded by its length in four bytes (14496-15,
    /// 5.3.3).
    pub fn push(&mut self, unit: &[u8]) {
        self.track.data.extend(size_of(unit.len()).to_be_bytes());
        self.track.data.extend_from_slice(unit);
    }

    /// Ends the sample. Returns `false` if nothing was added to it; then the track has no new
    /// sample.
    pub fn finish(self) -> bool {
        let length = self.track.data.len() - self.start;
        if length == 0 {
            return false;
        }
        self.track.samples.push(size_of(length));
        if self.is_key {
            self.track.keys.push(size_of(self.track.samples.len()));
        }
        true
    }
}

fn keep(kept: &mut Vec<u8>, unit: &[u8]) {
    if kept.is_empty() {
        kept.extend_from_slice(unit);
    }
    debug_assert_eq!(kept, unit, "the parameters hold for the whole track");
}

/// A count or length of data in memory, far below the limit of 4 GiB in boxes of version 0.
fn size_of(length: usize) -> u32 {
    u32::try_from(length).expect("a file of less than 4 GiB")
}

impl Track {
    /// Creates an empty track.
    pub fn new(size: Size, frames_per_second: u32) -> Self {
        Self {
            size,
            frames_per_second,
            data: Vec::new(),
            samples: Vec::new(),
            keys: Vec::new(),
            sequence_parameters: Vec::new(),
            picture_parameters: Vec::new(),
        }
    }

    /// The total size of all samples so far in bytes.
    pub fn bytes(&self) -> u64 {
        self.data.len() as u64
    }

    /// The complete file, or `None` without samples or parameter sets.
    pub fn into_file(self) -> Option<Vec<u8>> {
        if self.samples.is_empty() || self.sequence_parameters.len() < 4 || self.picture_parameters.is_empty() {
            return None;
        }
        // 4.3: minor version 0x200 of the brand `isom`; `avc1` permits 14496-15, and `mp41` stands
        // for 14496-14.
        let mut file = boxed(b"ftyp", |b| {
            b.extend(b"isom");
            b.extend(512_u32.to_be_bytes());
            b.extend(b"isomiso2avc1mp41");
        });
        let header = file.len() + self.index(0).len() + DATA_HEADER;
        file.reserve_exact(self.index(0).len() + DATA_HEADER + self.data.len());
        file.extend(self.index(size_of(header)));
        file.extend(size_of(DATA_HEADER + self.data.len()).to_be_bytes());
        file.extend(b"mdat");
        file.extend(self.data);
        Some(file)
    }

    /// `moov` (8.2.1), for data that begins at offset `data` of the file.
    fn index(&self, data: u32) -> Vec<u8> {
        let frames = size_of(self.samples.len());
        let movie_duration =
            u32::try_from(u64::from(frames) * u64::from(MOVIE_TICKS) / u64::from(self.frames_per_second))
                .expect("a video of less than 49 days");
        boxed(b"moov", |moov| {
            // 8.2.2: `mvhd`.
            moov.extend(full_box(b"mvhd", 0, |b| {
                words(b, &[0, 0, MOVIE_TICKS, movie_duration, 1 << 16]);
                // Volume 1.0 in 8.8, and reserved bytes.
                b.extend([1, 0]);
                b.extend([0; 10]);
                words(b, &UPRIGHT);
                b.extend([0; 24]);
                words(b, &[TRACK + 1]);
            }));
            moov.extend(boxed(b"trak", |trak| {
                // 8.3.2: `tkhd`. Flags: enabled, used in the movie and in its preview.
                trak.extend(full_box(b"tkhd", 7, |b| {
                    words(b, &[0, 0, TRACK, 0, movie_duration, 0, 0]);
                    // Layer, alternate group, volume, reserved bytes.
                    b.extend([0; 8]);
                    words(b, &UPRIGHT);
                    words(b, &[self.size.width << 16, self.size.height << 16]);
                }));
                trak.extend(self.media(frames, data));
            }));
        })
    }

    /// `mdia` (8.4.1).
    fn media(&self, frames: u32, data: u32) -> Vec<u8> {
        boxed(b"mdia", |mdia| {
            // 8.4.2: `mdhd` with the language `und`, three letters of five bits each.
            mdia.extend(full_box(b"mdhd", 0, |b| {
                words(b, &[0, 0, self.frames_per_second * FRAME_TICKS, frames * FRAME_TICKS, 0x55c4 << 16]);
            }));
            // 8.4.3: `hdlr`.
            mdia.extend(full_box(b"hdlr", 0, |b| {
                words(b, &[0]);
                b.extend(b"vide");
                b.extend([0; 12]);
                b.extend(b"video\0");
            }));
            mdia.extend(boxed(b"minf", |minf| {
                // 12.1.2: `vmhd`; its flags are 1 by definition.
                minf.extend(full_box(b"vmhd", 1, |b| b.extend([0; 8])));
                // 8.7.1 and 8.7.2: `dinf` and `dref`; the flag says that the data is in this file.
                minf.extend(boxed(b"dinf", |dinf| {
                    dinf.extend(full_box(b"dref", 0, |b| {
                        words(b, &[1]);
                        b.extend(full_box(b"url ", 1, |_| {}));
                    }));
                }));
                minf.extend(self.table(frames, data));
            }));
        })
    }

    /// `stbl` (8.5.1).
    fn table(&self, frames: u32, data: u32) -> Vec<u8> {
        boxed(b"stbl", |stbl| {
            // 8.5.2: `stsd`.
            stbl.extend(full_box(b"stsd", 0, |b| {
                words(b, &[1]);
                b.extend(self.description());
            }));
            // 8.6.1.2: `stts`; all frames have the same duration.
            stbl.extend(full_box(b"stts", 0, |b| words(b, &[1, frames, FRAME_TICKS])));
            // 8.6.2: `stss`.
            stbl.extend(full_box(b"stss", 0, |b| {
                words(b, &[size_of(self.keys.len())]);
                words(b, &self.keys);
            }));
            // 8.7.4: `stsc`; the first chunk contains all samples.
            stbl.extend(full_box(b"stsc", 0, |b| words(b, &[1, 1, frames, 1])));
            // 8.7.3.2: `stsz`.
            stbl.extend(full_box(b"stsz", 0, |b| {
                words(b, &[0, frames]);
                words(b, &self.samples);
            }));
            // 8.7.5: `stco`.
            stbl.extend(full_box(b"stco", 0, |b| words(b, &[1, data])));
        })
    }

    /// `avc1` (14496-12, 12.1.3; 14496-15, 5.4.2.1).
    fn description(&self) -> Vec<u8> {
        let side = |side: u32| u16::try_from(side).expect("the encoder takes sides of less than 4000").to_be_bytes();
        boxed(b"avc1", |b| {
            // Reserved bytes and data reference 1.
            b.extend([0, 0, 0, 0, 0, 0, 0, 1]);
            b.extend([0; 16]);
            b.extend(side(self.size.width));
            b.extend(side(self.size.height));
            words(b, &[RESOLUTION, RESOLUTION, 0]);
            // One frame per sample, no compressor name, 24 bits per pixel, no color table.
            b.extend([0, 1]);
            b.extend([0; 32]);
            b.extend([0, 24, 0xff, 0xff]);
            // 14496-15, 5.3.3.1: version 1; profile, compatibility and level as in the parameter
            // set; lengths of four bytes.
            b.extend(boxed(b"avcC", |b| {
                let set = |b: &mut Vec<u8>, count: u8, unit: &[u8]| {
                    b.push(count);
                    b.extend(u16::try_from(unit.len()).expect("parameter sets are short").to_be_bytes());
                    b.extend_from_slice(unit);
                };
                b.push(1);
                b.extend_from_slice(&self.sequence_parameters[1..4]);
                b.push(0xff);
                set(b, 0xe0 | 1, &self.sequence_parameters);
                set(b, 1, &self.picture_parameters);
            }));
            // 12.1.5: BT.709 primaries, transfer and matrix; limited range (ITU-T H.273).
            b.extend(boxed(b"colr", |b| {
                b.extend(b"nclx");
                b.extend([0, 1, 0, 1, 0, 1, 0]);
            }));
        })
    }
}

/// The size of the header of `mdat` (8.1.1).
const DATA_HEADER: usize = 8;

/// A box (4.2): its size, its type, and the payload that `fill` writes.
fn boxed(kind: &[u8; 4], fill: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = vec![0; 4];
    bytes.extend(kind);
    fill(&mut bytes);
    let size = size_of(bytes.len()).to_be_bytes();
    bytes[..4].copy_from_slice(&size);
    bytes
}

/// A full box (4.2) of version 0 with flags.
fn full_box(kind: &[u8; 4], flags: u32, fill: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    boxed(kind, |bytes| {
        words(bytes, &[flags]);
        fill(bytes);
    })
}

fn words(bytes: &mut Vec<u8>, words: &[u32]) {
    bytes.extend(words.iter().flat_map(|word| word.to_be_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn track() -> Track {
        let mut track = Track::new(Size::new(64, 48), 24);
        for (index, is_key) in [true, false, true].into_iter().enumerate() {
            let mut sample = Sample::new(&mut track, is_key);
            sample.set_sequence_parameters(&[0x67, 66, 0xc0, 31, 9]);
            sample.set_picture_parameters(&[0x68, 7]);
            sample.push(&vec![0x65; index + 1]);
            assert!(sample.finish());
        }
        track
    }

    /// The types and payloads of consecutive boxes.
    fn boxes(mut bytes: &[u8]) -> Vec<(&[u8], &[u8])> {
        let mut found = Vec::new();
        while !bytes.is_empty() {
            let size = u32::from_be_bytes(bytes[..4].try_into().unwrap()) as usize;
            found.push((&bytes[4..8], &bytes[8..size]));
            bytes = &bytes[size..];
        }
        found
    }

    #[test]
    fn the_index_stands_before_the_data_and_points_at_it() {
        let file = track().into_file().unwrap();
        let kinds: Vec<&[u8]> = boxes(&file).into_iter().map(|(kind, _)| kind).collect();
        assert_eq!(kinds, [b"ftyp", b"moov", b"mdat"]);
        let at = file.windows(4).position(|four| four == b"stco").unwrap();
        let start = u32::from_be_bytes(file[at + 12..at + 16].try_into().unwrap()) as usize;
        assert_eq!(file[start..], [0, 0, 0, 1, 0x65, 0, 0, 0, 2, 0x65, 0x65, 0, 0, 0, 3, 0x65, 0x65, 0x65]);
    }

    #[test]
    fn a_track_without_images_or_parameters_is_no_file() {
        assert!(Track::new(Size::new(2, 2), 24).into_file().is_none());
        let mut track = Track::new(Size::new(2, 2), 24);
        let mut sample = Sample::new(&mut track, true);
        sample.push(&[0x65]);
        assert!(sample.finish());
        assert!(track.into_file().is_none());
    }

    #[test]
    fn an_empty_sample_is_none() {
        let mut track = Track::new(Size::new(2, 2), 24);
        assert!(!Sample::new(&mut track, true).finish());
        assert!(track.samples.is_empty() && track.keys.is_empty());
    }
}
