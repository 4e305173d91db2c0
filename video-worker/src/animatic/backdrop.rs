//! What is looked at when there is no picture: light in the dark, in colours that are the prompt's own.

use raster::{Channels, Color, Picture, Size};

/// The dark, and two lights: picked by eye, so that letters stand out from each.
const PALETTES: [[Color; 3]; 6] = [
    [rgb(0x14, 0x1a, 0x2a), rgb(0x2f, 0x5d, 0x8a), rgb(0xc9, 0x7b, 0x4a)],
    [rgb(0x1b, 0x16, 0x28), rgb(0x5b, 0x3f, 0x8c), rgb(0xb8, 0x5c, 0x7a)],
    [rgb(0x10, 0x1f, 0x1f), rgb(0x1f, 0x6f, 0x68), rgb(0xb3, 0x8a, 0x3c)],
    [rgb(0x22, 0x17, 0x17), rgb(0x8a, 0x3b, 0x35), rgb(0xc4, 0x8b, 0x4f)],
    [rgb(0x15, 0x1c, 0x16), rgb(0x3d, 0x6b, 0x3f), rgb(0x8f, 0x9d, 0x4a)],
    [rgb(0x17, 0x18, 0x1c), rgb(0x4a, 0x55, 0x6b), rgb(0x8c, 0x78, 0x68)],
];

const fn rgb(r: u8, g: u8, b: u8) -> Color {
    Color { r, g, b, a: 255 }
}

/// How much of a light's colour is in its middle.
const BRIGHT: f64 = 0.62;

/// A backdrop of four channels; equal prompts have equal ones.
pub fn paint(prompt: &str, size: Size) -> Picture {
    let hash = fnv(prompt.trim().as_bytes());
    let [dark, cold, warm] = PALETTES[(hash % PALETTES.len() as u64) as usize];
    // A byte of the hash as a place: from 0 to 1.
    let place = |byte: u32| ((hash >> (8 * byte)) & 0xff) as f64 / 255.0;
    let lights = [
        (cold, 0.05 + 0.35 * place(1), 0.1 + 0.4 * place(2), 0.75),
        (warm, 0.65 + 0.3 * place(3), 0.55 + 0.4 * place(4), 0.6),
    ];
    let (width, height) = (f64::from(size.width), f64::from(size.height));
    let reach = width.max(height);
    let mut pixels = Vec::with_capacity(size.pixels() as usize * 4);
    for y in 0..size.height {
        for x in 0..size.width {
            let mut mixed = dark.rgb().map(f64::from);
            for (color, across, down, radius) in lights {
                let (dx, dy) = (f64::from(x) - across * width, f64::from(y) - down * height);
                let near = (1.0 - (dx * dx + dy * dy) / (reach * radius).powi(2)).max(0.0);
                let share = near * near * BRIGHT;
                for (sample, own) in mixed.iter_mut().zip(color.rgb()) {
                    *sample += (f64::from(own) - *sample) * share;
                }
            }
            // An ordered grain of less than a level keeps slopes this gentle free of steps.
            let grain = f64::from(GRAIN[(y % 4) as usize][(x % 4) as usize]) / 16.0;
            let [r, g, b] = mixed.map(|sample| (sample + grain) as u8);
            pixels.extend([r, g, b, 255]);
        }
    }
    Picture::new(size, Channels::Rgba, pixels).expect("a pixel for each column of each row")
}

/// Ordered dither (Bayer), 0 to 15.
const GRAIN: [[u8; 4]; 4] = [[0, 8, 2, 10], [12, 4, 14, 6], [3, 11, 1, 9], [15, 7, 13, 5]];

/// FNV-1a, 64 bits.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_has_its_own_backdrop_and_keeps_it() {
        let size = Size::new(64, 36);
        assert_eq!(paint("a", size), paint(" a ", size));
        assert_ne!(paint("a", size), paint("b", size));
        assert!(paint("a", size).is_opaque());
    }
}
