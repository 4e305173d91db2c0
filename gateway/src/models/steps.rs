//! The model of each step of a run, selected before acceptance (docs/reference/models.md#model-order).

use app::recipe::Choice;
use domain::Violation;
use domain::id::NodeId;
use domain::job::ChosenModel;
use domain::model::Capability;
use domain::recipe::run::{RunInput, Step};
use domain::recipe::{Definition, Input, InputKind, NewOutput, Output, OutputKind, PortValue};
use providers::catalogue::EntryType;

use super::fit::{self, Asked};
use super::{Runnable, choose as choose_model};

/// The steps of `outputs` on `nodes` from `inputs`; or everything that the models cannot do, by field.
pub fn choose(
    models: &[Runnable],
    outputs: &[Output],
    nodes: &[NodeId],
    inputs: &[RunInput],
    choice: &Choice,
) -> Result<Vec<Step>, Vec<Violation>> {
    let (mut steps, mut refused) = (Vec::new(), Vec::new());
    let makes_images = outputs.iter().any(|output| output.kind == OutputKind::Image);
    let pictured = inputs.iter().filter(|input| matches!(input.held, PortValue::Asset(_)));
    let given: Vec<&str> = pictured.map(|input| &*input.key).collect();
    for (output, node) in outputs.iter().zip(nodes) {
        let is_image = output.kind == OutputKind::Image;
        let of_images = |own: &Option<String>, chosen: &Option<String>| match is_image {
            true => chosen.clone().or_else(|| own.clone()),
            false => None,
        };
        let (size, quality) = (of_images(&output.size, &choice.size), of_images(&output.quality, &choice.quality));
        let chosen = choice.model.as_deref().filter(|_| is_image == makes_images);
        let model = chosen.or(output.model.as_deref());
        let model = match is_image {
            true => image(models, model, size.as_deref(), quality.as_deref(), images(output, outputs, &given)),
            false => text(models, model).map_err(|violation| vec![violation]),
        };
        match model {
            Ok(model) => steps.push(Step {
                key: output.key.clone(),
                label: output.label.clone(),
                kind: output.kind,
                node: node.clone(),
                prompt: output.prompt.clone(),
                input_keys: output.input_keys.clone(),
                model: model.chosen(),
                size,
                quality,
                estimated_seconds: model.estimated_seconds(),
            }),
            Err(violations) => {
                let of_step = |it: Violation| Violation::new(it.field, format!("{} ({})", it.message, output.label));
                refused.extend(violations.into_iter().map(of_step));
            }
        }
    }
    if refused.is_empty() { Ok(steps) } else { Err(refused) }
}

/// The models that make the outputs of a Recipe in a run that names none, from texts where an input takes a text or an image.
/// `None` where the caller has no model that can.
pub fn of_recipe(models: &[Runnable], Definition { inputs, outputs, .. }: &Definition) -> Vec<Option<ChosenModel>> {
    let is_image = |input: &Input| match &input.default {
        Some(default) => matches!(default, PortValue::Asset(_)),
        None => input.kind == InputKind::Image,
    };
    let given: Vec<&str> = inputs.iter().filter(|input| is_image(input)).map(|input| &*input.key).collect();
    let model = |output: &Output| {
        let model = output.model.as_deref();
        let (size, quality) = (output.size.as_deref(), output.quality.as_deref());
        match output.kind {
            OutputKind::Image => image(models, model, size, quality, images(output, outputs, &given)).ok(),
            OutputKind::Text => text(models, model).ok(),
        }
    };
    outputs.iter().map(|output| model(output).map(Runnable::chosen)).collect()
}

/// Violations of the models that outputs name: each must be able to make the kind of the output. Whether it takes enough images
/// depends on the run and is checked there.
pub fn unfit_models(models: &[Runnable], outputs: &[NewOutput]) -> Vec<Violation> {
    let makes = |it: &Runnable, kind: OutputKind| match kind {
        OutputKind::Text => it.entry.kind == EntryType::Text,
        OutputKind::Image => {
            let able = [Capability::ImageGenerate, Capability::ImageEdit];
            able.iter().any(|capability| it.entry.capabilities.contains(capability))
        }
    };
    let unfit = |output: &NewOutput| {
        output.model.as_deref().is_some_and(|name| !models.iter().any(|it| it.is_named(name) && makes(it, output.kind)))
    };
    let reported = |at: usize| {
        Violation::new(format!("outputs[{at}].model"), "is not a model that you can run and that makes such an output")
    };
    outputs.iter().enumerate().filter(|(_, output)| unfit(output)).map(|(at, _)| reported(at)).collect()
}

/// The number of images that a step uses; `given` are the keys of the inputs that hold one.
fn images(output: &Output, outputs: &[Output], given: &[&str]) -> usize {
    let is_image = |key: &&String| {
        given.contains(&key.as_str())
            || outputs.iter().any(|earlier| earlier.key == **key && earlier.kind == OutputKind::Image)
    };
    output.input_keys.iter().filter(is_image).count()
}

