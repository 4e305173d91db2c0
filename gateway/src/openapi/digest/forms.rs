//! Schemas as forms: one line each, as a type of TypeScript.
//!
//! In `{a, b?: 1..4, c?: [Role] ≤8}`, `a` is a mandatory text, `b` an optional number in a range, and `c` an optional list of at
//! most eight. Components stand under their name where that is shorter.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// A number with a bound of this size has no bound worth listing.
const UNBOUNDED: f64 = 100_000.0;
/// A text with a smaller limit is a word, such as the size that a model offers.
const WORD_MAX: u64 = 100;
/// A union of more objects than this is described elsewhere.
const CHOICES_MAX: usize = 4;

/// A member of an object.
#[derive(Clone, Copy)]
pub(super) struct Member<'a> {
    pub(super) name: &'a str,
    pub(super) schema: &'a Value,
    pub(super) is_required: bool,
}

/// Writes the forms of a document's schemas.
pub(super) struct Forms<'a> {
    components: &'a Map<String, Value>,
    /// Components that are written by name, in the order of their first use.
    named: Vec<&'a str>,
}

/// The union of the operations of a batch, whose variants are listed by themselves.
const OPERATION: &str = "Operation";

impl<'a> Forms<'a> {
    /// The forms of what `roots` reach. A component that would be written more than once gets a name when that is shorter.
    pub(super) fn new(components: &'a Map<String, Value>, roots: &[&'a Value]) -> Self {
        let mut forms = Self { components, named: Vec::new() };
        let mut uses = BTreeMap::new();
        let mut order = Vec::new();
        roots.iter().for_each(|root| forms.count(root, &mut uses, &mut order));
        let saves = |name: &&str| {
            let length = forms.body(&components[*name]).chars().count();
            (uses[*name] - 1) * length.saturating_sub(name.len()) > name.len() + 6
        };
        forms.named = order.into_iter().filter(saves).collect();
        forms
    }

    fn count(&self, schema: &'a Value, uses: &mut BTreeMap<&'a str, usize>, order: &mut Vec<&'a str>) {
        if let Some(name) = component(schema) {
            if name == OPERATION {
                return;
            }
            let count = uses.entry(name).or_default();
            *count += 1;
            if *count > 1 {
                return;
            }
            order.push(name);
        }
        let schema = self.resolve(schema);
        self.choices(schema).into_iter().for_each(|choice| self.count(choice, uses, order));
        self.members(schema).iter().for_each(|member| self.count(member.schema, uses, order));
        schema.get("items").into_iter().for_each(|items| self.count(items, uses, order));
    }

    /// The named components with their forms.
    pub(super) fn named(&self) -> impl Iterator<Item = (&'a str, String)> {
        self.named.iter().map(|name| (*name, self.body(&self.components[*name])))
    }

    /// The schema that a reference means.
    pub(super) fn resolve(&self, schema: &'a Value) -> &'a Value {
        component(schema).map_or(schema, |name| self.resolve(&self.components[name]))
    }

    /// The variants of a union, without `null`.
    pub(super) fn choices(&self, schema: &'a Value) -> Vec<&'a Value> {
        let schema = self.resolve(schema);
        let choices = schema["oneOf"].as_array().or(schema["anyOf"].as_array());
        choices.into_iter().flatten().filter(|choice| choice["type"] != "null").collect()
    }

    /// The members of an object: those of its parts, then its own.
    pub(super) fn members(&self, schema: &'a Value) -> Vec<Member<'a>> {
        let schema = self.resolve(schema);
        let parts = schema["allOf"].as_array().into_iter().flatten();
        let mut members: Vec<Member<'a>> = parts.flat_map(|part| self.members(part)).collect();
        let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
        let own = schema["properties"].as_object().into_iter().flatten();
        members.extend(own.map(|(name, schema)| Member {
            name,
            schema,
            is_required: required.iter().any(|it| it == name.as_str()),
        }));
        members
    }

    /// The form of a value; empty for a text of any length.
    pub(super) fn form(&self, schema: &'a Value) -> String {
        match component(schema) {
            Some(name) if name == OPERATION || self.named.contains(&name) => name.to_owned(),
            // Ids, handles and keys: what they are is said by the name of the member.
            Some(_) if self.resolve(schema)["type"] == "string" && self.values(schema).is_empty() => String::new(),
            _ => self.body(schema),
        }
    }

    /// The form of what a component is.
    fn body(&self, schema: &'a Value) -> String {
        let values = self.values(schema);
        if !values.is_empty() {
            return values.join("|");
        }
        let schema = self.resolve(schema);
        match self.choices(schema) {
            choices if choices.is_empty() => {}
            choices if choices.len() > CHOICES_MAX => return "{…}".to_owned(),
            choices => return either(choices.into_iter().map(|choice| self.form(choice))),
        }
        if !self.members(schema).is_empty() {
            return self.object(schema, &[]);
        }
        match kind(schema) {
            "array" => match schema["maxItems"].as_u64() {
                Some(most) => format!("[{}] ≤{most}", self.form(&schema["items"])),
                None => format!("[{}]", self.form(&schema["items"])),
            },
            "integer" | "number" => range(schema),
            "boolean" => "bool".to_owned(),
            "string" => length(schema),
            "object" if schema["additionalProperties"].is_object() => {
                format!("{{<key>: {}}}", or_text(self.form(&schema["additionalProperties"])))
            }
            "object" => "{}".to_owned(),
            _ => String::new(),
        }
    }

    /// The form of an object: mandatory members first, without the `omitted` ones.
    pub(super) fn object(&self, schema: &'a Value, omitted: &[&str]) -> String {
        let mut members = self.members(schema);
        members.sort_by_key(|member| !member.is_required);
        let members = members.into_iter().filter(|member| !omitted.contains(&member.name));
        let members: Vec<String> = members.map(|member| self.member(member)).collect();
        format!("{{{}}}", members.join(", "))
    }

    fn member(&self, Member { name, schema, is_required }: Member<'a>) -> String {
        let mark = if is_required { "" } else { "?" };
        match self.form(schema) {
            form if form.is_empty() => format!("{name}{mark}"),
            form => format!("{name}{mark}: {form}"),
        }
    }

    /// The values of an enumeration or a constant; also of a text that only one word matches.
    pub(super) fn values(&self, schema: &'a Value) -> Vec<String> {
        let schema = self.resolve(schema);
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let word = schema["pattern"].as_str().and_then(|pattern| pattern.strip_prefix('^')?.strip_suffix('$'));
        let word = word.filter(|word| word.bytes().all(|byte| byte.is_ascii_lowercase()));
        let listed = schema["enum"].as_array().into_iter().flatten().filter(|value| !value.is_null());
        listed.chain(schema.get("const")).map(text).chain(word.map(str::to_owned)).collect()
    }
}

/// The component that a schema refers to.
pub(super) fn component(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str().and_then(|path| path.rsplit('/').next())
}

/// Alternatives, each once.
pub(super) fn either(forms: impl Iterator<Item = String>) -> String {
    let mut distinct: Vec<String> = Vec::new();
    for form in forms.map(or_text) {
        if !distinct.contains(&form) {
            distinct.push(form);
        }
    }
    distinct.join(" or ")
}

fn or_text(form: String) -> String {
    if form.is_empty() { "text".to_owned() } else { form }
}

/// The type of a schema, without `null`.
fn kind(schema: &Value) -> &str {
    let types = schema["type"].as_array().map(Vec::as_slice).unwrap_or_default();
    let one = types.iter().filter_map(Value::as_str).find(|name| *name != "null");
    one.or(schema["type"].as_str()).unwrap_or_default()
}

/// The greatest length of a text that is no id, URL or word.
fn length(schema: &Value) -> String {
    let most = schema["maxLength"].as_u64().filter(|most| *most >= WORD_MAX);
    let is_free = schema["pattern"].is_null() && schema["format"].is_null();
    most.filter(|_| is_free).map_or_else(String::new, |most| format!("≤{most}"))
}

/// The range of a number; its type if it has none.
fn range(schema: &Value) -> String {
    let (least, most) = (&schema["minimum"], &schema["maximum"]);
    match most.as_f64() {
        Some(bound) if bound < UNBOUNDED && !least.is_null() => format!("{least}..{most}"),
        _ if kind(schema) == "integer" => "int".to_owned(),
        _ => "num".to_owned(),
    }
}
