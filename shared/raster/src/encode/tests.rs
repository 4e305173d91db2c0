use super::*;
use crate::decode::decode;
use crate::geometry::Size;
use crate::header::probe;
use crate::testing::*;

const FORMATS: [OutputFormat; 3] = [OutputFormat::Png, OutputFormat::Jpeg, OutputFormat::Webp];

fn read(bytes: &[u8]) -> Bitmap {
    decode(bytes).unwrap()
}

#[test]
fn every_format_writes_itself_in_its_size() {
    let image = photo(37, 21);
    for format in FORMATS {
        let header = probe(&written(&image, format, 85)).unwrap();
        assert_eq!((header.format, header.size()), (format.into(), image.size()));
    }
}

#[test]
fn the_same_image_gives_the_same_bytes() {
    let translucent = drawn(90, 70, Channels::Rgba, |x, y| [(x * 2) as u8, (y * 3) as u8, 40, (x + y) as u8]);
    for image in [photo(120, 90), translucent] {
        for format in FORMATS {
            let first = written(&image, format, 70);
            for _ in 0..3 {
                assert!(written(&image, format, 70) == first, "{format:?}");
            }
        }
    }
}

#[test]
fn quality_weighs_against_size() {
    let image = photo(200, 150);
    for format in [OutputFormat::Jpeg, OutputFormat::Webp] {
        let sizes: Vec<_> = [20, 60, 95].map(|quality| written(&image, format, quality).len()).into();
        assert!(sizes.is_sorted() && sizes[0] < sizes[2], "{format:?}: {sizes:?}");
        assert_eq!(written(&image, format, 0), written(&image, format, 1));
        assert_eq!(written(&image, format, 101), written(&image, format, 100));
        assert!(psnr(read(&written(&image, format, 95)).pixels(), image.pixels()) > 33.0);
    }
    assert_eq!(written(&image, OutputFormat::Png, 1), written(&image, OutputFormat::Png, 100));
}

#[test]
fn jpeg_is_four_two_zero_without_metadata() {
    let file = written(&photo(64, 64), OutputFormat::Jpeg, 85);
    assert_eq!(turbojpeg::read_header(&file).unwrap().subsamp, turbojpeg::Subsamp::Sub2x2);
    assert!(!file.windows(2).any(|pair| pair[0] == 0xff && (0xe1..=0xef).contains(&pair[1])));
}

#[test]
fn a_transparent_jpeg_is_flattened_on_an_opaque_background_or_on_white() {
    let clear = drawn(16, 16, Channels::Rgba, |_, _| [0; 4]);
    let center = |flatten| {
        let encoding = Encoding { format: OutputFormat::Jpeg, quality: 95, flatten };
        read(&encode(&clear, &encoding).unwrap()).pixel(8, 8).unwrap()
    };
    let red = center(Color { r: 254, g: 0, b: 0, a: 255 });
    assert!(red[0] > 245 && red[1] < 10 && red[2] < 10, "{red:?}");
    assert_eq!(center(Color { r: 254, g: 0, b: 0, a: 254 }), [255; 4]);
    assert_eq!(center(Color::TRANSPARENT), [255; 4]);
}

#[test]
fn an_idle_alpha_channel_is_not_written() {
    let opaque = photo(33, 20).into_rgba();
    for format in FORMATS {
        let image = read(&written(&opaque, format, 90));
        assert_eq!(image.channels(), Channels::Rgb, "{format:?}");
    }
    assert_eq!(written(&opaque, OutputFormat::Png, 90), written(&photo(33, 20), OutputFormat::Png, 90));
    assert_eq!(written(&opaque, OutputFormat::Jpeg, 90), written(&photo(33, 20), OutputFormat::Jpeg, 90));
}

#[test]
fn webp_refuses_a_side_of_16384_and_takes_one_less() {
    let strip = |width| Bitmap::filled(Size::new(width, 1), Channels::Rgb, Color::WHITE);
    let encoding = Encoding { format: OutputFormat::Webp, quality: 50, flatten: Color::WHITE };
    assert!(encode(&strip(16_383), &encoding).is_ok());
    assert!(matches!(encode(&strip(16_384), &encoding), Err(EncodeError::WebpSideTooLong)));
    assert!(encode(&strip(16_384), &Encoding { format: OutputFormat::Jpeg, ..encoding }).is_ok());
    assert!(encode(&strip(16_384), &Encoding { format: OutputFormat::Png, ..encoding }).is_ok());
}
