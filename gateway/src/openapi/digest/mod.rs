//! The digest: the contract in few tokens, for language models (docs/reference/conventions.md#digest).
//!
//! `guide.md` says what no schema says. Everything else is written from the contract document: operations, Actions, endpoints,
//! types and failures. What a route or a type gains is in the digest by itself. Endpoints that most tasks do not need are in a part
//! of their own, in the form of `rest.md`.

mod answers;
mod forms;
#[cfg(test)]
mod tokens;

use std::collections::BTreeMap;

use axum::Extension;
use axum::extract::OriginalUri;
use axum::response::IntoResponse;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use domain::API_ROOT;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::Deserialize;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use utoipa::{IntoParams, ToSchema};

use self::answers::Answers;
use self::forms::{Forms, component, either};
use crate::compression::Unchanging;
use crate::extract::query::QueryReader;
use crate::problem::Result;
use crate::reply;

/// The tags of the endpoints in the part `rest`.
const REST: [&str; 4] = ["Elements", "Recipes", "Batches", "Legacy campaigns"];

/// A part of the digest besides the first one.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    Rest,
}

/// The text around what is written from the document.
const fn guide(part: Option<Part>) -> &'static str {
    match part {
        None => include_str!("guide.md"),
        Some(Part::Rest) => include_str!("rest.md"),
    }
}

/// Query of the digest.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct DigestQuery {
    /// `rest`: Elements and Recipes. The first part has all other endpoints, and what both need.
    #[param(inline)]
    part: Option<Part>,
}

/// Headers that the guide explains, or that a client can do without.
const UNLISTED: [&str; 3] = ["If-None-Match", "Range", "X-Canvas-File-Name"];
/// Query parameters that the guide explains.
const COMMON: [&str; 3] = ["cursor", "limit", "ownerUid"];

/// Failures that the guide explains, or that a client seldom meets. So are those of the service, from 500 on.
const RARE: [&str; 3] = ["406", "410", "416"];
/// Maximum number of listed values of a query parameter.
const VALUES_MAX: usize = 5;

/// An operation of the document.
struct Endpoint<'a> {
    method: &'a str,
    path: &'a str,
    operation: &'a Value,
    /// Its parameters, the shared ones included.
    parameters: Vec<&'a Value>,
}

impl<'a> Endpoint<'a> {
    fn all(document: &'a Value) -> Vec<Self> {
        let shared = &document["components"]["parameters"];
        let of = |path: &'a str, method: &'a str, operation: &'a Value| {
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let parameters = parameters.map(|it| component(it).map_or(it, |name| &shared[name])).collect();
            Self { method, path: path.strip_prefix(API_ROOT).unwrap_or(path), operation, parameters }
        };
        let paths = document["paths"].as_object().into_iter().flatten();
        let operations =
            paths.flat_map(|(path, item)| item.as_object().into_iter().flatten().map(move |it| (path, it)));
        operations.map(|(path, (method, operation))| of(path, method, operation)).collect()
    }

    /// The part of the digest that it is in.
    fn part(&self) -> Option<Part> {
        REST.contains(&text(&self.operation["tags"][0])).then_some(Part::Rest)
    }

    fn is_deprecated(&self) -> bool {
        self.operation["deprecated"] == true
    }

    /// The schema of its body, if that is JSON.
    fn request(&self) -> Option<&'a Value> {
        self.operation.pointer("/requestBody/content/application~1json/schema")
    }

    /// Its successful answers that have a body: status and content. An answer with a range is left out: it repeats the whole.
    fn successes(&self) -> impl Iterator<Item = (&'a str, &'a Map<String, Value>)> {
        let responses = self.operation["responses"].as_object().into_iter().flatten();
        let successes = responses.filter(|(status, _)| status.starts_with('2') && *status != "206");
        successes.filter_map(|(status, response)| Some((status.as_str(), response["content"].as_object()?)))
    }

    /// The schemas of its answers that are JSON.
    fn answers(&self) -> impl Iterator<Item = &'a Value> {
        self.successes().filter_map(|(_, content)| content.get("application/json").map(|media| &media["schema"]))
    }

    fn parameters_in(&self, place: &str) -> impl Iterator<Item = (&'a str, &'a Value)> {
        let parameters = self.parameters.iter().filter(move |parameter| parameter["in"] == place);
        parameters.filter_map(|parameter| Some((parameter["name"].as_str()?, *parameter)))
    }

    /// One line: method, path, query, headers, purpose, body and answers.
    fn line(&self, forms: &Forms<'a>, answers: &Answers<'a, '_>) -> String {
        let mut line = format!("- {} {}", self.method.to_uppercase(), self.path);
        let query = self.parameters_in("query").filter(|(name, _)| !COMMON.contains(name));
        let query: Vec<String> = query.map(|(name, parameter)| query_form(forms, name, parameter)).collect();
        if !query.is_empty() {
            line += &format!("?{}", query.join("&"));
        }
        let headers = self.parameters_in("header").map(|(name, _)| name).filter(|name| !UNLISTED.contains(name));
        let headers: Vec<&str> = headers.collect();
        if !headers.is_empty() {
            line += &format!(" [{}]", headers.join(", "));
        }
        // What a read is for is said by its answer.
        if self.method != "get" {
            line += &format!(" {}.", text(&self.operation["summary"]));
        }
        if let Some(body) = self.request() {
            line += &format!(" {}", forms.form(body));
        } else if self.operation.get("requestBody").is_some() {
            line += " the bytes";
        }
        // Answers of one form are listed once.
        let mut listed: Vec<(&str, String)> = Vec::new();
        for (status, content) in self.successes() {
            let form = match content.get("application/json") {
                Some(media) => answers.answer(&media["schema"]),
                None => media_types(content),
            };
            if listed.iter().all(|(_, earlier)| *earlier != form) {
                listed.push((status, form));
            }
        }
        let listed = listed.iter().map(|(status, form)| match *status {
            "200" => form.clone(),
            status => format!("{status} {form}"),
        });
        format!("{line} → {}", either(listed))
    }
}

