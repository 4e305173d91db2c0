//! Examples of operations.

use e2e::api::text;
use serde_json::{Value, json};

use super::recorder::Recorder;

const APPLY: &str = "applyOperations";

impl Recorder {
    /// The first batch on a canvas and the dry run of another, which the reference begins with.
    pub(super) async fn first_operations(&mut self, revision: &str) {
        let operations = json!([
            {"type": "node.create", "clientId": "brief",
                "node": {"type": "text", "title": "Brief", "position": {"x": 0, "y": 0},
                    "metadata": {"content": "A quiet harbor at dawn."}}},
            {"type": "node.create", "clientId": "image",
                "node": {"type": "image", "title": "Image", "position": {"x": 400, "y": 0}}},
            {"type": "connection.create", "fromNodeId": "brief", "toNodeId": "image"},
        ]);
        let path = "/canvases/harbor/operations";
        let batch = json!({"baseRevision": revision, "idempotencyKey": "brief-and-slot", "operations": operations});
        let prefer = "return=minimal, handling=lenient";
        let reply = self.client.send(path, &batch).header("prefer", prefer).await.expect(200);
        let applied = self.record(APPLY, "apply", path, batch, reply);
        self.parameter(APPLY, "Prefer", prefer);
        let node = text(&applied, "/resolvedIds/brief").to_owned();
        let trial = json!({"validateOnly": true, "operations": [{"type": "node.delete", "nodeId": node}]});
        let reply = self.client.send(path, &trial).await.expect(200);
        self.record(APPLY, "dryRun", path, trial, reply);
    }

    /// Batches that leave places to the service, and one that restores, on a canvas of their own.
    pub(super) async fn operations(&mut self) {
        self.client.send("/canvases", &json!({"id": "layout"})).await.expect(201);
        let placed = json!([
            {"type": "node.create", "clientId": "photo",
                "node": {"type": "image", "title": "Harbor", "asset": self.asset["handle"], "width": 480}},
            {"type": "node.create", "clientId": "note", "near": "photo",
                "node": {"type": "text", "title": "Note", "metadata": {"content": "The light of the first shot."}}},
            {"type": "connection.create", "clientId": "about", "fromNodeId": "note", "toNodeId": "photo"},
        ]);
        let made = self.batch("place", placed).await;
        let [photo, note, about] =
            ["photo", "note", "about"].map(|name| text(&made, &format!("/resolvedIds/{name}")).to_owned());
        let section = json!([
            {"type": "section.create", "clientId": "shots", "title": "Shots", "nodeIds": [photo, note]},
            {"type": "node.update", "nodeId": "shots", "patch": {"metadata": {"fontSize": 48}}},
        ]);
        let made = self.batch("section", section).await;
        let shots = text(&made, "/resolvedIds/shots").to_owned();
        let arranged = json!([
            {"type": "layout.arrange", "sectionId": shots, "layout": "column", "gap": 24},
            {"type": "section.fit", "nodeId": shots},
            {"type": "node.move", "nodeId": shots, "position": {"x": 0, "y": 1000}, "withMembers": true},
        ]);
        self.batch("arrange", arranged).await;
        self.client.apply("layout", json!([{"type": "node.delete", "nodeId": note}])).await;
        let restored = json!([
            {"type": "node.restore", "nodeId": note},
            {"type": "connection.restore", "connectionId": about},
        ]);
        self.batch("restore", restored).await;
    }

    /// Records a batch as the example of this name.
    async fn batch(&mut self, name: &str, operations: Value) -> Value {
        let path = "/canvases/layout/operations";
        let batch = json!({"baseRevision": self.now("layout").await, "idempotencyKey": format!("layout-{name}"),
            "operations": operations});
        let reply = self.client.send(path, &batch).header("prefer", "return=minimal").await.expect(200);
        self.record(APPLY, name, path, batch, reply)
    }
}
