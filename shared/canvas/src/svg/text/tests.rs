use proptest::prelude::*;

use super::*;

const FACE: Face = Face::regular(10.0);

fn limits(width: f64, lines: usize) -> Limits {
    Limits { width, lines, bytes: usize::MAX }
}

fn texts(text: &str, width: f64, lines: usize) -> Vec<String> {
    wrap(text, FACE, limits(width, lines)).lines.into_iter().map(|line| line.text).collect()
}

#[test]
fn words_are_kept_whole_and_paragraphs_apart() {
    assert_eq!(texts("one two three", 45.0, 9), ["one two", "three"]);
    assert_eq!(texts("one\ntwo\n\nthree\n\n", 1000.0, 9), ["one", "two", "", "three"]);
    assert_eq!(texts("one\r\ntwo\u{2028}three", 1000.0, 9), ["one", "two", "three"]);
    assert_eq!(texts("", 100.0, 9), [""; 0]);
    assert_eq!(texts(" \n ", 100.0, 9), [""; 0]);
}

#[test]
fn chinese_and_japanese_break_between_characters_and_not_before_a_full_stop() {
    assert_eq!(texts("画布显示工作", 35.0, 9), ["画布显", "示工作"]);
    assert_eq!(texts("これは紙。", 40.0, 9), ["これは", "紙。"]);
}

/// The words are entries of the dictionaries of ICU.
#[test]
fn thai_lao_khmer_and_burmese_break_between_words() {
    for words in [
        ["ประเทศ", "ประเทศ", "ประเทศ"],
        ["ภาษา", "ไทย", "ภาษา"],
        ["ພາສາ", "ລາວ", "ພາສາ"],
        ["ភាសាខ្មែរ", "ជា", "ភាសា"],
        ["မြန်မာဘာသာ", "စကား", "သည်"],
    ] {
        let widest = words.iter().map(|word| FACE.text(word)).fold(0.0, f64::max);
        let two = FACE.text(words[0]) + FACE.text(words[1]);
        assert_eq!(texts(&words.concat(), two.max(widest), 9), [words[..2].concat(), words[2].into()]);
        assert_eq!(texts(&words.concat(), two - 0.1, 9)[0], words[0]);
    }
}

#[test]
fn a_line_that_breaks_at_a_soft_hyphen_shows_a_hyphen() {
    let width = |text: &str| FACE.text(text) + 1e-6;
    let word = "Donau\u{ad}dampf\u{ad}schiff";
    assert_eq!(texts(word, width("dampf-").max(width("Donau-")), 9), ["Donau-", "dampf-", "schiff"]);
    assert_eq!(texts(word, width("Donaudampf-"), 9), ["Donaudampf-", "schiff"]);
    // The hyphen must fit as well, and where nothing is broken there is none.
    assert_eq!(texts(word, width("Donaudampf-") - 0.1, 9), ["Donau-", "dampfschiff"]);
    assert_eq!(texts(word, width("Donaudampfschiff"), 9), ["Donaudampfschiff"]);
    let wide = width("der Donau-").max(width("dampfschiff"));
    assert_eq!(texts(&format!("der {word}"), wide, 9), ["der Donau-", "dampfschiff"]);
    assert_eq!(texts(&format!("{word} ja"), width("Donaudampfschiff ja"), 9), ["Donaudampfschiff ja"]);
    // A part that is wider than a line is broken as any word.
    assert_eq!(texts("mmmm\u{ad}ii", 21.0, 9), ["mm", "mm", "ii"]);
    assert_eq!(texts("mmm\u{ad}ii", 21.0, 9), ["mm", "mii"]);
    assert_eq!(texts("a\u{ad}\nb\u{ad}", 100.0, 9), ["a", "b"]);
    let many = "ab\u{ad}".repeat(8000);
    assert_eq!(texts(&many, width("ababab-"), 10_000).len(), 8000usize.div_ceil(3));
}

#[test]
fn a_word_wider_than_a_line_breaks_between_clusters() {
    assert_eq!(texts("mmmm", 20.0, 9), ["mm", "mm"]);
    let family = "👩‍👩‍👧‍👦";
    assert_eq!(texts(&family.repeat(3), 13.0, 9), [family; 3]);
    assert_eq!(texts("e\u{301}e\u{301}", 6.0, 9), ["e\u{301}"; 2]);
}

