//! Films: what their file says of them, and frames of them as pictures.
//!
//! **Guarantee.** A film is foreign. Its index is read here, by a parser with bounded memory ([`film`]); frames are decoded by a
//! decoder ([`decoder`]). A film that cannot be read is no error of the service. The same film gives the same picture.
//!
//! **Mechanism.** The index is read by ranges, wherever it is in the file. It tells which samples lead to a frame, and only those
//! are read.

use std::ops::Range;

use bytes::Bytes;
use decoder::{Made, Order, Refusal, Work};
use domain::limits::POSTER_SIDE;
use film::{Codec, Movie, Sample, Samples, Scanner, Track};
use futures_util::TryStreamExt;
use raster::{Bitmap, Bounds, Color, Encoding, OutputFormat, Resize, Size};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::decode::{header_of_made, refusal};
use crate::files::Content;
use crate::{Error, Worker};

/// The quality of a poster, which is a JPEG.
const POSTER_QUALITY: u8 = 82;

/// The bytes that are read at once while the index is searched.
const SEARCH_BYTES: u64 = 64 * 1024;

/// The number of reads of a file for its index, and for its samples. More would be a file that is made to cost time.
const READS_MAX: usize = 256;

/// The number of key frames that are tried as a start, nearest first.
const STARTS_MAX: usize = 16;

/// The bytes of samples that are read for one frame. It is seconds of the best quality, and minutes of the usual one.
const SAMPLES_BYTES_MAX: u64 = 128 << 20;

/// Samples with no more bytes between them than this, such as those of sound, are read at once.
const GAP_BYTES: u64 = 128 * 1024;

/// The bytes of samples that are read at once.
const RUN_BYTES: u64 = 8 << 20;

/// The bytes of a key frame that are read to see whether decoding can begin with it. What precedes its picture is short.
const HEAD_BYTES: u32 = 64 * 1024;

/// Bytes of a pixel of a picture that is made from a frame, for its copy and its file.
const PIXEL_BYTES: u64 = 8;

/// What a film is. Everything can be unknown.
#[derive(Clone, Debug, Default)]
pub struct Film {
    /// Width and height as displayed, in pixels.
    pub size: Option<(u16, u16)>,
    /// Duration in milliseconds.
    pub duration_ms: Option<u64>,
    /// `true` if it has sound.
    pub has_audio: Option<bool>,
    /// Its first frame, a JPEG of at most [`POSTER_SIDE`] pixels a side.
    pub poster: Option<Content>,
}

/// The frame of a film.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum At {
    /// The one that is shown first.
    First,
    /// The one that is shown last.
    Last,
    /// The one that is shown after this many seconds.
    Seconds(f64),
}

/// The index of a film, read from the store.
#[derive(Clone, Debug)]
pub struct Index {
    content: Bytes,
    /// Bytes of the whole file.
    size: u64,
}

impl Worker {
    /// Reads what a stored film is, and makes its poster in the name of `account`. What cannot be read is left out, and the log
    /// says why.
    ///
    /// # Errors
    ///
    /// If the store, the database or a decoder fails, or the film's blob was removed.
    pub async fn film(&self, account: &str, key: Uuid) -> Result<Film, Error> {
        let index = match self.film_index(key).await? {
            Ok(index) => index,
            Err(why) => {
                tracing::info!(%key, why, "a film cannot be read");
                return Ok(Film::default());
            }
        };
        let Ok(movie) = index.movie() else { return Ok(Film::default()) };
        let size = movie.video().map(Track::size).filter(|(width, height)| *width > 0 && *height > 0);
        let duration_ms = Some(movie.milliseconds()).filter(|duration| *duration > 0);
        let film = Film { size, duration_ms, has_audio: Some(movie.has_audio()), poster: None };
        let finish = |made: Vec<Vec<u8>>| {
            let made = made.into_iter().next().unwrap_or_default();
            header_of_made(&made).map(|_| Content::new(made))
        };
        match self.film_work(account, key, &index, At::First, |_| 0, Poster, finish).await? {
            Ok(poster) => Ok(Film { poster: Some(poster?), ..film }),
            Err(why) => {
                tracing::info!(%key, why, "a film has no poster");
                Ok(film)
            }
        }
    }

