//! The model catalog: data that is built in and can be extended by the operator
//! (`CANVAS_MODEL_CATALOGUE`).
//!
//! **Guarantee.** A catalog that loads is usable: every entry is complete, unambiguous and within
//! the contract's ranges.
//!
//! **Mechanism.** The files are JSON without unknown fields, and each entry must satisfy a set of
//! rules. The built-in files pass the same checks, in a test and at every start.
//!
//! **Reason.** Vendors retire models monthly. A typing error in an operator's file must stop the
//! start with one line instead of failing a job a week later.

mod entry;
mod parameters;
mod rules;

pub(crate) use rules::parse_box;

use std::sync::Arc;

use domain::model::ProviderKind;
use serde::Deserialize;

pub use entry::{
    DurationField, DurationForm, Entry, EntryType, MaskHandling, Range, ReferenceField, ReferenceForm, Runtime,
    SizeField, SizeForm, Wire, same_shape,
};

/// The built-in file of a kind of provider.
const fn built_in(provider: ProviderKind) -> &'static str {
    match provider {
        ProviderKind::Managed => include_str!("../../catalogue/managed.json"),
        ProviderKind::OpenAi => include_str!("../../catalogue/openai.json"),
        ProviderKind::Google => include_str!("../../catalogue/google.json"),
        ProviderKind::Replicate => include_str!("../../catalogue/replicate.json"),
        ProviderKind::Fal => include_str!("../../catalogue/fal.json"),
        ProviderKind::Stability => include_str!("../../catalogue/stability.json"),
        ProviderKind::BlackForestLabs => include_str!("../../catalogue/black-forest-labs.json"),
        ProviderKind::Runway => include_str!("../../catalogue/runway.json"),
    }
}

/// The reason why a catalog is unusable.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    /// The file is not JSON of the required structure.
    #[error("the model catalog `{name}` is malformed")]
    Form {
        /// The name of the file.
        name: String,
        #[source]
        source: serde_json::Error,
    },
    /// An entry violates a rule.
    #[error("the model catalog `{name}`: {provider}/{model}: {rule}")]
    Rule {
        /// The name of the file.
        name: String,
        provider: ProviderKind,
        /// The id of the entry.
        model: String,
        /// The rule, worded to follow the name of the entry.
        rule: String,
    },
    /// The file retires a model that does not exist, because of a typing error or because it is
    /// outdated.
    #[error("the model catalog `{name}` retires `{model}`, which does not exist")]
    Retires {
        /// The name of the file.
        name: String,
        /// The model as `<provider>/<id>`.
        model: String,
    },
}

/// The structure of a catalog file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// New entries, and replacements of entries with the same provider and id.
    #[serde(default)]
    models: Vec<Entry>,
    /// Entries to remove, as `<provider>/<id>`.
    #[serde(default)]
    retired: Vec<String>,
}

/// All models, by provider in the order of their files. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Catalogue {
    entries: Arc<[Arc<Entry>]>,
}

impl Catalogue {
    /// The built-in models, in the order of lists and defaults.
    ///
    /// # Errors
    ///
    /// None in a build whose tests have passed.
    pub fn built_in() -> Result<Self, CatalogueError> {
        let empty = Self { entries: Arc::new([]) };
        ProviderKind::ALL.iter().try_fold(empty, |catalogue, kind| catalogue.extended(kind.as_str(), built_in(*kind)))
    }

    /// Applies an operator's file: `{"models": [...], "retired": ["<provider>/<id>"]}`. An entry
    /// replaces the one with the same provider and id in its position. A new one is appended.
    ///
    /// # Errors
    ///
    /// [`CatalogueError`] names the file and the first problem.
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
                false => Err("is a duplicate".to_owned()),
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

    pub fn entries(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.entries.iter()
    }

    /// The models of a provider, in catalog order. Those of `managed` depend on the server that runs them: see
    /// [`Entry::runtime`].
    pub fn for_provider(&self, provider: ProviderKind) -> impl Iterator<Item = &Arc<Entry>> {
        self.entries.iter().filter(move |entry| entry.provider == provider)
    }

    /// The model of a provider with this id.
    pub fn find(&self, provider: ProviderKind, id: &str) -> Option<&Arc<Entry>> {
        self.for_provider(provider).find(|entry| entry.id == id)
    }
}

#[cfg(test)]
mod tests;
