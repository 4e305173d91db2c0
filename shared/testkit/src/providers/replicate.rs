//! Simulator of Replicate's predictions API.

use http::Method;
use serde_json::{Value, json};

use super::check::{self, Kind, Rule, Wrong, is_data_url, optional, required};
use super::failure_mode::FailureMode;
use super::image::size_of;
use super::mask;
use super::server::{Call, Reply};
use super::state::{Asked, Phase, Run, State};

const RATIO: Rule = optional(
    "aspect_ratio",
    Kind::OneOf(&[
        "1:1",
        "16:9",
        "9:16",
        "4:3",
        "3:4",
        "3:2",
        "2:3",
        "4:5",
        "5:4",
        "21:9",
        "9:21",
        "match_input_image",
        "custom",
    ]),
);
const FORMAT: Rule = optional("output_format", Kind::OneOf(&["png", "jpg", "webp"]));
const SEED: Rule = optional("seed", Kind::Integer(0, i32::MAX as i64));
const PROMPT: Rule = required("prompt", Kind::Text(1 << 20));
const IMAGE: Kind = Kind::Fits(|value| value.as_str().is_some_and(is_file));

fn is_file(url: &str) -> bool {
    url.starts_with("https://") || is_data_url(url)
}

/// The parameters of a model; `None` for an unknown model.
fn inputs(model: &str) -> Option<Vec<Rule>> {
    Some(match model {
        "black-forest-labs/flux-2-pro" => {
            let images = optional("input_images", Kind::List(0, 8, &IMAGE));
            vec![PROMPT, RATIO, FORMAT, SEED, images, optional("safety_tolerance", Kind::Integer(1, 5))]
        }
        "google/nano-banana-2" => {
            let images = optional("image_input", Kind::List(0, 14, &IMAGE));
            vec![PROMPT, RATIO, FORMAT, images, optional("resolution", Kind::OneOf(&["1K", "2K", "4K"]))]
        }
        "black-forest-labs/flux-schnell" => {
            vec![PROMPT, RATIO, FORMAT, SEED, optional("num_outputs", Kind::Integer(1, 4))]
        }
        "stability-ai/stable-diffusion-3.5-large" => {
            vec![PROMPT, RATIO, FORMAT, SEED, optional("image", IMAGE), optional("cfg", Kind::Number(1.0, 10.0))]
        }
        "black-forest-labs/flux-fill-pro" => vec![
            PROMPT,
            FORMAT,
            SEED,
            optional("image", IMAGE),
            optional("mask", IMAGE),
            optional("outpaint", Kind::Text(40)),
            optional("steps", Kind::Integer(15, 50)),
            optional("guidance", Kind::Number(1.5, 100.0)),
            optional("prompt_upsampling", Kind::Boolean),
            optional("safety_tolerance", Kind::Integer(1, 6)),
        ],
        "google/veo-3" => vec![
            PROMPT,
            RATIO,
            SEED,
            optional("image", IMAGE),
            optional("duration", Kind::Integer(4, 8)),
            optional("resolution", Kind::OneOf(&["720p", "1080p"])),
            optional("generate_audio", Kind::Boolean),
        ],
        _ => return None,
    })
}

const BODY: [Rule; 4] = [
    required("input", Kind::Fits(Value::is_object)),
    optional("webhook", Kind::Text(2048)),
    optional("webhook_events_filter", Kind::List(1, 4, &Kind::OneOf(&["start", "output", "logs", "completed"]))),
    optional("stream", Kind::Boolean),
];

pub(super) fn answer(state: &State, call: &Call) -> Reply {
    if !call.has_key("authorization", "Bearer ") && !call.has_key("authorization", "Token ") {
        let detail = "You did not pass a valid authentication token";
        return Reply::json(401, &json!({"title": "Unauthenticated", "detail": detail, "status": 401}));
    }
    match (&call.method, call.pieces().as_slice()) {
        (&Method::GET, ["v1", "account"]) => Reply::json(200, &json!({"type": "user", "username": "simulated"})),
        (&Method::POST, ["v1", "models", owner, name, "predictions"]) => {
            create(state, call, &format!("{owner}/{name}"))
        }
        (&Method::GET, ["v1", "predictions"]) => {
            let runs = state.runs.lock().expect("no holder panics");
            let results: Vec<Value> = runs.values().map(|run| prediction(state, run, Phase::Running)).collect();
            Reply::json(200, &json!({"next": null, "previous": null, "results": results}))
        }
        (&Method::GET, ["v1", "predictions", id]) => {
            state.poll(id, |run, phase| Reply::json(200, &prediction(state, run, phase))).unwrap_or_else(not_found)
        }
        (&Method::POST, ["v1", "predictions", id, "cancel"]) => match state.cancel(id) {
            Some(_) => state.peek(id, |run, phase| Reply::json(200, &prediction(state, run, phase))),
            None => None,
        }
        .unwrap_or_else(not_found),
        _ => not_found(),
    }
}

