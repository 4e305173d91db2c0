//! Who carries out each step of a run, judged before anything is accepted (decisions 10.5, 12.3).

use domain::Violation;
use domain::id::NodeId;
use domain::model::Capability;
use domain::recipe::run::{RunInput, Step};
use domain::recipe::{Held, Output, OutputKind};
use providers::catalogue::EntryType;

use crate::models::{self, Runnable};
use crate::routes::images::fit::{self, Asked};

/// What the run chooses for its pictures, instead of what the Recipe says.
pub(super) struct Choice {
    pub(super) model: Option<String>,
    pub(super) size: Option<String>,
    pub(super) quality: Option<String>,
}

/// The steps of `outputs`, whose nodes are `nodes`, from `inputs`; or everything that no model can do, by field.
pub(super) fn choose(
    models: &[Runnable],
    outputs: &[Output],
    nodes: &[NodeId],
    inputs: &[RunInput],
    choice: &Choice,
) -> Result<Vec<Step>, Vec<Violation>> {
    let (mut steps, mut refused) = (Vec::new(), Vec::new());
    for (output, node) in outputs.iter().zip(nodes) {
        let is_image = output.kind == OutputKind::Image;
        let of_images = |own: &Option<String>, chosen: &Option<String>| match is_image {
            true => chosen.clone().or_else(|| own.clone()),
            false => None,
        };
        let (size, quality) = (of_images(&output.size, &choice.size), of_images(&output.quality, &choice.quality));
        let model = match is_image {
            true => {
                let model = choice.model.as_deref().or(output.model.as_deref());
                picture(models, model, size.as_deref(), quality.as_deref(), pictures(output, outputs, inputs))
            }
            false => text(models, output.model.as_deref()).map_err(|violation| vec![violation]),
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
                estimated_seconds: i32::try_from(model.entry.estimated_seconds).unwrap_or(i32::MAX),
            }),
            Err(violations) => {
                let of_step = |it: Violation| Violation::new(it.field, format!("{} ({})", it.message, output.label));
                refused.extend(violations.into_iter().map(of_step));
            }
        }
    }
    if refused.is_empty() { Ok(steps) } else { Err(refused) }
}

/// How many pictures a step is made from.
fn pictures(output: &Output, outputs: &[Output], inputs: &[RunInput]) -> usize {
    let is_picture = |key: &&String| {
        inputs.iter().any(|input| input.key == **key && matches!(input.held, Held::Asset(_)))
            || outputs.iter().any(|earlier| earlier.key == **key && earlier.kind == OutputKind::Image)
    };
    output.input_keys.iter().filter(is_picture).count()
}

/// What of a model a step that is made from so many pictures asks for.
fn capability(pictures: usize) -> Capability {
    if pictures == 0 { Capability::ImageGenerate } else { Capability::ImageEdit }
}

fn picture<'a>(
    models: &'a [Runnable],
    model: Option<&str>,
    size: Option<&str>,
    quality: Option<&str>,
    pictures: usize,
) -> Result<&'a Runnable, Vec<Violation>> {
    let capability = capability(pictures);
    let model = models::choose(models, model, None, capability).map_err(|violation| vec![violation])?;
    // The words come later, and are cut to what a prompt may have.
    let roles = vec![None; pictures];
    let asked = Asked { capability, prompt: "", prompt_field: "prompt", roles: &roles, size, quality };
    let violations = fit::violations(&model.entry, &asked);
    let of_inputs = |it: Violation| if it.field == "references" { Violation::new("inputs", it.message) } else { it };
    match violations.is_empty() {
        true => Ok(model),
        false => Err(violations.into_iter().map(of_inputs).collect()),
    }
}

/// The text model of this name, or the first one.
fn text<'a>(models: &'a [Runnable], model: Option<&str>) -> Result<&'a Runnable, Violation> {
    let mut writers = models.iter().filter(|it| it.entry.kind == EntryType::Text);
    let found = match model {
        None => writers.next(),
        Some(name) => match name.strip_prefix("model:") {
            Some(key) => writers.find(|it| it.has_key(key)),
            None => writers.find(|it| it.entry.id == name),
        },
    };
    found.ok_or_else(|| Violation::new("model", "is no text model that you can run"))
}
