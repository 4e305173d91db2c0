//! Paths of fields, such as `operations[3].node.width`: what they name within the arguments of a call, and violations that differ in
//! indexes alone as one.

use std::collections::BTreeSet;

use domain::Violation;
use serde_json::Value;

/// A path as a JSON Pointer (RFC 6901).
pub fn pointer(path: &str) -> String {
    let mut pointer = String::with_capacity(path.len() + 1);
    for (at, character) in path.char_indices() {
        match character {
            _ if at == 0 => pointer.push('/'),
            '.' | '[' => pointer.push('/'),
            _ => {}
        }
        match character {
            '.' | '[' | ']' => {}
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
    }
    pointer
}

/// The object or array that has the value of a pointer, and the value's name within it.
pub fn parent(pointer: &str) -> Option<(&str, String)> {
    let (parent, name) = pointer.rsplit_once('/')?;
    Some((parent, name.replace("~1", "/").replace("~0", "~")))
}

/// The schemas of the value of a pointer: one for each form that it may have.
pub fn schemas<'a>(schema: &'a Value, pointer: &str) -> Vec<&'a Value> {
    let mut found = forms(schema);
    for step in pointer.split('/').skip(1) {
        let within = |schema: &'a Value| match step.parse::<usize>() {
            Ok(_) => schema.get("items").or_else(|| schema.get("properties")?.get(step)),
            Err(_) => schema.get("properties")?.get(step),
        };
        found = found.into_iter().filter_map(within).flat_map(forms).collect();
    }
    found
}

/// A schema, or those of which a value fits one.
fn forms(schema: &Value) -> Vec<&Value> {
    match schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array) {
        Some(forms) => forms.iter().flat_map(self::forms).collect(),
        None => vec![schema],
    }
}

/// The violations, those of equal message whose paths differ in indexes alone as one: `operations[0,3-9].node.metadata.color`. An entry
/// names exactly the paths of which it is made: where several indexes differ, those that all combinations of them have.
pub fn merged(violations: Vec<Violation>) -> Vec<Violation> {
    let mut entries: Vec<Entry> = Vec::new();
    for entry in violations.into_iter().map(Entry::new) {
        if !entries.iter().any(|it| it.is_like(&entry) && it.indexes == entry.indexes) {
            entries.push(entry);
        }
    }
    let positions = entries.iter().map(|entry| entry.indexes.len()).max().unwrap_or_default();
    for position in (0..positions).rev() {
        let mut joined: Vec<Entry> = Vec::new();
        for entry in entries {
            match joined.iter_mut().find(|it| it.differs_at(&entry, position)) {
                Some(same) => same.indexes[position].extend(&entry.indexes[position]),
                None => joined.push(entry),
            }
        }
        entries = joined;
    }
    entries.into_iter().map(Entry::into_violation).collect()
}

/// Violations of one message.
struct Entry {
    /// The path between its indexes.
    texts: Vec<String>,
    indexes: Vec<BTreeSet<usize>>,
    message: String,
}

impl Entry {
    fn new(Violation { field, message }: Violation) -> Self {
        let (mut texts, mut indexes) = (vec![String::new()], Vec::new());
        let mut rest = field.as_str();
        while let Some(open) = rest.find('[') {
            let (before, after) = rest.split_at(open);
            let index = after[1..].split_once(']').and_then(|(index, rest)| Some((index.parse().ok()?, rest)));
            let last = texts.last_mut().expect("is never empty");
            last.push_str(before);
            match index {
                Some((index, after)) => {
                    indexes.push(BTreeSet::from([index]));
                    texts.push(String::new());
                    rest = after;
                }
                // A key with a bracket.
                None => {
                    last.push('[');
                    rest = &after[1..];
                }
            }
        }
        texts.last_mut().expect("is never empty").push_str(rest);
        Self { texts, indexes, message }
    }

    fn is_like(&self, other: &Self) -> bool {
        self.message == other.message && self.texts == other.texts
    }

    /// Returns `true` if the other one differs in no more than this index.
    fn differs_at(&self, other: &Self, position: usize) -> bool {
        let mut indexes = self.indexes.iter().zip(&other.indexes).enumerate();
        self.is_like(other)
            && self.indexes.len() > position
            && indexes.all(|(at, (one, two))| at == position || one == two)
    }

