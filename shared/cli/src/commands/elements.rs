//! Elements and their collections.

use client::answers::{CollectionRead, ElementOrVersion, ElementRead};
use domain::element::{ElementCollection, ElementVersion, VersionRead};
use serde_json::{Value, json};

use super::batch::insert;
use super::canvases::listed;
use super::pictures::pictures;
use crate::args::{Collection, Element, Listing, Search};
use crate::context::{Body, Context};
use crate::failure::Outcome;
use crate::output::{joined, optional, text, time};

pub async fn element(context: &Context, element: Element) -> Outcome {
    let answer = match element {
        Element::List { state, search } => return list(context, state.as_deref(), &search).await,
        Element::Versions { element, listing } => return versions(context, &element, &listing).await,
        Element::Show { element } => context.client.get_element(&context.element(&element).await?).await?,
        Element::Create { name, kind, sources, guidelines, collections } => {
            let mut body = Body::from_iter([("name".into(), json!(name)), ("type".into(), json!(kind))]);
            body.insert("sourceAssetIds".into(), source_ids(context, &sources).await?);
            insert(&mut body, "guidelines", guidelines);
            if !collections.is_empty() {
                let mut ids = Vec::new();
                for collection in &collections {
                    ids.push(context.collection(collection).await?);
                }
                body.insert("collectionIds".into(), json!(ids));
            }
            context.client.create_element().json(&body).await?.cast()
        }
        Element::Update { element, name, kind, sources, guidelines } => {
            let element = newest(context, &element).await?;
            let known = context.client.get_element(&element).await?.cast::<ElementRead>().value()?.element;
            let sources = match sources.is_empty() {
                true => json!(known.source_asset_ids),
                false => source_ids(context, &sources).await?,
            };
            let kind = kind.unwrap_or_else(|| known.kind.to_string());
            let mut content = Body::from_iter([("name".into(), json!(name.unwrap_or(known.name)))]);
            content.extend([("type".into(), json!(kind)), ("sourceAssetIds".into(), sources)]);
            insert(&mut content, "guidelines", guidelines.or(known.guidelines));
            let body = json!({"operation": "update", "element": content});
            context.client.update_element(&element).json(&body).await?.cast()
        }
        Element::Archive { element } => {
            let body = json!({"operation": "archive", "confirm": true});
            context.client.update_element(&newest(context, &element).await?).json(&body).await?.cast()
        }
        Element::Restore { element } => {
            let body = json!({"operation": "restore"});
            context.client.update_element(&newest(context, &element).await?).json(&body).await?.cast()
        }
    };
    context.output.made(&answer, |it| vec![handle(it)], shown);
    Ok(())
}

async fn list(context: &Context, state: Option<&str>, search: &Search) -> Outcome {
    let list = || context.client.list_elements().query_if("state", state).query_if("search", search.search.as_deref());
    let row = |it: domain::element::Element| {
        let health = text(it.source_health.status);
        vec![text(it.name), text(it.version_handle), text(it.kind), text(it.lifecycle), health]
    };
    listed(context, &search.listing, list, &["name", "element", "type", "state", "health"], row).await
}

async fn versions(context: &Context, element: &str, listing: &Listing) -> Outcome {
    let element = newest(context, element).await?;
    let list = || context.client.list_element_versions(&element);
    let row = |it: ElementVersion| vec![text(it.element_name), text(it.version_handle), time(it.created_at)];
    listed(context, listing, list, &["name", "version", "made"], row).await
}

/// The handle of an Element's newest version, or of the version that was read.
fn handle(answer: &ElementOrVersion) -> String {
    match answer {
        ElementOrVersion::Element(it) => text(&it.element.version_handle),
        ElementOrVersion::Version(it) => text(&it.version.version_handle),
    }
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

/// An Element without the version that its name may have: only a read of one takes it.
async fn newest(context: &Context, name: &str) -> Outcome<String> {
    let element = context.element(name).await?;
    Ok(element.split('@').next().unwrap_or_default().to_owned())
}

/// The plain ids of the assets that are an Element's sources.
async fn source_ids(context: &Context, sources: &[String]) -> Outcome<Value> {
    let on = context.on_if_any(None).await?;
    let mut ids = Vec::new();
    for picture in pictures(context, on.as_deref(), sources).await? {
        let asset = context.asset_of(on.as_deref(), &picture).await?;
        ids.push(json!(asset.rsplit(':').next()));
    }
    Ok(ids.into())
}

pub async fn collection(context: &Context, collection: Collection) -> Outcome {
    let answer = match collection {
        Collection::List(listing) => {
            let row = |it: ElementCollection| vec![text(it.name), text(it.id)];
            let list = || context.client.list_element_collections();
            return listed(context, &listing, list, &["name", "collection"], row).await;
        }
        Collection::Create { name } => context.client.create_element_collection().json(&json!({"name": name})).await?,
        Collection::Rename { collection, name } => {
            context
                .client
                .rename_element_collection(&context.collection(&collection).await?)
                .json(&json!({"name": name}))
                .await?
        }
        // Its answer has the collection, too.
        Collection::Delete { collection } => {
            let collection = context.collection(&collection).await?;
            context.client.delete_element_collection(&collection).json(&json!({"confirm": true})).await?.cast()
        }
    };
    let id = |it: &CollectionRead| vec![text(&it.collection.id)];
    context.output.made(&answer, id, |it| format!("{} {}", it.collection.id, text(it.collection.name)));
    Ok(())
}
