//! Simulator of OpenAI's Images API, and of the same routes on self-hosted servers. Texts are in
//! [`chat`].

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Method;
use serde_json::{Map, Value, json};

use super::chat;
use super::check::{self, Kind, Rule, Wrong, is_data_url, optional, required};
use super::failure_mode::FailureMode;
use super::form;
use super::image::{is_image, size_of};
use super::mask;
use super::server::{Call, Reply};
use super::state::{Asked, Run, State};

/// The kind of server that is simulated.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Flavor {
    /// OpenAI's own server: it validates every field and needs a key.
    Vendor,
    /// A self-hosted server: it needs no key, takes edits as forms only, and ignores unknown
    /// fields. A model whose id begins with `url-` always answers with a URL.
    Compatible,
}

const QUALITIES: Kind = Kind::OneOf(&["auto", "low", "medium", "high", "xhigh", "max"]);
const REFERENCE: Kind = Kind::Fits(|value| {
    value.as_object().is_some_and(|it| it.len() == 1) && value["image_url"].as_str().is_some_and(is_reference)
});

const COMMON: [Rule; 10] = [
    required("prompt", Kind::Text(32_000)),
    optional("model", Kind::Text(240)),
    optional("n", Kind::Integer(1, 10)),
    optional("size", Kind::Fits(is_size)),
    optional("quality", QUALITIES),
    optional("background", Kind::OneOf(&["auto", "opaque", "transparent"])),
    optional("output_format", Kind::OneOf(&["png", "jpeg", "webp", "gif", "svg"])),
    optional("output_compression", Kind::Integer(0, 100)),
    optional("moderation", Kind::OneOf(&["auto", "low"])),
    optional("user", Kind::Text(512)),
];

fn is_reference(url: &str) -> bool {
    url.len() <= 20_971_520 && (url.starts_with("https://") || is_data_url(url))
}

/// Returns `true` if a value is `auto`, or `WxH` with sides that are multiples of 16, a ratio of at most 3:1,
/// and at most 3840x2160.
fn is_size(value: &Value) -> bool {
    let Some(text) = value.as_str() else { return false };
    text == "auto"
        || size_of(text).is_some_and(|(width, height)| {
            let (short, long) = (width.min(height), width.max(height));
            text.contains('x')
                && width % 16 == 0
                && height % 16 == 0
                && long <= 3 * short
                && long <= 3840
                && short <= 2160
        })
}

pub(super) fn answer(state: &State, call: &Call, flavor: Flavor) -> Reply {
    if flavor == Flavor::Vendor && !call.has_key("authorization", "Bearer ") {
        // OpenAI quotes the rejected key in its message.
        let given = call.header("authorization").unwrap_or_default().trim_start_matches("Bearer ").to_owned();
        let message = format!("Incorrect API key provided: {given}.");
        return error(401, "invalid_request_error", "invalid_api_key", &message, Value::Null);
    }
    match (&call.method, call.path.as_str()) {
        (&Method::GET, "/v1/models") => {
            let model = json!({"id": "gpt-image-2", "object": "model", "created": 1, "owned_by": "system"});
            Reply::json(200, &json!({"object": "list", "data": [model]}))
        }
        (&Method::POST, "/v1/chat/completions") => chat::complete(state, call, flavor),
        (&Method::POST, "/v1/images/generations") => generate(state, call, flavor),
        (&Method::POST, "/v1/images/edits") => edit(state, call, flavor),
        _ => error(404, "invalid_request_error", "not_found", "Invalid URL", Value::Null),
    }
}

fn generate(state: &State, call: &Call, flavor: Flavor) -> Reply {
    let Some(body) = check::object(&call.body) else { return malformed() };
    if let Err(wrong) = judge(&body, &COMMON, flavor) {
        return invalid(wrong);
    }
    submit(state, call, body, 0, (None, None), flavor)
}

fn edit(state: &State, call: &Call, flavor: Flavor) -> Reply {
    if let Some(parts) = form::parse(call) {
        let images: Vec<_> = parts.iter().filter(|part| part.file_name.is_some()).collect();
        let named = |name: &str| matches!(name, "image" | "image[]" | "mask");
        if images.is_empty() || !images.iter().all(|part| named(&part.name) && is_image(&part.content)) {
            return invalid(("image".to_owned(), Wrong::Value));
        }
        let Some(body) = form::texts(&parts).map(numbers) else { return malformed() };
        if let Err(wrong) = judge(&body, &COMMON, flavor) {
            return invalid(wrong);
        }
        let mask = images.iter().find(|part| part.name == "mask").map(|part| part.content.clone());
        let image = images.iter().find(|part| part.name != "mask").map(|part| part.content.clone());
        return submit(state, call, body, images.len(), (image, mask), flavor);
    }
    let rules = [
        required("images", Kind::List(1, 16, &REFERENCE)),
        optional("mask", REFERENCE),
        optional("input_fidelity", Kind::OneOf(&["high", "low"])),
    ];
    let rules: Vec<Rule> = COMMON.into_iter().chain(rules).collect();
    let Some(body) = check::object(&call.body).filter(|_| flavor == Flavor::Vendor) else { return malformed() };
    if let Err(wrong) = judge(&body, &rules, flavor) {
        return invalid(wrong);
    }
    let images = body["images"].as_array().map_or(0, Vec::len);
    let content = |image: Option<&Value>| image?["image_url"].as_str().and_then(check::decoded);
    let (image, mask) = (content(body["images"].get(0)), content(body.get("mask")));
    submit(state, call, body, images + usize::from(mask.is_some()), (image, mask), flavor)
}

