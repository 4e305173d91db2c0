//! Work in the background: imports, Actions, renditions, renders, generations, Recipes, webhooks.

use std::net::Ipv4Addr;
use std::time::Duration;

use e2e::api::{key, text};
use e2e::{User, images};
use serde_json::{Value, json};
use testkit::Answer;
use testkit::providers::{SIMULATOR_KEY, Simulator, Vendor};
use tokio::net::{TcpListener, UdpSocket};
use tokio::time::sleep;

use super::Ground;
use crate::scene::{NAMESERVER, Scene, crowd};

/// The pause after a refusal, as no attacker needs more of them.
const REST: Duration = Duration::from_millis(50);
/// Longer than any attack.
const NEVER: Duration = Duration::from_secs(600);
/// The credit of an attacker.
const CREDIT: i64 = 1_000_000;
/// The side of a large image: 49 megapixels.
const SIDE: u32 = 7000;

/// Imports of one account from a server that sends a byte a second.
pub async fn slow_imports(scene: &Scene) {
    imports(scene, 1, 40).await;
}

/// The same of three accounts.
pub async fn slow_imports_of_three(scene: &Scene) {
    imports(scene, 3, 32).await;
}

async fn imports(scene: &Scene, accounts: usize, each: usize) {
    let shop = scene.stack.take_receiver();
    let slow = Answer::status(200).header("content-type", "image/png").dripping(Duration::from_secs(1));
    shop.answer(slow);
    let mut grounds = Vec::new();
    for _ in 0..accounts {
        grounds.push(Ground::new(scene.user().await).await);
    }
    let attack = crowd(accounts * each, async |number| {
        let ground = &grounds[number % accounts];
        loop {
            let request = json!({"canvasId": ground.id, "imageUrl": shop.url(&format!("/{}.png", key())),
                "idempotencyKey": key()});
            scene.replied(&ground.user.send("/images/import", &request).attempt().await);
            sleep(REST).await;
        }
    });
    scene.during(attack).await;
}

/// Product pages with 200 candidates of 50 MiB.
pub async fn large_gallery(scene: &Scene) {
    let shop = scene.stack.take_receiver();
    let page: String = (0..200).map(|number| format!("<img src='/{number}.png' width=900 height=900>")).collect();
    let image = images::png(900, 900);
    // An image with as much after its end as an import accepts. Every copy shares these bytes.
    let file = bytes::Bytes::from([image, vec![0; 50 << 20]].concat()[..50 << 20].to_vec());
    shop.answer_with(move |request| match request.path.as_str() {
        path if path.starts_with("/page") => {
            Answer::status(200).header("content-type", "text/html").body(format!("<html><body>{page}</body></html>"))
        }
        _ => Answer::status(200).header("content-type", "image/png").body(file.clone()),
    });
    let ground = Ground::new(scene.user().await).await;
    let attack = crowd(4, async |_| {
        loop {
            let request = json!({"canvasId": ground.id, "productPageUrl": shop.url(&format!("/page-{}", key())),
                "idempotencyKey": key()});
            scene.replied(&ground.user.send("/product-references/import", &request).attempt().await);
            sleep(REST).await;
        }
    });
    scene.during(attack).await;
}

/// Free Actions of 49 megapixels.
pub async fn large_actions(scene: &Scene) {
    let user = scene.user().await;
    let asset = user.upload("image/png", images::plain_png(SIDE, SIDE, [9, 90, 200])).await;
    let mut grounds = Vec::new();
    for _ in 0..8 {
        grounds.push(Ground::new(user.clone()).await);
    }
    let attack = crowd(grounds.len(), async |number| {
        loop {
            let params = json!({"degrees": 1 + e2e::api::unique() % 300, "expand": "no", "format": "webp"});
            let request = json!({"inputs": [asset["handle"]], "params": params});
            scene.replied(&grounds[number].start("/actions/rotate/runs", request).await);
            sleep(REST).await;
        }
    });
    scene.during(attack).await;
}

/// Renditions of new large images, each in every width.
pub async fn renditions(scene: &Scene) {
    let user = scene.user().await;
    let image = images::plain_png(SIDE, SIDE, [200, 90, 9]);
    let attack = crowd(8, async |_| {
        loop {
            let sent = user.post("/assets").body("image/png", images::commented(&image)).attempt().await;
            scene.replied(&sent);
            let Some(asset) = sent.ok().filter(|reply| reply.status == 201).map(|reply| reply.json()) else {
                sleep(REST).await;
                continue;
            };
            for width in [64, 128, 256, 1024, 2048] {
                let preview = format!("{}&w={width}", text(&asset, "/asset/previewUrl"));
                scene.replied(&user.get(&preview).attempt().await);
            }
        }
    });
    scene.during(attack).await;
}

