//! The images that guide an output.

use bytes::Bytes;
use domain::asset::AssetRecord;
use providers::catalogue::MaskHandling;
use providers::{Entry, Media, OrderImage, Provider};
use worker::Interrupt;
use worker::image::{fitted, unusable};

use super::Run;
use super::order::OrderImages;

impl Run<'_> {
    /// The stored assets of the references, in order.
    pub(super) async fn assets(&self) -> Result<Vec<AssetRecord>, Interrupt> {
        let mut connection = self.task_run.generator.worker.connection().await?;
        let mut assets = Vec::with_capacity(self.request.references.len());
        for reference in &self.request.references {
            let asset = db::assets::get(&mut connection, &reference.asset).await?;
            assets.push(asset.ok_or_else(|| unusable(&reference.handle, "it is gone"))?);
        }
        Ok(assets)
    }

    /// The file of the reference at `index`.
    pub(super) async fn file(&self, index: usize, asset: &AssetRecord) -> Result<Bytes, Interrupt> {
        let file = self.task_run.generator.worker.get(asset.blob_key).await?;
        Ok(file.ok_or_else(|| unusable(&self.request.references[index].handle, "it is gone"))?)
    }

    /// The images of an order for `model` at a provider, from the stored assets of the references.
    pub(super) async fn order_images(
        &self,
        assets: &[AssetRecord],
        model: &Entry,
        provider: &Provider,
    ) -> Result<OrderImages, Interrupt> {
        let bytes_max = provider.capabilities(Media::Image).image_bytes_max;
        let mut references = self.images(assets, bytes_max).await?;
        let size = self.size(model, assets.first());
        let (Some(mask), Some(source)) = (&self.request.mask, assets.first()) else {
            return Ok(OrderImages { references, mask: None, size });
        };
        let sent = (model.mask == Some(MaskHandling::Native)).then(|| (provider.mask_form(), bytes_max));
        let Some(files) = self.prepare_mask(mask, source, sent).await? else {
            return Ok(OrderImages { references, mask: None, size });
        };
        if let (Some(first), Some((bytes, format))) = (references.first_mut(), files.source) {
            (first.bytes, first.media_type) = (bytes, format.media_type());
        }
        Ok(OrderImages { references, mask: Some(files.mask), size })
    }

    /// The references in a form that a provider accepts: PNG, JPEG or WebP of at most `bytes_max` each.
    pub(super) async fn images(&self, assets: &[AssetRecord], bytes_max: usize) -> Result<Vec<OrderImage>, Interrupt> {
        let mut images = Vec::with_capacity(assets.len());
        for (index, (asset, reference)) in assets.iter().zip(&self.request.references).enumerate() {
            let refuse = |why: String| unusable(&reference.handle, why);
            let file = self.file(index, asset).await?;
            let header = raster::probe(&file).map_err(|error| refuse(error.to_string()))?;
            let (pixels, account) = (&self.task_run.generator.worker.pixels, &self.task_run.job.account);
            let fitting = fitted(pixels, account, file, &header, bytes_max);
            let (bytes, format) = self.task_run.unless_canceled(fitting).await??.map_err(refuse)?;
            images.push(OrderImage { bytes, media_type: format.media_type(), role: reference.role });
        }
        Ok(images)
    }
}
