//! The text model, `outline`. It arranges a brief by fixed rules (docs/reference/models.md#outline).
//!
//! **Guarantee.** A pure function: the same prompt and inputs give the same Markdown of at most
//! [`MAX`] characters, which fits a text node. It consists only of words of the brief and fixed
//! words of this file, and it says so.
//!
//! **Mechanism.** Sentences and words are segmented by UAX 29, which works for any script. If a
//! brief does not specify the light, the framing or the palette, a hash of the brief selects them
//! from short lists.
//!
//! **Reason.** A Recipe whose text step precedes a picture must run without a model, an API key or
//! a network, and its text must be useful in the next prompt. It is therefore short and has the
//! most important parts first.

use std::collections::HashMap;

use unicode_segmentation::UnicodeSegmentation;

/// Maximum length of an outline, in UTF-16 code units; the number of characters is never larger. It is the limit of a Recipe's
/// text output (docs/reference/limits.md#recipes-and-workflows).
pub const MAX: usize = domain::limits::RECIPE_TEXT_MAX;

/// The last line of every outline.
const NOTE: &str = "_Outline: put in order from the brief by fixed rules, without a language model._";

/// The line that stands for omitted lines.
const LEFT_OUT: &str = "- …";

/// The maximum number of sentences of the brief. The constants below limit key words and characters
/// of inputs.
const SENTENCES_MAX: usize = 8;
const KEYWORDS_MAX: usize = 8;
const EXCERPT_MAX: usize = 400;
const TITLE_MAX: usize = 80;

/// Stop words in the most common languages of briefs.
const STOP_WORDS: &str = " a about across after all also an and any are as at be been before but by can could do does each for from had has \
    have he her his how i if in into is it its just like make may more most must my no not of on one only or other our out over per \
    please she should so some such than that the their them then there these they this those through to too two under up us use very was \
    we were what when where which while who will with without would you your \
    aber als am auf aus bei bis das dass dem den der des die durch ein eine einem einen einer eines er es für hat ich im in ist \
    ja mit nach nicht noch nur oder sehr sich sie sind so über um und uns unter von vor was wenn wer wie wir wird zu zum zur \
    au aux avec ce ces cette comme dans de du elle en est et il ils je la le les leur mais ne nous on ou par pas plus pour que qui sa \
    se ses son sur un une vous al como con del desde donde el ella entre era esta este ha las lo los más muy para pero por porque se \
    sin sobre su sus también una uno y ya ";

/// Aspects of a picture, each with the words that show that a brief covers it, and the proposals if
/// it does not.
const DIRECTIONS: [(&str, &[&str], &[&str]); 4] = [
    (
        "Light",
        &["light", "sun", "shadow", "dusk", "dawn", "night", "glow", "licht", "lumière", "luz"],
        &[
            "soft light from a north window",
            "low sun from the left, long shadows",
            "even light of an overcast day",
            "one warm lamp in a dark room",
        ],
    ),
    (
        "Framing",
        &["shot", "close", "wide", "lens", "view", "angle", "portrait", "crop", "frame"],
        &[
            "wide shot, low horizon, the subject small",
            "close-up, the background out of focus",
            "straight from the front, symmetrical",
            "from above, with room around the subject",
        ],
    ),
    (
        "Mood",
        &["calm", "mood", "quiet", "loud", "joy", "warm", "cold", "bold", "playful", "serious"],
        &["quiet and exact", "warm and close", "bold and bare", "light and playful"],
    ),
    (
        "Palette",
        &[
            "colour", "color", "palette", "red", "blue", "green", "yellow", "black", "white", "gold", "pink", "orange",
            "farbe",
        ],
        &[
            "chalk, moss, ink blue, brass",
            "clay, sand, smoke, a spot of vermilion",
            "ice, slate, pine, a little copper",
            "cream, rose, plum, leaf green",
        ],
    ),
];

/// Questions that a brief should answer, each with the words that show that it does.
const QUESTIONS: [(&str, &[&str]); 4] = [
    ("Who is it for?", &["audience", "for", "customer", "people", "kunden", "für", "pour", "para"]),
    ("What are they to do next?", &["buy", "book", "visit", "join", "order", "sign", "try", "call", "kaufen"]),
    (
        "Where will it be seen?",
        &["poster", "web", "website", "social", "print", "banner", "story", "billboard", "instagram"],
    ),
    ("What must not be shown?", &["no", "not", "without", "never", "avoid", "kein", "keine", "ohne", "sans", "sin"]),
];