fn create(state: &State, call: &Call, model: &str) -> Reply {
    let (Some(rules), Some(body)) = (inputs(model), check::object(&call.body)) else { return not_found() };
    if let Err((field, wrong)) = check::check(&body, &BODY) {
        return invalid(&field, wrong);
    }
    let input = body["input"].as_object().expect("was checked").clone();
    if let Err((field, wrong)) = check::check(&input, &rules) {
        return invalid(&format!("input.{field}"), wrong);
    }
    let images = ["input_images", "image_input"].iter().filter_map(|name| input.get(*name)?.as_array()).map(Vec::len);
    let images = images.sum::<usize>() + ["image", "mask"].iter().filter(|name| input.contains_key(**name)).count();
    let file = |name: &str| input.get(name)?.as_str().and_then(check::decoded);
    let mask = file("mask");
    let masked = match &mask {
        None => None,
        Some(mask) => match mask::judge(&file("image").unwrap_or_default(), mask, mask::Form::White) {
            Ok(size) => Some(size),
            Err(_) => return invalid("input.mask", Wrong::Value),
        },
    };
    let size = input.get("aspect_ratio").and_then(Value::as_str).and_then(size_of);
    let size = masked.or(size).unwrap_or((1024, 1024));
    let prompt = input["prompt"].as_str().unwrap_or_default().to_owned();
    let video = model == "google/veo-3";
    let asked = Asked { prompt, images, mask, size, body: json!({"model": model, "input": input}), video };
    state.submit(call, asked, false, refuse, |run, _| Reply::json(201, &prediction(state, run, Phase::Queued)))
}

fn prediction(state: &State, run: &Run, phase: Phase) -> Value {
    let (status, output, error) = match (phase, run.failure_mode) {
        (Phase::Queued, _) => ("starting", Value::Null, Value::Null),
        (Phase::Running, _) => ("processing", Value::Null, Value::Null),
        (Phase::Canceled, _) => ("canceled", Value::Null, Value::Null),
        (Phase::Finished, Some(FailureMode::Content)) => {
            let error =
                "The input or output was flagged as sensitive. Please try again with different inputs. (E005) (x1)";
            ("failed", Value::Null, json!(error))
        }
        (Phase::Finished, Some(FailureMode::WorkFails)) => {
            ("failed", Value::Null, json!("Prediction interrupted; please retry (code: PA)"))
        }
        (Phase::Finished, _) if run.body["model"] == "black-forest-labs/flux-schnell" => {
            ("succeeded", json!([run.file]), Value::Null)
        }
        (Phase::Finished, _) => ("succeeded", json!(run.file), Value::Null),
    };
    let url = format!("{}/v1/predictions/{}", state.api, run.id);
    json!({
        "id": run.id, "model": run.body["model"], "version": "hidden", "input": run.body["input"], "logs": "",
        "output": output, "data_removed": false, "error": error, "status": status, "source": "api",
        "created_at": "2026-11-21T05:00:00.123Z",
        "urls": {"web": format!("https://replicate.com/p/{}", run.id), "get": url, "cancel": format!("{url}/cancel")}
    })
}

fn refuse(failure_mode: FailureMode) -> Option<Reply> {
    Some(match failure_mode {
        FailureMode::RateLimited => {
            let detail = "Request was throttled. Your rate limit resets in ~1s.";
            Reply::json(429, &json!({"detail": detail, "status": 429, "retry_after": 1}))
        }
        FailureMode::OutOfCredit => {
            let detail = "You have insufficient credit to run this model.";
            Reply::json(402, &json!({"title": "Insufficient credit", "detail": detail, "status": 402}))
        }
        FailureMode::Invalid => invalid("input.prompt", Wrong::Value),
        FailureMode::Down => Reply::json(503, &json!({"detail": "Service unavailable", "status": 503})),
        FailureMode::ServerError => Reply::json(500, &json!({"detail": "Internal server error", "status": 500})),
        _ => return None,
    })
}

fn invalid(field: &str, wrong: Wrong) -> Reply {
    let what = match wrong {
        Wrong::Missing => "is required",
        Wrong::Unknown => "Additional property is not allowed",
        Wrong::Value => "is not valid",
    };
    Reply::json(
        422,
        &json!({
            "title": "Input validation failed", "detail": format!("- {field}: {what}\n"), "status": 422,
            "invalid_fields": [{"type": "invalid", "field": field, "description": what}]
        }),
    )
}

fn not_found() -> Reply {
    Reply::json(404, &json!({"detail": "The requested resource could not be found.", "status": 404}))
}
