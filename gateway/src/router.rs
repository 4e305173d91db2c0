//! Every route, once: declaring a route documents it.

use std::sync::Arc;
use std::task::{Context, Poll};

use axum::extract::{DefaultBodyLimit, Request};
use axum::{Router, middleware};
use domain::API_ROOT;
use futures_util::future::Either;
use http::{HeaderName, HeaderValue, Method};
use serde_json::Value;
use tower::{Layer, Service, ServiceBuilder};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::cors::{AllowOrigin, Cors, CorsLayer};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::compression::Streamed;
use crate::console::admin::AdminDocument;
use crate::console::{self, ConsoleDocument};
use crate::discovery;
use crate::docs;
use crate::ignored::KnownParameters;
use crate::links;
use crate::mcp;
use crate::oauth;
use crate::openapi;
use crate::problem;
use crate::routes::{
    actions, assets, auth, campaigns, canvases, deliveries, element_collections, elements, events, images, imports,
    jobs, models, providers, recipes, runs, status, videos,
};
use crate::state::App;

/// The routes and their document.
pub fn documented() -> (Router<App>, Value) {
    let api = OpenApiRouter::new()
        .routes(routes!(auth::status::status))
        .routes(routes!(status::status))
        .routes(routes!(canvases::list::list, canvases::create::create))
        .routes(routes!(canvases::read::read))
        .routes(routes!(canvases::node::node))
        .routes(routes!(canvases::render::render))
        .routes(routes!(canvases::operations::operations))
        .routes(routes!(canvases::set_aside::set_aside))
        .routes(routes!(canvases::set_aside::read))
        .routes(routes!(canvases::review::review))
        .routes(routes!(canvases::changes::changes))
        .routes(routes!(canvases::outline::outline))
        .routes(routes!(canvases::workflows::workflows))
        .routes(routes!(recipes::list::list))
        .routes(routes!(recipes::read::read))
        .routes(routes!(recipes::fork::fork))
        .routes(routes!(recipes::run::run))
        .routes(routes!(assets::list::list, assets::upload::upload))
        .routes(routes!(assets::downloads::create))
        .routes(routes!(assets::uploads::create))
        .routes(routes!(assets::preview::preview))
        .routes(routes!(assets::preview::video))
        .routes(routes!(assets::read::read))
        .routes(routes!(assets::lineage::lineage))
        .routes(routes!(assets::content::content))
        .routes(routes!(imports::product::import))
        .routes(routes!(imports::image::import))
        .routes(routes!(actions::list::list))
        .routes(routes!(actions::read::read))
        .routes(routes!(actions::run::run))
        .routes(routes!(actions::chain::run))
        .routes(routes!(images::generate::generate))
        .routes(routes!(images::edit::edit))
        .routes(routes!(images::variations::variations))
        .routes(routes!(elements::list::list, elements::create::create))
        .routes(routes!(elements::read::read, elements::update::update))
        .routes(routes!(elements::versions::versions))
        .routes(routes!(element_collections::list::list, element_collections::create::create))
        .routes(routes!(element_collections::rename::rename, element_collections::delete::delete))
        .routes(routes!(models::list::list))
        .routes(routes!(models::read::read))
        .routes(routes!(providers::list))
        .routes(routes!(runs::list::list))
        .routes(routes!(runs::read::read, runs::cancel::cancel))
        .routes(routes!(runs::events::events))
        .routes(routes!(deliveries::list))
        .routes(routes!(deliveries::replay_failed))
        .routes(routes!(deliveries::replay))
        .routes(routes!(events::events))
        .routes(routes!(jobs::read::read, jobs::cancel::cancel))
        .routes(routes!(jobs::output::output))
        .routes(routes!(jobs::keep::keep))
        .routes(routes!(videos::generate::generate))
        .merge(campaigns::router())
        .routes(routes!(openapi::serve))
        .routes(routes!(openapi::digest::serve));
    let (router, document) =
        OpenApiRouter::with_openapi(openapi::base()).nest(API_ROOT, api).routes(routes!(docs::page)).split_for_parts();
    (router.merge(docs::scripts()), openapi::complete(document))
}

