//! Masks of edits (docs/reference/images.md#masks).
//!
//! **Guarantee.** Where the mask keeps, an output has the pixels of the source, whatever a model made. An edit that cannot be
//! masked, because the mask changes nothing or a file is damaged, fails before anything is submitted.
//!
//! **Mechanism.** Before the submit, a decoder reads source and mask ([`Prepare`]) and makes the files that a model with masks is
//! sent. Afterwards, a decoder lays the model's image over the source ([`Lay`]). Both are pure functions of the stored files, so
//! that interrupted work gives the same output.

use bytes::Bytes;
use decoder::{Made, Order, Refusal, Work};
use domain::asset::AssetRecord;
use domain::job::{Failure, FailureCode, Mask, MaskMode};
use domain::origin::DigitalSourceType;
use providers::catalogue::same_shape;
use providers::{MASK_BYTES_MAX, MaskForm, OrderImage};
use raster::header::decoded_bytes_max;
use raster::mask::{Channel, Masking, Plane, edit, edit_bytes};
use raster::{Bounds, ErrorKind, Format, FormatChoice, Header, Orientation, Resize, Size};
use serde::{Deserialize, Serialize};
use worker::decode::{header_of_made, refusal};
use worker::files::Content;
use worker::image::{QUALITY, SHRINKS_MAX, SIDE_MAX, unusable};
use worker::marks::marked;
use worker::{Error, Interrupt};

use super::Run;
use super::image::{GeneratedImage, MaskOutcome};

/// Bytes per decoded pixel.
const PIXEL_BYTES: u64 = 4;

/// The longest side of what the embedded runtime draws for a masked edit.
const DRAWN_SIDE: f64 = 1536.0;

/// The files that a model with masks is sent.
pub(super) struct MaskFiles {
    /// The source, if it is not the stored file.
    pub(super) source: Option<(Bytes, Format)>,
    pub(super) mask: OrderImage,
}

