//! Splits a prompt into a headline and a body.

use unicode_script::{Script, UnicodeScript};
use unicode_segmentation::UnicodeSegmentation;

/// The maximum width of a headline in narrow letters. The rest becomes part of the body.
const HEADLINE_MAX: usize = 96;

/// A shorter sentence does not stand alone if another follows, because it is a name, a number or an
/// abbreviation such as "Dr.".
const SENTENCE_MIN: usize = 14;

/// The minimum length of a clause after which the headline may be broken.
const CLAUSE_MIN: usize = 28;

/// The parts of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Headline {
    pub(super) headline: String,
    /// The rest of the prompt with one line per paragraph; may be empty.
    pub(super) body: String,
}

impl Headline {
    /// Splits a prompt after its first sentence. A prompt without words gets the headline
    /// `otherwise`.
    pub(super) fn new(prompt: &str, otherwise: &str) -> Self {
        let lines: Vec<String> = prompt.split(is_line_end).map(tidy).filter(|line| !line.is_empty()).collect();
        let Some((first, others)) = lines.split_first() else {
            return Self { headline: otherwise.to_owned(), body: String::new() };
        };
        let (headline, rest) = headed(first);
        let rest = Some(rest.trim()).filter(|rest| !rest.is_empty());
        let body: Vec<&str> = rest.into_iter().chain(others.iter().map(String::as_str)).collect();
        Self { headline, body: body.join("\n") }
    }
}

fn is_line_end(character: char) -> bool {
    matches!(character, '\n'..='\r' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Reduces white space to single spaces, and removes control characters and the Markdown markers of
/// headings, lists and quotes.
fn tidy(line: &str) -> String {
    let words: Vec<&str> = line.split(|character: char| character.is_whitespace() || character.is_control()).collect();
    let mut words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    if words.first().is_some_and(|word| matches!(*word, "-" | "*" | ">" | "•") || word.chars().all(|mark| mark == '#'))
    {
        words.remove(0);
    }
    words.join(" ")
}

/// The headline at the beginning of a line, and the rest of the line.
fn headed(line: &str) -> (String, &str) {
    let sentences = line.split_sentence_bounds().scan(0, |end, sentence| {
        *end += sentence.len();
        Some(*end)
    });
    let mut ends = sentences.skip_while(|end| columns(&line[..*end]) < SENTENCE_MIN);
    let end = ends.next().unwrap_or(line.len());
    let sentence = line[..end].trim_end();
    if columns(sentence) <= HEADLINE_MAX {
        // A headline needs no full stop. Other punctuation marks carry meaning and stay.
        let bare = sentence.strip_suffix(['.', '。', '।', '۔']).filter(|bare| !bare.ends_with(['.', '。']));
        return (bare.unwrap_or(sentence).to_owned(), &line[end..]);
    }
    let end = cut(sentence);
    (format!("{}…", sentence[..end].trim_end_matches(|it: char| it.is_whitespace() || is_clause_end(it))), &line[end..])
}

/// The position at which a sentence that is too wide is broken: after the last clause that fits,
/// otherwise after a word, otherwise after a grapheme cluster.
fn cut(sentence: &str) -> usize {
    let mut width = 0;
    let (mut clause, mut word, mut cluster) = (0, 0, 0);
    for (start, part) in sentence.split_word_bound_indices() {
        if width <= HEADLINE_MAX {
            word = start;
        }
        for (at, piece) in part.grapheme_indices(true) {
            width += columns(piece);
            if width <= HEADLINE_MAX {
                cluster = start + at + piece.len();
                if width >= CLAUSE_MIN && piece.ends_with(is_clause_end) {
                    clause = cluster;
                }
            }
        }
    }
    [clause, word, cluster].into_iter().find(|end| *end > 0).unwrap_or(sentence.len())
}

fn is_clause_end(character: char) -> bool {
    matches!(character, ',' | ';' | ':' | '،' | '؛' | '、' | '，' | '；' | '：' | '–' | '—')
}

/// The width of a text in narrow letters.
fn columns(text: &str) -> usize {
    text.graphemes(true).map(|cluster| if cluster.chars().any(is_wide) { 2 } else { 1 }).sum()
}

/// Returns `true` if a letter is as wide as it is high.
fn is_wide(letter: char) -> bool {
    matches!(letter.script(), Script::Han | Script::Hiragana | Script::Katakana | Script::Hangul)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(prompt: &str) -> (String, String) {
        let words = Headline::new(prompt, "Nothing");
        (words.headline, words.body)
    }

    fn is(prompt: &str, headline: &str, body: &str) {
        assert_eq!(split(prompt), (headline.to_owned(), body.to_owned()));
    }

    #[test]
    fn the_first_sentence_heads_the_rest() {
        is("A red fox in fresh snow. Low sun, long shadows.", "A red fox in fresh snow", "Low sun, long shadows.");
        is("A red fox in the snow", "A red fox in the snow", "");
        is("Is this a fox in the snow? Yes!", "Is this a fox in the snow?", "Yes!");
        is("雪の中の赤い狐が走っている。朝の光。", "雪の中の赤い狐が走っている", "朝の光。");
        is("ثعلب أحمر في الثلج. ضوء الصباح", "ثعلب أحمر في الثلج", "ضوء الصباح");
        is("Wait for it to come... Then go.", "Wait for it to come...", "Then go.");
    }

    #[test]
    fn short_beginnings_do_not_stand_alone() {
        is("Mr. Fox. He is out in the snow. Run.", "Mr. Fox. He is out in the snow", "Run.");
    }

    #[test]
    fn lines_are_paragraphs_and_their_marks_are_dropped() {
        is(
            "# Spring campaign\r\n\n- light\u{7}  linen\n* sand > stone",
            "Spring campaign",
            "light linen\nsand > stone",
        );
        is("-5 degrees and falling", "-5 degrees and falling", "");
    }

    #[test]
    fn a_prompt_without_words_gets_a_heading() {
        is("", "Nothing", "");
        is(" \n\t\u{0} # \n", "Nothing", "");
    }

    #[test]
    fn long_sentences_break_behind_a_clause_a_word_or_a_letter() {
        let clause = format!("A wide hall of mirrors and chandeliers, {}", "gold and glass and ".repeat(8));
        let (headline, body) = split(&clause);
        assert_eq!(headline, "A wide hall of mirrors and chandeliers…");
        assert!(body.starts_with("gold and glass"));
        let (headline, body) = split(&"meadow ".repeat(40));
        assert!(headline.ends_with("meadow…") && columns(&headline) <= HEADLINE_MAX + 1, "{headline}");
        assert_eq!(headline.matches("meadow").count() + body.matches("meadow").count(), 40);
        let (headline, body) = split(&"x".repeat(8000));
        assert_eq!((headline.len(), body.len()), (HEADLINE_MAX + "…".len(), 8000 - HEADLINE_MAX));
        let (headline, _) = split(&"漢".repeat(100));
        assert_eq!(headline.chars().count(), HEADLINE_MAX / 2 + 1);
    }

    #[test]
    fn the_widest_headline_is_kept_whole() {
        let fits = "x".repeat(HEADLINE_MAX);
        assert_eq!(split(&fits), (fits, String::new()));
    }
}
