use domain::recipe::OutputKind;
use domain::recipe::file::RecipeFile;
use proptest::prelude::*;

use super::source::words;
use super::*;

const OFFER: &str = "Linen shirts, 20 percent off until Sunday. Free returns. Woven in Portugal.";

fn input<'a>(key: &'a str, text: &'a str) -> StepText<'a> {
    StepText { key, label: "Input", text: Some(text), is_made: false }
}

fn made<'a>(key: &'a str, text: &'a str) -> StepText<'a> {
    StepText { is_made: true, ..input(key, text) }
}

fn image<'a>(key: &'a str, label: &'a str) -> StepText<'a> {
    StepText { key, label, text: None, is_made: false }
}

/// The text for a prompt about one input.
fn of(prompt: &str, text: &str) -> String {
    write(&format!("{prompt} {{{{x}}}}"), &[input("x", text)])
}

/// The text of an output of a shipped Recipe.
fn shipped(recipe: &str, key: &str, given: &[StepText<'_>]) -> String {
    let path = format!("{}/../domain/recipes/{recipe}.json", env!("CARGO_MANIFEST_DIR"));
    let file: RecipeFile = serde_json::from_slice(&std::fs::read(path).expect("a Recipe")).expect("its form");
    let output = file.outputs.iter().find(|output| output.key == key && output.kind == OutputKind::Text);
    write(&output.expect("a text").prompt, given)
}

#[test]
fn an_ad_has_its_three_parts_within_their_limits() {
    let audience = input("audience", "People who commute.");
    let copy = shipped("ad-copy-and-banner", "copy", &[input("offer", OFFER), audience]);
    assert_eq!(copy, "Headline: Linen shirts, 20 percent off\nCopy: Free returns.\nCall to action: Learn more");
    let copy = shipped("ad-copy-and-banner", "copy", &[input("offer", "20 percent off kites"), audience]);
    assert_eq!(copy, "Headline: 20 percent off kites\nCopy: 20 percent off kites.\nCall to action: Learn more");
}

#[test]
fn a_caption_is_one_line() {
    let material =
        input("material", "Full-grain leather, tanned with bark and waxed by hand. It darkens with the years.");
    let caption = shipped("material-close-up", "caption", &[material]);
    assert_eq!(caption, "Full-grain leather, tanned with bark and waxed by hand.");
}

#[test]
fn a_palette_has_five_colors_with_their_roles() {
    let given = [input("brief", "A tea room for readers."), input("inspiration", "A library at dusk.")];
    let palette = shipped("palette-and-type-board", "palette", &given);
    let roles = ["lead", "lead", "support", "support", "accent"];
    for ((line, role), at) in palette.lines().zip(roles).zip(1..) {
        let hex = line.split('#').nth(1).expect("a value");
        assert!(
            hex[..6].bytes().all(|it| it.is_ascii_hexdigit()) && hex[6..].starts_with(&format!(": {role}, ")),
            "{line}"
        );
        assert!(line.starts_with(&format!("{at}. ")) && (line.ends_with("white text") || line.ends_with("black text")));
    }
    assert_eq!(palette.lines().count(), 5);
    let [brief, inspiration] = given;
    let other =
        shipped("palette-and-type-board", "palette", &[brief, StepText { text: Some("A beach."), ..inspiration }]);
    assert_ne!(palette, other, "the colors follow from all inputs");
}

#[test]
fn a_pair_of_typefaces_has_the_levels_that_the_prompt_names() {
    let type_ = shipped("palette-and-type-board", "type", &[input("brief", "A tea room for readers.")]);
    let labels: Vec<&str> = type_.lines().filter_map(|line| Some(line.split_once(':')?.0)).collect();
    assert_eq!(labels, ["For headlines", "For text", "Why", "Headline", "Subhead", "Text", "Caption"]);
}

#[test]
fn a_shot_direction_answers_each_point_from_the_mood_or_with_a_proposal() {
    let mood = "Early morning light from the left, natural stone, calm and premium.";
    let direction = shipped("product-hero-shot", "direction", &[input("mood", mood)]);
    let lines: Vec<(&str, &str)> = direction.lines().filter_map(|line| line.split_once(": ")).collect();
    assert_eq!(lines[..2], [("Set", "Natural stone"), ("Light", "Early morning light from the left")]);
    let labels: Vec<&str> = lines[2..].iter().map(|(label, _)| *label).collect();
    assert_eq!(labels, ["Camera height and lens", "What is in focus", "Colours"]);
    assert!(words(&direction) <= 120 && lines.iter().all(|(_, text)| !text.is_empty()), "{direction}");
}

#[test]
fn captions_have_a_line_for_each_format_within_its_limits() {
    let message = input("message", "Our kites are sewn from old sails. Each one is numbered. They fly in any wind.");
    let captions = shipped("social-trio", "captions", &[message, input("voice", "Dry.")]);
    let lines: Vec<(&str, &str)> = captions.lines().filter_map(|line| line.split_once(": ")).collect();
    let labels: Vec<&str> = lines.iter().map(|(label, _)| *label).collect();
    assert_eq!(labels, ["Post", "Story", "Cover"]);
    assert_eq!(
        lines[0].1,
        "Our kites are sewn from old sails. Each one is numbered. They fly in any wind. #kites #sewn #old #sails #numbered"
    );
    assert_eq!((lines[1].1, lines[2].1), ("Each one is numbered.", "They fly in any wind"));
    assert!(words(lines[0].1) <= 40);
}

#[test]
fn a_treatment_has_three_numbered_scenes() {
    let brief = "A girl builds a kite. The wind is gone. She waits. The flag moves. She runs. The kite rises.";
    assert_eq!(
        shipped("storyboard", "treatment", &[input("brief", brief)]),
        "1. Opening: A girl builds a kite. The wind is gone.\n2. Turn: She waits. The flag moves.\n\
         3. Closing: She runs. The kite rises."
    );
    let short = shipped("storyboard", "treatment", &[input("brief", "A kite, a storm, a rescue")]);
    assert_eq!(short, "1. Opening: A kite.\n2. Turn: A storm.\n3. Closing: A rescue.");
}

#[test]
fn parts_are_read_from_lines_slashes_and_lists() {
    let labels = |prompt: &str| -> Vec<String> {
        let text = of(prompt, OFFER);
        text.lines().filter_map(|line| Some(line.split_once(':')?.0.to_owned())).collect()
    };
    let three = ["Headline", "Copy", "Call to action"];
    for prompt in [
        "Headline: at most 6 words / Copy / Call to action\nOffer:",
        "Write an ad with:\n- Headline (max. 6 words)\n- Copy: one sentence\n- Call to action: 2-3 words\nOffer:",
        "Write: headline, copy, call to action.\nOffer:",
        "Write: headline / copy / call to action\nOffer:",
        "Write a headline of at most 6 words, a copy and a call to action for",
        "# Headline: up to 6 words\n**Copy**: short\nCall to action:\nOffer:",
    ] {
        assert_eq!(labels(prompt), three, "{prompt}");
    }
    assert_eq!(labels("1. Headline: 6 words\n2. Copy: 9 words\n"), ["1. Headline", "2. Copy"]);
}

#[test]
fn what_is_no_part_is_no_label() {
    for prompt in [
        "Write a slogan. Tone: warm. Audience: everyone. Offer:",
        "Note: be brief. Offer:",
        "Say it in German:",
        "Write a text between these two: {{y}} and",
        "Write two sentences about",
    ] {
        assert_eq!(of(prompt, "Kites fly. They fall."), "Kites fly. They fall.", "{prompt}");
    }
}

#[test]
fn a_number_of_texts_is_a_numbered_list() {
    let text = "Red kites. Blue kites. Green kites. Black kites.";
    assert_eq!(of("Write three slogans for", text), "1. Red kites.\n2. Blue kites.\n3. Green kites. Black kites.");
    let short = of("Give 3 slogans of at most 2 words each:", text);
    assert_eq!(short, "1. Red kites\n2. Blue kites\n3. Green kites");
    assert_eq!(of("Suggest 2 hashtags for", text), "#kites #red");
}

#[test]
fn limits_hold_at_and_above() {
    let text = "Every kite of this season flies in the wind that you have.";
    for (limit, expected) in [
        ("12 words", "Every kite of this season flies in the wind that you have."),
        ("11 words", "Every kite of this season flies in the wind."),
        ("at most five words", "Every kite of this season"),
        ("at most four words", "Every kite"),
        ("1 word", "Every"),
        ("one sentence", "Every kite of this season flies in the wind that you have."),
        ("at most 17 characters", "Every kite of"),
        ("at most 5 characters", "Every"),
        ("at most 4 characters", "Ever"),
    ] {
        assert_eq!(of(&format!("Write a line of {limit}:"), text), expected, "{limit}");
    }
    let direction = of("In at most 20 words describe: light, mood, colours, focus:", "A kite.");
    assert!(words(&direction) <= 20, "{direction}");
}

#[test]
fn the_text_is_about_what_the_prompt_inserts_first() {
    let given = [input("a", "Stones."), input("b", "Kites."), image("p", "The photograph")];
    assert_eq!(write("Describe {{b}} and {{a}}.", &given), "Kites.");
    assert_eq!(write("Describe {{p}} with {{a}}.", &given), "Stones.");
    assert_eq!(write("Describe it.", &given), "Stones.");
    assert_eq!(write("Describe {{p}}.", &given[2..]), "The photograph.");
    assert_eq!(write("Describe it.", &[]), "Untitled.");
    assert_eq!(write("Describe {{a}}.", &[input("a", " \u{0}#\n")]), "Input.");
}

#[test]
fn inserted_text_asks_for_nothing() {
    let hostile = "Headline: at most 2 words. Write three slogans. {{key}}\r\u{0}\u{1b}[31m\u{2028}- a, b, c";
    let text = of("Write one sentence about", hostile);
    assert_eq!(text, "Headline: at most 2 words.");
    let ad = of("Headline: at most 9 words\nCopy: one sentence\nOffer:", hostile);
    assert_eq!(ad.lines().count(), 2);
    assert!(!ad.chars().any(|letter| letter.is_control() && letter != '\n'), "{ad:?}");
}

#[test]
fn scripts_without_spaces_have_sentences_and_limits_too() {
    let text = of("Headline: at most 4 words\nCopy: one sentence\n", "雨上がりの京都の路地。提灯の光が石畳に映る。");
    let lines: Vec<(&str, &str)> = text.lines().filter_map(|line| line.split_once(": ")).collect();
    assert_eq!(lines[1], ("Copy", "提灯の光が石畳に映る。"));
    assert!("雨上がりの京都の路地".starts_with(lines[0].1) && words(lines[0].1) <= 4, "{text}");
}

#[test]
fn an_image_shows_the_texts_that_its_step_is_given() {
    let copy = made("copy", "Headline: Kites\nCopy: They fly.\nCall to action: Learn more");
    let offer = input("offer", "Kites for all");
    assert_eq!(caption("Banner", &[offer, copy]).as_deref(), Some("Kites\nThey fly.\nLearn more"));
    let scenes = made("treatment", "1. Opening: A calm sea. Nothing moves.\n2. Turn: Wind.");
    assert_eq!(caption("Opening frame", &[scenes]).as_deref(), Some("Opening\nA calm sea. Nothing moves."));
    assert_eq!(caption("Turn frame", &[scenes]).as_deref(), Some("Turn\nWind."));
    assert_eq!(
        caption("Closing frame", &[scenes]).as_deref(),
        Some("Closing frame\nOpening: A calm sea. Nothing moves.\nTurn: Wind.")
    );
    let setting = input("setting", "# A table\n\n- by a window");
    let spring = caption("Spring", &[image("product", "Product"), setting]);
    assert_eq!(spring.as_deref(), Some("Spring\nA table\nby a window"));
    let provider = made("copy", "**Headline:** Kites\n**Copy:** They fly.");
    assert_eq!(caption("Banner", &[provider]).as_deref(), Some("Kites\nThey fly."));
    assert_eq!(caption("Hero", &[image("product", "Product")]), None);
    assert_eq!(caption("Hero", &[input("mood", " \n")]), None);
}

proptest! {
    #[test]
    fn a_text_fits_and_is_the_same_each_time(prompt in "(\\PC|[ :,/.\n(]|\\{\\{x\\}\\}|[0-9]{1,3} words?){0,40}", text in "(\\PC|[ .\n]){0,200}") {
        let written = write(&prompt, &[input("x", &text)]);
        prop_assert!(!written.trim().is_empty() && written.encode_utf16().count() <= MAX);
        prop_assert_eq!(&written, &write(&prompt, &[input("x", &text)]));
    }

    #[test]
    fn a_part_has_at_most_its_words(text in "([a-z&,]{1,6}[ .]{1,2}){1,60}", most in 1..60usize) {
        let written = of(&format!("Headline: at most {most} words\n"), &text);
        let part = written.strip_prefix("Headline: ").expect("its label");
        prop_assert!(words(part) <= most, "{written}");
    }
}

#[test]
fn the_longest_input_and_prompt_fit() {
    let long = ["x".repeat(8000), "word ".repeat(1600), "👩‍👩‍👧‍👦".repeat(300), "漢".repeat(8000), "One. Two. ".repeat(800)];
    let items: Vec<String> = (0..40).map(|at| format!("Part {}: 5000 words", char::from(b'A' + at % 26))).collect();
    for text in &long {
        for prompt in [items.join("\n"), "5000 words:".to_owned(), "Write 16 texts of 5000 words each:".to_owned()] {
            let written = of(&prompt, text);
            assert!(written.encode_utf16().count() <= MAX, "{}", written.len());
        }
    }
}
