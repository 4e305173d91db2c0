//! Which models there are: data, built in and extended by the operator (`CANVAS_MODEL_CATALOGUE`).
//!
//! **Guarantee.** A catalogue that loads is usable: every entry is complete, unambiguous and within the contract's
//! ranges. **Mechanism.** JSON with no unknown fields, then rules over each entry; the built-in files go through the
//! same door, in a test and at every start. **Reason.** Vendors retire models monthly (providers.md 0.1), and a typing
//! error in an operator's file should stop the start with one line, not a job a week later.

mod entry;
mod parameters;
mod rules;

pub(crate) use rules::parse_box;

use std::sync::Arc;

use domain::model::ProviderKind;
use serde::Deserialize;

pub use entry::{
    DurationField, DurationForm, Entry, EntryType, Range, ReferenceField, ReferenceForm, Runtime, SizeField, SizeForm,
    Wire,
};

/// The built-in files, in the order in which models are listed and defaults are chosen (decisions 10.5).
const BUILT_IN: [(&str, &str); 8] = [
    ("managed", include_str!("../../catalogue/managed.json")),
    ("openai", include_str!("../../catalogue/openai.json")),
    ("google", include_str!("../../catalogue/google.json")),
    ("replicate", include_str!("../../catalogue/replicate.json")),
    ("fal", include_str!("../../catalogue/fal.json")),
    ("stability", include_str!("../../catalogue/stability.json")),
    ("black-forest-labs", include_str!("../../catalogue/black-forest-labs.json")),
    ("runway", include_str!("../../catalogue/runway.json")),
];

/// Why a catalogue cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    /// It is no JSON of the right form.
    #[error("the model catalogue `{name}` is malformed")]
    Form {
        /// The file.
        name: String,
        /// Where and what.
        #[source]
        source: serde_json::Error,
    },
    /// An entry breaks a rule.
    #[error("the model catalogue `{name}`: {provider}/{model}: {rule}")]
    Rule {
        /// The file.
        name: String,
        /// The entry's provider.
        provider: ProviderKind,
        /// The entry's id.
        model: String,
        /// What it should have been.
        rule: String,
    },
    /// It retires a model that is not there: a typing error, or a file that has outlived its purpose.
    #[error("the model catalogue `{name}` retires `{model}`, which is not there")]
    Retires {
        /// The file.
        name: String,
        /// `<provider>/<id>`.
        model: String,
    },
}

/// A catalogue file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// New entries, and whole replacements of those with the same provider and id.
    #[serde(default)]
    models: Vec<Entry>,
    /// `<provider>/<id>` of entries that go.
    #[serde(default)]
    retired: Vec<String>,
}

/// All models, by provider in the order of their files. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Catalogue {
    entries: Arc<[Arc<Entry>]>,
}

impl Catalogue {
    /// The built-in models.
    ///
    /// # Errors
    ///
    /// Never in a build whose tests have passed.
    pub fn built_in() -> Result<Self, CatalogueError> {
        let empty = Self { entries: Arc::new([]) };
        BUILT_IN.iter().try_fold(empty, |catalogue, (name, json)| catalogue.extended(name, json))
    }

    /// These models, changed by a file of the operator's: `{"models": [...], "retired": ["<provider>/<id>"]}`. An entry
    /// replaces the one of the same provider and id in its place; a new one comes after those there are.
    ///
    /// # Errors
    ///
    /// [`CatalogueError`] names the file and the first thing wrong with it.
    pub fn extended(&self, name: &str, json: &str) -> Result<Self, CatalogueError> {
        let file: File =
            serde_json::from_str(json).map_err(|source| CatalogueError::Form { name: name.to_owned(), source })?;
        let mut entries = self.entries.to_vec();
        for model in file.retired {
            let place = entries.iter().position(|entry| format!("{}/{}", entry.provider, entry.id) == model);
            let Some(place) = place else {
                return Err(CatalogueError::Retires { name: name.to_owned(), model });
            };
            entries.remove(place);
        }
        let mut named = std::collections::HashSet::new();
        for entry in file.models {
            let verdict = match named.insert((entry.provider, entry.id.clone())) {
                true => rules::check(&entry),
                false => Err("is there twice".to_owned()),
            };
            verdict.map_err(|rule| CatalogueError::Rule {
                name: name.to_owned(),
                provider: entry.provider,
                model: entry.id.clone(),
                rule,
            })?;
            let same = |other: &Arc<Entry>| (other.provider, &other.id) == (entry.provider, &entry.id);
            match entries.iter().position(same) {
                Some(place) => entries[place] = Arc::new(entry),
                None => entries.push(Arc::new(entry)),
            }
        }
        Ok(Self { entries: entries.into() })
    }

    /// Every entry.
    pub fn entries(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.entries.iter()
    }

    /// The models of a provider, in catalogue order. Those of `managed` differ by what runs behind it: see
    /// [`Entry::runtime`].
    pub fn of(&self, provider: ProviderKind) -> impl Iterator<Item = &Arc<Entry>> {
        self.entries.iter().filter(move |entry| entry.provider == provider)
    }

    /// The model of a provider with this id.
    pub fn find(&self, provider: ProviderKind, id: &str) -> Option<&Arc<Entry>> {
        self.of(provider).find(|entry| entry.id == id)
    }
}

#[cfg(test)]
mod tests;
