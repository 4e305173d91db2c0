//! Simulator of Runway's tasks API.

use http::Method;
use serde_json::{Map, Value, json};

use super::check::{self, Kind, Rule, Wrong, is_data_url, optional, required};
use super::failure_mode::FailureMode;
use super::image::size_of;
use super::server::{Call, Reply};
use super::state::{Asked, Phase, Run, State};

const REFERENCE: Kind = Kind::Fits(|value| {
    let Some(object) = value.as_object() else { return false };
    check::check(object, &[required("uri", Kind::Fits(is_uri)), optional("tag", Kind::Fits(is_tag))]).is_ok()
});
const GEN4: [&str; 16] = [
    "1024:1024",
    "1080:1080",
    "1168:880",
    "1360:768",
    "1440:1080",
    "1080:1440",
    "1808:768",
    "1920:1080",
    "1080:1920",
    "2112:912",
    "1280:720",
    "720:1280",
    "720:720",
    "960:720",
    "720:960",
    "1680:720",
];

fn is_uri(value: &Value) -> bool {
    value.as_str().is_some_and(|uri| {
        let https = uri.starts_with("https://") && uri.len() <= 2048;
        let uploaded = uri.starts_with("runway://") && uri.len() <= 5000;
        https || uploaded || (uri.len() <= 5_242_880 && is_data_url(uri))
    })
}

fn is_tag(value: &Value) -> bool {
    value.as_str().is_some_and(|tag| {
        (3..=16).contains(&tag.len())
            && tag.starts_with(|c: char| c.is_ascii_lowercase())
            && tag.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
    })
}

/// Returns `true` if a value is `W:H` in pixels, or a word that the model accepts.
fn is_ratio(value: &Value) -> bool {
    value.as_str().is_some_and(|it| it.starts_with("auto") || size_of(it).is_some_and(|(width, _)| width >= 64))
}

fn rules(model: &str) -> Option<Vec<Rule>> {
    let prompt = |most| required("promptText", Kind::Text(most));
    let ratio = |kind| required("ratio", kind);
    let model_name = required("model", Kind::Text(80));
    let references = |most| optional("referenceImages", Kind::List(0, most, &REFERENCE));
    let count = optional("outputCount", Kind::Integer(1, 10));
    let seed = optional("seed", Kind::Integer(0, u32::MAX as i64));
    let moderation = optional("contentModeration", Kind::Fits(Value::is_object));
    Some(match model {
        "gen4_image" => vec![model_name, prompt(1000), ratio(Kind::OneOf(&GEN4)), seed, references(3), moderation],
        "gen4_image_turbo" => {
            let references = required("referenceImages", Kind::List(1, 3, &REFERENCE));
            vec![model_name, prompt(1000), ratio(Kind::OneOf(&GEN4)), seed, references, moderation]
        }
        "gpt_image_2" => {
            let quality = optional("quality", Kind::OneOf(&["low", "medium", "high", "auto"]));
            let background = optional("background", Kind::OneOf(&["opaque", "auto"]));
            vec![model_name, prompt(32_000), ratio(Kind::Fits(is_ratio)), quality, background, references(16), count]
        }
        "gemini_image3_pro" => vec![model_name, prompt(5500), ratio(Kind::Fits(is_ratio)), references(14), count],
        "seedream5_pro" => {
            let format = optional("outputFormat", Kind::OneOf(&["png", "jpeg"]));
            let grounding = optional("grounding", Kind::Boolean);
            vec![model_name, prompt(4000), ratio(Kind::Fits(is_ratio)), references(10), count, format, grounding]
        }
        _ => return None,
    })
}

const FRAME: Kind = Kind::Fits(|value| {
    let Some(object) = value.as_object() else { return false };
    let rules = [required("uri", Kind::Fits(is_uri)), required("position", Kind::OneOf(&["first", "last"]))];
    check::check(object, &rules).is_ok()
});

