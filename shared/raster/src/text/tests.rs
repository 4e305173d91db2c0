//! Tests of text layout and drawing that do not depend on exact pixels. Those are tested in
//! `tests/text.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::fonts::Cascade;
use super::outline::{Placed, REACH_EM};
use super::shape::{Glyph, Line, Paragraph};
use super::*;
use crate::bitmap::{Bitmap, Channels};
use crate::color::Color;
use crate::geometry::{Anchor, Size};
use crate::pipeline::Finish;
use crate::testing::{photo, written};
use crate::{FormatChoice, OutputFormat, decode};

const BLACK: Color = Color { r: 0, g: 0, b: 0, a: 255 };

fn style(size: f64) -> Style {
    Style { family: Family::Sans, weight: Weight::Regular, size, line_height: 1.2, align: Align::Left }
}

fn caption(text: &str) -> Caption {
    Caption {
        text: text.into(),
        anchor: Anchor::Bottom,
        offset: (0, 0),
        family: Family::Sans,
        weight: Weight::Bold,
        size: 10.0,
        color: BLACK,
        align: Align::Center,
        max_width: 90.0,
        line_height: 1.2,
        stroke_color: BLACK,
        stroke_width: 0.0,
        background: Color::TRANSPARENT,
        padding: 30.0,
    }
}

fn white(width: u32, height: u32) -> Bitmap {
    Bitmap::filled(Size::new(width, height), Channels::Rgb, Color::WHITE)
}

/// The bounding box of all pixels that are not white: left, top, right and bottom; the last two are
/// exclusive.
fn inked(image: &Bitmap) -> Option<(i64, i64, i64, i64)> {
    let mut found: Option<(i64, i64, i64, i64)> = None;
    for y in 0..image.height() {
        for x in 0..image.width() {
            if image.pixel(x, y) != Some([255; 4]) {
                let (x, y) = (i64::from(x), i64::from(y));
                let (left, top, right, bottom) = found.unwrap_or((x, y, x + 1, y + 1));
                found = Some((left.min(x), top.min(y), right.max(x + 1), bottom.max(y + 1)));
            }
        }
    }
    found
}

/// The font of each cluster of a text: the name of its family, and whether the font contains the
/// cluster.
fn choices(text: &str, family: Family) -> Vec<(&'static str, bool)> {
    let cascade = Cascade::new(family, Weight::Regular);
    let names: BTreeMap<*const u8, &str> = fonts().map(|font| (font.bytes.as_ptr(), font.name)).collect();
    let line = Paragraph::new(text, None, &cascade).line(0..text.len());
    let mut glyphs: Vec<&Glyph> = line.glyphs.iter().collect();
    glyphs.sort_by_key(|glyph| glyph.cluster);
    let name = |glyph: &Glyph| names[&glyph.face.tables.data().as_bytes().as_ptr()];
    glyphs.iter().map(|glyph| (name(glyph), glyph.id.to_u32() != 0)).collect()
}

#[test]
fn every_bundled_font_is_whole_and_bears_its_name() {
    use skrifa::MetadataProvider;
    use skrifa::string::StringId;
    let mut total = 0;
    for font in fonts() {
        let tables = skrifa::FontRef::new(font.bytes).expect("a font");
        let names: Vec<String> =
            tables.localized_strings(StringId::FAMILY_NAME).map(|name| name.chars().collect()).collect();
        assert!(names.contains(&font.name.to_owned()), "{} is {names:?}", font.name);
        let bold = tables.attributes().weight.value() >= 600.0;
        assert_eq!(bold, font.weight == Weight::Bold, "{}", font.name);
        total += font.bytes.len();
    }
    assert!(total < 25 << 20, "{total} bytes");
    for weight in [Weight::Regular, Weight::Bold] {
        for family in [Family::Sans, Family::Serif, Family::Mono] {
            assert!(Cascade::new(family, weight).primary().ascent > 0.5);
        }
    }
}