/// The capability that a step needs for this number of images.
fn capability(images: usize) -> Capability {
    if images == 0 { Capability::ImageGenerate } else { Capability::ImageEdit }
}

fn image<'a>(
    models: &'a [Runnable],
    model: Option<&str>,
    size: Option<&str>,
    quality: Option<&str>,
    images: usize,
) -> Result<&'a Runnable, Vec<Violation>> {
    let capability = capability(images);
    let model = choose_model(models, model, None, capability.into()).map_err(|violation| vec![violation])?;
    // The prompt is known later and is cut to the maximum length then.
    let roles = vec![None; images];
    let asked = Asked { capability, prompt: "", prompt_field: "prompt", roles: &roles, masked: false, size, quality };
    let violations = fit::violations(&model.entry, &asked);
    let of_inputs = |it: Violation| match it.field.as_str() {
        "references" => Violation::new("inputs", it.message),
        // A step has no masks.
        "mask" => Violation::new("model", it.message),
        _ => it,
    };
    match violations.is_empty() {
        true => Ok(model),
        false => Err(violations.into_iter().map(of_inputs).collect()),
    }
}

/// The text model of this name, or the first one in the order of docs/reference/models.md#model-order.
fn text<'a>(models: &'a [Runnable], model: Option<&str>) -> Result<&'a Runnable, Violation> {
    let mut writers = models.iter().filter(|it| it.entry.kind == EntryType::Text);
    let found = match model {
        None => writers.next(),
        Some(name) => writers.find(|it| it.is_named(name)),
    };
    found.ok_or_else(|| Violation::new("model", "is not a text model that you can run"))
}

#[cfg(test)]
mod tests {
    use domain::model::ProviderKind;
    use serde_json::json;

    use super::*;
    use crate::models::tests::{models_of, saved};

    const NONE: Choice = Choice { model: None, size: None, quality: None };

    /// The managed runtime, and optionally a connection.
    fn models(connection: Option<ProviderKind>) -> Vec<Runnable> {
        let connections: Vec<_> = connection.into_iter().map(|provider| saved(1, provider)).collect();
        models_of("me", &connections)
    }

    fn output(kind: &str, model: Option<&str>) -> Output {
        output_from("o", "a", kind, model)
    }

    /// An output that is made from one input or output.
    fn output_from(key: &str, from: &str, kind: &str, model: Option<&str>) -> Output {
        let new = json!({"key": key, "label": key, "type": kind, "prompt": "p", "inputKeys": [from], "model": model});
        Output::from_new(serde_json::from_value(new).expect("an output"), key.into())
    }

    /// The models of the steps, or the fields of the violations.
    fn chosen(models: &[Runnable], outputs: &[Output], choice: &Choice) -> Result<Vec<String>, Vec<String>> {
        let nodes: Vec<NodeId> = outputs.iter().map(|_| NodeId::generate()).collect();
        let steps = choose(models, outputs, &nodes, &[], choice);
        steps
            .map(|steps| steps.into_iter().map(|step| step.model.id).collect())
            .map_err(|refused| refused.into_iter().map(|violation| violation.field).collect())
    }

    fn of_text(connection: Option<ProviderKind>, model: Option<&str>) -> Result<Vec<String>, Vec<String>> {
        chosen(&models(connection), &[output("text", model)], &NONE)
    }

    #[test]
    fn a_text_without_a_model_goes_to_the_first_that_writes() {
        assert_eq!(of_text(None, None), Ok(vec!["outline".into()]));
        assert_eq!(of_text(Some(ProviderKind::Runway), None), Ok(vec!["outline".into()]), "it does not write texts");
        assert_eq!(of_text(Some(ProviderKind::OpenAi), None), Ok(vec!["gpt-5.6-terra".into()]));
        assert_eq!(of_text(Some(ProviderKind::Google), None), Ok(vec!["gemini-3.8-flash".into()]));
    }

    #[test]
    fn a_text_names_a_text_model_of_the_caller() {
        let openai = Some(ProviderKind::OpenAi);
        assert_eq!(of_text(openai, Some("outline")), Ok(vec!["outline".into()]));
        assert_eq!(of_text(openai, Some("gpt-5.6-luna")), Ok(vec!["gpt-5.6-luna".into()]));
        let models = models(openai);
        let luna = models.iter().find(|it| it.entry.id == "gpt-5.6-luna").expect("is there");
        let handle = format!("model:{}", luna.key);
        assert_eq!(of_text(openai, Some(&handle)), Ok(vec!["gpt-5.6-luna".into()]));
        for strange in ["sketch", "gpt-image-2", "gemini-3.8-flash", "absent", "model:absent-key", ""] {
            assert_eq!(of_text(openai, Some(strange)), Err(vec!["model".into()]), "{strange}");
        }
        assert_eq!(of_text(None, Some(&handle)), Err(vec!["model".into()]), "the connection was deleted");
    }

