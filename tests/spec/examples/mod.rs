//! The examples of the contract document: recorded from a running service, and held to it.
//!
//! The test sends requests to each operation, and one for each failure. It replaces what differs from run to run (ids, revisions,
//! tokens, and times by plausible ones), cuts long lists, and compares with `gateway/src/openapi/examples.json`, from which both
//! documents take their examples. The parameters of an example are those of its request.
//! `UPDATE_EXAMPLES=1 cargo nextest run -p canvas-e2e examples` writes that file anew; commit gateway/openapi.json and
//! gateway/console.json with it.

mod console;
mod operations;
mod places;
mod recorder;

use e2e::api::text;
use e2e::{PATIENCE, Part, Stack, images};
use futures_util::StreamExt;
use serde_json::{Value, json};
use testkit::Answer;
use testkit::openid::{CLIENT, OpenId};

use self::recorder::{DOCUMENTS, FILE, ONLY, PUBLIC_URL, Recorder, committed, shorten};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_example_is_what_the_service_answers() {
    let openid = OpenId::start().await;
    let stack = Stack::builder()
        .env("CANVAS_OIDC_ISSUER", &openid.issuer)
        .env("CANVAS_OIDC_CLIENT_ID", CLIENT)
        .image_workers(1)
        .video_workers(1)
        .dispatchers(1)
        .receivers(1)
        .env("CANVAS_LEGACY_CAMPAIGNS", 1)
        .env("CANVAS_PUBLIC_URL", PUBLIC_URL)
        .env("CANVAS_FAILED_AUTH_PER_MINUTE", 1)
        // Imports weigh as much as twenty requests.
        .env("CANVAS_RATE_PER_MINUTE", 0)
        .start()
        .await;
    let mut recorder = Recorder::new(&stack).await;
    recorder.document().await;
    recorder.canvases().await;
    recorder.assets().await;
    recorder.actions(&stack).await;
    recorder.elements().await;
    recorder.generation(&stack).await;
    recorder.recipes().await;
    recorder.imports().await;
    recorder.campaigns().await;
    recorder.places().await;
    recorder.failures(&stack).await;
    recorder.operations().await;
    // No worker takes its jobs, so that two are active; its tokens may send few requests.
    let narrow =
        Stack::builder().env("CANVAS_ACTIVE_JOBS", 2).env("CANVAS_RATE_BURST", 40).env("CANVAS_RATE_PER_MINUTE", 1);
    recorder.limits(&narrow.start().await).await;
    recorder.names.insert(openid.issuer.clone(), "https://id.example.com".to_owned());
    recorder.console(&stack).await;
    recorder.compare();
}

impl Recorder {
    /// The document itself, of which the beginning is shown, and its page.
    async fn document(&mut self) {
        let document = self.client.get("/openapi.json").await.ok();
        let shown = json!({"openapi": document["openapi"],
            "info": {"title": document["info"]["title"], "version": document["info"]["version"]}, "paths": {}});
        self.entry("getContract")["responses"]["200"][ONLY] = shown;
        self.entry("getDocs")["responses"]["200"][ONLY] = json!({"text/html": "<!doctype html>…"});
        let digest = self.client.get("/digest.md").await.expect(200);
        let title = String::from_utf8_lossy(&digest.body).lines().next().map(|line| format!("{line}\n…"));
        self.entry("getDigest")["responses"]["200"][ONLY] = json!({"text/markdown": title});
    }