#[test]
fn every_glyph_of_every_font_can_be_drawn_and_stays_within_reach() {
    let mut furthest: f64 = 0.0;
    for (family, weight) in
        [(Family::Sans, Weight::Regular), (Family::Serif, Weight::Bold), (Family::Mono, Weight::Bold)]
    {
        for face in Cascade::new(family, weight).faces() {
            let count = skrifa::raw::TableProvider::maxp(&face.tables).expect("a font").num_glyphs();
            for id in 0..count {
                let glyph = Glyph { face, id: skrifa::GlyphId::from(id), x: 0.0, y: 0.0, advance: 0.0, cluster: 0 };
                let placed = Placed { glyph: &glyph, x: 0.0, y: 0.0, size: 1.0 };
                let mut shape = coverage::Shape::default();
                placed.fill(&mut shape);
                placed.layers().iter().for_each(|layer| placed.fill_layer(layer, &mut shape));
                furthest = furthest.max(shape.reach());
            }
        }
    }
    assert!(furthest < REACH_EM, "{furthest} em");
}

#[test]
fn each_script_finds_its_font() {
    for (text, name) in [
        ("Aé", "Noto Sans"),
        ("Ω", "Noto Sans"),
        ("Ж", "Noto Sans"),
        ("س", "Noto Sans Arabic"),
        ("ש", "Noto Sans Hebrew"),
        // The name of each script in itself, with its joined forms.
        ("Հայերեն", "Noto Sans Armenian"),
        ("ქართული", "Noto Sans Georgian"),
        ("አማርኛ", "Noto Sans Ethiopic"),
        ("हिन्दी", "Noto Sans Devanagari"),
        ("বাংলা", "Noto Sans Bengali"),
        ("ਪੰਜਾਬੀ", "Noto Sans Gurmukhi"),
        ("ગુજરાતી", "Noto Sans Gujarati"),
        ("ଓଡ଼ିଆ", "Noto Sans Oriya"),
        ("தமிழ்", "Noto Sans Tamil"),
        ("తెలుగు", "Noto Sans Telugu"),
        ("ಕನ್ನಡ", "Noto Sans Kannada"),
        ("മലയാളം", "Noto Sans Malayalam"),
        ("සිංහල", "Noto Sans Sinhala"),
        ("ภาษาไทย", "Noto Sans Thai"),
        ("ພາສາລາວ", "Noto Sans Lao"),
        ("ភាសាខ្មែរ", "Noto Sans Khmer"),
        ("မြန်မာဘာသာ", "Noto Sans Myanmar"),
        ("漢", "Noto Sans CJK SC"),
        ("ひ", "Noto Sans CJK SC"),
        ("한", "Noto Sans CJK SC"),
        ("→", "Noto Sans Math"),
        ("♪", "Noto Sans Symbols"),
        ("✓", "Noto Sans Symbols2"),
        ("😀", "Twemoji Mozilla"),
        ("👩🏽‍🚀", "Twemoji Mozilla"),
        ("🇩🇪", "Twemoji Mozilla"),
        ("⚡", "Twemoji Mozilla"),
        ("❤\u{fe0f}", "Twemoji Mozilla"),
        ("1\u{fe0f}\u{20e3}", "Twemoji Mozilla"),
        ("❤", "Noto Sans Symbols2"),
        ("⚡\u{fe0e}", "Noto Sans Symbols2"),
        ("1", "Noto Sans"),
    ] {
        let found = choices(text, Family::Sans);
        assert!(found.iter().all(|(found, has)| *found == name && *has), "{text} in {name}: {found:?}");
    }
    assert_eq!(choices("e\u{301}", Family::Serif), [("Noto Serif", true)], "composed with its mark");
    assert_eq!(choices("👩🏽‍🚀", Family::Mono).iter().filter(|(_, has)| *has).count(), 1, "one glyph for the sequence");
}

