//! Measures what decoders cost (docs/adr/0018-decoders.md): resizes in this process, in a decoder that has done so before, and in
//! one that was started for them. Prints medians in milliseconds.

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use bytes::Bytes;
use decoder::{Kind, Leash, Made, Order, Pool, Refusal, Work, this_program};
use raster::{Bitmap, Bounds, Channels, Color, Encoding, FormatChoice, OutputFormat, Resize, Size};
use serde::{Deserialize, Serialize};

const RUNS: usize = 40;

/// More than any of these takes.
const MEMORY_BYTES: u64 = 256 << 20;

/// A resize to this width.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Narrow(u32);

impl Work for Narrow {
    const NAME: &'static str = "narrow";

    fn run(self, files: &[Bytes], _: &mut dyn FnMut(u32)) -> Made {
        let bounds = Bounds::new(Some(self.0), None).ok_or_else(|| Refusal::Internal("no width".to_owned()))?;
        let made = raster::transform_resize(&files[0], &Resize::new(bounds), FormatChoice::Auto, 85);
        Ok(vec![made.map_err(worker::decode::refusal)?.bytes])
    }
}

/// Does nothing, so that what is left is the way of the file.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Nothing;

impl Work for Nothing {
    const NAME: &'static str = "nothing";

    fn run(self, _: &[Bytes], _: &mut dyn FnMut(u32)) -> Made {
        Ok(Vec::new())
    }
}

/// A picture with about as much detail as a photograph: gradients and noise.
fn picture(size: Size, format: OutputFormat) -> Bytes {
    let mut state = 1_u32;
    let mut noise = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 27) as u8
    };
    let mut pixels = Vec::with_capacity(3 * size.pixels() as usize);
    for y in 0..size.height {
        for x in 0..size.width {
            pixels.extend(
                [(x / 17) as u8, (y / 13) as u8, ((x + y) / 29) as u8].map(|level| (level / 2).saturating_add(noise())),
            );
        }
    }
    let image = Bitmap::new(size, Channels::Rgb, pixels).expect("as many as fit");
    raster::encode(&image, &Encoding { format, quality: 88, flatten: Color::WHITE }).expect("encodes").into()
}

fn median(mut run: impl FnMut(usize)) -> f64 {
    let mut times: Vec<f64> = (0..RUNS)
        .map(|number| {
            let began = Instant::now();
            run(number);
            began.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[RUNS / 2]
}

fn compare(name: &str, file: &Bytes, work: impl Work + Copy) {
    let pool = Pool::new(this_program(), 192 << 20);
    let through = |owner: String| {
        let order = Order::new(owner, work, vec![file.clone()]);
        let made = pool.run(&order, MEMORY_BYTES, &Leash::default()).0;
        black_box(made.expect("is done").expect("is accepted"));
    };
    let here = median(|_| drop(black_box(work.run(std::slice::from_ref(file), &mut |_| ()))));
    let used = median(|_| through("me".to_owned()));
    let fresh = median(|number| through(format!("account {number}")));
    println!("{name:<34} {:>9} bytes  here {here:7.2}  in a decoder {used:7.2}  in a new one {fresh:7.2}", file.len());
}

fn main() -> ExitCode {
    if let Some(code) = worker::decode::main([Kind::of::<Narrow>(), Kind::of::<Nothing>()]) {
        return code;
    }
    raster::memory::keep_freed();
    let photograph = picture(Size::new(4000, 3000), OutputFormat::Jpeg);
    compare("no work, 12 MP JPEG", &photograph, Nothing);
    compare("12 MP JPEG to 1024", &photograph, Narrow(1024));
    compare("12 MP JPEG to 3999", &photograph, Narrow(3999));
    compare("2048 x 2048 PNG to 512", &picture(Size::new(2048, 2048), OutputFormat::Png), Narrow(512));
    compare("640 x 480 PNG to 64", &picture(Size::new(640, 480), OutputFormat::Png), Narrow(64));
    let pool = Pool::new(this_program(), 192 << 20);
    println!("start of a decoder until it is ready: {:.2}", median(|_| assert!(pool.check().is_ok())));
    ExitCode::SUCCESS
}
