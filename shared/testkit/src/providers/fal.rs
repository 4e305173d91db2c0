//! Simulator of fal's queue API.

use http::Method;
use serde_json::{Value, json};

use super::check::{self, Kind, Rule, Wrong, is_data_url, optional, required};
use super::failure_mode::FailureMode;
use super::image::size_of;
use super::mask;
use super::server::{Call, Reply};
use super::state::{Asked, Phase, Run, State};

const SIZES: [&str; 7] =
    ["square_hd", "square", "portrait_4_3", "portrait_16_9", "landscape_4_3", "landscape_16_9", "auto"];
const SIZE: Rule = optional(
    "image_size",
    Kind::Fits(|value| match value {
        Value::String(name) => SIZES.contains(&name.as_str()),
        Value::Object(size) => {
            size.len() == 2 && ["width", "height"].iter().all(|it| size.get(*it).is_some_and(Value::is_u64))
        }
        _ => false,
    }),
);
const PROMPT: Rule = required("prompt", Kind::Text(1 << 20));
const SEED: Rule = optional("seed", Kind::Integer(0, i32::MAX as i64));
const FORMAT: Rule = optional("output_format", Kind::OneOf(&["png", "jpeg", "webp"]));
const COUNT: Rule = optional("num_images", Kind::Integer(1, 4));
const FILE: Kind =
    Kind::Fits(|value| value.as_str().is_some_and(|url| url.starts_with("https://") || is_data_url(url)));

/// The parameters of the image endpoints; `None` for an unknown endpoint.
fn inputs(endpoint: &str) -> Option<Vec<Rule>> {
    let tolerance = optional("safety_tolerance", Kind::OneOf(&["1", "2", "3", "4", "5"]));
    let ratio = optional(
        "aspect_ratio",
        Kind::OneOf(&["auto", "21:9", "16:9", "3:2", "4:3", "5:4", "1:1", "4:5", "3:4", "2:3", "9:16"]),
    );
    let resolution = optional("resolution", Kind::OneOf(&["0.5K", "1K", "2K", "4K"]));
    Some(match endpoint {
        "fal-ai/flux/schnell" | "fal-ai/flux/dev" => {
            vec![PROMPT, SIZE, SEED, FORMAT, COUNT, optional("num_inference_steps", Kind::Integer(1, 50))]
        }
        "fal-ai/flux-2-pro" => vec![PROMPT, SIZE, SEED, FORMAT, tolerance],
        "fal-ai/flux-2-pro/edit" => {
            vec![PROMPT, SIZE, SEED, FORMAT, tolerance, required("image_urls", Kind::List(1, 9, &FILE))]
        }
        "fal-ai/nano-banana-2" => vec![PROMPT, ratio, resolution, SEED, FORMAT, COUNT],
        "fal-ai/nano-banana-2/edit" => {
            vec![PROMPT, ratio, resolution, SEED, FORMAT, COUNT, required("image_urls", Kind::List(1, 14, &FILE))]
        }
        "fal-ai/flux-pro/v1/fill" => vec![
            PROMPT,
            SEED,
            FORMAT,
            COUNT,
            optional("safety_tolerance", Kind::OneOf(&["1", "2", "3", "4", "5", "6"])),
            optional("enhance_prompt", Kind::Boolean),
            required("image_url", FILE),
            required("mask_url", FILE),
        ],
        _ => return videos(endpoint),
    })
}

