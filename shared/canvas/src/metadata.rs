//! Client-written metadata: keys, values, and the merging of a patch. Rules:
//! `docs/reference/canvases.md#writable-metadata-keys`.
//!
//! Values are normalized as they are read (`section: false` becomes `null`, a whole number becomes an integer however
//! it was written), so that setting a key to its present value is recognized as no change.

use domain::Violation;
use domain::graph::{Node, NodeType};
use domain::id::NodeId;
use domain::limits::{METADATA_BYTES_MAX, PROMPT_MAX};
use domain::metadata::WritableMetadata;
use domain::stored::Stored;
use serde_json::{Map, Value};

use crate::reference::Ref;
use crate::size::json_len;

const CONTENT_MAX: usize = 24_000;
const MODEL_MAX: usize = 650;
const WORD_MAX: usize = 80;
const ALT_TEXT_MAX: usize = 1000;
const TAGS_MAX: usize = 24;
const FONT_SIZE_MAX: f64 = 1000.0;
const COUNT_MAX: i64 = 4;
const DURATION_SECONDS_MAX: i64 = 120;
/// 2^53 - 1. JSON readers that store numbers as doubles would change larger integers.
const INTEGER_MAX: i64 = (1 << 53) - 1;
const TEXT_ALIGNMENTS: [&str; 3] = ["left", "center", "right"];
const SERVER_KEYS: [&str; 7] = ["createdBy", "provenance", "job", "history", "upload", "source", "recipe"];

/// Changes of a batch to the metadata of one node.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct MetadataPatch {
    set: Map<String, Value>,
    removed: Vec<String>,
    pub(crate) home: Home,
}

/// Change of the Section that a node belongs to.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Home {
    /// No change.
    #[default]
    Keep,
    /// The node leaves it.
    Leave,
    /// The node joins this one.
    Join(Ref<NodeId>),
}

impl MetadataPatch {
    /// A patch that changes the Section alone.
    pub(crate) fn of_home(home: Home) -> Self {
        Self { home, ..Self::default() }
    }

    /// Parses the metadata of a request. Violations are added to `violations`, under `field`.
    pub(crate) fn parse(metadata: Map<String, Value>, field: &str, violations: &mut Vec<Violation>) -> Self {
        let mut patch = Self::default();
        for (key, value) in metadata {
            match read(&key, value) {
                Ok(Entry::Set(value)) => {
                    patch.set.insert(key, value);
                }
                Ok(Entry::Remove) if key == "sectionId" => patch.home = Home::Leave,
                Ok(Entry::Remove) => patch.removed.push(key),
                Ok(Entry::Join(section)) => patch.home = Home::Join(section),
                Err(message) => violations.push(Violation::new(format!("{field}.{key}"), message)),
            }
        }
        if json_len(&patch.set) > METADATA_BYTES_MAX {
            violations.push(Violation::new(field, too_large()));
        }
        if patch.makes_section() && matches!(patch.home, Home::Join(_)) {
            violations.push(Violation::new(format!("{field}.sectionId"), SECTION_IN_SECTION));
        }
        patch
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.set.is_empty() && self.removed.is_empty() && self.home == Home::Keep
    }

    /// Returns `true` if it contains `section: true`.
    pub(crate) fn makes_section(&self) -> bool {
        self.set.contains_key("section")
    }

    /// Returns `true` if it contains no text.
    pub(crate) fn has_no_text(&self) -> bool {
        self.set.get("content").and_then(Value::as_str).is_none_or(str::is_empty)
    }

    /// Returns `true` if it contains `section: null`.
    pub(crate) fn unmakes_section(&self) -> bool {
        self.removes("section")
    }

    /// The keys that a node of this type cannot have: key and reason.
    pub(crate) fn unfit_for(&self, kind: NodeType) -> impl Iterator<Item = (&'static str, &'static str)> {
        let writes_text = self.set.get("content").and_then(Value::as_str).is_some_and(|content| !content.is_empty());
        let content = (writes_text && !kind.holds_text()).then_some((
            "content",
            "must be empty on an image or video node: what it shows comes from work or imports",
        ));
        let section = (self.makes_section() && kind != NodeType::Sticky)
            .then_some(("section", "must not be set on a node that is not a sticky"));
        let of_pictures =
            ["altText", "placeholder"].into_iter().filter(move |key| kind.holds_text() && self.set.contains_key(*key));
        let of_pictures = of_pictures.map(|key| (key, "must not be set on a node that is not an image or video"));
        content.into_iter().chain(section).chain(of_pictures)
    }

