//! The input files of all engines.

use std::path::Path;

use raster::{Bitmap, Channels, Color, Encoding, OutputFormat, Size};

use crate::Result;
use crate::subjects::{flat, photo};

/// Writes the files unless they exist.
pub fn write(images: &Path) -> Result<()> {
    let put = |name: &str, make: &dyn Fn() -> Result<Vec<u8>>| -> Result<()> {
        let path = images.join(name);
        if !path.exists() {
            std::fs::write(path, make()?)?;
        }
        Ok(())
    };
    let encoded = |bitmap: &Bitmap, format| -> Result<Vec<u8>> {
        Ok(raster::encode(bitmap, &Encoding { format, quality: 90, flatten: Color::WHITE })?)
    };
    put("photo.jpg", &|| encoded(&photo(4000, 3000), OutputFormat::Jpeg))?;
    put("large.jpg", &|| encoded(&photo(6000, 4000), OutputFormat::Jpeg))?;
    put("photo.png", &|| encoded(&photo(2048, 2048), OutputFormat::Png))?;
    put("flat.png", &|| encoded(&flat(2048, 2048), OutputFormat::Png))?;
    put("photo.webp", &|| encoded(&photo(1600, 1067), OutputFormat::Webp))?;
    put("logo.png", &|| {
        let pixels = (0..800u32 * 800).flat_map(|at| {
            let (x, y) = (i64::from(at % 800) - 400, i64::from(at / 800) - 400);
            let inside = x * x + y * y < 390 * 390;
            [200, (at / 3200) as u8, 60, if inside { 230 } else { 0 }]
        });
        let logo = Bitmap::new(Size::new(800, 800), Channels::Rgba, pixels.collect()).ok_or("as many as fit")?;
        encoded(&logo, OutputFormat::Png)
    })?;
    put("progressive.jpg", &|| {
        let bitmap = photo(4000, 3000);
        let mut compressor = turbojpeg::Compressor::new()?;
        compressor.set_quality(90)?;
        compressor.set_subsamp(turbojpeg::Subsamp::Sub2x2)?;
        compressor.set_progressive(true)?;
        let image = turbojpeg::Image {
            pixels: bitmap.pixels(),
            width: 4000,
            pitch: bitmap.stride(),
            height: 3000,
            format: turbojpeg::PixelFormat::RGB,
        };
        Ok(compressor.compress_to_vec(image)?)
    })
}
