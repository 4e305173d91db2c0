//! The form that a prompt asks for: parts with their labels and limits.

use domain::recipe::template::Template;
use unicode_segmentation::UnicodeSegmentation;

/// The maximum number of parts.
pub(super) const PARTS_MAX: usize = 16;

/// The maximum number of words of a label.
const LABEL_WORDS_MAX: usize = 5;

/// Stands for a placeholder in the literal text of a template.
const PLACE: &str = "\u{fffc}";

/// Labels that describe the requested text (audience, tone, …). They do not start a part of it.
const CONTEXT: [&str; 18] = [
    "audience",
    "brand",
    "brief",
    "context",
    "example",
    "format",
    "goal",
    "important",
    "input",
    "language",
    "mood",
    "note",
    "product",
    "rule",
    "rules",
    "style",
    "tone",
    "voice",
];

/// Verbs that begin a request for text.
const VERBS: [&str; 13] = [
    "compose", "create", "draft", "generate", "give", "include", "list", "make", "produce", "provide", "return",
    "suggest", "write",
];

/// Words that end the name of an item, because what follows describes it.
const NAME_ENDS: [&str; 11] =
    ["about", "based", "between", "for", "from", "that", "under", "using", "which", "with", "within"];

/// Numbers as words, from one.
const NUMBERS: [&str; 12] =
    ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];

/// The limits of a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) words: Option<usize>,
    pub(super) sentences: Option<usize>,
    pub(super) characters: Option<usize>,
    pub(super) hashtags: Option<usize>,
}

impl Limits {
    /// The limits that a text names: numbers before "words", "sentences", "characters" and "hashtags".
    fn parse(text: &str) -> Self {
        let mut limits = Self::default();
        let words: Vec<String> = text.split_whitespace().map(plain).collect();
        for (at, word) in words.iter().enumerate() {
            let limit = match word.strip_suffix('s').unwrap_or(word) {
                "word" => &mut limits.words,
                "sentence" => &mut limits.sentences,
                "character" | "letter" => &mut limits.characters,
                "hashtag" => &mut limits.hashtags,
                _ => continue,
            };
            // An adjective may follow the number: "one short sentence".
            let before = words[at.saturating_sub(2)..at].iter().rev();
            *limit = before.filter_map(|word| number(word)).next().or(*limit);
        }
        limits
    }

    fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// These limits, and those of `other` where there are none.
    fn or(self, other: Self) -> Self {
        Self {
            words: self.words.or(other.words),
            sentences: self.sentences.or(other.sentences),
            characters: self.characters.or(other.characters),
            hashtags: self.hashtags.or(other.hashtags),
        }
    }
}

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    /// The label that precedes it; may be empty.
    pub(super) label: String,
    pub(super) limits: Limits,
}

/// The form that a prompt asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Parts, at least one.
    Parts { parts: Vec<Part>, is_numbered: bool },
    /// Colors with their hex values: the role of each.
    Colors(Vec<String>),
    /// A pair of typefaces.
    Typefaces,
}

impl Form {
    /// Reads the form from the literal text of a template. Texts that are inserted into it do not count.
    pub(super) fn parse(template: &str) -> Self {
        let text = Template::parse(template).render(|_| Some(PLACE)).replace("**", "");
        let statements: Vec<&str> = text.lines().flat_map(statements).collect();
        let lower = text.to_lowercase();
        if lower.contains("hex") && (lower.contains("color") || lower.contains("colour")) {
            return Self::Colors(color_roles(&statements));
        }
        let mut draft = Draft::default();
        statements.iter().for_each(|statement| draft.read(statement));
        if draft.is_empty() && (lower.contains("typeface") || lower.contains("font")) {
            return Self::Typefaces;
        }
        let is_numbered = lower.contains("numbered") || text.lines().filter(|line| is_numbered(line)).count() > 1;
        draft.form(is_numbered)
    }
}

/// Limits that the statements of a prompt ask for.
#[derive(Default)]
struct Draft {
    /// Parts of statements of their own, such as `Headline: at most 6 words`.
    labelled: Vec<Part>,
    /// Parts of a list, such as `a headline, a caption`.
    listed: Vec<Part>,
    /// The number of parts without labels, such as `three slogans`.
    count: usize,
    /// Limits of each part.
    each: Limits,
    /// Limits of the whole text.
    total: Limits,
}

impl Draft {
    fn is_empty(&self) -> bool {
        self.labelled.is_empty() && self.listed.is_empty()
    }

