//! The words of a text: those of its inputs, within limits.

use std::collections::HashMap;

use unicode_segmentation::UnicodeSegmentation;

use super::form::{Limits, capitalized, unmarked};

/// The limits of a text for which the prompt names none.
const WORDS: usize = 40;
const SENTENCES: usize = 2;

/// Up to this limit of words, a text is a headline, which ends without a full stop.
const HEADLINE_WORDS: usize = 8;

/// The maximum length of a part in UTF-16 code units.
const PART_MAX: usize = 1200;

/// Stop words in the most common languages of briefs.
const STOP_WORDS: &str = " a about across after all also an and any are as at be been before but by can could do does each for from had has \
    have he her his how i if in into is it its just like make may more most must my no not of on one only or other our out over per \
    please she should so some such than that the their them then there these they this those through to too two under until up us use very was \
    we were what when where which while who will with without would you your \
    aber als am auf aus bei bis das dass dem den der des die durch ein eine einem einen einer eines er es für hat ich im in ist \
    ja mit nach nicht noch nur oder sehr sich sie sind so über um und uns unter von vor was wenn wer wie wir wird zu zum zur \
    au aux avec ce ces cette comme dans de du elle en est et il ils je la le les leur mais ne nous on ou par pas plus pour que qui sa \
    se ses son sur un une vous al como con del desde donde el ella entre era esta este ha las lo los más muy para pero por porque se \
    sin sobre su sus también una uno y ya ";

/// The text from which parts are written.
pub(super) struct Source {
    sentences: Vec<String>,
    clauses: Vec<String>,
}

impl Source {
    pub(super) fn new(text: &str) -> Self {
        let lines = text.lines().map(|line| tidy(unmarked(line)));
        let sentences: Vec<String> = lines
            .flat_map(|line| line.unicode_sentences().map(|it| it.trim().to_owned()).collect::<Vec<_>>())
            .filter(|sentence| has_words(sentence))
            .collect();
        let clauses = sentences.iter().flat_map(|sentence| sentence.split(is_clause_end));
        let clauses = clauses.map(|clause| capitalized(clause.trim())).filter(|clause| has_words(clause)).collect();
        Self { sentences, clauses }
    }

    /// The clauses of the text.
    pub(super) fn clauses(&self) -> impl Iterator<Item = &str> {
        self.clauses.iter().map(String::as_str)
    }

    /// The text of part `at` of `of` parts. Each part has its own share of the sentences, or of the clauses if there are
    /// too few sentences. A part with room for the whole text has the whole text.
    pub(super) fn part(&self, at: usize, of: usize, limits: Limits) -> String {
        let tags = limits.hashtags.map(|count| self.hashtags(count)).unwrap_or_default();
        let most = limits.words.unwrap_or(if limits.sentences.is_some() { usize::MAX } else { WORDS });
        let most = most.saturating_sub(words(&tags)).max(1);
        let all: usize = self.sentences.iter().map(|it| words(it)).sum();
        let holds_all = limits.words.is_some() && limits.sentences.is_none() && all <= most;
        let units = if self.sentences.len() >= of { &self.sentences } else { &self.clauses };
        let share = match holds_all {
            true => &self.sentences[..],
            false if units.is_empty() => &[],
            false => {
                let from = at * units.len() / of;
                &units[from..((at + 1) * units.len() / of).max(from + 1)]
            }
        };
        let count = match (limits.sentences, limits.words) {
            (Some(count), _) => count,
            (None, Some(_)) => usize::MAX,
            (None, None) => SENTENCES,
        };
        let is_headline = limits.sentences.is_none() && limits.words.is_some_and(|words| words <= HEADLINE_WORDS);
        let mut text = String::new();
        for unit in share.iter().take(if is_headline { 1 } else { count }) {
            let room = most.saturating_sub(words(&text));
            if words(unit) > room && !text.is_empty() {
                break;
            }
            let unit = cut(unit, room);
            text = match (text.is_empty(), is_headline) {
                (true, true) => bare(unit).to_owned(),
                (true, false) => closed(unit),
                (false, _) => format!("{text} {}", closed(unit)),
            };
        }
        let text = match limits.characters {
            Some(most) => shortened(&text, most),
            None => shortened(&text, PART_MAX),
        };
        [text, tags].into_iter().filter(|it| !it.is_empty()).collect::<Vec<_>>().join(" ")
    }

