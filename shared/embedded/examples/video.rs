//! Renders one video with the embedded runtime, for inspection and measurement.
//!
//! Usage: `video OUT SECONDS WIDTHxHEIGHT PROMPT [first=FILE] [last=FILE] [reference=FILE]…`

use std::error::Error;
use std::time::Instant;

use bytes::Bytes;
use embedded::video::{Brief, render};
use raster::Size;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [out, seconds, size, prompt, files @ ..] = &arguments[..] else {
        return Err("usage: video OUT SECONDS WIDTHxHEIGHT PROMPT [first=FILE] [last=FILE] [reference=FILE]…".into());
    };
    let (width, height) = size.split_once('x').ok_or("a size is WIDTHxHEIGHT")?;
    let mut brief = Brief {
        prompt: prompt.clone(),
        first: None,
        last: None,
        references: Vec::new(),
        seconds: seconds.parse()?,
        size: Size::new(width.parse()?, height.parse()?),
    };
    for file in files {
        let (kind, path) = file.split_once('=').ok_or("files are KIND=FILE")?;
        let bytes = Bytes::from(std::fs::read(path)?);
        match kind {
            "first" => brief.first = Some(bytes),
            "last" => brief.last = Some(bytes),
            "reference" => brief.references.push(bytes),
            _ => return Err("a file is a first, a last or a reference".into()),
        }
    }
    let begun = Instant::now();
    let video = render(&brief, || ())?;
    println!("{out}: {} bytes in {} ms", video.len(), begun.elapsed().as_millis());
    std::fs::write(out, video)?;
    Ok(())
}
