//! Prompt templates: `{{key}}` is a placeholder for an input or an earlier output. Syntax:
//! `docs/reference/recipes.md#templates`.
//!
//! **Guarantee.** Inserted text is data: text that contains `{{key}}` is inserted unchanged, whatever the key.
//! **Mechanism.** A template is parsed once into literal text and placeholders. Rendering reads nothing else.
//!
//! A placeholder is `{{`, a name, `}}`; blanks around the name are ignored. `{{` without a matching `}}` is literal
//! text. In `{{{{a}}}}` the inner pair is the placeholder, so a prompt may contain other braces. Everything inside a
//! pair is a name, well formed or not, so that a misspelled placeholder is rejected and never sent to a model.

/// A parsed template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template<'a> {
    parts: Vec<Part<'a>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part<'a> {
    Literal(&'a str),
    Placeholder(&'a str),
}

impl<'a> Template<'a> {
    /// Parses a template. Every text is a valid template.
    pub fn parse(mut text: &'a str) -> Self {
        let mut parts = Vec::new();
        while let Some((open, close)) = next_place(text) {
            parts.push(Part::Literal(&text[..open]));
            parts.push(Part::Placeholder(text[open + 2..close].trim()));
            text = &text[close + 2..];
        }
        parts.push(Part::Literal(text));
        Self { parts }
    }

    /// The names of the placeholders, in order, with repetitions.
    pub fn names(&self) -> impl Iterator<Item = &'a str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Placeholder(name) => Some(*name),
            Part::Literal(_) => None,
        })
    }

    /// The text with each placeholder replaced by its `value`, or by nothing when it has none.
    pub fn render<'v>(&self, value: impl Fn(&str) -> Option<&'v str>) -> String {
        self.parts
            .iter()
            .map(|part| match part {
                Part::Literal(text) => text,
                Part::Placeholder(name) => value(name).unwrap_or_default(),
            })
            .collect()
    }
}

/// Start and end of the next placeholder.
fn next_place(text: &str) -> Option<(usize, usize)> {
    let mut from = 0;
    loop {
        let close = from + text[from..].find("}}")?;
        // No pair opens before `from`: it would have been closed there. So every byte is read at most twice.
        match text[from..close].rfind("{{") {
            Some(open) => return Some((from + open, close)),
            None => from = close + 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rendered(template: &str, values: &[(&str, &str)]) -> String {
        let value = |name: &str| values.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
        Template::parse(template).render(value)
    }

    fn names(template: &str) -> Vec<&str> {
        Template::parse(template).names().collect()
    }

    #[test]
    fn a_text_of_closing_braces_is_looked_at_once() {
        // As large as a body may be. A quadratic algorithm would take minutes.
        let text = "}}".repeat(1 << 19);
        assert!(names(&text).is_empty());
        assert_eq!(names(&format!("{text}{{{{a}}}}{text}")), ["a"]);
    }

    #[test]
    fn places_are_filled_as_often_as_they_stand() {
        assert_eq!(rendered("{{a}} and {{ b }}{{a}}", &[("a", "1"), ("b", "2")]), "1 and 21");
        assert_eq!(rendered("nothing to fill", &[("a", "1")]), "nothing to fill");
        assert_eq!(rendered("", &[]), "");
    }

    #[test]
    fn a_name_without_a_value_leaves_nothing() {
        assert_eq!(rendered("a {{missing}} b", &[]), "a  b");
    }

    #[test]
    fn a_value_is_never_expanded_again() {
        let hostile = "{{b}} {{a}} {{{{b}}}} }} {{";
        assert_eq!(rendered("<{{a}}>", &[("a", hostile), ("b", "secret")]), format!("<{hostile}>"));
        // Two values that form a placeholder together are not expanded.
        assert_eq!(rendered("{{a}}{{c}}", &[("a", "{{b"), ("c", "}}"), ("b", "secret")]), "{{b}}");
    }

    #[test]
    fn braces_that_are_no_pair_are_text() {
        for text in ["{{", "}}", "{{a", "a}}", "{a}", "}}{{", "{ {a} }"] {
            assert_eq!((names(text), rendered(text, &[("a", "1")])), (vec![], text.to_owned()), "{text}");
        }
        assert_eq!(rendered("}} {{a}}", &[("a", "1")]), "}} 1");
    }

    #[test]
    fn of_nested_braces_the_inner_pair_is_the_place() {
        assert_eq!(rendered("{{{{a}}}}", &[("a", "1")]), "{{1}}");
        assert_eq!(rendered("{\"k\": {{{a}}}}", &[("a", "1")]), "{\"k\": {1}}");
        assert_eq!(names("{{x {{a}} y}}"), ["a"]);
    }

    #[test]
    fn whatever_stands_in_a_pair_is_a_name() {
        assert_eq!(names("{{}} {{a b}} {{a.b}} {{ä}}"), ["", "a b", "a.b", "ä"]);
    }

    proptest! {
        #[test]
        fn literal_text_comes_out_as_it_went_in(text in "[^{}]{0,40}") {
            prop_assert_eq!(rendered(&text, &[]), text);
        }

        #[test]
        fn any_value_comes_out_as_it_went_in(value in ".{0,60}", before in "[^{}]{0,10}", after in "[^{}]{0,10}") {
            let template = format!("{before}{{{{key}}}}{after}");
            prop_assert_eq!(rendered(&template, &[("key", &value)]), format!("{before}{value}{after}"));
        }

        #[test]
        fn no_text_is_too_strange(text in "[{} a]{0,40}") {
            let template = Template::parse(&text);
            let keep = |name: &str| Some(if name.is_empty() { "" } else { "v" });
            prop_assert!(template.render(keep).len() <= text.len());
        }
    }
}
