use super::*;
use crate::bitmap::{Bitmap, Channels};
use crate::decode::decode;
use crate::header::HeaderError;
use crate::orientation::Orientation;
use crate::resize::{Bounds, Fit};
use crate::testing::*;

fn params(width: u32, height: impl Into<Option<u32>>) -> Resize {
    Resize::new(Bounds::new(Some(width), height.into()).unwrap())
}

fn read(bytes: &[u8]) -> Bitmap {
    decode(bytes).unwrap()
}

fn transparent() -> Bitmap {
    drawn(200, 100, Channels::Rgba, |x, y| [x as u8, y as u8, 0, (x + y) as u8])
}

#[test]
fn auto_follows_the_source_and_the_alpha_of_the_result() {
    let opaque = photo(200, 100);
    let jpeg_file = jpeg(&opaque, &Jpeg::default());
    let contain = Resize { fit: Fit::Contain, ..params(50, 50) };
    let format =
        |bytes: &[u8], resize: &Resize| transform_resize(bytes, resize, FormatChoice::Auto, 85).unwrap().format;
    assert_eq!(format(&jpeg_file, &params(50, None)), OutputFormat::Jpeg);
    assert_eq!(format(&jpeg_file, &contain), OutputFormat::Png, "transparent padding needs alpha");
    assert_eq!(format(&jpeg_file, &Resize { background: Color::WHITE, ..contain }), OutputFormat::Jpeg);
    assert_eq!(format(&jpeg_file, &Resize { fit: Fit::Contain, ..params(50, 25) }), OutputFormat::Jpeg);
    assert_eq!(format(&written(&opaque, OutputFormat::Webp, 80), &contain), OutputFormat::Webp);
    assert_eq!(format(&written(&opaque, OutputFormat::Png, 80), &params(50, None)), OutputFormat::Png);
    assert_eq!(format(&gif((9, 9), (0, 0, 9, 9), vec![0; 81], None), &params(5, None)), OutputFormat::Png);
}

#[test]
fn a_chosen_format_is_kept_and_jpeg_is_flattened() {
    let source = written(&transparent(), OutputFormat::Png, 80);
    let background = Color { r: 0, g: 0, b: 255, a: 255 };
    let resize = Resize { fit: Fit::Contain, background, ..params(100, 100) };
    let output = transform_resize(&source, &resize, FormatChoice::Jpeg, 90).unwrap();
    assert_eq!((output.format, output.width, output.height), (OutputFormat::Jpeg, 100, 100));
    let corner = read(&output.bytes).pixel(50, 5).unwrap();
    assert!(corner[0] < 12 && corner[2] > 240, "{corner:?}");
    let output = transform_resize(&source, &params(40, None), FormatChoice::Webp, 90).unwrap();
    assert_eq!((output.format, output.width, output.height), (OutputFormat::Webp, 40, 20));
    assert_eq!(read(&output.bytes).channels(), Channels::Rgba);
}

#[test]
fn every_orientation_is_resized_upright_also_from_a_reduced_decode() {
    let source = quarters(401, 203);
    let plain = jpeg(&source, &Jpeg::default());
    for value in 1..=8u16 {
        let upright = Orientation::from_exif(u32::from(value)).unwrap().apply(source.clone());
        let file = with_exif(&plain, value);
        for resize in [
            params(97, None),
            params(33, 33),
            Resize { fit: Fit::Contain, ..params(60, 80) },
            Resize { fit: Fit::Cover, ..params(90, 90) },
        ] {
            let output = transform_resize(&file, &resize, FormatChoice::Png, 85).unwrap();
            let expected = crate::resize::resize(&upright, &resize).unwrap();
            let result = read(&output.bytes);
            assert_eq!(result.size(), expected.size(), "orientation {value}, {resize:?}");
            let quality = psnr(result.flattened(Color::WHITE).pixels(), expected.flattened(Color::WHITE).pixels());
            assert!(quality > 27.0, "{quality} dB, orientation {value}, {resize:?}");
        }
    }
}

#[test]
fn reduced_decoding_keeps_the_quality_of_full_decoding() {
    let source = photo(1003, 751);
    let file = jpeg(&source, &Jpeg { quality: 92, subsamp: turbojpeg::Subsamp::Sub2x2, progressive: false });
    for width in [124, 120, 90, 62, 45, 31, 20] {
        let plan = resize::plan(Size::new(1003, 751), &params(width, None)).unwrap();
        assert!(crate::header::reduction(Size::new(1003, 751), plan.scaled()) > 1);
        let reduced = resize::decode_resized(&file, &plan, Color::WHITE).unwrap();
        let whole = resize::resize(&decode(&file).unwrap(), &params(width, None)).unwrap();
        let exact = resize::resize(&source, &params(width, None)).unwrap();
        let (reduced, whole) = (psnr(reduced.pixels(), exact.pixels()), psnr(whole.pixels(), exact.pixels()));
        assert!(reduced > 42.0, "{width}: reduced {reduced:.1} dB, whole {whole:.1} dB");
    }
}

/// Rings whose frequency grows from the center to one half of a cycle per pixel at the middle of each side.
fn zone_plate(side: u32) -> Bitmap {
    drawn(side, side, Channels::Rgb, |x, y| {
        let from_center = |at: u32| f64::from(at) + 0.5 - f64::from(side) / 2.0;
        let phase = std::f64::consts::PI * (from_center(x).powi(2) + from_center(y).powi(2)) / f64::from(side);
        [(127.5 + 127.5 * phase.cos()).round() as u8; 4]
    })
}

