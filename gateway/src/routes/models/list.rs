//! `GET /models` (docs/reference/models.md#list-models).

use axum::extract::{OriginalUri, State};
use domain::limits::{MODEL_QUERY_MAX, PAGE_DEFAULT, PAGE_MAX};
use domain::model::{Capability, Model, ProviderKind};
use serde::Serialize;
use utoipa::ToSchema;

use crate::extract::caller::{Caller, Generate};
use crate::extract::page::{ListScope, Page, page, page_request};
use crate::extract::query::QueryReader;
use crate::models::{ModelPosition, Runnable};
use crate::problem::Result;
use crate::reply;
use crate::state::App;

/// A page of models: saved connections, oldest first, then the managed runtime, each in catalog order.
#[derive(Serialize, ToSchema)]
pub struct ModelList {
    /// Models that the caller's scopes allow; text models are not listed.
    models: Vec<Model>,
    /// Position in the list.
    page: Page,
}

/// List runnable models
///
/// Returns one page of the models that the caller's scopes and connections can run, saved connections first. Use
/// `capability` to find a model for a task; `creditCost` is the price of one output. Text models are never listed.
#[utoipa::path(
    get, path = "/models", operation_id = "listModels", tag = "Models and providers",
    security(("bearer" = ["image:generate"]), ("bearer" = ["video:generate"])),
    params(
        ("q" = Option<String>, Query, max_length = 240, description = "Text that occurs in id, name, provider or connection. Case-insensitive."),
        ("provider" = Option<ProviderKind>, Query, description = "Only models of this provider."),
        ("capability" = Option<Capability>, Query, description = "Only models with this capability."),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 100, description = "Items in a page. Default: 50."),
        ("cursor" = Option<String>, Query, max_length = 8192, description = "`nextCursor` of the previous page."),
    ),
    responses((status = 200, description = "One page of models.", body = ModelList))
)]
pub async fn list(State(app): State<App>, caller: Caller<Generate>, OriginalUri(uri): OriginalUri) -> Result {
    let mut query = QueryReader::new(&uri);
    let text = query.text("q", MODEL_QUERY_MAX).unwrap_or_default().to_lowercase();
    let provider = query.named("provider", ProviderKind::ALL);
    let capability = query.named("capability", Capability::ALL);
    let filters = [&*text, provider.map_or("", ProviderKind::as_str), capability.map_or("", Capability::as_str)];
    let scope = ListScope::new("models", &caller.account, &filters);
    let request = page_request::<ModelPosition>(&app, &mut query, &scope, PAGE_DEFAULT, PAGE_MAX);
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

/// Whether the text, in lower case, occurs in the names of the model.
fn mentions(model: &Runnable, text: &str) -> bool {
    let entry = &model.entry;
    let connection = model.connection.as_ref().map_or("", |connection| &connection.name);
    [&*entry.id, &*entry.name, entry.provider.as_str(), entry.provider.label(), connection]
        .iter()
        .any(|field| field.to_lowercase().contains(text))
}
