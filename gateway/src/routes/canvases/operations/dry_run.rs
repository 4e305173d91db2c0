//! A dry run of a batch (docs/reference/operations.md#dry-runs): the functions of the write on the same graph, without a write.

use app::Base;
use canvas::{Batch, Footprint, Options};
use domain::id::CanvasHandle;
use domain::review::DryRun;

use crate::extract::caller::{Caller, ReadCanvas};
use crate::problem::{Problem, Result};
use crate::state::App;

/// A batch to validate.
pub(super) struct BatchDryRun<'a> {
    pub(super) caller: &'a Caller<ReadCanvas>,
    pub(super) handle: &'a CanvasHandle,
    pub(super) batch: &'a Batch,
    pub(super) force: bool,
    /// The revision that the batch is based on; the current one when omitted.
    pub(super) base: Option<Base>,
}

impl BatchDryRun<'_> {
    /// Computes what the batch would do and leave, from one snapshot that blocks no writer. Also returns whether its base revision
    /// is stale.
    pub(super) async fn run(&self, app: &App) -> Result<(DryRun, bool)> {
        let mut snapshot = db::pool::snapshot(&app.pool).await?;
        let (record, role) = db::canvases::find(&mut snapshot, &self.caller.account, self.handle)
            .await?
            .ok_or(Problem::NotFound("canvas"))?;
        let stale_base = match &self.base {
            Some(base) => base.check(&mut snapshot, &record, &Footprint::named_by(self.batch)).await?,
            None => None,
        };
        let mut graph = match app::canvas::load_for_restore(&mut snapshot, &record, self.batch).await? {
            Some(graph) => graph,
            None => app.graphs.copy(&mut snapshot, &record).await?,
        };
        app::canvas::read_images(&mut snapshot, &record, &self.caller.account, self.batch, &mut graph).await?;
        if let Some(stale) = &stale_base {
            stale.admit(&record, &Footprint::from_batch(self.batch, &graph))?;
        }
        let options = Options { agent: self.caller.surface.is_agent(), force: self.force };
        let applied = canvas::apply(&mut graph, self.batch, options).map_err(app::Error::from)?;
        let assets = app::canvas::stored_assets(&mut snapshot, &graph).await?;
        let works = db::jobs::owing(&mut snapshot, record.key, &self.caller.account).await?;
        let answer = DryRun {
            canvas: record.summary(Some(role)),
            proposal: applied.proposal(self.batch),
            destructive_impact: applied.destructive_impact(),
            validation: canvas::validate(&graph, &applied.touched, &assets, &works),
        };
        Ok((answer, stale_base.is_some()))
    }
}
