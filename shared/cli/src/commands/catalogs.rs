//! Actions, models and Recipes: what can be run, and running it.

use std::fmt::Display;

use client::answers::{ActionRead, ModelRead, MutationResult, RecipeRead};
use client::{Answer, Client};
use domain::action::{ActionInput, Parameter, ParameterType};
use domain::counted;
use domain::graph::NodeType;
use serde_json::{Value, json};

use super::batch::insert;
use super::canvases::listed;
use super::pictures::{picture, picture_if, pictures};
use super::starts::place;
use super::work::{Order, start, start_several};
use crate::args::{Action, Model, Position, Recipe, Search};
use crate::context::{Body, Context, text_or_stdin};
use crate::failure::{Outcome, usage};
use crate::journal;
use crate::output::{credits, joined, optional, rows, text};

pub async fn action(context: &Context, action: Action) -> Outcome {
    match action {
        Action::List { search: Search { search, listing }, medium } => {
            let list = || {
                let list = context.client.list_actions().query_if("q", search.as_deref());
                list.query_if("medium", medium.as_deref())
            };
            let row = |it: domain::action::Action| vec![text(it.title), text(it.slug), text(it.summary)];
            listed(context, &listing, list, &["title", "action", "summary"], row).await
        }
        Action::Show { action } => {
            let action = context.client.get_action(&action).await?;
            context.output.answer(&action, |ActionRead { action: it }| {
                let medium = it.medium;
                let input =
                    |input: ActionInput| vec![text(input.id), text(medium), String::new(), text(input.description)];
                let inputs = it.inputs.into_iter().map(input);
                let head = ["name", "type", "default", "description"].map(str::to_owned).to_vec();
                let parameters = it.parameters.into_iter().map(parameter);
                let all: Vec<_> = [head].into_iter().chain(inputs).chain(parameters).collect();
                format!("{}\n\n{}", text(it.summary), crate::output::table(&all))
            });
            Ok(())
        }
        Action::Run { action, inputs, params, with, then, targets, position, start: options } => {
            let on = context.on(options.on.on.as_deref()).await?;
            let inputs = pictures(context, Some(&on), &inputs).await?;
            let with = picture_if(context, Some(&on), with).await?;
            let targets = context.nodes(&on, targets).await?;
            let known = context.client.get_action(&action).await?.value()?.action;
            let params = parameters(&known.parameters, &params)?;
            let is_single =
                with.is_none() && then.is_empty() && inputs.len() <= known.inputs.len() && targets.len() < 2;
            let mut body = Body::from_iter([("canvasId".into(), json!(on)), ("inputs".into(), json!(inputs))]);
            if !targets.is_empty() {
                body.insert("fit".into(), true.into());
            }
            match targets.as_slice() {
                [] => _ = body.insert("place".into(), place(context, &on, position, None).await?),
                [target] if is_single => _ = body.insert("targetNodeId".into(), json!(target)),
                targets => _ = body.insert("targetNodeIds".into(), json!(targets)),
            }
            if is_single {
                body.insert("params".into(), params.into());
                let route = |client: &Client| client.run_action(&action).cast();
                let order = Order { name: action.clone(), canvas: Some(on), body, route: &route, is_paid: false };
                return start(context, order, &options.start).await;
            }
            body.insert("steps".into(), steps(&action, params, with, &then)?.into());
            let route = |client: &Client| client.run_actions().cast();
            let order = Order { name: "actions".to_owned(), canvas: Some(on), body, route: &route, is_paid: false };
            start_several(context, order, &options.start).await
        }
    }
}

fn parameter(it: Parameter) -> Vec<String> {
    let options: Vec<Value> = it.options.into_iter().map(|option| option.value).collect();
    vec![
        text(it.id),
        type_or_options(it.kind, options),
        it.default.map(value).unwrap_or_default(),
        text(it.description),
    ]
}

/// The type of a parameter, or the values that it can have.
fn type_or_options(kind: impl Display, options: Vec<Value>) -> String {
    match options.is_empty() {
        true => text(kind),
        false => joined(options.into_iter().map(value), "|"),
    }
}

/// A value as it is written in an argument: a text without quotes.
fn value(value: Value) -> String {
    match value {
        Value::String(it) => text(it),
        other => other.to_string(),
    }
}

