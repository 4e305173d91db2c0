//! Actions, models and Recipes: what can be run, and running it.

use client::{Answer, Client};
use serde_json::{Value, json};

use super::batch::insert;
use super::canvases::listed;
use super::starts::place;
use super::work::{Order, start};
use crate::args::{Action, Model, Position, Recipe, Search};
use crate::context::{Body, Context, canvas, text_or_stdin};
use crate::failure::{Outcome, usage};
use crate::journal;
use crate::output::{credits, items, rows, text};

pub async fn action(context: &Context, action: Action) -> Outcome {
    match action {
        Action::List(search) => {
            let list = || context.client.list_actions().query_if("q", search.search.as_deref());
            let people = |actions: &[Value]| {
                rows(&["action", "summary"], actions, |it| vec![text(&it["slug"]), text(&it["summary"])])
            };
            listed(context, &search.listing, "actions", list, people).await
        }
        Action::Show { action } => {
            let action = context.client.get_action(&action).await?;
            context.output.answer(&action, |it| {
                let it = &it["action"];
                let inputs = items(&it["inputs"]).map(|input| {
                    vec![text(&input["id"]), "picture".into(), String::new(), text(&input["description"])]
                });
                let parameters = items(&it["parameters"]).map(parameter);
                let head = ["name", "type", "default", "description"].map(str::to_owned).to_vec();
                let all: Vec<_> = [head].into_iter().chain(inputs).chain(parameters).collect();
                format!("{}\n\n{}", text(&it["summary"]), crate::output::table(&all))
            });
            Ok(())
        }
        Action::Run { action, inputs, params, target, position, start: options } => {
            let on = canvas(&options.on)?;
            let known = context.client.get_action(&action).await?.json();
            let mut body = Body::from_iter([("canvasId".into(), json!(on)), ("inputs".into(), json!(inputs))]);
            body.insert("params".into(), parameters(&known["action"], &params)?.into());
            match target {
                Some(target) => _ = body.insert("targetNodeId".into(), json!(target)),
                None => _ = body.insert("place".into(), place(position, None)),
            }
            let route = |client: &Client| client.run_action(&action).cast();
            let order = Order { name: action.clone(), canvas: Some(on), body, route: &route, is_paid: false };
            start(context, order, &options.start).await
        }
    }
}

fn parameter(it: &Value) -> Vec<String> {
    let options: Vec<String> = items(&it["options"]).map(|option| text(&option["value"])).collect();
    let kind = if options.is_empty() { text(&it["type"]) } else { options.join("|") };
    vec![text(&it["id"]), kind, text(&it["default"]), text(&it["description"])]
}

/// The parameters of an Action. A value has the type that the Action declares for it: a number, a truth, or a text.
fn parameters(action: &Value, given: &[String]) -> Outcome<Body> {
    let mut params = Body::new();
    for pair in given {
        let Some((name, value)) = pair.split_once('=') else { return usage(format!("{pair} is not NAME=VALUE")) };
        let declared = items(&action["parameters"]).find(|it| it["id"] == name);
        let is_text = declared.is_some_and(|it| ["text", "color"].contains(&it["type"].as_str().unwrap_or_default()));
        let option = declared
            .into_iter()
            .flat_map(|it| items(&it["options"]))
            .map(|it| &it["value"])
            .find(|it| text(it) == value);
        let read = match option {
            Some(option) => option.clone(),
            None if is_text => json!(value),
            None => serde_json::from_str(value).unwrap_or_else(|_| json!(value)),
        };
        params.insert(name.to_owned(), read);
    }
    Ok(params)
}

pub async fn model(context: &Context, model: Model) -> Outcome {
    match model {
        Model::List(Search { search, listing }) => {
            let list = || context.client.list_models().query_if("q", search.as_deref());
            let people = |models: &[Value]| {
                rows(&["model", "kind", "credits", "provider", "can", "handle"], models, |it| {
                    let can: Vec<String> = items(&it["capabilities"]).map(text).collect();
                    let name = if it["standIn"] == true {
                        format!("{} (stand-in)", text(&it["modelId"]))
                    } else {
                        text(&it["modelId"])
                    };
                    vec![
                        name,
                        text(&it["type"]),
                        text(&it["creditCost"]),
                        text(&it["providerLabel"]),
                        can.join(" "),
                        text(&it["handle"]),
                    ]
                })
            };
            listed(context, &listing, "models", list, people).await
        }
        Model::Show { model } => {
            let handle = context.model(&model).await?;
            let model = context.client.get_model(&handle).await?;
            context.output.answer(&model, |it| {
                let it = &it["model"];
                let parameters = rows(&["parameter", "type", "description"], items(&it["parameters"]), |it| {
                    let options: Vec<String> =
                        items(&it["options"]).map(|option| text(option.get("value").unwrap_or(option))).collect();
                    let kind = if options.is_empty() { text(&it["type"]) } else { options.join("|") };
                    vec![text(&it["name"]), kind, text(&it["description"])]
                });
                format!(
                    "{} of {}, {}, about {} s\n{}\n\n{parameters}",
                    text(&it["name"]),
                    text(&it["providerLabel"]),
                    credits(&it["creditCost"]),
                    text(&it["estimatedSeconds"]),
                    text(&it["handle"])
                )
            });
            Ok(())
        }
    }
}

