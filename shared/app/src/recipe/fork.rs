//! Forks: an instance of a Recipe on a canvas, which runs nothing (docs/reference/recipes.md#fork-a-recipe).

use ::canvas::instance::{self, Filling, Ids, Instance};
use ::canvas::placement::Location;
use ::canvas::{Footprint, Options};
use db::PgConnection;
use domain::canvas::{ActivityType, Actor};
use domain::channel;
use domain::id::{AccountUid, RecipeId};
use domain::idempotency::StoredOutcome;
use domain::recipe::RecipeRecord;

use super::RequestedRecipe;
use super::ports::{hold, readable};
use crate::canvas::{self, CanvasEvent, ChangedCanvas, addition_refused};
use crate::command::{CanvasWrite, Command, Key, LockedCanvas};
use crate::{Error, Result};

/// Puts an instance of a Recipe on a canvas.
pub struct ForkRecipe<'a> {
    /// The canvas that is written to.
    pub target: CanvasWrite<'a>,
    pub key: Key<'a>,
    /// Actor of the activity entry.
    pub actor: Actor,
    pub recipe: &'a RecipeId,
    /// Its version; the newest when omitted.
    pub version: Option<&'a str>,
    /// Left edge of the instance in canvas units; right of the content when omitted.
    pub x: Option<f64>,
    /// Top edge of the instance in canvas units; level with the content when omitted.
    pub y: Option<f64>,
    /// Where the instance goes otherwise.
    pub location: Location,
}

impl Command for ForkRecipe<'_> {
    type Subject = RequestedRecipe;
    type Reply = ChangedCanvas;

    fn account(&self) -> &AccountUid {
        self.target.account
    }

    fn key(&self) -> Option<Key<'_>> {
        Some(self.key)
    }

    fn channels(&self) -> Vec<String> {
        vec![channel::canvas(self.target.canvas)]
    }

    async fn authorize(&self, conn: &mut PgConnection) -> Result<RequestedRecipe> {
        RequestedRecipe::find(conn, self.target.account, self.recipe).await
    }

    fn writes_to(&self) -> Option<CanvasWrite<'_>> {
        Some(self.target)
    }

    async fn execute(
        &self,
        conn: &mut PgConnection,
        requested: RequestedRecipe,
        locked: Option<LockedCanvas>,
    ) -> Result<ChangedCanvas> {
        let account = self.target.account;
        let canvas = self.target.lock_checked(conn, locked, &Footprint::of_nodes(self.location.nodes())).await?;
        let mut graph = crate::graphs::load(conn, &canvas.record).await?;
        let recipe = requested.version(conn, account, self.version).await?;
        let refused = self.location.violations(&graph);
        if !refused.is_empty() {
            return Err(Error::Unprocessable(refused));
        }
        let fillings = defaults(conn, account, &recipe).await?;
        hold(conn, &fillings).await?;
        let definition = &recipe.definition;
        let instance = Instance {
            recipe: &recipe.id,
            version: recipe.version,
            definition,
            ids: &Ids::generate(definition.inputs.len(), definition.outputs.len()),
            fillings: &fillings,
            x: self.x,
            y: self.y,
            location: &self.location,
        };
        let options = Options { agent: self.actor.surface.is_agent(), force: false };
        let applied =
            instance::place(&mut graph, &instance, options).map_err(|refused| addition_refused(refused, ""))?;
        let summary = format!("forked {}", definition.name);
        let event = CanvasEvent { kind: ActivityType::RecipeForked, actor: &self.actor, summary };
        canvas::write(conn, canvas, graph, applied, ("canvasId", event)).await
    }

    fn outcome(&self, reply: &ChangedCanvas) -> Option<StoredOutcome> {
        Some(reply.outcome())
    }

    async fn replay(&self, conn: &mut PgConnection, outcome: StoredOutcome) -> Result<ChangedCanvas> {
        canvas::replayed(conn, &self.target, outcome).await
    }
}

/// The saved defaults of a Recipe's inputs. A default image that the account can no longer read leaves its port empty.
async fn defaults(conn: &mut PgConnection, account: &AccountUid, recipe: &RecipeRecord) -> Result<Vec<Filling>> {
    let mut fillings = Vec::new();
    for input in &recipe.definition.inputs {
        fillings.push(readable(conn, account, input.default.clone()).await?);
    }
    Ok(fillings)
}
