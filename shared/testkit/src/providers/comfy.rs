//! Simulator of a self-hosted server with the Comfy API v2. It needs no key, and rejects an
//! idempotency key that was used before.

use http::Method;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::check::{self, Kind, optional, required};
use super::failure_mode::FailureMode;
use super::form;
use super::image::is_image;
use super::mask;
use super::server::{Call, Reply, Transmission};
use super::state::{Asked, Phase, Run, State};

pub(super) fn answer(state: &State, call: &Call) -> Reply {
    match (&call.method, call.pieces().as_slice()) {
        (&Method::POST, ["api", "v2", "assets"]) => upload(state, call),
        (&Method::POST, ["api", "v2", "jobs"]) => submit(state, call),
        (&Method::GET, ["api", "v2", "jobs", id]) => {
            state.poll(id, |run, phase| Reply::json(200, &job(state, run, phase))).unwrap_or_else(not_found)
        }
        (&Method::POST, ["api", "v2", "jobs", id, "cancel"]) => match state.cancel(id) {
            Some(_) => state.peek(id, |run, phase| Reply::json(200, &job(state, run, phase))),
            None => None,
        }
        .unwrap_or_else(not_found),
        // Redirects to the results host.
        (&Method::GET, ["api", "v2", "assets", id, "content"]) => match state.peek(id, |run, _| run.file.clone()) {
            Some(file) => Reply::bytes(302, "text/plain", "").with("location", file),
            None => not_found(),
        },
        _ => not_found(),
    }
}

fn upload(state: &State, call: &Call) -> Reply {
    let Some(parts) = form::parse(call) else { return error(422, "invalid_request", "no multipart body") };
    let texts = form::texts(&parts).unwrap_or_default();
    let known = [
        required("content_type", Kind::OneOf(&["image/png", "image/jpeg", "image/webp"])),
        required("file_path", Kind::Text(1024)),
        optional("expected_hash", Kind::Text(80)),
        optional("expires_in", Kind::Text(8)),
    ];
    let file = parts.iter().find(|part| part.name == "file" && part.file_name.is_some());
    let (Ok(()), Some(file)) = (check::check(&texts, &known), file.filter(|file| is_image(&file.content))) else {
        return error(422, "invalid_request", "the form lacks file, content_type or file_path, or has more");
    };
    let id = Uuid::new_v4().to_string();
    state.uploads.lock().expect("no holder panics").insert(id.clone(), file.content.clone());
    let url = format!("{}/api/v2/assets/{id}/content", state.api);
    let hangs = *state.hangs_uploads.lock().expect("no holder panics");
    let transmission = if hangs { Transmission::Hang } else { Transmission::Whole };
    Reply::json(
        201,
        &json!({
            "id": id, "hash": null, "size_bytes": file.content.len(), "content_type": texts["content_type"],
            "file_path": texts["file_path"], "created_new": true, "created_at": NOW, "url": url, "url_expires_at": LATER,
            "expires_at": null, "job_id": null
        }),
    )
    .fated(transmission)
}

const NOW: &str = "2026-11-21T05:00:00Z";
const LATER: &str = "2026-11-22T05:00:00Z";

fn submit(state: &State, call: &Call) -> Reply {
    let rules =
        [required("workflow", Kind::Fits(Value::is_object)), optional("extra_data", Kind::Fits(Value::is_object))];
    let body = match check::object(&call.body) {
        Some(body) => body,
        None => return error(422, "invalid_workflow", "no JSON object"),
    };
    if let Err((field, wrong)) = check::check(&body, &rules) {
        return error(422, "invalid_workflow", &format!("{field}: {wrong:?}"));
    }
    let workflow = body["workflow"].as_object().expect("was checked").clone();
    if workflow.contains_key("nodes") || workflow.contains_key("links") {
        return error(422, "workflow_format_ui", "export the workflow in API format");
    }
    if let Err(field) = judge(&workflow) {
        return error(422, "invalid_workflow", &field);
    }
    let assets = assets(&body["workflow"]);
    let uploads = state.uploads.lock().expect("no holder panics");
    if !assets.iter().all(|id| uploads.contains_key(id)) {
        return error(422, "missing_asset", "an asset is not there");
    }
    // The file that a node of this class loads.
    let loaded = |class: &str| {
        let node = workflow.values().find(|node| node["class_type"] == class)?;
        uploads.get(node["inputs"]["image"]["info"]["id"].as_str()?).cloned()
    };
    let mask = loaded("LoadImageMask");
    let masked = match &mask {
        None => None,
        Some(mask) => match mask::judge(&loaded("LoadImage").unwrap_or_default(), mask, mask::Form::White) {
            Ok(size) => Some(size),
            Err(why) => return error(422, "invalid_workflow", why),
        },
    };
    drop(uploads);
    let key = call.header("idempotency-key");
    let used = state.submits.lock().expect("no holder panics");
    if used.iter().any(|it| it.accepted && it.idempotency_key.is_some() && it.idempotency_key.as_deref() == key) {
        return error(422, "idempotency_key_reuse", "this key has been used");
    }
    drop(used);
    let prompt = texts(&workflow).into_iter().find(|text| !text.is_empty()).unwrap_or_default();
    let side = |name: &str| workflow.values().find_map(|node| node["inputs"][name].as_u64()).unwrap_or(1024) as u32;
    let size = masked.unwrap_or((side("width"), side("height")));
    let video = saves_video(&workflow);
    let asked = Asked { prompt, images: assets.len(), mask, size, body: Value::Object(body), video };
    state.submit(call, asked, false, refuse, |run, _| Reply::json(201, &job(state, run, Phase::Queued)))
}