#[test]
fn what_no_font_has_is_a_box() {
    for unknown in ["\u{e000}", "\u{10ffff}", "\u{1}", "\u{378}", "𒀀", "\u{7f}", "\u{fffe}"] {
        let found = choices(unknown, Family::Serif);
        assert_eq!(found, [("Noto Serif", false)], "{unknown:?}");
        let mut image = white(40, 40);
        layout(unknown, &style(20.0), None).draw(&mut image, 10.0, 5.0, &Ink { color: BLACK, stroke: None });
        let (left, top, right, bottom) = inked(&image).expect("a box");
        assert!(right - left > 5 && bottom - top > 8, "{unknown:?}");
    }
    for invisible in ["\u{200d}", "\u{200f}", "\u{2066}\u{2069}", "\u{fe0f}", "\u{ad}"] {
        let mut image = white(40, 40);
        layout(invisible, &style(20.0), None).draw(&mut image, 10.0, 5.0, &Ink { color: BLACK, stroke: None });
        assert_eq!(inked(&image), None, "{invisible:?} has no look");
    }
}

#[test]
fn every_line_end_of_unicode_ends_a_line() {
    for (text, lines) in [
        ("", 1),
        ("a", 1),
        ("a\nb", 2),
        ("a\r\nb", 2),
        ("a\rb", 2),
        ("a\n\nb", 3),
        ("a\u{b}b\u{c}c\u{85}d\u{2028}e\u{2029}f\u{1c}g\u{1d}h\u{1e}i", 9),
        ("a\n", 2),
    ] {
        assert_eq!(layout(text, &style(10.0), None).line_count(), lines, "{text:?}");
    }
}

#[test]
fn size_follows_the_lines() {
    let one = layout("mm", &style(10.0), None);
    let two = layout("mm\nm", &style(10.0), None);
    assert_eq!((one.height(), two.height()), (12.0, 24.0));
    assert_eq!(one.width(), two.width());
    let double = layout("mm", &style(20.0), None);
    assert!((double.width() - 2.0 * one.width()).abs() < 1e-9);
    // A tab is four spaces wide. White space at the end of a line has no width, except for fixed
    // spaces.
    let width = |text: &str| layout(text, &style(10.0), None).width();
    assert_eq!(width("a\tb"), width("a    b"));
    assert_eq!(width("a   "), width("a"));
    assert!(width("a\u{a0}") > width("a"));
}

#[test]
fn lines_break_between_words_and_only_then_within_them() {
    let set = |text: &str, width: f64| layout(text, &style(10.0), Some(width)).line_count();
    let word = layout("wonder", &style(10.0), None).width();
    assert_eq!(set("wonder wonder", word), 2, "the space hangs");
    assert_eq!(set("wonder wonder", word - 0.01), 4);
    assert_eq!(set("漢字漢字", layout("漢字", &style(10.0), None).width()), 2, "between ideographs");
    assert_eq!(set("wonder", 0.0), 6, "a cluster a line");
    assert_eq!(set("e\u{301}e\u{301}", 0.0), 2, "never within a cluster");
    assert_eq!(set("👩🏽‍🚀👩🏽‍🚀", 0.0), 2);
    assert_eq!(set("a\u{a0}b", layout("a\u{a0}b", &style(10.0), None).width()), 1);
}

/// The words are entries of the dictionaries of ICU.
#[test]
fn thai_lao_khmer_and_burmese_break_between_words() {
    for words in [
        vec!["ประเทศ"; 8],
        vec!["ภาษา", "ไทย", "เป็น", "ภาษา", "ที่", "สวยงาม"],
        vec!["ພາສາ", "ລາວ", "ເປັນ", "ພາສາ"],
        vec!["ភាសាខ្មែរ", "ជា", "ភាសាផ្លូវការ"],
        vec!["မြန်မာဘာသာ", "စကား", "သည်"],
        vec!["two ", "words ", "ภาษา", "ไทย ", "画", "布。"],
    ] {
        let text = words.concat();
        let mut start = 0;
        let broken: Vec<&str> = line_breaks(&text).map(|end| &text[std::mem::replace(&mut start, end)..end]).collect();
        assert_eq!(broken, words);
        let widest = words.iter().map(|word| layout(word, &style(20.0), None).width()).fold(0.0, f64::max);
        assert!(layout(&text, &style(20.0), Some(widest)).line_count() <= words.len(), "{text}");
    }
    assert_eq!(line_breaks("").count(), 0);
}