    async fn canvases(&mut self) {
        let request = json!({"id": "harbor", "title": "Harbor campaign"});
        let made = self.post("createCanvas", "/canvases", request, 201).await;
        let first = text(&made, "/canvas/revision").to_owned();
        self.first_operations(&first).await;
        let (path, request) =
            ("/canvases/harbor/set-aside", json!({"operations": [{"type": "canvas.update", "title": "Harbor"}]}));
        let kept = self.client.send(path, &request).await.expect(201);
        let id = text(&kept.json(), "/id").to_owned();
        self.names.insert(id.clone(), "kqwzab".into());
        self.record("setBatchAside", ONLY, path, request, kept);
        self.get("getBatchSetAside", &format!("{path}/{id}")).await;
        self.get("getCanvas", "/canvases/harbor").await;
        self.get("listCanvases", "/canvases?limit=1").await;
        self.get("getCanvasChanges", &format!("/canvases/harbor/changes?since={first}&include=graph")).await;
        self.events().await;
        self.get("getCanvasOutline", "/canvases/harbor/outline").await;
        self.get("reviewCanvas", "/canvases/harbor/review").await;
        let path = "/canvases/harbor/render";
        let drawn = self.client.get(path).header("accept", "image/svg+xml").await.expect(200);
        self.record("renderCanvas", ONLY, path, Value::Null, drawn);
        for (name, value) in [("width", json!(1024)), ("labels", json!(true))] {
            self.entry("renderCanvas")["parameters"][name] = value;
        }
        let drawn = &mut self.entry("renderCanvas")["responses"]["200"][ONLY]["image/svg+xml"];
        let (beginning, _) = drawn.as_str().and_then(|svg| svg.split_once("<defs>")).expect("an SVG with definitions");
        *drawn = json!(format!("{beginning}…</svg>"));
    }

    /// The first three events of a stream that goes on.
    async fn events(&mut self) {
        let stream = self.client.get("/events?canvas=harbor").streamed().await.bytes_stream();
        let (mut stream, mut read) = (std::pin::pin!(stream), String::new());
        while read.matches("\n\n").count() < 3 {
            let piece = stream.next().await.expect("the stream goes on").expect("reads");
            read.push_str(std::str::from_utf8(&piece).expect("UTF-8"));
        }
        let data = read.lines().filter_map(|line| line.strip_prefix("data:"));
        let data: Vec<Value> = data.map(|data| self.named(&serde_json::from_str(data).expect("JSON"))).collect();
        let events = ["role", "canvas", "presence"].iter().zip(data);
        let text = events.map(|(event, data)| format!("event: {event}\ndata: {data}\n\n"));
        self.entry("followEvents")["responses"]["200"][ONLY] = json!({"text/event-stream": text.collect::<String>()});
        self.entry("followEvents")["parameters"] = json!({"canvas": ["harbor"], "runs": "mine"});
    }

    async fn assets(&mut self) {
        let call = self.client.post("/assets").header("x-service-file-name", "harbor.png");
        let uploaded =
            call.header("idempotency-key", "harbor-photo").body("image/png", images::same_png(640, 480)).await;
        let bytes = json!({"image/png": "(image/png bytes)"});
        let uploaded = self.record("uploadAsset", ONLY, "/assets", bytes, uploaded.expect(201));
        self.parameter("uploadAsset", "X-Service-File-Name", "harbor.png");
        self.parameter("uploadAsset", "Idempotency-Key", "harbor-photo");
        self.asset = uploaded["asset"].clone();
        let id = text(&self.asset, "/id").to_owned();
        self.get("getAsset", &format!("/assets/{id}")).await;
        self.get("getAssetLineage", &format!("/assets/{id}/lineage")).await;
        self.get("listAssets", "/assets?limit=1").await;
        let items = json!({"items": [self.asset["handle"]]});
        self.post("createDownloads", "/assets/downloads", items, 200).await;
        let files = json!({"files": [{"name": "sails.jpg"}], "canvasId": "harbor"});
        self.post("createUploads", "/assets/uploads", files, 201).await;
        let path = text(&self.asset, "/previewUrl").strip_prefix(PUBLIC_URL).expect("below the public URL").to_owned();
        let image = self.client.get(&path).await.expect(200);
        self.record("getAssetPreview", ONLY, "/assets/preview?token=PREVIEW_TOKEN", Value::Null, image);
        let image = self.client.get(&format!("/assets/{id}/content")).await.expect(200);
        self.record("getAssetContent", ONLY, &format!("/assets/{id}/content"), Value::Null, image);
        let beyond = self.client.get(&path).header("range", "bytes=10000000-").await.expect(416);
        self.failure("RangeNotSatisfiable", "range", beyond);
    }

    /// Records the dry run of a start, and then the start.
    async fn start(&mut self, id: &str, path: &str, request: Value) -> Value {
        let mut trial = request.clone();
        trial.as_object_mut().expect("an object").remove("idempotencyKey");
        trial["validateOnly"] = json!(true);
        let prefer = "handling=lenient";
        self.parameter(id, "Prefer", prefer);
        let send = async |body: &Value| self.client.send(path, body).header("prefer", prefer).await;
        let quote = send(&trial).await.expect(200);
        let started = send(&request).await.expect(202);
        self.record(id, "validate", path, trial, quote);
        self.record(id, "start", path, request, started)
    }

