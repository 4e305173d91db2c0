//! A server of the operator's own (decisions 12.2): `CANVAS_MANAGED_URL`, spoken to as `CANVAS_MANAGED_PROTOCOL` says.

mod comfy;
mod compatible;

pub(super) use comfy::Comfy;
pub(super) use compatible::Compatible;
