use raster::{Bitmap, Channels, Color, Encoding, OutputFormat};
use serde_json::json;

use super::*;

const SOURCE: Source = Source { format: Format::Png, size: Size::new(40, 20), file_bytes: 1000 };

fn least(slug: &str) -> Value {
    match slug {
        "resize" => json!({"width": 2}),
        "crop" => json!({"width": 2, "height": 2}),
        "change-aspect-ratio" => json!({"ratio": "1:1"}),
        "rotate" => json!({"degrees": 12}),
        "add-text-to-image" => json!({"text": "x"}),
        _ => json!({}),
    }
}

/// The parameters that the gateway stores for a minimal request, with some of them changed.
fn stored(slug: &str, changed: Value) -> Map<String, Value> {
    let action = find(slug).expect("known");
    let mut params = action.normalize(least(slug).as_object().expect("an object")).expect("valid");
    params.extend(changed.as_object().expect("an object").clone());
    params
}

fn prepare(slug: &str, changed: Value, inputs: usize) -> Result<Prepared, NotUnderstood> {
    Prepared::new(slug, &stored(slug, changed), vec![SOURCE; inputs])
}

#[test]
fn every_action_of_the_catalogue_is_carried_out_on_as_many_inputs_as_it_declares() {
    for action in all() {
        let count = action.inputs.len();
        let prepared = prepare(&action.slug, json!({}), count).expect("is understood");
        assert!(prepared.memory_bytes() > 40 * 20 * 4, "{}", action.slug);
        for wrong in [0, 3 - count, 3] {
            assert!(
                matches!(prepare(&action.slug, json!({}), wrong), Err(NotUnderstood::Inputs(_))),
                "{}",
                action.slug
            );
        }
    }
}

#[test]
fn every_action_is_documented_in_the_order_of_the_list() {
    let reference = include_str!("../../../docs/reference/actions.md");
    let documented: Vec<&str> =
        reference.split("Slug `").skip(1).map(|rest| rest.split('`').next().expect("a name")).collect();
    assert_eq!(documented, ActionSlug::ALL.iter().map(|slug| slug.as_str()).collect::<Vec<_>>());
}

#[test]
fn a_stored_request_that_no_build_wrote_is_refused() {
    assert!(matches!(Prepared::new("melt", &Map::new(), vec![SOURCE]), Err(NotUnderstood::Action(_))));
    for action in all() {
        let inputs = vec![SOURCE; action.inputs.len()];
        let empty = Prepared::new(&action.slug, &Map::new(), inputs.clone());
        assert!(matches!(empty, Err(NotUnderstood::Params(_))), "{}", action.slug);
        // An option that does not exist. The engine also parses colors.
        for parameter in action.parameters.iter().filter(|parameter| parameter.default == Some(json!("auto"))) {
            let refused = prepare(&action.slug, json!({parameter.id.clone(): "gif"}), inputs.len());
            assert!(matches!(refused, Err(NotUnderstood::Params(_))), "{}", action.slug);
        }
    }
    assert!(matches!(prepare("resize", json!({"width": null}), 1), Err(NotUnderstood::Params(_))));
    assert!(matches!(prepare("resize", json!({"fit": "wide"}), 1), Err(NotUnderstood::Params(_))));
    assert!(matches!(prepare("change-aspect-ratio", json!({"ratio": "0:1"}), 1), Err(NotUnderstood::Params(_))));
}

#[test]
fn memory_grows_with_pixels_and_a_refused_result_takes_none_but_its_files() {
    let of = |size: Size, params: Value| {
        let inputs = [Source { size, ..SOURCE }];
        Prepared::new("resize", &stored("resize", params), inputs.to_vec()).expect("is understood").memory_bytes()
    };
    let fixed = FIXED_BYTES + 1000;
    let small = of(Size::new(100, 100), json!({})) - fixed;
    assert!(of(Size::new(1000, 1000), json!({})) - fixed >= 90 * small);
    assert_eq!(of(Size::new(1, 1000), json!({"width": 16_384})), 1000);
}

#[test]
fn the_default_memory_is_enough_for_sixteen_photographs_at_once() {
    let photograph = Source { format: Format::Jpeg, size: Size::new(4000, 3000), file_bytes: 4 << 20 };
    for (slug, changed) in [("resize", json!({"width": 1024})), ("crop", json!({})), ("color-grade", json!({}))] {
        let prepared = Prepared::new(slug, &stored(slug, changed), vec![photograph]).expect("is understood");
        assert!(16 * prepared.memory_bytes() <= 1024 << 20, "{slug}: {}", prepared.memory_bytes());
    }
}

