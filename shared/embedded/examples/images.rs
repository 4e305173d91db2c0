//! Draws a sheet of frames of the model `sketch` for visual inspection after a change: every size, many scripts, and
//! none to sixteen references.
//!
//! Usage: `images OUT [PHOTO...]`. Prints the time of each frame. The photographs are used
//! as references; without them, images are generated.

use std::error::Error;
use std::time::Instant;

use domain::graph::Role;
use embedded::image::{Brief, Operation, Reference, draw};
use raster::{Bitmap, Bounds, Channels, Color, Encoding, Fit, FormatChoice, OutputFormat, Resize, Size};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Width and height of a frame on the sheet.
const CELL: (u32, u32) = (560, 560);
/// Frames in a row.
const COLUMNS: usize = 4;
const PAPER: Color = Color { r: 120, g: 120, b: 124, a: 255 };

/// A frame of the sheet: its brief, and the number and roles of its references.
struct Case {
    prompt: String,
    size: Size,
    roles: Vec<Option<Role>>,
    operation: Operation,
    output: u32,
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let out = arguments.next().ok_or("usage: images OUT [PHOTO...]")?;
    let mut photos: Vec<Vec<u8>> = arguments.map(std::fs::read).collect::<std::io::Result<_>>()?;
    if photos.is_empty() {
        photos = (0..7).map(computed).collect::<Result<_>>()?;
    }
    let mut cells = Vec::new();
    for (index, case) in cases().iter().enumerate() {
        let references: Vec<Reference<'_>> = (case.roles.iter().zip(photos.iter().cycle().skip(index)))
            .map(|(role, bytes)| Reference { bytes, role: *role })
            .collect();
        let brief = Brief {
            prompt: &case.prompt,
            size: case.size,
            references: &references,
            model: "sketch",
            operation: case.operation,
            output: case.output,
            outputs: 4,
        };
        let start = Instant::now();
        let frame = draw(&brief)?;
        let Size { width, height } = case.size;
        println!(
            "{:2}: {width} x {height}, {} references, {} bytes, {:?}",
            index + 1,
            references.len(),
            frame.len(),
            start.elapsed()
        );
        std::fs::write(format!("{out}.{:02}.png", index + 1), &frame)?;
        cells.push(cell(&frame)?);
    }
    std::fs::write(out, sheet(&cells)?)?;
    Ok(())
}

fn cases() -> Vec<Case> {
    use Operation::{Edit, Generate, Variation};
    use Role::{Construction, Fit, Identity, Style, Texture};
    let case = |prompt: &str, size: (u32, u32), roles: &[Option<Role>], operation, output| Case {
        prompt: prompt.to_owned(),
        size: Size::new(size.0, size.1),
        roles: roles.to_vec(),
        operation,
        output,
    };
    let fox = "A red fox crossing fresh snow at first light. Low sun from the left, long blue shadows, breath in the cold \
               air; shot on a long lens from far away, so that the trees behind become soft bands of color.";
    let perfume = "Perfume bottle on wet slate. Soft north light, a single fern in the background, no text.";
    let long = "An overlong brief that goes into every detail of the set, the cast, the light and the lens, \
                because somebody pasted the whole document. "
        .repeat(60);
    let sixteen: Vec<Option<Role>> =
        (0..16).map(|index| [Some(Identity), None, Some(Texture), Some(Style)][index % 4]).collect();
    vec![
        case(fox, (1024, 1024), &[], Generate, 0),
        case(fox, (1536, 1024), &[], Generate, 1),
        case(fox, (1024, 1536), &[], Generate, 2),
        case(fox, (1920, 1080), &[], Generate, 3),
        case(perfume, (1536, 1024), &[Some(Identity)], Edit, 0),
        case(perfume, (1024, 1024), &[Some(Identity), Some(Texture)], Generate, 1),
        case(perfume, (1080, 1920), &[None, Some(Construction), Some(Fit), Some(Texture), Some(Style)], Edit, 2),
        case("", (1024, 1024), &[None], Variation, 3),
        case(
            "فنجان قهوة على طاولة خشبية قديمة. ضوء الصباح يدخل من النافذة، والبخار يتصاعد ببطء فوق الفنجان.",
            (1536, 1024),
            &[Some(Identity), Some(Style)],
            Generate,
            0,
        ),
        case(
            "雨上がりの京都の路地、石畳に映る提灯の光。傘を差した人が一人、奥へ歩いていく。静かで少し青い夕暮れ。",
            (1024, 1536),
            &[],
            Generate,
            0,
        ),
        case("🦊❄️ Fuchs im Schnee! 🌅 Morgenlicht, weiche Farben 🎨", (1080, 1920), &[], Generate, 1),
        case(&long[..8000], (1024, 1024), &sixteen, Generate, 0),
        case(&long[..8000], (1920, 1080), &[], Generate, 0),
        case(perfume, (1920, 1080), &sixteen[..5], Generate, 2),
        case("हिमालय की सुबह। बर्फ पर सुनहरी धूप और दूर बादल।", (1024, 1024), &[], Generate, 3),
        case(perfume, (256, 256), &[None], Generate, 0),
        case(perfume, (2048, 256), &[None, None], Generate, 0),
        case(perfume, (256, 2048), &[], Generate, 0),
        case("Ein Stuhl.", (2048, 2048), &[Some(Texture), Some(Style), Some(Style)], Generate, 0),
    ]
}