    fn read(&mut self, statement: &str) {
        let (intro, rest) = split_label(statement).unwrap_or((statement, ""));
        let is_each = intro.split_whitespace().map(plain).any(|word| word == "each" || word == "per");
        let is_request = intro.split_whitespace().next().is_some_and(|word| VERBS.contains(&&*plain(word)));
        if is_each {
            self.each = self.each.or(Limits::parse(statement));
            if !is_request {
                return;
            }
        }
        let items = items(rest);
        let asks = label_of(intro).filter(|_| !rest.is_empty() && !is_request);
        if let Some(label) = asks {
            let is_context = rest.contains(PLACE) || CONTEXT.contains(&&*label.to_lowercase());
            if !is_context {
                self.labelled.push(Part { label, limits: Limits::parse(statement) });
            }
            return;
        }
        if rest.is_empty() && !is_request && is_bare_label(statement) {
            self.labelled.extend(label_of(statement).map(|label| Part { label, limits: Limits::parse(statement) }));
            return;
        }
        if self.listed.is_empty() && items.len() > 1 {
            self.listed = items;
            self.total = self.total.or(Limits::parse(intro));
            return;
        }
        if is_request && self.listed.is_empty() {
            let asked = intro.split_once(' ').map_or("", |(_, asked)| asked);
            let items = self::items(asked);
            if items.len() > 1 && begins_items(asked) {
                self.listed = items;
                return;
            }
            let count = asked.split_whitespace().next().and_then(|word| number(&plain(word)));
            // "Write two sentences" asks for one text.
            let is_limit = !Limits::parse(&asked.split_whitespace().take(3).collect::<Vec<_>>().join(" ")).is_empty();
            self.count = self.count.max(count.filter(|_| !is_limit).unwrap_or_default().min(PARTS_MAX));
        }
        if !is_each {
            self.total = self.total.or(Limits::parse(statement));
        }
    }

    fn form(mut self, is_numbered: bool) -> Form {
        // A single label without a limit is as likely an instruction.
        if let [Part { limits, .. }] = &self.labelled[..]
            && limits.is_empty()
        {
            self.labelled.clear();
        }
        let mut parts = if self.labelled.is_empty() { self.listed } else { self.labelled };
        parts.truncate(PARTS_MAX);
        let is_counted = parts.is_empty() && self.count > 1;
        if parts.is_empty() {
            let part = Part { label: String::new(), limits: Limits::default() };
            parts = vec![part; self.count.max(1)];
        }
        let count = parts.len();
        for part in &mut parts {
            part.limits = part.limits.or(self.each);
            if count == 1 || is_counted {
                part.limits = part.limits.or(self.total);
            } else if let Some(words) = self.total.words {
                let share = (words / count).saturating_sub(part.label.split_whitespace().count()).max(1);
                part.limits.words = Some(part.limits.words.map_or(share, |own| own.min(share)));
            }
        }
        Form::Parts { parts, is_numbered: is_numbered || is_counted }
    }
}

/// The statements of a line: its sentences. Slashes separate statements too, unless they separate the items of a list.
fn statements(line: &str) -> impl Iterator<Item = &str> {
    let line = unmarked(line);
    let first = line.split(" / ").next().unwrap_or(line);
    let pieces: Vec<&str> = match Limits::parse(first).is_empty() {
        true => vec![line],
        false => line.split(" / ").collect(),
    };
    pieces.into_iter().flat_map(|piece| piece.unicode_sentences()).map(str::trim).filter(|it| !it.is_empty())
}

/// The line without the mark of a list or heading.
pub(super) fn unmarked(line: &str) -> &str {
    let line = line.trim().trim_start_matches(['*', '>', '•']);
    let heading = line.trim_start_matches('#');
    let line = if heading.starts_with(' ') { heading.trim_start() } else { line };
    let line = line.strip_prefix("- ").unwrap_or(line);
    match is_numbered(line) {
        true => line.trim_start().trim_start_matches(|it: char| it.is_ascii_digit()).get(1..).unwrap_or_default(),
        false => line,
    }
    .trim_start()
}

/// Returns `true` if the line begins with a number and a full stop or parenthesis.
fn is_numbered(line: &str) -> bool {
    let rest = line.trim_start().trim_start_matches(|it: char| it.is_ascii_digit());
    rest.len() < line.trim_start().len() && (rest.starts_with(". ") || rest.starts_with(") "))
}

/// The text before the first colon that is not in parentheses, and the text after it.
pub(super) fn split_label(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0_usize;
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ':' | '：' if depth == 0 => return Some((&text[..at], text[at + letter.len_utf8()..].trim())),
            _ => {}
        }
    }
    None
}

/// The label in the form in which it is written, without articles and what follows in parentheses; `None` if the text
/// is none.
pub(super) fn label_of(text: &str) -> Option<String> {
    let text = text.split('(').next().unwrap_or_default().trim().trim_end_matches(['.', ',', ';', '!', '?']);
    let words: Vec<&str> = text.split_whitespace().collect();
    let words = match words.split_first() {
        Some((first, rest)) if ["a", "an", "the", "one", "and", "or"].contains(&&*plain(first)) => rest,
        _ => &words,
    };
    let is_label = (1..=LABEL_WORDS_MAX).contains(&words.len())
        && words[0].starts_with(char::is_alphabetic)
        && number(&plain(words[0])).is_none()
        && !text.contains(PLACE);
    is_label.then(|| capitalized(&words.join(" ")))
}