#[test]
fn an_unusual_coding_or_orientation_needs_more_memory_than_is_assumed() {
    let (source, file) = waves(OutputFormat::Jpeg, Channels::Rgb);
    // An EXIF block after the start of the image that says: turn by 90°.
    let exif = *b"\xff\xe1\x00\x22Exif\0\0MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
    let turned = Bytes::from([&file[..2], &exif, &file[2..]].concat());
    for slug in ["crop", "color-grade", "rotate"] {
        let prepared = Prepared::new(slug, &stored(slug, json!({})), vec![source]).expect("is understood");
        let assumed = prepared.memory_bytes();
        assert_eq!(prepared.memory_bytes_of(std::slice::from_ref(&file)), assumed, "{slug}");
        assert!(prepared.memory_bytes_of(std::slice::from_ref(&turned)) > assumed, "{slug}");
        assert_eq!(prepared.memory_bytes_of(&[Bytes::from_static(b"no picture")]), source.file_bytes);
    }
}

#[test]
fn an_overlay_that_is_turned_is_scaled_as_a_whole() {
    let large = Source { format: Format::Png, size: Size::new(10_000, 10_000), file_bytes: 1000 };
    let base = Source { size: Size::new(2500, 10), ..SOURCE };
    let of = |rotate: i32| {
        let params = stored("overlay-image", json!({"scale": 400, "rotate": rotate}));
        Prepared::new("overlay-image", &params, vec![base, large]).expect("is understood").memory_bytes()
    };
    // Decoded, premultiplied, between the passes, and the result.
    assert!(of(10) >= 16 * large.size.pixels());
    assert_eq!(of(90), of(0));
}

/// Parameters that visibly change the image.
fn params_with_effect(slug: &str) -> Value {
    match slug {
        "resize" => json!({"width": 77, "height": 90, "fit": "contain", "background": "#80ff00"}),
        "crop" => json!({"width": 90, "height": 70, "x": 13, "y": 29}),
        "change-aspect-ratio" => json!({"ratio": "21:9", "mode": "blur"}),
        "side-by-side-composite" => json!({"direction": "vertical", "gap": 3, "background": "#102030"}),
        "add-text-to-image" => {
            json!({"text": "Zürich שלום 東京 🙂", "size": 15, "strokeWidth": 8, "background": "#00000088"})
        }
        "overlay-image" => json!({"anchor": "center", "scale": 60, "opacity": 70, "rotate": 33, "blend": "multiply"}),
        "color-grade" => json!({"exposure": 0.4, "vibrance": 50, "shadows": 30, "gamma": 1.2, "preset": "sepia"}),
        "rotate" => json!({"degrees": 12.5, "flip": "horizontal", "background": "#ffffff"}),
        "video-frame" => json!({"at": "last", "format": "webp", "quality": 40}),
        other => panic!("{other} has no parameters here"),
    }
}

/// A file with a wave pattern.
fn waves(format: OutputFormat, channels: Channels) -> (Source, Bytes) {
    let size = Size::new(230, 170);
    let wave = |x: u32, y: u32, c: usize| {
        let (x, y, c) = (f64::from(x), f64::from(y), c as f64);
        (127.0 + 70.0 * (x / (9.0 + 4.0 * c)).sin() + 50.0 * (y / (5.0 + 3.0 * c)).cos()) as u8
    };
    let pixels = (0..size.height)
        .flat_map(|y| (0..size.width).flat_map(move |x| (0..channels.count()).map(move |c| wave(x, y, c))));
    let image = Bitmap::new(size, channels, pixels.collect()).expect("as many as fit");
    let file = raster::encode(&image, &Encoding { format, quality: 90, flatten: Color::WHITE }).expect("encodes");
    (Source { format: format.into(), size, file_bytes: file.len() as u64 }, file.into())
}

#[test]
fn every_action_gives_the_same_bytes_on_however_many_threads() {
    // JPEG to JPEG is processed row by row, images with alpha as a whole.
    for (source, file) in [waves(OutputFormat::Jpeg, Channels::Rgb), waves(OutputFormat::Png, Channels::Rgba)] {
        for action in all() {
            let params =
                action.normalize(params_with_effect(&action.slug).as_object().expect("an object")).expect("valid");
            let (sources, files) = (vec![source; action.inputs.len()], vec![file.clone(); action.inputs.len()]);
            let job = || {
                Prepared::new(&action.slug, &params, sources.clone()).expect("is understood").run(&files).expect("runs")
            };
            let alone = job();
            assert_eq!(alone, job(), "{} again", action.slug);
            for threads in [2, 4] {
                std::thread::scope(|scope| {
                    let threads: Vec<_> = (0..threads).map(|_| scope.spawn(job)).collect();
                    for made in threads.into_iter().map(|thread| thread.join().expect("no panic")) {
                        assert!(made == alone, "{} of a {:?}, {} bytes", action.slug, source.format, made.bytes.len());
                    }
                });
            }
        }
    }
}