#[test]
fn a_line_that_breaks_at_a_soft_hyphen_shows_a_hyphen() {
    let lines = |text: &str, max_width: f64, max_lines: usize| {
        let layout = layout_lines(text, &style(20.0), Some(max_width), max_lines);
        let glyphs =
            |line: &Line| line.glyphs.iter().filter(|glyph| glyph.advance > 0.0).map(|glyph| glyph.id).collect();
        layout.lines.iter().map(glyphs).collect::<Vec<Vec<_>>>()
    };
    let shown = |texts: &[&str]| texts.iter().flat_map(|text| lines(text, 1e6, 1)).collect::<Vec<_>>();
    let width = |text: &str| layout(text, &style(20.0), None).width();
    let word = "Donau\u{ad}dampf\u{ad}schiff";
    let broken = shown(&["Donau-", "dampf-", "schiff"]);
    assert_eq!(lines(word, width("Donau-").max(width("dampf-")), 9), broken);
    assert_eq!(lines(word, width("Donaudampf-"), 9), shown(&["Donaudampf-", "schiff"]));
    assert_eq!(
        lines(&format!("der {word}"), width("der Donau-").max(width("dampfschiff")), 9),
        shown(&["der Donau-", "dampfschiff"])
    );
    // The hyphen must fit as well, and where nothing is broken there is none.
    assert_eq!(lines(word, width("Donaudampf-") - 0.5, 9), shown(&["Donau-", "dampfschiff"]));
    assert_eq!(lines(word, width("Donaudampfschiff"), 9), shown(&["Donaudampfschiff"]));
    assert_eq!(lines("auf\u{ad} und ab", width("auf und"), 9), shown(&["auf und", "ab"]));
    assert_eq!(lines("auf\u{ad} und", width("auf").max(width("und")), 9), shown(&["auf", "und"]));
    assert_eq!(lines("und\u{ad}", width("und"), 9), shown(&["und"]));
    // A hyphen that is wider than what follows does not hide that it fits.
    assert_eq!(lines("Donau\u{ad}i Wien", width("Donaui"), 9), shown(&["Donaui", "Wien"]));
    // A part that does not fit with its hyphen keeps it.
    assert_eq!(lines("WWW\u{ad}WWW", width("WWW"), 9), shown(&["WW", "W-", "WWW"]));
    // Omitted text has an ellipsis instead.
    assert_eq!(lines(word, width("Donau-").max(width("dampf…")), 2), shown(&["Donau-", "dampf…"]));
    for size in [1e-3, 1.0, 5.0] {
        assert_eq!(lines("a\u{ad}\u{ad}b\u{ad}", size, 9), shown(&["a-", "b"]));
    }
}

#[test]
fn right_to_left_is_ordered_and_stands_where_it_is_asked_to() {
    let cascade = Cascade::new(Family::Sans, Weight::Regular);
    let clusters = |text: &str| -> Vec<usize> {
        Paragraph::new(text, None, &cascade).line(0..text.len()).glyphs.iter().map(|glyph| glyph.cluster).collect()
    };
    assert_eq!(clusters("אבג"), [4, 2, 0], "from the right");
    assert_eq!(clusters("אב12"), [4, 5, 2, 0], "numbers from the left");
    assert_eq!(clusters("ab אב"), [0, 1, 2, 5, 3]);
    let place = |align: Align| {
        let mut image = white(200, 60);
        let set = layout("אב\nאבגדהוזחטי", &Style { align, ..style(20.0) }, None);
        set.draw(&mut image, 0.0, 0.0, &Ink { color: BLACK, stroke: None });
        let mut first = white(200, 24);
        first.pixels_mut().copy_from_slice(&image.pixels()[..200 * 3 * 24]);
        let (left, _, right, _) = inked(&first).expect("text");
        (left, set.width() as i64 - right)
    };
    let (left, center, right) = (place(Align::Left), place(Align::Center), place(Align::Right));
    assert!(left.0 <= 3 && right.1 <= 3, "left is left: {left:?} {right:?}");
    assert!((center.0 - center.1).abs() <= 3, "{center:?}");
}