/// The outline of a prompt with its inputs, each a label and a text.
///
/// The Markdown contains a title, the sentences of the brief, the inputs, key words, headlines and
/// copy made of the brief's own words, proposals for a picture, and open questions. Empty sections
/// are omitted.
pub fn outline(prompt: &str, inputs: &[(&str, &str)]) -> String {
    let brief = tidy(prompt);
    let given: Vec<(String, String)> = inputs.iter().map(|(label, text)| (tidy(label), tidy(text))).collect();
    let sentences: Vec<&str> = brief.unicode_sentences().map(str::trim).filter(|it| !it.is_empty()).collect();
    let everything = given.iter().fold(brief.clone(), |all, (_, text)| all + " " + text);
    let keywords = keywords(&everything);
    let mut sheet = Sheet::default();
    let title = sentences.first().map_or("Untitled".to_owned(), |first| excerpt(bare(first), TITLE_MAX));
    sheet.line(&format!("# {title}"));
    let copy = sentences.iter().take(SENTENCES_MAX).map(|sentence| excerpt(sentence, EXCERPT_MAX));
    let more = (sentences.len() > SENTENCES_MAX).then(|| "…".to_owned());
    sheet.list("Brief", copy.chain(more));
    let given = given.iter().filter(|(_, text)| !text.is_empty());
    sheet.list(
        "Given",
        given.map(|(label, text)| format!("**{}:** {}", excerpt(label, TITLE_MAX), excerpt(text, EXCERPT_MAX))),
    );
    sheet.list("Key words", (!keywords.is_empty()).then(|| keywords.join(", ")));
    sheet.list("Headline options", headlines(&title, &keywords));
    sheet.list("Copy", copy_of(&sentences));
    let words: Vec<String> = everything.unicode_words().map(str::to_lowercase).collect();
    let says = |known: &[&str]| words.iter().any(|word| known.contains(&word.as_str()));
    let chance = hash(&everything);
    let directions = DIRECTIONS.iter().enumerate().filter(|(_, (_, known, _))| !says(known));
    // Each aspect uses a different part of the hash.
    let proposed = |(index, (name, _, choices)): (usize, &(&str, &[&str], &[&str]))| {
        format!("{name}: {}", choices[(chance >> (16 * index)) as usize % choices.len()])
    };
    sheet.list("For the picture", directions.map(proposed));
    sheet.list(
        "Open questions",
        QUESTIONS.iter().filter(|(_, known)| !says(known)).map(|(question, _)| (*question).to_owned()),
    );
    sheet.finish()
}

/// Lines within the limit, with space reserved for the note.
#[derive(Default)]
struct Sheet {
    text: String,
    units: usize,
    is_full: bool,
}