    /// Starts a resize into an empty node of a new canvas.
    async fn start_resize(&self, canvas: &str, image: &Value) -> Value {
        let (revision, target) = self.target(canvas).await;
        let request = json!({"canvasId": canvas, "baseRevision": revision, "idempotencyKey": format!("resize-{canvas}"),
            "targetNodeId": target, "inputs": [image["handle"]], "params": {"width": 320}});
        self.client.send("/actions/resize/runs", &request).await.expect(202).json()
    }

    async fn actions(&mut self, stack: &Stack) {
        self.list("listActions", "/actions?q=resize&limit=1").await;
        self.get("getAction", "/actions/resize").await;
        // No worker takes a job meanwhile.
        stack.pause(Part::IMAGE_WORKER);
        let canvas = self.client.canvas("harbor").await;
        let request = json!({
            "canvasId": "harbor", "baseRevision": canvas["revision"], "idempotencyKey": "resize-photo",
            "targetNodeId": canvas["nodes"][1]["id"], "inputs": [self.asset["handle"]], "params": {"width": 320},
            "webhook": {"url": self.receiver.url("/hook"), "secret": "0123456789abcdef0123456789abcdef"},
        });
        let started = self.start("runAction", "/actions/resize/runs", request).await;
        let run = text(&started, "/run").to_owned();
        let path = format!("/runs/{run}");
        let queued = self.client.get(&path).await.expect(202);
        self.record("getRun", "action", &path, Value::Null, queued);
        self.parameter("getRun", "Prefer", "wait=20");
        stack.resume(Part::IMAGE_WORKER);
        self.client.finished(&started).await;
        // A delivery is part of the record until it is over.
        let hook = self.receiver.wait_for(1, PATIENCE).await.remove(0);
        let event: Value = serde_json::from_slice(&hook.body).expect("an event is JSON");
        let mut event = self.named(&event);
        shorten(&mut event, false);
        self.operations.insert("runEnded".to_owned(), json!({"request": {ONLY: event}}));
        self.client.until(&started, |run| run["webhook"]["status"] == "delivered").await;
        let ended = self.client.get(&path).await.expect(200);
        self.record("getRun", "action", &path, Value::Null, ended);
        let list = self.get("listWebhookDeliveries", "/webhook-deliveries?limit=1").await;
        let delivery = text(&list, "/deliveries/0/webhook/id").trim_start_matches("webhook:").to_owned();
        for (id, path) in [
            ("replayWebhookDelivery", format!("/webhook-deliveries/{delivery}/replay")),
            ("replayFailedWebhookDeliveries", "/webhook-deliveries/replay?since=2026-01-15T09:30:00.000Z".to_owned()),
        ] {
            let replayed = self.client.post(&path).await.expect(202);
            self.record(id, ONLY, &path, Value::Null, replayed);
        }
        self.client.until(&started, |run| run["webhook"]["status"] == "delivered").await;
        let events = format!("{path}/events");
        let stream = self.client.get(&events).header("accept", "text/event-stream").await.expect(200);
        let stream = String::from_utf8(stream.body.to_vec()).expect("a text");
        let data = stream.lines().find_map(|line| line.strip_prefix("data:")).expect("an event");
        let mut data = self.named(&serde_json::from_str(data).expect("JSON"));
        shorten(&mut data, false);
        self.entry("followRun")["responses"]["200"][ONLY] = json!({"text/event-stream": data});
        self.parameter("followRun", "runId", &run);
        let node = text(&started, "/targets/0").trim_start_matches("node:").to_owned();
        self.get("getNode", &format!("/canvases/harbor/nodes/{node}")).await;
        // Bytes that no worker can decode fail the work that reads them.
        let broken = self.client.post("/assets").body("image/png", images::broken_png(64, 48)).await.expect(201).json();
        let started = self.start_resize("damaged", &broken["asset"]).await;
        self.client.finished(&started).await;
        let path = format!("/runs/{}", text(&started, "/run"));
        let failed = self.client.get(&path).await.expect(200);
        self.record("getRun", "failed", &path, Value::Null, failed);
        stack.pause(Part::IMAGE_WORKER);
        let started = self.start_resize("canceled", &self.asset).await;
        let path = format!("/runs/{}", text(&started, "/run"));
        let canceled = self.client.delete(&path).await.expect(200);
        self.record("cancelRun", ONLY, &path, Value::Null, canceled);
        stack.resume(Part::IMAGE_WORKER);
    }

