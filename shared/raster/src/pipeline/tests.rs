use super::*;
use crate::decode::Decoded;
use crate::header::HeaderError;
use crate::orientation::Orientation;
use crate::picture::{Channels, Picture};
use crate::resize::{Bounds, Fit};
use crate::testing::*;

fn params(width: u32, height: impl Into<Option<u32>>) -> Resize {
    Resize::new(Bounds::new(Some(width), height.into()).unwrap())
}

fn read(bytes: &[u8]) -> Picture {
    decode(bytes, DecodeOptions::default()).map(Decoded::into_picture).unwrap()
}

fn transparent() -> Picture {
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
    for width in [501, 480, 300, 250, 180, 125, 90, 64] {
        let plan = resize::plan(Size::new(1003, 751), &params(width, None)).unwrap();
        let reduced = decode(&file, DecodeOptions { at_least: Some(plan.scaled()) }).unwrap();
        assert!(reduced.reduction() > 1);
        let reduced = resize::apply(&reduced, &plan, Color::WHITE);
        let whole = resize::apply(&decode(&file, DecodeOptions::default()).unwrap(), &plan, Color::WHITE);
        let exact = resize::resize(&source, &params(width, None)).unwrap();
        let (reduced, whole) = (psnr(reduced.pixels(), exact.pixels()), psnr(whole.pixels(), exact.pixels()));
        assert!(reduced > 42.0, "{width}: reduced {reduced:.1} dB, whole {whole:.1} dB");
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
    assert_eq!(error.kind(), ErrorKind::Picture);
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
fn the_longest_picture_that_may_be_uploaded_has_a_rendition() {
    let tall = Picture::filled(Size::new(64, 30_000), Channels::Rgb, Color::WHITE);
    let output = rendition(&written(&tall, OutputFormat::Png, 80), 64).unwrap();
    assert_eq!((output.width, output.height), (64, 30_000));
    let wide = Picture::filled(Size::new(30_000, 1), Channels::Rgb, Color::WHITE);
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
