//! Fuzz targets: foreign bytes into every decoder and through every Action, and parameters into their parser.
//!
//! A target panics when a guarantee is violated. Run with seeded mutation on stable Rust (`tests/fuzz`, part of `tests/run --all`)
//! and with cargo-fuzz (`fuzz/fuzz_targets`).

use raster::crop::{Crop, CropPosition};
use raster::grade::{Grade, Preset};
use raster::overlay::{Blend, Overlay};
use raster::ratio::{ChangeRatio, Mode};
use raster::rotate::{Flip, Rotate};
use raster::side_by_side::{Direction, SideBySideOptions};
use raster::text::{Caption, Family, Weight};
use raster::{
    Anchor, Bounds, Channels, Color, ErrorKind, Finish, FormatChoice, HeaderReader, Output, PlanError, Resize, Size,
};

/// Larger images are left to the tests of limits: decoding them would leave no time for anything else.
const PIXELS_MAX: u64 = 1 << 20;

/// Header and decoder: the same header at once and byte by byte, and pixels of the size that it states, or an error.
pub fn decode(data: &[u8]) {
    let mut reader = HeaderReader::new();
    for byte in data {
        if reader.push(std::slice::from_ref(byte)).is_err() {
            break;
        }
    }
    let probed = raster::probe(data);
    assert_eq!(reader.finish(), probed, "one header, however it comes");
    let Ok(header) = probed else { return };
    if header.size().pixels() > PIXELS_MAX {
        return;
    }
    if let Ok(image) = raster::decode(data) {
        assert_eq!(image.size(), header.size());
        let count = if image.channels() == Channels::Rgb { 3 } else { 4 };
        assert_eq!(image.pixels().len() as u64, header.size().pixels() * count);
    }
}

/// AVIF and HEIF: one header however much of the file there is, or an error. It is not converted: rav1d aborts on some damaged files, which only
/// decoders may.
pub fn avif(data: &[u8]) {
    let any_codec = raster::avif::probe_heif(data);
    if let Ok(header) = &any_codec {
        assert!(raster::avif::xmp_of_heif(data, header).is_none_or(|packet| packet.len() <= data.len()));
    }
    let Ok(header) = raster::avif::probe(data) else { return };
    assert_eq!(any_codec.map(|header| header.pixels()), Ok(header.size.pixels()), "the same image");
    assert_eq!(raster::avif::probe(&[data, data].concat()).as_ref(), Ok(&header), "what follows does not matter");
    assert!(raster::avif::xmp(data, &header).is_none_or(|packet| packet.len() <= data.len()));
}

/// Every Action: the planned size, or an error, and agreement with the decoder about whether the file is valid.
pub fn transform(data: &[u8]) {
    let Ok(header) = raster::probe(data) else { return };
    let size = header.size();
    if size.pixels() > PIXELS_MAX {
        return;
    }
    let is_good = raster::decode(data).is_ok();
    let finish = Finish { choice: FormatChoice::Auto, quality: 60 };
    let own = raster::resize::check_output(size).map(|()| size);
    let judge = |action, planned, made| judge(action, is_good, planned, made);

    let half = Size::new(size.width.div_ceil(2), size.height.div_ceil(2));
    let place = CropPosition::At { x: i64::from(size.width) / 2, y: 0 };
    let crop = Crop { width: half.width.into(), height: half.height.into(), place, degrees: 0.0 };
    judge("crop", Ok(half), raster::crop::transform(data, &crop, finish));
    let turned = Crop { place: CropPosition::Anchored(raster::Anchor::Center), degrees: 7.0, ..crop };
    judge("turned crop", raster::crop::plan(size, &turned), raster::crop::transform(data, &turned, finish));

    let resize = Resize::new(Bounds::new(Some(size.width.div_ceil(3)), None).expect("not zero"));
    let planned = raster::resize::plan(size, &resize).map(|plan| plan.output());
    judge("resize", planned, raster::transform_resize(data, &resize, finish.choice, finish.quality));

    let ratio = ChangeRatio { ratio: (3, 2), mode: Mode::Blur, anchor: Anchor::Top, background: Color::WHITE };
    let planned = raster::ratio::plan(size, &ratio).map(|plan| plan.output);
    judge("change-aspect-ratio", planned, raster::ratio::transform(data, &ratio, finish));

    let rotate = Rotate { degrees: 33.0, expand: true, flip: Flip::None, background: Color::WHITE };
    judge("rotate", raster::rotate::plan(size, &rotate), raster::rotate::transform(data, &rotate, finish));

    let grade = Grade { saturation: 20.0, preset: Preset::Faded, ..Grade::NEUTRAL };
    judge("color-grade", own, raster::grade::transform(data, &grade, finish));

    judge("add-text-to-image", own, raster::text::add_text(data, &caption(), finish));

    let overlay = Overlay {
        anchor: Anchor::Center,
        offset: (-1, 2),
        scale: 70.0,
        opacity: 50.0,
        rotate: 33.0,
        blend: Blend::Multiply,
    };
    judge("overlay-image", own, raster::overlay::transform(data, data, &overlay, finish));

    let options = SideBySideOptions {
        direction: Direction::Horizontal,
        gap: 1,
        matches: true,
        align: raster::side_by_side::Align::Center,
        background: Color::WHITE,
    };
    let planned = raster::side_by_side::plan([size; 2], &options).map(|plan| plan.output);
    judge("side-by-side-composite", planned, raster::side_by_side::transform(data, data, &options, finish));
}

