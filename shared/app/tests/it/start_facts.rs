//! What the checks of a start read of the canvas and the account.

use db::assets::{self, InputImage, NewAsset};
use db::canvases::{self, Change, IncomingReference};
use db::jobs::{self, StartFacts, StartQuestion};
use domain::account::Surface;
use domain::asset::AssetKind;
use domain::canvas::{AccessRole, Actor};
use domain::graph::{Connection, GraphWrites, Named, Node, NodeType, Purpose, Role};
use domain::id::{AssetHandle, AssetId, ConnectionId, NodeId};
use domain::lineage::Made;
use uuid::Uuid;

use crate::fixture::{Fixture, account, image_node, put, stored_blob};

impl Fixture {
    /// Stores an asset of 3 by 2 pixels, in the canvas or in none.
    async fn store(&self, owner: &str, id: &str, kind: AssetKind, is_in_canvas: bool) -> AssetHandle {
        let (mut conn, blob_key) = (self.conn().await, Uuid::from_bytes([7; 16]));
        stored_blob(&mut conn, blob_key, &[7; 32], 12).await;
        let handle = AssetHandle { owner: account(owner), id: AssetId::from_stored(id.into()) };
        let asset = NewAsset {
            handle: handle.clone(),
            canvas_key: is_in_canvas.then_some(self.canvas.key),
            node: None,
            kind,
            name: "a.png".into(),
            mime_type: "image/png".into(),
            width: 3,
            height: 2,
            bytes: 12,
            blob_key,
            origin: None,
            metadata_removed: Vec::new(),
            original: None,
            video: None,
            made: Made::uploaded(&Actor { owner_uid: account(owner), surface: Surface::Api, label: String::new() }),
            parents: Vec::new(),
        };
        assets::insert(&mut conn, &asset).await.expect("stores");
        handle
    }

    /// Adds a node that shows an asset.
    async fn add(&self, kind: NodeType, asset: Option<&AssetHandle>) -> Node {
        let node = Node { kind, asset: asset.cloned(), ..image_node() };
        put(&mut *self.conn().await, self.canvas.key, [&node]).await;
        node
    }

    async fn facts(&self, nodes: &[&NodeId], images: &[&Named]) -> StartFacts {
        let canvas_key = Some(self.canvas.key);
        let (nodes, images) = (nodes.to_vec(), images.to_vec());
        let question = StartQuestion {
            account: &self.account,
            canvas_key,
            nodes,
            images,
            kind: AssetKind::Image,
            outputs: (&self.account, 1),
        };
        jobs::read_for_start(&mut *self.conn().await, 10, &question).await.expect("reads")
    }
}

fn image(handle: &AssetHandle) -> Option<InputImage> {
    Some(InputImage { handle: handle.clone(), mime_type: "image/png".into(), width: 3, height: 2, duration_ms: None })
}

#[tokio::test]
async fn nodes_and_images_are_found_in_the_order_of_the_question() {
    let fixture = Fixture::shared().await;
    let mine = fixture.store("me", "mine", AssetKind::Image, false).await;
    let shared = fixture.store("you", "shared", AssetKind::Image, true).await;
    let (showing, empty) = (fixture.add(NodeType::Image, Some(&shared)).await, fixture.add(NodeType::Text, None).await);
    let none = NodeId::generate();
    let named = [
        Named::Node(showing.id.clone()),
        Named::Asset(mine.clone()),
        Named::Node(none.clone()),
        Named::Asset(shared.clone()),
        Named::Node(empty.id.clone()),
        Named::Node(showing.id.clone()),
    ];
    let found = fixture.facts(&[&empty.id, &none, &showing.id, &empty.id], &named.each_ref()).await;
    assert_eq!(found.active, 0);
    assert_eq!(found.nodes, [Some(empty.clone()), None, Some(showing), Some(empty)]);
    let shared = image(&shared);
    assert_eq!(found.images, [shared.clone(), image(&mine), None, shared.clone(), None, shared]);
}

#[tokio::test]
async fn an_asset_is_found_only_by_who_may_read_it() {
    let fixture = Fixture::shared().await;
    let of_canvas = fixture.store("you", "of-canvas", AssetKind::Image, true).await;
    let foreign = fixture.store("you", "foreign", AssetKind::Image, false).await;
    let prompt = fixture.store("me", "prompt", AssetKind::Prompt, false).await;
    // A node may show what the account could not name itself.
    let nodes = [fixture.add(NodeType::Image, Some(&foreign)).await, fixture.add(NodeType::Image, Some(&prompt)).await];
    let named = [
        Named::Asset(of_canvas.clone()),
        Named::Asset(foreign.clone()),
        Named::Asset(prompt),
        Named::Node(nodes[0].id.clone()),
        Named::Node(nodes[1].id.clone()),
    ];
    let found = fixture.facts(&[], &named.each_ref()).await;
    assert_eq!(found.images, [image(&of_canvas), None, None, image(&foreign), None]);
    fixture.share(Some(AccessRole::Viewer)).await;
    assert_eq!(fixture.facts(&[], &[&named[0]]).await.images, [image(&of_canvas)]);
    fixture.share(None).await;
    assert_eq!(fixture.facts(&[], &[&named[0]]).await.images, [None]);
}

#[tokio::test]
async fn active_work_is_counted_whatever_is_asked_for() {
    let fixture = Fixture::new().await;
    fixture.start().await;
    for nodes in [vec![], vec![&fixture.node], vec![&fixture.node, &fixture.node]] {
        let found = fixture.facts(&nodes, &[]).await;
        assert_eq!((found.active, found.nodes.len(), found.images.len()), (1, nodes.len(), 0));
    }
}

#[tokio::test]
async fn references_into_a_node_bring_the_images_of_image_nodes_in_the_order_of_creation() {
    let fixture = Fixture::shared().await;
    let asset = fixture.store("you", "shown", AssetKind::Image, true).await;
    let prompt = fixture.store("you", "prompt", AssetKind::Prompt, true).await;
    let expected = [
        (NodeType::Image, Some(&asset), Purpose::Reference, Some(Some(&asset))),
        (NodeType::Image, None, Purpose::Reference, Some(None)),
        (NodeType::Video, Some(&asset), Purpose::Reference, Some(None)),
        (NodeType::Image, Some(&asset), Purpose::Flow, None),
        (NodeType::Image, Some(&prompt), Purpose::Reference, Some(None)),
    ];
    let mut references = Vec::new();
    for (kind, shown, purpose, found) in expected {
        let from = fixture.add(kind, shown).await.id;
        let role = shown.map(|_| Role::Style);
        let id = ConnectionId::generate();
        let connection = Connection { id, short: None, from: from.clone(), to: fixture.node.clone(), purpose, role };
        let graph = GraphWrites { connections: vec![&connection], ..GraphWrites::default() };
        let change = Change { graph, ..Change::new("connected") };
        canvases::write(&mut *fixture.conn().await, fixture.canvas.key, &change).await.expect("writes a connection");
        references.extend(found.map(|image| IncomingReference { from, role, image: image.cloned() }));
    }
    let read = canvases::references_into(&mut *fixture.conn().await, fixture.canvas.key, &fixture.node).await;
    assert_eq!(read.expect("reads"), references);
}
