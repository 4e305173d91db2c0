//! The canvas that a request addresses: loaded, visible, permitted (house rule 4; decisions 1.3, 1.4).

use axum::extract::FromRequestParts;
use domain::Violation;
use domain::canvas::{AccessRole, CanvasRecord};
use domain::id::{AccountUid, CanvasHandle, CanvasRef};
use http::request::Parts;
use serde_json::Value;

use super::caller::{Caller, Grant, admit};
use super::owner::with_owner;
use super::path::PathText;
use super::query::QueryReader;
use crate::problem::{Problem, Result, both};
use crate::state::App;

/// The caller, and the canvas of the path as they may see it. The canvas is judged when the handler asks for it, after
/// the body (decisions 1.2).
pub struct OnCanvas<G> {
    /// Who asks.
    pub caller: Caller<G>,
    named: Result<CanvasHandle, Vec<Violation>>,
    found: Option<(CanvasRecord, AccessRole)>,
}

impl<G: Grant> FromRequestParts<App> for OnCanvas<G> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self> {
        let Ok(params) = PathText::from_request_parts(parts, app).await;
        let named = params.parameter::<CanvasRef>("canvasId");
        let mut query = QueryReader::new(&parts.uri);
        let owner = query.owner();
        let named = both(named, query.finish()).and_then(|(named, ())| with_owner(named, owner));
        let (caller, found) = admit(parts, app, named.as_ref().ok()).await?;
        let named = named.map(|named| named.resolve(&caller.account)).map_err(Problem::violations);
        Ok(Self { caller, named, found })
    }
}

impl<G> OnCanvas<G> {
    /// What keeps path and query from naming a canvas, to be told together with what is wrong with the body.
    pub fn violations(&self) -> Vec<Violation> {
        self.named.as_ref().err().cloned().unwrap_or_default()
    }

    /// What path and query name; malformed is 400.
    pub fn named(&self) -> Result<&CanvasHandle> {
        self.named.as_ref().map_err(|violations| Problem::Invalid(violations.clone()))
    }

    /// The canvas, readable, and its handle: malformed is 400, absent or not shared is 404.
    pub fn readable(&self) -> Result<(&CanvasHandle, &CanvasRecord, AccessRole)> {
        let handle = self.named()?;
        let (record, role) = self.found.as_ref().ok_or(Problem::NotFound("canvas"))?;
        Ok((handle, record, *role))
    }
}

/// The canvas that a body names by `canvasId` and `ownerUid`; malformed is 400.
pub fn canvas_of(canvas: &str, owner: Option<&str>, caller: &AccountUid) -> Result<CanvasHandle> {
    let canvas = CanvasRef::parse(canvas).map_err(|error| Problem::invalid("canvasId", error.to_string()));
    let owner = owner.map(AccountUid::parse).transpose();
    let (canvas, owner) = both(canvas, owner.map_err(|error| Problem::invalid("ownerUid", error.to_string())))?;
    Ok(with_owner(canvas, owner)?.resolve(caller))
}

/// What keeps `canvasId` and `ownerUid` of a body from naming a canvas together.
pub fn canvas_violations(body: &Value, caller: &AccountUid) -> Vec<Violation> {
    let Some(canvas) = body["canvasId"].as_str() else { return Vec::new() };
    canvas_of(canvas, body["ownerUid"].as_str(), caller).err().map(Problem::violations).unwrap_or_default()
}

/// Refuses a role that may not write.
pub fn require_writer(role: AccessRole) -> Result<()> {
    match role.may_write() {
        true => Ok(()),
        false => Err(Problem::Forbidden("a viewer of a canvas may not change it".into())),
    }
}