/// The type of a first frame: a URI, or a list with one entry.
const FIRST: Kind = Kind::Either(&Kind::Fits(is_uri), &Kind::List(1, 1, &FRAME));
/// Like `FIRST`, but the list may also contain the last frame.
const BOTH: Kind = Kind::Either(&Kind::Fits(is_uri), &Kind::List(1, 2, &FRAME));

/// The parameters of the video models, with or without frames; `None` for an unknown model.
fn videos(model: &str, frames: bool) -> Option<Vec<Rule>> {
    const WIDE: [&str; 2] = ["1280:720", "720:1280"];
    const SIX: [&str; 6] = ["1280:720", "720:1280", "1104:832", "960:960", "832:1104", "1584:672"];
    const VEO: [&str; 4] = ["1280:720", "720:1280", "1080:1920", "1920:1080"];
    let text = |needed: bool, most| Rule { name: "promptText", kind: Kind::Text(most), required: needed };
    let images = |kind| required("promptImage", kind);
    let model_name = required("model", Kind::Text(80));
    let seed = optional("seed", Kind::Integer(0, u32::MAX as i64));
    let audio = optional("audio", Kind::Boolean);
    let seconds = |least, most| Kind::Integer(least, most);
    let mut rules = vec![model_name];
    match model {
        "veo3.1" | "veo3.1_fast" => {
            let even = Kind::Fits(|value| matches!(value.as_i64(), Some(4 | 6 | 8)));
            rules.extend([
                text(!frames, 1000),
                required("ratio", Kind::OneOf(&VEO)),
                optional("duration", even),
                audio,
            ]);
            rules.extend(frames.then(|| images(BOTH)));
        }
        "gen4.5" => {
            let ratios = if frames { Kind::OneOf(&SIX) } else { Kind::OneOf(&WIDE) };
            rules.extend([text(true, 1000), required("ratio", ratios), required("duration", seconds(2, 10)), seed]);
            rules.extend(frames.then(|| images(FIRST)));
        }
        "gen4_turbo" if frames => {
            let ratio = required("ratio", Kind::OneOf(&SIX));
            rules.extend([text(false, 1000), ratio, optional("duration", seconds(2, 10)), seed, images(FIRST)]);
        }
        "seedance2" => {
            let ratio = optional("ratio", Kind::Fits(is_ratio));
            rules.extend([text(!frames, 3500), ratio, optional("duration", seconds(4, 15)), audio]);
            rules.push(if frames { images(BOTH) } else { optional("references", Kind::List(0, 9, &REFERENCE)) });
        }
        _ => return None,
    }
    Some(rules)
}

pub(super) fn answer(state: &State, call: &Call) -> Reply {
    if !call.has_key("authorization", "Bearer ") {
        return error(401, "The API key you provided is invalid.");
    }
    if call.header("x-runway-version") != Some("2024-11-06") {
        return error(400, "The X-Runway-Version header is missing or not known.");
    }
    match (&call.method, call.pieces().as_slice()) {
        (&Method::GET, ["v1", "organization"]) => Reply::json(200, &json!({"creditBalance": 1234})),
        (&Method::POST, ["v1", "text_to_image"]) => submit(state, call, rules, false),
        (&Method::POST, ["v1", "text_to_video"]) => submit(state, call, |model| videos(model, false), true),
        (&Method::POST, ["v1", "image_to_video"]) => submit(state, call, |model| videos(model, true), true),
        (&Method::GET, ["v1", "tasks", id]) => match state.poll(id, task) {
            Some(Some(task)) => Reply::json(200, &task),
            _ => error(404, "Task not found."),
        },
        (&Method::DELETE, ["v1", "tasks", id]) => match state.cancel(id) {
            Some(_) => Reply::bytes(204, "application/json", ""),
            None => error(404, "Task not found."),
        },
        _ => error(404, "Not found."),
    }
}

