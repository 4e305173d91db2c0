use bytes::Bytes;
use domain::job::{JobStatus, VideoImage};
use domain::model::Capability;
use raster::{Bitmap, Channels, Color, Encoding, OutputFormat, Size, metadata};
use testkit::photo::{AUTHOR, PLACE, with_place};
use testkit::providers::Vendor;

use super::fixture::VideoFixture;

/// Stores a photograph with a place as an upload does: the file without it, and the original.
async fn photo(fixture: &VideoFixture) -> VideoImage {
    let image = Bitmap::new(Size::new(64, 48), Channels::Rgb, [10, 200, 30].repeat(64 * 48)).expect("as many as fit");
    let encoding = Encoding { format: OutputFormat::Jpeg, quality: 85, flatten: Color::WHITE };
    let photo = with_place(&raster::encode(&image, &encoding).expect("encodes"));
    let cleaned = metadata::examine(&photo).expect("is in few places").expect("is private");
    let file = metadata::rewrite(&photo, cleaned);
    fixture.upload("original", Bytes::from(photo)).await;
    let image = fixture.upload("photo", Bytes::from(file)).await;
    fixture
        .execute(
            "UPDATE assets a SET mime_type = 'image/jpeg', metadata_removed = '{location}', original_blob = o.blob_key,
                 original_mime_type = 'image/jpeg', original_bytes = o.bytes, original_reason = 'private-metadata'
             FROM assets o WHERE o.id = 'original' AND a.id = 'photo'",
        )
        .await;
    image
}

#[tokio::test]
async fn providers_get_no_place_of_a_photograph() {
    use Vendor::{BlackForestLabs, Comfy, Fal, Google, Replicate, Runway};
    for vendor in [Runway, Fal, Replicate, BlackForestLabs, Google, Comfy] {
        let fixture = VideoFixture::new(vendor).await;
        let photo = photo(&fixture).await;
        fixture.simulator.keep_bodies();
        let _running = fixture.work();
        for capability in [Capability::VideoFromImage, Capability::VideoFromFrames, Capability::VideoFromReferences] {
            if !fixture.can(capability) {
                continue;
            }
            let mut wish = fixture.wish(capability);
            match capability {
                Capability::VideoFromReferences => wish.references = vec![photo.clone()],
                Capability::VideoFromFrames => {
                    (wish.first_frame, wish.last_frame) = (Some(photo.clone()), Some(photo.clone()));
                }
                _ => wish.first_frame = Some(photo.clone()),
            }
            let id = fixture.start(wish).await;
            let record = fixture.job_when(id, "the end of the job", |job| job.status.is_terminal()).await;
            assert_eq!(record.status, JobStatus::Succeeded, "{vendor:?} {capability}: {:?}", record.outcome.failure);
        }
        assert!(fixture.simulator.received(AUTHOR), "{vendor:?} gets the file");
        assert!(!fixture.simulator.received(PLACE), "{vendor:?} gets no place");
    }
}
