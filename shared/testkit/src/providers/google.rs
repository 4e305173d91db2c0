//! Simulator of Google's Gemini API: `generateContent`, for images and texts.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Method;
use serde_json::{Map, Value, json};

use super::check::{self, Kind, Rule, Wrong, optional, required};
use super::failure_mode::FailureMode;
use super::image::size_of;
use super::interactions;
use super::server::{Call, Reply};
use super::state::{Asked, Run, State};

const RATIOS: Kind =
    Kind::OneOf(&["1:1", "1:4", "4:1", "1:8", "8:1", "2:3", "3:2", "3:4", "4:3", "4:5", "5:4", "9:16", "16:9", "21:9"]);

const REQUEST: [Rule; 5] = [
    required(
        "contents",
        Kind::Fits(|value| value.as_array().is_some_and(|it| !it.is_empty() && it.iter().all(is_content))),
    ),
    optional("generationConfig", Kind::Fits(|value| fits(value, &CONFIG))),
    optional("safetySettings", Kind::Fits(Value::is_array)),
    optional("systemInstruction", Kind::Fits(is_content)),
    optional("tools", Kind::Fits(Value::is_array)),
];

const CONFIG: [Rule; 8] = [
    optional("responseModalities", Kind::List(1, 3, &Kind::OneOf(&["TEXT", "IMAGE", "AUDIO"]))),
    optional("imageConfig", Kind::Fits(|value| fits(value, &IMAGE_CONFIG))),
    optional("seed", Kind::Integer(i32::MIN as i64, i32::MAX as i64)),
    optional("temperature", Kind::Number(0.0, 2.0)),
    optional("maxOutputTokens", Kind::Integer(1, 1 << 20)),
    optional("candidateCount", Kind::Integer(1, 8)),
    optional("topP", Kind::Number(0.0, 1.0)),
    optional("responseMimeType", Kind::Text(80)),
];

const IMAGE_CONFIG: [Rule; 2] =
    [optional("aspectRatio", RATIOS), optional("imageSize", Kind::OneOf(&["512", "1K", "2K", "4K"]))];

const CONTENT: [Rule; 2] = [
    required("parts", Kind::Fits(|value| value.as_array().is_some_and(|it| !it.is_empty() && it.iter().all(is_part)))),
    optional("role", Kind::OneOf(&["user", "model"])),
];

const PART: [Rule; 2] =
    [optional("text", Kind::Text(1 << 20)), optional("inlineData", Kind::Fits(|it| fits(it, &BLOB)))];

const BLOB: [Rule; 2] = [
    required("mimeType", Kind::OneOf(&["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"])),
    required("data", Kind::Fits(is_bytes)),
];

fn fits(value: &Value, rules: &[Rule]) -> bool {
    value.as_object().is_some_and(|object| check::check(object, rules).is_ok())
}

/// Returns `true` if a value is an image as JSON encodes a protobuf `bytes` field: base64 in the standard or
/// the URL-safe alphabet.
fn is_bytes(value: &Value) -> bool {
    value.as_str().is_some_and(|text| check::is_base64_image(&text.replace('-', "+").replace('_', "/")))
}

fn is_content(value: &Value) -> bool {
    fits(value, &CONTENT)
}

fn is_part(value: &Value) -> bool {
    value.as_object().is_some_and(|it| it.len() == 1) && fits(value, &PART)
}

