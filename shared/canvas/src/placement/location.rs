//! Where a request wants the nodes that the service adds.

use domain::Violation;
use domain::id::NodeId;

use super::Hint;
use crate::graph::Graph;

/// A node to be near and a Section to lie in, where a request names them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Location {
    /// Node to be near.
    pub near: Option<NodeId>,
    /// Section to lie in.
    pub section: Option<NodeId>,
}

impl Location {
    /// What the request names and the graph does not have, under the fields `near` and `sectionId`.
    pub fn violations(&self, graph: &Graph) -> Vec<Violation> {
        let near = self.near.as_ref().filter(|near| graph.node(near).is_none());
        let near = near.map(|_| Violation::new("near", "is not a node of the canvas"));
        let is_section = |section: &NodeId| graph.node(section).is_some_and(|node| node.is_section());
        let section = self.section.as_ref().filter(|section| !is_section(section));
        let section = section.map(|_| Violation::new("sectionId", "is not a Section of the canvas"));
        near.into_iter().chain(section).collect()
    }

    /// The node or Section that the request names.
    pub fn nodes(&self) -> impl Iterator<Item = &NodeId> {
        self.near.iter().chain(&self.section)
    }

    /// What it names and the graph has.
    pub(crate) fn present(self, graph: &Graph) -> Self {
        let is_section = |section: &NodeId| graph.node(section).is_some_and(|node| node.is_section());
        Self { near: self.near.filter(|near| graph.node(near).is_some()), section: self.section.filter(is_section) }
    }

    /// The hint for the engine; `None` when a node does not exist.
    pub(crate) fn hint(&self, graph: &Graph) -> Option<Hint> {
        Hint::new(graph, self.near.as_ref(), self.section.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{graph, id, image, section};

    #[test]
    fn what_is_named_must_exist_and_be_what_it_is_used_for() {
        let graph = graph(vec![image("a"), section("s")], Vec::new());
        let fields = |near: Option<&str>, section: Option<&str>| -> Vec<String> {
            let location = Location { near: near.map(id), section: section.map(id) };
            location.violations(&graph).into_iter().map(|violation| violation.field).collect()
        };
        assert_eq!(fields(None, None), [""; 0]);
        assert_eq!(fields(Some("s"), Some("s")), [""; 0]);
        assert_eq!(fields(Some("gone"), Some("a")), ["near", "sectionId"]);
        assert_eq!(fields(Some("a"), Some("gone")), ["sectionId"]);
    }
}