    /// Reads the index of a stored film. The inner error says why it has none that can be read, as a sentence about it.
    ///
    /// # Errors
    ///
    /// If the store or the database fails, or the film's blob was removed.
    pub async fn film_index(&self, key: Uuid) -> Result<Result<Index, String>, Error> {
        let (mut scanner, mut size) = (Scanner::new(), u64::MAX);
        for _ in 0..READS_MAX {
            let Some(wanted) = scanner.wants().filter(|wanted| wanted.start < size && !scanner.has_index()) else {
                break;
            };
            let end = wanted.end.max(wanted.start.saturating_add(SEARCH_BYTES));
            let part = self.part(key, wanted.start..end).await?.ok_or(Error::BlobGone)?;
            size = part.size;
            let (mut at, mut stream) = (part.range.start, part.stream);
            while let Some(piece) = stream.try_next().await? {
                if scanner.stream(at, &piece).is_err() {
                    break;
                }
                at += piece.len() as u64;
            }
        }
        Ok(scanner
            .finish(size)
            .and_then(|index| {
                let index = Index { content: index.into(), size };
                index.movie().map(drop)?;
                Ok(index)
            })
            .map_err(|error| error.to_string()))
    }

    /// Has a decoder do work that begins with a frame, whose files are those of [`Span::decode`], and passes what it made to `finish` on
    /// a thread for blocking work. `memory_bytes` is what the work needs for a frame of a number of pixels besides the frame itself.
    /// The inner error says why there is no frame, as a sentence about the film.
    ///
    /// # Errors
    ///
    /// If the store, the database or a decoder fails, or the film's blob was removed.
    #[expect(clippy::too_many_arguments, reason = "they are the parts of one order")]
    pub async fn film_work<W: Work + Send + 'static, T: Send + 'static>(
        &self,
        account: &str,
        key: Uuid,
        index: &Index,
        at: At,
        memory_bytes: impl FnOnce(u64) -> u64,
        work: impl FnOnce(Span) -> W,
        finish: impl FnOnce(Vec<Vec<u8>>) -> T + Send + 'static,
    ) -> Result<Result<T, String>, Error> {
        let plan = match index.plan(at) {
            Ok(plan) => plan,
            Err(why) => return Ok(Err(why)),
        };
        let read = match self.start(key, index, &plan).await?.and_then(|start| plan.needed(start)) {
            Ok(read) => read,
            Err(why) => return Ok(Err(why)),
        };
        let (span, pixels) = (Span { from: read.start, until: read.end }, plan.pixels);
        let read = &plan.samples.all()[read];
        // Here, twice while they are read, and in the decoder.
        let files = 3 * bytes_of(read) + 2 * index.content.len() as u64;
        let memory = files + frames::memory_bytes(pixels) + PIXEL_BYTES * pixels + memory_bytes(pixels);
        let memory = self.pixels.reserve(memory).await;
        let samples = match self.samples(key, read).await? {
            Ok(samples) => samples,
            Err(why) => return Ok(Err(why)),
        };
        let order = Order::new(account, work(span), vec![index.content.clone(), samples.into()]);
        memory.decode(order, |_, made| finish(made)).await
    }

