//! The order for a provider, and the provenance of a node (docs/reference/images.md#generated-asset-and-provenance).

use std::sync::Arc;

use domain::job::{JobOperation, Reference, ReferenceInput};
use domain::metadata::{Provenance, ProvenanceKind};
use domain::model::Capability;
use providers::{Entry, Order, OrderImage, Shape};

use super::Run;
use super::image::MaskOutcome;

/// The images of an order, and the size that is requested.
#[derive(Clone, Default)]
pub(super) struct OrderImages {
    pub(super) references: Vec<OrderImage>,
    /// The mask, if the model is sent one.
    pub(super) mask: Option<OrderImage>,
    pub(super) size: Option<String>,
}

impl Run<'_> {
    /// The order for the output at `position`. It is equal in every attempt except for the bytes of
    /// its images, which a lookup does not need.
    pub(super) fn order(&self, model: &Arc<Entry>, position: i32, images: OrderImages) -> Order {
        let request = self.request;
        Order {
            model: model.clone(),
            capability: self.capability(),
            prompt: request.prompt.clone(),
            references: images.references,
            mask: images.mask,
            shape: Shape::Image { size: images.size, quality: request.quality.clone() },
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
    pub(super) fn provenance(&self, sent: &str, mask: MaskOutcome) -> Provenance {
        let request = self.request;
        let reference = |it: &Reference| ReferenceInput { handle: it.handle.clone(), role: it.role };
        Provenance {
            elements: request.elements.clone(),
            mask: request.mask.as_ref().map(|mask| mask.handle.clone()),
            mask_not_applied: (mask == MaskOutcome::NotApplied).then_some(true),
            model: Some(request.model.id.clone()),
            operation: Some(self.task_run.job.operation.into()),
            prompt: Some(sent).filter(|sent| !sent.is_empty()).map(str::to_owned),
            provider: Some(request.model.provider),
            quality: request.quality.clone(),
            references: request.references.iter().map(reference).collect(),
            run: Some(self.task_run.job.id.into()),
            size: request.size.clone(),
            stand_in: request.model.is_stand_in().then_some(true),
            ..Provenance::new(if self.is_step { ProvenanceKind::Recipe } else { ProvenanceKind::Generated })
        }
    }
}