    #[test]
    fn an_image_names_a_model_that_makes_images() {
        let models = models(Some(ProviderKind::OpenAi));
        let of_image = |model: Option<&str>| chosen(&models, &[output("image", model)], &NONE);
        assert_eq!(of_image(Some("sketch")), Ok(vec!["sketch".into()]));
        assert_eq!(of_image(Some("gpt-image-2")), Ok(vec!["gpt-image-2".into()]));
        let handle = |id: &str| {
            let found = models.iter().find(|it| it.entry.id == id).expect("is there");
            format!("model:{}", found.key)
        };
        assert_eq!(of_image(Some(&handle("sketch"))), Ok(vec!["sketch".into()]));
        let texts = ["outline", "gpt-5.6-luna", &handle("outline"), &handle("gpt-5.6-luna")];
        let videos = ["animatic", &handle("animatic")];
        let unknown = ["flux-2-pro", "absent", "model:absent-key", ""];
        for strange in texts.into_iter().chain(videos).chain(unknown) {
            assert_eq!(of_image(Some(strange)), Err(vec!["model".into()]), "{strange}");
        }
    }

    #[test]
    fn an_image_made_from_another_names_a_model_that_takes_images() {
        let models = models(Some(ProviderKind::Fal));
        let chain = |first, second| {
            let outputs = [
                output_from("first", "a", "image", Some(first)),
                output_from("second", "first", "image", Some(second)),
            ];
            chosen(&models, &outputs, &NONE)
        };
        let (makes, takes) = ("fal-ai/flux/schnell", "fal-ai/flux-2-pro");
        assert_eq!(chain(makes, takes), Ok(vec![makes.into(), takes.into()]));
        assert_eq!(chain(takes, makes), Err(vec!["model".into()]), "it makes images from text only");
    }

    #[test]
    fn an_output_of_a_recipe_shows_the_model_that_a_run_would_use() {
        let input = |key: &str, kind: &str, written: bool| {
            let new =
                json!({"key": key, "label": key, "type": kind, "useAsDefault": false, "writtenReference": written});
            Input::from_new(serde_json::from_value(new).expect("an input"), key.into(), None)
        };
        let definition = |inputs: Vec<Input>| Definition {
            name: "Kites".into(),
            summary: None,
            description: None,
            category: domain::recipe::Category::Content,
            tags: Vec::new(),
            inputs,
            outputs: vec![output("text", None), output("image", None), output("image", Some("absent"))],
        };
        let shown = |connection, inputs| {
            let models = of_recipe(&models(connection), &definition(inputs));
            models.into_iter().map(|it| it.map(|it| (it.is_stand_in(), it.credit_cost, it.id))).collect::<Vec<_>>()
        };
        let text = || vec![input("a", "text", true)];
        let model = |stand_in, cost, id: &str| Some((stand_in, cost, id.to_owned()));
        assert_eq!(shown(None, text()), [model(true, 0, "outline"), model(true, 1, "sketch"), None]);
        let fal = Some(ProviderKind::Fal);
        let written = model(true, 0, "outline");
        let first = model(false, 0, "fal-ai/flux-2-pro");
        assert_eq!(shown(fal, text())[..2], [written.clone(), first.clone()]);
        let edit = shown(fal, vec![input("a", "image", false)]);
        assert_eq!(edit[..2], [written, first], "it is made from an image");
        let default = |held| vec![Input { default: Some(held), ..input("a", "text", true) }];
        let asset = "asset:me:a".to_owned().try_into().expect("a handle");
        assert_eq!(shown(fal, default(PortValue::Asset(asset))), edit);
        assert_eq!(shown(fal, default(PortValue::Text("a kite".into()))), shown(fal, text()));
    }

    #[test]
    fn everything_that_no_model_can_do_is_reported_at_once() {
        let models = models(None);
        let outputs =
            [output("image", Some("outline")), output("text", Some("sketch")), output("image", Some("sketch"))];
        assert_eq!(chosen(&models, &outputs, &NONE), Err(vec!["model".into(), "model".into()]));
        let size = Choice { size: Some("7x7".into()), ..NONE };
        assert_eq!(chosen(&models, &outputs[2..], &size), Err(vec!["size".into()]));
    }

    #[test]
    fn the_model_of_a_run_is_for_its_images_or_for_its_texts_where_there_are_none() {
        let models = models(Some(ProviderKind::OpenAi));
        let with = |model: &str| Choice { model: Some(model.into()), ..NONE };
        let (text, image) = (output("text", Some("outline")), output("image", None));
        let both = [text.clone(), image];
        assert_eq!(chosen(&models, &both, &with("sketch")), Ok(vec!["outline".into(), "sketch".into()]));
        assert_eq!(chosen(&models, &both, &with("gpt-5.6-luna")), Err(vec!["model".into()]));
        assert_eq!(
            chosen(&models, std::slice::from_ref(&text), &with("gpt-5.6-luna")),
            Ok(vec!["gpt-5.6-luna".into()])
        );
        for strange in ["sketch", "absent"] {
            assert_eq!(chosen(&models, std::slice::from_ref(&text), &with(strange)), Err(vec!["model".into()]));
        }
    }
}
