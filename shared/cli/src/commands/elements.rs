//! Elements and their collections.

use client::answers::{ElementOrVersion, ElementRead};
use domain::element::{ElementCollection, ElementVersion, VersionRead};
use serde_json::{Value, json};

use super::batch::insert;
use super::canvases::listed;
use crate::args::{Collection, Element, Listing, Search};
use crate::context::{Body, Context};
use crate::failure::Outcome;
use crate::output::{joined, optional, text, time};

pub async fn element(context: &Context, element: Element) -> Outcome {
    let answer = match element {
        Element::List { state, search } => return list(context, state.as_deref(), &search).await,
        Element::Versions { element, listing } => return versions(context, &element, &listing).await,
        Element::Show { element } => context.client.get_element(&element).await?,
        Element::Create { name, kind, sources, guidelines, collections } => {
            let mut body = Body::from_iter([("name".into(), json!(name)), ("type".into(), json!(kind))]);
            body.insert("sourceAssetIds".into(), plain_ids(&sources));
            insert(&mut body, "guidelines", guidelines);
            if !collections.is_empty() {
                body.insert("collectionIds".into(), json!(collections));
            }
            context.client.create_element().json(&body).await?.cast()
        }
        Element::Update { element, name, kind, sources, guidelines } => {
            let element = without_version(&element);
            let known = context.client.get_element(element).await?.cast::<ElementRead>().value()?.element;
            let sources = match sources.is_empty() {
                true => json!(known.source_asset_ids),
                false => plain_ids(&sources),
            };
            let kind = kind.unwrap_or_else(|| known.kind.to_string());
            let mut content = Body::from_iter([("name".into(), json!(name.unwrap_or(known.name)))]);
            content.extend([("type".into(), json!(kind)), ("sourceAssetIds".into(), sources)]);
            insert(&mut content, "guidelines", guidelines.or(known.guidelines));
            let body = json!({"operation": "update", "element": content});
            context.client.update_element(element).json(&body).await?.cast()
        }
        Element::Archive { element } => {
            let body = json!({"operation": "archive", "confirm": true});
            context.client.update_element(without_version(&element)).json(&body).await?.cast()
        }
        Element::Restore { element } => {
            let body = json!({"operation": "restore"});
            context.client.update_element(without_version(&element)).json(&body).await?.cast()
        }
    };
    context.output.answer(&answer, shown);
    Ok(())
}

async fn list(context: &Context, state: Option<&str>, search: &Search) -> Outcome {
    let list = || context.client.list_elements().query_if("state", state).query_if("search", search.search.as_deref());
    let row = |it: domain::element::Element| {
        let health = text(it.source_health.status);
        vec![text(it.version_handle), text(it.kind), text(it.lifecycle), health, text(it.name)]
    };
    listed(context, &search.listing, list, &["element", "type", "state", "health", "name"], row).await
}

async fn versions(context: &Context, element: &str, listing: &Listing) -> Outcome {
    let list = || context.client.list_element_versions(without_version(element));
    let row = |it: ElementVersion| vec![text(it.version_handle), time(it.created_at), text(it.element_name)];
    listed(context, listing, list, &["version", "made", "name"], row).await
}

/// An Element, or one of its versions, for people.
fn shown(answer: ElementOrVersion) -> String {
    let (head, sources, guidelines) = match answer {
        ElementOrVersion::Element(ElementRead { element: it }) => {
            let head = vec![text(it.version_handle), text(it.kind), text(it.lifecycle), text(it.name)];
            (head, it.source_asset_ids, it.guidelines)
        }
        ElementOrVersion::Version(VersionRead { version: it }) => {
            let head = vec![text(it.version_handle), text(it.element_type), text(it.element_name)];
            (head, it.source_asset_ids, it.guidelines)
        }
    };
    let shown = format!("{}\n  images: {}\n  {}", head.join(" "), joined(sources, ", "), optional(guidelines));
    shown.trim_end().to_owned()
}

/// The handle of an Element without the version that it may name: only a read of one takes it.
fn without_version(element: &str) -> &str {
    element.split('@').next().unwrap_or(element)
}

/// The plain ids of assets: Elements name their sources by them.
fn plain_ids(assets: &[String]) -> Value {
    assets.iter().map(|asset| asset.rsplit(':').next()).collect()
}

pub async fn collection(context: &Context, collection: Collection) -> Outcome {
    let answer = match collection {
        Collection::List(listing) => {
            let row = |it: ElementCollection| vec![text(it.id), text(it.name)];
            let list = || context.client.list_element_collections();
            return listed(context, &listing, list, &["collection", "name"], row).await;
        }
        Collection::Create { name } => context.client.create_element_collection().json(&json!({"name": name})).await?,
        Collection::Rename { collection, name } => {
            context.client.rename_element_collection(&collection).json(&json!({"name": name})).await?
        }
        // Its answer has the collection, too.
        Collection::Delete { collection } => {
            context.client.delete_element_collection(&collection).json(&json!({"confirm": true})).await?.cast()
        }
    };
    context.output.answer(&answer, |it| format!("{} {}", it.collection.id, text(it.collection.name)));
    Ok(())
}
