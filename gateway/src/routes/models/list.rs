//! `GET /models` (docs/reference/models.md#list-models).

use axum::extract::{OriginalUri, State};
use domain::limits::PAGE_MAX;
use domain::model::{Capability, Model, ModelList, ModelPage, ModelSummaries, ProviderKind};
use domain::page::CatalogEntry;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::extract::caller::{Caller, Generate};
use crate::extract::page::{ListScope, Paged, page, page_request};
use crate::extract::query::{ListView, QueryReader};
use crate::models::{ModelPosition, Runnable};
use crate::openapi::errors::ScopeErrors;
use crate::problem::Result;
use crate::reply;
use crate::state::App;

/// Which models are listed.
#[derive(Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ModelFilter {
    /// Text that occurs in id, name, provider or connection. Case-insensitive.
    #[serde(default)]
    #[param(max_length = 240)]
    q: String,
    /// Only models of this provider.
    provider: Option<ProviderKind>,
    /// Only models with this capability.
    capability: Option<Capability>,
}

/// List runnable models
///
/// Returns one page of the models that the caller's scopes and connections can run, saved connections first. Use
/// `capability` to find a model for a task; `creditCost` is the price of one output. Text models are never listed.
#[utoipa::path(
    get, path = "/models", operation_id = "listModels", tag = "Models and providers",
    security(("bearer" = ["image:generate"]), ("bearer" = ["video:generate"])),
    params(ModelFilter, ListView, Paged),
    responses(ScopeErrors, (status = 200, description = "One page of models.", body = ModelPage))
)]
pub async fn list(State(app): State<App>, caller: Caller<Generate>, OriginalUri(uri): OriginalUri) -> Result {
    let mut query = QueryReader::new(&uri);
    let ModelFilter { q, provider, capability } = query.read().unwrap_or_default();
    let text = q.to_lowercase();
    let ListView { view } = query.read().unwrap_or_default();
    let filters = [&*text, provider.map_or("", ProviderKind::as_str), capability.map_or("", Capability::as_str)];
    let scope = ListScope::new("models", &caller.account, &filters);
    let request = page_request::<ModelPosition, PAGE_MAX>(&app, &mut query, &scope);
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
    let models = found.iter().filter_map(Runnable::document);
    Ok(reply::ok(&match view.is_some() {
        true => ModelPage::Summary(ModelSummaries { models: models.map(entry).collect(), page }),
        false => ModelPage::Full(ModelList { models: models.collect(), page }),
    }))
}

/// A model in short: what decides which one to use.
fn entry(model: Model) -> CatalogEntry {
    let capabilities: Vec<String> = model.capabilities.iter().map(ToString::to_string).collect();
    let (capabilities, provider) = (capabilities.join(", "), &model.provider_label);
    let unit = if model.credit_cost == 1 { "credit" } else { "credits" };
    let line = format!("{provider}: {capabilities}; {} {unit}, {} s", model.credit_cost, model.estimated_seconds);
    CatalogEntry::new(model.handle, &model.name, &line)
}

/// Returns `true` if the text, in lower case, occurs in the names of the model.
fn mentions(model: &Runnable, text: &str) -> bool {
    let entry = &model.entry;
    let connection = model.connection.as_ref().map_or("", |connection| &connection.name);
    [&*entry.id, &*entry.name, entry.provider.as_str(), entry.provider.label(), connection]
        .iter()
        .any(|field| field.to_lowercase().contains(text))
}