#[test]
fn a_stroke_lies_under_the_letters_and_reaches_half_its_width_beyond() {
    let red = Color { r: 255, g: 0, b: 0, a: 255 };
    let draw = |stroke: Option<Stroke>| {
        let mut image = white(120, 120);
        layout("H", &style(80.0), None).draw(&mut image, 30.0, 10.0, &Ink { color: BLACK, stroke });
        image
    };
    let (plain, stroked) = (draw(None), draw(Some(Stroke { color: red, width: 8.0 })));
    let (a, b) = (inked(&plain).expect("text"), inked(&stroked).expect("text"));
    for (inner, outer) in [(a.0, b.0), (a.1, b.1), (b.2, a.2), (b.3, a.3)] {
        assert!((3..=5).contains(&(inner - outer)), "{a:?} {b:?}");
    }
    for (before, after) in plain.pixels().chunks_exact(3).zip(stroked.pixels().chunks_exact(3)) {
        assert!(before != [0, 0, 0] || after == [0, 0, 0], "the letter is whole");
    }
}

#[test]
fn letters_that_overlap_are_no_darker_where_they_do() {
    // Cursive letters overlap where they join. With partial opacity they must have one uniform
    // tone.
    let half = Color { a: 128, ..BLACK };
    let mut image = white(300, 100);
    let ink = Ink { color: half, stroke: Some(Stroke { color: half, width: 6.0 }) };
    layout("سسسس", &style(50.0), None).draw(&mut image, 20.0, 10.0, &Ink { stroke: None, ..ink });
    let darkest = image.pixels().iter().min().copied();
    assert_eq!(darkest, Some(127));
}

#[test]
fn an_anchor_and_offsets_place_the_box() {
    let size = Size::new(400, 301);
    for anchor in Anchor::ALL {
        for offset in [(0, 0), (7, -11), (-1_000_000, i64::MAX), (i64::MIN, 3)] {
            let placed = Caption { anchor, offset, ..caption("Text") }.place(size);
            let (x, y, width, height) = placed.frame();
            let inner = Size::new(width as u32, height as u32);
            let (left, top) = anchor.place(inner, size);
            assert_eq!((x, y), (i64::from(left).saturating_add(offset.0), i64::from(top).saturating_add(offset.1)));
        }
    }
}

#[test]
fn a_box_is_its_text_with_padding_and_is_filled_to_the_pixel() {
    let green = Color { r: 0, g: 200, b: 0, a: 255 };
    let mut image = white(400, 300);
    let placed = Caption { background: green, ..caption("Text") }.place(image.size());
    placed.draw(&mut image);
    let (x, y, width, height) = placed.frame();
    assert_eq!(inked(&image), Some((x, y, x + width as i64, y + height as i64)));
    // Letters of 30 px: a line of 36 and a padding of 9. The box is at the bottom.
    assert_eq!((height, y + height as i64), (36 + 18, 300));
    let bare = Caption { padding: 0.0, ..caption("Text") }.place(image.size());
    assert!((width as i64 - bare.frame().2 as i64 - 18).abs() <= 1);
    assert_eq!(bare.frame().3, 36);
}

