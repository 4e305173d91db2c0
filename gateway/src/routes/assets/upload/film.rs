//! Receives an MP4 file into the object store, and checks it by its boxes as they pass (docs/reference/assets.md#upload-of-a-video).
//!
//! Nothing is decoded. Memory is bounded by the index of the file, whatever its size.

use app::upload::{KeptOriginal, StoredFile};
use axum::body::Body;
use blob::BlobKey;
use db::blobs::PutFile;
use domain::asset::{MetadataClass, OriginalReason, UploadMetadata, VideoDetails};
use domain::limits::{FILM_BYTES_MAX, FILM_SECONDS_MAX, FILM_SIDE_MAX, FILM_TRACKS_MAX};
use domain::origin::Origin;
use domain::problem::ErrorDetails;
use film::private::{self, Private};
use film::{Codec, Kind, Movie, Scanner, Track};
use futures_util::StreamExt;
use raster::metadata;
use raster::xmp::{Properties, XmpReader, mp4_xmp_box};

use super::receive::{EMPTY, Stored, next};
use crate::clean::put_file;
use crate::problem::{Problem, Result};
use crate::state::App;

/// The media type of an upload that is a video.
pub const MEDIA_TYPE: &str = "video/mp4";

/// Receives a body with a rule for its private metadata, in the way of an image.
pub async fn receive(app: &App, body: Body, rule: UploadMetadata) -> Result<Stored> {
    let mut pieces = body.into_data_stream();
    let (mut scanner, mut xmp, mut size) = (Scanner::new(), XmpReader::default(), 0);
    // Foreign bytes are rejected before a row or an object is made for them.
    let mut held = Vec::new();
    while scanner.brands().is_none() {
        let Some(piece) = next(&mut pieces).await? else { break };
        scanner.stream(size, &piece).map_err(damaged)?;
        size += piece.len() as u64;
        held.push(piece);
    }
    if size == 0 {
        return Err(Problem::invalid("body", EMPTY));
    }
    if let Some((brand, _)) = scanner.brands() {
        require_brand(brand)?;
    }
    let key = BlobKey(db::blobs::stage_unknown(&mut *app.connection().await?).await?);
    let mut writer = app.blobs.writer(key);
    for piece in held {
        xmp.push(&piece);
        writer.write(&piece).await?;
    }
    while let Some(piece) = next(&mut pieces).await? {
        if size + piece.len() as u64 > FILM_BYTES_MAX {
            return Err(Problem::PayloadTooLarge(FILM_BYTES_MAX));
        }
        scanner.stream(size, &piece).map_err(damaged)?;
        xmp.push(&piece);
        writer.write(&piece).await?;
        size += piece.len() as u64;
    }
    let index = scanner.finish(size).map_err(damaged)?;
    let movie = Movie::read(&index).map_err(damaged)?;
    let film = Checked::new(&movie, size)?;
    let packet = xmp.finish().packet;
    let properties = packet.as_deref().map(Properties::parse).unwrap_or_default();
    let origin = Origin::from_file(&properties.digital_source_types);
    let found = match rule {
        UploadMetadata::Keep => None,
        UploadMetadata::Auto | UploadMetadata::Strip => examine(&index, &scanner, &movie, packet.as_deref())?,
    };
    let upload = put_file(key, &writer.finish().await?);
    let (file, metadata_removed, original) = match found {
        None => (upload, Vec::new(), None),
        Some((private, kept)) => {
            let removed = MetadataClass::named(private.classes().map(private::Class::as_str));
            let file = rewrite(app, key, &private, kept.filter(|_| !scanner.is_open())).await?;
            let original =
                KeptOriginal { file: upload, media_type: MEDIA_TYPE, reason: OriginalReason::PrivateMetadata };
            (file, removed, (rule == UploadMetadata::Auto).then_some(original))
        }
    };
    let details = VideoDetails { duration_ms: Some(film.milliseconds), has_audio: Some(film.has_audio), poster: None };
    let (width, height) = film.size;
    let file = StoredFile {
        file,
        media_type: MEDIA_TYPE,
        width,
        height,
        origin,
        metadata_removed,
        is_animated: false,
        original,
        video: Some(details),
    };
    Ok(Stored { file, extension: "mp4", upload })
}

/// What is private of a film, and the XMP packet that is left of its own.
fn examine(
    index: &[u8],
    scanner: &Scanner,
    movie: &Movie<'_>,
    packet: Option<&[u8]>,
) -> Result<Option<(Private, Option<Vec<u8>>)>> {
    let (classes, kept) = match packet {
        Some(packet) => metadata::examine_xmp(packet),
        None => (Vec::new(), None),
    };
    let class = |class: metadata::Class| match class {
        metadata::Class::Location => private::Class::Location,
        metadata::Class::Device => private::Class::Device,
        metadata::Class::Person => private::Class::Person,
        metadata::Class::Text => private::Class::Text,
        _ => private::Class::Other,
    };
    // A packet that was not read, because it is too large or a further one, counts as private.
    let packets = scanner.noted().iter().filter(|piece| piece.id == Some(private::XMP)).count();
    let unread = (packets > usize::from(packet.is_some())).then_some(private::Class::Other);
    let classes = classes.into_iter().map(class).chain(unread);
    let found = Private::examine(index, scanner.index_at(), scanner.noted(), movie, classes).map_err(damaged)?;
    Ok(found.map(|private| (private, kept)))
}