/// The texts of a form, with those of numeric fields converted to numbers.
fn numbers(mut body: Map<String, Value>) -> Map<String, Value> {
    for name in ["n", "output_compression"] {
        if let Some(value) = body.get_mut(name)
            && let Some(number) = value.as_str().and_then(|text| text.parse::<i64>().ok())
        {
            *value = number.into();
        }
    }
    body
}

pub(super) fn judge(body: &Map<String, Value>, rules: &[Rule], flavor: Flavor) -> Result<(), (String, Wrong)> {
    match check::check(body, rules) {
        Err((_, Wrong::Unknown)) if flavor == Flavor::Compatible => Ok(()),
        Err(wrong) => Err(wrong),
        // Only later models accept these qualities.
        Ok(()) if body.get("model") == Some(&json!("gpt-image-2")) => match body.get("quality").and_then(Value::as_str)
        {
            Some("xhigh" | "max") => Err(("quality".to_owned(), Wrong::Value)),
            _ => Ok(()),
        },
        Ok(()) => Ok(()),
    }
}

/// Submits an order with `images` images, of which the first and the mask are given.
fn submit(
    state: &State,
    call: &Call,
    body: Map<String, Value>,
    images: usize,
    (image, mask): (Option<Bytes>, Option<Bytes>),
    flavor: Flavor,
) -> Reply {
    if let Some(mask) = &mask
        && mask::judge(&image.unwrap_or_default(), mask, mask::Form::Transparent).is_err()
    {
        return invalid(("mask".to_owned(), Wrong::Value));
    }
    let prompt = body["prompt"].as_str().unwrap_or_default().to_owned();
    let size = body.get("size").and_then(Value::as_str).and_then(size_of).unwrap_or((1024, 1024));
    let by_url = flavor == Flavor::Compatible
        && (body.get("response_format") != Some(&json!("b64_json"))
            || body.get("model").and_then(Value::as_str).is_some_and(|model| model.starts_with("url-")));
    let asked = Asked { prompt, images, mask, size, body: Value::Object(body), video: false };
    state.submit(call, asked, true, refuse, |run, image| made(run, &image, by_url))
}

fn made(run: &Run, image: &Bytes, by_url: bool) -> Reply {
    let data = match run.failure_mode {
        Some(FailureMode::ExpiredUrl) if !by_url => json!([]),
        _ if by_url => json!([{"url": run.file}]),
        _ => json!([{"b64_json": STANDARD.encode(image)}]),
    };
    Reply::json(
        200,
        &json!({
            "created": 1_793_200_000, "background": "opaque", "output_format": "png", "size": "1024x1024",
            "quality": "medium", "data": data,
            "usage": {
                "input_tokens": 14, "output_tokens": 1568, "total_tokens": 1582,
                "input_tokens_details": {"text_tokens": 14, "image_tokens": 0}
            }
        }),
    )
}

pub(super) fn refuse(failure_mode: FailureMode) -> Option<Reply> {
    Some(match failure_mode {
        FailureMode::RateLimited => {
            error(429, "rate_limit_error", "rate_limit_exceeded", "Rate limit reached.", Value::Null)
                .with("retry-after", "1")
        }
        FailureMode::OutOfCredit => error(
            429,
            "insufficient_quota",
            "credit_balance_exhausted",
            "You exceeded your current quota.",
            Value::Null,
        ),
        FailureMode::Content => error(
            400,
            "image_generation_user_error",
            "moderation_blocked",
            "Your request was rejected by the safety system. safety_violations=[violence].",
            Value::Null,
        ),
        FailureMode::Invalid => error(400, "invalid_request_error", "invalid_value", "Invalid value.", json!("size")),
        FailureMode::Down => {
            error(503, "service_unavailable_error", "server_is_overloaded", "Overloaded.", Value::Null)
        }
        FailureMode::ServerError | FailureMode::WorkFails => {
            error(500, "server_error", "server_error", "The server had an error.", Value::Null)
        }
        _ => return None,
    })
}

pub(super) fn malformed() -> Reply {
    error(400, "invalid_request_error", "invalid_json", "We could not parse the body of your request.", Value::Null)
}

pub(super) fn invalid((field, wrong): (String, Wrong)) -> Reply {
    let (code, message) = match wrong {
        Wrong::Missing => ("missing_required_parameter", format!("Missing required parameter: '{field}'.")),
        Wrong::Unknown => ("unknown_parameter", format!("Unknown parameter: '{field}'.")),
        Wrong::Value => ("invalid_value", format!("Invalid value: '{field}'.")),
    };
    error(400, "invalid_request_error", code, &message, json!(field))
}

fn error(status: u16, kind: &str, code: &str, message: &str, param: Value) -> Reply {
    Reply::json(status, &json!({"error": {"message": message, "type": kind, "param": param, "code": code}}))
}
