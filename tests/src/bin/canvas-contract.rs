//! A running service for the contract test. `tests/contract` starts it, reads its address, and ends it.
//!
//! **Guarantee.** The one line of JSON that it prints describes a new service that is ready: `baseUrl`, `documentUrl`,
//! `token` (every scope, credit, and a saved connection to a simulator), `session` (of the person, for the console), `environment`
//! (the variables of the processes, for admin commands; a JSON object in a string), `shopUrl` (a server that imports may fetch
//! from), `issuer` (an OpenID provider, which signs with shared/testkit/src/rsa.pk8; with `CONTRACT_SIGN_IN` in the environment people sign in
//! with it), and ids of existing resources of every kind in the contract, in a stable state, so that generated requests can find them.
//! The service runs until its standard input is closed, also when the process that started it is killed, and leaves nothing behind.

use std::collections::BTreeMap;
use std::io::Read;

use e2e::api::{key, text};
use e2e::{API_ROOT, Stack, User, images};
use serde_json::{Value, json};
use testkit::openid::{CLIENT, OpenId};
use testkit::providers::{SIMULATOR_KEY, Simulator, Vendor};
use testkit::{Answer, Receiver};

/// More credit than any run can spend.
const CREDIT: i64 = 1_000_000_000;

#[tokio::main(worker_threads = 2)]
async fn main() {
    let setting = start().await;
    // Blocks this thread, which has nothing else to do.
    let ended = std::io::stdin().read_to_end(&mut Vec::new());
    drop(setting);
    ended.expect("waits for the end of its standard input");
}

/// Starts the service, a shop for its imports, the provider of its saved connection, and that of sign-in.
async fn start() -> (Stack, Receiver, Simulator, OpenId) {
    let openid = OpenId::start().await;
    // Generated requests arrive as fast as they are answered, many of them with an invalid credential, and nobody waits for the
    // work that they start. The routes of legacy campaigns are active, and a preview token outlives the run.
    let mut stack = Stack::builder()
        .image_workers(1)
        .video_workers(1)
        .dispatchers(1)
        .receivers(1)
        .env("CANVAS_RATE_PER_MINUTE", 0)
        .env("CANVAS_ACTIVE_JOBS", 1_000_000)
        .env("CANVAS_ACTIVE_IMPORTS", 1_000_000)
        .env("CANVAS_LEGACY_CAMPAIGNS", 1)
        .env("CANVAS_PREVIEW_TTL_SECONDS", 86_400);
    if std::env::var_os("CONTRACT_SIGN_IN").is_some() {
        stack = stack.env("CANVAS_OIDC_ISSUER", &openid.issuer).env("CANVAS_OIDC_CLIENT_ID", CLIENT);
    }
    let stack = stack.start().await;
    let account = stack.account().await;
    let user = stack.user_of(&account, "all").await;
    stack.grant(&user.uid, CREDIT).await;
    let provider = Simulator::start(Vendor::OpenAi).await;
    stack.connect_to(&user.uid, "openai", provider.url(), SIMULATOR_KEY).await;
    let shop = stack.take_receiver();
    furnish(&shop);
    let mut ids = seed(&user, &shop.url("/hook")).await;
    let person = stack.person(&account).await;
    ids["ownerUid"] = json!(account.uid);
    ids["session"] = json!(person.session);
    ids["consoleDocumentUrl"] = json!(format!("{}/console/openapi.json", stack.origin(0)));
    ids["shopUrl"] = json!(shop.url(""));
    ids["issuer"] = json!(openid.issuer);
    ids["baseUrl"] = json!(stack.origin(0));
    ids["documentUrl"] = json!(format!("{}{API_ROOT}/openapi.json", stack.origin(0)));
    ids["token"] = json!(user.token);
    ids["environment"] = json!(json!(stack.env().iter().cloned().collect::<BTreeMap<_, _>>()).to_string());
    println!("{ids}");
    (stack, shop, provider, openid)
}