    fn into_violation(self) -> Violation {
        let mut texts = self.texts.into_iter();
        let mut field = texts.next().unwrap_or_default();
        for (indexes, text) in self.indexes.iter().zip(texts) {
            field.push_str(&format!("[{}]{text}", ranges(indexes)));
        }
        Violation { field, message: self.message }
    }
}

/// Numbers in short: `0,3-9`.
fn ranges(numbers: &BTreeSet<usize>) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => ranges.push((*number, *number)),
        }
    }
    let texts = ranges.iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    texts.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(given: &[(&str, &str)]) -> Vec<String> {
        let given = given.iter().map(|(field, message)| Violation::new(*field, *message)).collect();
        merged(given).into_iter().map(|it| format!("{} {}", it.field, it.message)).collect()
    }

    /// The paths that a merged path names.
    fn paths(field: &str) -> Vec<String> {
        let Some((before, rest)) = field.split_once('[') else { return vec![field.to_owned()] };
        let (numbers, after) = rest.split_once(']').expect("is closed");
        let mut found = Vec::new();
        for range in numbers.split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            for number in first.parse::<usize>().expect("a number")..=last.parse().expect("a number") {
                found.extend(paths(after).into_iter().map(|after| format!("{before}[{number}]{after}")));
            }
        }
        found
    }

    #[test]
    fn violations_that_differ_in_indexes_alone_are_one() {
        let color = |index: usize| format!("operations[{index}].node.metadata.color");
        let given: Vec<String> = [0, 3, 4, 5, 6, 7, 8, 9].map(color).to_vec();
        let given: Vec<(&str, &str)> = given.iter().map(|field| (field.as_str(), "must match ^#")).collect();
        assert_eq!(fields(&given), ["operations[0,3-9].node.metadata.color must match ^#"]);
        let mixed = [("a[1].x", "m"), ("b", "m"), ("a[0].x", "m"), ("a[0].x", "other"), ("a[0].y", "m"), ("b", "m")];
        assert_eq!(fields(&mixed), ["a[0-1].x m", "b m", "a[0].x other", "a[0].y m"]);
        assert_eq!(fields(&[("k[", "m"), ("k[x]", "m"), ("[2]", "m"), ("[4]", "m")]), ["k[ m", "k[x] m", "[2,4] m"]);
        assert!(fields(&[]).is_empty());
    }

    #[test]
    fn merged_paths_name_what_they_are_made_of_and_nothing_else() {
        // Each set of the pairs of three and four indexes.
        for set in 0..1_u32 << 12 {
            let pairs = (0..12).filter(|bit| set & 1 << bit != 0).map(|bit| (bit / 4, bit % 4));
            let mut given: Vec<String> = pairs.map(|(first, second)| format!("a[{first}].b[{second}].c")).collect();
            if set % 2 == 1 {
                given.reverse();
            }
            let found = merged(given.iter().map(|field| Violation::new(field.as_str(), "m")).collect());
            let mut named: Vec<String> = found.iter().flat_map(|it| paths(&it.field)).collect();
            named.sort();
            given.sort();
            assert_eq!(named, given, "{set}");
            assert!(found.len() <= 4 && (set != (1 << 12) - 1 || found.len() == 1), "{set}: {}", found.len());
        }
    }

    #[test]
    fn a_path_is_found_in_arguments_and_in_their_schema() {
        assert_eq!(pointer("operations[3].node.a/b"), "/operations/3/node/a~1b");
        assert_eq!(pointer(""), "");
        assert_eq!(parent("/a/0/b~1c"), Some(("/a/0", "b/c".to_owned())));
        let schema = json!({"properties": {"a": {"items": {"anyOf": [
            {"type": "string"}, {"properties": {"b": {"type": "number"}}}, {"properties": {"b": {"enum": [1]}}},
        ]}}}});
        assert_eq!(schemas(&schema, "/a/7/b"), [&json!({"type": "number"}), &json!({"enum": [1]})]);
        assert_eq!(schemas(&schema, "/a/7").len(), 3);
        assert!(schemas(&schema, "/c").is_empty());
    }
}