fn cell(frame: &[u8]) -> Result<Bitmap> {
    let bounds = Bounds::new(Some(CELL.0), Some(CELL.1)).ok_or("not zero")?;
    let resize = Resize { fit: Fit::Contain, background: PAPER, enlarge: false, ..Resize::new(bounds) };
    let shown = raster::transform_resize(frame, &resize, FormatChoice::Png, 90)?;
    Ok(raster::decode(&shown.bytes)?)
}

fn sheet(cells: &[Bitmap]) -> Result<Vec<u8>> {
    const GAP: usize = 16;
    let (width, height) = (CELL.0 as usize + GAP, CELL.1 as usize + GAP);
    let size = (COLUMNS * width + GAP, cells.len().div_ceil(COLUMNS) * height + GAP);
    let mut pixels = PAPER.rgb().repeat(size.0 * size.1);
    for (index, cell) in cells.iter().enumerate() {
        let (x, y) = (GAP + index % COLUMNS * width, GAP + index / COLUMNS * height);
        for (row, line) in cell.pixels().chunks_exact(cell.stride()).enumerate() {
            for (column, pixel) in line.chunks_exact(cell.channels().count()).enumerate() {
                let at = ((y + row) * size.0 + x + column) * 3;
                pixels[at..at + 3].copy_from_slice(&pixel[..3]);
            }
        }
    }
    png(&Bitmap::new(Size::new(size.0 as u32, size.1 as u32), Channels::Rgb, pixels).ok_or("a pixel a place")?)
}

fn png(image: &Bitmap) -> Result<Vec<u8>> {
    Ok(raster::encode(image, &Encoding { format: OutputFormat::Png, quality: 90, flatten: PAPER })?)
}

/// An image with a horizon and a disc. Colors and aspect ratio depend on the index.
fn computed(index: u32) -> Result<Vec<u8>> {
    let (width, height) =
        [(1200, 900), (800, 1200), (900, 900), (1600, 900), (700, 1000), (1000, 420), (420, 1000)][index as usize % 7];
    let turn = f64::from(index) * 1.9;
    let tone = |at: f64, shift: f64| (140.0 + 90.0 * (turn + shift + at).sin()) as u8;
    let mut pixels = Vec::with_capacity(width * height * 3);
    for y in 0..height {
        for x in 0..width {
            let (u, v) = (x as f64 / width as f64, y as f64 / height as f64);
            let (dx, dy) = (u - 0.55, (v - 0.5) * height as f64 / width as f64);
            let at = match (dx * dx + dy * dy < 0.05, v > 0.62 + 0.05 * (u * 7.0 + turn).sin()) {
                (true, _) => 2.4 + v,
                (_, true) => 1.2 + 0.5 * v + 0.04 * (u * 90.0).sin(),
                _ => 0.6 * v,
            };
            pixels.extend([tone(at, 0.0), tone(at, 1.1), tone(at, 2.3)]);
        }
    }
    let image = Bitmap::new(Size::new(width as u32, height as u32), Channels::Rgb, pixels).ok_or("a pixel a place")?;
    Ok(raster::encode(&image, &Encoding { format: OutputFormat::Jpeg, quality: 90, flatten: PAPER })?)
}
