//! The images that guide an output.

use bytes::Bytes;
use domain::asset::AssetRecord;
use providers::OrderImage;
use worker::Interrupt;
use worker::image::{fitted, unusable};

use super::Run;

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
