//! Resolves an entry of a run's `inputs` to a port, and checks that the port accepts the value. Rules:
//! `docs/reference/recipes.md#run-inputs` and `docs/reference/recipes.md#port-values`.

use super::{Input, InputKind, PortValue};

/// The normalized form of a label: lower case, each run of characters other than letters and digits replaced by `-`,
/// none at the ends.
pub fn normalized(label: &str) -> String {
    let lower = label.to_lowercase();
    lower.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-")
}

/// Why an entry names no port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPort {
    /// No input has this name.
    #[error("names no input of this Recipe")]
    Unknown,
    /// Several inputs have this label.
    #[error("is the label of several inputs: name one by its key")]
    Ambiguous,
}

/// Index of the input that `name` means: by node id (plain or handle), then by key, then by normalized label. `nodes`
/// are the ids of the inputs' nodes if the run has an instance on the canvas.
pub fn port(inputs: &[Input], nodes: &[String], name: &str) -> Result<usize, NoPort> {
    let id = name.strip_prefix("node:").unwrap_or(name);
    let by_node =
        nodes.iter().position(|node| node == id).or_else(|| inputs.iter().position(|input| input.node_id == id));
    if let Some(found) = by_node.or_else(|| inputs.iter().position(|input| input.key == name)) {
        return Ok(found);
    }
    let wanted = normalized(name);
    let labelled = |input: &Input| !wanted.is_empty() && normalized(&input.label) == wanted;
    let mut found = inputs.iter().enumerate().filter(|(_, input)| labelled(input)).map(|(at, _)| at);
    match (found.next(), found.next()) {
        (Some(only), None) => Ok(only),
        (Some(_), Some(_)) => Err(NoPort::Ambiguous),
        (None, _) => Err(NoPort::Unknown),
    }
}

impl Input {
    /// Checks that the port accepts a value; the error says what it accepts.
    pub fn accepts(&self, held: &PortValue) -> Result<(), &'static str> {
        match (self.kind, held) {
            (InputKind::Image, PortValue::Asset(_)) | (InputKind::Text | InputKind::Sticky, PortValue::Text(_)) => {
                Ok(())
            }
            (InputKind::Text | InputKind::Sticky, PortValue::Asset(_)) if self.written_reference => Ok(()),
            (InputKind::Image, PortValue::Text(_)) => Err("must be a node or asset handle of a durable image"),
            (InputKind::Text | InputKind::Sticky, PortValue::Asset(_)) => {
                Err("must be a text, or a node that holds one")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::tests::input;

    fn ports(ports: &[(&str, &str, &str)]) -> Vec<Input> {
        let port = |(node, key, label): &(&str, &str, &str)| {
            let mut new = input(key, "text");
            new.label = (*label).into();
            Input::from_new(new, (*node).into(), None)
        };
        ports.iter().map(port).collect()
    }

    #[test]
    fn a_label_is_compared_in_its_normal_form() {
        for (label, normal) in [
            ("Pack shot", "pack-shot"),
            ("  Pack -- SHOT! ", "pack-shot"),
            ("pack_shot", "pack-shot"),
            ("Größe №2", "größe-2"),
            ("!!!", ""),
            ("", ""),
        ] {
            assert_eq!(normalized(label), normal, "{label}");
        }
    }

    #[test]
    fn a_port_is_found_by_node_id_then_key_then_label() {
        let inputs = ports(&[("n1", "mood", "Pack shot"), ("n2", "pack-shot", "Mood"), ("mood", "c", "The C")]);
        for (name, found) in [
            ("n1", 0),
            ("node:n2", 1),
            // The node id takes precedence over the key, the key over the label.
            ("mood", 2),
            ("pack-shot", 1),
            ("Pack shot", 0),
            ("MOOD", 1),
            ("the c", 2),
        ] {
            assert_eq!(port(&inputs, &[], name), Ok(found), "{name}");
        }
    }

    #[test]
    fn the_nodes_of_an_instance_name_its_ports() {
        let inputs = ports(&[("n1", "a", "A"), ("n2", "b", "B")]);
        let nodes = ["x1".to_owned(), "x2".to_owned()];
        assert_eq!(port(&inputs, &nodes, "x2"), Ok(1));
        assert_eq!(port(&inputs, &nodes, "node:x1"), Ok(0));
        assert_eq!(port(&inputs, &nodes, "n2"), Ok(1));
    }

    #[test]
    fn unknown_and_ambiguous_names_are_reported() {
        let inputs = ports(&[("n1", "a", "Same"), ("n2", "b", "same!"), ("n3", "c", "!!")]);
        for unknown in ["", "x", "node:a", "??", "n4"] {
            assert_eq!(port(&inputs, &[], unknown), Err(NoPort::Unknown), "{unknown:?}");
        }
        assert_eq!(port(&inputs, &[], "SAME"), Err(NoPort::Ambiguous));
    }

    #[test]
    fn every_kind_of_port_against_every_kind_of_value() {
        let asset = PortValue::Asset("asset:me:a".to_owned().try_into().expect("a handle"));
        let text = PortValue::Text("t".into());
        for (kind, written, takes_text, takes_asset) in [
            ("image", false, false, true),
            ("text", false, true, false),
            ("sticky", false, true, false),
            ("text", true, true, true),
            ("sticky", true, true, true),
        ] {
            let mut new = input("a", kind);
            new.written_reference = written;
            let input = Input::from_new(new, "n".into(), None);
            assert_eq!(input.accepts(&text).is_ok(), takes_text, "{kind} {written}");
            assert_eq!(input.accepts(&asset).is_ok(), takes_asset, "{kind} {written}");
        }
    }
}
