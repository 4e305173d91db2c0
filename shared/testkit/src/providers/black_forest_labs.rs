//! Simulator of Black Forest Labs' FLUX API.

use http::Method;
use serde_json::{Value, json};

use super::check::{self, Kind, Rule, Wrong, optional, required};
use super::failure_mode::FailureMode;
use super::image::size_of;
use super::mask;
use super::server::{Call, Reply};
use super::state::{Asked, Phase, Run, State};

const IMAGE: Kind = Kind::Base64;
const IMAGES: [&str; 8] = [
    "input_image",
    "input_image_2",
    "input_image_3",
    "input_image_4",
    "input_image_5",
    "input_image_6",
    "input_image_7",
    "input_image_8",
];
const PROMPT: Rule = required("prompt", Kind::Text(1 << 20));
const RATIO: Kind = Kind::OneOf(&["1:1", "16:9", "9:16", "4:3", "3:4", "3:2", "2:3", "21:9", "9:21", "4:5", "5:4"]);
const SIDE: Kind = Kind::Integer(64, 4096);

fn rules(model: &str) -> Option<Vec<Rule>> {
    let images = |most: usize| IMAGES[..most].iter().map(|name| optional(name, IMAGE));
    let common = |tolerance: i64| {
        [
            PROMPT,
            optional("seed", Kind::Integer(0, u32::MAX as i64)),
            optional("safety_tolerance", Kind::Integer(0, tolerance)),
            optional("output_format", Kind::OneOf(&["png", "jpeg", "webp"])),
            optional("webhook_url", Kind::Text(2083)),
            optional("webhook_secret", Kind::Text(2083)),
        ]
    };
    Some(match model {
        "flux-2-pro" | "flux-2-max" => {
            let sides = [optional("width", SIDE), optional("height", SIDE)];
            common(5).into_iter().chain(sides).chain(images(8)).collect()
        }
        "flux-2-klein-9b" => {
            let sides = [optional("width", SIDE), optional("height", SIDE)];
            common(5).into_iter().chain(sides).chain(images(4)).collect()
        }
        "flux-pro-1.0-fill" => {
            let own = [
                required("image", IMAGE),
                optional("mask", IMAGE),
                optional("steps", Kind::Integer(15, 50)),
                optional("guidance", Kind::Number(1.5, 100.0)),
                optional("prompt_upsampling", Kind::Boolean),
            ];
            common(6).into_iter().chain(own).collect()
        }
        "flux-kontext-pro" => {
            let own = [optional("aspect_ratio", RATIO), optional("prompt_upsampling", Kind::Boolean)];
            common(6).into_iter().chain(own).chain(images(4)).collect()
        }
        // FLUX 3 accepts exactly these parameters: no seed and no output format.
        "flux-3-image" => vec![
            PROMPT,
            optional("images", Kind::List(0, 10, &IMAGE)),
            optional("aspect_ratio", RATIO),
            optional("resolution", Kind::OneOf(&["1k", "2k", "4k"])),
            optional("safety_tolerance", Kind::Integer(0, 4)),
            optional("grounding", Kind::Boolean),
        ],
        "flux-3-video" => vec![
            required("mode", Kind::OneOf(&["t2v", "i2v"])),
            PROMPT,
            optional("keyframes", Kind::List(1, 10, &IMAGE)),
            optional("aspect_ratio", Kind::OneOf(&["21:9", "2:1", "16:9", "4:3", "1:1", "3:4", "9:16", "auto"])),
            optional("duration", Kind::Integer(5, 20)),
            optional("resolution", Kind::OneOf(&["hd", "fhd"])),
            optional("generate_audio", Kind::Boolean),
            optional("safety_tolerance", Kind::Integer(0, 4)),
            optional("draft", Kind::Boolean),
        ],
        _ => return None,
    })
}

pub(super) fn answer(state: &State, call: &Call) -> Reply {
    if !call.has_key("x-key", "") {
        return Reply::json(403, &json!({"detail": "Not authenticated - Invalid Authentication"}));
    }
    match (&call.method, call.pieces().as_slice()) {
        (&Method::GET, ["v1", "credits"]) => Reply::json(200, &json!({"credits": 123.4})),
        (&Method::GET, ["v1", "get_result"]) => {
            let id = call.query.split('&').find_map(|pair| pair.strip_prefix("id=")).unwrap_or_default();
            let lost = || json!({"id": id, "status": "Task not found", "result": null});
            Reply::json(200, &state.poll(id, result).unwrap_or_else(lost))
        }
        (&Method::POST, ["v1", model]) => submit(state, call, model),
        _ => Reply::json(404, &json!({"detail": "Not Found"})),
    }
}

