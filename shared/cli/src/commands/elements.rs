//! Elements and their collections.

use serde_json::{Value, json};

use super::batch::insert;
use super::canvases::listed;
use super::watch::picked;
use crate::args::{Collection, Element};
use crate::context::{Body, Context};
use crate::failure::Outcome;
use crate::output::{items, rows, text, time};

pub async fn element(context: &Context, element: Element) -> Outcome {
    let answer = match element {
        Element::List { state, search } => {
            let list = || {
                context
                    .client
                    .list_elements()
                    .query_if("state", state.as_deref())
                    .query_if("search", search.search.as_deref())
            };
            let people = |elements: &[Value]| {
                rows(&["element", "type", "state", "health", "name"], elements, |it| {
                    ["versionHandle", "type", "lifecycle"]
                        .map(|key| text(&it[key]))
                        .into_iter()
                        .chain([text(&it["sourceHealth"]["status"]), text(&it["name"])])
                        .collect()
                })
            };
            return listed(context, &search.listing, "elements", list, people).await;
        }
        Element::Versions { element, listing } => {
            let people = |versions: &[Value]| {
                rows(&["version", "made", "name"], versions, |it| {
                    vec![text(&it["versionHandle"]), time(&it["createdAt"]), text(&it["elementName"])]
                })
            };
            let list = || context.client.list_element_versions(without_version(&element));
            return listed(context, &listing, "versions", list, people).await;
        }
        Element::Show { element } => context.client.get_element(&element).await?.cast(),
        Element::Create { name, kind, sources, guidelines, collections } => {
            let mut body = Body::from_iter([("name".into(), json!(name)), ("type".into(), json!(kind))]);
            body.insert("sourceAssetIds".into(), sources.iter().map(|source| plain_id(source)).collect());
            insert(&mut body, "guidelines", guidelines);
            if !collections.is_empty() {
                body.insert("collectionIds".into(), json!(collections));
            }
            context.client.create_element().json(&body).await?
        }
        Element::Update { element, name, kind, sources, guidelines } => {
            let element = without_version(&element);
            let known = context.client.get_element(element).await?.json();
            let members = ["name", "type", "sourceAssetIds", "guidelines"];
            let mut content = picked(&known["element"], &members);
            let given = [
                ("name", name.map(Value::from)),
                ("type", kind.map(Value::from)),
                (
                    "sourceAssetIds",
                    (!sources.is_empty()).then(|| sources.iter().map(|source| plain_id(source)).collect()),
                ),
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
    context.output.answer(&answer, |it| {
        let (it, [name, kind]) = match it["element"].is_object() {
            true => (&it["element"], ["name", "type"]),
            false => (&it["version"], ["elementName", "elementType"]),
        };
        let sources: Vec<String> = items(&it["sourceAssetIds"]).map(text).collect();
        let state = text(&it["lifecycle"]);
        let head = [text(&it["versionHandle"]), text(&it[kind]), state, text(&it[name])];
        let head: Vec<String> = head.into_iter().filter(|part| !part.is_empty()).collect();
        format!("{}\n  pictures: {}\n  {}", head.join(" "), sources.join(", "), text(&it["guidelines"]))
            .trim_end()
            .to_owned()
    });
    Ok(())
}

/// The handle of an Element without the version that it may name: only a read of one takes it.
fn without_version(element: &str) -> &str {
    element.split('@').next().unwrap_or(element)
}

/// The plain id of an asset: Elements name their sources by it.
fn plain_id(asset: &str) -> Value {
    json!(asset.rsplit(':').next().unwrap_or(asset))
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
