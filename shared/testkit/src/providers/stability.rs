//! Simulator of Stability AI's stable-image API.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};

use super::check::{self, Kind, Rule, optional, required};
use super::failure_mode::FailureMode;
use super::form;
use super::image::{is_image, size_of};
use super::mask;
use super::server::{Call, Reply};
use super::state::{Asked, Run, State};

/// The maximum size of a request in bytes.
const BODY_MAX: usize = 10 * 1024 * 1024;

const COMMON: [Rule; 6] = [
    required("prompt", Kind::Text(10_000)),
    optional("negative_prompt", Kind::Text(10_000)),
    optional("aspect_ratio", Kind::OneOf(&["16:9", "1:1", "21:9", "2:3", "3:2", "4:5", "5:4", "9:16", "9:21"])),
    optional("seed", Kind::Fits(|it| number(it).is_some_and(|it| (0.0..=4_294_967_294.0).contains(&it)))),
    optional("output_format", Kind::OneOf(&["png", "jpeg", "webp"])),
    optional("style_preset", Kind::Text(40)),
];
const STRENGTH: Rule = optional("strength", Kind::Fits(|it| number(it).is_some_and(|it| (0.0..=1.0).contains(&it))));

fn number(value: &Value) -> Option<f64> {
    value.as_str()?.parse().ok()
}

fn rules(endpoint: &str) -> Option<Vec<Rule>> {
    let own = match endpoint {
        "core" => vec![],
        "ultra" => vec![STRENGTH],
        "sd3" => vec![
            STRENGTH,
            optional("mode", Kind::OneOf(&["text-to-image", "image-to-image"])),
            optional("model", Kind::OneOf(&["sd3.5-large", "sd3.5-large-turbo", "sd3.5-medium", "sd3.5-flash"])),
            optional("cfg_scale", Kind::Fits(|it| number(it).is_some_and(|it| (1.0..=10.0).contains(&it)))),
        ],
        _ => return None,
    };
    Some(COMMON.into_iter().chain(own).collect())
}

pub(super) fn answer(state: &State, call: &Call) -> Reply {
    if !call.has_key("authorization", "Bearer ") {
        return error(401, "unauthorized", "authorization: is invalid or missing");
    }
    match (&call.method, call.pieces().as_slice()) {
        (&Method::GET, ["v1", "user", "balance"]) => Reply::json(200, &json!({"credits": 123.4})),
        (&Method::POST, ["v2beta", "stable-image", "generate", endpoint]) => generate(state, call, endpoint),
        (&Method::POST, ["v2beta", "stable-image", "edit", "inpaint"]) => inpaint(state, call),
        _ => error(404, "not_found", "The requested resource was not found."),
    }
}

fn generate(state: &State, call: &Call, endpoint: &str) -> Reply {
    if call.body.len() > BODY_MAX {
        return error(413, "payload_too_large", "body: payloads cannot be larger than 10MiB in size");
    }
    let Some(rules) = rules(endpoint) else { return error(404, "not_found", "The requested resource was not found.") };
    let Some((parts, body)) = form::parse(call).and_then(|parts| form::texts(&parts).map(|body| (parts, body))) else {
        return error(400, "bad_request", "content-type: must be multipart/form-data");
    };
    if let Err((field, wrong)) = check::check(&body, &rules) {
        return error(400, "bad_request", &format!("{field}: {wrong:?}"));
    }
    let files: Vec<_> = parts.iter().filter(|part| part.file_name.is_some()).collect();
    let takes_image = endpoint != "core" && body.get("mode") != Some(&json!("text-to-image"));
    if !files.iter().all(|part| part.name == "image" && takes_image && is_image(&part.content)) || files.len() > 1 {
        return error(400, "bad_request", "image: is not allowed or not valid");
    }
    if files.is_empty() && body.get("mode") == Some(&json!("image-to-image")) {
        return error(400, "bad_request", "image: is required");
    }
    if !files.is_empty() && !body.contains_key("strength") {
        return error(400, "bad_request", "strength: is required with an image");
    }
    if !files.is_empty() && endpoint == "sd3" && body.contains_key("aspect_ratio") {
        return error(400, "bad_request", "aspect_ratio: is for text-to-image alone");
    }
    let size = body.get("aspect_ratio").and_then(Value::as_str).and_then(size_of).unwrap_or((1024, 1024));
    let prompt = body["prompt"].as_str().unwrap_or_default().to_owned();
    let bare = call.header("accept") != Some("application/json");
    let asked = Asked { prompt, images: files.len(), mask: None, size, body: Value::Object(body), video: false };
    state.submit(call, asked, true, refuse, |run, image| made(run, image, bare))
}

