use std::alloc::{GlobalAlloc, Layout as Request, System};
use std::cell::Cell;

use super::*;
use crate::testing::*;

const FOX: &str =
    "A red fox crossing fresh snow at first light. Low sun from the left, long blue shadows, breath in the air.";

/// The sizes that the catalog offers, and the smallest and largest sizes that frames are designed
/// for.
const SIZES: [(u32, u32); 9] = [
    (1024, 1024),
    (1536, 1024),
    (1024, 1536),
    (1920, 1080),
    (1080, 1920),
    (256, 256),
    (2048, 2048),
    (2048, 256),
    (256, 2048),
];

const ROLES: [Role; 5] = [Role::Identity, Role::Construction, Role::Texture, Role::Fit, Role::Style];

fn brief<'a>(prompt: &'a str, size: (u32, u32), references: &'a [Reference<'a>]) -> Brief<'a> {
    Brief {
        prompt,
        size: Size::new(size.0, size.1),
        references,
        model: "sketch",
        operation: Operation::Generate,
        output: 0,
        outputs: 1,
    }
}

fn drawn_frame(brief: &Brief<'_>) -> Bitmap {
    let image = frame(brief).unwrap();
    assert_eq!((image.size(), image.channels()), (brief.size, Channels::Rgb));
    image
}

/// The fraction of pixels that differ.
fn difference(one: &Bitmap, other: &Bitmap) -> f64 {
    let differing =
        one.pixels().chunks_exact(3).zip(other.pixels().chunks_exact(3)).filter(|(one, other)| one != other);
    differing.count() as f64 / one.size().pixels() as f64
}

fn files(count: u32) -> Vec<Vec<u8>> {
    (0..count).map(|index| png(&photo(60 + 25 * (index % 5), 120 - 20 * (index % 4)))).collect()
}

#[test]
fn the_same_brief_gives_the_same_bytes() {
    let files = files(3);
    let references: Vec<Reference<'_>> =
        files.iter().zip(ROLES).map(|(bytes, role)| Reference { bytes, role: Some(role) }).collect();
    for references in [&references[..], &[]] {
        let brief = brief(FOX, (512, 384), references);
        let first = draw(&brief).unwrap();
        assert_eq!(first, draw(&brief).unwrap());
        let elsewhere = std::thread::scope(|scope| scope.spawn(|| draw(&brief).unwrap()).join().unwrap());
        assert_eq!(first, elsewhere);
        let decoded = raster::decode(&first).unwrap();
        assert_eq!(decoded, drawn_frame(&brief));
    }
}

#[test]
fn every_size_is_filled_with_none_to_sixteen_references() {
    let files = files(16);
    for size in SIZES {
        for count in [0, 1, 2, 5, 16] {
            let references: Vec<Reference<'_>> =
                (files[..count].iter().zip([None].into_iter().chain(ROLES.map(Some)).cycle()))
                    .map(|(bytes, role)| Reference { bytes, role })
                    .collect();
            let image = drawn_frame(&brief(FOX, size, &references));
            let ground = image.pixel(0, 0);
            // Nothing is drawn on the edge, and the stage takes its share of the frame.
            let (right, bottom) = (size.0 - 1, size.1 - 1);
            assert!((0..size.0).all(|x| image.pixel(x, 0) == ground && image.pixel(x, bottom) == ground), "{size:?}");
            assert!((0..size.1).all(|y| image.pixel(0, y) == ground && image.pixel(right, y) == ground), "{size:?}");
            let blank = image
                .pixels()
                .chunks_exact(3)
                .filter(|pixel| Some(&[pixel[0], pixel[1], pixel[2], 255]) == ground.as_ref());
            let share = blank.count() as f64 / image.size().pixels() as f64;
            assert!(share < 0.75, "{size:?} with {count}: {share} is blank");
        }
    }
}

#[test]
fn tiny_frames_are_drawn_and_impossible_ones_refused() {
    for size in [(1, 1), (1, 40), (40, 1), (17, 23), (100, 100)] {
        drawn_frame(&brief(FOX, size, &[]));
        let file = png(&photo(9, 9));
        drawn_frame(&brief(FOX, size, &[Reference { bytes: &file, role: None }]));
    }
    let refused = |size| draw(&brief(FOX, size, &[])).unwrap_err();
    assert!(matches!(refused((0, 9)), Error::Plan(PlanError::EmptySource)));
    assert!(matches!(refused((16_385, 9)), Error::Plan(PlanError::SideTooLong)));
}

