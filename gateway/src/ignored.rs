//! Query parameters that an operation does not know: they are ignored, and the response names them
//! (docs/reference/conventions.md#ignored-query-parameters).

use std::collections::HashMap;

use http::{HeaderName, HeaderValue, Method, Uri};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::Value;

/// The header that names them.
pub const IGNORED: HeaderName = HeaderName::from_static("x-canvas-ignored");

/// Maximum number of names in the header, characters of a name, and bytes of the header: a query may be of any length, and proxies
/// reject responses with large headers.
const NAMES_MAX: usize = 16;
const NAME_MAX: usize = 64;
const HEADER_MAX: usize = 1024;

/// What a name may contain in a header: the token characters of RFC 9110 without `%`, so that commas separate names and every name
/// can be decoded.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'!')
    .remove(b'#')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'*')
    .remove(b'+')
    .remove(b'-')
    .remove(b'.')
    .remove(b'^')
    .remove(b'_')
    .remove(b'`')
    .remove(b'|')
    .remove(b'~');

/// The query parameters of every operation, by the path template.
pub struct KnownParameters(HashMap<String, HashMap<String, Vec<String>>>);

impl KnownParameters {
    /// The parameters that the documents list.
    pub fn from_documents<const N: usize>(documents: [&Value; N]) -> Self {
        Self(documents.into_iter().flat_map(paths).collect())
    }

    /// The header for a request: the names in its query that its operation does not know, each once.
    pub fn ignored(&self, path_template: &str, method: &Method, uri: &Uri) -> Option<HeaderValue> {
        let query = uri.query().filter(|query| !query.is_empty())?;
        let method = if method == Method::HEAD { Method::GET } else { method.clone() };
        let known = self.0.get(path_template)?.get(method.as_str())?;
        let mut ignored: Vec<String> = Vec::new();
        let mut length = 0;
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let name = pair.split_once('=').map_or(pair, |(name, _)| name).replace('+', " ");
            let name = percent_decode_str(&name).decode_utf8_lossy();
            if name.is_empty() || known.iter().any(|known| *known == name) {
                continue;
            }
            let shortened: String = name.chars().take(NAME_MAX).collect();
            let name = utf8_percent_encode(&shortened, ENCODED).to_string();
            if ignored.contains(&name) {
                continue;
            }
            length += name.len() + ", ".len();
            if ignored.len() == NAMES_MAX || length > HEADER_MAX {
                break;
            }
            ignored.push(name);
        }
        let names = ignored.join(", ");
        (!names.is_empty()).then(|| HeaderValue::from_str(&names).expect("the names are tokens"))
    }
}

/// The paths of a document with the query parameters of their operations.
fn paths(document: &Value) -> impl Iterator<Item = (String, HashMap<String, Vec<String>>)> {
    let resolved = |parameter: &'_ Value| match parameter["$ref"].as_str() {
        Some(path) => document.pointer(path.trim_start_matches('#')).cloned().expect("a reference resolves"),
        None => parameter.clone(),
    };
    let names = move |operation: &Value| -> Vec<String> {
        let parameters = operation["parameters"].as_array().into_iter().flatten().map(resolved);
        let queries = parameters.filter(|parameter| parameter["in"] == "query");
        queries.filter_map(|parameter| parameter["name"].as_str().map(str::to_owned)).collect()
    };
    document["paths"].as_object().into_iter().flatten().map(move |(path, item)| {
        let operations = item.as_object().into_iter().flatten();
        (path.clone(), operations.map(|(method, operation)| (method.to_uppercase(), names(operation))).collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::router::documented;

    fn ignored(method: Method, path: &str, query: &str) -> Option<String> {
        let known = KnownParameters::from_documents([&documented().1]);
        let uri = format!("{}{path}?{query}", domain::API_ROOT).parse().expect("a URI");
        let header = known.ignored(&format!("{}{path}", domain::API_ROOT), &method, &uri);
        header.map(|value| value.to_str().expect("text").to_owned())
    }

    #[test]
    fn what_an_operation_does_not_know_is_named() {
        assert_eq!(ignored(Method::POST, "/assets", "name=x.jpg&canvasId=c").as_deref(), Some("name"));
        assert_eq!(ignored(Method::GET, "/canvases", "limit=3&Limit=4&q=a").as_deref(), Some("Limit, q"));
        assert_eq!(ignored(Method::HEAD, "/canvases", "limit=3&x").as_deref(), Some("x"));
        assert_eq!(ignored(Method::GET, "/canvases", "limit=3&cursor=abc"), None);
        // Shared parameters are known as well.
        assert_eq!(ignored(Method::GET, "/canvases/{canvasId}", "ownerUid=o"), None);
        assert_eq!(ignored(Method::GET, "/canvases", ""), None);
        assert_eq!(ignored(Method::GET, "/nowhere", "a=b"), None);
    }

    #[test]
    fn a_name_is_a_token_whatever_it_contains() {
        let named = |query: &str| ignored(Method::GET, "/canvases", query);
        assert_eq!(named("a%0d%0aSet-Cookie:%20b=c").as_deref(), Some("a%0D%0ASet-Cookie%3A%20b"));
        assert_eq!(named("a,b=1&caf%C3%A9=2&%ff=3").as_deref(), Some("a%2Cb, caf%C3%A9, %EF%BF%BD"));
        assert_eq!(named("=1&a=1&a=2").as_deref(), Some("a"));
    }

    #[test]
    fn the_header_is_bounded() {
        let header = |character: &str| {
            let names: Vec<String> = (0..20).map(|n| format!("{}{n}=", character.repeat(NAME_MAX - 2))).collect();
            ignored(Method::GET, "/canvases", &names.join("&")).expect("a header")
        };
        let names: Vec<String> = (0..20).map(|n| format!("name{n}=")).collect();
        let short = ignored(Method::GET, "/canvases", &names.join("&")).expect("a header");
        assert_eq!(short.split(", ").count(), NAMES_MAX);
        // A character of one byte, and one of four, which takes twelve in the header.
        assert_eq!(header("a").split(", ").count(), HEADER_MAX / (NAME_MAX + 1));
        assert_eq!(header("%F0%9F%8E%A8").split(", ").count(), 1);
    }
}
