//! Corrections of a refused call: the same arguments as the violated rules admit them. Nothing is read here.

use domain::Violation;
use domain::action::ActionSlug;
use domain::violation::Rule;
use serde_json::{Map, Number, Value};

use crate::fields::{parent, pointer, schemas};

/// Longest list of values that a placeholder repeats.
const CHOICES_MAX: usize = 80;

/// The names of colors of CSS 1, and what they are.
const COLORS: [(&str, &str); 16] = [
    ("aqua", "#00ffff"),
    ("black", "#000000"),
    ("blue", "#0000ff"),
    ("fuchsia", "#ff00ff"),
    ("gray", "#808080"),
    ("green", "#008000"),
    ("lime", "#00ff00"),
    ("maroon", "#800000"),
    ("navy", "#000080"),
    ("olive", "#808000"),
    ("purple", "#800080"),
    ("red", "#ff0000"),
    ("silver", "#c0c0c0"),
    ("teal", "#008080"),
    ("white", "#ffffff"),
    ("yellow", "#ffff00"),
];

/// Members of the contract that the tools have under another name.
const RENAMED: [(&str, &str); 12] = [
    ("baseRevision", "revision"),
    ("canvasId", "canvas"),
    ("imageUrl", "url"),
    ("instanceNodeId", "instance"),
    ("maxBytes", "maxChars"),
    ("place.count", "count"),
    ("productPageUrl", "url"),
    ("promptNodeId", "promptNode"),
    ("targetNodeId", "target"),
    ("targetNodeIds", "targets"),
    ("variantSelector", "variant"),
    ("actionKey", "action"),
];

/// A call that is being corrected.
pub struct Corrected {
    /// The arguments.
    pub arguments: Value,
    /// What was changed, in words.
    pub changes: Vec<String>,
    /// The arguments of a second call, with what is too much for one.
    pub rest: Option<Value>,
    /// Where a placeholder says what belongs there.
    pub holes: Vec<String>,
}

impl Corrected {
    pub fn new(arguments: &Map<String, Value>) -> Self {
        Self { arguments: Value::Object(arguments.clone()), changes: Vec::new(), rest: None, holes: Vec::new() }
    }

    /// The path of a field of the contract within the arguments.
    pub fn path(&self, field: &str, schema: &Value) -> String {
        let root = field.split(['.', '[']).next().unwrap_or_default();
        if self.arguments.get(root).is_some() && schema["properties"].get(root).is_none() {
            return field.to_owned();
        }
        let names = |name: &str| {
            field.strip_prefix(name).is_some_and(|rest| !rest.starts_with(|it: char| it.is_alphanumeric() || it == '_'))
        };
        match RENAMED.iter().find(|(of_contract, _)| names(of_contract)) {
            Some((of_contract, argument)) if schema["properties"].get(*argument).is_some() => {
                format!("{argument}{}", &field[of_contract.len()..])
            }
            _ => field.to_owned(),
        }
    }

    /// The value of a path.
    pub fn get(&self, path: &str) -> Option<&Value> {
        self.arguments.pointer(&pointer(path))
    }

    /// Sets the value of a path, whose object or array has to be there. Returns whether it did.
    pub fn set(&mut self, path: &str, value: Value) -> bool {
        let done = self.put(path, value.clone());
        if done {
            self.changes.push(format!("{path} {}", shown(&value)));
        }
        done
    }

    fn put(&mut self, path: &str, value: Value) -> bool {
        let pointer = pointer(path);
        let Some((parent, name)) = parent(&pointer) else { return false };
        match self.arguments.pointer_mut(parent) {
            Some(Value::Object(members)) => {
                members.insert(name, value);
                true
            }
            Some(Value::Array(items)) => {
                let item = name.parse::<usize>().ok().and_then(|index| items.get_mut(index));
                item.map(|item| *item = value).is_some()
            }
            _ => false,
        }
    }

