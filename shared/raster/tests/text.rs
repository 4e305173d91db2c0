//! Compares rendered text with stored images that were inspected, one for each script.
//!
//! `UPDATE_GOLDEN=1 cargo test -p canvas-raster --test text` rewrites the images. Inspect each changed
//! one before you commit it. They apply to one architecture, because another one may round
//! differently.

use std::path::PathBuf;

use raster::text::{Align, Family, Ink, Stroke, Style, Weight, fill_rect, layout};
use raster::{Bitmap, Channels, Color, Encoding, OutputFormat, Size, decode, encode};

const PAPER: Color = Color { r: 250, g: 246, b: 236, a: 255 };
const INK: Color = Color { r: 30, g: 34, b: 60, a: 255 };
const SIZE: f64 = 36.0;
const MARGIN: f64 = 8.0;

fn style(family: Family, weight: Weight) -> Style {
    Style { family, weight, size: SIZE, line_height: 1.2, align: Align::Left }
}

/// Text on a plain background with a margin.
fn drawn(text: &str, style: &Style, max_width: Option<f64>, ink: &Ink) -> Bitmap {
    let set = layout(text, style, max_width);
    let side = |length: f64| (length + 2.0 * MARGIN).ceil() as u32;
    let size = Size::new(side(set.width()), side(set.height()));
    let paper = PAPER.rgb().repeat(size.pixels() as usize);
    let mut image = Bitmap::new(size, Channels::Rgb, paper).expect("a pixel a place");
    set.draw(&mut image, MARGIN, MARGIN, ink);
    image
}

fn plain() -> Ink {
    Ink { color: INK, stroke: None }
}

/// Compares with the stored image `name`, or stores it.
fn assert_golden(name: &str, image: &Bitmap) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(format!("{name}.png"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let encoding = Encoding { format: OutputFormat::Png, quality: 100, flatten: Color::WHITE };
        std::fs::write(&path, encode(image, &encoding).expect("encodes")).expect("is written");
        return;
    }
    let stored = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let stored = decode(&stored).expect("is whole");
    assert_eq!(stored.size(), image.size(), "{name}");
    let different = stored.pixels().iter().zip(image.pixels()).filter(|(stored, now)| stored != now).count();
    assert_eq!(different, 0, "samples of {name} differ from the stored image");
}

fn assert_script(name: &str, text: &str) {
    assert_golden(name, &drawn(text, &style(Family::Sans, Weight::Regular), None, &plain()));
}

#[test]
fn latin_in_every_style() {
    for (name, family) in [("sans", Family::Sans), ("serif", Family::Serif), ("mono", Family::Mono)] {
        for (suffix, weight) in [("regular", Weight::Regular), ("bold", Weight::Bold)] {
            let text = "office affluent AVA To\nÅngström žluťoučký e\u{301}o\u{308}\u{304}x\u{323}\u{302}";
            assert_golden(&format!("latin-{name}-{suffix}"), &drawn(text, &style(family, weight), None, &plain()));
        }
    }
}

#[test]
fn greek() {
    assert_script("greek", "Ξεσκεπάζω τὴν ψυχοφθόρα");
}

#[test]
fn cyrillic() {
    assert_script("cyrillic", "Съешь ещё мягких булок");
}

#[test]
fn arabic_joins_and_stacks() {
    assert_script("arabic", "السَّلَامُ عَلَيْكُمْ لا إله\nسنة ١٢٣ (2024)");
}

#[test]
fn hebrew_with_latin_and_digits() {
    assert_script("hebrew", "שָׁלוֹם עולם 123 ABC (סוף)");
}

#[test]
fn chinese_japanese_korean() {
    let text = "漢字，かな。カナ 한국어";
    assert_script("cjk", text);
    assert_golden("cjk-bold", &drawn(text, &style(Family::Serif, Weight::Bold), None, &plain()));
}

#[test]
fn indic_and_thai() {
    assert_script("indic", "क्षत्रिय हिन्दी বাংলা தமிழ்");
    assert_script("thai", "ภาษาไทยที่นี่");
}

#[test]
fn emoji_and_symbols() {
    assert_script("emoji", "😀👩🏽‍🚀🇩🇪❤\u{fe0f}1\u{fe0f}\u{20e3} ❤→✓★♪√");
}

#[test]
fn unknown_characters_are_boxes() {
    assert_script("unknown", "a\u{e000}\u{10ffff}\u{1}b 𒀀");
}

#[test]
fn wrapped_and_aligned() {
    for (name, align) in [("left", Align::Left), ("center", Align::Center), ("right", Align::Right)] {
        let style = Style { align, size: 24.0, line_height: 1.0, ..style(Family::Serif, Weight::Regular) };
        let text = "The quick brown fox jumps over a lazy dog, uncharacteristically.\nעברית בין English לבין عربي";
        assert_golden(&format!("wrapped-{name}"), &drawn(text, &style, Some(180.0), &plain()));
    }
}

#[test]
fn stroke_under_half_transparent_letters() {
    let orange = Color { r: 230, g: 120, b: 20, a: 255 };
    let ink = Ink { color: Color { a: 200, ..Color::WHITE }, stroke: Some(Stroke { color: orange, width: 6.0 }) };
    assert_golden("stroke", &drawn("Stroke سلام 漢 😀", &style(Family::Sans, Weight::Bold), None, &ink));
}

#[test]
fn letters_of_half_a_pixel_and_of_a_whole_image() {
    let tiny = Style { size: 7.5, ..style(Family::Sans, Weight::Regular) };
    assert_golden("tiny", &drawn("Small print is legible too: 0123456789", &tiny, None, &plain()));
    let mut image = Bitmap::new(Size::new(96, 96), Channels::Rgba, vec![0; 96 * 96 * 4]).expect("a pixel a place");
    fill_rect(&mut image, 8, 8, 80, 80, Color { r: 20, g: 120, b: 200, a: 90 });
    let large = Style { size: 200.0, ..style(Family::Serif, Weight::Bold) };
    layout("&", &large, None).draw(&mut image, -40.0, -70.0, &Ink { color: Color { a: 220, ..INK }, stroke: None });
    assert_golden("large", &image);
}