/// A result requires a valid file and has the planned size. A valid file has a result, unless it exceeds a limit.
fn judge(action: &str, is_good: bool, planned: Result<Size, PlanError>, made: Result<Output, raster::Error>) {
    match made {
        Ok(output) => {
            assert!(is_good, "{action} gave an image of a broken file");
            assert_eq!(planned, Ok(Size::new(output.width, output.height)), "{action}");
        }
        Err(error) => assert!(!is_good || error.kind() == ErrorKind::Limit, "{action} of a good file: {error}"),
    }
}

/// A caption that fits any image.
fn caption() -> Caption {
    Caption {
        text: "Aé 字".to_owned(),
        anchor: Anchor::Bottom,
        offset: (0, 0),
        family: Family::Sans,
        weight: Weight::Bold,
        size: 30.0,
        color: Color::WHITE,
        align: raster::text::Align::Center,
        max_width: 90.0,
        line_height: 1.2,
        stroke_color: Color::WHITE,
        stroke_width: 5.0,
        background: Color::TRANSPARENT,
        padding: 30.0,
    }
}

/// A film: the same index however the file comes, and samples that lead from a key frame to the one that is wanted.
pub fn film(data: &[u8]) {
    let (mut whole, mut pieces) = (film::Scanner::new(), film::Scanner::new());
    let read = whole.stream(0, data);
    let mut at = 0;
    for piece in data.chunks(7) {
        if pieces.stream(at, piece).is_err() {
            break;
        }
        at += piece.len() as u64;
    }
    let index = whole.finish(data.len() as u64);
    assert_eq!(index, pieces.finish(data.len() as u64), "one index, however it comes");
    assert!(read.is_ok() || index.is_err());
    let Ok(index) = index else { return };
    let Ok(movie) = film::Movie::read(&index) else { return };
    for track in &movie.tracks {
        if let Some(config) = track.avc.and_then(|config| film::avc::Config::read(config).ok()) {
            config.split(data);
        }
        let Ok(samples) = track.samples(movie.timescale) else { continue };
        for wanted in [samples.first(), samples.last(), samples.at(0.1)].into_iter().flatten() {
            assert!(samples.keys(wanted).all(|key| key <= wanted && samples.all()[key].is_key));
        }
    }
}

/// The parameters of every Action: normalization is idempotent, whatever the input.
pub fn params(data: &[u8]) {
    let Ok(serde_json::Value::Object(params)) = serde_json::from_slice(data) else { return };
    for action in actions::all() {
        match action.normalize(&params) {
            Ok(normal) => assert_eq!(action.normalize(&normal).as_ref(), Ok(&normal), "{}", action.slug),
            Err(violations) => {
                assert!(!violations.is_empty() && violations.iter().all(|wrong| wrong.field.starts_with("params.")));
            }
        }
    }
}