    /// Merges it into a node, key by key. `section` is the Section that [`Home::Join`] names.
    pub(crate) fn merge_into(&self, node: &mut Node, section: Option<&NodeId>) {
        let mut set = self.set.clone();
        let content = set.get("content").and_then(Value::as_str);
        if content.is_some() && content == node.content() {
            set.remove("content");
        } else if content.is_some() || self.removes("content") {
            // The text of a client replaces that of the service.
            node.server.content = None;
        }
        if !set.is_empty() || !self.removed.is_empty() {
            node.metadata.merge(&set, &self.removed);
        }
        match (&self.home, section) {
            (Home::Leave, _) => node.metadata.section_id = None,
            (Home::Join(_), Some(section)) => node.metadata.section_id = Some(section.clone()),
            _ => {}
        }
    }

    fn removes(&self, key: &str) -> bool {
        self.removed.iter().any(|removed| removed == key)
    }
}

/// Returns `true` if a node's client-written metadata is within its size limit.
pub(crate) fn fits(metadata: &Stored<WritableMetadata>) -> bool {
    metadata.text().len() <= METADATA_BYTES_MAX
}

/// Violation message for metadata over the size limit.
pub(crate) fn too_large() -> String {
    format!("must be at most {METADATA_BYTES_MAX} bytes, serialized")
}

/// Violation message for a Section that would belong to a Section.
pub(crate) const SECTION_IN_SECTION: &str = "must not be set on a Section";

enum Entry {
    Set(Value),
    Remove,
    Join(Ref<NodeId>),
}

/// Parses one key; the error says what the value must be.
fn read(key: &str, value: Value) -> Result<Entry, String> {
    let reader: fn(Value) -> Result<Entry, String> = match key {
        "content" => |value| text(value, CONTENT_MAX),
        "prompt" | "negativePrompt" => |value| text(value, PROMPT_MAX),
        "model" => |value| text(value, MODEL_MAX),
        "altText" => |value| text(value, ALT_TEXT_MAX),
        "size" | "quality" | "aspectRatio" => |value| text(value, WORD_MAX),
        "count" => |value| integer(value, 1, COUNT_MAX),
        "durationSeconds" => |value| integer(value, 1, DURATION_SECONDS_MAX),
        "zIndex" => |value| integer(value, -INTEGER_MAX, INTEGER_MAX),
        "fontSize" => font_size,
        "color" => color,
        "textAlign" => text_align,
        "locked" | "collapsed" | "placeholder" => boolean,
        "section" => section,
        "sectionId" => section_id,
        "tags" => tags,
        "custom" => custom,
        _ if SERVER_KEYS.contains(&key) => return Err("belongs to the service and cannot be written".into()),
        _ => return Err("is not a writable metadata key".into()),
    };
    if value.is_null() { Ok(Entry::Remove) } else { reader(value) }
}

fn text(value: Value, max: usize) -> Result<Entry, String> {
    match value.as_str() {
        Some(text) if is_text(text, max) => Ok(Entry::Set(value)),
        _ => Err(format!("must be a text of at most {max} characters, none of them U+0000")),
    }
}

/// Returns `true` if `text` has at most `max` characters and no U+0000, which PostgreSQL cannot store.
pub(crate) fn is_text(text: &str, max: usize) -> bool {
    !text.contains('\0') && (text.len() <= max || text.chars().count() <= max)
}

fn integer(value: Value, min: i64, max: i64) -> Result<Entry, String> {
    match whole(&value) {
        Some(number) if (min..=max).contains(&number) => Ok(Entry::Set(number.into())),
        _ => Err(format!("must be an integer from {min} to {max}")),
    }
}

/// The integer that a number is equal to: JSON Schema does not distinguish `1` from `1.0`.
fn whole(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| {
        let number = value.as_f64()?;
        // Casting truncates nothing: within these bounds every whole double is an i64.
        (number.fract() == 0.0 && number.abs() <= INTEGER_MAX as f64).then_some(number as i64)
    })
}

fn font_size(value: Value) -> Result<Entry, String> {
    match value.as_f64() {
        Some(number) if (1.0..=FONT_SIZE_MAX).contains(&number) => {
            Ok(Entry::Set(whole(&value).map_or(value, Value::from)))
        }
        _ => Err(format!("must be a number from 1 to {FONT_SIZE_MAX}")),
    }
}

