//! The canvas that a request addresses: loaded, visible to the caller, permitted
//! (docs/reference/conventions.md#canvas-and-owner).

use axum::extract::FromRequestParts;
use domain::Violation;
use domain::canvas::{AccessRole, CanvasRecord};
use domain::id::{AccountUid, CanvasHandle, CanvasRef};
use http::request::Parts;

use super::caller::{Caller, Grant, admit};
use super::check::Check;
use super::owner::with_owner;
use super::path::PathText;
use super::query::{OwnerQuery, QueryReader};
use crate::problem::{Problem, Result, combine_violations};
use crate::state::App;

/// The caller, and the canvas of the path as the caller may see it. The handler checks the canvas after it has read the body,
/// because violations of the body are reported first (docs/reference/conventions.md#order-of-checks).
pub struct CanvasAccess<G> {
    pub caller: Caller<G>,
    named: Result<CanvasHandle, Vec<Violation>>,
    found: Option<(CanvasRecord, AccessRole)>,
}

impl<G: Grant> FromRequestParts<App> for CanvasAccess<G> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self> {
        let Ok(params) = PathText::from_request_parts(parts, app).await;
        let named = params.parameter::<CanvasRef>("canvasId");
        let named = combine_violations(named, owner_of(parts, &params));
        let named = named.and_then(|(named, owner)| with_owner(named, owner));
        let (caller, found) = admit(parts, app, named.as_ref().ok()).await?;
        let handle = |named: CanvasRef| match &found {
            Some((canvas, _)) => canvas.handle.clone(),
            None => named.resolve(&caller.account),
        };
        let named = named.map(handle).map_err(Problem::violations);
        Ok(Self { caller, named, found })
    }
}

/// The owner that a request names: in the path in the console, elsewhere in the query.
fn owner_of(parts: &Parts, params: &PathText) -> Result<Option<AccountUid>> {
    if params.has("ownerUid") {
        return params.parameter("ownerUid").map(Some);
    }
    let mut query = QueryReader::new(&parts.uri);
    let OwnerQuery { owner_uid: owner } = query.read().unwrap_or_default();
    query.finish().map(|()| owner)
}

impl<G> CanvasAccess<G> {
    /// Violations in path and query, to be reported together with those of the body.
    pub fn violations(&self) -> Vec<Violation> {
        self.named.as_ref().err().cloned().unwrap_or_default()
    }

    /// The handle in path and query; 400 when malformed.
    pub fn named(&self) -> Result<&CanvasHandle> {
        self.named.as_ref().map_err(|violations| Problem::Invalid(violations.clone()))
    }

    /// The canvas, its handle and the caller's role; 400 when malformed, 404 when absent or not shared with the caller.
    pub fn readable(&self) -> Result<(&CanvasHandle, &CanvasRecord, AccessRole)> {
        let handle = self.named()?;
        let (record, role) = self.found.as_ref().ok_or(Problem::NotFound("canvas"))?;
        Ok((handle, record, *role))
    }
}

/// The canvas that a body names by `canvasId` and `ownerUid`.
pub fn canvas_of(check: &mut Check, canvas: &str, owner: Option<&str>, caller: &AccountUid) -> Option<CanvasHandle> {
    let canvas = check.parsed("canvasId", CanvasRef::parse(canvas));
    let owner = owner.and_then(|owner| check.parsed("ownerUid", AccountUid::parse(owner)));
    match with_owner(canvas?, owner) {
        Ok(canvas) => Some(canvas.resolve(caller)),
        Err(problem) => {
            check.extend(problem.violations());
            None
        }
    }
}

/// Rejects a role that does not allow writes.
pub fn require_writer(role: AccessRole) -> Result<()> {
    match role.may_write() {
        true => Ok(()),
        false => Err(Problem::Forbidden("a viewer of a canvas may not change it".into())),
    }
}