/// The service: routes, and what surrounds each of them.
pub fn router(app: App) -> Router {
    let (router, document) = documented();
    let (console, console_document) = console::documented();
    let (admin, admin_document) = console::admin::documented();
    let cors = cors(&app.config.cors_origins);
    let known = Arc::new(KnownParameters::from_documents([&document, &console_document, &admin_document]));
    // One stack, outermost first. A layer that is added to a router by itself costs an allocation per request.
    let around = ServiceBuilder::new()
        .layer(middleware::map_request(crate::observe::always_servable))
        .layer(CompressionLayer::new().compress_when(Streamed))
        .layer(middleware::from_fn_with_state((known, app.clone()), crate::observe::observe))
        .option_layer(cors)
        .layer(middleware::from_fn(crate::observe::acceptable))
        .layer(middleware::from_fn_with_state(app.clone(), oauth::challenge::complete))
        .layer(CatchPanicLayer::custom(crate::observe::panicked))
        .layer(axum::Extension(ConsoleDocument(console_document.to_string().into())))
        .layer(axum::Extension(AdminDocument(admin_document.to_string().into())))
        .layer(axum::Extension(openapi::digest::Served::from_document(&document, &app.config.public_url)))
        .layer(axum::Extension(openapi::Document::new(document, &app.config.public_url)))
        // Each route reads its body under a limit of its own.
        .layer(DefaultBodyLimit::disable());
    let complete = |router: Router<App>| {
        router
            .fallback(console::unknown)
            .method_not_allowed_fallback(problem::unknown_method)
            .layer(around.clone())
            .with_state(app.clone())
    };
    // The tools call the contract as everybody does, through all that surrounds its routes.
    let tools = mcp::router(complete(router.clone()), &app);
    let found = discovery::router(&app.config.public_url);
    let others = console.merge(admin).merge(tools).merge(links::router()).merge(found).merge(docs::guides::router());
    let others = others.merge(oauth::router(&app));
    let router = complete(router.merge(others));
    // Routes are matched after the path of a request to the console is mapped.
    Router::new().fallback_service(ServiceBuilder::new().map_request(console::enter).service(router))
}

/// CORS for all but the console, whose credential a browser sends by itself, and capability links, whose URL is the credential: there a
/// preflight is a request with an unknown method. The routes of OAuth clients have their own.
#[derive(Clone)]
struct CorsWithBearer<T>(T);

impl<S> Layer<S> for CorsWithBearer<CorsLayer> {
    type Service = CorsWithBearer<Cors<S>>;

    fn layer(&self, inner: S) -> Self::Service {
        CorsWithBearer(self.0.layer(inner))
    }
}

impl<S, B> Service<Request> for CorsWithBearer<Cors<S>>
where
    S: Service<Request, Response = http::Response<B>>,
    B: Default,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Either<S::Future, <Cors<S> as Service<Request>>::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        Service::<Request>::poll_ready(&mut self.0, context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let (parts, body) = request.into_parts();
        let takes_bearer = !console::contains(&parts) && !links::contains(parts.uri.path()) && !oauth::contains(&parts);
        let request = Request::from_parts(parts, body);
        match takes_bearer {
            false => Either::Left(self.0.get_mut().call(request)),
            true => Either::Right(self.0.call(request)),
        }
    }
}