/// Edits within a mask. Without one, the alpha channel of the image would be it, which no order relies on.
fn inpaint(state: &State, call: &Call) -> Reply {
    if call.body.len() > BODY_MAX {
        return error(413, "payload_too_large", "body: payloads cannot be larger than 10MiB in size");
    }
    let Some((parts, body)) = form::parse(call).and_then(|parts| form::texts(&parts).map(|body| (parts, body))) else {
        return error(400, "bad_request", "content-type: must be multipart/form-data");
    };
    let grow = optional("grow_mask", Kind::Fits(|it| number(it).is_some_and(|it| (0.0..=20.0).contains(&it))));
    let rules: Vec<Rule> = COMMON.into_iter().filter(|rule| rule.name != "aspect_ratio").chain([grow]).collect();
    if let Err((field, wrong)) = check::check(&body, &rules) {
        return error(400, "bad_request", &format!("{field}: {wrong:?}"));
    }
    let file = |name: &str| parts.iter().find(|part| part.name == name && part.file_name.is_some());
    let (Some(image), Some(mask)) = (file("image"), file("mask")) else {
        return error(400, "bad_request", "image: is required");
    };
    let size = match mask::judge(&image.content, &mask.content, mask::Form::White) {
        Ok(size) => size,
        Err(why) => return error(400, "bad_request", why),
    };
    let prompt = body["prompt"].as_str().unwrap_or_default().to_owned();
    let bare = call.header("accept") != Some("application/json");
    let mask = Some(mask.content.clone());
    let asked = Asked { prompt, images: 2, mask, size, body: Value::Object(body), video: false };
    state.submit(call, asked, true, refuse, |run, image| made(run, image, bare))
}

fn made(run: &Run, bytes: Bytes, bare: bool) -> Reply {
    let reason = match run.failure_mode {
        // Stability answers with 200 and a blurred image.
        Some(FailureMode::Content) => "CONTENT_FILTERED",
        _ => "SUCCESS",
    };
    if bare {
        return Reply::bytes(200, "image/png", bytes).with("finish-reason", reason).with("seed", "343940597");
    }
    let image = if run.failure_mode == Some(FailureMode::ExpiredUrl) { String::new() } else { STANDARD.encode(bytes) };
    Reply::json(200, &json!({"image": image, "finish_reason": reason, "seed": 343_940_597}))
}

fn refuse(failure_mode: FailureMode) -> Option<Reply> {
    Some(match failure_mode {
        // Stability sends no `Retry-After` header: a client over the rate is blocked for one
        // minute.
        FailureMode::RateLimited => error(429, "rate_limit_exceeded", "You have exceeded the rate limit."),
        FailureMode::OutOfCredit => error(402, "payment_required", "You lack sufficient balance."),
        FailureMode::Invalid => error(400, "bad_request", "aspect_ratio: is not valid"),
        FailureMode::Down => error(503, "service_unavailable", "Try again later."),
        FailureMode::ServerError | FailureMode::WorkFails => {
            error(500, "internal_error", "An unexpected server error occurred.")
        }
        _ => return None,
    })
}

fn error(status: u16, name: &str, message: &str) -> Reply {
    Reply::json(status, &json!({"id": "ab13d00cb7c5", "name": name, "errors": [message]}))
}