pub async fn recipe(context: &Context, recipe: Recipe) -> Outcome {
    match recipe {
        Recipe::List(Search { search, listing }) => {
            let list = || context.client.list_recipes().query_if("q", search.as_deref());
            let people = |recipes: &[Value]| {
                rows(&["recipe", "credits", "name", "summary"], recipes, |it| {
                    ["id", "creditCost", "name", "summary"].map(|key| text(&it[key])).to_vec()
                })
            };
            listed(context, &listing, "recipes", list, people).await
        }
        Recipe::Show { recipe, version } => {
            let recipe = context.client.get_recipe(&recipe).query_if("version", version).await?;
            context.output.answer(&recipe, shown_recipe);
            Ok(())
        }
        Recipe::Run { recipe, inputs, version, instance, model, near, section, start: options } => {
            let on = canvas(&options.on)?;
            let mut body =
                Body::from_iter([("canvasId".into(), json!(on)), ("inputs".into(), ports(&inputs).await?.into())]);
            insert(&mut body, "version", version);
            insert(&mut body, "instanceNodeId", instance);
            insert(&mut body, "near", near);
            insert(&mut body, "sectionId", section);
            if let Some(model) = &model {
                body.insert("model".into(), context.model(model).await?.into());
            }
            let route = |client: &Client| client.run_recipe(&recipe).cast();
            let order = Order { name: recipe.clone(), canvas: Some(on), body, route: &route, is_paid: true };
            start(context, order, &options.start).await
        }
        Recipe::Fork { recipe, version, on, position } => {
            let answer = fork(context, &recipe, version, &canvas(&on)?, position).await?;
            context.output.answer(&answer, |it| {
                format!("{} nodes, revision {}", items(&it["changedNodeIds"]).count(), text(&it["canvas"]["revision"]))
            });
            Ok(())
        }
    }
}

fn shown_recipe(answer: &Value) -> String {
    let it = &answer["recipe"];
    let inputs = rows(&["input", "type", "description"], items(&it["inputs"]), |it| {
        ["key", "nodeType", "description"].map(|key| text(&it[key])).to_vec()
    });
    let outputs = rows(&["output", "type", "credits", "model", "description"], items(&it["outputs"]), |it| {
        let model = if it["standIn"] == true {
            format!("{} (stand-in)", text(&it["model"]["name"]))
        } else {
            text(&it["model"]["name"])
        };
        vec![text(&it["key"]), text(&it["nodeType"]), text(&it["creditCost"]), model, text(&it["description"])]
    });
    let about =
        ["summary", "description"].iter().map(|key| text(&it[*key])).find(|it| !it.is_empty()).unwrap_or_default();
    format!(
        "{} {}, {}\n{about}\n\n{inputs}\n\n{outputs}",
        text(&it["name"]),
        text(&it["version"]),
        credits(&it["creditCost"])
    )
}

/// The inputs of a Recipe run.
async fn ports(given: &[String]) -> Outcome<Body> {
    let mut ports = Body::new();
    for pair in given {
        let Some((name, value)) = pair.split_once('=') else { return usage(format!("{pair} is not NAME=VALUE")) };
        ports.insert(name.to_owned(), text_or_stdin(value).await?.into());
    }
    Ok(ports)
}

async fn fork(
    context: &Context,
    recipe: &str,
    version: Option<String>,
    on: &str,
    position: Position,
) -> Outcome<Answer<client::answers::MutationResult>> {
    let Position { x, y, near, section } = position;
    let mut body = Body::from_iter([("canvasId".into(), json!(on))]);
    insert(&mut body, "version", version);
    insert(&mut body, "x", x);
    insert(&mut body, "y", y);
    insert(&mut body, "near", near);
    insert(&mut body, "sectionId", section);
    let name = journal::hash(&[&context.origin, "fork", recipe, &Value::from(body.clone()).to_string()]);
    let entry = match journal::find(&name)? {
        Some(entry) => entry,
        None => {
            let revision = context.revision(on).await?;
            body.insert("idempotencyKey".into(), format!("cli-{}", journal::hash(&[&name, &revision])).into());
            body.insert("baseRevision".into(), revision.into());
            journal::begin(&name, body)?
        }
    };
    let answer = context.client.fork_recipe(recipe).prefer("return=minimal").json(&entry.body).await;
    if !answer.as_ref().is_err_and(client::Error::is_temporary) {
        entry.end();
    }
    Ok(answer?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_have_the_types_that_their_action_declares() {
        let action = json!({"parameters": [
            {"id": "width", "type": "number"},
            {"id": "text", "type": "text"},
            {"id": "flip", "type": "select", "options": [{"value": true}, {"value": "90"}]},
        ]});
        let given = ["width=12.5", "text=42", "flip=true", "other=x", "angle=7"].map(str::to_owned);
        let expected = json!({"width": 12.5, "text": "42", "flip": true, "other": "x", "angle": 7});
        assert_eq!(Value::from(parameters(&action, &given).expect("parameters")), expected);
        assert_eq!(parameters(&action, &["flip=90".into()]).expect("parameters")["flip"], "90");
        parameters(&action, &["width".into()]).expect_err("no value");
    }
}