    /// The nearest key frame with which decoding can begin. The inner error says that there is none.
    async fn start(&self, key: Uuid, index: &Index, plan: &Plan) -> Result<Result<usize, String>, Error> {
        for start in plan.samples.keys(plan.wanted).take(STARTS_MAX) {
            let sample = match plan.needed(start).map(|_| &plan.samples.all()[start]) {
                Ok(sample) => self.samples(key, &[Sample { size: sample.size.min(HEAD_BYTES), ..*sample }]).await?,
                Err(why) => Err(why),
            };
            match sample {
                Ok(sample) if index.is_start(&sample) => return Ok(Ok(start)),
                Ok(_) => {}
                Err(why) => return Ok(Err(why)),
            }
        }
        Ok(Err("its frame has no key frame".to_owned()))
    }

    /// Reads the bytes of samples, one after the other.
    async fn samples(&self, key: Uuid, samples: &[Sample]) -> Result<Result<Vec<u8>, String>, Error> {
        let runs: Vec<&[Sample]> = runs(samples).collect();
        if runs.len() > READS_MAX {
            return Ok(Err("its frames are scattered over the file".to_owned()));
        }
        let mut bytes = Vec::with_capacity(samples.iter().map(|sample| sample.size as usize).sum());
        for run in runs {
            let (Some(first), Some(last)) = (run.first(), run.last()) else { continue };
            let range = first.offset..last.offset + u64::from(last.size);
            if range.is_empty() {
                continue;
            }
            let part = self.part(key, range).await?.ok_or(Error::BlobGone)?;
            let read: Vec<Bytes> = part.stream.try_collect().await?;
            let read = read.concat();
            for sample in run {
                let from = (sample.offset - first.offset) as usize;
                let part = read.get(from..from + sample.size as usize);
                bytes.extend_from_slice(part.ok_or_else(|| Error::Engine("a stored file has shrunk".to_owned()))?);
            }
        }
        Ok(Ok(bytes))
    }
}

/// Parts of samples that are read at once: each begins after the end of the one before, without much between.
fn runs(samples: &[Sample]) -> impl Iterator<Item = &[Sample]> {
    let mut start = samples.first().map_or(0, |sample| sample.offset);
    samples.chunk_by(move |before, next| {
        let end = before.offset.saturating_add(before.size.into());
        let follows = next.offset >= end && next.offset - end <= GAP_BYTES;
        let fits = next.offset.saturating_add(next.size.into()).saturating_sub(start) <= RUN_BYTES;
        if !(follows && fits) {
            start = next.offset;
        }
        follows && fits
    })
}

impl Index {
    /// The content of the index.
    ///
    /// # Errors
    ///
    /// If it is damaged.
    fn movie(&self) -> Result<Movie<'_>, film::Error> {
        Movie::read(&self.content)
    }

    /// Finds the sample of a frame.
    fn plan(&self, at: At) -> Result<Plan, String> {
        let movie = self.movie().map_err(|error| error.to_string())?;
        let video = movie.video().ok_or("it has no pictures")?;
        if video.codec != Codec::H264 {
            return Err(format!("its codec is {}; only H.264 is built in", video.codec));
        }
        if movie.is_fragmented {
            return Err("it consists of fragments".to_owned());
        }
        let config = video.avc.ok_or("it has no parameters of H.264")?;
        let sequence = film::avc::Config::read(config).map_err(|error| error.to_string())?.sequence;
        if let Some(form) = sequence.unusual() {
            return Err(format!("its codec is H.264 {form}; only 8 bits, 4:2:0 and whole frames are built in"));
        }
        let samples = video.samples(movie.timescale).map_err(|error| error.to_string())?;
        let wanted = match at {
            At::First => samples.first().ok_or("it has no frames")?,
            At::Last => samples.last().ok_or("it has no frames")?,
            // Sound may last longer than the pictures, and then the last one is shown.
            At::Seconds(seconds) => samples
                .at(seconds)
                .or_else(|| samples.last().filter(|_| seconds * 1000.0 < movie.milliseconds() as f64))
                .ok_or_else(|| format!("it ends before {seconds} s"))?,
        };
        let (width, height) = sequence.coded;
        Ok(Plan { samples, wanted, pixels: u64::from(width) * u64::from(height), size: self.size })
    }

    /// Returns `true` if decoding can begin with a sample.
    fn is_start(&self, sample: &[u8]) -> bool {
        let movie = self.movie().ok();
        let config = movie.as_ref().and_then(Movie::video).and_then(|video| video.avc);
        config.and_then(|config| film::avc::Config::read(config).ok()).is_some_and(|config| config.is_start(sample))
    }
}