/// The steps of Actions in a row: the first one, and those that are given as JSON.
fn steps(action: &str, params: Body, with: Option<String>, then: &[String]) -> Outcome<Vec<Value>> {
    let mut first = Body::from_iter([("action".into(), json!(action)), ("params".into(), params.into())]);
    insert(&mut first, "with", with);
    let mut steps = vec![first.into()];
    for given in then {
        match serde_json::from_str(given) {
            Ok(Value::Object(mut step)) => {
                step.entry("params").or_insert_with(|| json!({}));
                steps.push(step.into());
            }
            _ => return usage(format!("{given} is not a JSON object")),
        }
    }
    Ok(steps)
}

/// The parameters of an Action. A value has the type that the Action declares for it: a number, a truth, or a text.
fn parameters(declared: &[Parameter], given: &[String]) -> Outcome<Body> {
    let mut params = Body::new();
    for pair in given {
        let Some((name, given)) = pair.split_once('=') else { return usage(format!("{pair} is not NAME=VALUE")) };
        let declared = declared.iter().find(|it| it.id == name);
        let is_text = declared.is_some_and(|it| matches!(it.kind, ParameterType::Text | ParameterType::Color));
        let mut options = declared.into_iter().flat_map(|it| &it.options).map(|it| &it.value);
        let read = match options.find(|it| value((*it).clone()) == given) {
            Some(option) => option.clone(),
            None if is_text => json!(given),
            None => serde_json::from_str(given).unwrap_or_else(|_| json!(given)),
        };
        params.insert(name.to_owned(), read);
    }
    Ok(params)
}

pub async fn model(context: &Context, model: Model) -> Outcome {
    match model {
        Model::List(Search { search, listing }) => {
            let list = || context.client.list_models().query_if("q", search.as_deref());
            let row = |it: domain::model::Model| {
                let name = with_stand_in(text(it.model_id), it.stand_in);
                let can = joined(it.capabilities, " ");
                vec![name, text(it.handle), text(it.kind), text(it.credit_cost), text(it.provider_label), can]
            };
            listed(context, &listing, list, &["name", "model", "kind", "credits", "provider", "can"], row).await
        }
        Model::Show { model } => {
            let handle = context.model(&model).await?;
            let model = context.client.get_model(&handle).await?;
            context.output.answer(&model, |ModelRead { model: it }| {
                let parameters = rows(&["parameter", "type", "description"], it.parameters, |it| {
                    let options = it.options.into_iter().map(|option| option.value).collect();
                    vec![text(it.name), type_or_options(it.kind, options), text(it.description)]
                });
                format!(
                    "{} of {}, {}, about {} s\n{}\n\n{parameters}",
                    text(it.name),
                    text(it.provider_label),
                    credits(it.credit_cost),
                    it.estimated_seconds,
                    text(it.handle)
                )
            });
            Ok(())
        }
    }
}

/// A name, with a note if it is that of a stand-in.
fn with_stand_in(name: String, is_stand_in: bool) -> String {
    if is_stand_in { format!("{name} (stand-in)") } else { name }
}

pub async fn recipe(context: &Context, recipe: Recipe) -> Outcome {
    match recipe {
        Recipe::List(Search { search, listing }) => {
            let list = || context.client.list_recipes().query_if("q", search.as_deref());
            let row = |it: domain::recipe::Recipe| {
                vec![text(it.name), text(it.id), text(it.credit_cost), optional(it.summary)]
            };
            listed(context, &listing, list, &["name", "recipe", "credits", "summary"], row).await
        }
        Recipe::Show { recipe, version } => {
            let recipe =
                context.client.get_recipe(&context.recipe(&recipe).await?).query_if("version", version).await?;
            context.output.answer(&recipe, shown_recipe);
            Ok(())
        }
        Recipe::Run { recipe, inputs, version, instance, model, near, section, start: options } => {
            let on = context.on(options.on.on.as_deref()).await?;
            let recipe = context.recipe(&recipe).await?;
            let inputs = ports(context, &on, (&recipe, version.as_deref()), &inputs).await?;
            let mut body = Body::from_iter([("canvasId".into(), json!(on)), ("inputs".into(), inputs.into())]);
            body.insert("fit".into(), true.into());
            insert(&mut body, "version", version);
            insert(&mut body, "instanceNodeId", context.node_if(&on, instance).await?);
            insert(&mut body, "near", context.node_if(&on, near).await?);
            insert(&mut body, "sectionId", context.node_if(&on, section).await?);
            if let Some(model) = &model {
                body.insert("model".into(), context.model(model).await?.into());
            }
            let route = |client: &Client| client.run_recipe(&recipe).cast();
            let order = Order { name: recipe.clone(), canvas: Some(on), body, route: &route, is_paid: true };
            start(context, order, &options.start).await
        }
        Recipe::Fork { recipe, version, on, position } => {
            let (recipe, on) = (context.recipe(&recipe).await?, context.on(on.on.as_deref()).await?);
            let answer = fork(context, &recipe, version, &on, position).await?;
            let nodes =
                |it: &MutationResult| it.changes.changed_node_ids.iter().map(|id| format!("node:{id}")).collect();
            context.output.made(&answer, nodes, |it| {
                format!(
                    "{}, revision {}",
                    counted(it.changes.changed_node_ids.len(), "node"),
                    text(it.canvas.revision())
                )
            });
            Ok(())
        }
    }
}