/// Returns `true` if a statement without a colon is the label of a part: a few words that do not form a sentence.
fn is_bare_label(statement: &str) -> bool {
    let name = statement.split('(').next().unwrap_or_default().trim();
    name.starts_with(char::is_uppercase) && !name.ends_with(['.', '!', '?']) && name.split_whitespace().count() <= 4
}

/// The items of a list, each as a part; empty if the text is not a list of names.
fn items(text: &str) -> Vec<Part> {
    let separators: &[char] = if text.contains(',') { &[',', ';'] } else { &['/', ';', '\u{0}'] };
    let mut pieces = split_outside(text, separators);
    if let Some(last) = pieces.pop() {
        match [" and ", " & ", " plus "].iter().find_map(|word| split_last(last, word)) {
            Some((before, after)) => pieces.extend([before, after]),
            None => pieces.push(last),
        }
    }
    let part = |piece: &str| {
        let limits = Limits::parse(piece);
        let piece = piece.trim().trim_start_matches("and ").trim_start_matches("or ");
        let mut name: Vec<&str> = Vec::new();
        for word in piece.split('(').next().unwrap_or_default().split_whitespace() {
            let is_of_limit = word == "of" && !limits.is_empty();
            if !name.is_empty() && (NAME_ENDS.contains(&&*plain(word)) || is_of_limit) || word.contains(PLACE) {
                break;
            }
            name.push(word);
        }
        if limits.hashtags.is_some() && name.first().is_some_and(|word| number(&plain(word)).is_some()) {
            name.remove(0);
        }
        label_of(&name.join(" ")).map(|label| Part { label, limits })
    };
    let parts: Option<Vec<Part>> = pieces.into_iter().map(part).collect();
    parts.unwrap_or_default()
}

/// Returns `true` if the text after a verb begins with an article or a number, as the names of a list do.
fn begins_items(text: &str) -> bool {
    let first = text.split_whitespace().next().map(plain).unwrap_or_default();
    ["a", "an", "the"].contains(&&*first) || number(&first).is_some()
}

/// The pieces of a text between separators that are not in parentheses.
fn split_outside<'a>(text: &'a str, separators: &[char]) -> Vec<&'a str> {
    let mut depth = 0_usize;
    text.split(|letter: char| {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && separators.contains(&letter)
    })
    .collect()
}

/// Splits at the last `word` that is not in parentheses.
fn split_last<'a>(text: &'a str, word: &str) -> Option<(&'a str, &'a str)> {
    let (before, after) = text.rsplit_once(word)?;
    (!after.contains(')') && !before.trim().is_empty()).then_some((before, after))
}

/// The roles of colors, such as twice `lead` for "two that lead"; of unnamed roles as many as the prompt asks for.
fn color_roles(statements: &[&str]) -> Vec<String> {
    let asked = statements.iter().find(|it| it.to_lowercase().contains("colo")).copied().unwrap_or_default();
    let (intro, rest) = split_label(asked).unwrap_or((asked, ""));
    let words: Vec<String> = intro.split_whitespace().map(plain).collect();
    let count = words.iter().position(|word| word.starts_with("color") || word.starts_with("colour"));
    let count = count.and_then(|at| number(words.get(at.checked_sub(1)?)?));
    let mut roles = Vec::new();
    for piece in split_outside(rest, &[',', ';']) {
        let words: Vec<&str> = piece.split_whitespace().map(|word| word.trim_matches(['.', '!'])).collect();
        let times = words.first().and_then(|word| number(&plain(word)));
        let role = &words[usize::from(times.is_some()).min(words.len())..];
        let role = role.iter().skip_while(|word| matches!(**word, "that" | "which" | "for" | "to" | "and"));
        let role = role.copied().collect::<Vec<_>>().join(" ");
        roles.extend(std::iter::repeat_n(role, times.unwrap_or(1)));
    }
    match count {
        Some(count) if count != roles.len() => vec![String::new(); count.min(PARTS_MAX)],
        None if roles.len() < 2 => vec![String::new(); 5],
        _ => roles,
    }
}

/// The number that a word spells, at least 1. Of a range it is the end.
fn number(word: &str) -> Option<usize> {
    let word = word.rsplit(['-', '–']).next().unwrap_or(word);
    let spelled = NUMBERS.iter().position(|name| *name == word).map(|at| at + 1);
    spelled.or_else(|| word.parse().ok()).filter(|number| *number > 0)
}

/// The word in lower case, without punctuation around it.
pub(super) fn plain(word: &str) -> String {
    word.trim_matches(|it: char| !it.is_alphanumeric()).to_lowercase()
}

pub(super) fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