#[test]
fn what_does_not_fit_ends_in_an_ellipsis() {
    let cut = wrap("one two three four", FACE, limits(45.0, 1));
    assert_eq!((cut.lines[0].text.as_str(), cut.cut), ("one tw…", true));
    let whole = wrap("one two", FACE, limits(45.0, 1));
    assert_eq!((whole.lines[0].text.as_str(), whole.cut), ("one two", false));
    assert_eq!(texts("one two three", 45.0, 0), [""; 0]);
    assert_eq!(texts("one", 3.0, 1), [""; 0], "not even the ellipsis fits");
}

#[test]
fn a_single_line_is_one_line() {
    let line = |text, width| single(text, FACE, width).map(|line| line.text);
    assert_eq!(line("one\ntwo", 100.0).as_deref(), Some("one two"));
    assert_eq!(line("one two three", 50.0).as_deref(), Some("one two…"));
    assert_eq!(line("", 50.0), None);
}

#[test]
fn the_first_letter_gives_a_paragraph_its_direction() {
    let rtl = |text: &str| wrap(text, FACE, limits(1000.0, 9)).lines.iter().map(|line| line.rtl).collect::<Vec<_>>();
    assert_eq!(rtl("hello שלום"), [false]);
    assert_eq!(rtl("1. שלום hello"), [true]);
    assert_eq!(rtl("مرحبا\nhello\n123"), [true, false, false]);
}

#[test]
fn authors_direction_controls_and_piles_of_marks_are_dropped() {
    let controls = "a\u{202e}b\u{2066}c\u{200f}d\u{2069}\u{202c}e\u{61c}";
    assert_eq!(texts(controls, 1000.0, 1), ["abcde"]);
    let pile = format!("z{}", "\u{301}".repeat(5000));
    assert_eq!(texts(&pile, 1000.0, 1)[0].chars().count(), 1 + MARKS_MAX);
}

#[test]
fn a_million_characters_cost_no_more_than_the_frame_shows() {
    for piece in ["x", "word ", "\n", "漢", "\u{301}", "<", "\0"] {
        let text = piece.repeat(1_000_000 / piece.chars().count());
        let wrapped = wrap(&text, FACE, Limits { width: 200.0, lines: 20, bytes: 4000 });
        assert!(wrapped.lines.len() <= 20, "{piece:?}");
        assert!(wrapped.lines.iter().map(|line| escaped_len(&line.text)).sum::<usize>() <= 4000, "{piece:?}");
    }
}

#[test]
fn lines_are_anchored_by_side() {
    let drawn = |align, rtl| {
        let mut out = String::new();
        draw(&mut out, &Line { text: "a".into(), width: 5.0, rtl }, align, 10.0, 90.0, 20.0);
        out
    };
    assert_eq!(drawn(Align::Start, false), r#"<text x="10" y="20">a</text>"#);
    assert_eq!(drawn(Align::Start, true), "<text x=\"90\" y=\"20\" text-anchor=\"end\">\u{202b}a\u{202c}</text>");
    assert_eq!(drawn(Align::Left, true), "<text x=\"10\" y=\"20\">\u{202b}a\u{202c}</text>");
    assert_eq!(drawn(Align::Right, false), r#"<text x="90" y="20" text-anchor="end">a</text>"#);
    assert_eq!(drawn(Align::Center, false), r#"<text x="50" y="20" text-anchor="middle">a</text>"#);
}

proptest! {
    #[test]
    fn lines_fit_and_nothing_is_lost_or_added(text in "(\\PC|[ \\n\u{5d0}-\u{5ea}漢字])*", width in 13.0..300.0f64) {
        let wrapped = wrap(&text, FACE, limits(width, 10_000));
        prop_assert!(!wrapped.cut);
        let ink = |text: &str| clean(text).chars().filter(|c| *c != ' ' && !is_break(*c)).collect::<String>();
        prop_assert_eq!(ink(&wrapped.lines.iter().map(|line| line.text.as_str()).collect::<String>()), ink(&text));
        for line in &wrapped.lines {
            prop_assert!(line.width <= width + 1e-9 || line.text.graphemes(true).count() <= 1, "{:?}", line);
        }
    }

    #[test]
    fn cut_lines_fit_too(text in "\\PC{0,80}", width in 0.0..60.0f64, lines in 0usize..4) {
        let wrapped = wrap(&text, FACE, limits(width, lines));
        prop_assert!(wrapped.lines.len() <= lines);
        for line in &wrapped.lines {
            prop_assert!(line.width <= width + 1e-9 || line.text.graphemes(true).count() <= 1, "{:?}", line);
        }
    }
}