#[test]
fn the_widest_box_holds_its_padding() {
    let text = "several words that need more than a line in such a narrow box";
    let size = Size::new(400, 300);
    for (max_width, padding) in [(100.0, 0.0), (90.0, 30.0), (50.0, 100.0), (30.0, 30.0)] {
        let placed = Caption { max_width, padding, ..caption(text) }.place(size);
        assert!(placed.frame().2 as f64 <= 4.0 * max_width, "{max_width} {padding}: {:?}", placed.frame());
        assert!(placed.line_count() > 1);
    }
    // No room for text: each line has one cluster, and the box is as wide as necessary.
    let placed = Caption { max_width: 10.0, padding: 100.0, ..caption("abc") }.place(size);
    assert_eq!(placed.line_count(), 3);
}

#[test]
fn the_smallest_images_and_the_largest_letters_are_no_trouble() {
    for (width, height) in [(1, 1), (1, 500), (500, 1)] {
        for size in [0.5, 50.0] {
            let mut image = white(width, height);
            let wide = Caption { size, stroke_width: 20.0, background: BLACK, ..caption("Wide\ntext 😀 ﷽") };
            wide.place(image.size()).draw(&mut image);
        }
    }
    let mut tall = white(3, 16_384);
    let start = Instant::now();
    let huge = Caption { size: 50.0, stroke_width: 20.0, anchor: Anchor::Center, ..caption("﷽mW😀") };
    huge.place(tall.size()).draw(&mut tall);
    assert!(inked(&tall).is_some());
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}

#[test]
fn hostile_text_costs_little_time() {
    let marks = format!("a{}", "\u{301}".repeat(499));
    let nested = "\u{202e}\u{2066}\u{202b}".repeat(166);
    let mixed = "aא".repeat(250);
    for text in [
        marks.as_str(),
        &nested,
        &mixed,
        &"\u{fdfd}".repeat(500),
        &"\u{10fffd}".repeat(500),
        &"👩🏽‍🚀".repeat(125),
        &"\n".repeat(500),
        &"\u{202e}".repeat(500),
        &"ᄀ".repeat(500),
        &"्".repeat(500),
        &"鬱".repeat(500),
        &"a\u{200d}".repeat(250),
        &" ".repeat(500),
    ] {
        let mut image = white(800, 600);
        let start = Instant::now();
        for (size, max_width) in [(6.0, 90.0), (50.0, 10.0), (0.5, 100.0)] {
            let caption = Caption { size, max_width, stroke_width: 20.0, ..caption(text) };
            caption.place(image.size()).draw(&mut image);
        }
        let shown: String = text.chars().take(3).collect();
        assert!(start.elapsed() < Duration::from_secs(4), "{shown:?}: {:?}", start.elapsed());
    }
}

#[test]
fn threads_draw_the_same_bytes() {
    let source = written(&photo(320, 200), OutputFormat::Jpeg, 90);
    let caption = Caption { stroke_width: 5.0, ..caption("fi é العربية 12 漢字 😀") };
    let run = || add_text(&source, &caption, Finish { choice: FormatChoice::Auto, quality: 85 }).unwrap().bytes;
    let first = run();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(run)).collect();
        for thread in threads {
            assert!(thread.join().expect("no panic") == first);
        }
    });
}

#[test]
fn a_jpeg_of_a_transparent_image_is_flattened_on_white_whatever_the_box_is_filled_with() {
    let clear = Bitmap::filled(Size::new(64, 64), Channels::Rgba, Color::TRANSPARENT);
    let source = written(&clear, OutputFormat::Png, 90);
    let filled = Caption { background: BLACK, anchor: Anchor::Bottom, ..caption("x") };
    let write = |choice| add_text(&source, &filled, Finish { choice, quality: 100 }).unwrap();
    let jpeg = decode(&write(FormatChoice::Jpeg).bytes).unwrap();
    let corner = jpeg.pixel(0, 0).unwrap();
    assert!(corner[..3].iter().all(|sample| *sample > 250), "{corner:?}");
    let png = write(FormatChoice::Auto);
    assert_eq!(png.format, OutputFormat::Png);
    let png = decode(&png.bytes).unwrap();
    assert_eq!(png.pixel(0, 0), Some([0, 0, 0, 0]));
    assert_eq!(png.pixel(32, 63), Some([0, 0, 0, 255]));
}

