//! The embedded video runtime, checked with an independent decoder.

use bytes::Bytes;
use embedded::video::{Brief, Error, FRAMES_PER_SECOND, Which, render};
use raster::{Bitmap, Bounds, Channels, Color, Encoding, Fit, OutputFormat, Resize, Size, encode, resize};

use crate::decoder::{frames, probe, psnr};

const SMALL: Size = Size::new(854, 480);

/// An image with smooth gradients, hard edges and fine lines.
fn scenery(size: Size, [r, g, b]: [u8; 3]) -> Bitmap {
    let mut pixels = Vec::new();
    for y in 0..size.height {
        for x in 0..size.width {
            let across = (x * 255 / size.width) as u8;
            let down = (y * 255 / size.height) as u8;
            let line = if x % 97 < 3 || y % 61 < 2 { 60 } else { 0 };
            let disc = (x as i64 - i64::from(size.width) / 3).pow(2) + (y as i64 - i64::from(size.height) / 2).pow(2);
            let [r, g, b] =
                if disc < i64::from(size.height / 4).pow(2) { [255 - r, 255 - g, 255 - b] } else { [r, g, b] };
            let mixed = |own: u8, slope: u8| own / 2 + slope / 3 + line;
            pixels.extend([mixed(r, across), mixed(g, down), mixed(b, across)]);
        }
    }
    Bitmap::new(size, Channels::Rgb, pixels).expect("whole rows")
}

fn file(image: &Bitmap) -> Bytes {
    let encoding = Encoding { format: OutputFormat::Png, quality: 100, flatten: Color::WHITE };
    Bytes::from(encode(image, &encoding).expect("can be written"))
}

fn brief(size: Size, seconds: u32) -> Brief {
    Brief { prompt: String::new(), first: None, last: None, references: Vec::new(), seconds, size }
}

fn made(brief: &Brief) -> Vec<u8> {
    render(brief, || ()).expect("can be made")
}

/// An image scaled to cover a frame.
fn covering(image: &Bitmap, size: Size) -> Bitmap {
    let bounds = Bounds::new(Some(size.width), Some(size.height)).expect("not zero");
    resize(image, &Resize { fit: Fit::Cover, ..Resize::new(bounds) }).expect("within the limits")
}

/// The mean of each channel in a region of an image.
fn mean(image: &Bitmap, columns: std::ops::Range<u32>, rows: std::ops::Range<u32>) -> [u32; 3] {
    let count = (columns.len() * rows.len()) as u32;
    let mut sums = [0; 3];
    for y in rows {
        for x in columns.clone() {
            let pixel = image.pixel(x, y).expect("is within");
            sums.iter_mut().zip(pixel).for_each(|(sum, sample)| *sum += u32::from(sample));
        }
    }
    sums.map(|sum| sum / count)
}

#[test]
fn a_video_is_a_silent_h264_mp4_that_says_what_it_is() {
    let first = scenery(Size::new(1200, 675), [200, 60, 40]);
    let video = made(&Brief { first: Some(file(&first)), prompt: "A red coast".into(), ..brief(SMALL, 2) });
    let found = probe(&video);
    let streams = found["streams"].as_array().expect("a list");
    assert_eq!(streams.len(), 1, "no sound");
    let stream = &streams[0];
    for (field, value) in [
        ("codec_name", "h264"),
        ("codec_tag_string", "avc1"),
        ("profile", "Constrained Baseline"),
        ("pix_fmt", "yuv420p"),
        ("field_order", "progressive"),
        ("color_range", "tv"),
        ("color_space", "bt709"),
        ("color_transfer", "bt709"),
        ("color_primaries", "bt709"),
        ("r_frame_rate", "24/1"),
        ("avg_frame_rate", "24/1"),
        ("start_time", "0.000000"),
        ("duration", "2.000000"),
        ("nb_frames", "48"),
        ("nb_read_frames", "48"),
    ] {
        assert_eq!(stream[field], value, "{field}: {stream}");
    }
    assert_eq!((stream["width"].as_u64(), stream["height"].as_u64()), (Some(854), Some(480)));
    assert_eq!(found["format"]["duration"], "2.000000");
    let place = |kind: &[u8]| video.windows(4).position(|four| four == kind).expect("is there");
    assert!(place(b"moov") < place(b"mdat"), "a player begins before it has all");
}

#[test]
fn it_begins_with_the_first_frame_and_ends_with_the_last_without_caption() {
    let (first, last) = (scenery(Size::new(1280, 720), [40, 60, 200]), scenery(Size::new(1000, 562), [220, 170, 60]));
    let two = Brief { first: Some(file(&first)), last: Some(file(&last)), prompt: "Dawn".into(), ..brief(SMALL, 2) };
    let shown = frames(&made(&two), SMALL);
    assert_eq!(shown.len(), 48);
    let (begin, end) = (psnr(&shown[0], &covering(&first, SMALL)), psnr(&shown[47], &covering(&last, SMALL)));
    assert!(begin > 36.0 && end > 36.0, "{begin} dB, {end} dB");
    // During the dissolve, the frame resembles neither image.
    let between = psnr(&shown[24], &covering(&first, SMALL)).max(psnr(&shown[24], &covering(&last, SMALL)));
    assert!(between < 25.0, "{between} dB");
}

#[test]
fn every_ratio_and_resolution_that_is_offered_comes_out_in_its_size_and_every_length_to_the_frame() {
    for (width, height) in [(1280, 720), (720, 1280), (720, 720), (854, 480), (480, 854), (480, 480)] {
        let size = Size::new(width, height);
        let stream = &probe(&made(&brief(size, 1)))["streams"][0];
        assert_eq!((stream["width"].as_u64(), stream["height"].as_u64()), (Some(width.into()), Some(height.into())));
    }
    for seconds in [1, 3, 5] {
        let stream = &probe(&made(&brief(Size::new(480, 480), seconds)))["streams"][0];
        assert_eq!(stream["nb_read_frames"], (seconds * FRAMES_PER_SECOND).to_string());
        assert_eq!(stream["duration"], format!("{seconds}.000000"));
    }
}