fn shown_recipe(RecipeRead { recipe: it }: RecipeRead) -> String {
    let inputs = rows(&["input", "type", "description"], it.inputs, |it| {
        vec![text(it.key), text(it.node_type), text(it.description)]
    });
    let outputs = rows(&["output", "type", "credits", "model", "description"], it.outputs, |it| {
        let model = with_stand_in(optional(it.model.map(|model| model.name)), it.stand_in);
        vec![text(it.port.key), text(it.port.node_type), text(it.credit_cost), model, text(it.port.description)]
    });
    let about = [it.summary, it.description].into_iter().flatten().find(|it| !it.is_empty());
    format!(
        "{} {}, {}\n{}\n\n{inputs}\n\n{outputs}",
        text(it.name),
        text(it.version),
        credits(it.credit_cost),
        optional(about)
    )
}

/// The inputs of a run of a version of a Recipe: texts, and pictures for the ports that take one.
async fn ports(
    context: &Context,
    on: &str,
    (recipe, version): (&str, Option<&str>),
    given: &[String],
) -> Outcome<Body> {
    let known = context.client.get_recipe(recipe).query_if("version", version).await?.value()?.recipe;
    let takes_picture = |name: &str| {
        let port = known.inputs.iter().find(|port| port.key == name);
        port.is_some_and(|port| matches!(port.node_type, NodeType::Image | NodeType::Video))
    };
    let mut ports = Body::new();
    for pair in given {
        let Some((name, value)) = pair.split_once('=') else { return usage(format!("{pair} is not NAME=VALUE")) };
        let value = match takes_picture(name) {
            true => picture(context, Some(on), value).await?,
            false => text_or_stdin(value).await?,
        };
        ports.insert(name.to_owned(), value.into());
    }
    Ok(ports)
}

async fn fork(
    context: &Context,
    recipe: &str,
    version: Option<String>,
    on: &str,
    position: Position,
) -> Outcome<Answer<MutationResult>> {
    let Position { x, y, near, section } = position;
    let mut body = Body::from_iter([("canvasId".into(), json!(on))]);
    insert(&mut body, "version", version);
    insert(&mut body, "x", x);
    insert(&mut body, "y", y);
    insert(&mut body, "near", context.node_if(on, near).await?);
    insert(&mut body, "sectionId", context.node_if(on, section).await?);
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
        let declared = json!([
            {"id": "width", "title": "", "required": true, "type": "number"},
            {"id": "text", "title": "", "required": true, "type": "text"},
            {"id": "flip", "title": "", "required": true, "type": "select", "options": [
                {"value": true, "label": ""}, {"value": "90", "label": ""},
            ]},
        ]);
        let declared: Vec<Parameter> = serde_json::from_value(declared).expect("parameters");
        let given = ["width=12.5", "text=42", "flip=true", "other=x", "angle=7"].map(str::to_owned);
        let expected = json!({"width": 12.5, "text": "42", "flip": true, "other": "x", "angle": 7});
        assert_eq!(Value::from(parameters(&declared, &given).expect("parameters")), expected);
        assert_eq!(parameters(&declared, &["flip=90".into()]).expect("parameters")["flip"], "90");
        parameters(&declared, &["width".into()]).expect_err("no value");
    }
}