impl Run<'_> {
    /// The stored asset of the mask.
    async fn mask_asset(&self, mask: &Mask) -> Result<AssetRecord, Interrupt> {
        let mut connection = self.task_run.generator.worker.connection().await?;
        let asset = db::assets::get(&mut connection, &mask.asset).await?;
        Ok(asset.ok_or_else(|| unusable(&mask.handle, "it is gone"))?)
    }

    /// Checks source and mask, and makes the files of a model that is sent the mask in a form, with a source of at most this many
    /// bytes; `None` without a form.
    pub(super) async fn prepare_mask(
        &self,
        mask: &Mask,
        source: &AssetRecord,
        sent: Option<(MaskForm, usize)>,
    ) -> Result<Option<MaskFiles>, Interrupt> {
        let worker = &self.task_run.generator.worker;
        let asset = self.mask_asset(mask).await?;
        let (source_form, mask_form) = (form(source), form(&asset));
        // The plane twice and its file, and the source of another size and its file.
        let working = 4 * PIXEL_BYTES * source_form.1.pixels();
        let files = source.bytes.unsigned_abs() + asset.bytes.unsigned_abs();
        let decoded = |(format, size)| decoded_bytes_max(format, size);
        let bytes = 2 * files + decoded(source_form) + decoded(mask_form) + working;
        let memory = worker.pixels.reserve(bytes).await;
        let source = self.file(0, source).await?;
        let file = worker.get(asset.blob_key).await?.ok_or_else(|| unusable(&mask.handle, "it is gone"))?;
        let work = Prepare {
            reading: Reading::of(mask),
            has_alpha: sent.map(|(form, _)| form == MaskForm::Transparent),
            source_bytes_max: sent.map_or(0, |(_, bytes_max)| bytes_max),
        };
        let order = Order::new(self.task_run.job.account.as_str(), work, vec![source, file]);
        let made = self.task_run.unless_canceled(memory.decode(order, |_, made| made)).await??;
        let mut made = made.map_err(|why| Failure::new(FailureCode::ActionInputInvalid, why))?.into_iter();
        let Some(mask) = made.next() else { return Ok(None) };
        let source = match made.next() {
            None => None,
            Some(source) => Some((Bytes::from(source.clone()), header_of_made(&source)?.format)),
        };
        let mask = OrderImage { bytes: mask.into(), media_type: Format::Png.media_type(), role: None };
        Ok(Some(MaskFiles { source, mask }))
    }

    /// Lays an image that a model made over the source; `None` if it has another shape, or a file is gone.
    pub(super) async fn masked(
        &self,
        mask: &Mask,
        made: &Bytes,
        header: &Header,
        origin: Option<DigitalSourceType>,
    ) -> Result<Option<GeneratedImage>, Error> {
        let worker = &self.task_run.generator.worker;
        let Some(source) = self.request.references.first() else { return Ok(None) };
        let mut connection = worker.connection().await?;
        let source = db::assets::get(&mut connection, &source.asset).await?;
        let asset = db::assets::get(&mut connection, &mask.asset).await?;
        drop(connection);
        let (Some(source), Some(asset)) = (source, asset) else { return Ok(None) };
        let (source_form, mask_form) = (form(&source), form(&asset));
        // The embedded runtime draws in the shape of the source, as far as its design allows.
        if !self.request.model.is_stand_in() && !same_shape(sides(header.size()), sides(source_form.1)) {
            return Ok(None);
        }
        let files = source.bytes.unsigned_abs() + asset.bytes.unsigned_abs() + made.len() as u64;
        let bytes = 2 * files + edit_bytes(source_form, mask_form, header);
        let memory = worker.pixels.reserve(bytes).await;
        let (source, file) = (worker.get(source.blob_key).await?, worker.get(asset.blob_key).await?);
        let (Some(source), Some(file)) = (source, file) else { return Ok(None) };
        let packet = worker.marks.packet(origin, made);
        let order = Order::new(
            self.task_run.job.account.as_str(),
            Lay { reading: Reading::of(mask) },
            vec![source, file, made.clone()],
        );
        let laid = memory.decode(order, move |_, made| {
            let Some(made) = made.into_iter().next() else { return Ok(None) };
            let header = header_of_made(&made)?;
            Ok::<_, Error>(Some((header, Content::new(marked(made, packet.as_deref())))))
        });
        let Ok(laid) = laid.await? else { return Ok(None) };
        Ok(laid?.map(|(Header { format, width, height, .. }, content)| GeneratedImage {
            content: content.into(),
            format,
            width,
            height,
            origin,
            mask: if mask.composite { MaskOutcome::Applied } else { MaskOutcome::NotWanted },
        }))
    }

    /// The size of a model's image that is drawn by the embedded runtime for a masked edit: the shape of the source, within the sides
    /// that its design supports.
    pub(super) fn drawn_size(source: &AssetRecord) -> Size {
        let (_, size) = form(source);
        let longest = f64::from(size.width.max(size.height));
        let side = |side: u32| (f64::from(side) * DRAWN_SIDE / longest).round().clamp(256.0, DRAWN_SIDE) as u32;
        Size::new(side(size.width), side(size.height))
    }

    /// The size that is requested of a model: that of the job, or for a masked edit one of the shape of its source.
    pub(super) fn size(&self, model: &providers::Entry, source: Option<&AssetRecord>) -> Option<String> {
        let like = || {
            let source = source.filter(|_| self.request.mask.is_some())?;
            model.size_like(sides(form(source).1)).map(str::to_owned)
        };
        self.request.size.clone().or_else(like)
    }
}

/// Format and size of a stored image.
fn form(asset: &AssetRecord) -> (Format, Size) {
    let source = crate::jobs::action::source(asset);
    (source.format, source.size)
}

fn sides(size: Size) -> (u32, u32) {
    (size.width, size.height)
}

/// How a mask is read.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Reading {
    mode: MaskMode,
    invert: bool,
    feather: u32,
}

impl Reading {
    fn of(mask: &Mask) -> Self {
        // Without a composite, the embedded runtime draws within the mask up to its edge.
        Self { mode: mask.mode, invert: mask.invert, feather: if mask.composite { mask.feather } else { 0 } }
    }

