//! A self-hosted server: `CANVAS_MANAGED_URL`, with the protocol in `CANVAS_MANAGED_PROTOCOL`
//! (`docs/reference/providers.md#managed`).

mod comfy;
mod compatible;

pub(super) use comfy::Comfy;
pub(super) use compatible::Compatible;
