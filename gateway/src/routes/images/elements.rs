//! The Elements of an image request (docs/reference/images.md#elements-in-a-request).

use domain::Violation;
use domain::element::{ElementRef, VersionRecord};
use domain::graph::Role;
use domain::id::{AccountUid, AssetHandle};

use crate::problem::Result;
use crate::source_health::Sources;
use crate::state::App;

/// The parts of an Element version that guide an image.
struct Element {
    name: String,
    guidelines: Option<String>,
    images: Vec<AssetHandle>,
    role: Role,
}

/// The Elements of a request.
pub struct Elements {
    /// `element:<id>@v<n>` of each, as the request names it.
    pub handles: Vec<String>,
    /// Violations: unknown Elements, and Elements with missing images.
    pub refused: Vec<Violation>,
    found: Vec<Element>,
}

impl Elements {
    /// Loads the versions that `named` names, all of them owned by `account`, and checks their images in the object store. This
    /// happens before the transaction that starts the work, which uses Postgres alone. The result stays valid, because a version
    /// never changes and an asset is never deleted.
    pub async fn load(app: &App, account: &AccountUid, named: &[String]) -> Result<Self> {
        let mut elements = Self { handles: named.to_vec(), refused: Vec::new(), found: Vec::new() };
        if named.is_empty() {
            return Ok(elements);
        }
        let mut versions = Vec::new();
        let mut connection = app.connection().await?;
        for (index, text) in named.iter().enumerate() {
            let version = match text.parse() {
                Ok(ElementRef { id, version: Some(version) }) => {
                    db::elements::version(&mut connection, account, &id, version).await?
                }
                _ => None,
            };
            match version {
                Some(version) => versions.push((index, version)),
                None => elements.refuse(index, "is not a version of an Element of the account"),
            }
        }
        drop(connection);
        let sources = Sources::check(app, account, versions.iter().map(|(_, version)| &version.content)).await?;
        for (index, version) in versions {
            // When the object store does not answer, the job itself detects a missing image.
            match sources.health(&version.content).unavailable_source_asset_ids.first() {
                Some(missing) => elements.refuse(index, &format!("its image `{missing}` is unavailable")),
                None => elements.found.push(Element::from_version(version)),
            }
        }
        Ok(elements)
    }

    fn refuse(&mut self, index: usize, message: &str) {
        self.refused.push(Violation::new(format!("elements[{index}]"), message));
    }

    /// Their images with roles, in the order of the request.
    pub fn images(&self) -> impl Iterator<Item = (&AssetHandle, Role)> {
        self.found.iter().flat_map(|element| element.images.iter().map(|image| (image, element.role)))
    }

    /// `prompt` with the guidelines of each Element under its name. With guidelines, `bare` replaces an empty prompt.
    pub fn guide(&self, prompt: &str, bare: &str) -> String {
        let guidelines: Vec<String> = self
            .found
            .iter()
            .filter_map(|element| Some((&element.name, element.guidelines.as_deref()?)))
            .filter(|(_, guidelines)| !guidelines.trim().is_empty())
            .map(|(name, guidelines)| format!("{name}:\n{guidelines}"))
            .collect();
        let prompt = match (prompt.trim(), &*guidelines) {
            ("", [_, ..]) => bare,
            _ => prompt,
        };
        std::iter::once(prompt.to_owned()).chain(guidelines).collect::<Vec<_>>().join("\n\n")
    }
}

impl Element {
    fn from_version(version: VersionRecord) -> Self {
        let VersionRecord { owner, content, .. } = version;
        let image = |id| AssetHandle { owner: owner.clone(), id };
        Self {
            role: content.kind.reference_role(),
            images: content.sources.into_iter().map(image).collect(),
            name: content.name,
            guidelines: content.guidelines,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elements(guidelines: &[Option<&str>]) -> Elements {
        let element = |guidelines: &Option<&str>| Element {
            name: "Studio".into(),
            guidelines: guidelines.map(str::to_owned),
            images: Vec::new(),
            role: Role::Style,
        };
        Elements { handles: Vec::new(), refused: Vec::new(), found: guidelines.iter().map(element).collect() }
    }

    #[test]
    fn guidelines_follow_the_prompt_under_the_name() {
        let guided = elements(&[Some("Soft light."), None, Some("  ")]).guide("A chair", "bare");
        assert_eq!(guided, "A chair\n\nStudio:\nSoft light.");
        assert_eq!(elements(&[None]).guide("A chair", "bare"), "A chair");
    }

    #[test]
    fn guidelines_never_stand_alone() {
        assert_eq!(elements(&[Some("Soft light.")]).guide("", "bare"), "bare\n\nStudio:\nSoft light.");
        assert_eq!(elements(&[None]).guide("", "bare"), "", "an empty prompt stays empty");
    }
}