/// Validates a graph in API format: every node has a known class, every link leads to a node of the
/// graph, and at least one node saves its output.
fn judge(workflow: &Map<String, Value>) -> Result<(), String> {
    const CLASSES: [&str; 20] = [
        "KSampler",
        "CheckpointLoaderSimple",
        "EmptyLatentImage",
        "CLIPTextEncode",
        "VAEDecode",
        "VAEEncode",
        "SaveImage",
        "LoadImage",
        "LoadImageMask",
        "SetLatentNoiseMask",
        "ImageScale",
        "UNETLoader",
        "CLIPLoader",
        "VAELoader",
        "ModelSamplingSD3",
        "KSamplerAdvanced",
        "Wan22ImageToVideoLatent",
        "WanFirstLastFrameToVideo",
        "CreateVideo",
        "SaveVideo",
    ];
    for (id, node) in workflow {
        let class = node["class_type"].as_str().unwrap_or_default();
        if !CLASSES.contains(&class) {
            return Err(format!("node {id}: unknown class"));
        }
        let inputs = node["inputs"].as_object().ok_or_else(|| format!("node {id}: no inputs"))?;
        // The channel alpha is read the other way round.
        let channels = ["red", "green", "blue"];
        if class == "LoadImageMask" && !inputs["channel"].as_str().is_some_and(|channel| channels.contains(&channel)) {
            return Err(format!("node {id}: this channel of a gray mask says nothing"));
        }
        for (name, value) in inputs {
            let is_number = matches!(name.as_str(), "width" | "height" | "length" | "seed" | "noise_seed");
            if is_number && !value.is_u64() {
                return Err(format!("node {id}: {name} is no integer"));
            }
            // Wan generates the first frame alone and the others in groups of four.
            if name == "length" && value.as_u64().is_none_or(|length| length % 4 != 1) {
                return Err(format!("node {id}: {name} cannot be {value}"));
            }
            let broken = value.as_str().is_some_and(|text| text.starts_with("{{"))
                || value.as_array().is_some_and(|link| !link[0].as_str().is_some_and(|to| workflow.contains_key(to)));
            if broken {
                return Err(format!("node {id}: {name} leads nowhere"));
            }
        }
    }
    let saves = workflow.values().any(|node| node["class_type"] == "SaveImage") || saves_video(workflow);
    if saves { Ok(()) } else { Err("the workflow has no outputs".to_owned()) }
}

fn saves_video(workflow: &Map<String, Value>) -> bool {
    workflow.values().any(|node| node["class_type"] == "SaveVideo")
}

fn texts(workflow: &Map<String, Value>) -> Vec<String> {
    let encoders = workflow.values().filter(|node| node["class_type"] == "CLIPTextEncode");
    encoders.filter_map(|node| node["inputs"]["text"].as_str().map(str::to_owned)).collect()
}

/// The ids of the assets that a workflow refers to.
fn assets(value: &Value) -> Vec<String> {
    match value {
        Value::Object(object) if object.get("__type") == Some(&json!("core/ASSET")) => {
            vec![object["info"]["id"].as_str().unwrap_or_default().to_owned()]
        }
        Value::Object(object) => object.values().flat_map(assets).collect(),
        Value::Array(list) => list.iter().flat_map(assets).collect(),
        _ => Vec::new(),
    }
}

fn job(state: &State, run: &Run, phase: Phase) -> Value {
    let failed = matches!(run.failure_mode, Some(FailureMode::WorkFails | FailureMode::Content));
    let progress = |value: f64| json!({"value": value, "nodes_done": 3, "nodes_total": 7, "current_node": "3"});
    let (status, progress, error) = match phase {
        Phase::Queued => ("queued", Value::Null, Value::Null),
        Phase::Running => ("running", progress(0.42), Value::Null),
        Phase::Canceled => ("canceled", Value::Null, Value::Null),
        Phase::Finished if failed => {
            let error = json!({"code": "node_execution_error", "message": "out of memory", "node_id": "3"});
            ("failed", Value::Null, error)
        }
        Phase::Finished => ("succeeded", progress(1.0), Value::Null),
    };
    let (kind, name, media_type) = match run.body["workflow"].as_object().is_some_and(saves_video) {
        true => ("video", "canvas_00001_.mp4", "video/mp4"),
        false => ("image", "canvas_00001_.png", "image/png"),
    };
    let outputs = match status {
        "succeeded" => json!([{
            "node_id": "9", "name": name, "type": kind, "content_type": media_type, "size_bytes": 1,
            "id": run.id, "hash": null, "url": format!("{}/api/v2/assets/{}/content", state.api, run.id),
            "url_expires_at": LATER
        }]),
        _ => json!([]),
    };
    let url = format!("/api/v2/jobs/{}", run.id);
    json!({
        "id": run.id, "status": status, "created_at": NOW, "started_at": null, "completed_at": null, "expires_at": LATER,
        "queue_position": null, "progress": progress, "outputs": outputs, "error": error, "metrics": {},
        "urls": {"self": url, "events": format!("{url}/events"), "cancel": format!("{url}/cancel")}
    })
}

fn refuse(failure_mode: FailureMode) -> Option<Reply> {
    Some(match failure_mode {
        FailureMode::RateLimited => error(429, "queue_full", "The queue is full.").with("retry-after", "1"),
        FailureMode::OutOfCredit => error(402, "insufficient_credits", "Not enough credits."),
        FailureMode::Invalid => error(422, "invalid_workflow", "node 3: value not in list"),
        FailureMode::Down => error(503, "upstream_error", "The server is starting."),
        FailureMode::ServerError => error(500, "upstream_error", "The server failed."),
        _ => return None,
    })
}

fn not_found() -> Reply {
    error(404, "not_found", "There is no such thing.")
}

fn error(status: u16, code: &str, message: &str) -> Reply {
    Reply::json(status, &json!({"error": {"code": code, "message": message}}))
}