fn submit(state: &State, call: &Call, rules: impl Fn(&str) -> Option<Vec<Rule>>, video: bool) -> Reply {
    let body: Map<String, Value> = match check::object(&call.body) {
        Some(body) => body,
        None => return error(400, "The body is no JSON object."),
    };
    let Some(rules) = body.get("model").and_then(Value::as_str).and_then(rules) else {
        return invalid("model", Wrong::Value);
    };
    if let Err((field, wrong)) = check::check(&body, &rules) {
        return invalid(&field, wrong);
    }
    let fields = ["referenceImages", "references", "promptImage"];
    let given = fields.iter().filter_map(|name| body.get(*name));
    let images = given.map(|value| value.as_array().map_or(1, Vec::len)).sum();
    let size = body.get("ratio").and_then(Value::as_str).and_then(size_of).unwrap_or((1024, 1024));
    let prompt = body.get("promptText").and_then(Value::as_str).unwrap_or_default().to_owned();
    let asked = Asked { prompt, images, mask: None, size, body: Value::Object(body), video };
    let accept = |run: &Run, _| Reply::json(200, &json!({"id": run.id, "estimatedCost": {"credits": 5}}));
    state.submit(call, asked, false, refuse, accept)
}

/// The answer to a poll; `None` once the task is canceled, because Runway deletes it.
fn task(run: &Run, phase: Phase) -> Option<Value> {
    let mut task = json!({"id": run.id, "createdAt": "2026-11-21T05:00:00.000Z"});
    let mut set = |status: &str, fields: &[(&str, Value)]| {
        task["status"] = json!(status);
        for (name, value) in fields {
            task[*name] = value.clone();
        }
    };
    let (estimate, cost) = (("estimatedCost", json!({"credits": 5})), ("cost", json!({"credits": 5})));
    match (phase, run.failure_mode) {
        (Phase::Queued, _) => set("THROTTLED", &[estimate]),
        (Phase::Running, _) => set("RUNNING", &[estimate, ("progress", json!(0.42))]),
        (Phase::Canceled, _) => return None,
        (Phase::Finished, Some(FailureMode::Content)) => {
            let failure = ("failure", json!("The prompt did not pass moderation."));
            set("FAILED", &[cost, failure, ("failureCode", json!("SAFETY.INPUT.TEXT"))]);
        }
        (Phase::Finished, Some(FailureMode::WorkFails)) => {
            let failure = ("failure", json!("An unexpected error occurred."));
            set("FAILED", &[cost, failure, ("failureCode", json!("INTERNAL.BAD_OUTPUT.CODE01"))]);
        }
        (Phase::Finished, _) => set("SUCCEEDED", &[cost, ("output", json!([run.file]))]),
    }
    Some(task)
}

fn refuse(failure_mode: FailureMode) -> Option<Reply> {
    Some(match failure_mode {
        // Runway sends no `Retry-After` header.
        FailureMode::RateLimited => error(429, "You have exceeded your rate limit."),
        FailureMode::OutOfCredit => error(400, "You do not have enough credits to run this task."),
        FailureMode::Invalid => invalid("ratio", Wrong::Value),
        FailureMode::Down => error(503, "Service unavailable."),
        FailureMode::ServerError => error(500, "Internal server error."),
        _ => return None,
    })
}

fn invalid(field: &str, wrong: Wrong) -> Reply {
    let (code, message) = match wrong {
        Wrong::Missing => ("invalid_type", "Required"),
        Wrong::Unknown => ("unrecognized_keys", "Unrecognized key in object"),
        Wrong::Value => ("invalid_enum", "Invalid value"),
    };
    let issues = json!([{"code": code, "path": [field], "message": message}]);
    let url = "https://docs.dev.runwayml.com/api";
    Reply::json(400, &json!({"error": "Validation of body failed", "issues": issues, "docUrl": url}))
}

fn error(status: u16, message: &str) -> Reply {
    Reply::json(status, &json!({"error": message}))
}