    fn remove(&mut self, path: &str) -> Option<Value> {
        let pointer = pointer(path);
        let (parent, name) = parent(&pointer)?;
        self.arguments.pointer_mut(parent)?.as_object_mut()?.remove(&name)
    }

    /// Removes a member. Returns whether it was there.
    pub fn leave_out(&mut self, path: &str) -> bool {
        let done = self.remove(path).is_some();
        if done {
            self.changes.push(format!("without {path}"));
        }
        done
    }

    /// Gives an unknown member the known name that is nearest to its own, or leaves it out if there is none.
    pub fn rename<'a>(&mut self, path: &str, known: impl IntoIterator<Item = &'a str>) -> bool {
        let (object, name) = path.rsplit_once('.').unwrap_or(("", path));
        let object = if object.is_empty() { String::new() } else { format!("{object}.") };
        let known: Vec<&str> = known.into_iter().collect();
        let of_contract = RENAMED.iter().find(|(it, argument)| *it == path && known.contains(argument));
        let near = of_contract.map(|(_, argument)| *argument).or_else(|| nearest(name, known));
        let Some(near) = near.map(|near| format!("{object}{near}")) else { return self.leave_out(path) };
        if self.get(&near).is_some() {
            return self.leave_out(path);
        }
        let Some(value) = self.remove(path) else { return false };
        self.changes.push(format!("{near} for {path}"));
        self.put(&near, value)
    }

    /// Makes a list of steps of one Action that is named beside its inputs, as `action_run` and the contract had it before chains.
    pub fn gather_steps(&mut self) {
        let Some(call) = self.arguments.as_object_mut() else { return };
        if call.contains_key("steps") || !call.contains_key("action") {
            return;
        }
        let mut step: Map<String, Value> =
            ["action", "params", "with"].into_iter().filter_map(|name| call.remove_entry(name)).collect();
        let slug = step["action"].as_str().and_then(|slug| slug.parse().ok());
        let takes_two = matches!(slug, Some(ActionSlug::OverlayImage | ActionSlug::SideBySideComposite));
        // The second image was another input.
        if takes_two
            && let Some(Value::Array(inputs)) = call.get_mut("inputs")
            && inputs.len() == 2
        {
            step.extend(inputs.pop().map(|second| ("with".to_owned(), second)));
        }
        if let Some(target) = call.remove("target") {
            call.insert("targets".to_owned(), vec![target].into());
        }
        call.insert("steps".to_owned(), vec![Value::Object(step)].into());
        self.changes.push("the Action in steps".to_owned());
    }

    /// Corrects what a rule of a schema alone says how. Returns whether it did.
    pub fn correct(&mut self, path: &str, violation: &Violation, schema: &Value) -> bool {
        let Some(given) = self.get(path).cloned() else { return false };
        if violation.message.contains('#')
            && let Some(color) = given.as_str().and_then(color)
        {
            return self.set(path, color.into());
        }
        // Without a target, a new node is made.
        if let Some(root) = ["target", "targets"].into_iter().find(|root| path.split('[').next() == Some(root))
            && violation.rule().is_none()
            && !violation.message.contains("not a node")
        {
            return self.leave_out(root);
        }
        let number = |limit: &str| limit.parse::<Number>().ok().map(Value::Number);
        match violation.rule() {
            Some(Rule::Unknown) => {
                let at = pointer(path);
                let objects = schemas(schema, parent(&at).map_or("", |(parent, _)| parent));
                let members = objects.iter().filter_map(|object| object["properties"].as_object());
                self.rename(path, members.flat_map(|members| members.keys()).map(String::as_str))
            }
            Some(Rule::OneOf(choices)) => {
                let choices = choices.split(", ").map(|choice| choice.trim_matches('"'));
                let near = given.as_str().and_then(|given| nearest(given, choices));
                near.is_some_and(|near| self.set(path, near.into()))
            }
            Some(Rule::Type(kind)) => as_type(&given, kind).is_some_and(|value| self.set(path, value)),
            Some(Rule::AtLeast(limit)) => number(limit).is_some_and(|value| self.set(path, value)),
            Some(Rule::AtMost(limit)) => {
                let Some(max) = number(limit) else { return false };
                if path == "count"
                    && let (Some(given), Some(max)) = (given.as_u64(), max.as_u64())
                {
                    self.rest = self.second(path, given.saturating_sub(max).min(max).into(), max.into());
                }
                self.set(path, max)
            }
            Some(Rule::ItemsMax(max)) => {
                let Value::Array(mut first) = given else { return false };
                let mut rest = first.split_off(max.min(first.len()));
                rest.truncate(max);
                self.rest = self.second(path, rest.into(), first.clone().into());
                let said = format!("the first {max} of {path}");
                let done = self.put(path, first.into());
                self.changes.push(said);
                done
            }
            Some(Rule::Required | Rule::Pattern(_)) | None => false,
        }
    }

    /// The arguments of the call for the rest. It must not be the first call again, which would be a replay.
    fn second(&self, path: &str, rest: Value, first: Value) -> Option<Value> {
        let mut second = Self { arguments: self.arguments.clone(), changes: Vec::new(), rest: None, holes: Vec::new() };
        if rest == first {
            second.put("revision", "<revision of the answer to the first call>".into());
        }
        second.put(path, rest).then_some(second.arguments)
    }

    /// Says at a path what belongs there, where only the caller can know it. Returns whether it did.
    pub fn leave_open(&mut self, path: &str, violation: &Violation, schema: &Value) -> bool {
        let choices = schemas(schema, &pointer(path))
            .iter()
            .find_map(|schema| schema["enum"].as_array())
            .map(|choices| choices.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("|"));
        let wanted = match choices.filter(|choices| choices.len() <= CHOICES_MAX) {
            Some(choices) => choices,
            None => format!("{} {}", parent(&pointer(path)).map_or(String::new(), |(_, name)| name), violation.message),
        };
        let done = self.put(path, format!("<{wanted}>").into());
        if done {
            self.holes.push(path.to_owned());
        }
        done
    }
}