    fn masking(self) -> Masking {
        let channel = match self.mode {
            MaskMode::Auto => Channel::Auto,
            MaskMode::Alpha => Channel::Alpha,
            MaskMode::Luminance => Channel::Luminance,
        };
        Masking { channel, invert: self.invert, feather: self.feather }
    }
}

/// Reads a source and its mask, and makes the mask of a model, and its source if that is not sent as it is stored.
#[derive(Serialize, Deserialize)]
pub(crate) struct Prepare {
    reading: Reading,
    /// `true` for a mask with alpha, `false` for a gray one; `None` if the model is sent none.
    has_alpha: Option<bool>,
    source_bytes_max: usize,
}

impl Work for Prepare {
    const NAME: &'static str = "prepare-mask";

    fn run(self, files: &[Bytes], _: &mut dyn FnMut(u32)) -> Made {
        let of = |what: &'static str| {
            move |error: raster::Error| match refusal(error) {
                Refusal::Input(why) => Refusal::Input(format!("the {what} cannot be used: {why}")),
                internal @ Refusal::Internal(_) => internal,
            }
        };
        let (file, mask) = (&files[0], &files[1]);
        let header = raster::decode(file).and_then(|_| Ok(raster::probe(file)?));
        let header = header.map_err(|error| of("source")(error.into()))?;
        let plane = Plane::decode(mask, &self.reading.masking(), header.size());
        let plane = plane.map_err(|error| of("mask")(error.into()))?;
        if plane.changes_nothing() {
            return Err(Refusal::Input("the mask changes nothing: it is black or opaque everywhere".to_owned()));
        }
        let Some(has_alpha) = self.has_alpha else { return Ok(Vec::new()) };
        let encoded = |plane: &Plane| {
            let encoded = if has_alpha { plane.transparent_png() } else { plane.white_png() };
            encoded.map_err(refusal)
        };
        let choice = match header.format {
            Format::Png | Format::Gif => FormatChoice::Png,
            _ if has_alpha => FormatChoice::Png,
            Format::Jpeg => FormatChoice::Jpeg,
            Format::Webp => FormatChoice::Webp,
        };
        let is_sent_format = if has_alpha { header.format == Format::Png } else { header.format != Format::Gif };
        if is_sent_format && header.orientation == Orientation::Normal && file.len() <= self.source_bytes_max {
            let mask = encoded(&plane)?;
            if mask.len() <= MASK_BYTES_MAX {
                return Ok(vec![mask]);
            }
        }
        let mut side = header.size().width.max(header.size().height).min(SIDE_MAX);
        for _ in 0..SHRINKS_MAX {
            let Some(bounds) = Bounds::new(Some(side), Some(side)) else { break };
            let resize = Resize { enlarge: false, ..Resize::new(bounds) };
            let source = raster::transform_resize(file, &resize, choice, QUALITY).map_err(of("source"))?;
            let mask = encoded(&plane.clone().scaled(Size::new(source.width, source.height)))?;
            let share = |length: usize, most: usize| length as f64 / most as f64;
            let excess = share(source.bytes.len(), self.source_bytes_max).max(share(mask.len(), MASK_BYTES_MAX));
            if excess <= 1.0 {
                return Ok(vec![mask, source.bytes]);
            }
            side = (f64::from(side) / excess.sqrt() * 0.9) as u32;
        }
        Err(Refusal::Input("the source cannot be made small enough".to_owned()))
    }
}

/// Lays the image of a model over its source. Makes nothing if one of the files cannot be used.
#[derive(Serialize, Deserialize)]
pub(crate) struct Lay {
    reading: Reading,
}

impl Work for Lay {
    const NAME: &'static str = "lay";

    fn run(self, files: &[Bytes], _: &mut dyn FnMut(u32)) -> Made {
        match edit(&files[0], &files[1], &files[2], &self.reading.masking()) {
            Ok(output) => Ok(vec![output.bytes]),
            Err(error) if error.kind() == ErrorKind::Internal => Err(refusal(error)),
            Err(_) => Ok(Vec::new()),
        }
    }
}

