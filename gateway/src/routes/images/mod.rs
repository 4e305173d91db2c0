//! Image generation, edit and variations (specification, Images; decisions 10).
//!
//! The three take the same fields and differ in what they need of them. A request goes through three rooms: [`body`] judges
//! it by itself (400), [`elements`] loads the Elements that it names, [`plan`] judges it by what is stored (409, 422) inside
//! the transaction that accepts it.

mod body;
pub mod edit;
mod elements;
pub(super) mod fit;
pub mod generate;
mod plan;
mod references;
mod rules;
pub mod variations;

use domain::account::Scope;
use domain::job::JobOperation;

use self::body::ImageStart;
use self::elements::Elements;
use self::plan::Generation;
use crate::extract::caller::{Caller, GenerateImages};
use crate::extract::json::Unread;
use crate::observe::Trace;
use crate::problem::Result;
use crate::state::App;

/// Starts `operation`.
async fn start(
    app: &App,
    caller: &Caller<GenerateImages>,
    operation: JobOperation,
    body: Unread,
    trace: Trace,
) -> Result {
    let request: ImageStart = body.json_by(|value| rules::violations(app, &caller.account, operation, value)).await?;
    if !request.elements.is_empty() {
        caller.require(&[Scope::ElementRead])?;
    }
    let elements = Elements::load(app, &caller.account, &request.elements).await?;
    Generation::judge(app, &caller.account, operation, request, elements, trace)?.run(app, caller).await
}
