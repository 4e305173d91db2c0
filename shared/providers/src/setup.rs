//! What the operator set up: which models there are, and what runs the managed ones (decisions 12.2).
//!
//! Gateway and workers load it alike, at their start, so that what is offered is what is run. What is wrong with it stops
//! the start with one line that names the variable.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use domain::model::ProviderKind;
use service::config::Config;
use url::Url;

use crate::catalogue::{Catalogue, CatalogueError, Entry, EntryType, Runtime};
use crate::key::ApiKey;
use crate::order::Media;
use crate::protocols::{self, ManagedProtocol};
use crate::provider::Endpoint;

/// The variables, as they were read.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    /// `CANVAS_MODEL_CATALOGUE`.
    pub catalogue: Option<&'a Path>,
    /// `CANVAS_MANAGED_URL`.
    pub url: Option<&'a Url>,
    /// `CANVAS_MANAGED_PROTOCOL`.
    pub protocol: &'a str,
    /// `CANVAS_MANAGED_KEY`.
    pub key: Option<&'a str>,
}

impl<'a> From<&'a Config> for Settings<'a> {
    fn from(config: &'a Config) -> Self {
        Self {
            catalogue: config.model_catalogue.as_deref(),
            url: config.managed_url.as_ref(),
            protocol: &config.managed_protocol,
            key: config.managed_key.as_ref().map(|key| key.expose()),
        }
    }
}

/// Why a process does not start with these settings.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The file cannot be read.
    #[error("CANVAS_MODEL_CATALOGUE: {} cannot be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The file is no catalogue.
    #[error("CANVAS_MODEL_CATALOGUE: it is refused")]
    Catalogue(#[from] CatalogueError),
    /// No such protocol.
    #[error("CANVAS_MANAGED_PROTOCOL: expected openai or comfy")]
    Protocol,
    /// The key cannot stand in a header.
    #[error("CANVAS_MANAGED_KEY: expected visible ASCII characters")]
    Key,
}

/// The server of the operator's own that runs the managed models.
#[derive(Clone, Debug)]
pub struct Server {
    /// Where it is.
    pub base: Url,
    /// What it speaks.
    pub protocol: ManagedProtocol,
    /// What it asks for, if anything.
    pub key: Option<ApiKey>,
}

impl Server {
    /// How it is spoken to.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint {
            kind: ProviderKind::Managed,
            managed: self.protocol,
            base: Some(self.base.clone()),
            key: self.key.clone(),
        }
    }
}

/// The models and what runs the managed ones. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Every model, whether or not it can be run here; [`models`](Self::models) tells.
    pub catalogue: Catalogue,
    /// What runs the managed models; `None`: the embedded runtime.
    pub server: Option<Server>,
}

