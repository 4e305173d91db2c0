//! The text of the committed document: indented by one space, and every value that fits a line on one line, so that the file is
//! short and a change shows as few lines.

use serde_json::Value;

/// Characters of a line that holds a whole value.
const WIDTH: usize = 150;

/// A document of these members as text, with a line break at the end.
pub fn text(members: &[(&str, &Value)]) -> String {
    let mut text = String::new();
    write_members(&mut text, members.iter().copied(), 0);
    text.push('\n');
    text
}

/// Writes a value at this depth. `taken` characters precede it in its line.
fn write(text: &mut String, value: &Value, depth: usize, taken: usize) {
    let line = value.to_string();
    match value {
        _ if taken + line.chars().count() <= WIDTH => text.push_str(&line),
        Value::Object(members) => write_members(text, members.iter().map(|(key, it)| (key.as_str(), it)), depth),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                begin_line(text, index, depth + 1);
                write(text, item, depth + 1, depth + 1);
            }
            end_lines(text, depth);
            text.push(']');
        }
        _ => text.push_str(&line),
    }
}

fn write_members<'a>(text: &mut String, members: impl Iterator<Item = (&'a str, &'a Value)>, depth: usize) {
    text.push('{');
    for (index, (key, member)) in members.enumerate() {
        begin_line(text, index, depth + 1);
        let key = format!("{}: ", Value::from(key));
        text.push_str(&key);
        write(text, member, depth + 1, depth + 1 + key.chars().count());
    }
    end_lines(text, depth);
    text.push('}');
}

/// Begins the line of a member or an item.
fn begin_line(text: &mut String, index: usize, depth: usize) {
    text.push_str(if index == 0 { "" } else { "," });
    end_lines(text, depth);
}

fn end_lines(text: &mut String, depth: usize) {
    text.push('\n');
    text.extend(std::iter::repeat_n(' ', depth));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_that_fits_a_line_stands_on_one() {
        let long = "x".repeat(WIDTH);
        let document = json!({"a": {"b": [1, "two", null], "c": {}}, "d": [long, {"e": true}]});
        let text = text(&[("d", &document["d"]), ("a", &document["a"])]);
        let expected = format!(
            "{{\n \"d\": [\n  \"{long}\",\n  {{\"e\":true}}\n ],\n \"a\": {{\"b\":[1,\"two\",null],\"c\":{{}}}}\n}}\n"
        );
        assert_eq!(text, expected);
        assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), document);
    }
}
