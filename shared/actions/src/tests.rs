use raster::{Bitmap, Channels, Color, Encoding, ErrorKind, OutputFormat};
use serde_json::{Map, Value, json};

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

fn step(slug: &str, params: &Map<String, Value>) -> ActionStep {
    let version = find(slug).map_or("1.0.0", |action| &action.version).to_owned();
    ActionStep { slug: slug.to_owned(), version, params: params.clone() }
}

fn single(slug: &str, params: &Map<String, Value>, inputs: Vec<Source>) -> Result<Prepared, NotUnderstood> {
    Prepared::new(&[step(slug, params)], inputs)
}

fn prepare(slug: &str, changed: Value, inputs: usize) -> Result<Prepared, NotUnderstood> {
    single(slug, &stored(slug, changed), vec![SOURCE; inputs])
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
    assert!(matches!(single("melt", &Map::new(), vec![SOURCE]), Err(NotUnderstood::Action(_))));
    for action in all() {
        let inputs = vec![SOURCE; action.inputs.len()];
        let empty = single(&action.slug, &Map::new(), inputs.clone());
        assert!(matches!(empty, Err(NotUnderstood::Params(_))), "{}", action.slug);
        // An option that does not exist. The engine also parses colors.
        for parameter in action.parameters.iter().filter(|parameter| parameter.default == Some(json!("auto"))) {
            let refused = prepare(&action.slug, json!({parameter.id.clone(): "gif"}), inputs.len());
            assert!(matches!(refused, Err(NotUnderstood::Params(_))), "{}", action.slug);
        }
    }
    let resize = step("resize", &stored("resize", json!({})));
    let frame = step("video-frame", &stored("video-frame", json!({})));
    assert!(matches!(Prepared::new(&[], vec![SOURCE]), Err(NotUnderstood::Steps(0))));
    assert!(matches!(Prepared::new(&[resize.clone(), frame.clone()], vec![SOURCE]), Err(NotUnderstood::Steps(1))));
    assert!(Prepared::new(&[frame, resize], vec![SOURCE]).is_ok());
    assert!(matches!(prepare("resize", json!({"width": null}), 1), Err(NotUnderstood::Params(_))));
    assert!(matches!(prepare("resize", json!({"fit": "wide"}), 1), Err(NotUnderstood::Params(_))));
    assert!(matches!(prepare("change-aspect-ratio", json!({"ratio": "0:1"}), 1), Err(NotUnderstood::Params(_))));
}

#[test]
fn memory_grows_with_pixels_and_a_refused_result_takes_none_but_its_files() {
    let of = |size: Size, params: Value| {
        let inputs = [Source { size, ..SOURCE }];
        single("resize", &stored("resize", params), inputs.to_vec()).expect("is understood").memory_bytes()
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
        let prepared = single(slug, &stored(slug, changed), vec![photograph]).expect("is understood");
        assert!(16 * prepared.memory_bytes() <= 1024 << 20, "{slug}: {}", prepared.memory_bytes());
    }
}

#[test]
fn an_unusual_coding_or_orientation_needs_more_memory_than_is_assumed() {
    let (source, file) = waves(OutputFormat::Jpeg, Channels::Rgb);
    // An EXIF block after the start of the image that says: turn by 90°.
    let exif = *b"\xff\xe1\x00\x22Exif\0\0MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
    let turned = Bytes::from([&file[..2], &exif, &file[2..]].concat());
    let turned_crop = json!({"degrees": 9});
    for (slug, changed) in
        [("crop", json!({})), ("crop", turned_crop), ("color-grade", json!({})), ("rotate", json!({}))]
    {
        let prepared = single(slug, &stored(slug, changed), vec![source]).expect("is understood");
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
        single("overlay-image", &params, vec![base, large]).expect("is understood").memory_bytes()
    };
    // Decoded, premultiplied, between the passes, and the result.
    assert!(of(10) >= 16 * large.size.pixels());
    assert_eq!(of(90), of(0));
}