/// A value in a few words.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn color(name: &str) -> Option<&'static str> {
    COLORS.iter().find(|(color, _)| color.eq_ignore_ascii_case(name.trim())).map(|(_, code)| *code)
}

/// The value as the type that is meant, where it says the same.
fn as_type(given: &Value, kind: &str) -> Option<Value> {
    let is_it = |value: &Value| match kind {
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    };
    match (given, kind) {
        (Value::Number(number), "string") => Some(number.to_string().into()),
        (Value::Number(number), "integer") => {
            number.as_f64().filter(|it| it.fract() == 0.0 && it.abs() < 1e15).map(|it| (it as i64).into())
        }
        // Some hosts write what is no text as one.
        (Value::String(text), _) => match serde_json::from_str(text).ok().filter(is_it) {
            None if kind == "array" => Some(vec![given.clone()].into()),
            value => value,
        },
        (Value::Object(_), "array") => Some(vec![given.clone()].into()),
        _ => None,
    }
}

/// The name that is meant by `given`: the one that is nearest to it, at most two edits away and nearer than any name of its length
/// would be.
pub fn nearest<'a>(given: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let given = given.to_lowercase();
    let max = (given.chars().count() / 2).min(2);
    let near = names.into_iter().map(|name| (distance(&given, &name.to_lowercase()), name));
    near.filter(|(distance, _)| *distance <= max).min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

