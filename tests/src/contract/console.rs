//! Checks that the console's document has every route for people, with its statuses (docs/reference/console.md).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::shapes::table;
use super::tests::operations;

#[test]
fn every_route_for_people_answers_with_its_statuses_and_no_others() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../gateway/console.json");
    let text = std::fs::read_to_string(path).expect("the document is committed");
    let document: Value = serde_json::from_str(&text).expect("it is JSON");
    let operations: BTreeMap<String, Value> = operations(&document)
        .into_iter()
        .map(|((method, path), operation)| (format!("{method} {path}"), operation))
        .collect();
    let tabled: BTreeMap<&str, &str> = table(include_str!("console.txt")).collect();
    assert!(operations.keys().map(String::as_str).eq(tabled.keys().copied()), "{:?}", operations.keys());
    for ((name, operation), own) in operations.iter().zip(tabled.values()) {
        let mut expected = BTreeSet::from(["400", "406", "429", "500", "503"]);
        if operation.get("requestBody").is_some() {
            expected.extend(["413", "415"]);
        }
        expected.extend(own.split_whitespace());
        let present = operation["responses"].as_object().expect("responses").keys();
        assert_eq!(present.map(String::as_str).collect::<BTreeSet<_>>(), expected, "{name}");
    }
}