/// Parameters that visibly change the image.
fn params_with_effect(slug: &str) -> Value {
    match slug {
        "resize" => json!({"width": 77, "height": 90, "fit": "contain", "background": "#80ff00"}),
        "crop" => json!({"width": 90, "height": 70, "x": 33, "y": 49, "degrees": -17.5}),
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
            let job =
                || single(&action.slug, &params, sources.clone()).expect("is understood").run(&files).expect("runs");
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

/// A step that visibly changes the image, and leaves it large enough for every other step.
fn chained(slug: &str, format: &str, quality: u8) -> ActionStep {
    let action = find(slug).expect("known");
    let params = match slug {
        "crop" => json!({"width": 60, "height": 45, "anchor": "bottom-right"}),
        slug => params_with_effect(slug),
    };
    let mut params = action.normalize(params.as_object().expect("an object")).expect("valid");
    params.extend([("format".to_owned(), json!(format)), ("quality".to_owned(), json!(quality))]);
    step(slug, &params)
}

fn run_with(steps: &[ActionStep], files: &[(Source, Bytes)]) -> Output {
    let prepared = Prepared::new(steps, files.iter().map(|(source, _)| *source).collect()).expect("is understood");
    let estimate = prepared.estimate().expect("has a result");
    let files: Vec<Bytes> = files.iter().map(|(_, file)| file.clone()).collect();
    let output = prepared.run(&files).expect("runs");
    assert_eq!(Size::new(output.width, output.height), estimate.output, "the size is known before");
    output
}

fn file_of(output: Output) -> (Source, Bytes) {
    let size = Size::new(output.width, output.height);
    (Source { format: output.format.into(), size, file_bytes: output.bytes.len() as u64 }, output.bytes.into())
}

/// The Actions one after the other, with PNG between and the format of the last one at the end.
fn one_by_one(steps: &[ActionStep], files: &[(Source, Bytes)]) -> Output {
    let (mut image, mut second) = (files[0].clone(), 1);
    let mut made = None;
    for (index, step) in steps.iter().enumerate() {
        let mut step = step.clone();
        if index + 1 < steps.len() {
            step.params.insert("format".into(), "png".into());
        }
        let count = find(&step.slug).expect("known").inputs.len();
        let read: Vec<_> =
            [image.clone()].into_iter().chain(files[second..second + count - 1].iter().cloned()).collect();
        second += count - 1;
        let output = run_with(&[step], &read);
        image = file_of(output.clone());
        made = Some(output);
    }
    made.expect("has a step")
}

#[test]
fn actions_in_a_row_give_the_bytes_of_one_after_the_other() {
    let of_one = || all().iter().filter(|action| action.inputs.len() == 1 && action.medium == Medium::Image);
    let kinds = [
        waves(OutputFormat::Jpeg, Channels::Rgb),
        waves(OutputFormat::Png, Channels::Rgba),
        waves(OutputFormat::Webp, Channels::Rgb),
    ];
    for file in &kinds {
        for (first, second) in of_one().flat_map(|first| of_one().map(move |second| (first, second))) {
            for format in ["auto", "jpeg"] {
                // The format of the first step does not count.
                let steps = [chained(&first.slug, "jpeg", 10), chained(&second.slug, format, 80)];
                let files = std::slice::from_ref(file);
                let (chain, apart) = (run_with(&steps, files), one_by_one(&steps, files));
                assert!(chain == apart, "{} then {} of a {:?} as {format}", first.slug, second.slug, file.0.format);
            }
        }
    }
}

#[test]
fn a_turned_crop_in_a_row_gives_the_bytes_of_one_after_the_other() {
    let crop = |format: &str, degrees: f64| {
        let params = json!({"width": 61, "height": 44, "degrees": degrees, "format": format});
        step("crop", &stored("crop", params))
    };
    for file in [waves(OutputFormat::Jpeg, Channels::Rgb), waves(OutputFormat::Png, Channels::Rgba)] {
        for format in ["auto", "jpeg"] {
            for steps in [
                [crop(format, 31.0), chained("rotate", format, 80)],
                [chained("rotate", format, 80), crop(format, -31.0)],
                [step("crop", &stored("crop", json!({"width": 120, "height": 110, "degrees": 3}))), crop(format, 40.0)],
            ] {
                let files = std::slice::from_ref(&file);
                assert!(run_with(&steps, files) == one_by_one(&steps, files), "{steps:?} of a {:?}", file.0.format);
            }
        }
    }
}

#[test]
fn actions_in_a_row_read_second_images() {
    let [photo, logo, other] = [
        waves(OutputFormat::Jpeg, Channels::Rgb),
        waves(OutputFormat::Png, Channels::Rgba),
        waves(OutputFormat::Webp, Channels::Rgb),
    ];
    let files = [photo, logo, other];
    for last in ["rotate", "color-grade", "add-text-to-image"] {
        let steps = ["overlay-image", "resize", "side-by-side-composite", last].map(|slug| chained(slug, "auto", 85));
        let (chain, apart) = (run_with(&steps, &files), one_by_one(&steps, &files));
        assert!(chain == apart, "{last}");
        for inputs in [1, 2, 4] {
            let sources = vec![SOURCE; inputs];
            assert!(matches!(Prepared::new(&steps, sources), Err(NotUnderstood::Inputs(_))), "{inputs}");
        }
    }
}

#[test]
fn a_step_without_a_result_is_named_before_anything_is_decoded() {
    let (source, _) = waves(OutputFormat::Png, Channels::Rgb);
    let crop = |width: u32| step("crop", &stored("crop", json!({"width": width, "height": 10})));
    let steps = [crop(50), crop(60), crop(5)];
    let prepared = Prepared::new(&steps, vec![source]).expect("is understood");
    let unfit = prepared.estimate().expect_err("the second is larger than the first");
    assert_eq!((unfit.step, unfit.violation.field.as_str()), (1, "params.width"));
    assert_eq!(prepared.memory_bytes(), source.file_bytes);
    // Only the header is good.
    let (_, file) = waves(OutputFormat::Png, Channels::Rgb);
    let error = prepared.run(&[file.slice(..60)]).expect_err("fails");
    assert_eq!((error.step, error.error.kind()), (1, ErrorKind::Limit));
    let damaged = Prepared::new(&[crop(50), crop(5)], vec![source]).expect("is understood").run(&[file.slice(..60)]);
    let damaged = damaged.expect_err("fails");
    assert_eq!((damaged.step, damaged.error.kind()), (0, ErrorKind::Image));
}

#[test]
fn steps_take_the_memory_of_the_largest_and_the_time_of_all() {
    let large = Source { format: Format::Jpeg, size: Size::new(4000, 3000), file_bytes: 1 << 20 };
    let grow = step("resize", &stored("resize", json!({"width": 8000})));
    let shrink = step("resize", &stored("resize", json!({"width": 100})));
    let of = |steps: &[ActionStep]| Prepared::new(steps, vec![large]).expect("is understood");
    let (single, chain) = (of(std::slice::from_ref(&grow)), of(&[grow.clone(), shrink.clone(), shrink.clone()]));
    assert!(chain.memory_bytes() >= single.memory_bytes().max(8 * 8000 * 6000));
    assert!(chain.memory_bytes() < 2 * single.memory_bytes());
    let seconds = |prepared: &Prepared| prepared.estimate().expect("has a result").seconds;
    // 48 megapixels that are made and not written.
    assert_eq!(
        (seconds(&of(std::slice::from_ref(&shrink))), seconds(&of(&[grow, shrink.clone()])), seconds(&single)),
        (1, 1, 4)
    );
}

/// FNV-1a of 64 bits.
fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[test]
fn a_crop_that_is_not_turned_has_the_bytes_of_version_1_0_0() {
    // Digests of the files that version 1.0.0 wrote.
    for (format, channels, golden) in [
        (OutputFormat::Png, Channels::Rgb, 5_249_436_111_669_122_066),
        (OutputFormat::Png, Channels::Rgba, 1_887_120_909_470_402_745),
        (OutputFormat::Jpeg, Channels::Rgb, 14_459_542_046_751_086_571),
        (OutputFormat::Webp, Channels::Rgb, 9_676_996_319_988_069_747),
    ] {
        let (source, file) = waves(format, channels);
        let old =
            json!({"width": 90, "height": 70, "x": 13, "y": 29, "anchor": "center", "format": "auto", "quality": 85});
        for degrees in [None, Some(json!(0)), Some(json!(0.0)), Some(json!(-0.0))] {
            let mut params = old.as_object().expect("an object").clone();
            params.extend(degrees.map(|degrees| ("degrees".to_owned(), degrees)));
            let prepared = single("crop", &params, vec![source]).expect("is understood");
            let made = prepared.run(std::slice::from_ref(&file)).expect("runs");
            assert_eq!(digest(&made.bytes), golden, "{format:?} {channels:?} {:?}", params.get("degrees"));
        }
    }
}

#[test]
fn a_rectangle_that_is_turned_too_far_is_refused_by_its_degrees() {
    let fault = |params: Value| {
        let prepared = single("crop", &stored("crop", params), vec![SOURCE]).expect("is understood");
        prepared.estimate().err().map(|unfit| unfit.violation.field)
    };
    let named = |field: &str| Some(format!("params.{field}"));
    assert_eq!(fault(json!({"width": 10, "height": 10, "degrees": 45})), None);
    assert_eq!(fault(json!({"width": 38, "height": 18, "degrees": 1})), None);
    assert_eq!(fault(json!({"width": 38, "height": 18, "degrees": 9})), named("degrees"));
    assert_eq!(fault(json!({"width": 41, "height": 1, "degrees": 9})), named("width"));
    assert_eq!(fault(json!({"width": 1, "height": 21, "degrees": 9})), named("height"));
    assert_eq!(fault(json!({"width": 9, "height": 9, "x": 32, "y": 0, "degrees": 9})), named("x"));
    assert_eq!(fault(json!({"width": 9, "height": 9, "x": 0, "y": -1, "degrees": 9})), named("y"));
    assert_eq!(fault(json!({"width": 9, "height": 9, "x": 0, "y": 0, "degrees": 9})), named("degrees"));
}