fn color(value: Value) -> Result<Entry, String> {
    let is_color = value
        .as_str()
        .and_then(|text| text.strip_prefix('#'))
        .is_some_and(|digits| digits.len() == 6 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
    if is_color { Ok(Entry::Set(value)) } else { Err("must be a color of the form `#rrggbb`".into()) }
}

fn text_align(value: Value) -> Result<Entry, String> {
    match value.as_str() {
        Some(name) if TEXT_ALIGNMENTS.contains(&name) => Ok(Entry::Set(value)),
        _ => Err("must be `left`, `center` or `right`".into()),
    }
}

fn boolean(value: Value) -> Result<Entry, String> {
    if value.is_boolean() { Ok(Entry::Set(value)) } else { Err("must be true or false".into()) }
}

fn section(value: Value) -> Result<Entry, String> {
    match value {
        Value::Bool(false) => Ok(Entry::Remove),
        value => boolean(value),
    }
}

fn section_id(value: Value) -> Result<Entry, String> {
    let malformed =
        || "must be a node id, a node handle, or the clientId of a node made earlier in the batch".to_owned();
    value.as_str().and_then(|text| Ref::parse(text).ok()).map(Entry::Join).ok_or_else(malformed)
}

fn tags(value: Value) -> Result<Entry, String> {
    let is_tag = |tag: &Value| tag.as_str().is_some_and(|tag| tag.chars().count() <= WORD_MAX);
    match value.as_array() {
        Some(tags) if tags.len() <= TAGS_MAX && tags.iter().all(is_tag) => storable(value),
        _ => Err(format!("must be at most {TAGS_MAX} texts of at most {WORD_MAX} characters each")),
    }
}

fn custom(value: Value) -> Result<Entry, String> {
    if !value.is_object() {
        return Err("must be an object".into());
    }
    storable(value)
}

/// A value made of many texts, unless PostgreSQL cannot store one of them.
fn storable(value: Value) -> Result<Entry, String> {
    if has_nul(&value) { Err("must not contain the character U+0000".into()) } else { Ok(Entry::Set(value)) }
}

fn has_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(has_nul),
        Value::Object(object) => object.iter().any(|(key, value)| key.contains('\0') || has_nul(value)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixture::{fields, object, server, text as text_node, written};

    fn parse(metadata: Value) -> (MetadataPatch, Vec<Violation>) {
        let mut violations = Vec::new();
        (MetadataPatch::parse(object(metadata), "m", &mut violations), violations)
    }

    /// The stored value of a key, or `None` when it is rejected.
    fn stored(key: &str, value: Value) -> Option<Value> {
        let (patch, violations) = parse(json!({ key: value }));
        if violations.is_empty() {
            return Some(patch.set.get(key).cloned().unwrap_or(Value::Null));
        }
        assert_eq!(fields(&violations), [format!("m.{key}")]);
        None
    }

    #[test]
    fn a_text_has_at_most_its_number_of_characters() {
        for (key, max) in [
            ("content", 24_000),
            ("prompt", 8_000),
            ("negativePrompt", 8_000),
            ("model", 650),
            ("altText", 1000),
            ("size", 80),
            ("quality", 80),
            ("aspectRatio", 80),
        ] {
            assert!(stored(key, json!("")).is_some() && stored(key, json!("ä".repeat(max))).is_some(), "{key}");
            for wrong in [json!("a".repeat(max + 1)), json!(1), json!(["a"]), json!("a\0b")] {
                assert_eq!(stored(key, wrong), None, "{key}");
            }
        }
    }

    #[test]
    fn a_text_that_cannot_be_stored_is_reported() {
        for (key, value) in [("tags", json!(["a", "\0"])), ("custom", json!({"a": "\0"}))] {
            let (_, violations) = parse(json!({ key: value }));
            assert_eq!(violations[0].message, "must not contain the character U+0000", "{key}");
        }
    }

    #[test]
    fn numbers_keep_to_their_ranges_and_whole_ones_are_stored_as_integers() {
        for (key, min, max) in
            [("count", 1, 4), ("durationSeconds", 1, 120), ("fontSize", 1, 1000), ("zIndex", -INTEGER_MAX, INTEGER_MAX)]
        {
            assert_eq!(stored(key, json!(min)), Some(json!(min)), "{key}");
            assert_eq!(stored(key, json!(max)), Some(json!(max)), "{key}");
            assert_eq!(stored(key, json!(max as f64)), Some(json!(max)), "{key}");
            for wrong in [json!(min - 1), json!(max + 1), json!("1"), json!(true)] {
                assert_eq!(stored(key, wrong), None, "{key}");
            }
        }
        assert_eq!(stored("count", json!(1.5)), None);
        assert_eq!(stored("zIndex", json!(1e300)), None);
        assert_eq!(stored("fontSize", json!(12.5)), Some(json!(12.5)));
        assert_eq!(stored("fontSize", json!(1000.5)), None);
        assert_eq!(stored("fontSize", json!(0.5)), None);
    }

    #[test]
    fn a_color_is_a_hash_and_six_hexadecimal_digits() {
        assert!(stored("color", json!("#00fFa9")).is_some());
        for wrong in ["", "#", "00ffa9", "#00ffa", "#00ffa9b", "#00ffg9", "#äöü", "red"] {
            assert_eq!(stored("color", json!(wrong)), None, "{wrong}");
        }
    }

    #[test]
    fn alignments_switches_tags_and_custom_objects_are_checked() {
        for right in ["left", "center", "right"] {
            assert!(stored("textAlign", json!(right)).is_some());
        }
        assert_eq!(stored("textAlign", json!("justify")), None);
        for key in ["locked", "collapsed", "placeholder", "section"] {
            assert_eq!(stored(key, json!(true)), Some(json!(true)));
            assert_eq!(stored(key, json!("true")), None);
        }
        assert!(stored("tags", json!(vec!["ä".repeat(80); 24])).is_some());
        assert_eq!(stored("tags", json!(vec!["a"; 25])), None);
        assert_eq!(stored("tags", json!(["a".repeat(81)])), None);
        assert_eq!(stored("tags", json!([1])), None);
        assert_eq!(stored("tags", json!("a")), None);
        assert!(stored("custom", json!({"a": {"b": [1, "c", null]}})).is_some());
        for wrong in [json!([]), json!("a"), json!({"a": ["\0"]}), json!({"\0": 1})] {
            assert_eq!(stored("custom", wrong), None);
        }
    }

    #[test]
    fn keys_that_are_not_writable_are_named() {
        for key in SERVER_KEYS.into_iter().chain(["Content", "asset", "", "x.y"]) {
            assert_eq!(stored(key, json!("a")), None);
            assert_eq!(stored(key, Value::Null), None);
        }
    }

    #[test]
    fn every_violation_is_listed() {
        let (_, violations) = parse(json!({"color": 1, "count": 9, "job": {}, "locked": true, "sectionId": "a b"}));
        assert_eq!(fields(&violations), ["m.color", "m.count", "m.job", "m.sectionId"]);
    }

    #[test]
    fn a_section_in_a_section_is_refused() {
        let (_, violations) = parse(json!({"section": true, "sectionId": "s"}));
        assert_eq!(fields(&violations), ["m.sectionId"]);
        assert!(parse(json!({"section": false, "sectionId": "s"})).1.is_empty());
        assert!(parse(json!({"section": true, "sectionId": null})).1.is_empty());
    }

    #[test]
    fn the_cap_counts_serialized_bytes() {
        let overhead = json_len(&json!({"custom": {"a": ""}}));
        let of = |bytes: usize| json!({"custom": {"a": "x".repeat(bytes - overhead)}});
        assert!(parse(of(METADATA_BYTES_MAX)).1.is_empty());
        assert_eq!(fields(&parse(of(METADATA_BYTES_MAX + 1)).1), ["m"]);
        assert!(fits(&written(of(METADATA_BYTES_MAX))) && !fits(&written(of(METADATA_BYTES_MAX + 1))));
    }

    #[test]
    fn a_patch_merges_key_by_key() {
        let mut node = text_node("n");
        node.metadata = written(json!({"prompt": "old", "custom": {"a": 1, "b": 2}, "locked": true, "sectionId": "s"}));
        let (patch, _) =
            parse(json!({"prompt": "new", "custom": {"c": 3}, "locked": null, "section": false, "sectionId": null}));
        patch.merge_into(&mut node, None);
        assert_eq!(node.metadata, written(json!({"prompt": "new", "custom": {"c": 3}})));
    }

    #[test]
    fn a_clients_content_takes_the_place_of_the_services() {
        let by_service = || {
            let mut node = text_node("n");
            node.server = server(json!({"content": "by the service", "provenance": {"kind": "recipe"}}));
            node
        };
        for (patch, content) in [
            (json!({"content": "mine"}), Some("mine")),
            (json!({"content": null}), None),
            (json!({"prompt": "p"}), Some("by the service")),
        ] {
            let mut node = by_service();
            parse(patch).0.merge_into(&mut node, None);
            assert_eq!(node.content(), content);
            assert!(node.is_made());
        }
        let mut node = by_service();
        parse(json!({"content": "by the service"})).0.merge_into(&mut node, None);
        assert_eq!(node, by_service());
    }
}