    async fn elements(&mut self) {
        let request = json!({"name": "Spring"});
        let group = self.post("createElementCollection", "/element-collections", request, 201).await;
        let group = text(&group, "/collection/id").to_owned();
        self.get("listElementCollections", "/element-collections?limit=1").await;
        let path = format!("/element-collections/{group}");
        let request = json!({"name": "Spring 2026"});
        let reply = self.client.call(reqwest::Method::PATCH, &path).body("application/json", request.to_string()).await;
        self.record("renameElementCollection", ONLY, &path, request, reply.expect(200));
        let content = json!({"name": "Lighthouse", "type": "environment", "sourceAssetIds": [self.asset["id"]],
            "guidelines": "White tower, red roof."});
        let mut request = content.clone();
        request["collectionIds"] = json!([group]);
        let element = self.post("createElement", "/elements", request, 201).await;
        let id = text(&element, "/element/id").to_owned();
        let mut revised = content;
        revised["guidelines"] = json!("White tower, red roof, weathered stone.");
        let request = json!({"operation": "update", "element": revised});
        let path = format!("/elements/{id}");
        let reply = self.client.call(reqwest::Method::PATCH, &path).body("application/json", request.to_string()).await;
        self.record("updateElement", ONLY, &path, request, reply.expect(200));
        let current = self.client.get(&path).await.expect(200);
        self.record("getElement", "current", &path, Value::Null, current);
        let pinned = self.client.get(&format!("{path}?version=1")).await.expect(200);
        // Without its parameter, which would not belong to the other example.
        self.record("getElement", "pinned", &path, Value::Null, pinned);
        self.get("listElements", "/elements?search=light&limit=1").await;
        self.get("listElementVersions", &format!("{path}/versions?limit=1")).await;
        let request = json!({"confirm": true});
        let path = format!("/element-collections/{group}");
        let reply = self.client.delete(&path).body("application/json", request.to_string()).await;
        self.record("deleteElementCollection", ONLY, &path, request, reply.expect(200));
    }

    /// A target in a canvas of its own, so that the records of one do not grow with the others.
    async fn target(&self, canvas: &str) -> (Value, Value) {
        self.client.send("/canvases", &json!({"id": canvas})).await.expect(201);
        let node = json!({"type": "image", "position": {"x": 0, "y": 0}});
        let made = self.client.apply(canvas, json!([{"type": "node.create", "clientId": "slot", "node": node}])).await;
        (made["canvas"]["revision"].clone(), made["resolvedIds"]["slot"].clone())
    }

    async fn generation(&mut self, stack: &Stack) {
        let path = "/models?q=sketch&limit=1";
        let listed = self.client.get(path).await.ok();
        let key = text(&listed, "/models/0/id").to_owned();
        self.names.insert(key.clone(), "EXAMPLE_MODEL_KEY".to_owned());
        self.list("listModels", path).await;
        self.get("getModel", &format!("/models/{key}")).await;
        self.get("listProviders", "/providers?limit=1").await;
        for (id, path) in [("generateImages", "generate"), ("editImages", "edit"), ("varyImages", "variations")] {
            let (revision, target) = self.target(path).await;
            let mut request = json!({"canvasId": path, "baseRevision": revision, "idempotencyKey": format!("{path}-harbor"),
                "targetNodeId": target, "model": "sketch"});
            if path != "variations" {
                request["prompt"] = json!("A quiet harbor at dawn");
            }
            if path != "generate" {
                request["references"] = json!([{"handle": self.asset["handle"], "role": "style"}]);
            }
            let job = self.start(id, &format!("/images/{path}"), request).await;
            self.client.finished(&job).await;
        }
        let models = self.client.get("/models?q=animatic&limit=1").await.ok();
        self.names.insert(text(&models, "/models/0/id").to_owned(), "EXAMPLE_VIDEO_MODEL_KEY".to_owned());
        stack.pause(Part::VIDEO_WORKER);
        let mut request =
            json!({"model": "animatic", "prompt": "Fog lifts over the harbor", "idempotencyKey": "fog-lifts"});
        let job = self.start("generateVideo", "/videos/generate", request.clone()).await;
        let path = format!("/jobs/{}", text(&job, "/rawId"));
        let queued = self.client.get(&path).await.expect(202);
        self.record("getJob", ONLY, &path, Value::Null, queued);
        self.parameter("getJob", "Prefer", "wait=20");
        request["idempotencyKey"] = json!("fog-in-vain");
        let in_vain = self.client.send("/videos/generate", &request).await.expect(202).json();
        let vain = format!("/jobs/{}", text(&in_vain, "/rawId"));
        let canceled = self.client.delete(&vain).await.expect(200);
        self.record("cancelJob", ONLY, &vain, Value::Null, canceled);
        stack.resume(Part::VIDEO_WORKER);
        self.client.finished(&job).await;
        self.get("getJob", &path).await;
        self.get("getJobOutput", &format!("{path}/output")).await;
        self.parameter("keepJobVideo", "Prefer", "handling=lenient");
        let kept = self.post("keepJobVideo", &format!("{path}/asset"), json!({}), 201).await;
        let url = text(&kept, "/asset/videoUrl").strip_prefix(PUBLIC_URL).expect("below the public URL").to_owned();
        let video = self.client.get(&url).await.expect(200);
        self.record("getAssetVideo", ONLY, "/assets/video?token=VIDEO_TOKEN", Value::Null, video);
    }