#[cfg(test)]
mod tests {
    use raster::{Bitmap, Channels, Color, Encoding, OutputFormat, probe};

    use super::*;

    /// Noise of this size, which no codec compresses well.
    fn noise(width: u32, height: u32, format: OutputFormat) -> Bytes {
        let mut state = 1_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        let pixels = (0..width * height * 3).map(|_| next()).collect();
        let image = Bitmap::new(Size::new(width, height), Channels::Rgb, pixels).expect("as many as fit");
        raster::encode(&image, &Encoding { format, quality: 95, flatten: Color::WHITE }).expect("encodes").into()
    }

    /// A mask of one gray.
    fn plain(gray: u8) -> Bytes {
        let image = Bitmap::filled(Size::new(30, 20), Channels::Rgb, Color { r: gray, g: gray, b: gray, a: 255 });
        let encoding = Encoding { format: OutputFormat::Png, quality: 95, flatten: Color::WHITE };
        raster::encode(&image, &encoding).expect("encodes").into()
    }

    fn prepared(source: &Bytes, mask: Bytes, has_alpha: Option<bool>, source_bytes_max: usize) -> Made {
        let reading = Reading { mode: MaskMode::Auto, invert: false, feather: 8 };
        Prepare { reading, has_alpha, source_bytes_max }.run(&[source.clone(), mask], &mut |_| ())
    }

    #[test]
    fn a_mask_that_changes_nothing_or_is_damaged_is_refused_before_it_costs_anything() {
        let source = noise(60, 40, OutputFormat::Jpeg);
        for has_alpha in [None, Some(false), Some(true)] {
            for (source, mask, why) in [
                (&source, plain(0), "changes nothing"),
                (&source, Bytes::from_static(b"none"), "the mask cannot be used"),
                (&source.slice(..source.len() / 2), plain(255), "the source cannot be used"),
            ] {
                let Err(Refusal::Input(refused)) = prepared(source, mask, has_alpha, 1 << 20) else {
                    panic!("{why}: is refused")
                };
                assert!(refused.contains(why), "{refused}");
            }
        }
        assert_eq!(prepared(&source, plain(1), None, 0), Ok(Vec::new()));
    }

    #[test]
    fn a_model_is_sent_a_mask_of_the_size_of_its_source() {
        let (jpeg, png) = (noise(600, 400, OutputFormat::Jpeg), noise(600, 400, OutputFormat::Png));
        for (source, has_alpha, is_kept) in
            [(&jpeg, false, true), (&png, false, true), (&png, true, true), (&jpeg, true, false)]
        {
            let made = prepared(source, plain(255), Some(has_alpha), 4 << 20).expect("is made");
            assert_eq!(made.len(), if is_kept { 1 } else { 2 }, "alpha: {has_alpha}");
            let mask = probe(&made[0]).expect("an image");
            assert_eq!((mask.format, mask.size()), (Format::Png, Size::new(600, 400)));
            let pixel = raster::decode(&made[0]).expect("decodes").pixel(0, 0).expect("is within");
            assert_eq!(pixel, [255, 255, 255, if has_alpha { 0 } else { 255 }]);
            if let Some(source) = made.get(1) {
                assert_eq!(
                    probe(source).map(|it| (it.format, it.size())).ok(),
                    Some((Format::Png, Size::new(600, 400)))
                );
            }
        }
    }

    #[test]
    fn source_and_mask_become_smaller_together() {
        let source = noise(600, 400, OutputFormat::Png);
        for has_alpha in [true, false] {
            let made = prepared(&source, plain(255), Some(has_alpha), source.len() / 4).expect("is made");
            let [mask, smaller] = &made[..] else { panic!("both are made") };
            let (mask, header) = (probe(mask).expect("an image"), probe(smaller).expect("an image"));
            assert!(smaller.len() <= source.len() / 4 && header.width < 600);
            assert_eq!(mask.size(), header.size());
        }
    }
}
