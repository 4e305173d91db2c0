//! Simulator of Google's Interactions API, which makes videos in the background, in the stable
//! version and in `v1beta`, which names a revision.

use http::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use super::check::{self, Kind, Rule, Wrong, optional, required};
use super::failure_mode::FailureMode;
use super::google::{error, refuse};
use super::server::{Call, Reply};
use super::state::{Asked, Phase, Run, State};

const REQUEST: [Rule; 8] = [
    required("model", Kind::Text(240)),
    required("input", Kind::Either(&Kind::List(1, 20, &Kind::Fits(is_block)), &Kind::List(1, 1, &Kind::Fits(is_turn)))),
    optional("background", Kind::Boolean),
    optional("store", Kind::Boolean),
    optional("generation_config", Kind::Fits(|value| fits(value, &CONFIG))),
    optional("response_format", Kind::Fits(|value| fits(value, &FORMAT))),
    optional("system_instruction", Kind::Text(1 << 20)),
    optional("service_tier", Kind::OneOf(&["flex", "standard", "priority", "deferred"])),
];
const CONFIG: [Rule; 2] =
    [optional("seed", Kind::Integer(0, i32::MAX as i64)), optional("video_config", Kind::Fits(|it| fits(it, &VIDEO)))];
const VIDEO: [Rule; 1] =
    [optional("task", Kind::OneOf(&["text_to_video", "image_to_video", "reference_to_video", "edit", "extend"]))];
const FORMAT: [Rule; 5] = [
    required("type", Kind::OneOf(&["video"])),
    optional("aspect_ratio", Kind::OneOf(&["16:9", "9:16"])),
    optional("duration", Kind::OneOf(&["3s", "4s", "5s", "6s", "7s", "8s", "9s", "10s"])),
    optional("resolution", Kind::OneOf(&["360p", "720p", "1080p", "4k"])),
    optional("delivery", Kind::OneOf(&["inline", "uri"])),
];
const TEXT: [Rule; 2] = [required("type", Kind::OneOf(&["text"])), required("text", Kind::Text(1 << 20))];
const IMAGE: [Rule; 3] = [
    required("type", Kind::OneOf(&["image"])),
    required("data", Kind::Base64),
    required("mime_type", Kind::OneOf(&["image/png", "image/jpeg", "image/webp"])),
];

/// A user turn; the vendor's client wraps every input in one.
const TURN: [Rule; 2] =
    [required("type", Kind::OneOf(&["user_input"])), required("content", Kind::List(1, 20, &Kind::Fits(is_block)))];

fn fits(value: &Value, rules: &[Rule]) -> bool {
    value.as_object().is_some_and(|object| check::check(object, rules).is_ok())
}

fn is_block(value: &Value) -> bool {
    fits(value, &TEXT) || fits(value, &IMAGE)
}

fn is_turn(value: &Value) -> bool {
    fits(value, &TURN)
}

pub(super) fn answer(state: &State, call: &Call) -> Reply {
    match (&call.method, call.pieces().as_slice()) {
        // Downloads need the key and `alt=media`.
        (&Method::GET, ["v1" | "v1beta", "files", id]) => {
            let id = Uuid::try_parse(id.split(':').next().unwrap_or_default()).unwrap_or_default();
            let path = format!("/files/{id}.mp4");
            let files = state.files.lock().expect("no holder panics");
            match files.get(&path) {
                Some(file) if !file.expired && call.query.contains("alt=media") => {
                    Reply::bytes(200, file.media_type, file.bytes.clone())
                }
                _ => error(404, "NOT_FOUND", "The file has expired or never was.", json!([])),
            }
        }
        (_, ["v1beta", ..]) if call.header("api-revision") != Some("2026-05-20") => {
            error(400, "INVALID_ARGUMENT", "Api-Revision is missing or not known.", json!([]))
        }
        (&Method::POST, ["v1" | "v1beta", "interactions"]) => create(state, call),
        (&Method::GET, ["v1" | "v1beta", "interactions", id]) => {
            let reply = |run: &Run, phase| Reply::json(200, &interaction(state, run, phase));
            state.poll(id, reply).unwrap_or_else(not_found)
        }
        (&Method::POST, ["v1" | "v1beta", "interactions", id, "cancel"]) => match state.cancel(id) {
            Some(_) => state.peek(id, |run, phase| Reply::json(200, &interaction(state, run, phase))),
            None => None,
        }
        .unwrap_or_else(not_found),
        _ => not_found(),
    }
}

fn create(state: &State, call: &Call) -> Reply {
    let Some(body) = check::object(&call.body) else {
        return error(400, "INVALID_ARGUMENT", "Invalid JSON payload received.", json!([]));
    };
    if let Err((field, wrong)) = check::check(&body, &REQUEST) {
        let what = if wrong == Wrong::Unknown { "Unknown name" } else { "Invalid value at" };
        return error(400, "INVALID_ARGUMENT", &format!("{what} \"{field}\""), json!([]));
    }
    let input = body["input"].pointer("/0/content").unwrap_or(&body["input"]);
    let blocks = input.as_array().cloned().unwrap_or_default();
    let prompt: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
    let images = blocks.iter().filter(|block| block["type"] == "image").count();
    let prompt = prompt.join("\n");
    let asked = Asked { prompt, images, mask: None, size: (1, 1), body: Value::Object(body), video: true };
    // A failure of the work is reported by the run, not by the submit.
    let refuse = |failure_mode| if failure_mode == FailureMode::WorkFails { None } else { refuse(failure_mode) };
    let is_finished = *state.answers_finished.lock().expect("no holder panics");
    let phase = if is_finished { Phase::Finished } else { Phase::Queued };
    state.submit(call, asked, false, refuse, |run, _| Reply::json(200, &interaction(state, run, phase)))
}

fn interaction(state: &State, run: &Run, phase: Phase) -> Value {
    let mut interaction = json!({
        "id": run.id, "object": "interaction", "model": run.body["model"], "status": "in_progress",
        "created": "2026-11-21T05:00:00Z", "updated": "2026-11-21T05:00:00Z"
    });
    let failure = match run.failure_mode {
        Some(FailureMode::Content) => Some("The prompt was blocked for safety reasons."),
        Some(FailureMode::WorkFails) => Some("The model failed."),
        _ => None,
    };
    match (phase, failure) {
        (Phase::Queued, _) => {}
        // A status that does not end the run.
        (Phase::Running, _) => interaction["status"] = json!("requires_action"),
        (Phase::Canceled, _) => interaction["status"] = json!("cancelled"),
        (Phase::Finished, Some(message)) => {
            let error = json!({"code": "internal", "message": message});
            interaction["status"] = json!("failed");
            // The error belongs either to the whole interaction or to the model's output.
            match run.failure_mode {
                Some(FailureMode::Content) => interaction["steps"] = json!([{"type": "model_output", "error": error}]),
                _ => interaction["errors"] = json!([error]),
            }
        }
        (Phase::Finished, None) => {
            // File names consist of letters and digits only, which the vendor's client relies on.
            let uri = format!("{}/v1beta/files/{}", state.api, run.id.replace('-', ""));
            interaction["status"] = json!("completed");
            interaction["steps"] = json!([
                {"type": "user_input", "content": []},
                {"type": "thought", "signature": "x"},
                {"type": "model_output", "content": [{"type": "video", "mime_type": "video/mp4", "uri": uri}]}
            ]);
        }
    }
    interaction
}

fn not_found() -> Reply {
    error(404, "NOT_FOUND", "Requested entity was not found.", json!([]))
}
