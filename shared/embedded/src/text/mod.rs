//! The text model, `outline`. It answers a prompt in the form that the prompt asks for
//! (docs/reference/models.md#outline).
//!
//! **Guarantee.** A pure function: the same prompt and inputs give the same text of at most [`MAX`] characters, which fits
//! a text node. It has the parts that the prompt asks for, each on a line and within its limits of words and sentences.
//!
//! **Mechanism.** [`form`] reads labels and limits from the prompt's template, without the inserted texts. The words come
//! from the first text that the prompt inserts ([`source`]). For what a prompt asks about light, colors or typefaces,
//! [`design`] has proposals, from which a hash of the inputs selects. Words and sentences are segmented by UAX 29, which
//! works for any script; labels and limits are read in English.
//!
//! **Reason.** A Recipe whose text step precedes an image must run without a model, an API key or a network, and its text
//! must be useful in the next prompt and on a board.

mod design;
mod form;
mod source;
#[cfg(test)]
mod tests;

use domain::recipe::run::StepText;
use domain::recipe::template::Template;

use form::{Form, Part, label_of, split_label, unmarked};
use source::{Source, cut, has_words, tidy};

/// Maximum length of a text, in UTF-16 code units; the number of characters is never larger. It is the limit of a Recipe's
/// text output (docs/reference/limits.md#recipes-and-workflows).
pub const MAX: usize = domain::limits::RECIPE_TEXT_MAX;

/// Texts of calls to action.
const CALL: &str = "Learn more";

/// The number of hashtags if the prompt names none.
const HASHTAGS: usize = 3;

/// The text that a template of a prompt asks for, made from the texts of its inputs.
pub fn write(template: &str, given: &[StepText<'_>]) -> String {
    let content = content(template, given);
    let brief: String = given.iter().filter_map(|given| given.text).collect::<Vec<_>>().join("\n");
    let hash = hash(&brief);
    let source = Source::new(content);
    let (lines, is_numbered) = match Form::parse(template) {
        Form::Parts { parts, is_numbered } => (fill(&parts, &source, hash), is_numbered),
        Form::Colors(roles) => (design::colors(&roles, &brief), true),
        Form::Typefaces => (design::typefaces(template, hash), false),
    };
    let lines = lines.into_iter().enumerate().map(|(at, line)| match is_numbered {
        true => format!("{}. {line}", at + 1),
        false => line,
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The text that an image of a Recipe shows instead of its prompt: a headline, and a line for each paragraph below it.
/// Texts of earlier steps take precedence over inputs. A line whose label is part of the output's label is about this
/// output alone, and a line with the label "Headline" is the headline. `None` without texts.
pub fn caption(output: &str, given: &[StepText<'_>]) -> Option<String> {
    let is_made = given.iter().any(|given| given.is_made && given.text.is_some());
    let texts = given.iter().filter(|given| given.is_made == is_made).filter_map(|given| given.text);
    let lines: Vec<String> = texts
        .flat_map(str::lines)
        .map(|line| tidy(&unmarked(line).replace("**", "")))
        .filter(|line| !line.is_empty())
        .collect();
    let labelled = |line: &'_ String| {
        let (label, text) = split_label(line).filter(|(_, text)| !text.is_empty())?;
        Some((label_of(label)?, text.to_owned()))
    };
    let mut parts = lines.iter().filter_map(labelled);
    let of_output = |label: &str| {
        let mut names = output.split_whitespace();
        names.any(|name| name.eq_ignore_ascii_case(label))
    };
    if let Some((label, text)) = parts.find(|(label, _)| of_output(label)) {
        return Some(format!("{label}\n{text}"));
    }
    let is_headline = |line: &&String| labelled(line).is_some_and(|(label, _)| label.eq_ignore_ascii_case("headline"));
    let text_of = |line: &String| labelled(line).map_or_else(|| line.clone(), |(_, text)| text);
    match lines.iter().find(is_headline) {
        Some(headline) => {
            let rest = lines.iter().filter(|line| !std::ptr::eq(*line, headline)).map(text_of);
            Some(std::iter::once(text_of(headline)).chain(rest).collect::<Vec<_>>().join("\n"))
        }
        None if lines.is_empty() => None,
        None => Some(format!("{output}\n{}", lines.join("\n"))),
    }
}

/// The text that the prompt is about: the first that it inserts, otherwise the first that it uses. Without texts, it is the
/// label of an image.
fn content<'a>(template: &str, given: &[StepText<'a>]) -> &'a str {
    let template = Template::parse(template);
    let inserted = template.names().filter_map(|name| given.iter().find(|given| given.key == name));
    let named = inserted.chain(given).find_map(|given| given.text.filter(|text| has_words(text)));
    named.or_else(|| given.first().map(|given| given.label)).unwrap_or("Untitled")
}

/// The line of each part.
fn fill(parts: &[Part], source: &Source, hash: u64) -> Vec<String> {
    let special = |part: &Part| {
        let label = part.label.to_lowercase();
        let is_tags = label.contains("hashtag")
            || label.is_empty()
                && part.limits.hashtags.is_some()
                && part.limits.words.or(part.limits.sentences).is_none();
        let text = match () {
            () if label.contains("call to action") || label == "cta" || label == "button" => CALL.to_owned(),
            () if is_tags => source.hashtags(part.limits.hashtags.unwrap_or(HASHTAGS)),
            () => design::aspect(&label, source, hash)?,
        };
        Some(cut(&text, part.limits.words.unwrap_or(usize::MAX)).to_owned())
    };
    let specials: Vec<Option<String>> = parts.iter().map(special).collect();
    let of = specials.iter().filter(|text| text.is_none()).count();
    let mut at = 0..;
    let line = |(part, special): (&Part, Option<String>)| {
        let text = special.unwrap_or_else(|| source.part(at.next().unwrap_or_default(), of, part.limits));
        if part.label.is_empty() { text } else { format!("{}: {text}", part.label) }
    };
    parts.iter().zip(specials).map(line).collect()
}

/// The 64-bit FNV-1a hash of a text.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}
