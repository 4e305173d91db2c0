//! Examples of operations, for `canvas apply --example`.

use clap::builder::PossibleValuesParser;
use serde_json::{Value, json};

/// An operation of each kind.
fn operations() -> Vec<Value> {
    vec![
        json!({"type": "node.create", "clientId": "brief", "node": {"type": "text", "title": "Brief", "metadata": {"content": "A mug at dawn"}}}),
        json!({"type": "node.update", "nodeId": "n1", "patch": {"title": "Brief", "metadata": {"content": "A mug at noon"}}}),
        json!({"type": "node.move", "nodeId": "n1", "position": {"x": 400, "y": -80}}),
        json!({"type": "node.duplicate", "nodeId": "n1", "clientId": "copy", "position": {"x": 800, "y": 0}}),
        json!({"type": "node.delete", "nodeId": "n1"}),
        json!({"type": "node.restore", "nodeId": "n1"}),
        json!({"type": "connection.create", "clientId": "line", "fromNodeId": "n1", "toNodeId": "n2", "purpose": "reference", "role": "identity"}),
        json!({"type": "connection.update", "connectionId": "c1", "purpose": "flow"}),
        json!({"type": "connection.delete", "connectionId": "c1"}),
        json!({"type": "connection.restore", "connectionId": "c1"}),
        json!({"type": "layout.arrange", "nodeIds": ["n1", "n2"], "layout": "grid", "columns": 2}),
        json!({"type": "node.fit", "nodeId": "n1"}),
        json!({"type": "section.fit", "nodeId": "n1"}),
        json!({"type": "section.create", "clientId": "hero", "title": "Hero", "nodeIds": ["n1", "n2"]}),
        json!({"type": "canvas.update", "title": "Autumn drop"}),
    ]
}

/// The kinds of operations.
pub fn kinds() -> PossibleValuesParser {
    let kinds = operations().into_iter().filter_map(|it| it["type"].as_str().map(str::to_owned));
    kinds.collect::<Vec<_>>().into()
}

/// A body of the operations route with one operation of this kind.
pub fn example(kind: &str) -> Value {
    operations().into_iter().filter(|it| it["type"] == kind).collect()
}

#[cfg(test)]
mod tests {
    use domain::operation::Operation;

    use super::*;

    #[test]
    fn there_is_an_example_of_every_operation() {
        let examples = operations();
        let kinds: Vec<&Value> = examples.iter().map(|it| &it["type"]).collect();
        let forms = Operation::forms();
        let known: Vec<&Value> = forms.iter().map(|form| &form["properties"]["type"]["enum"][0]).collect();
        assert_eq!(kinds, known);
        for operation in examples {
            serde_json::from_value::<Operation>(operation.clone())
                .unwrap_or_else(|error| panic!("{operation}: {error}"));
        }
    }
}