/// PNG renders, no two of the same size.
pub async fn renders(scene: &Scene) {
    let user = scene.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let create = |index: usize| {
        let place = json!({"x": 400 * (index % 20), "y": 400 * (index / 20)});
        let node = json!({"type": "text", "position": place, "metadata": {"content": "words of a note ".repeat(20)}});
        json!({"type": "node.create", "node": node})
    };
    user.apply(id, (0..200).map(create).collect()).await;
    let attack = crowd(16, async |number| {
        let mut width = 256 + 100 * number;
        loop {
            width = 256 + (width + 1) % 1792;
            let path = format!("/canvases/{id}/render?width={width}&nonce={}", key());
            scene.replied(&user.get(&path).header("accept", "image/png").attempt().await);
            sleep(REST).await;
            // A change, so that no render is one that was drawn before.
            if width % 16 == 0 {
                let title = json!([{"type": "canvas.update", "title": key()}]);
                let revision = text(&canvas, "/revision");
                let body = json!({"baseRevision": revision, "idempotencyKey": key(), "operations": title});
                let path = format!("/canvases/{id}/operations");
                let _ = user.send(&path, &body).header("prefer", "handling=lenient").attempt().await;
            }
        }
    });
    scene.during(attack).await;
}

/// An attacker with credit and a connection to a provider that answers after ten minutes.
async fn patient_provider(scene: &Scene) -> (Simulator, User, String) {
    let simulator = Simulator::start(Vendor::OpenAi).await;
    simulator.take(NEVER);
    let user = scene.user().await;
    scene.stack.grant(&user.uid, CREDIT).await;
    scene.stack.connect_to(&user.uid, "openai", simulator.url(), SIMULATOR_KEY).await;
    let models = user.get("/models?provider=openai&capability=image.generate").await.ok();
    let model = text(&models, "/models/0/handle").to_owned();
    (simulator, user, model)
}

/// Generations of a provider that does not answer.
pub async fn hanging_generations(scene: &Scene) {
    let (_simulator, user, model) = patient_provider(scene).await;
    let mut grounds = Vec::new();
    for _ in 0..8 {
        grounds.push(Ground::new(user.clone()).await);
    }
    let attack = crowd(grounds.len(), async |number| {
        loop {
            let request = json!({"model": model, "prompt": "a kite"});
            scene.replied(&grounds[number].start("/images/generate", request).await);
            sleep(REST).await;
        }
    });
    scene.during(attack).await;
}

/// A thousand queued Recipe runs.
pub async fn recipes(scene: &Scene) {
    let user = scene.user().await;
    scene.stack.grant(&user.uid, CREDIT).await;
    let image = user.upload("image/png", images::png(64, 48)).await;
    let mut grounds = Vec::new();
    for _ in 0..8 {
        grounds.push(Ground::new(user.clone()).await);
    }
    let attack = crowd(grounds.len(), async |number| {
        loop {
            let inputs = json!({"product": image["handle"], "offer": "Chairs, a fifth off until Sunday."});
            scene.replied(&grounds[number].start("/recipes/ad-copy-and-banner/runs", json!({"inputs": inputs})).await);
            sleep(REST).await;
        }
    });
    scene.during(attack).await;
}

/// Webhooks to 500 destinations that accept connections and never answer.
pub async fn dead_destinations(scene: &Scene) {
    let user = scene.user().await;
    let image = user.upload("image/png", images::png(64, 48)).await;
    let mut listeners = Vec::new();
    for number in 0..500_usize {
        let [block, host] = [10 + number / 250, 1 + number % 250].map(|part| u8::try_from(part).expect("small"));
        listeners.push(TcpListener::bind((Ipv4Addr::new(127, 0, block, host), 0)).await.expect("a port"));
    }
    let urls: Vec<String> =
        listeners.iter().map(|it| format!("https://{}/", it.local_addr().expect("an address"))).collect();
    let mut grounds = Vec::new();
    for _ in 0..4 {
        grounds.push(Ground::new(user.clone()).await);
    }
    let attack = crowd(grounds.len(), async |number| {
        let mut turn = number;
        loop {
            turn += grounds.len();
            let webhook = json!({"url": urls[turn % urls.len()], "secret": "s".repeat(32)});
            let params = json!({"width": 8 + turn % 40});
            let request = json!({"inputs": [image["handle"]], "params": params, "webhook": webhook});
            scene.replied(&grounds[number].start("/actions/resize/runs", request).await);
            sleep(REST).await;
        }
    });
    scene.during(attack).await;
}

/// Imports from hosts whose names take long to resolve: the name server of the processes receives questions and never answers.
pub async fn slow_names(scene: &Scene) {
    let bound = UdpSocket::bind((NAMESERVER, 53)).await;
    let _nameserver = bound.expect("port 53 of loopback is free, and this user may bind it: run this row as root");
    let ground = Ground::new(scene.user().await).await;
    let attack = crowd(40, async |_| {
        loop {
            let url = format!("https://{}.example.com/a.png", key());
            let request: Value = json!({"canvasId": ground.id, "imageUrl": url, "idempotencyKey": key()});
            scene.replied(&ground.user.send("/images/import", &request).attempt().await);
            sleep(REST).await;
        }
    });
    scene.during(attack).await;
}