#[test]
fn outputs_of_a_job_are_told_apart() {
    let file = png(&quarters(200, 160));
    for references in [&[][..], &[Reference { bytes: &file, role: None }]] {
        let outputs: Vec<Bitmap> = (0..4)
            .map(|output| drawn_frame(&Brief { output, outputs: 4, ..brief(FOX, (600, 400), references) }))
            .collect();
        for (index, one) in outputs.iter().enumerate() {
            for other in &outputs[..index] {
                assert!(difference(one, other) > 0.4);
            }
        }
    }
}

#[test]
fn prompt_references_roles_and_captions_are_seen() {
    let file = png(&photo(200, 160));
    let reference = Reference { bytes: &file, role: Some(Role::Identity) };
    let references = [reference, Reference { role: None, ..reference }];
    let plain = brief(FOX, (800, 600), &references);
    let first = drawn_frame(&plain);
    let roled = |role| [reference, Reference { role: Some(role), ..reference }];
    for role in ROLES {
        let references = roled(role);
        assert!(difference(&first, &drawn_frame(&Brief { references: &references, ..plain })) > 0.0005, "{role:?}");
    }
    for other in [
        Brief { prompt: "Something else", ..plain },
        Brief { model: "other", ..plain },
        Brief { operation: Operation::Edit, ..plain },
        Brief { outputs: 2, ..plain },
        Brief { references: &references[..1], ..plain },
    ] {
        let changed = difference(&first, &drawn_frame(&other));
        assert!(changed > 0.0, "{changed}: {other:?}");
    }
    let other = difference(&drawn_frame(&brief(FOX, (400, 400), &[])), &drawn_frame(&brief("A boat", (400, 400), &[])));
    assert!(other > 0.3, "a composition of its own: {other}");
}

#[test]
fn a_reference_that_cannot_be_read_is_named() {
    let good = png(&photo(20, 20));
    let cut = &good[..good.len() - 30];
    for (bad, number) in [(&b"<html>"[..], 2), (cut, 2), (&[], 2)] {
        let references = [&good[..], bad].map(|bytes| Reference { bytes, role: Some(Role::Style) });
        let error = draw(&brief(FOX, (300, 300), &references)).unwrap_err();
        assert!(matches!(&error, Error::Reference { number: named, .. } if *named == number), "{error:?}");
        assert_eq!(error.to_string(), "reference 2 cannot be read");
    }
}

#[test]
fn extreme_images_are_shown_whole() {
    let red = |width, height| png(&drawn(width, height, Channels::Rgb, |_, _| [220, 30, 20, 255]));
    for file in [red(3000, 2), red(2, 3000), red(1, 1)] {
        let references = [Reference { bytes: &file, role: Some(Role::Fit) }];
        for size in [(500, 500), (900, 300), (300, 900)] {
            let image = drawn_frame(&brief(FOX, size, &references));
            assert!(image.pixels().chunks_exact(3).any(|pixel| pixel == [220, 30, 20]), "{size:?}");
        }
    }
}

#[test]
fn transparent_images_lie_on_a_matte() {
    let free = drawn(80, 80, Channels::Rgba, |x, y| {
        if (20..60).contains(&x) && (20..60).contains(&y) { [10, 60, 200, 255] } else { [0; 4] }
    });
    let file = png(&free);
    let references = [Reference { bytes: &file, role: None }];
    let image = drawn_frame(&brief("", (400, 400), &references));
    let black = image.pixels().chunks_exact(3).filter(|pixel| *pixel == [0, 0, 0]).count();
    assert_eq!(black, 0, "nothing of what is transparent is seen");
    assert!(image.pixels().chunks_exact(3).filter(|pixel| *pixel == [10, 60, 200]).count() > 1000);
}

/// Prompts whose text is difficult to keep in a box.
fn hostile() -> Vec<String> {
    vec![
        "雨上がりの京都の路地".repeat(400),
        "ثعلب أحمر يعبر الثلج عند الفجر، والضوء منخفض. ".repeat(170),
        "x".repeat(8000),
        "﷽".repeat(300),
        format!("a{}", "\u{300}\u{321}".repeat(1000)),
        "👩‍👩‍👧‍👦🏳️‍🌈".repeat(100),
        "\u{202e}reversed\u{2066}isolated ".repeat(200),
        "\u{0}\u{1b}[31m\u{7f}\u{feff}\u{200b}".repeat(50),
        "word\n".repeat(1600),
        "עברית ואנגלית English together 123 ".repeat(100),
    ]
}