/// The standard deviation of the gray values of a reduced zone plate, where the source has more detail than it can hold.
fn value_range(reduced: &Bitmap, side: u32) -> f64 {
    let scale = f64::from(side) / f64::from(reduced.width());
    let mut values = Vec::new();
    for y in 0..reduced.height() {
        for x in 0..reduced.width() {
            let from_center = |at: u32| (f64::from(at) + 0.5) * scale - f64::from(side) / 2.0;
            let frequency = from_center(x).hypot(from_center(y)) / f64::from(side);
            if frequency > 0.65 / scale && frequency < 0.48 {
                values.push(f64::from(reduced.pixel(x, y).unwrap()[1]));
            }
        }
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64).sqrt()
}

#[test]
fn fine_patterns_of_a_jpeg_are_as_flat_as_those_of_a_png() {
    for side in [256, 384] {
        for subsamp in [turbojpeg::Subsamp::None, turbojpeg::Subsamp::Sub2x2, turbojpeg::Subsamp::Gray] {
            let file = jpeg(&zone_plate(side), &Jpeg { subsamp, ..Jpeg::default() });
            let same = written(&decode(&file).unwrap(), OutputFormat::Png, 85);
            for width in [side / 2, side * 3 / 8, side / 4, side / 5, side / 8, side / 16] {
                let reduced = |file: &[u8]| {
                    let output = transform_resize(file, &params(width, None), FormatChoice::Png, 85).unwrap();
                    value_range(&read(&output.bytes), side)
                };
                let (jpeg, png) = (reduced(&file), reduced(&same));
                assert!(jpeg <= 1.5 * png, "{side} to {width}, {subsamp:?}: {jpeg:.2} from JPEG, {png:.2} from PNG");
            }
        }
    }
    let file = jpeg(&zone_plate(256), &Jpeg::default());
    let same = written(&decode(&file).unwrap(), OutputFormat::Png, 85);
    for width in [128, 64] {
        let reduced = |file: &[u8]| value_range(&read(&rendition(file, width).unwrap().bytes), 256);
        assert!(reduced(&file) <= 1.5 * reduced(&same), "a rendition of width {width}");
    }
}

#[test]
fn the_limits_of_results_are_refused_before_decoding() {
    let mut file = jpeg(&photo(64, 64), &Jpeg::default());
    file.truncate(file.len() / 2);
    let error = transform_resize(&file, &params(16_385, None), FormatChoice::Auto, 85).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert_eq!(error.to_string(), "a side of the result would be longer than 16384 pixels");
    let error = transform_resize(&file, &params(16, None), FormatChoice::Auto, 85).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Image);
    let error = transform_resize(b"not a picture", &params(16, None), FormatChoice::Auto, 85).unwrap_err();
    assert!(matches!(error, Error::Decode(DecodeError::Header(HeaderError::UnknownFormat))));
    let strip = written(&photo(2, 1), OutputFormat::Webp, 80);
    let wide = Resize { fit: Fit::Fill, ..params(16_384, 1) };
    assert_eq!(transform_resize(&strip, &wide, FormatChoice::Auto, 85).unwrap_err().kind(), ErrorKind::Limit);
}

#[test]
fn a_rendition_is_no_wider_than_asked_and_never_enlarged() {
    let file = jpeg(&photo(1000, 601), &Jpeg::default());
    for (width, expected) in
        [(64, (64, 38)), (512, (512, 308)), (999, (999, 600)), (1000, (1000, 601)), (2048, (1000, 601))]
    {
        let output = rendition(&file, width).unwrap();
        assert_eq!((output.width, output.height), expected);
        assert_eq!(output.format, OutputFormat::Jpeg);
        assert_eq!(read(&output.bytes).size(), Size::new(expected.0, expected.1));
    }
    assert_eq!(rendition(&with_exif(&file, 6), 601).unwrap().width, 601);
}

#[test]
fn a_rendition_is_a_png_only_where_something_is_transparent() {
    assert_eq!(rendition(&written(&transparent(), OutputFormat::Png, 80), 64).unwrap().format, OutputFormat::Png);
    let idle = photo(40, 40).into_rgba();
    assert_eq!(rendition(&png_with(&idle, &[]), 64).unwrap().format, OutputFormat::Jpeg);
    assert_eq!(rendition(&written(&photo(40, 40), OutputFormat::Webp, 80), 64).unwrap().format, OutputFormat::Jpeg);
}

#[test]
fn the_longest_image_that_may_be_uploaded_has_a_rendition() {
    let tall = Bitmap::filled(Size::new(64, 30_000), Channels::Rgb, Color::WHITE);
    let output = rendition(&written(&tall, OutputFormat::Png, 80), 64).unwrap();
    assert_eq!((output.width, output.height), (64, 30_000));
    let wide = Bitmap::filled(Size::new(30_000, 1), Channels::Rgb, Color::WHITE);
    assert_eq!(rendition(&written(&wide, OutputFormat::Png, 80), 64).unwrap().height, 1);
}

#[test]
fn whole_jobs_give_the_same_bytes_every_time_and_on_every_thread() {
    let file = jpeg(&photo(640, 480), &Jpeg::default());
    let job = || transform_resize(&file, &params(200, None), FormatChoice::Auto, 85).unwrap();
    let first = job();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(job)).collect();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), first);
        }
    });
}
