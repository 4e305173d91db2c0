//! The canvas that a request addresses: loaded, visible, permitted (house rule 4; decisions 1.3, 1.4).

use axum::extract::FromRequestParts;
use domain::Violation;
use domain::canvas::{AccessRole, CanvasRecord};
use domain::id::{AccountUid, CanvasHandle, CanvasRef};
use http::request::Parts;

use super::caller::{Caller, Grant, admit};
use super::path::PathText;
use super::query::QueryReader;
use crate::problem::{Problem, Result};
use crate::state::App;

/// The caller, and the canvas of the path as they may see it. The canvas is judged when the handler asks for it, after
/// the body (decisions 1.2).
pub struct OnCanvas<G> {
    /// Who asks.
    pub caller: Caller<G>,
    named: Result<CanvasHandle>,
    found: Option<(CanvasRecord, AccessRole)>,
}

impl<G: Grant> FromRequestParts<App> for OnCanvas<G> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self> {
        let Ok(params) = PathText::from_request_parts(parts, app).await;
        let named = params.parameter::<CanvasRef>("canvasId");
        let mut query = QueryReader::new(&parts.uri);
        let owner = query.owner();
        let named = match (named, query.finish()) {
            (Ok(named), Ok(())) => with_owner(named, owner),
            (Err(Problem::Invalid(mut path)), Err(Problem::Invalid(query))) => {
                path.extend(query);
                Err(Problem::Invalid(path))
            }
            (Err(problem), _) | (_, Err(problem)) => Err(problem),
        };
        let (caller, found) = admit(parts, app, named.as_ref().ok()).await?;
        let named = named.map(|named| named.resolve(&caller.account));
        Ok(Self { caller, named, found })
    }
}

impl<G> OnCanvas<G> {
    /// What keeps path and query from naming a canvas, to be told together with what is wrong with the body.
    pub fn violations(&self) -> Vec<Violation> {
        match &self.named {
            Err(Problem::Invalid(violations)) => violations.clone(),
            _ => Vec::new(),
        }
    }

    /// The canvas, readable, and its handle: malformed is 400, absent or not shared is 404.
    pub fn readable(&self) -> Result<(&CanvasHandle, &CanvasRecord, AccessRole)> {
        let handle = self.named.as_ref().map_err(|_| Problem::Invalid(self.violations()))?;
        let (record, role) = self.found.as_ref().ok_or(Problem::NotFound("canvas"))?;
        Ok((handle, record, *role))
    }
}

/// Joins a reference with `ownerUid`; an owner in the handle that differs is 400 (decisions 18.2).
pub fn with_owner(canvas: CanvasRef, owner: Option<AccountUid>) -> Result<CanvasRef> {
    match (&canvas.owner, owner) {
        (Some(named), Some(owner)) if *named != owner => {
            Err(Problem::invalid("ownerUid", "differs from the owner that the handle names"))
        }
        (None, Some(owner)) => Ok(CanvasRef { owner: Some(owner), id: canvas.id }),
        _ => Ok(canvas),
    }
}

/// Refuses a role that may not write.
pub fn require_writer(role: AccessRole) -> Result<()> {
    match role.may_write() {
        true => Ok(()),
        false => Err(Problem::Forbidden("a viewer of a canvas may not change it".into())),
    }
}
