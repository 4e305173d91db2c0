//! The parameters of a model in the form of the contract.

use domain::limits::PROMPT_MAX;
use domain::model::{Capability, ModelParameter, ModelParameterOption, ModelParameterType};
use serde_json::Value;

use super::entry::{Entry, EntryType};

/// The capabilities with a first frame.
const WITH_FIRST_FRAME: &[Capability] = &[Capability::VideoFromImage, Capability::VideoFromFrames];
/// The capabilities with a last frame.
const WITH_LAST_FRAME: &[Capability] = &[Capability::VideoFromFrames];

impl Entry {
    /// The parameters under the names that the contract's requests use.
    pub fn parameters(&self) -> Vec<ModelParameter> {
        let all = &self.capabilities;
        // The prompt of a request is limited in characters, that of a model in its own unit.
        // Elements and roles add words to it.
        let description = format!(
            "What to make; a variation needs none. With what Elements and roles add, at most {} UTF-16 code units.",
            self.prompt_max
        );
        let mut parameters = vec![ModelParameter {
            required: !all.contains(&Capability::ImageVariations),
            min: Some(1.0),
            max: Some(self.prompt_max.min(PROMPT_MAX) as f64),
            ..self.parameter("prompt", "Prompt", &description, ModelParameterType::String)
        }];
        if let Some(range) = self.references {
            let takes = |it: &Capability| match self.kind {
                EntryType::Video => *it == Capability::VideoFromReferences,
                EntryType::Image | EntryType::Text => true,
            };
            let description = "Images that guide the result.";
            // The capability of a video follows from its images: one that is made from references has some.
            let are_needed = self.kind == EntryType::Video && all.iter().all(takes);
            let min = range.min.max(usize::from(are_needed));
            parameters.push(ModelParameter {
                required: min > 0,
                min: Some(min as f64),
                max: Some(range.max as f64),
                capabilities: all.iter().copied().filter(takes).collect(),
                ..self.parameter("references", "References", description, ModelParameterType::Images)
            });
        }
        if let Some(handling) = self.mask {
            let description = "An image that says what of the source changes: white, or what is transparent. With `native` the \
                               model is sent it; with `composited` it is applied to what the model makes.";
            parameters.push(ModelParameter {
                required: self.mask_required,
                min: Some(f64::from(u8::from(self.mask_required))),
                max: Some(1.0),
                options: vec![option(handling.as_str().into())],
                capabilities: vec![Capability::ImageEdit],
                ..self.parameter("mask", "Mask", description, ModelParameterType::Images)
            });
        }
        let text = |value: &String| Value::from(value.clone());
        self.choice(&mut parameters, "size", "Size", "Size or shape of the result.", self.sizes.iter().map(text));
        let effort = "Effort or resolution of the result.";
        self.choice(&mut parameters, "quality", "Quality", effort, self.qualities.iter().map(text));
        let frames = [("firstFrame", "First frame", WITH_FIRST_FRAME), ("lastFrame", "Last frame", WITH_LAST_FRAME)];
        for (name, label, takes) in frames {
            let takes: Vec<Capability> = all.iter().copied().filter(|it| takes.contains(it)).collect();
            if !takes.is_empty() {
                let description = "An image handle or a public https URL.";
                let frame = self.parameter(name, label, description, ModelParameterType::String);
                parameters.push(ModelParameter { required: takes == *all, capabilities: takes, ..frame });
            }
        }
        let seconds = self.durations.iter().map(|value| Value::from(*value));
        self.choice(&mut parameters, "durationSeconds", "Duration", "Seconds.", seconds);
        let ratios = self.aspect_ratios.iter().map(text);
        self.choice(&mut parameters, "aspectRatio", "Aspect ratio", "Shape of the video.", ratios);
        let resolutions = self.resolutions.iter().map(text);
        self.choice(&mut parameters, "resolution", "Resolution", "Size of the video.", resolutions);
        if self.audio_optional {
            let description = "Whether the video has sound.";
            parameters.push(self.parameter("generateAudio", "Sound", description, ModelParameterType::Boolean));
        }
        parameters
    }

    /// A parameter of every capability with arbitrary values.
    fn parameter(&self, name: &str, label: &str, description: &str, kind: ModelParameterType) -> ModelParameter {
        ModelParameter {
            name: name.into(),
            label: label.into(),
            description: description.into(),
            kind,
            required: false,
            min: None,
            max: None,
            options: Vec::new(),
            capabilities: self.capabilities.clone(),
        }
    }

    /// Adds a parameter with these numbers or texts as values, unless there are none.
    fn choice(
        &self,
        parameters: &mut Vec<ModelParameter>,
        name: &str,
        label: &str,
        description: &str,
        values: impl Iterator<Item = Value>,
    ) {
        let options: Vec<ModelParameterOption> = values.map(option).collect();
        let Some(first) = options.first() else { return };
        let number = first.value.is_number();
        let kind = if number { ModelParameterType::Integer } else { ModelParameterType::String };
        parameters.push(ModelParameter { options, ..self.parameter(name, label, description, kind) });
    }
}

/// An option that is its own label.
fn option(value: Value) -> ModelParameterOption {
    ModelParameterOption {
        label: value.as_str().map_or_else(|| value.to_string(), str::to_owned),
        value,
        description: None,
    }
}
