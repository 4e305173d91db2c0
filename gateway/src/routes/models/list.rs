//! `GET /models` (decisions 12.3).

use axum::extract::{OriginalUri, State};
use domain::limits::{MODEL_QUERY_MAX, PAGE_DEFAULT, PAGE_MAX};
use domain::model::{Capability, Model, ProviderKind};
use serde::Serialize;
use utoipa::ToSchema;

use crate::extract::caller::{Caller, Generate};
use crate::extract::page::{ListScope, Page, page, page_request};
use crate::extract::query::QueryReader;
use crate::models::{Place, Runnable};
use crate::problem::Result;
use crate::reply;
use crate::state::App;

/// A page of models: saved connections, the oldest first, then the managed runtime, each in catalogue order.
#[derive(Serialize, ToSchema)]
pub struct ModelList {
    /// Those that the caller's scopes let it run; text models are not among them.
    models: Vec<Model>,
    /// Where the list stands.
    page: Page,
}

/// List models that can be run
#[utoipa::path(
    get, path = "/models", operation_id = "listModels", tag = "Models and providers",
    security(("bearer" = ["image:generate"]), ("bearer" = ["video:generate"])),
    params(
        ("q" = Option<String>, Query, max_length = 240, description = "Found in id, name, provider or connection, whatever its case."),
        ("provider" = Option<ProviderKind>, Query, description = "Models of this provider alone."),
        ("capability" = Option<Capability>, Query, description = "Models that can be asked for this alone."),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 100, description = "Most items; 50 when left out."),
        ("cursor" = Option<String>, Query, max_length = 8192, description = "`nextCursor` of the page before."),
    ),
    responses((status = 200, body = ModelList))
)]
pub async fn list(State(app): State<App>, caller: Caller<Generate>, OriginalUri(uri): OriginalUri) -> Result {
    let mut query = QueryReader::new(&uri);
    let text = query.text("q", MODEL_QUERY_MAX).unwrap_or_default().to_lowercase();
    let provider = named::<ProviderKind>(&mut query, "provider", ProviderKind::ALL);
    let capability = named::<Capability>(&mut query, "capability", Capability::ALL);
    let filters = [&*text, provider.map_or("", ProviderKind::as_str), capability.map_or("", Capability::as_str)];
    let scope = ListScope::new("models", &caller.account, &filters);
    let request = page_request::<Place>(&app, &mut query, &scope, PAGE_DEFAULT, PAGE_MAX);
    query.finish()?;
    let all = app.runnable(&mut *app.connection().await?, &caller.account).await?;
    let wanted = |model: &Runnable| {
        request.after.as_ref().is_none_or(|after| model.place > *after)
            && model.is_for(caller.scopes)
            && provider.is_none_or(|provider| model.entry.provider == provider)
            && capability.is_none_or(|capability| model.entry.capabilities.contains(&capability))
            && mentions(model, &text)
    };
    let mut found: Vec<Runnable> = all.into_iter().filter(wanted).collect();
    let page = page(&app, &scope, request.limit, &mut found, |model| model.place.clone());
    Ok(reply::ok(&ModelList { models: found.iter().filter_map(Runnable::document).collect(), page }))
}

/// A parameter that is one of a few names.
fn named<T: std::str::FromStr + std::fmt::Display>(query: &mut QueryReader<'_>, name: &str, all: &[T]) -> Option<T> {
    let text = query.text(name, 80)?;
    let value = text.parse().ok();
    if value.is_none() {
        let names: Vec<String> = all.iter().map(ToString::to_string).collect();
        query.refuse(name, format!("must be one of {}", names.join(", ")));
    }
    value
}

/// Whether the text, in lower case, is found in what people know a model by.
fn mentions(model: &Runnable, text: &str) -> bool {
    let entry = &model.entry;
    let connection = model.connection.as_ref().map_or("", |connection| &connection.name);
    [&*entry.id, &*entry.name, entry.provider.as_str(), entry.provider.label(), connection]
        .iter()
        .any(|field| field.to_lowercase().contains(text))
}