pub(super) fn answer(state: &State, call: &Call) -> Reply {
    if !call.has_key("x-goog-api-key", "") {
        // Google reports an invalid key with 400, not 401.
        let reason = json!({"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"});
        return error(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", json!([reason]));
    }
    // The stable version offers this method too.
    let models = call.path.strip_prefix("/v1beta/models/").or_else(|| call.path.strip_prefix("/v1/models/"));
    let model = models.and_then(|rest| rest.strip_suffix(":generateContent"));
    if let [_, "interactions" | "files", ..] = call.pieces()[..] {
        return interactions::answer(state, call);
    }
    match (&call.method, model) {
        (&Method::POST, Some("imagen-4")) => error(404, "NOT_FOUND", "models/imagen-4 is not found.", json!([])),
        (&Method::POST, Some(model)) => generate(state, call, model),
        _ => error(404, "NOT_FOUND", "Requested entity was not found.", json!([])),
    }
}

/// Converts field names to their JSON form: protobuf JSON parsers also accept the original names,
/// such as `mime_type`.
fn camel_case(object: Map<String, Value>) -> Map<String, Value> {
    fn value(it: Value) -> Value {
        match it {
            Value::Object(object) => Value::Object(camel_case(object)),
            Value::Array(list) => list.into_iter().map(value).collect(),
            other => other,
        }
    }
    let name = |name: String| {
        let mut words = name.split('_');
        let first = words.next().unwrap_or_default().to_owned();
        words.fold(first, |name, word| match word.split_at_checked(1) {
            Some((initial, rest)) => name + &initial.to_ascii_uppercase() + rest,
            None => name,
        })
    };
    object.into_iter().map(|(key, it)| (name(key), value(it))).collect()
}

fn generate(state: &State, call: &Call, model: &str) -> Reply {
    let Some(body) = check::object(&call.body).map(camel_case) else {
        return error(400, "INVALID_ARGUMENT", "Invalid JSON payload received.", json!([]));
    };
    if let Err((field, wrong)) = check::check(&body, &REQUEST) {
        let message = match wrong {
            Wrong::Unknown => format!("Invalid JSON payload received. Unknown name \"{field}\""),
            Wrong::Missing | Wrong::Value => format!("Invalid value at '{field}'"),
        };
        return error(400, "INVALID_ARGUMENT", &message, json!([]));
    }
    let parts: Vec<&Value> = body["contents"].as_array().into_iter().flatten().flat_map(parts).collect();
    let prompt = parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n");
    let images = parts.iter().filter(|part| part.get("inlineData").is_some()).count();
    let config = body.get("generationConfig").unwrap_or(&Value::Null);
    let is_image = config["responseModalities"].as_array().is_some_and(|all| all.contains(&json!("IMAGE")));
    if !is_image {
        let asked = Asked { images, ..Asked::text(prompt.clone(), Value::Object(body.clone())) };
        return state.submit(call, asked, true, refuse, |run, _| write(run, &prompt, model));
    }
    let config = &config["imageConfig"];
    let size = config["aspectRatio"].as_str().and_then(size_of).unwrap_or((1024, 1024));
    let asked = Asked { prompt, images, mask: None, size, body: Value::Object(body.clone()), video: false };
    state.submit(call, asked, true, refuse, |run, image| made(run, &image, model))
}

fn parts(content: &Value) -> impl Iterator<Item = &Value> {
    content["parts"].as_array().into_iter().flatten()
}

fn made(run: &Run, image: &Bytes, model: &str) -> Reply {
    // Google reports refusals with status 200.
    let reported = match run.failure_mode {
        Some(FailureMode::Content) => json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}),
        Some(FailureMode::ExpiredUrl) => candidate(json!([]), "NO_IMAGE"),
        _ => {
            let draft = json!({"thought": true, "inlineData": {"mimeType": "image/png", "data": "ZHJhZnQ="}});
            let image = json!({"inlineData": {"mimeType": "image/png", "data": STANDARD.encode(image)}});
            candidate(json!([draft, {"text": "Here it is."}, image]), "STOP")
        }
    };
    reported_by(run, model, reported)
}

fn write(run: &Run, prompt: &str, model: &str) -> Reply {
    let text = super::written(prompt);
    let (begin, end) = text.split_at(super::written("").len());
    let reported = match run.failure_mode {
        // The text that was generated before the block is still part of the answer.
        Some(FailureMode::Content) => candidate(json!([{"text": begin}]), "SAFETY"),
        Some(FailureMode::ExpiredUrl) => candidate(json!([{"thought": true, "text": "Let me see."}]), "MAX_TOKENS"),
        _ => candidate(json!([{"thought": true, "text": "Let me see."}, {"text": begin}, {"text": end}]), "STOP"),
    };
    reported_by(run, model, reported)
}

fn candidate(parts: Value, reason: &str) -> Value {
    json!({"candidates": [{"index": 0, "finishReason": reason, "content": {"role": "model", "parts": parts}}]})
}

fn reported_by(run: &Run, model: &str, mut answer: Value) -> Reply {
    answer["modelVersion"] = json!(model);
    answer["responseId"] = json!(run.id);
    answer["usageMetadata"] = json!({"promptTokenCount": 10, "candidatesTokenCount": 1125, "totalTokenCount": 1135});
    Reply::json(200, &answer)
}

pub(super) fn refuse(failure_mode: FailureMode) -> Option<Reply> {
    let quota = |id: &str| {
        json!({
            "@type": "type.googleapis.com/google.rpc.QuotaFailure",
            "violations": [{"quotaMetric": "requests", "quotaId": id, "quotaValue": "20"}]
        })
    };
    Some(match failure_mode {
        // Google sends no `Retry-After` header: the delay is in the error's details.
        FailureMode::RateLimited => {
            let retry = json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1s"});
            let details = json!([retry, quota("GenerateRequestsPerMinutePerProjectPerModel")]);
            error(429, "RESOURCE_EXHAUSTED", "You exceeded your current rate.", details)
        }
        FailureMode::OutOfCredit => {
            let details = json!([quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier")]);
            error(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota.", details)
        }
        FailureMode::Invalid => error(400, "INVALID_ARGUMENT", "Invalid value at 'aspectRatio'", json!([])),
        FailureMode::Down => error(503, "UNAVAILABLE", "The model is overloaded.", json!([])),
        FailureMode::ServerError | FailureMode::WorkFails => {
            error(500, "INTERNAL", "An internal error has occurred.", json!([]))
        }
        _ => return None,
    })
}

pub(super) fn error(status: u16, name: &str, message: &str, details: Value) -> Reply {
    Reply::json(status, &json!({"error": {"code": status, "message": message, "status": name, "details": details}}))
}