#[test]
fn text_of_any_script_stays_inside_its_box() {
    const GROUND: Color = Color { r: 200, g: 210, b: 220, a: 255 };
    for text in hostile() {
        for (face, size) in [(block::HEADLINE, 40.0), (block::BODY, 14.0)] {
            let mut image = Bitmap::filled(Size::new(500, 400), Channels::Rgb, GROUND);
            let Some(block) = Block::fitted(&text, face, &[2.0 * size, size], 300.0, 200.0) else {
                panic!("{text:.20}")
            };
            assert!(block.height() <= 200.0 && block.text_width() <= 300.5, "{text:.20}");
            block.draw(&mut image, 100.0, 100.0, Color { r: 0, g: 0, b: 0, a: 255 });
            let slack = (0.5 * size).ceil() as u32 + 1;
            for (index, pixel) in image.pixels().chunks_exact(3).enumerate() {
                let (x, y) = (index as u32 % 500, index as u32 / 500);
                let inside = (100 - slack..400 + slack).contains(&x) && (100 - slack..300 + slack).contains(&y);
                assert!(inside || pixel == GROUND.rgb(), "{text:.20} at {x}, {y}");
            }
        }
    }
}

#[test]
fn hostile_prompts_are_drawn_at_every_size() {
    for prompt in hostile() {
        for size in [(1024, 1024), (256, 256), (700, 256), (256, 700)] {
            drawn_frame(&brief(&prompt, size, &[]));
        }
    }
}

#[test]
fn right_to_left_text_stands_at_the_right() {
    let ink_at = |text: &str| {
        let mut image = Bitmap::filled(Size::new(400, 60), Channels::Rgb, Color::WHITE);
        Block::new(text, block::BODY, 20.0, 380.0, 1).draw(&mut image, 10.0, 10.0, Color { r: 0, g: 0, b: 0, a: 255 });
        let dark = image.pixels().chunks_exact(3).enumerate().filter(|(_, pixel)| pixel[0] < 128);
        let columns: Vec<usize> = dark.map(|(index, _)| index % 400).collect();
        (columns.iter().copied().min().unwrap(), columns.iter().copied().max().unwrap())
    };
    assert!(ink_at("ثعلب أحمر").0 > 250);
    assert!(ink_at("שועל אדום").1 > 380);
    assert!(ink_at("red fox").1 < 150);
}

#[test]
fn the_memory_estimate_holds() {
    let large = png(&photo(3000, 2000));
    let free = png(&drawn(1500, 1500, Channels::Rgba, |x, y| [x as u8, y as u8, 9, (x ^ y) as u8]));
    let long = "Everything there is to say about it. ".repeat(216);
    for size in [(1024, 1024), (2048, 2048), (256, 256)] {
        for files in [&[][..], &[&large], &[&large, &free, &free]] {
            let references: Vec<Reference<'_>> = files.iter().map(|bytes| Reference { bytes, role: None }).collect();
            let sources: Vec<Source> = files
                .iter()
                .map(|bytes| {
                    let header = probe(bytes).unwrap();
                    Source { format: header.format, size: header.size(), file_bytes: bytes.len() as u64 }
                })
                .collect();
            let brief = brief(&long, size, &references);
            // Fonts are parsed once per process, so that is done before the measurement.
            draw(&Brief { size: Size::new(64, 64), ..brief }).unwrap();
            let peak = peak_of(|| draw(&brief).unwrap());
            let held: u64 = sources.iter().map(|source| source.file_bytes).sum();
            let estimate = memory_bytes(brief.size, &sources);
            assert!(peak + held <= estimate, "{size:?} with {}: {peak} and {held} over {estimate}", files.len());
        }
    }
}

/// An allocator that counts the memory that a thread holds.
struct Counting;

thread_local! {
    static HELD: Cell<(i64, i64)> = const { Cell::new((0, 0)) };
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn count(bytes: i64) {
    // The counter no longer exists while a thread ends.
    let _ = HELD.try_with(|held| {
        let now = held.get().0 + bytes;
        held.set((now, held.get().1.max(now)));
    });
}

// SAFETY: all calls are forwarded to the system allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, request: Request) -> *mut u8 {
        count(request.size() as i64);
        // SAFETY: guaranteed by the caller.
        unsafe { System.alloc(request) }
    }

    unsafe fn dealloc(&self, at: *mut u8, request: Request) {
        count(-(request.size() as i64));
        // SAFETY: guaranteed by the caller.
        unsafe { System.dealloc(at, request) }
    }
}

/// The peak memory of `work` in bytes, beyond what was held before.
fn peak_of<T>(work: impl FnOnce() -> T) -> u64 {
    let before = HELD.get().0;
    HELD.set((before, before));
    drop(work());
    HELD.get().1.abs_diff(before)
}