    async fn recipes(&mut self) {
        let recipe = "product-hero-shot";
        let read = self.client.get(&format!("/recipes/{recipe}")).await.ok();
        self.names.insert(text(&read, "/recipe/outputs/0/model/id").to_owned(), "EXAMPLE_TEXT_MODEL_KEY".to_owned());
        self.list("listRecipes", "/recipes?q=hero&limit=1").await;
        self.get("getRecipe", &format!("/recipes/{recipe}")).await;
        for canvas in ["fork", "run"] {
            self.client.send("/canvases", &json!({"id": canvas})).await.expect(201);
        }
        let request =
            json!({"canvasId": "fork", "baseRevision": self.now("fork").await, "idempotencyKey": "fork-recipe"});
        let path = format!("/recipes/{recipe}/fork");
        let prefer = "return=minimal, handling=lenient";
        let reply = self.client.send(&path, &request).header("prefer", prefer).await.expect(201);
        self.record("forkRecipe", ONLY, &path, request, reply);
        self.parameter("forkRecipe", "Prefer", prefer);
        let request = json!({"canvasId": "run", "baseRevision": self.now("run").await, "idempotencyKey": "run-hero-shot",
            "inputs": {"pack": self.asset["handle"]}});
        let run = self.start("runRecipe", &format!("/recipes/{recipe}/runs"), request).await;
        self.client.finished(&run).await;
        let path = format!("/runs/{}", text(&run, "/run"));
        let ended = self.client.get(&path).await.expect(200);
        self.record("getRun", "recipe", &path, Value::Null, ended);
        self.get("listRuns", "/runs?limit=1").await;
        let request = json!({
            "name": "Postcard", "inputs": [
                {"key": "place", "label": "Place", "description": "Where it is.", "type": "text", "value": "A harbor",
                    "useAsDefault": true}],
            "outputs": [
                {"key": "card", "label": "Card", "description": "The image.", "type": "image",
                    "prompt": "A postcard of {{place}}", "inputKeys": ["place"]}],
            "idempotencyKey": "postcard",
        });
        let path = "/canvases/harbor/workflows";
        let reply = self.client.send(path, &request).header("prefer", "return=minimal").await.expect(201);
        self.record("createWorkflow", ONLY, path, request, reply);
        self.parameter("createWorkflow", "Prefer", "return=minimal");
    }