/// Adds to the shop the receiver `/hook` of webhooks, and the page `/boots` with its images. The page's JSON-LD describes a product.
fn furnish(shop: &Receiver) {
    let images = ["/boots.png", "/sole.png"];
    let product = json!({"@context": "https://schema.org", "@type": "Product", "name": "Boots", "image": images});
    let page = format!("<script type='application/ld+json'>{product}</script>");
    let file = |media_type, body: Vec<u8>| Answer::status(200).header("content-type", media_type).body(body);
    let files = [
        ("/boots", file("text/html; charset=utf-8", page.into_bytes())),
        ("/boots.png", file("image/png", images::scene(320, 240, 1))),
        ("/sole.png", file("image/png", images::scene(240, 320, 2))),
        ("/hook", Answer::status(200)),
    ];
    shop.answer_with(move |request| {
        let found = files.iter().find(|(path, _)| *path == request.path);
        found.map_or_else(|| Answer::status(404), |(_, answer)| answer.clone())
    });
}

/// Creates one resource of every kind, by the names that `tests/contract` uses.
async fn seed(user: &User, hook: &str) -> Value {
    let canvas = user.make_canvas().await;
    let canvas = text(&canvas, "/id");
    let asset = user.upload_into(canvas, "image/png", images::png(64, 48)).await;
    let webhook = json!({"url": hook, "secret": e2e::load::SECRET});
    let job = user.start_resize(canvas, json!({ "webhook": webhook })).await;
    user.finished(&job).await;
    let job = user.until(&job, |job| job["webhook"]["status"] == "delivered").await;
    let group = made(user, "/element-collections", &json!({"name": "Contract"})).await;
    let element = json!({"name": "Contract", "type": "style", "sourceAssetIds": [asset["id"]],
        "collectionIds": [group["collection"]["id"]]});
    let element = made(user, "/elements", &element).await;
    let recipes = user.get("/recipes?limit=1").await.ok();
    let models = user.get("/models?provider=managed&capability=image.generate").await.ok();
    json!({
        "canvasId": canvas,
        "nodeId": text(&asset, "/node").trim_start_matches("node:"),
        "assetId": asset["id"],
        "previewToken": token(&asset, "/previewUrl"),
        "videoToken": token(&kept_video(user).await, "/videoUrl"),
        "elementId": element["element"]["id"],
        "deliveryId": text(&job, "/webhook/id").trim_start_matches("webhook:"),
        "jobId": text(&job, "/id").trim_start_matches("job:"),
        "runId": text(&job, "/run").trim_start_matches("run:"),
        "recipeId": recipes["recipes"][0]["id"],
        "modelKey": models["models"][0]["id"],
        "videoId": video(user).await,
        "campaignId": campaign(user).await,
        "since": user.canvas(canvas).await["revision"],
    })
}

async fn made(user: &User, path: &str, body: &Value) -> Value {
    user.send(path, body).await.expect(201).json()
}

fn token(asset: &Value, url: &str) -> String {
    let url = url::Url::parse(text(asset, url)).expect("a URL");
    let token = url.query_pairs().find(|(name, _)| name == "token");
    token.expect("the URL has a token").1.into_owned()
}

/// Makes a video and keeps it as an asset.
async fn kept_video(user: &User) -> Value {
    let job = video(user).await;
    made(user, &format!("/jobs/{job}/asset"), &json!({})).await["asset"].clone()
}

/// Makes a video and returns the id of its job.
async fn video(user: &User) -> String {
    let body = json!({"model": "animatic", "prompt": "a kite over the sea", "idempotencyKey": key()});
    let job = user.send("/videos/generate", &body).await.expect(202).json();
    user.finished(&job).await;
    text(&job, "/rawId").to_owned()
}

/// Starts a campaign of one shot.
async fn campaign(user: &User) -> String {
    let canvas = user.make_canvas().await;
    let body = json!({"canvasId": canvas["id"], "baseRevision": canvas["revision"], "idempotencyKey": key(),
        "plan": {"brief": "Boots", "shots": [{"prompt": "Boots in the rain"}]}});
    let started = user.send("/campaigns/start", &body).await.expect(202).json();
    text(&started, "/run/id").to_owned()
}