/// Edits of one character that make one text of the other (Levenshtein).
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, character) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (column, compared) in other.iter().enumerate() {
            let edit = diagonal + usize::from(character != *compared);
            diagonal = row[column + 1];
            row[column + 1] = edit.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({"properties": {
            "canvas": {"type": "string"}, "revision": {"type": "string"}, "count": {"type": "integer"},
            "mode": {"enum": ["generate", "edit"]}, "target": {}, "runs": {"type": "array"}, "place": {"properties": {"near": {}}},
            "operations": {"items": {"anyOf": [
                {"properties": {"type": {}, "nodeId": {}}},
                {"properties": {"node": {"properties": {"width": {}, "title": {}}}}},
            ]}},
        }})
    }

    /// The corrected arguments, those of the rest, and whether all was corrected.
    fn corrected(arguments: Value, violations: &[(&str, &str)]) -> (Value, Option<Value>, bool) {
        let Value::Object(arguments) = arguments else { panic!("{arguments}") };
        let mut corrected = Corrected::new(&arguments);
        let mut all = true;
        for (field, message) in violations {
            let path = corrected.path(field, &schema());
            all &= corrected.correct(&path, &Violation::new(*field, *message), &schema());
        }
        (corrected.arguments, corrected.rest, all)
    }

    #[test]
    fn a_rule_that_says_what_is_right_corrects_the_call() {
        for (given, violation, right) in [
            (json!({"cuont": 1}), ("cuont", "is not a known field"), json!({"count": 1})),
            (json!({"baseRevision": "r"}), ("baseRevision", "is not a known field"), json!({"revision": "r"})),
            (json!({"seed": 1, "count": 2}), ("seed", "is not a known field"), json!({"count": 2})),
            (json!({"counts": 1, "count": 2}), ("counts", "is not a known field"), json!({"count": 2})),
            (
                json!({"place": {"naer": "n1"}}),
                ("place.naer", "is not a known field"),
                json!({"place": {"near": "n1"}}),
            ),
            (
                json!({"operations": [{"node": {"widht": 9}}]}),
                ("operations[0].node.widht", "is not a known field"),
                json!({"operations": [{"node": {"width": 9}}]}),
            ),
            (
                json!({"operations": [{}, {"node": {"metadata": {"color": "Navy"}}}]}),
                ("operations[1].node.metadata.color", "must match ^#[0-9A-Fa-f]{6}$"),
                json!({"operations": [{}, {"node": {"metadata": {"color": "#000080"}}}]}),
            ),
            (json!({"mode": "Edit"}), ("mode", "must be one of generate, edit"), json!({"mode": "edit"})),
            (json!({"mode": "edti"}), ("mode", r#"must be one of "generate", "edit""#), json!({"mode": "edit"})),
            (json!({"target": "n1"}), ("targetNodeId", "must be empty: it shows an asset already"), json!({})),
            (json!({"count": 0}), ("place.count", "must be at least 1"), json!({"count": 1})),
            (json!({"count": "3"}), ("count", "must be of type integer"), json!({"count": 3})),
            (json!({"count": 3.0}), ("count", "must be of type integer"), json!({"count": 3})),
            (json!({"runs": "run:a"}), ("runs", "must be of type array"), json!({"runs": ["run:a"]})),
            (json!({"runs": "[\"run:a\"]"}), ("runs", "must be of type array"), json!({"runs": ["run:a"]})),
            (json!({"canvas": 7}), ("canvasId", "must be of type string"), json!({"canvas": "7"})),
        ] {
            assert_eq!(corrected(given.clone(), &[violation]), (right, None, true), "{given}");
        }
    }

    #[test]
    fn what_only_the_caller_knows_is_not_corrected() {
        for (given, violation) in [
            (json!({}), ("revision", "is required")),
            (json!({"mode": "dream"}), ("mode", "must be one of generate, edit")),
            (json!({"count": "many"}), ("count", "must be of type integer")),
            (json!({"operations": [{"nodeId": "red"}]}), ("operations[0].nodeId", "names no node of the canvas")),
            (json!({"place": 1}), ("place.near", "is not a known field")),
            (json!({"target": "n9"}), ("targetNodeId", "is not a node of the canvas")),
        ] {
            assert_eq!(corrected(given.clone(), &[violation]), (given, None, false));
        }
        let mut open = Corrected::new(&Map::new());
        assert!(open.leave_open("mode", &Violation::new("mode", "is required"), &schema()));
        assert!(open.leave_open("canvas", &Violation::new("canvas", "is required"), &schema()));
        assert_eq!(open.arguments, json!({"mode": "<generate|edit>", "canvas": "<canvas is required>"}));
        assert_eq!(open.holes, ["mode", "canvas"]);
    }

    #[test]
    fn an_action_beside_its_inputs_becomes_a_step() {
        for (given, right) in [
            (
                json!({"inputs": ["n1"], "action": "rotate", "params": {"degrees": 90}, "target": "n2"}),
                json!({"inputs": ["n1"], "steps": [{"action": "rotate", "params": {"degrees": 90}}], "targets": ["n2"]}),
            ),
            (
                json!({"inputs": ["n1", "n2"], "action": "rotate"}),
                json!({"inputs": ["n1", "n2"], "steps": [{"action": "rotate"}]}),
            ),
            (
                json!({"inputs": ["n1", "n2"], "action": "overlay-image"}),
                json!({"inputs": ["n1"], "steps": [{"action": "overlay-image", "with": "n2"}]}),
            ),
            (
                json!({"inputs": ["n1"], "action": "overlay-image", "with": "n2"}),
                json!({"inputs": ["n1"], "steps": [{"action": "overlay-image", "with": "n2"}]}),
            ),
        ] {
            let mut corrected = Corrected::new(given.as_object().expect("an object"));
            corrected.gather_steps();
            assert_eq!((corrected.arguments, corrected.changes.len()), (right, 1), "{given}");
        }
        for given in [json!({"inputs": ["n1"]}), json!({"action": "rotate", "steps": [{"action": "resize"}]})] {
            let mut corrected = Corrected::new(given.as_object().expect("an object"));
            corrected.gather_steps();
            assert_eq!((corrected.arguments, corrected.changes.len()), (given, 0));
        }
    }

    #[test]
    fn what_is_too_much_for_one_call_is_two() {
        let too_many = ("count", "must be at most 8");
        let call = |count: u64, revision: &str| json!({"revision": revision, "count": count});
        assert_eq!(corrected(call(9, "r"), &[too_many]), (call(8, "r"), Some(call(1, "r")), true));
        let later = Some(call(8, "<revision of the answer to the first call>"));
        assert_eq!(corrected(call(20, "r"), &[too_many]), (call(8, "r"), later, true), "an equal call is a replay");
        let runs = json!({"runs": ["a", "b", "c"]});
        let (first, rest) = (json!({"runs": ["a", "b"]}), json!({"runs": ["c"]}));
        assert_eq!(corrected(runs, &[("runs", "must have at most 2 items")]), (first, Some(rest), true));
    }

    #[test]
    fn the_nearest_name_is_at_most_two_edits_away() {
        let names = ["width", "height", "title"];
        for (given, near) in [
            ("widht", Some("width")),
            ("WIDTH", Some("width")),
            ("heigt", Some("height")),
            ("titles", Some("title")),
            ("hi", None),
            ("breadth", None),
            ("", None),
        ] {
            assert_eq!(nearest(given, names), near, "{given}");
        }
        // A distance: zero for equal texts alone, equal in both directions, at most the sum of two others.
        let texts = ["", "a", "ab", "ba", "abc", "cab", "äb", "abcd", "xyz"];
        for one in texts {
            for two in texts {
                assert_eq!(distance(one, two) == 0, one == two);
                assert_eq!(distance(one, two), distance(two, one));
                assert!(texts.iter().all(|via| distance(one, two) <= distance(one, via) + distance(via, two)));
            }
        }
        assert_eq!((distance("kitten", "sitting"), distance("", "abc")), (3, 3));
    }
}