    async fn imports(&mut self) {
        let images = ["/boots.png"];
        let product = json!({"@context": "https://schema.org", "@type": "Product", "name": "Boots", "image": images});
        let page = format!("<script type='application/ld+json'>{product}</script>");
        let file = |kind, body: Vec<u8>| Answer::status(200).header("content-type", kind).body(body);
        let files = [
            ("/boots", file("text/html; charset=utf-8", page.into_bytes())),
            ("/boots.png", file("image/png", images::scene(320, 240, 1))),
            ("/sole.png", file("image/png", images::scene(240, 320, 2))),
        ];
        self.receiver.answer_with(move |request| {
            let found = files.iter().find(|(path, _)| *path == request.path);
            found.map_or_else(|| Answer::status(404), |(_, answer)| answer.clone())
        });
        for canvas in ["boots", "sole"] {
            self.client.send("/canvases", &json!({"id": canvas})).await.expect(201);
        }
        let path = "/product-references/import";
        let mut request =
            json!({"canvasId": "boots", "productPageUrl": self.receiver.url("/boots"), "idempotencyKey": "boots-page"});
        let reply = self.client.send(path, &request).await.expect(200);
        self.record("importProductReferences", "gallery", path, request.clone(), reply);
        request["variantSelector"] = json!("color=Green");
        request["idempotencyKey"] = json!("green-boots");
        let reply = self.client.send(path, &request).await.expect(200);
        self.record("importProductReferences", "variant", path, request, reply);
        let request =
            json!({"canvasId": "sole", "imageUrl": self.receiver.url("/sole.png"), "idempotencyKey": "sole-picture"});
        self.post("importImage", "/images/import", request, 200).await;
        let request =
            json!({"canvasId": "sole", "imageUrl": self.receiver.url("/gone.png"), "idempotencyKey": "gone-picture"});
        let failed = self.client.send("/images/import", &request).await.expect(502);
        self.failure("BadGateway", "upstream", failed);
    }

    fn plan_request(&self) -> Value {
        json!({"canvasId": "campaign", "brief": "A quiet harbor", "shotCount": 1})
    }

    async fn campaigns(&mut self) {
        self.client.send("/canvases", &json!({"id": "campaign"})).await.expect(201);
        let request = self.plan_request();
        let planned = self.post("planCampaign", "/campaigns/plan", request, 200).await;
        let request = json!({"canvasId": "campaign", "baseRevision": self.now("campaign").await,
            "idempotencyKey": "harbor-campaign", "title": "Harbor", "plan": planned["plan"]});
        let started = self.start("startCampaign", "/campaigns/start", request).await;
        let run = text(&started, "/run/id").to_owned();
        let shot = text(&started, "/run/shots/0/id").to_owned();
        let path = format!("/campaigns/{run}");
        testkit::wait_for("the campaign to succeed", PATIENCE, async || {
            let run = self.client.get(&path).await.ok();
            (run["run"]["status"] == "succeeded").then_some(())
        })
        .await;
        self.get("readCampaign", &path).await;
        self.get("listCampaigns", "/campaigns?canvasId=campaign").await;
        let request = json!({"decisions": [{"shotId": shot, "decision": "approve"}]});
        self.post("reviewCampaign", &format!("{path}/review"), request, 200).await;
        let reply = self.client.delete(&path).await.expect(200);
        self.record("cancelCampaign", ONLY, &path, Value::Null, reply);
    }

    /// The limits of a token and of an account, on a service that sets them low.
    async fn limits(&mut self, stack: &Stack) {
        let user = stack.user().await;
        let gone = user.send("/campaigns/plan", &self.plan_request()).await.expect(410);
        self.failure("Gone", "retired", gone);
        user.make_canvas().await;
        let canvas = user.make_canvas().await;
        let canvas = text(&canvas, "/id");
        user.start_resize(canvas, json!({})).await;
        user.start_resize(canvas, json!({})).await;
        let target = user.slot(canvas).await;
        let asset = user.upload("image/png", images::png(64, 48)).await;
        let request = user.resize_request(canvas, &target, text(&asset, "/handle")).await;
        let full = user.send("/actions/resize/runs", &request).await.expect(429);
        // As many as an account may have where the operator has set no limit.
        self.names.insert("at most 2 active jobs".to_owned(), "at most 1000 active jobs".to_owned());
        self.failure("TooManyRequests", "activeJobs", full);
        let limited = testkit::wait_for("the token's limit", PATIENCE, async || {
            let reply = user.get("/auth/status").await;
            (reply.status == 429).then_some(reply)
        });
        let limited = limited.await;
        self.failure("TooManyRequests", "token", limited);
    }

