//! Elements and their collections.

use serde_json::{Value, json};

use super::batch::insert;
use super::canvases::listed;
use super::watch::picked;
use crate::args::{Collection, Element, Listing, Search};
use crate::context::{Body, Context};
use crate::failure::Outcome;
use crate::output::{items, rows, text, time};

pub async fn element(context: &Context, element: Element) -> Outcome {
    let answer = match element {
        Element::List { state, search } => return list(context, state.as_deref(), &search).await,
        Element::Versions { element, listing } => return versions(context, &element, &listing).await,
        Element::Show { element } => context.client.get_element(&element).await?.cast(),
        Element::Create { name, kind, sources, guidelines, collections } => {
            let mut body = Body::from_iter([("name".into(), json!(name)), ("type".into(), json!(kind))]);
            body.insert("sourceAssetIds".into(), plain_ids(&sources));
            insert(&mut body, "guidelines", guidelines);
            if !collections.is_empty() {
                body.insert("collectionIds".into(), json!(collections));
            }
            context.client.create_element().json(&body).await?
        }
        Element::Update { element, name, kind, sources, guidelines } => {
            let element = without_version(&element);
            let known = context.client.get_element(element).await?.json();
            let mut content = picked(&known["element"], &["name", "type", "sourceAssetIds", "guidelines"]);
            let given = [
                ("name", name.map(Value::from)),
                ("type", kind.map(Value::from)),
                ("sourceAssetIds", (!sources.is_empty()).then(|| plain_ids(&sources))),
                ("guidelines", guidelines.map(Value::from)),
            ];
            for (member, value) in given {
                if let Some(value) = value {
                    content[member] = value;
                }
            }
            context.client.update_element(element).json(&json!({"operation": "update", "element": content})).await?
        }
        Element::Archive { element } => {
            let body = json!({"operation": "archive", "confirm": true});
            context.client.update_element(without_version(&element)).json(&body).await?
        }
        Element::Restore { element } => {
            context.client.update_element(without_version(&element)).json(&json!({"operation": "restore"})).await?
        }
    };
    context.output.answer(&answer, shown);
    Ok(())
}

async fn list(context: &Context, state: Option<&str>, search: &Search) -> Outcome {
    let list = || context.client.list_elements().query_if("state", state).query_if("search", search.search.as_deref());
    let people = |elements: &[Value]| {
        rows(&["element", "type", "state", "health", "name"], elements, |it| {
            ["versionHandle", "type", "lifecycle"]
                .map(|key| text(&it[key]))
                .into_iter()
                .chain([text(&it["sourceHealth"]["status"]), text(&it["name"])])
                .collect()
        })
    };
    listed(context, &search.listing, "elements", list, people).await
}

async fn versions(context: &Context, element: &str, listing: &Listing) -> Outcome {
    let list = || context.client.list_element_versions(without_version(element));
    let people = |versions: &[Value]| {
        rows(&["version", "made", "name"], versions, |it| {
            vec![text(&it["versionHandle"]), time(&it["createdAt"]), text(&it["elementName"])]
        })
    };
    listed(context, listing, "versions", list, people).await
}

/// An Element, or one of its versions, for people.
fn shown(answer: &Value) -> String {
    let (it, [name, kind]) = match answer["element"].is_object() {
        true => (&answer["element"], ["name", "type"]),
        false => (&answer["version"], ["elementName", "elementType"]),
    };
    let sources: Vec<String> = items(&it["sourceAssetIds"]).map(text).collect();
    let head = [text(&it["versionHandle"]), text(&it[kind]), text(&it["lifecycle"]), text(&it[name])];
    let head: Vec<String> = head.into_iter().filter(|part| !part.is_empty()).collect();
    format!("{}\n  pictures: {}\n  {}", head.join(" "), sources.join(", "), text(&it["guidelines"]))
        .trim_end()
        .to_owned()
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
            let people = |collections: &[Value]| {
                rows(&["collection", "name"], collections, |it| vec![text(&it["id"]), text(&it["name"])])
            };
            return listed(context, &listing, "collections", || context.client.list_element_collections(), people)
                .await;
        }
        Collection::Create { name } => context.client.create_element_collection().json(&json!({"name": name})).await?,
        Collection::Rename { collection, name } => {
            context.client.rename_element_collection(&collection).json(&json!({"name": name})).await?
        }
        Collection::Delete { collection } => {
            context.client.delete_element_collection(&collection).json(&json!({"confirm": true})).await?.cast()
        }
    };
    context.output.answer(&answer, |it| {
        let it = if it["collection"].is_object() { &it["collection"] } else { it };
        [text(&it["id"]), text(&it["name"])].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
    });
    Ok(())
}
