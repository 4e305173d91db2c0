//! Starts that add their targets.

use serde_json::{Value, json};

use super::recorder::Recorder;

impl Recorder {
    /// Records a dry run and a start with `place`, of an Action and of image generation.
    pub(super) async fn places(&mut self) {
        self.client.send("/canvases", &json!({"id": "places"})).await.expect(201);
        let photo = self.asset["handle"].clone();
        for (id, path, work) in [
            ("runAction", "/actions/crop/runs", json!({"inputs": [photo], "params": {"width": 320, "height": 320}})),
            ("varyImages", "/images/variations", json!({"source": photo, "model": "sketch"})),
        ] {
            let mut request = work;
            request["canvasId"] = json!("places");
            request["baseRevision"] = self.now("places").await;
            request["place"] = match id {
                "runAction" => json!({"title": "Harbor, square"}),
                _ => json!({"x": 0, "y": 400, "title": "Harbor, varied", "count": 2}),
            };
            let mut trial = request.clone();
            trial["validateOnly"] = json!(true);
            let quote = self.client.send(path, &trial).await.expect(200);
            self.record(id, "validatePlace", path, trial, quote);
            request["idempotencyKey"] = json!(format!("place-{id}"));
            let started = self.client.send(path, &request).await.expect(202);
            let job = self.record(id, "startPlace", path, request, started);
            self.client.finished(&job).await;
        }
        self.chain(&photo).await;
    }

    /// Records a dry run and a start of Actions in a row.
    async fn chain(&mut self, photo: &Value) {
        let mut request = json!({
            "canvasId": "places", "baseRevision": self.now("places").await, "inputs": [photo],
            "steps": [
                {"action": "crop", "params": {"width": 320, "height": 320}},
                {"action": "add-text-to-image", "params": {"text": "Harbor"}},
            ],
            "place": {"title": "Harbor, with text"}, "validateOnly": true,
        });
        let quote = self.client.send("/actions/runs", &request).await.expect(200);
        self.record("runActions", "validate", "/actions/runs", request.clone(), quote);
        request.as_object_mut().expect("an object").remove("validateOnly");
        request["idempotencyKey"] = json!("chain-photo");
        let started = self.client.send("/actions/runs", &request).await.expect(202);
        let started = self.record("runActions", "start", "/actions/runs", request, started);
        self.client.finished(&started["runs"][0]).await;
    }
}
