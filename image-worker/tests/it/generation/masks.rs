//! Tests of masked edits against the simulators, which repaint everything.

use std::time::Duration;

use bytes::Bytes;
use db::jobs::outputs::OutputState;
use domain::job::{FailureCode, JobDocument, JobOperation, JobStatus, Mask, MaskMode, Record};
use futures_util::future::join_all;
use raster::{Bitmap, Channels, Color, Encoding, OutputFormat, Size, decode, probe};
use serde_json::json;
use testkit::providers::Vendor;

use super::crashes::lose;
use super::fixture::{GenerationFixture, Wish, failure};
use crate::harness::PUBLIC_URL;

const EDIT: Wish<'_> = Wish { operation: JobOperation::Edit, prompt: "a red kite", targets: 1 };
/// Masks of each kind for each vendor.
const MASKS: u32 = 4;

/// A random number for each pixel and channel.
fn random(x: u32, y: u32, seed: u32) -> u32 {
    let mixed = (x.wrapping_mul(0x9e37_79b9) ^ y.wrapping_mul(0x85eb_ca6b) ^ seed).wrapping_mul(0xc2b2_ae35);
    (mixed ^ (mixed >> 15)).wrapping_mul(0x27d4_eb2f)
}

/// A file whose pixels are computed by a function.
fn file(size: Size, format: OutputFormat, pixel: impl Fn(u32, u32) -> [u8; 4]) -> Bytes {
    let pixels = (0..size.height).flat_map(|y| (0..size.width).map(move |x| (x, y))).flat_map(|(x, y)| pixel(x, y));
    let image = Bitmap::new(size, Channels::Rgba, pixels.collect()).expect("as many as fit");
    raster::encode(&image, &Encoding { format, quality: 90, flatten: Color::WHITE }).expect("encodes").into()
}

/// A source of noise with transparent parts, and a random mask of blocks that is read in this way.
struct Case {
    source: Bytes,
    mask: Bytes,
    size: Size,
    seed: u32,
    mode: MaskMode,
    invert: bool,
}

impl Case {
    fn new(seed: u32) -> Self {
        let size = Size::new(64, 64);
        let format = [OutputFormat::Png, OutputFormat::Webp, OutputFormat::Jpeg][seed as usize % 3];
        let (mode, invert) = (MaskMode::ALL[seed as usize % MaskMode::ALL.len()], seed.is_multiple_of(2));
        let source = file(size, format, |x, y| random(x, y, seed).to_be_bytes());
        let mask = file(size, OutputFormat::Png, |x, y| match (random(x / 8, y / 8, !seed).is_multiple_of(2), mode) {
            // Opaque, so that `auto` reads luminance.
            (is_white, MaskMode::Auto | MaskMode::Luminance) => gray(if is_white { 255 } else { 0 }, 255),
            (is_transparent, MaskMode::Alpha) => gray(9, if is_transparent { 0 } else { 255 }),
        });
        Self { source, mask, size, seed, mode, invert }
    }

    /// Returns `true` if the mask keeps a pixel.
    fn keeps(&self, x: u32, y: u32) -> bool {
        random(x / 8, y / 8, !self.seed).is_multiple_of(2) == self.invert
    }
}

/// A gray pixel.
fn gray(value: u8, alpha: u8) -> [u8; 4] {
    [value, value, value, alpha]
}

impl GenerationFixture {
    /// Uploads the files of a case, and makes the mask that of further edits.
    async fn take_mask(&mut self, case: &Case, feather: u32, composite: bool) {
        let upload = async |what: &str, file: &Bytes| {
            self.harness.upload(&format!("{what}-{}", case.seed), what, file.clone()).await
        };
        let (source, mask) = (upload("source", &case.source).await, upload("mask", &case.mask).await);
        let (mode, invert) = (case.mode, case.invert);
        self.mask = Some(Mask { handle: mask.to_string(), asset: mask, mode, invert, feather, composite });
        self.reference = source;
    }

    /// The decoded output of a job.
    async fn output(&self, record: &Record) -> Bitmap {
        let (_, file) = self.harness.stored(&record.outcome.images[0].asset).await;
        decode(&file).expect("decodes")
    }
}

