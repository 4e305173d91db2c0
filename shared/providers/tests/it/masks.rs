//! Tests of masks in the forms of the vendors.

use domain::job::FailureCode;
use domain::model::Capability;
use providers::catalogue::MaskHandling;
use providers::{MASK_BYTES_MAX, MaskForm, Order, OrderImage};
use testkit::providers::Vendor;

use crate::harness::{harness, image, mask, order, vendors};

#[tokio::test]
async fn every_model_with_masks_is_sent_one_in_its_form() {
    for vendor in vendors() {
        let harness = harness(vendor).await;
        let form = harness.provider.mask_form();
        let mask = match form {
            MaskForm::White => mask(),
            MaskForm::Transparent => image(),
        };
        let mut sent = 0;
        for model in harness.models.iter().filter(|model| model.mask == Some(MaskHandling::Native)) {
            let order = Order {
                mask: Some(mask.clone()),
                ..order(model, Capability::ImageEdit, &format!("{}-{sent}", model.id.replace('/', "-")))
            };
            let made = harness.make(&order).await;
            assert!(made.is_ok(), "{vendor:?} {}: {made:?}", model.id);
            sent += 1;
            let submits = harness.simulator.submits();
            let submit = submits.last().unwrap();
            assert_eq!((submit.mask.as_ref(), submit.images), (Some(&mask.bytes), 2), "{vendor:?} {}", model.id);
        }
        let has_masks = !matches!(vendor, Vendor::Google | Vendor::Runway);
        assert_eq!(sent > 0, has_masks, "{vendor:?}");
    }
}

#[tokio::test]
async fn a_mask_of_another_form_is_refused_by_the_vendor() {
    for vendor in vendors() {
        let harness = harness(vendor).await;
        let wrong = match harness.provider.mask_form() {
            MaskForm::White => image(),
            MaskForm::Transparent => mask(),
        };
        let native = harness.models.iter().find(|model| model.mask == Some(MaskHandling::Native));
        let Some(model) = native else { continue };
        let order = Order { mask: Some(wrong), ..order(model, Capability::ImageEdit, "job-1") };
        let failure = harness.make(&order).await.unwrap_err().failure();
        assert_eq!(failure.code, FailureCode::ProviderRejected, "{vendor:?}: {failure:?}");
        assert!(harness.simulator.submits().iter().all(|submit| !submit.accepted), "{vendor:?}");
    }
}

#[tokio::test]
async fn an_order_with_a_mask_that_its_model_does_not_take_is_not_sent() {
    for vendor in vendors() {
        let harness = harness(vendor).await;
        let mut orders = Vec::new();
        for model in harness.models.iter().filter(|model| !model.capabilities[0].is_video()) {
            let plain = order(model, model.capabilities[0], "job-1");
            match model.mask {
                Some(MaskHandling::Native) if model.mask_required => orders.push(Order { mask: None, ..plain.clone() }),
                Some(MaskHandling::Native) => {}
                _ => orders.push(Order { mask: Some(mask()), ..plain.clone() }),
            }
            let large = OrderImage { bytes: vec![0; MASK_BYTES_MAX + 1].into(), ..mask() };
            orders.push(Order { mask: Some(large), ..plain });
        }
        for order in orders {
            let failure = harness.make(&order).await.unwrap_err().failure();
            assert_eq!(failure.code, FailureCode::ProviderRejected, "{vendor:?} {}", order.model.id);
        }
        assert!(harness.simulator.submits().is_empty(), "{vendor:?}");
    }
}