/// CORS for the origins that the operator names; there are none by default.
fn cors(origins: &[String]) -> Option<CorsWithBearer<CorsLayer>> {
    if origins.is_empty() {
        return None;
    }
    let admitted: Vec<HeaderValue> = origins.iter().filter_map(|origin| origin.parse().ok()).collect();
    let names = |names: &[&'static str]| names.iter().map(|name| HeaderName::from_static(name)).collect::<Vec<_>>();
    let layer = CorsLayer::new()
        .allow_origin(AllowOrigin::predicate(move |origin, _| admitted.contains(origin)))
        .allow_methods([Method::GET, Method::POST, Method::PATCH, Method::DELETE])
        .allow_headers(names(&[
            "authorization",
            "content-type",
            "if-none-match",
            "idempotency-key",
            "mcp-method",
            "mcp-name",
            "mcp-protocol-version",
            "prefer",
            "range",
            "traceparent",
            "x-request-id",
            "x-service-agent-surface",
            "x-service-file-name",
            "x-canvas-file-name",
        ]))
        .expose_headers(names(&[
            "etag",
            "location",
            "retry-after",
            "x-request-id",
            "ratelimit-limit",
            "ratelimit-remaining",
            "ratelimit-reset",
            "x-canvas-ignored",
            "x-canvas-labels",
            "x-next-cursor",
            "www-authenticate",
        ]))
        .max_age(std::time::Duration::from_secs(3600));
    Some(CorsWithBearer(layer))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `UPDATE_OPENAPI=1 cargo test -p canvas-gateway` rewrites the snapshot.
    #[test]
    fn the_committed_contract_document_is_what_the_routes_say() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");
        let document = openapi::committed(&documented().1);
        if std::env::var_os("UPDATE_OPENAPI").is_some() {
            std::fs::write(path, &document).expect("the snapshot can be written");
        }
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        assert!(committed == document, "gateway/openapi.json is stale: UPDATE_OPENAPI=1 cargo test -p canvas-gateway");
    }

    /// People and language models read the document as a whole. State what every operation shares once, in `info.description` or in a
    /// component, before raising the limit.
    #[test]
    fn the_committed_contract_document_is_short() {
        const BYTES_MAX: usize = 524_000;
        let size = openapi::committed(&documented().1).len();
        assert!(size <= BYTES_MAX, "gateway/openapi.json has {size} bytes, more than {BYTES_MAX}");
    }

    /// Requests are validated by these very schemas, which are compiled at their first use.
    #[test]
    fn the_schema_of_every_body_compiles() {
        let document = documented().1;
        let mut compiled = 0;
        for (path, item) in document["paths"].as_object().expect("paths") {
            for (method, operation) in item.as_object().expect("an item") {
                let Some(schema) = operation.pointer("/requestBody/content/application~1json/schema") else { continue };
                let mut schema = schema.clone();
                schema["components"] = document["components"].clone();
                if let Err(error) = jsonschema::draft202012::new(&schema) {
                    panic!("{method} {path}: {error}");
                }
                compiled += 1;
            }
        }
        assert!(compiled >= 8, "{compiled} bodies of JSON");
    }

    #[test]
    fn every_operation_is_named_once_and_says_how_it_fails() {
        let document = documented().1;
        assert_eq!((&document["openapi"], &document["info"]["version"]), (&"3.1.0".into(), &"1.0.0".into()));
        let mut names = std::collections::HashSet::new();
        for (path, item) in document["paths"].as_object().expect("paths") {
            for (method, operation) in item.as_object().expect("an item") {
                assert!(names.insert(operation["operationId"].to_string()), "{method} {path}: its name is used twice");
                assert!(operation["summary"].is_string(), "{method} {path}");
                assert!(operation["description"].is_string(), "{method} {path}");
                let responses = operation["responses"].as_object().expect("responses");
                assert_eq!(responses["500"]["$ref"], "#/components/responses/InternalServerError", "{method} {path}");
                let security = operation.get("security").map(Value::to_string).unwrap_or_default();
                assert!(security == "[]" || responses.contains_key("401"), "{method} {path} takes a credential");
                assert!(!security.contains(':') || responses.contains_key("403"), "{method} {path} needs scopes");
                assert!(!path.contains('{') || responses.contains_key("404"), "{method} {path} names something");
                for (status, response) in responses {
                    let is_described = response["$ref"].is_string() || response["description"].is_string();
                    assert!(is_described, "{method} {path}: {status}");
                }
            }
        }
    }
}
