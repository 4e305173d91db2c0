//! Answers in short: the names of their members. Objects that several answers have in common are records, listed by themselves.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::forms::{Forms, Member, component, either};

/// An object of so few members is no record.
const SMALL: usize = 3;
/// Maximum number of members of a listed object.
const LISTED: usize = 8;
/// Members of answers that the guide explains, that repeat another one, or that a client seldom needs. So are times.
const MINOR: [&str; 17] = [
    "activity",
    "canvasHandle",
    "canvasType",
    "canvasUrl",
    "connectionRefs",
    "estimatedSeconds",
    "durationMs",
    "markdown",
    "nodeHandle",
    "nodeRefs",
    "ownerUid",
    "page",
    "rawId",
    "recipeHandle",
    "schemaVersion",
    "timing",
    "webhook",
];
/// How deep in an answer records are looked for.
const DEPTH: usize = 2;

/// Writes the forms of answers.
pub(super) struct Answers<'a, 'f> {
    forms: &'f Forms<'a>,
    components: &'a Map<String, Value>,
    /// The components in answers, in the order in which they are met.
    met: Vec<&'a str>,
    uses: BTreeMap<&'a str, Uses>,
}

/// Where answers have a component.
#[derive(Default)]
struct Uses {
    count: usize,
    /// `true` if it is an answer, or a member of one.
    is_direct: bool,
}

impl<'a, 'f> Answers<'a, 'f> {
    /// Reads the answers `bodies`.
    pub(super) fn new(forms: &'f Forms<'a>, components: &'a Map<String, Value>, bodies: &[&'a Value]) -> Self {
        let mut answers = Self { forms, components, met: Vec::new(), uses: BTreeMap::new() };
        bodies.iter().for_each(|body| answers.count(body, 0));
        answers
    }

    fn count(&mut self, schema: &'a Value, depth: usize) {
        if let Some(name) = component(schema) {
            let uses = self.uses.entry(name).or_default();
            uses.count += 1;
            uses.is_direct |= depth <= 1;
            if uses.count > 1 {
                return;
            }
            self.met.push(name);
        }
        for choice in self.forms.choices(schema) {
            self.count(choice, depth);
        }
        for member in self.members(schema).into_iter().filter(|_| depth < DEPTH) {
            self.count(self.item(member.schema), depth + 1);
        }
    }

    /// The main members of an object.
    fn members(&self, schema: &'a Value) -> Vec<Member<'a>> {
        let mut members = self.forms.members(schema);
        members.retain(|it| !MINOR.contains(&it.name) && component(it.schema) != Some("Timestamp"));
        members
    }

    /// The items of a list; any other schema itself.
    fn item(&self, schema: &'a Value) -> &'a Value {
        self.forms.resolve(schema).get("items").unwrap_or(schema)
    }

    fn is_record(&self, name: &str) -> bool {
        let size = self.components.get(name).map_or(0, |schema| self.members(schema).len());
        let uses = self.uses.get(name).filter(|uses| uses.is_direct);
        size > SMALL && uses.is_some_and(|uses| uses.count > 1 || size > LISTED)
    }

    fn record(&self, schema: &'a Value) -> Option<&'a str> {
        component(schema).filter(|name| self.is_record(name))
    }

    /// The records with their members.
    pub(super) fn records(&self) -> impl Iterator<Item = (&'a str, String)> {
        let records = self.met.iter().filter(|name| self.is_record(name));
        records.map(|name| (*name, self.outline(&self.components[*name], true)))
    }

    /// The form of an answer.
    pub(super) fn answer(&self, schema: &'a Value) -> String {
        let choices = self.forms.choices(schema);
        if !choices.is_empty() {
            return either(choices.into_iter().map(|choice| self.answer(choice)));
        }
        self.record(schema).map_or_else(|| self.outline(schema, true), str::to_owned)
    }

    /// The names of an object's members, and at the outermost level the members of objects in lists.
    fn outline(&self, schema: &'a Value, is_outermost: bool) -> String {
        let member = |name: &str, schema| {
            let item = self.item(schema);
            let is_list = !std::ptr::eq(item, schema);
            let size = self.members(item).len();
            let form = match self.record(item) {
                Some(record) => record.to_owned(),
                None if is_outermost && is_list && (SMALL + 1..=LISTED).contains(&size) => self.outline(item, false),
                None => return name.to_owned(),
            };
            if is_list { format!("{name}: [{form}]") } else { format!("{name}: {form}") }
        };
        let members = self.members(schema);
        let members: Vec<String> = members.iter().map(|it| member(it.name, it.schema)).collect();
        format!("{{{}}}", members.join(", "))
    }
}