impl Sheet {
    /// Adds a line. If it does not fit, adds once a line that says that lines are omitted.
    fn line(&mut self, line: &str) {
        let units = |line: &str| line.encode_utf16().count() + 1;
        let kept = units(LEFT_OUT) + units(NOTE) + 1;
        if self.is_full {
            return;
        }
        self.is_full = self.units + units(line) + kept > MAX;
        let line = if self.is_full { LEFT_OUT } else { line };
        self.units += units(line);
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Adds a section, unless it is empty.
    fn list(&mut self, title: &str, entries: impl IntoIterator<Item = String>) {
        for (index, entry) in entries.into_iter().enumerate() {
            if index == 0 {
                self.line("");
                self.line(&format!("## {title}"));
            }
            self.line(&format!("- {entry}"));
        }
    }

    fn finish(self) -> String {
        format!("{}\n{NOTE}", self.text)
    }
}

/// A text in one line, without control characters and without the marks of headings and lists.
fn tidy(text: &str) -> String {
    let is_gap = |character: char| character.is_whitespace() || character.is_control();
    let lines =
        text.lines().map(|line| line.trim_start_matches(|it: char| is_gap(it) || matches!(it, '#' | '*' | '>' | '•')));
    let words: Vec<&str> = lines.flat_map(|line| line.split(is_gap)).filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

/// The sentence without its full stop.
fn bare(sentence: &str) -> &str {
    sentence.trim_end_matches(['.', '。', '।', '۔'])
}

/// The beginning of a text with an ellipsis, at most `max` UTF-16 code units. It is cut between
/// words if that keeps at least half of it.
fn excerpt(text: &str, max: usize) -> String {
    if text.encode_utf16().count() <= max {
        return text.to_owned();
    }
    let mut units = 0;
    let mut fitting = 0;
    for (at, cluster) in text.grapheme_indices(true) {
        units += cluster.encode_utf16().count();
        if units + 1 > max {
            break;
        }
        fitting = at + cluster.len();
    }
    let kept = &text[..fitting];
    let word = kept.rfind(' ').filter(|at| *at > fitting / 2).unwrap_or(fitting);
    format!("{}…", kept[..word].trim_end())
}

/// The most frequent words. Equally frequent words are in order of appearance.
fn keywords(text: &str) -> Vec<String> {
    let mut found: Vec<(String, usize)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for word in text.unicode_words().map(str::to_lowercase) {
        let is_telling = (3..=40).contains(&word.chars().count()) && word.chars().any(char::is_alphabetic);
        if !is_telling || STOP_WORDS.split_whitespace().any(|stop| stop == word) {
            continue;
        }
        let place = *places.entry(word.clone()).or_insert(found.len());
        match found.get_mut(place) {
            Some((_, count)) => *count += 1,
            None => found.push((word, 1)),
        }
    }
    // A stable sort, so that equally frequent words keep the order of the text.
    found.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    found.into_iter().map(|(word, _)| word).take(KEYWORDS_MAX).collect()
}

/// Headlines made of the brief's own words, which suits any language.
fn headlines(title: &str, keywords: &[String]) -> Vec<String> {
    let clause =
        title.split([',', ';', ':', '،', '、', '，', '：']).next().map(str::trim).filter(|clause| *clause != title);
    let named: Vec<String> = keywords.iter().take(3).map(|word| capitalized(word)).collect();
    let mut headlines = vec![title.to_owned()];
    headlines.extend(clause.filter(|clause| !clause.is_empty()).map(str::to_owned));
    if let [first, second, ..] = &named[..] {
        headlines.push(format!("{first}. {second}."));
        headlines.push(format!("{second}: {first}"));
    }
    if let [_, _, _] = &named[..] {
        headlines.push(named.join(" · "));
    }
    headlines
}

/// Copy in two lengths, when there is more than a sentence.
fn copy_of(sentences: &[&str]) -> Vec<String> {
    let [first, _, ..] = sentences else { return Vec::new() };
    let long = sentences.iter().take(3).copied().collect::<Vec<_>>().join(" ");
    vec![format!("Short: {}", excerpt(first, EXCERPT_MAX)), format!("Long: {}", excerpt(&long, 2 * EXCERPT_MAX))]
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// The 64-bit FNV-1a hash of a text.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BRIEF: &str = "Launch a perfume for people who miss the forest, quietly. The perfume smells of fern and rain. \
                         No people in the picture. A website and a poster.";

    fn units(text: &str) -> usize {
        text.encode_utf16().count()
    }

    fn section<'a>(outline: &'a str, title: &str) -> Vec<&'a str> {
        let from = outline.lines().skip_while(|line| *line != format!("## {title}")).skip(1);
        from.take_while(|line| line.starts_with("- ")).map(|line| &line[2..]).collect()
    }

    #[test]
    fn a_brief_is_put_in_order() {
        let outline = outline(BRIEF, &[("Product", "Fern No. 5, a perfume"), ("Tone", "calm")]);
        assert!(outline.starts_with("# Launch a perfume for people who miss the forest, quietly\n"), "{outline}");
        assert_eq!(section(&outline, "Brief").len(), 4);
        assert_eq!(section(&outline, "Given"), ["**Product:** Fern No. 5, a perfume", "**Tone:** calm"]);
        assert!(section(&outline, "Key words")[0].starts_with("perfume, people, fern, "), "{outline}");
        let headlines = section(&outline, "Headline options");
        assert_eq!(headlines[1..3], ["Launch a perfume for people who miss the forest", "Perfume. People."]);
        assert!(section(&outline, "Copy")[0].starts_with("Short: Launch a perfume"));
        assert!(outline.ends_with(NOTE));
    }

    #[test]
    fn only_what_the_brief_leaves_open_is_proposed_and_asked() {
        let outline = outline(BRIEF, &[("Tone", "calm")]);
        let directions = section(&outline, "For the picture");
        let names: Vec<&str> = directions.iter().filter_map(|line| line.split(':').next()).collect();
        assert_eq!(names, ["Light", "Framing", "Palette"], "the tone says the mood");
        assert_eq!(section(&outline, "Open questions"), ["What are they to do next?"]);
    }