    async fn failures(&mut self, stack: &Stack) {
        let client = self.client.clone();
        let operations = "/canvases/harbor/operations";
        let now = self.now("harbor").await;
        let send = |body: Value| client.send(operations, &body);
        let base =
            |operations: Value| json!({"baseRevision": now, "idempotencyKey": "a-new-key", "operations": operations});
        let wrong = send(json!({"idempotencyKey": "short", "operations": []})).await.expect(400);
        self.failure("BadRequest", "violations", wrong);
        let wrong = client.post("/canvases").body("application/json", "{").await.expect(400);
        self.failure("BadRequest", "invalidJson", wrong);
        let first = self.names.iter().find(|(_, name)| *name == "rev-0002").expect("that of the first batch").0.clone();
        let image = client.canvas("harbor").await["nodes"][1]["id"].clone();
        let stale = json!({"baseRevision": first, "idempotencyKey": "a-new-key",
            "operations": [{"type": "node.update", "nodeId": image, "patch": {"title": "Harbor"}}]});
        let stale = send(stale).await.expect(409);
        self.failure("Conflict", "revision", stale);
        let reused = json!({"baseRevision": now, "idempotencyKey": "brief-and-slot",
            "operations": [{"type": "canvas.update", "title": "Harbor"}]});
        let reused = send(reused).await.expect(409);
        self.failure("Conflict", "key", reused);
        let missing = send(base(json!([{"type": "node.delete", "nodeId": "node:missing"}]))).await.expect(422);
        self.failure("UnprocessableEntity", "reference", missing);
        let over =
            json!([{"type": "node.create", "node": {"type": "text", "title": "Over", "position": {"x": 10, "y": 10}}}]);
        let blocked = send(base(over)).await.expect(422);
        self.failure("UnprocessableEntity", "blocked", blocked);
        let missing = client.get("/canvases/missing").await.expect(404);
        self.failure("NotFound", "missing", missing);
        let picky = client.get("/canvases/harbor/render").header("accept", "text/html").await.expect(406);
        self.failure("NotAcceptable", "accept", picky);
        let large = client.post("/canvases").body("application/json", vec![b' '; 1_048_577]).await.expect(413);
        self.failure("PayloadTooLarge", "body", large);
        let typed = client.post("/canvases").body("text/plain", "{}").await.expect(415);
        self.failure("UnsupportedMediaType", "contentType", typed);
        let poor = stack.user().await;
        poor.send("/canvases", &json!({"id": "poor"})).await.expect(201);
        let slot = poor.slot("poor").await;
        let request = json!({"canvasId": "poor", "baseRevision": poor.canvas("poor").await["revision"],
            "idempotencyKey": "a-new-key", "targetNodeId": slot, "prompt": "A harbor", "model": "sketch"});
        let unfunded = poor.send("/images/generate", &request).await.expect(402);
        self.failure("PaymentRequired", "credit", unfunded);
        let mut capped = request;
        capped["maxCredits"] = json!(0);
        let capped = poor.send("/images/generate", &capped).await.expect(402);
        self.failure("PaymentRequired", "cap", capped);
        let reader = stack.user_with("canvas:read").await;
        let denied = reader.send("/canvases", &json!({})).await.expect(403);
        self.failure("Forbidden", "scope", denied);
        let stranger = stack.anonymous().from_address([127, 0, 0, 3]).with_token("not-a-token");
        let unknown = stranger.get("/auth/status").await.expect(401);
        self.failure("Unauthorized", "credential", unknown);
        stranger.get("/auth/status").await.expect(401);
        let limited = stranger.get("/auth/status").await.expect(429);
        self.failure("TooManyRequests", "credentials", limited);
    }
}

#[test]
fn every_operation_has_an_example() {
    let examples = committed(FILE);
    for document in DOCUMENTS.map(committed) {
        let items = document["paths"].as_object().expect("paths").values();
        for operation in items.flat_map(|item| item.as_object().expect("an item").values()) {
            let id = text(operation, "/operationId");
            let example = &examples["operations"][id];
            assert!(example["responses"].is_object(), "{id} has an example of its response");
            assert_eq!(
                operation.get("requestBody").is_some(),
                example.get("request").is_some(),
                "{id}: of its request"
            );
        }
        for (name, response) in document["components"]["responses"].as_object().expect("the failures") {
            let examples = response["content"]["application/json"]["examples"].as_object().expect("examples");
            assert!(!examples.is_empty(), "{name} has an example");
        }
    }
}