impl Setup {
    /// Loads what the settings name.
    ///
    /// # Errors
    ///
    /// [`SetupError`] names the first variable that is wrong, and never a key.
    pub fn load<'a>(settings: impl Into<Settings<'a>>) -> Result<Self, SetupError> {
        let settings = settings.into();
        let mut catalogue = Catalogue::built_in()?;
        if let Some(path) = settings.catalogue {
            let unreadable = |source| SetupError::Unreadable { path: path.to_owned(), source };
            let text = std::fs::read_to_string(path).map_err(unreadable)?;
            catalogue = catalogue.extended(&path.display().to_string(), &text)?;
        }
        let protocol = ManagedProtocol::named(settings.protocol).ok_or(SetupError::Protocol)?;
        let key = settings.key.map(|key| ApiKey::new(key).ok_or(SetupError::Key)).transpose()?;
        let server = settings.url.map(|base| Server { base: base.clone(), protocol, key });
        Ok(Self { catalogue, server })
    }

    /// The models of a provider that can be run here, in catalogue order.
    ///
    /// A managed model runs on the runtime that it is written for: the embedded one, or the server that takes its place.
    /// The embedded runtime's texts stay beside a server's: one that makes pictures commonly makes no texts.
    pub fn models(&self, provider: ProviderKind) -> impl Iterator<Item = &Arc<Entry>> {
        self.catalogue.of(provider).filter(|entry| self.runs(entry))
    }

    fn runs(&self, entry: &Entry) -> bool {
        let managed = self.server.as_ref().map(|server| server.protocol);
        let is_embedded = entry.runtime == Runtime::Embedded;
        let protocol = match (entry.provider, managed) {
            (ProviderKind::Managed, None) => return is_embedded,
            (ProviderKind::Managed, Some(_)) if is_embedded => return entry.kind == EntryType::Text,
            (ProviderKind::Managed, Some(protocol)) if entry.runtime != protocol.runtime() => return false,
            (provider, protocol) => protocols::of(provider, protocol.unwrap_or_default()),
        };
        match entry.kind {
            EntryType::Image => protocol.makes(Media::Picture),
            EntryType::Video => protocol.makes(Media::Video),
            EntryType::Text => protocol.writes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Settings<'_> = Settings { catalogue: None, url: None, protocol: "openai", key: None };

    fn managed(settings: Settings<'_>) -> Vec<String> {
        let setup = Setup::load(settings).expect("loads");
        setup.models(ProviderKind::Managed).map(|entry| entry.id.clone()).collect()
    }

    #[test]
    fn out_of_the_box_the_embedded_runtime_runs_the_managed_models() {
        assert_eq!(managed(NONE), ["sketch", "outline", "animatic"]);
    }

    #[test]
    fn a_server_runs_the_models_of_its_protocol_beside_the_embedded_texts() {
        let url = Url::parse("http://inference:8000").expect("a URL");
        let on = |protocol| managed(Settings { url: Some(&url), protocol, ..NONE });
        assert_eq!(on("openai"), ["outline", "sd-cpp-local", "llama-cpp-local"]);
        let videos = ["wan2.2-5b", "wan2.2-5b-i2v", "wan2.2-14b-flf"];
        assert_eq!(on("comfy"), [&["outline", "sdxl", "sdxl-img2img"][..], &videos].concat());
    }

    #[test]
    fn what_a_protocol_cannot_make_is_not_offered() {
        let video = r#"{"models": [{"id": "sora", "name": "Sora", "provider": "openai", "type": "video",
            "capabilities": ["video.generate"], "estimatedSeconds": 1, "promptMax": 1000}]}"#;
        let catalogue = Catalogue::built_in().and_then(|it| it.extended("x", video)).expect("is right");
        assert!(catalogue.find(ProviderKind::OpenAi, "sora").is_some());
        let text = r#"{"models": [{"id": "story", "name": "Story", "provider": "runway", "type": "text",
            "estimatedSeconds": 1, "promptMax": 1000}]}"#;
        let catalogue = catalogue.extended("x", text).expect("is right");
        let setup = Setup { catalogue, server: None };
        assert!(setup.models(ProviderKind::OpenAi).all(|entry| entry.id != "sora"));
        assert!(setup.models(ProviderKind::Runway).all(|entry| entry.id != "story"));
        assert!(setup.models(ProviderKind::OpenAi).any(|entry| entry.kind == EntryType::Text));
        assert!(setup.models(ProviderKind::Runway).any(|entry| entry.kind == EntryType::Video));
    }

    #[test]
    fn what_is_wrong_is_told_by_its_variable_and_no_key_is_shown() {
        let refused = |settings| Setup::load(settings).expect_err("wrong").to_string();
        let absent = Path::new("/nowhere/models.json");
        assert!(refused(Settings { catalogue: Some(absent), ..NONE }).starts_with("CANVAS_MODEL_CATALOGUE: "));
        assert!(refused(Settings { protocol: "grpc", ..NONE }).starts_with("CANVAS_MANAGED_PROTOCOL: "));
        let told = refused(Settings { key: Some("schlüssel"), ..NONE });
        assert!(told.starts_with("CANVAS_MANAGED_KEY: ") && !told.contains("schl"), "{told}");
    }
}
