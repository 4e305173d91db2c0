use bytes::Bytes;
use domain::id::AssetHandle;
use domain::job::{JobOperation, JobStatus};
use raster::{Bitmap, Channels, Color, Encoding, OutputFormat, Size, metadata};
use testkit::photo::{AUTHOR, PLACE, with_place};
use testkit::providers::Vendor;

use super::fixture::{GenerationFixture, Wish};
use crate::harness::Harness;

/// Stores a photograph with a place as an upload does: the file without it, and the original.
async fn photo(harness: &Harness) -> AssetHandle {
    let image = Bitmap::new(Size::new(64, 48), Channels::Rgb, [10, 200, 30].repeat(64 * 48)).expect("as many as fit");
    let encoding = Encoding { format: OutputFormat::Jpeg, quality: 85, flatten: Color::WHITE };
    let photo = with_place(&raster::encode(&image, &encoding).expect("encodes"));
    let cleaned = metadata::examine(&photo).expect("is in few places").expect("is private");
    let file = metadata::rewrite(&photo, cleaned);
    harness.upload("original", "photo.jpg", Bytes::from(photo)).await;
    let handle = harness.upload("photo", "photo.jpg", Bytes::from(file)).await;
    harness
        .execute(
            "UPDATE assets a SET mime_type = 'image/jpeg', metadata_removed = '{location}', original_blob = o.blob_key,
                 original_mime_type = 'image/jpeg', original_bytes = o.bytes, original_reason = 'private-metadata'
             FROM assets o WHERE o.id = 'original' AND a.id = 'photo'",
        )
        .await;
    handle
}

async fn send_photos(vendor: Vendor) {
    let mut fixture = GenerationFixture::new(vendor).await;
    fixture.reference = photo(&fixture.harness).await;
    fixture.simulator.keep_bodies();
    let _running = fixture.work();
    for operation in [JobOperation::Edit, JobOperation::Variations] {
        if fixture.can(operation) {
            let prompt = if operation == JobOperation::Edit { "a red kite" } else { "" };
            let record = fixture.make(Wish { operation, prompt, targets: 1 }).await;
            assert_eq!(record.status, JobStatus::Succeeded, "{vendor:?} {operation}: {:?}", record.outcome.failure);
        }
    }
    assert!(fixture.simulator.received(AUTHOR), "{vendor:?} gets the file");
    assert!(!fixture.simulator.received(PLACE), "{vendor:?} gets no place");
}

testkit::for_every_vendor!(providers_get_no_place_of_a_photograph, send_photos);
