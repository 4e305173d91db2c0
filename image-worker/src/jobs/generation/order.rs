//! The order for a provider, and the provenance of a node (docs/reference/images.md#generated-asset-and-provenance).

use std::sync::Arc;

use domain::job::JobOperation;
use domain::model::Capability;
use providers::{Entry, Order, Picture, Shape};
use serde_json::{Map, Value, json};

use super::Run;

impl Run<'_> {
    /// The order for the output at `position`. It is equal in every attempt except for the bytes of
    /// its pictures, which a lookup does not need.
    pub(super) fn order(&self, model: &Arc<Entry>, position: i32, references: Vec<Picture>) -> Order {
        let request = self.request;
        Order {
            model: model.clone(),
            capability: self.capability(),
            prompt: request.prompt.clone(),
            references,
            shape: Shape::Image { size: request.size.clone(), quality: request.quality.clone() },
            idempotency_key: format!("{}-{position}", self.task_run.job.id.0),
        }
    }

    /// The capability that the order needs of the model.
    pub(super) fn capability(&self) -> Capability {
        match self.task_run.job.operation {
            JobOperation::Generate | JobOperation::Action => Capability::ImageGenerate,
            JobOperation::Edit => Capability::ImageEdit,
            JobOperation::Variations => Capability::ImageVariations,
        }
    }

    /// The prompt that a provider receives.
    pub(super) fn instruction(&self) -> String {
        let roles = self.request.references.iter().map(|reference| reference.role);
        providers::instruction(self.capability(), &self.request.prompt, roles)
    }

    /// The node's `provenance`, with the prompt that was sent (docs/reference/canvases.md#provenance). The time is filled in when
    /// the job completes.
    pub(super) fn provenance(&self, sent: &str) -> Map<String, Value> {
        let request = self.request;
        let references: Vec<Value> = request
            .references
            .iter()
            .map(|reference| match reference.role {
                Some(role) => json!({"handle": reference.handle, "role": role}),
                None => json!({"handle": reference.handle}),
            })
            .collect();
        let always = [
            ("kind", json!(if self.is_step { "recipe" } else { "generated" })),
            ("run", json!(self.task_run.job.id.run_handle())),
            ("operation", json!(self.task_run.job.operation)),
            ("provider", json!(request.model.provider)),
            ("model", json!(request.model.id)),
            ("references", references.into()),
            ("elements", json!(request.elements)),
        ];
        let given = [
            ("prompt", Some(sent).filter(|sent| !sent.is_empty())),
            ("size", request.size.as_deref()),
            ("quality", request.quality.as_deref()),
        ];
        let given = given.into_iter().filter_map(|(key, value)| Some((key, json!(value?))));
        let stand_in = request.model.is_stand_in().then_some(("standIn", json!(true)));
        always.into_iter().chain(given).chain(stand_in).map(|(key, value)| (key.to_owned(), value)).collect()
    }
}