#[test]
fn only_the_box_changes() {
    let before = photo(320, 200);
    let source = written(&before, OutputFormat::Png, 90);
    let caption = Caption { anchor: Anchor::TopRight, ..caption("Only here") };
    let (x, y, width, height) = caption.place(before.size()).frame();
    let made = add_text(&source, &caption, Finish { choice: FormatChoice::Auto, quality: 85 }).unwrap();
    let after = decode(&made.bytes).unwrap();
    let mut changed = 0;
    for py in 0..200 {
        for px in 0..320 {
            let within =
                (x..x + width as i64).contains(&i64::from(px)) && (y..y + height as i64).contains(&i64::from(py));
            let same = before.pixel(px, py) == after.pixel(px, py);
            assert!(same || within, "{px} {py}");
            changed += u32::from(!same);
        }
    }
    assert!(changed > 500, "{changed} pixels");
}

#[test]
fn an_image_over_the_limits_of_results_is_refused_before_it_is_decoded() {
    let header = crate::testing::png_file(crate::testing::ihdr(16_385, 1, 8, 2, false), &[], &[]);
    let refused = add_text(&header, &caption("x"), Finish { choice: FormatChoice::Auto, quality: 85 }).unwrap_err();
    assert_eq!(refused.kind(), crate::ErrorKind::Limit);
}

/// Texts with letters of many scripts, control characters and unassigned characters.
fn any_text() -> impl Strategy<Value = String> {
    let scripts = prop_oneof![
        "[ -~]{1,12}",
        "[ا-ي \u{64b}-\u{652}]{1,8}",
        "[א-ת]{1,6}",
        "[一-鿿ぁ-ん가-힣]{1,6}",
        "[क-ह\u{93e}-\u{94d}]{1,6}",
        "[ก-ฮ\u{e31}-\u{e3a}]{1,6}",
        "[\u{300}-\u{36f}\u{200b}-\u{200f}\u{202a}-\u{202e}\u{2060}-\u{206f}\u{fe00}-\u{fe0f}\t\n\r]{1,6}",
        "[😀-🙏🇦-🇿🏻-🏿\u{200d}]{1,6}",
        proptest::collection::vec(any::<char>(), 1..6).prop_map(|characters| characters.into_iter().collect()),
    ];
    proptest::collection::vec(scripts, 0..8).prop_map(|parts| parts.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn no_line_is_wider_than_asked_unless_it_is_one_cluster(
        text in any_text(), width in 0.0f64..300.0, family in 0..3, bold in any::<bool>(),
    ) {
        use unicode_segmentation::UnicodeSegmentation;
        let style = Style {
            family: [Family::Sans, Family::Serif, Family::Mono][family as usize],
            weight: if bold { Weight::Bold } else { Weight::Regular },
            ..style(20.0)
        };
        // One paragraph only, because glyph positions are relative to their paragraph.
        let text = text.replace(|at: char| at.is_control() || matches!(at, '\u{2028}' | '\u{2029}'), " ");
        let ends: Vec<usize> = text.grapheme_indices(true).map(|(at, cluster)| at + cluster.len()).collect();
        let set = layout(&text, &style, Some(width));
        for line in set.lines.iter().filter(|line| line.width * style.size > width + 0.01) {
            let clusters: BTreeSet<usize> =
                line.glyphs.iter().map(|glyph| ends.partition_point(|end| *end <= glyph.cluster)).collect();
            prop_assert_eq!(clusters.len(), 1, "{} wide and not {}", line.width * style.size, width);
        }
        prop_assert!(set.line_count() >= layout(&text, &style, None).line_count());
    }

    #[test]
    fn any_text_can_be_drawn_and_always_alike(text in any_text(), stroke in 0.0f64..5.0) {
        let caption = Caption { stroke_width: stroke, ..caption(&text) };
        let draw = || {
            let mut image = white(120, 90);
            caption.place(image.size()).draw(&mut image);
            image
        };
        prop_assert!(draw() == draw());
    }
}