/// The value of `images[].masked` of a job.
fn masked(record: &Record) -> Option<bool> {
    let JobDocument::Image(job) = record.document(PUBLIC_URL, |_| None) else { panic!("an image job") };
    job.images.expect("has images")[0].masked
}

/// Edits of random masks with this model: what each mask keeps is exactly the source's, and something else changes.
async fn check_outside(fixture: &mut GenerationFixture, model: Option<&str>, first: u32) {
    fixture.model_id = model.map(str::to_owned);
    let is_sent = fixture.sends_mask();
    for seed in first..first + MASKS {
        let case = Case::new(seed);
        fixture.take_mask(&case, seed % 5, true).await;
        let before = fixture.simulator.submits().len();
        let record = fixture.make(EDIT).await;
        let what = format!("{:?} {seed}: {:?}", record.request.model().map(|it| &it.id), record.outcome.failure);
        assert_eq!((record.status, masked(&record)), (JobStatus::Succeeded, Some(true)), "{what}");
        let (output, source) = (fixture.output(&record).await, decode(&case.source).expect("decodes"));
        assert_eq!(output.size(), case.size, "{what}");
        let is_webp = probe(&case.source).expect("an image").format == raster::Format::Webp;
        let wanted = if is_webp { "image/webp" } else { "image/png" };
        assert_eq!(record.outcome.images[0].media_type, wanted, "{what}");
        let mut changed = 0;
        for (x, y) in (0..case.size.height).flat_map(|y| (0..case.size.width).map(move |x| (x, y))) {
            if case.keeps(x, y) {
                assert_eq!(output.pixel(x, y), source.pixel(x, y), "{what}: {x} {y} is kept");
            } else {
                changed += u32::from(output.pixel(x, y) != source.pixel(x, y));
            }
        }
        assert!(changed > 100, "{what}: {changed} pixels changed");
        let provenance = fixture.provenance(&record.request.targets()[0]).await;
        let mask = fixture.mask.as_ref().expect("was taken");
        assert_eq!((&provenance["mask"], &provenance["maskNotApplied"]), (&json!(mask.handle), &json!(null)), "{what}");
        for submit in &fixture.simulator.submits()[before..] {
            assert_eq!(submit.mask.is_some(), is_sent, "{what}");
            let Some(sent) = submit.mask.as_deref() else { continue };
            let sent = decode(sent).expect("decodes");
            for (x, y) in [(0, 0), (63, 0), (0, 63), (63, 63), (32, 32)] {
                let [value, _, _, alpha] = sent.pixel(x, y).expect("is within");
                let expected = if case.keeps(x, y) { 0 } else { 255 };
                assert_eq!(value, expected, "{what}: white changes");
                assert!(alpha == 255 || alpha == 255 - expected, "{what}: what is transparent changes");
            }
        }
    }
}

async fn keep_outside(vendor: Vendor) {
    let mut fixture = GenerationFixture::new(vendor).await;
    let _running = fixture.work();
    check_outside(&mut fixture, None, 0).await;
    if let Some(model) = fixture.mask_model() {
        check_outside(&mut fixture, Some(&model), MASKS).await;
    }
    assert_eq!(fixture.simulator.leaks(), 0, "{vendor:?}");
}

testkit::for_every_vendor!(no_provider_changes_what_a_mask_keeps, keep_outside);

#[tokio::test]
async fn the_embedded_runtime_draws_in_the_mask_alone() {
    let mut fixture = GenerationFixture::embedded().await;
    let _running = fixture.work();
    check_outside(&mut fixture, None, 0).await;
    let case = Case::new(0);
    fixture.take_mask(&Case { seed: 100, ..case }, 8, false).await;
    let record = fixture.make(EDIT).await;
    assert_eq!((record.status, masked(&record)), (JobStatus::Succeeded, Some(false)), "{:?}", record.outcome.failure);
    let (output, source) = (fixture.output(&record).await, decode(&Case::new(0).source).expect("decodes"));
    let kept = Case::new(0);
    let keeps = (0..64).flat_map(|y| (0..64).map(move |x| (x, y))).filter(|(x, y)| kept.keeps(*x, *y));
    assert!(keeps.into_iter().all(|(x, y)| output.pixel(x, y) == source.pixel(x, y)));
}