/// The sample of a frame.
struct Plan {
    samples: Samples,
    wanted: usize,
    /// Pixels of a frame.
    pixels: u64,
    /// Bytes of the whole file.
    size: u64,
}

impl Plan {
    /// The samples from a key frame to the wanted one. The error says why they cannot be read.
    fn needed(&self, start: usize) -> Result<Range<usize>, String> {
        let read = &self.samples.all()[start..=self.wanted];
        if read.iter().any(|sample| sample.offset.saturating_add(sample.size.into()) > self.size) {
            return Err("it is cut off".to_owned());
        }
        if bytes_of(read) > SAMPLES_BYTES_MAX {
            return Err("more than 128 MiB lie between its key frame and the frame".to_owned());
        }
        Ok(start..self.wanted + 1)
    }
}

fn bytes_of(samples: &[Sample]) -> u64 {
    samples.iter().map(|sample| u64::from(sample.size)).sum()
}

/// The samples that lead to a frame, by their indexes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Span {
    from: usize,
    until: usize,
}

impl Span {
    /// Decodes the frame, upright. The files are the index of the film, and its samples, one after the other. For decoders alone.
    ///
    /// # Errors
    ///
    /// [`Refusal`] if it cannot be decoded.
    pub fn decode(self, files: &[Bytes]) -> Result<Bitmap, Refusal> {
        let internal = |why: &str| Refusal::Internal(why.to_owned());
        let [index, bytes] = files else { return Err(internal("a frame is made of two files")) };
        let damaged = |error: film::Error| Refusal::Input(error.to_string());
        let movie = Movie::read(index).map_err(damaged)?;
        let video = movie.video().ok_or_else(|| internal("a film without pictures"))?;
        let config = video.avc.ok_or_else(|| internal("a film without parameters"))?;
        let samples = video.samples(movie.timescale).map_err(damaged)?;
        let samples = samples.all().get(self.from..self.until).ok_or_else(|| internal("there are no such samples"))?;
        let (mut split, mut rest) = (Vec::new(), &bytes[..]);
        for sample in samples {
            let (sample, after) =
                rest.split_at_checked(sample.size as usize).ok_or_else(|| internal("the samples are incomplete"))?;
            split.push(sample);
            rest = after;
        }
        let wanted = frames::Wanted { config, samples: &split, turn: video.turn, color: video.color };
        frames::decode(&wanted).map_err(|error| Refusal::Input(error.to_string()))
    }
}

/// Makes a poster, in a decoder.
#[derive(Serialize, Deserialize)]
pub(crate) struct Poster(Span);

impl Work for Poster {
    const NAME: &'static str = "poster";

