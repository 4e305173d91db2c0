//! What a port is given: a text, or what a node or asset handle stands for now (specification, Port acceptance on a run).

use canvas::Graph;
use domain::id::{AccountUid, AssetHandle, AssetRef, NodeId};
use domain::recipe::{Held, InputKind};

use crate::problem::Result;

/// A value as a request writes it. What is no well-formed handle is a text.
#[derive(Clone, Debug, PartialEq)]
pub enum Given {
    /// `node:<id>`.
    Node(NodeId),
    /// `asset:<id>` or `asset:<ownerUid>:<id>`, in its full form.
    Asset(AssetHandle),
    /// Anything else.
    Text(String),
}

impl Given {
    /// Reads a value; an asset handle without owner is `caller`'s.
    pub fn parse(text: &str, caller: &AccountUid) -> Self {
        if text.starts_with("node:")
            && let Ok(node) = NodeId::parse(text)
        {
            return Given::Node(node);
        }
        match text.starts_with("asset:").then(|| AssetRef::parse(text)) {
            Some(Ok(asset)) => Given::Asset(asset.resolve(caller)),
            _ => Given::Text(text.to_owned()),
        }
    }

    /// The value in its full form, for fingerprints (decisions 18.2).
    pub fn canonical(&self) -> String {
        match self {
            Given::Node(node) => node.handle(),
            Given::Asset(asset) => asset.to_string(),
            Given::Text(text) => text.clone(),
        }
    }

    /// What it stands for now; the error says why it stands for nothing.
    pub async fn resolve(
        &self,
        conn: &mut db::PgConnection,
        caller: &AccountUid,
        graph: &Graph,
    ) -> Result<std::result::Result<Held, &'static str>> {
        Ok(match self {
            Given::Text(text) => Ok(Held::Text(text.clone())),
            Given::Asset(asset) => match db::assets::get_readable(conn, caller, asset).await? {
                Some(_) => Ok(Held::Asset(asset.clone())),
                None => Err("is no picture that you can read"),
            },
            Given::Node(node) => match graph.node(node) {
                None => Err("is no node of the canvas"),
                Some(node) => held(node).ok_or("is a node that holds nothing yet"),
            },
        })
    }
}

/// What a node holds: its text, or the picture that it shows.
pub fn held(node: &domain::graph::Node) -> Option<Held> {
    match &node.asset {
        Some(asset) => Some(Held::Asset(asset.clone())),
        None => node.content().filter(|content| !content.is_empty()).map(|content| Held::Text(content.to_owned())),
    }
}

/// Whether a port of this kind can be fed by a node of this type, whatever it holds now.
pub fn may_feed(node: &domain::graph::Node, kind: InputKind, written_reference: bool) -> bool {
    use domain::graph::NodeType::Image;
    match kind {
        InputKind::Image => node.kind == Image,
        InputKind::Text | InputKind::Sticky => node.kind.holds_text() || (written_reference && node.kind == Image),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_handle_is_a_text() {
        let me = AccountUid::parse("me").expect("an id");
        let full = AssetHandle::try_from("asset:me:a".to_owned()).expect("a handle");
        assert_eq!(Given::parse("node:n1", &me), Given::Node(NodeId::parse("n1").expect("an id")));
        for same in ["asset:a", "asset:me:a"] {
            assert_eq!(Given::parse(same, &me), Given::Asset(full.clone()));
        }
        for text in ["n1", "node:", "node: take the red one", "asset:a:b:c", "Asset:a", "canvas:c", " node:n1"] {
            assert_eq!(Given::parse(text, &me), Given::Text(text.into()), "{text}");
        }
    }
}
