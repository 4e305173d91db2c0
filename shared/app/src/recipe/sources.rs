//! The values of ports: a text, or what a node or asset handle refers to (docs/reference/recipes.md#port-values).

use ::canvas::Graph;
use domain::asset::AssetKind;
use domain::graph::NodeType;
use domain::id::{AccountUid, AssetHandle, AssetRef, NodeId};
use domain::recipe::{InputKind, PortValue};

/// A value as a request writes it. Anything but a well-formed handle is a text.
#[derive(Clone, Debug, PartialEq)]
pub enum Given {
    /// A node, `node:<id>`.
    Node(NodeId),
    /// An asset, `asset:<id>` or `asset:<ownerUid>:<id>`, in its full form.
    Asset(AssetHandle),
    /// Any other text.
    Text(String),
}

impl Given {
    /// Parses a value; an asset handle without owner belongs to `caller`.
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

    /// The value in canonical form, for fingerprints.
    pub fn canonical(&self) -> String {
        match self {
            Given::Node(node) => node.handle(),
            Given::Asset(asset) => asset.to_string(),
            Given::Text(text) => text.clone(),
        }
    }

    /// The content that the value refers to now; the error says why there is none.
    pub async fn resolve(
        &self,
        conn: &mut db::PgConnection,
        caller: &AccountUid,
        graph: &Graph,
    ) -> Result<Result<PortValue, &'static str>, db::Error> {
        Ok(match self {
            Given::Text(text) => Ok(PortValue::Text(text.clone())),
            Given::Asset(asset) => match db::assets::get_readable(conn, caller, asset).await? {
                Some((found, _)) if found.kind == AssetKind::Image => Ok(PortValue::Asset(asset.clone())),
                _ => Err("is not an image that you can read"),
            },
            Given::Node(node) => match graph.node(node) {
                None => Err("is not a node of the canvas"),
                Some(node) => held(node).ok_or("is a node that holds nothing yet"),
            },
        })
    }
}

/// The content of a node: its text, or else its image. A video is no content. A text node that a port was filled with an image for has both once
/// words are written into it, and shows only these.
pub fn held(node: &domain::graph::Node) -> Option<PortValue> {
    let text = node.content().filter(|content| !content.is_empty());
    let image = || node.asset.clone().filter(|_| node.kind != NodeType::Video);
    text.map(|content| PortValue::Text(content.to_owned())).or_else(|| image().map(PortValue::Asset))
}

/// Returns `true` if a node of this type can feed a port of this kind, whatever the node holds now.
pub fn may_feed(node: &domain::graph::Node, kind: InputKind, written_reference: bool) -> bool {
    let is_image = node.kind == NodeType::Image;
    match kind {
        InputKind::Image => is_image,
        InputKind::Text | InputKind::Sticky => node.kind.holds_text() || (written_reference && is_image),
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