/// The parameters of the video endpoints; `None` for an unknown endpoint.
fn videos(endpoint: &str) -> Option<Vec<Rule>> {
    let veo = [
        PROMPT,
        SEED,
        optional("aspect_ratio", Kind::OneOf(&["auto", "16:9", "9:16"])),
        optional("duration", Kind::OneOf(&["4s", "6s", "8s"])),
        optional("resolution", Kind::OneOf(&["720p", "1080p", "4k"])),
        optional("generate_audio", Kind::Boolean),
        optional("negative_prompt", Kind::Text(20_000)),
    ];
    let own = match endpoint {
        "fal-ai/veo3.1" => vec![],
        "fal-ai/veo3.1/image-to-video" => vec![required("image_url", FILE)],
        "fal-ai/veo3.1/first-last-frame-to-video" => {
            vec![required("first_frame_url", FILE), required("last_frame_url", FILE)]
        }
        "fal-ai/veo3.1/reference-to-video" => vec![required("image_urls", Kind::List(1, 9, &FILE))],
        "fal-ai/kling-video/v3/pro/image-to-video" => {
            let seconds = &["3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15"];
            return Some(vec![
                required("start_image_url", FILE),
                optional("end_image_url", FILE),
                optional("prompt", Kind::Text(2500)),
                optional("negative_prompt", Kind::Text(2500)),
                optional("duration", Kind::OneOf(seconds)),
                optional("generate_audio", Kind::Boolean),
                optional("cfg_scale", Kind::Number(0.0, 1.0)),
            ]);
        }
        _ => return None,
    };
    Some(veo.into_iter().chain(own).collect())
}

pub(super) fn answer(state: &State, call: &Call) -> Reply {
    if !call.has_key("authorization", "Key ") {
        return Reply::json(401, &json!({"detail": "Authentication is required to access this application."}));
    }
    match (&call.method, call.pieces().as_slice()) {
        (&Method::GET, [.., "requests", id, "status"]) => {
            let reply = |run: &Run, phase| {
                let status = if phase == Phase::Finished { 200 } else { 202 };
                Reply::json(status, &status_of(state, run, phase))
            };
            state.poll(id, reply).unwrap_or_else(not_found)
        }
        (&Method::PUT, [.., "requests", id, "cancel"]) => match state.cancel(id) {
            Some(true) => Reply::json(202, &json!({"status": "CANCELLATION_REQUESTED"})),
            Some(false) => Reply::json(400, &json!({"status": "ALREADY_COMPLETED"})),
            None => Reply::json(404, &json!({"status": "NOT_FOUND"})),
        },
        (&Method::GET, [.., "requests", id]) => state.peek(id, result).unwrap_or_else(not_found),
        (&Method::POST, pieces) => submit(state, call, &pieces.join("/")),
        _ => not_found(),
    }
}

fn submit(state: &State, call: &Call, endpoint: &str) -> Reply {
    let (Some(rules), Some(body)) = (inputs(endpoint), check::object(&call.body)) else { return not_found() };
    if let Err((field, wrong)) = check::check(&body, &rules) {
        return invalid(&field, wrong);
    }
    let listed = body.get("image_urls").and_then(Value::as_array).map_or(0, Vec::len);
    let frames = ["image_url", "first_frame_url", "last_frame_url", "start_image_url", "end_image_url"];
    let file = |name: &str| body.get(name)?.as_str().and_then(check::decoded);
    let mask = file("mask_url");
    let masked = match &mask {
        None => None,
        Some(mask) => match mask::judge(&file("image_url").unwrap_or_default(), mask, mask::Form::White) {
            Ok(size) => Some(size),
            Err(_) => return invalid("mask_url", Wrong::Value),
        },
    };
    let images = listed + usize::from(mask.is_some()) + frames.iter().filter(|name| body.contains_key(**name)).count();
    let named = body.get("image_size").or_else(|| body.get("aspect_ratio")).and_then(Value::as_str);
    let size = match named {
        _ if masked.is_some() => masked.unwrap_or_default(),
        Some("square_hd") | None => (1024, 1024),
        Some("square") => (512, 512),
        Some("landscape_16_9") => (1024, 576),
        Some("portrait_16_9") => (576, 1024),
        Some("landscape_4_3") => (1024, 768),
        Some("portrait_4_3") => (768, 1024),
        Some(ratio) => size_of(ratio).unwrap_or((1024, 1024)),
    };
    let prompt = body["prompt"].as_str().unwrap_or_default().to_owned();
    let video = videos(endpoint).is_some();
    let asked = Asked { prompt, images, mask, size, body: Value::Object(body), video };
    state.submit(call, asked, false, refuse, |run, _| Reply::json(200, &status_of(state, run, Phase::Queued)))
}

