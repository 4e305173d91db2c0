//! The adapters, one module per provider.

mod black_forest_labs;
mod chat;
mod fal;
mod google;
mod managed;
mod openai;
mod replicate;
mod runway;
mod stability;

use domain::model::ProviderKind;
use serde_json::Value;

use crate::catalogue::Runtime;
use crate::protocol::Protocol;

/// The protocol of a self-hosted server (`CANVAS_MANAGED_PROTOCOL`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ManagedProtocol {
    /// OpenAI's image routes: LocalAI, vLLM-Omni, SGLang, stable-diffusion.cpp.
    #[default]
    OpenAi,
    /// The Comfy API v2: comfy-api-proxy in front of a ComfyUI, or Comfy's cloud.
    Comfy,
}

impl ManagedProtocol {
    /// The protocol with this name: `openai` or `comfy`.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "openai" => Some(ManagedProtocol::OpenAi),
            "comfy" => Some(ManagedProtocol::Comfy),
            _ => None,
        }
    }

    /// The value of [`Entry::runtime`](crate::Entry::runtime) of its models.
    pub fn runtime(self) -> Runtime {
        match self {
            ManagedProtocol::OpenAi => Runtime::OpenAi,
            ManagedProtocol::Comfy => Runtime::Comfy,
        }
    }
}

/// The adapter for a kind of provider.
pub(crate) fn for_kind(kind: ProviderKind, managed: ManagedProtocol) -> &'static dyn Protocol {
    match (kind, managed) {
        (ProviderKind::Managed, ManagedProtocol::OpenAi) => &managed::Compatible,
        (ProviderKind::Managed, ManagedProtocol::Comfy) => &managed::Comfy,
        (ProviderKind::OpenAi, _) => &openai::OpenAi,
        (ProviderKind::Google, _) => &google::Google,
        (ProviderKind::Replicate, _) => &replicate::Replicate,
        (ProviderKind::Fal, _) => &fal::Fal,
        (ProviderKind::Stability, _) => &stability::Stability,
        (ProviderKind::BlackForestLabs, _) => &black_forest_labs::BlackForestLabs,
        (ProviderKind::Runway, _) => &runway::Runway,
    }
}

/// The first text that is not empty at one of `paths` (JSON pointers). It is the provider's message in one of its
/// known forms.
fn words<'a>(json: &'a Value, paths: &[&str]) -> &'a str {
    let mut texts = paths.iter().filter_map(|path| json.pointer(path).and_then(Value::as_str));
    texts.find(|text| !text.trim().is_empty()).unwrap_or_default()
}
