//! Image generation, edit and variations (docs/reference/images.md).
//!
//! The three requests have the same fields and differ in what is required. A request passes three stages: [`rules`] checks it
//! alone (400), [`elements`] loads the Elements that it names, [`plan`] checks it against stored state (409, 422) inside the
//! transaction that accepts it.

mod body;
pub mod edit;
mod elements;
pub mod generate;
mod plan;
mod references;
mod rules;
pub mod variations;

use domain::account::Scope;
use domain::job::JobOperation;
use http::HeaderMap;

use self::body::ImageStart;
use self::elements::Elements;
use self::plan::Generation;
use crate::extract::caller::{Caller, GenerateImages};
use crate::extract::json::JsonBody;
use crate::extract::prefer;
use crate::observe::Trace;
use crate::problem::Result;
use crate::start::Accepted;
use crate::state::App;

/// Starts `operation`.
async fn start(
    app: &App,
    caller: &Caller<GenerateImages>,
    operation: JobOperation,
    headers: &HeaderMap,
    body: JsonBody,
    trace: Trace,
) -> Result {
    let check = |request: ImageStart| request.check(&caller.account, operation, &app.guard);
    let request = body.checked(check).await?;
    if !request.elements.is_empty() {
        caller.require(&[Scope::ElementRead])?;
    }
    let elements = Elements::load(app, &caller.account, &request.elements).await?;
    let lenient = prefer::lenient(headers);
    let start = Generation::start(app, caller, operation, request, elements, lenient, trace);
    crate::start::start(app, caller, start, Accepted::Job).await
}