#[test]
fn one_order_gives_the_same_bytes_however_many_are_made_at_once() {
    let brief = Brief {
        first: Some(file(&scenery(Size::new(640, 640), [90, 140, 30]))),
        references: vec![file(&scenery(Size::new(300, 200), [10, 10, 200]))],
        prompt: "Twice the same".into(),
        ..brief(SMALL, 1)
    };
    let videos: Vec<Vec<u8>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(|| made(&brief))).collect();
        threads.into_iter().map(|thread| thread.join().expect("ends")).collect()
    });
    assert!(videos.iter().all(|video| *video == videos[0]));
    assert_ne!(videos[0], made(&Brief { prompt: "Another".into(), ..brief.clone() }));
}

#[test]
fn the_prompt_is_a_caption_that_comes_after_the_first_frame() {
    let image = Some(file(&Bitmap::new(SMALL, Channels::Rgb, vec![200; SMALL.pixels() as usize * 3]).expect("whole")));
    let bare = Brief { first: image, ..brief(SMALL, 1) };
    let reported = Brief { prompt: "The keeper climbs the stairs of the lighthouse".into(), ..bare.clone() };
    let (bare, reported) = (frames(&made(&bare), SMALL), frames(&made(&reported), SMALL));
    assert!(psnr(&bare[0], &reported[0]) > 45.0);
    let lower = |image: &Bitmap| mean(image, 60..400, 400..450);
    let (without, with) = (lower(&bare[23]), lower(&reported[23]));
    assert!(without[0] > 190 && with[0] < 150, "a plate with letters: {with:?} instead of {without:?}");
    let upper = |image: &Bitmap| mean(image, 0..854, 0..300);
    assert!(upper(&reported[23])[0] > 190, "what is above is left alone");
}

#[test]
fn references_are_inserted_one_after_another() {
    let colors = [[220, 30, 30], [30, 200, 40], [40, 60, 230]];
    let flat = |[r, g, b]: [u8; 3]| {
        let pixels = [r, g, b].repeat(300 * 200);
        file(&Bitmap::new(Size::new(300, 200), Channels::Rgb, pixels).expect("whole"))
    };
    let references = colors.map(flat).to_vec();
    let shown = frames(&made(&Brief { references, ..brief(SMALL, 2) }), SMALL);
    let seen = |image: &Bitmap, [r, g, b]: [u8; 3]| {
        let near = |sample: u8, own: u8| sample.abs_diff(own) < 25;
        image.pixels().as_chunks::<3>().0.iter().filter(|it| near(it[0], r) && near(it[1], g) && near(it[2], b)).count()
    };
    let first_seen = colors.map(|color| shown.iter().position(|frame| seen(frame, color) > 10_000));
    let [Some(one), Some(two), Some(three)] = first_seen else { panic!("not all are seen: {first_seen:?}") };
    assert!(0 < one && one < two && two < three, "{first_seen:?}");
    assert!(colors.iter().all(|color| seen(&shown[47], *color) > 10_000), "all are seen in the end");
}

#[test]
fn an_image_much_wider_than_the_frame_is_passed_from_one_end_to_the_other() {
    let wide = Size::new(1600, 400);
    let pixels = (0..400).flat_map(|_| (0..1600_u32).flat_map(|x| [(x * 255 / 1600) as u8, 128, 128])).collect();
    let image = Bitmap::new(wide, Channels::Rgb, pixels).expect("whole");
    let shown =
        frames(&made(&Brief { first: Some(file(&image)), ..brief(Size::new(480, 480), 1) }), Size::new(480, 480));
    let left = |index: usize| mean(&shown[index], 0..20, 0..480)[0];
    assert!(left(0) < 45 && left(23) > 140, "{} to {}", left(0), left(23));
}

#[test]
fn noise_is_coded_coarsely_rather_than_large() {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let size = Size::new(480, 480);
    let noise = Bitmap::new(size, Channels::Rgb, (0..size.pixels() * 3).map(|_| next()).collect()).expect("whole");
    let video = made(&Brief { first: Some(file(&noise)), ..brief(size, 2) });
    // 12 bits per second and pixel, plus one extra second for key frames.
    let most = size.pixels() as usize * 12 / 8 * 3;
    assert!(video.len() < most, "{} of {most}", video.len());
    assert_eq!(frames(&video, size).len(), 48);
}

#[test]
fn what_cannot_be_decoded_is_named() {
    let good = file(&scenery(Size::new(64, 64), [1, 2, 3]));
    let broken = good.slice(..good.len() / 2);
    let refused = |brief: Brief| match render(&brief, || ()) {
        Err(Error::Image { which, .. }) => which,
        other => panic!("{:?}", other.map(|video| video.len())),
    };
    assert_eq!(refused(Brief { first: Some(broken.clone()), ..brief(SMALL, 1) }), Which::First);
    let two = Brief { first: Some(good.clone()), last: Some(Bytes::from_static(b"no picture")), ..brief(SMALL, 1) };
    assert_eq!(refused(two), Which::Last);
    let references = vec![good, broken];
    assert_eq!(refused(Brief { references, ..brief(SMALL, 1) }), Which::Reference(2));
}

#[test]
fn each_frame_is_announced() {
    let mut announced = 0;
    render(&brief(SMALL, 1), || announced += 1).expect("can be made");
    assert_eq!(announced, FRAMES_PER_SECOND);
}
