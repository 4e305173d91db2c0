//! Serialized sizes, counted without building the text.
//!
//! The size of a canvas is the sum over its nodes and connections of the JSON that a read serves for each, with the
//! comma after it (`docs/reference/canvases.md#canvas-limits`). It is stored as a running sum in the canvas's row, so
//! both sides of a change must be measured in the same way: by [`serialized_size`]. Refs do not count, because a canvas of an earlier
//! release gets its refs without a write.

use std::io;

use domain::canvas;
use domain::graph::{Connection, Node};
use serde::Serialize;

/// A part of a canvas that counts toward its size.
pub trait Measured {
    /// Length of its served JSON, in bytes.
    fn served_len(&self) -> usize;
}

/// The contribution of `item` to the size of its canvas, in bytes.
pub fn serialized_size(item: &impl Measured) -> i64 {
    i64::try_from(item.served_len() + 1).unwrap_or(i64::MAX)
}

impl Measured for Node {
    fn served_len(&self) -> usize {
        json_len(&canvas::Node { short: None, ..canvas::Node::from(self) })
    }
}

impl Measured for Connection {
    fn served_len(&self) -> usize {
        json_len(&canvas::Connection { short: None, ..canvas::Connection::from(self) })
    }
}

/// Length of `value` as JSON, in bytes.
pub(crate) fn json_len(value: &impl Serialize) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    serde_json::to_writer(&mut count, value)
        .expect("counting does not fail, and what is measured has only text keys and no failing serializer");
    count.0
}

#[cfg(test)]
mod tests {
    use domain::graph::{Position, Purpose, Role};
    use serde_json::json;

    use super::*;
    use crate::fixture::{asset, connection, image, server, text, written};

    #[test]
    fn the_size_of_a_node_is_that_of_its_served_form_and_a_comma() {
        let mut full = image("n1");
        full.title = "Grüße \"und\" \n".into();
        full.position = Position { x: -0.5, y: 1e7 };
        full.metadata = written(json!({"prompt": "ä\u{1}", "custom": {"deep": [1, 2.5, null]}, "tags": ["a"]}));
        full.server = server(json!({"provenance": {"kind": "upload"}}));
        full.asset = Some(asset("a1"));
        let mut both = text("n2");
        both.agent_owned = true;
        both.metadata = written(json!({"content": "by the client"}));
        both.server = server(json!({"content": "by the service"}));
        for node in [full, both, image("bare")] {
            let served = serde_json::to_string(&canvas::Node::from(node.clone())).expect("serializes");
            assert_eq!(serialized_size(&node), served.len() as i64 + 1, "{served}");
        }
    }

    #[test]
    fn the_size_of_a_connection_is_that_of_its_served_form_and_a_comma() {
        let mut connection = connection("c", "a", "b", Purpose::Reference);
        connection.role = Some(Role::Identity);
        let served = serde_json::to_string(&canvas::Connection::from(connection.clone())).expect("serializes");
        assert_eq!(serialized_size(&connection), served.len() as i64 + 1);
    }
}