    #[test]
    fn the_same_brief_gives_the_same_outline_and_another_one_another() {
        let first = outline(BRIEF, &[("a", "b")]);
        assert_eq!(first, outline(BRIEF, &[("a", "b")]));
        let proposed: std::collections::BTreeSet<String> = (0..40)
            .map(|index| section(&outline(&format!("Chair {index}"), &[]), "For the picture").join("\n"))
            .collect();
        assert!(proposed.len() > 10, "{}", proposed.len());
    }

    #[test]
    fn nothing_gives_a_whole_outline() {
        for empty in ["", " \n\t", "\u{0}\u{7}", "# \n*"] {
            let outline = outline(empty, &[("", ""), ("label", " ")]);
            assert!(outline.starts_with("# Untitled\n") && outline.ends_with(NOTE), "{outline}");
            assert!(!outline.contains("## Given") && !outline.contains("## Brief"), "{outline}");
        }
    }

    #[test]
    fn hostile_text_stays_in_its_lines() {
        let hostile = "# injected\n## Given\n- x\r\u{0}\u{1b}[31m\u{2028}</script>{{key}} \u{202e}abc";
        let outline = outline(hostile, &[("# label\n## Brief", hostile)]);
        assert_eq!(outline.lines().filter(|line| *line == "## Given").count(), 1);
        assert_eq!(outline.lines().filter(|line| line.starts_with("# ")).count(), 1);
        assert!(!outline.chars().any(|character| character.is_control() && character != '\n'));
    }

    #[test]
    fn scripts_without_spaces_have_sentences_too() {
        let outline = outline("雨上がりの京都の路地。提灯の光が石畳に映る。", &[]);
        assert!(outline.starts_with("# 雨上がりの京都の路地\n"), "{outline}");
        assert_eq!(section(&outline, "Brief").len(), 2);
    }

    #[test]
    fn long_words_and_texts_are_excerpts() {
        for prompt in ["x".repeat(8000), "word ".repeat(1600), "👩‍👩‍👧‍👦".repeat(300), "One. Two. Three. Four. ".repeat(300)]
        {
            let outline = outline(&prompt, &[("Input", &prompt)]);
            assert!(units(&outline) < 8000, "fit for the next prompt: {}", units(&outline));
            assert!(outline.lines().all(|line| units(line) <= 2 * EXCERPT_MAX + 12));
        }
    }

    #[test]
    fn an_excerpt_is_whole_at_the_limit_and_cut_above() {
        assert_eq!(excerpt("abcde fghij", 11), "abcde fghij");
        assert_eq!(excerpt("abcdefgh ij", 10), "abcdefgh…");
        assert_eq!(excerpt("ab cdefghij", 10), "ab cdefgh…");
        assert_eq!(excerpt("🦊🦊🦊", 6), "🦊🦊🦊");
        assert_eq!(excerpt("🦊🦊🦊", 5), "🦊🦊…");
    }

    #[test]
    fn an_outline_is_whole_below_and_at_the_limit_and_cut_above() {
        let text = "y".repeat(EXCERPT_MAX);
        // Lengthens the last label one character at a time until the limit is exceeded.
        let with = |last: usize| {
            let mut inputs = vec![("label".to_owned(), text.as_str()); 56];
            inputs.push(("l".to_owned(), &text[..last]));
            let inputs: Vec<(&str, &str)> = inputs.iter().map(|(label, text)| (label.as_str(), *text)).collect();
            outline("Chairs.", &inputs)
        };
        let lengths: Vec<usize> = (1..=EXCERPT_MAX).step_by(57).map(|last| units(&with(last))).collect();
        assert!(lengths.iter().all(|length| *length <= MAX));
        let many = vec![("label", text.as_str()); 1000];
        let cut = outline("Chairs.", &many);
        assert!((MAX - EXCERPT_MAX - 100..=MAX).contains(&units(&cut)), "{}", units(&cut));
        assert!(cut.contains(&format!("{LEFT_OUT}\n\n{NOTE}")));
        assert_eq!(cut.lines().filter(|line| *line == LEFT_OUT).count(), 1);
        assert!(!with(1).contains(LEFT_OUT));
    }

    #[test]
    fn the_sheet_takes_exactly_what_fits() {
        let kept = units(LEFT_OUT) + 1 + units(NOTE) + 1 + 1;
        for (extra, is_cut) in [(0, false), (1, true)] {
            let mut sheet = Sheet::default();
            sheet.line(&"z".repeat(MAX - kept - 1 + extra));
            assert_eq!(sheet.is_full, is_cut);
            sheet.line("more");
            let text = sheet.finish();
            assert!(units(&text) <= MAX && text.ends_with(NOTE) && text.contains(LEFT_OUT));
        }
    }
}