    fn run(self, files: &[Bytes], _: &mut dyn FnMut(u32)) -> Made {
        let frame = self.0.decode(files)?;
        let Size { width, height } = frame.size();
        let frame = match Bounds::new(Some(POSTER_SIDE), Some(POSTER_SIDE)) {
            Some(bounds) if width.max(height) > POSTER_SIDE => {
                raster::resize(&frame, &Resize::new(bounds)).map_err(refusal)?
            }
            _ => frame,
        };
        let encoding = Encoding { format: OutputFormat::Jpeg, quality: POSTER_QUALITY, flatten: Color::WHITE };
        Ok(vec![raster::encode(&frame, &encoding).map_err(refusal)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REORDERED: &[u8] = include_bytes!("../../../tests/films/reordered.mp4");

    fn index(file: &[u8]) -> Index {
        let mut scanner = Scanner::new();
        scanner.stream(0, file).expect("is a film");
        let size = file.len() as u64;
        Index { content: scanner.finish(size).expect("is a film").into(), size }
    }

    /// What a decoder makes of a frame of a film.
    fn frame(file: &[u8], at: At) -> Result<Bitmap, String> {
        let index = index(file);
        let plan = index.plan(at)?;
        let bytes = |sample: &Sample| &file[sample.offset as usize..][..sample.size as usize];
        let is_start = |key: &usize| index.is_start(bytes(&plan.samples.all()[*key]));
        let read = plan.needed(plan.samples.keys(plan.wanted).find(is_start).expect("has a key frame"))?;
        let samples: Vec<u8> = plan.samples.all()[read.clone()].iter().flat_map(bytes).copied().collect();
        let span = Span { from: read.start, until: read.end };
        span.decode(&[index.content, samples.into()]).map_err(|refusal| format!("{refusal:?}"))
    }

    #[test]
    fn frames_are_found_and_decoded() {
        let at = |seconds| frame(REORDERED, At::Seconds(seconds)).expect("is decoded");
        let (first, last) = (frame(REORDERED, At::First), frame(REORDERED, At::Last));
        assert_eq!((first, last), (Ok(at(0.0)), Ok(at(1.1))));
        assert_eq!(at(0.5).size(), Size::new(96, 64));
        assert!(at(0.5) != at(0.6));
        let turned = frame(include_bytes!("../../../tests/films/turned.mp4"), At::First).expect("is decoded");
        assert_eq!(turned.size(), Size::new(64, 96));
    }

    #[test]
    fn what_cannot_be_decoded_says_why() {
        let film = |name: &str| -> &'static [u8] {
            match name {
                "av1" => include_bytes!("../../../tests/films/av1.mp4"),
                "hevc" => include_bytes!("../../../tests/films/hevc.mp4"),
                "ten-bits" => include_bytes!("../../../tests/films/ten-bits.mp4"),
                _ => include_bytes!("../../../tests/films/fragmented.mp4"),
            }
        };
        for (name, said) in [
            ("av1", "its codec is AV1; only H.264 is built in"),
            ("hevc", "its codec is HEVC; only H.264 is built in"),
            (
                "ten-bits",
                "its codec is H.264 with 10 bits per sample; only 8 bits, 4:2:0 and whole frames are built in",
            ),
            ("fragmented", "it consists of fragments"),
        ] {
            assert_eq!(frame(film(name), At::First), Err(said.to_owned()));
        }
        assert_eq!(frame(REORDERED, At::Seconds(1.2)), Err("it ends before 1.2 s".to_owned()));
        let cut_off = Index { size: 100, ..index(REORDERED) };
        let plan = cut_off.plan(At::First).expect("has a first frame");
        assert_eq!(plan.needed(0), Err("it is cut off".to_owned()));
    }

    #[test]
    fn samples_that_lie_near_each_other_are_read_at_once() {
        let sample = |offset, size| Sample { offset, size, shown: 0, is_key: true };
        let lengths = |samples: &[Sample]| runs(samples).map(<[Sample]>::len).collect::<Vec<_>>();
        assert!(lengths(&[]).is_empty());
        assert_eq!(lengths(&[sample(0, 10), sample(10, 10), sample(20 + GAP_BYTES, 1)]), [3]);
        assert_eq!(lengths(&[sample(0, 10), sample(11 + GAP_BYTES, 1)]), [1, 1]);
        assert_eq!(lengths(&[sample(10, 10), sample(0, 10)]), [1, 1], "backwards");
        let half = (RUN_BYTES / 2) as u32;
        let long: Vec<Sample> = (0..4).map(|number| sample(number * RUN_BYTES / 2, half)).collect();
        assert_eq!(lengths(&long), [2, 2]);
    }
}
