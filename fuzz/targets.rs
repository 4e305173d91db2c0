//! What is fuzzed: foreign bytes into every decoder and through every Action, and parameters into their parser.
//!
//! A target panics when a guarantee is broken. Driven by seeded mutation on stable Rust (`tests/fuzz`, part of `tests/run`) and by
//! cargo-fuzz (`fuzz/fuzz_targets`).

use raster::crop::{Crop, Place};
use raster::grade::Grade;
use raster::rotate::{Flip, Rotate};
use raster::{Bounds, Channels, Color, DecodeOptions, Finish, FormatChoice, HeaderReader, Resize};

/// Larger pictures are left to the tests of limits: decoding them would leave no time for anything else.
const PIXELS_MAX: u64 = 1 << 20;

/// Header and decoder: the same header at once and byte by byte, and pixels of the size that it says, or an error.
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
    if let Ok(decoded) = raster::decode(data, DecodeOptions::default()) {
        let picture = decoded.into_picture();
        assert_eq!(picture.size(), header.size());
        let count = if picture.channels() == Channels::Rgb { 3 } else { 4 };
        assert_eq!(picture.pixels().len() as u64, header.size().pixels() * count);
    }
}

/// A few Actions: the planned size, or an error, and the same answer as the decoder about whether the file is good.
pub fn transform(data: &[u8]) {
    let Ok(header) = raster::probe(data) else { return };
    let size = header.size();
    if size.pixels() > PIXELS_MAX {
        return;
    }
    let is_good = raster::decode(data, DecodeOptions::default()).is_ok();
    let finish = Finish { choice: FormatChoice::Auto, quality: 60 };
    let (width, height) = (i64::from(size.width.div_ceil(2)), i64::from(size.height.div_ceil(2)));
    let crop = Crop { width, height, place: Place::At { x: i64::from(size.width) / 2, y: 0 } };
    let cropped = raster::crop::transform(data, &crop, finish);
    assert_eq!(cropped.is_ok(), is_good, "a part is refused for what the whole is: {cropped:?}");
    if let Ok(output) = cropped {
        assert_eq!((i64::from(output.width), i64::from(output.height)), (width, height));
    }
    let resize = Resize::new(Bounds::new(Some(size.width.div_ceil(3)), None).expect("not zero"));
    let _ = raster::transform_resize(data, &resize, finish.choice, finish.quality);
    let rotate = Rotate { degrees: 33.0, expand: true, flip: Flip::None, background: Color::WHITE };
    if let Ok(output) = raster::rotate::transform(data, &rotate, finish) {
        assert_eq!(
            raster::rotate::plan(size, &rotate).map(|size| (size.width, size.height)),
            Ok((output.width, output.height))
        );
    }
    let _ = raster::grade::transform(data, &Grade { saturation: 20.0, ..Grade::NEUTRAL }, finish);
}

/// The parameters of every Action: what is normalized is normal, whatever came in.
pub fn params(data: &[u8]) {
    let Ok(serde_json::Value::Object(params)) = serde_json::from_slice(data) else { return };
    for action in domain::action::all() {
        match action.normalize(&params) {
            Ok(normal) => assert_eq!(action.normalize(&normal).as_ref(), Ok(&normal), "{}", action.slug),
            Err(violations) => {
                assert!(!violations.is_empty() && violations.iter().all(|wrong| wrong.field.starts_with("params.")));
            }
        }
    }
}