/// The URL of a request: it contains only the owner and the alias of the endpoint.
fn at(state: &State, run: &Run) -> String {
    let endpoint: Vec<&str> = run.path.trim_start_matches('/').split('/').take(2).collect();
    format!("{}/{}/requests/{}", state.api, endpoint.join("/"), run.id)
}

fn status_of(state: &State, run: &Run, phase: Phase) -> Value {
    let at = at(state, run);
    let mut status = json!({
        "request_id": run.id, "response_url": at, "status_url": format!("{at}/status"), "cancel_url": format!("{at}/cancel")
    });
    match phase {
        Phase::Queued => {
            status["status"] = json!("IN_QUEUE");
            status["queue_position"] = json!(0);
        }
        Phase::Running => {
            status["status"] = json!("IN_PROGRESS");
            status["logs"] = json!([]);
        }
        Phase::Finished | Phase::Canceled => {
            status["status"] = json!("COMPLETED");
            status["logs"] = json!([]);
            status["metrics"] = json!({"inference_time": 0.1});
            if run.failure_mode == Some(FailureMode::Content) || phase == Phase::Canceled {
                status["error"] = json!("Request failed");
            } else if run.failure_mode == Some(FailureMode::WorkFails) {
                // fal may send either member without the other.
                status["error_type"] = json!("internal_server_error");
            }
        }
    }
    status
}

fn result(run: &Run, phase: Phase) -> Reply {
    match (phase, run.failure_mode) {
        (Phase::Queued | Phase::Running, _) => Reply::json(400, &json!({"detail": "Request is still in progress"})),
        (Phase::Canceled, _) => Reply::json(499, &json!({"detail": "Request was cancelled"})),
        (_, Some(FailureMode::Content)) => {
            detail(422, "prompt", "The content was flagged.", "content_policy_violation")
        }
        (_, Some(FailureMode::WorkFails)) => {
            Reply::json(500, &json!({"detail": "Runner failed", "error_type": "internal_server_error"}))
                .with("x-fal-error-type", "internal_server_error")
                .with("x-fal-retryable", "true")
        }
        _ if run.file.ends_with(".mp4") => {
            Reply::json(200, &json!({"video": {"url": run.file, "content_type": "video/mp4", "file_name": "out.mp4"}}))
        }
        _ => Reply::json(
            200,
            &json!({
                "images": [{"url": run.file, "width": 1024, "height": 1024, "content_type": "image/png"}],
                "seed": 42, "has_nsfw_concepts": [false], "prompt": run.body["prompt"], "timings": {"inference": 0.1}
            }),
        ),
    }
}

fn refuse(failure_mode: FailureMode) -> Option<Reply> {
    Some(match failure_mode {
        FailureMode::RateLimited => Reply::json(429, &json!({"detail": "Too many requests"})).with("retry-after", "1"),
        FailureMode::OutOfCredit => {
            let detail = "User is locked. Reason: Exhausted balance. Top up your balance at fal.ai/dashboard/billing.";
            Reply::json(403, &json!({"detail": detail}))
        }
        FailureMode::Invalid => invalid("image_size", Wrong::Value),
        FailureMode::Down => Reply::json(503, &json!({"detail": "Service unavailable"})),
        FailureMode::ServerError => Reply::json(500, &json!({"detail": "Internal Server Error"})),
        _ => return None,
    })
}

fn invalid(field: &str, wrong: Wrong) -> Reply {
    match wrong {
        Wrong::Missing => detail(422, field, "field required", "missing"),
        Wrong::Unknown => detail(422, field, "extra fields not permitted", "value_error"),
        Wrong::Value => detail(422, field, "value is not valid", "value_error"),
    }
}

fn detail(status: u16, field: &str, message: &str, kind: &str) -> Reply {
    let url = format!("https://docs.fal.ai/errors/#{kind}");
    Reply::json(status, &json!({"detail": [{"loc": ["body", field], "msg": message, "type": kind, "url": url}]}))
}

fn not_found() -> Reply {
    Reply::json(404, &json!({"detail": "Not Found"}))
}