#[tokio::test]
async fn a_mask_that_changes_nothing_is_refused_before_it_costs_anything() {
    for vendor in [Some(Vendor::OpenAi), Some(Vendor::Google), Some(Vendor::Comfy), None] {
        let mut fixture = match vendor {
            Some(vendor) => GenerationFixture::new(vendor).await,
            None => GenerationFixture::embedded().await,
        };
        let black = file(Size::new(64, 64), OutputFormat::Png, |_, _| [0, 0, 0, 255]);
        fixture.take_mask(&Case { mask: black, mode: MaskMode::Auto, invert: false, ..Case::new(0) }, 8, true).await;
        let _running = fixture.work();
        let record = fixture.make(EDIT).await;
        assert_eq!(failure(&record), (FailureCode::ActionInputInvalid, false), "{vendor:?}");
        let message = &record.outcome.failure.as_ref().expect("failed").message;
        assert!(message.contains("the mask changes nothing"), "{message}");
        assert_eq!((record.credit_cost, fixture.spent().await, fixture.simulator.submits().len()), (0, 0, 0));
    }
}

#[tokio::test]
async fn a_result_of_another_shape_is_placed_as_it_came_with_a_finding() {
    // The simulator makes squares of every edit without a size.
    for (height, composite, is_applied) in [(64, true, true), (63, true, false), (65, true, false), (64, false, false)]
    {
        let mut fixture = GenerationFixture::new(Vendor::Google).await;
        let size = Size::new(64, height);
        let noise = |seed| file(size, OutputFormat::Png, move |x, y| random(x, y, seed).to_be_bytes());
        let white = file(size, OutputFormat::Png, |x, _| gray(if x < 32 { 255 } else { 0 }, 255));
        let case = Case { source: noise(1), mask: white, size, mode: MaskMode::Auto, invert: false, seed: 1 };
        fixture.take_mask(&case, 8, composite).await;
        let _running = fixture.work();
        let record = fixture.make(EDIT).await;
        let what = format!("{height} {composite}: {:?}", record.outcome.failure);
        assert_eq!((record.status, masked(&record)), (JobStatus::Succeeded, Some(is_applied)), "{what}");
        let output = &record.outcome.images[0];
        let size = if is_applied { (64, 64) } else { (1024, 1024) };
        assert_eq!((output.width, output.height), size, "{what}");
        let provenance = fixture.provenance(&record.request.targets()[0]).await;
        let is_missed = composite && !is_applied;
        assert_eq!(provenance["maskNotApplied"], if is_missed { json!(true) } else { json!(null) }, "{what}");
        let review = record.outcome.completion_review.expect("has one");
        let codes = json!(review.advisory_finding_codes);
        let is_found = codes.as_array().expect("codes").contains(&json!("mask_not_applied"));
        assert_eq!(is_found, is_missed, "{what}: {codes}");
    }
}

#[tokio::test]
async fn a_worker_that_takes_over_makes_the_same_image_and_pays_once() {
    let cases = [Vendor::Fal, Vendor::BlackForestLabs, Vendor::Replicate, Vendor::Comfy].map(async |vendor| {
        let mut fixture = GenerationFixture::new(vendor).await;
        fixture.model_id = fixture.mask_model();
        fixture.take_mask(&Case::new(3), 8, true).await;
        let undisturbed = {
            let _running = fixture.work();
            fixture.make(EDIT).await
        };
        fixture.simulator.take(Duration::from_millis(300));
        let doomed = fixture.work();
        let id = fixture.start(EDIT).await;
        fixture.until_output_is(id, OutputState::Submitted).await;
        drop(doomed);
        lose(&fixture).await;
        let _running = fixture.work();
        let record = fixture.ended(id).await;
        assert_eq!(record.status, JobStatus::Succeeded, "{vendor:?}: {:?}", record.outcome.failure);
        assert_eq!((fixture.simulator.submits().len(), fixture.accepted(id, 0)), (2, 1), "{vendor:?}");
        let files =
            join_all([&undisturbed, &record].map(|it| fixture.harness.stored(&it.outcome.images[0].asset))).await;
        assert!(files[0].1 == files[1].1, "{vendor:?}: the same file");
    });
    join_all(cases).await;
}