    /// The most frequent words as hashtags. Equally frequent words are in order of appearance.
    pub(super) fn hashtags(&self, count: usize) -> String {
        let mut found: Vec<(String, usize)> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        for word in self.sentences.iter().flat_map(|sentence| sentence.unicode_words()).map(str::to_lowercase) {
            let is_distinctive = (3..=40).contains(&word.chars().count()) && word.chars().all(char::is_alphabetic);
            if !is_distinctive || is_stop_word(&word) {
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
        found.into_iter().take(count).map(|(word, _)| format!("#{word}")).collect::<Vec<_>>().join(" ")
    }
}

/// The number of words, by white space or by UAX 29, whichever is larger.
pub(super) fn words(text: &str) -> usize {
    text.unicode_words().count().max(text.split_whitespace().count())
}

pub(super) fn has_words(text: &str) -> bool {
    text.unicode_words().next().is_some()
}

/// A text in one line, without control characters.
pub(super) fn tidy(text: &str) -> String {
    let is_gap = |character: char| character.is_whitespace() || character.is_control();
    text.split(is_gap).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The beginning of a tidy text with at most `most` words: up to the end of a clause if that keeps half of them, otherwise
/// up to a word that can end a text.
pub(super) fn cut(text: &str, most: usize) -> &str {
    let (mut spaces, mut segments) = (0, 0);
    let (mut clause, mut word, mut whole) = (0, 0, 0);
    for (at, segment) in text.split_word_bound_indices() {
        let is_word = segment.chars().any(char::is_alphanumeric);
        spaces += usize::from(segment.starts_with(' '));
        segments += usize::from(is_word);
        let is_over = segments.max(spaces + 1) > most && !segment.starts_with(' ');
        if is_over {
            let end = [clause, word, whole].into_iter().find(|end| *end > 0);
            return trimmed(&text[..end.unwrap_or_default()]);
        }
        whole = at + segment.len();
        if segment.ends_with(is_clause_end) && 2 * segments >= most {
            clause = at;
        }
        if is_word && !is_stop_word(&segment.to_lowercase()) {
            word = at + segment.len();
        }
    }
    text
}

fn is_clause_end(letter: char) -> bool {
    matches!(letter, ',' | ';' | ':' | '،' | '؛' | '、' | '，' | '；' | '：' | '–' | '—')
}

fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.split_whitespace().any(|stop| stop == word)
}

fn trimmed(text: &str) -> &str {
    text.trim_end_matches(|it: char| it.is_whitespace() || is_clause_end(it))
}

/// The sentence without its full stop.
fn bare(sentence: &str) -> &str {
    trimmed(sentence.trim_end_matches(['.', '。', '।', '۔']))
}

/// The sentence with a full stop, unless it ends with punctuation.
fn closed(sentence: &str) -> String {
    let sentence = trimmed(sentence);
    match sentence.ends_with(char::is_alphanumeric) {
        true if sentence.is_ascii() || sentence.contains(' ') => format!("{sentence}."),
        _ => sentence.to_owned(),
    }
}

/// The beginning of a text of at most `most` UTF-16 code units. It is cut between words if that keeps half of it.
fn shortened(text: &str, most: usize) -> String {
    if text.encode_utf16().count() <= most {
        return text.to_owned();
    }
    let mut units = 0;
    let mut end = 0;
    for (at, cluster) in text.grapheme_indices(true) {
        units += cluster.encode_utf16().count();
        if units > most {
            break;
        }
        end = at + cluster.len();
    }
    let word = if text[end..].starts_with(' ') { Some(end) } else { text[..end].rfind(' ') };
    trimmed(&text[..word.filter(|at| 2 * at > end).unwrap_or(end)]).to_owned()
}