fn query_form<'a>(forms: &Forms<'a>, name: &str, parameter: &'a Value) -> String {
    let mark = if parameter["required"] == true { "" } else { "?" };
    match forms.values(&parameter["schema"]) {
        values if (1..=VALUES_MAX).contains(&values.len()) => format!("{name}{mark}={}", values.join("|")),
        _ => format!("{name}{mark}"),
    }
}

/// The media types of a body, or their kind if there are many.
fn media_types(content: &Map<String, Value>) -> String {
    match content.keys().collect::<Vec<_>>().as_slice() {
        [first, _, _, ..] => format!("{}/*", first.split('/').next().unwrap_or_default()),
        few => either(few.iter().map(ToString::to_string)),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The first sentence of a description, on one line.
fn sentence(description: &Value) -> String {
    let words = text(description).split_whitespace().collect::<Vec<_>>().join(" ");
    words.split_once(". ").map_or(words.clone(), |(first, _)| format!("{first}."))
}

/// A part of the digest of a document, for a service that is reached at `public_url`.
pub fn digest(document: &Value, public_url: &str, part: Option<Part>) -> String {
    let components = document["components"]["schemas"].as_object().expect("the schemas are components");
    let endpoints: Vec<Endpoint> = Endpoint::all(document).into_iter().filter(|it| it.part() == part).collect();
    let (deprecated, current): (Vec<&Endpoint>, Vec<&Endpoint>) = endpoints.iter().partition(|it| it.is_deprecated());
    let operations = variants(components, &components["Operation"]["oneOf"]);
    let actions = variants(components, &components["RunAction"]["properties"]["params"]["anyOf"]);
    let requests: Vec<&Value> = current.iter().filter_map(|endpoint| endpoint.request()).collect();
    let forms = match part {
        None => Forms::new(components, &[&*operations, &actions, &requests].concat()),
        Some(Part::Rest) => Forms::new(components, &requests),
    };
    let bodies: Vec<&Value> = current.iter().flat_map(|endpoint| endpoint.answers()).collect();
    let answers = Answers::new(&forms, components, &bodies);

    let kinds = operations.iter().map(|operation| {
        let kind = text(&operation["properties"]["type"]["const"]);
        format!("- `{kind}` {} {}", forms.object(operation, &["type"]), sentence(&operation["description"]))
    });
    let (common, actions) = action_lines(&forms, &actions);
    let outdated = deprecated.iter().map(|endpoint| format!("{} {}", endpoint.method.to_uppercase(), endpoint.path));
    let outdated = outdated.collect::<Vec<_>>().join(", ");
    let outdated = (!outdated.is_empty()).then(|| format!("- Deprecated: {outdated}."));
    let current_lines = current.iter().map(|endpoint| endpoint.line(&forms, &answers));
    let line = |(name, form): (&str, String)| format!("- {name} {form}");
    [
        ("{{origin}}", public_url.trim_end_matches('/').to_owned()),
        ("{{root}}", format!("{}{API_ROOT}", public_url.trim_end_matches('/'))),
        ("{{failures}}", lines(failures(document, &endpoints))),
        ("{{operations}}", lines(kinds)),
        ("{{common}}", common),
        ("{{actions}}", lines(actions)),
        ("{{endpoints}}", lines(current_lines.chain(outdated))),
        ("{{headers}}", lines(headers(&current))),
        ("{{types}}", lines(forms.named().map(line))),
        ("{{records}}", lines(answers.records().map(line))),
    ]
    .iter()
    .fold(guide(part).to_owned(), |text, (place, content)| text.replace(place, content))
}

/// The components that a union lists.
fn variants<'a>(components: &'a Map<String, Value>, union: &'a Value) -> Vec<&'a Value> {
    union.as_array().into_iter().flatten().filter_map(|variant| components.get(component(variant)?)).collect()
}

/// The parameters that all Actions take, and a line for each Action with its inputs and its other parameters.
fn action_lines<'a>(forms: &Forms<'a>, params: &[&'a Value]) -> (String, Vec<String>) {
    let is_common = |name: &str| params.iter().all(|form| form["properties"].get(name).is_some());
    let first = params.first().expect("there are Actions");
    let names = forms.members(first).into_iter().map(|member| member.name);
    let (common, own): (Vec<&str>, Vec<&str>) = names.partition(|name| is_common(name));
    let lines = actions::all().iter().zip(params).map(|(action, params)| {
        let inputs: Vec<&str> = action.inputs.iter().map(|input| &*input.id).collect();
        format!("- `{}` [{}] {}", action.slug, inputs.join(", "), forms.object(params, &common))
    });
    (format!("All take {}.", forms.object(first, &own)), lines.collect())
}

fn lines(lines: impl IntoIterator<Item = String>) -> String {
    lines.into_iter().collect::<Vec<_>>().join("\n")
}

/// The failures of the operations: status, codes and meaning.
fn failures(document: &Value, endpoints: &[Endpoint]) -> Vec<String> {
    let responses = endpoints.iter().filter_map(|endpoint| endpoint.operation["responses"].as_object()).flatten();
    let named: BTreeMap<&str, &str> =
        responses.filter_map(|(status, response)| Some((status.as_str(), component(response)?))).collect();
    let line = |(status, name): (&str, &str)| {
        let response = &document["components"]["responses"][name];
        let examples = response.pointer("/content/application~1json/examples").and_then(Value::as_object);
        let codes =
            examples.into_iter().flatten().map(|(_, example)| text(&example["value"]["error"]["code"]).to_owned());
        format!("- {status} {}: {}", either(codes), sentence(&response["description"]))
    };
    let listed = named.into_iter().filter(|(status, _)| status.starts_with('4') && !RARE.contains(status));
    listed.map(line).collect()
}

/// The headers of requests, each with everything that operations say about it.
fn headers(endpoints: &[&Endpoint]) -> Vec<String> {
    let mut meanings_of: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let headers = endpoints.iter().flat_map(|endpoint| endpoint.parameters_in("header"));
    for (name, parameter) in headers.filter(|(name, _)| !UNLISTED.contains(name)) {
        let (meanings, meaning) = (meanings_of.entry(name).or_default(), sentence(&parameter["description"]));
        if !meanings.contains(&meaning) {
            meanings.push(meaning);
        }
    }
    meanings_of.into_iter().map(|(name, meanings)| format!("- {name}: {}", meanings.join(" "))).collect()
}

/// The digest as it is served.
#[derive(Clone)]
pub struct Served {
    first: Tagged,
    rest: Tagged,
}

/// A part with its entity tag.
#[derive(Clone)]
struct Tagged {
    text: Bytes,
    etag: HeaderValue,
}

impl Served {
    /// The digest of `document` for an installation that is reached at `public_url`.
    pub fn from_document(document: &Value, public_url: &str) -> Self {
        let tagged = |part| {
            let text = digest(document, public_url, part);
            let tag = URL_SAFE_NO_PAD.encode(&Sha256::digest(&text)[..12]);
            let etag = HeaderValue::from_str(&format!("\"{tag}\"")).expect("base64 is a header value");
            Tagged { text: text.into(), etag }
        };
        Self { first: tagged(None), rest: tagged(Some(Part::Rest)) }
    }
}

/// Read the digest of this document
///
/// Returns what a client needs of this document as Markdown, in two parts of at most 6000 tokens each. Use it as the
/// instructions of a language model that calls the service: the first part for canvases and work, the part `rest` for
/// Elements and Recipes. It needs no credential and is the same for every caller.
#[utoipa::path(
    get, path = "/digest.md", operation_id = "getDigest", tag = "Contract",
    security(()),
    params(
        DigestQuery,
        ("If-None-Match" = Option<String>, Header, description = "A known `ETag`. The answer is 304 when it still matches."),
    ),
    responses(
        (status = 200, description = "The digest.", content_type = "text/markdown", body = String),
        (status = 304, description = "The digest still has the entity tag in `If-None-Match`."),
    )
)]
pub async fn serve(
    Extension(Served { first, rest }): Extension<Served>,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
) -> Result {
    let mut query = QueryReader::new(&uri);
    let DigestQuery { part } = query.read().unwrap_or_default();
    query.finish()?;
    let (name, Tagged { text, etag }) = match part {
        None => ("digest", first),
        Some(Part::Rest) => ("digest of the rest", rest),
    };
    let is_known = etag.to_str().is_ok_and(|etag| reply::none_match(&headers, etag));
    let kept = [(CACHE_CONTROL, HeaderValue::from_static("public, max-age=300")), (ETAG, etag)];
    if is_known {
        return Ok((StatusCode::NOT_MODIFIED, kept).into_response());
    }
    let markdown = [(CONTENT_TYPE, HeaderValue::from_static("text/markdown; charset=utf-8"))];
    Ok((Unchanging::named(name), markdown, kept, text).into_response())
}

#[cfg(test)]
mod tests;