/// Stores the upload under `key` once more, without what is private, and with a packet at the end, where it moves nothing.
async fn rewrite(app: &App, key: BlobKey, private: &Private, packet: Option<Vec<u8>>) -> Result<PutFile> {
    let mut pieces = app.blobs.stream(key, None).await?.stream;
    let key = BlobKey(db::blobs::stage_unknown(&mut *app.connection().await?).await?);
    let (mut writer, mut at) = (app.blobs.writer(key), 0);
    while let Some(piece) = pieces.next().await.transpose()? {
        let mut piece = Vec::from(piece);
        private.apply(at, &mut piece);
        at += piece.len() as u64;
        writer.write(&piece).await?;
    }
    if let Some(packet) = packet {
        writer.write(&mp4_xmp_box(&packet)).await?;
    }
    Ok(put_file(key, &writer.finish().await?))
}

/// A film that may be stored.
#[derive(Debug, PartialEq)]
struct Checked {
    size: (u32, u32),
    milliseconds: i64,
    has_audio: bool,
}

impl Checked {
    /// Checks a film of `size` bytes by its index.
    fn new(movie: &Movie<'_>, size: u64) -> Result<Self> {
        let of = |kind| movie.tracks.iter().filter(move |track| track.kind == kind);
        let Some(video) = of(Kind::Video).next() else {
            return Err(foreign("audio", "the body has no video track"));
        };
        let sound = of(Kind::Sound).next();
        if movie.is_fragmented {
            return Err(foreign(
                "fragmented",
                "the video consists of fragments; an upload has one index for all of it",
            ));
        }
        if !matches!(video.codec, Codec::H264 | Codec::Av1) {
            return Err(foreign_codec("video", video));
        }
        if let Some(sound) = sound.filter(|sound| !matches!(sound.codec, Codec::Aac | Codec::Opus)) {
            return Err(foreign_codec("sound", sound));
        }
        let refuse = |message: String| Err(Problem::unprocessable("body", message));
        if movie.tracks.len() > FILM_TRACKS_MAX {
            return refuse(format!("the video has more than {FILM_TRACKS_MAX} tracks"));
        }
        for (kind, name) in [(Kind::Video, "video"), (Kind::Sound, "sound")] {
            if of(kind).count() > 1 {
                return refuse(format!("the video has more than one {name} track"));
            }
        }
        let (width, height) = video.size();
        if width == 0 || height == 0 {
            return refuse("the video has a side of zero pixels".to_owned());
        }
        if width.max(height) > FILM_SIDE_MAX {
            return refuse(format!("a side of the video has more than {FILM_SIDE_MAX} pixels"));
        }
        let samples = video.samples(movie.timescale).map_err(damaged)?;
        let heard = sound.map(|sound| sound.samples(movie.timescale)).transpose().map_err(damaged)?;
        let shown = samples.milliseconds().max(heard.map_or(0, |heard| heard.milliseconds()));
        // Headers round, and may leave out the last of the sound.
        let stated = movie.milliseconds().max(video.milliseconds());
        let milliseconds = if shown > stated.saturating_add(1000) { shown } else { stated };
        if milliseconds == 0 {
            return refuse("the video has no duration".to_owned());
        }
        if milliseconds > FILM_SECONDS_MAX * 1000 {
            return refuse(format!("the video lasts longer than {FILM_SECONDS_MAX} seconds"));
        }
        let is_within = |sample: &film::Sample| sample.offset.saturating_add(sample.size.into()) <= size;
        if samples.all().is_empty() || !samples.all().iter().all(is_within) {
            return refuse("the video is cut off".to_owned());
        }
        Ok(Self {
            size: (width.into(), height.into()),
            // At most ten minutes.
            milliseconds: milliseconds as i64,
            has_audio: sound.is_some(),
        })
    }
}

/// Refuses QuickTime, and images in the same form of file.
fn require_brand(brand: film::Name) -> Result<()> {
    match &brand {
        b"qt  " => Err(foreign("quicktime", "the body is a QuickTime film, not an MP4 file")),
        b"heic" | b"heix" | b"hevc" | b"hevx" | b"mif1" | b"msf1" | b"avif" | b"avis" => {
            Err(foreign(&film::text(&brand), "the body is an image, not an MP4 file"))
        }
        _ => Ok(()),
    }
}

fn foreign_codec(of: &str, track: &Track<'_>) -> Problem {
    let codec = track.codec.to_string();
    let message = format!("the codec of the {of} is {codec}; an upload has H.264 or AV1, with AAC, Opus or no sound");
    foreign(&codec.to_lowercase(), &message)
}

fn foreign(format: &str, message: &str) -> Problem {
    let details = ErrorDetails { format: Some(format.to_owned()), ..ErrorDetails::default() };
    Problem::UnsupportedFormat(message.to_owned(), Box::new(details))
}

/// The problem of a file that cannot be read.
fn damaged(error: film::Error) -> Problem {
    match error {
        film::Error::NotIsoMedia => foreign("unknown", "the body is not an MP4 file"),
        error => Problem::unprocessable("body", format!("the video cannot be read: {error}")),
    }
}