fn submit(state: &State, call: &Call, model: &str) -> Reply {
    let Some(rules) = rules(model) else { return Reply::json(404, &json!({"detail": "Not Found"})) };
    let Some(body) = check::object(&call.body) else { return invalid("body", Wrong::Value) };
    if let Err((field, wrong)) = check::check(&body, &rules) {
        return invalid(&field, wrong);
    }
    // Input images must be numbered without gaps.
    let numbered = IMAGES.iter().map(|name| body.contains_key(*name));
    if !numbered.clone().is_sorted_by(|first, second| first >= second) {
        return invalid("input_image", Wrong::Missing);
    }
    if body.get("mode").is_some_and(|mode| (mode == "i2v") != body.contains_key("keyframes")) {
        return invalid("keyframes", Wrong::Missing);
    }
    let listed =
        ["images", "keyframes"].iter().filter_map(|name| body.get(*name)?.as_array()).map(Vec::len).sum::<usize>();
    let file = |name: &str| body.get(name)?.as_str().and_then(check::decoded);
    let (image, mask) = (file("image"), file("mask"));
    let images = numbered.filter(|it| *it).count() + listed + image.iter().chain(&mask).count();
    let masked = match (&image, &mask) {
        (Some(image), Some(mask)) => match mask::judge(image, mask, mask::Form::White) {
            Ok(size) => Some(size),
            Err(_) => return invalid("mask", Wrong::Value),
        },
        // Its own alpha channel, which no order relies on.
        (Some(_), None) => return invalid("mask", Wrong::Missing),
        _ => None,
    };
    let side = |name: &str| body.get(name).and_then(Value::as_u64).map(|side| side as u32);
    let size = match (side("width"), side("height")) {
        _ if masked.is_some() => masked.unwrap_or_default(),
        (Some(width), Some(height)) => (width, height),
        _ => body.get("aspect_ratio").and_then(Value::as_str).and_then(size_of).unwrap_or((1024, 1024)),
    };
    let prompt = body["prompt"].as_str().unwrap_or_default().to_owned();
    let video = model == "flux-3-video";
    let asked = Asked { prompt, images, mask, size, body: Value::Object(body), video };
    state.submit(call, asked, false, refuse, |run, _| {
        let url = format!("{}/v1/get_result?id={}", state.api, run.id);
        Reply::json(200, &json!({"id": run.id, "polling_url": url, "cost": 3.0, "input_mp": 1.05, "output_mp": 1.05}))
    })
}

fn result(run: &Run, phase: Phase) -> Value {
    let is = |status: &str, progress: Value| json!({"id": run.id, "status": status, "result": null, "progress": progress, "details": null, "preview": null});
    match (phase, run.failure_mode) {
        (Phase::Queued, _) => is("Pending", Value::Null),
        // A status that only later models report.
        (Phase::Running, _) => is("Reasoning", json!(0.5)),
        (Phase::Canceled, _) => is("Error", Value::Null),
        (Phase::Finished, Some(FailureMode::Content)) => is("Request Moderated", Value::Null),
        (Phase::Finished, Some(FailureMode::WorkFails)) => is("Error", Value::Null),
        (Phase::Finished, _) => {
            let mut ready = is("Ready", Value::Null);
            ready["result"] = json!({
                "sample": run.file, "prompt": run.body["prompt"], "seed": 42, "start_time": 1, "end_time": 2, "duration": 1.0
            });
            ready
        }
    }
}

fn refuse(failure_mode: FailureMode) -> Option<Reply> {
    Some(match failure_mode {
        FailureMode::RateLimited => {
            let message = "Too many concurrent requests";
            Reply::json(429, &json!({"error": "rate_limit_exceeded", "message": message, "retry_after": 1}))
        }
        FailureMode::OutOfCredit => Reply::json(402, &json!({"detail": "Insufficient credits"})),
        FailureMode::Invalid => invalid("width", Wrong::Value),
        FailureMode::Down => Reply::json(503, &json!({"detail": "Service Unavailable"})),
        FailureMode::ServerError => Reply::json(500, &json!({"detail": "Internal Server Error"})),
        _ => return None,
    })
}

fn invalid(field: &str, wrong: Wrong) -> Reply {
    let (message, kind) = match wrong {
        Wrong::Missing => ("Field required", "missing"),
        Wrong::Unknown => ("Extra inputs are not permitted", "extra_forbidden"),
        Wrong::Value => ("Input should be valid", "value_error"),
    };
    Reply::json(422, &json!({"detail": [{"loc": ["body", field], "msg": message, "type": kind}]}))
}
