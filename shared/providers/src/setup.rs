//! The operator's settings: which models exist, and what runs the managed ones
//! (`docs/reference/providers.md#managed`).
//!
//! The gateway and the workers load them in the same way at their start, so that the offered models
//! are the ones that can run. An invalid setting stops the start with one line that names the
//! variable.

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

/// The values of the environment variables.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    /// The value of `CANVAS_MODEL_CATALOGUE`.
    pub catalogue: Option<&'a Path>,
    /// The value of `CANVAS_MANAGED_URL`.
    pub url: Option<&'a Url>,
    /// The value of `CANVAS_MANAGED_PROTOCOL`.
    pub protocol: &'a str,
    /// The value of `CANVAS_MANAGED_KEY`.
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

/// The reason why a process does not start with these settings.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The catalog file cannot be read.
    #[error("CANVAS_MODEL_CATALOGUE: cannot read {}", path.display())]
    Unreadable {
        /// The path of the file.
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// The file is not a valid catalog.
    #[error("CANVAS_MODEL_CATALOGUE: invalid")]
    Catalogue(#[from] CatalogueError),
    /// The protocol is unknown.
    #[error("CANVAS_MANAGED_PROTOCOL: expected openai or comfy")]
    Protocol,
    /// The key cannot be sent in a header.
    #[error("CANVAS_MANAGED_KEY: expected visible ASCII characters")]
    Key,
}

/// The self-hosted server that runs the managed models.
#[derive(Clone, Debug)]
pub struct Server {
    /// The base URL of the server.
    pub base: Url,
    /// The protocol of the server.
    pub protocol: ManagedProtocol,
    /// The key, if the server requires one.
    pub key: Option<ApiKey>,
}

impl Server {
    /// The endpoint of the server.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint {
            kind: ProviderKind::Managed,
            managed: self.protocol,
            base: Some(self.base.clone()),
            key: self.key.clone(),
        }
    }
}

/// The models, and what runs the managed ones. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Every model, whether or not it can run here. See [`models`](Self::models).
    pub catalogue: Catalogue,
    /// The server that runs the managed models; `None` if the embedded runtime does.
    pub server: Option<Server>,
}

impl Setup {
    /// Loads the settings.
    ///
    /// # Errors
    ///
    /// [`SetupError`] names the first invalid variable, and never contains a key.
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

    /// The models of a provider that can run here, in catalog order.
    ///
    /// A managed model runs on the runtime that it is written for: the embedded runtime, or the
    /// server that replaces it. The text models of the embedded runtime remain available in
    /// addition to a server, because servers for images usually do not write texts.
    pub fn models(&self, provider: ProviderKind) -> impl Iterator<Item = &Arc<Entry>> {
        self.catalogue.for_provider(provider).filter(|entry| self.runs(entry))
    }

    fn runs(&self, entry: &Entry) -> bool {
        let managed = self.server.as_ref().map(|server| server.protocol);
        let is_embedded = entry.runtime == Runtime::Embedded;
        let protocol = match (entry.provider, managed) {
            (ProviderKind::Managed, None) => return is_embedded,
            (ProviderKind::Managed, Some(_)) if is_embedded => return entry.kind == EntryType::Text,
            (ProviderKind::Managed, Some(protocol)) if entry.runtime != protocol.runtime() => return false,
            (provider, protocol) => protocols::for_kind(provider, protocol.unwrap_or_default()),
        };
        match entry.kind {
            EntryType::Image => protocol.makes(Media::Image),
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
        let images = ["sdxl", "sdxl-img2img", "sdxl-inpaint"];
        let videos = ["wan2.2-5b", "wan2.2-5b-i2v", "wan2.2-14b-flf"];
        assert_eq!(on("comfy"), [&["outline"][..], &images, &videos].concat());
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
    fn what_is_wrong_is_reported_by_its_variable_and_no_key_is_shown() {
        let refused = |settings| Setup::load(settings).expect_err("wrong").to_string();
        let absent = Path::new("/nowhere/models.json");
        assert!(refused(Settings { catalogue: Some(absent), ..NONE }).starts_with("CANVAS_MODEL_CATALOGUE: "));
        assert!(refused(Settings { protocol: "grpc", ..NONE }).starts_with("CANVAS_MANAGED_PROTOCOL: "));
        let reported = refused(Settings { key: Some("schlüssel"), ..NONE });
        assert!(reported.starts_with("CANVAS_MANAGED_KEY: ") && !reported.contains("schl"), "{reported}");
    }
}
