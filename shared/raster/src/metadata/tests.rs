use std::io::Write as _;

use proptest::prelude::*;

use super::*;
use crate::orientation::Orientation;
use crate::testing::*;
use crate::xmp::gif_xmp;
use crate::{Bitmap, OutputFormat, decode, probe};

/// Stands in every private value.
const SECRET: &[u8] = b"PRIVATE-7731";
/// Stands in every value that is kept.
const AUTHOR: &[u8] = b"Author-4419";
/// Stands in every other value.
const PLAIN: &[u8] = b"plain-5582";

const ASCII: u16 = 2;
const SHORT: u16 = 3;
const LONG: u16 = 4;
const UNDEFINED: u16 = 7;

/// Writes an EXIF block with the directories IFD0, EXIF, GPS and IFD1; those without entries are left out.
struct Tiff {
    is_little: bool,
    main: Vec<(u16, u16, Vec<u8>)>,
    detail: Vec<(u16, u16, Vec<u8>)>,
    gps: Vec<(u16, u16, Vec<u8>)>,
    thumbnail: Vec<(u16, u16, Vec<u8>)>,
}

impl Tiff {
    fn new(is_little: bool) -> Self {
        let short = |value: u16| if is_little { value.to_le_bytes() } else { value.to_be_bytes() }.to_vec();
        let main = vec![
            (0x010f, ASCII, PLAIN.to_vec()),
            (0x0112, SHORT, short(6)),
            (0x013b, ASCII, AUTHOR.to_vec()),
            (0x8298, ASCII, AUTHOR.to_vec()),
        ];
        let detail = vec![(0x9003, ASCII, PLAIN.to_vec())];
        Self { is_little, main, detail, gps: Vec::new(), thumbnail: Vec::new() }
    }

    fn u16(&self, value: usize) -> [u8; 2] {
        if self.is_little { (value as u16).to_le_bytes() } else { (value as u16).to_be_bytes() }
    }

    fn u32(&self, value: usize) -> [u8; 4] {
        if self.is_little { (value as u32).to_le_bytes() } else { (value as u32).to_be_bytes() }
    }

    fn write(&self) -> Vec<u8> {
        let size = |entries: &[(u16, u16, Vec<u8>)]| 2 + entries.len() * 12 + 4;
        let mut main = self.main.clone();
        let mut pointers = Vec::new();
        let mut at = 8 + size(&self.main) + 12 * [&self.detail, &self.gps].iter().filter(|it| !it.is_empty()).count();
        for (tag, entries) in [(0x8769, &self.detail), (0x8825, &self.gps), (0, &self.thumbnail)] {
            if !entries.is_empty() {
                pointers.push((tag, at));
                at += size(entries);
            }
        }
        let next = pointers.iter().find(|(tag, _)| *tag == 0).map_or(0, |(_, at)| *at);
        main.extend(pointers.iter().filter(|(tag, _)| *tag != 0).map(|(tag, at)| (*tag, LONG, self.u32(*at).to_vec())));
        main.sort_by_key(|(tag, ..)| *tag);
        let mut block = if self.is_little { b"II*\0".to_vec() } else { b"MM\0*".to_vec() };
        block.extend(self.u32(8));
        let mut values = Vec::new();
        for (entries, next) in [(&main, next), (&self.detail, 0), (&self.gps, 0), (&self.thumbnail, 0)] {
            if entries.is_empty() {
                continue;
            }
            block.extend(self.u16(entries.len()));
            for (tag, kind, value) in entries {
                let unit = match *kind {
                    SHORT => 2,
                    LONG => 4,
                    _ => 1,
                };
                block.extend(self.u16((*tag).into()));
                block.extend(self.u16((*kind).into()));
                block.extend(self.u32(value.len() / unit));
                if value.len() <= 4 {
                    block.extend([&value[..], &[0; 4][value.len()..]].concat());
                } else {
                    block.extend(self.u32(at + values.len()));
                    values.extend(value);
                }
            }
            block.extend(self.u32(next));
        }
        [block, values].concat()
    }
}

/// Private EXIF blocks in a byte order, each with the class of what is private.
fn private_exif(is_little: bool) -> Vec<(&'static str, Class, Vec<u8>)> {
    let with = |change: &dyn Fn(&mut Tiff)| {
        let mut tiff = Tiff::new(is_little);
        change(&mut tiff);
        tiff.write()
    };
    let secret = || SECRET.to_vec();
    vec![
        ("GPS", Class::Location, with(&|it| it.gps = vec![(1, ASCII, b"N\0".to_vec()), (29, ASCII, secret())])),
        ("MakerNote", Class::Device, with(&|it| it.detail.push((0x927c, UNDEFINED, secret())))),
        ("serial number of the body", Class::Device, with(&|it| it.detail.push((0xa431, ASCII, secret())))),
        ("serial number of the lens", Class::Device, with(&|it| it.detail.push((0xa435, ASCII, secret())))),
        ("owner", Class::Person, with(&|it| it.detail.push((0xa430, ASCII, secret())))),
        ("owner in UTF-8", Class::Person, with(&|it| it.detail.push((0xa430, 129, secret())))),
        ("HostComputer", Class::Device, with(&|it| it.main.push((0x013c, ASCII, secret())))),
        ("UserComment", Class::Text, with(&|it| it.detail.push((0x9286, UNDEFINED, secret())))),
        ("thumbnail", Class::Thumbnail, with(&|it| it.thumbnail = vec![(0x0201, UNDEFINED, secret())])),
        ("XMP in EXIF", Class::Location, with(&|it| it.main.push((0x02bc, 1, xmp(GPS_ATTRIBUTE))))),
        ("IIM in EXIF", Class::Location, with(&|it| it.main.push((0x83bb, UNDEFINED, iim(&[(90, SECRET)]))))),
    ]
}

const GPS_ATTRIBUTE: &str =
    r#"<rdf:Description xmlns:exif="http://ns.adobe.com/exif/1.0/" exif:GPSLatitude="PRIVATE-7731"/>"#;
const AUTHORSHIP: &str = r#"<rdf:Description rdf:about="" xmlns:dc="http://purl.org/dc/elements/1.1/"
    xmlns:Iptc4xmpExt="http://iptc.org/std/Iptc4xmpExt/2008-02-29/" xmlns:r="http://ns.adobe.com/xap/1.0/rights/"
    xmlns:plus="http://ns.useplus.org/ldf/xmp/1.0/" xmlns:xmp="http://ns.adobe.com/xap/1.0/"
    xmp:CreatorTool="plain-5582" r:Owner="Author-4419 &amp; &quot;sons&quot;"
    Iptc4xmpExt:DigitalSourceType="http://cv.iptc.org/newscodes/digitalsourcetype/trainedAlgorithmicMedia">
    <dc:creator><rdf:Seq><rdf:li>Author-4419 1</rdf:li><rdf:li>Author-4419 2</rdf:li></rdf:Seq></dc:creator>
    <dc:rights><rdf:Alt><rdf:li xml:lang="x-default">Author-4419 3</rdf:li></rdf:Alt></dc:rights>
    <dc:title>plain-5582</dc:title>
    <plus:Licensor><rdf:Seq><rdf:li rdf:parseType="Resource"><plus:LicensorName>Author-4419 4</plus:LicensorName></rdf:li>
    </rdf:Seq></plus:Licensor></rdf:Description>"#;

fn xmp(descriptions: &str) -> Vec<u8> {
    format!(
        "<?xpacket begin=\"\u{feff}\" id=\"W5M0MpCehiHzreSzNTczkc9d\"?><x:xmpmeta xmlns:x=\"adobe:ns:meta/\">\
         <rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\">{AUTHORSHIP}{descriptions}</rdf:RDF>\
         </x:xmpmeta>\n\n<?xpacket end=\"w\"?>"
    )
    .into_bytes()
}

/// Private XMP packets, each with the class of what is private.
fn private_xmp() -> Vec<(&'static str, Class, Vec<u8>)> {
    let core = r#"xmlns:c="http://iptc.org/std/Iptc4xmpCore/1.0/xmlns/""#;
    let extension = r#"xmlns:e="http://iptc.org/std/Iptc4xmpExt/2008-02-29/""#;
    let regions = r#"xmlns:mwg-rs="http://www.metadataworkinggroup.com/schemas/regions/""#;
    let of = |text: &str| xmp(&format!("<rdf:Description {core} {extension} {regions}>{text}</rdf:Description>"));
    vec![
        ("GPS as an attribute", Class::Location, xmp(GPS_ATTRIBUTE)),
        (
            "GPS as an element with another prefix",
            Class::Location,
            of(r#"<q:GPSLongitude xmlns:q="http://ns.adobe.com/exif/1.0/">PRIVATE-7731</q:GPSLongitude>"#),
        ),
        ("city", Class::Location, of(r#"<q:City xmlns:q="http://ns.adobe.com/photoshop/1.0/">PRIVATE-7731</q:City>"#)),
        ("place", Class::Location, of("<c:Location>PRIVATE-7731</c:Location>")),
        (
            "place of a shot",
            Class::Location,
            of(r#"<m:shotLocation xmlns:m="http://ns.adobe.com/xmp/1.0/DynamicMedia/">PRIVATE-7731</m:shotLocation>"#),
        ),
        (
            "place in a structure",
            Class::Location,
            of(
                r#"<e:LocationShown><rdf:Bag><rdf:li rdf:parseType="Resource"><e:City>PRIVATE-7731</e:City></rdf:li></rdf:Bag></e:LocationShown>"#,
            ),
        ),
        (
            "place of a drone",
            Class::Location,
            of(r#"<q:GpsLatitude xmlns:q="http://www.dji.com/drone-dji/1.0/">PRIVATE-7731</q:GpsLatitude>"#),
        ),
        (
            "faces",
            Class::Person,
            of(
                r#"<mwg-rs:Regions rdf:parseType="Resource"><mwg-rs:RegionList><rdf:Bag><rdf:li><rdf:Description mwg-rs:Name="PRIVATE-7731"/></rdf:li></rdf:Bag></mwg-rs:RegionList></mwg-rs:Regions>"#,
            ),
        ),
        (
            "contact",
            Class::Person,
            of(
                r#"<c:CreatorContactInfo rdf:parseType="Resource"><c:CiEmailWork>PRIVATE-7731</c:CiEmailWork></c:CreatorContactInfo>"#,
            ),
        ),
        (
            "serial number",
            Class::Device,
            of(r#"<q:SerialNumber xmlns:q="http://ns.adobe.com/exif/1.0/aux/">PRIVATE-7731</q:SerialNumber>"#),
        ),
        ("damaged", Class::Other, b"<x:xmpmeta xmlns:x='adobe:ns:meta/'><a>PRIVATE-7731</b>".to_vec()),
        ("in UTF-16", Class::Other, b"\xff\xfe<\0PRIVATE-7731".to_vec()),
    ]
}

/// IIM data sets of record 2.
fn iim(sets: &[(u8, &[u8])]) -> Vec<u8> {
    let all: [(u8, u8, &[u8]); 3] = [(1, 90, b"\x1b%G"), (2, 0, b"\0\x04"), (2, 80, AUTHOR)];
    let all = all.into_iter().chain(sets.iter().map(|(number, text)| (2, *number, *text)));
    all.flat_map(|(record, number, text)| {
        [&[0x1c, record, number][..], &(text.len() as u16).to_be_bytes(), text].concat()
    })
    .collect()
}

/// The image resources of Photoshop, with resources before and after.
fn resources(iim: &[u8]) -> Vec<u8> {
    let resource = |id: u16, data: &[u8]| {
        let length = (data.len() as u32).to_be_bytes();
        [b"8BIM", &id.to_be_bytes()[..], b"\0\0", &length, data, &[0][..data.len() % 2]].concat()
    };
    [resource(0x03ed, &[0; 16]), resource(0x0404, iim), resource(0x040b, PLAIN)].concat()
}

fn jpeg_with(segments: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let jpeg = written(&photo(21, 13), OutputFormat::Jpeg, 80);
    segments.iter().rev().fold(jpeg, |jpeg, (marker, payload)| with_segment(&jpeg, *marker, payload))
}

fn exif_segment(tiff: &[u8]) -> (u8, Vec<u8>) {
    (0xe1, [b"Exif\0\0", tiff].concat())
}

fn xmp_segment(packet: &[u8]) -> (u8, Vec<u8>) {
    (0xe1, [b"http://ns.adobe.com/xap/1.0/\0", packet].concat())
}

fn photoshop_segment(resources: &[u8]) -> (u8, Vec<u8>) {
    (0xed, [b"Photoshop 3.0\0", resources].concat())
}

fn text_chunk(kind: &[u8; 4], keyword: &str, text: &[u8]) -> Vec<u8> {
    let deflated = || {
        let mut deflated = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        deflated.write_all(text).unwrap();
        deflated.finish().unwrap()
    };
    let data = match kind {
        b"tEXt" => [keyword.as_bytes(), b"\0", text].concat(),
        b"zTXt" => [keyword.as_bytes(), b"\0\0", &deflated()].concat(),
        _ => [keyword.as_bytes(), b"\0\x01\0en\0translated\0", &deflated()].concat(),
    };
    png_chunk(kind, &data)
}

fn raw_profile(name: &str, bytes: &[u8]) -> Vec<u8> {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let lines: Vec<&str> = digits.as_bytes().chunks(72).map(|line| std::str::from_utf8(line).unwrap()).collect();
    let text = format!("\n{name}\n{:8}\n{}\n", bytes.len(), lines.join("\n"));
    text_chunk(b"zTXt", &format!("Raw profile type {name}"), text.as_bytes())
}

fn png_of(chunks: &[Vec<u8>]) -> Vec<u8> {
    png_with(&photo(21, 13), chunks)
}

fn webp_of(flags: u8, chunks: &[Vec<u8>]) -> Vec<u8> {
    let image = webp_chunks(&written(&photo(21, 13), OutputFormat::Webp, 80));
    let mut all = vec![vp8x(flags, 21, 13), image];
    all.extend_from_slice(chunks);
    riff(&all)
}

/// A GIF of two frames and these blocks in front of them.
fn gif_of(blocks: &[Vec<u8>]) -> Vec<u8> {
    let gif = gif((3, 2), (0, 0, 3, 2), vec![0, 1, 2, 3, 2, 1], Some(1));
    // The screen and a table of four colors.
    let (head, rest) = gif.split_at(13 + 12);
    let frame = &rest[..rest.len() - 1];
    [head, &gif_extension(b"NETSCAPE2.0", b"\x01\x03\0"), &blocks.concat(), frame, frame, b";"].concat()
}

fn gif_extension(name: &[u8; 11], data: &[u8]) -> Vec<u8> {
    [b"\x21\xff\x0b", &name[..], &sub_blocks(data)].concat()
}

fn gif_comment(text: &[u8]) -> Vec<u8> {
    [b"\x21\xfe", &sub_blocks(text)[..]].concat()
}

fn sub_blocks(data: &[u8]) -> Vec<u8> {
    let blocks = data.chunks(255).flat_map(|block| [&[block.len() as u8], block].concat());
    blocks.chain([0]).collect()
}

/// Files with private metadata: what they hold, and a class that must be among those removed.
fn private_files() -> Vec<(String, Class, Vec<u8>)> {
    let mut files = Vec::new();
    for is_little in [true, false] {
        for (name, class, tiff) in private_exif(is_little) {
            let name = format!("{name}, {}", if is_little { "little" } else { "big" });
            files.push((format!("JPEG, {name}"), class, jpeg_with(&[exif_segment(&tiff)])));
            files.push((format!("PNG, {name}"), class, png_of(&[png_chunk(b"eXIf", &tiff)])));
            files.push((
                format!("PNG, {name}, raw"),
                class,
                png_of(&[raw_profile("exif", &[b"Exif\0\0", &tiff[..]].concat())]),
            ));
            files.push((format!("WebP, {name}"), class, webp_of(0x08, &[riff_chunk(b"EXIF", &tiff)])));
        }
    }
    let xmp_key = "XML:com.adobe.xmp";
    for (name, class, packet) in private_xmp() {
        files.push((format!("JPEG, {name}"), class, jpeg_with(&[xmp_segment(&packet)])));
        files.push((format!("PNG, {name}"), class, png_of(&[text_chunk(b"iTXt", xmp_key, &packet)])));
        files.push((format!("WebP, {name}"), class, webp_of(0x04, &[riff_chunk(b"XMP ", &packet)])));
        files.push((format!("GIF, {name}"), class, gif_of(&[gif_comment(PLAIN), gif_xmp(&packet)])));
        let in_sub_blocks = gif_of(&[gif_extension(b"XMP DataXMP", &packet)]);
        files.push((format!("GIF, {name}, in sub-blocks"), Class::Other, in_sub_blocks));
        let digest = [b"0123456789ABCDEF0123456789ABCDEF", &(packet.len() as u32).to_be_bytes()[..]].concat();
        let half = packet.len() / 2;
        let part = |range: Range<usize>| {
            let offset = (range.start as u32).to_be_bytes();
            (0xe1, [b"http://ns.adobe.com/xmp/extension/\0", &digest[..], &offset, &packet[range]].concat())
        };
        let parts = [xmp_segment(&xmp("")), part(half..packet.len()), part(0..half)];
        files.push((format!("JPEG, {name}, extended"), class, jpeg_with(&parts)));
    }
    for (name, class, number) in
        [("city", Class::Location, 90), ("country", Class::Location, 101), ("contact", Class::Person, 118)]
    {
        let resources = resources(&iim(&[(number, SECRET)]));
        files.push((format!("JPEG, {name} in IIM"), class, jpeg_with(&[photoshop_segment(&resources)])));
        let (first, second) = resources.split_at(60);
        let split = [photoshop_segment(first), photoshop_segment(second)];
        files.push((format!("JPEG, {name} in IIM, in two segments"), class, jpeg_with(&split)));
        files.push((format!("PNG, {name} in IIM"), class, png_of(&[raw_profile("iptc", &resources)])));
        let sets = gif_extension(b"MGKIPTC0000", &iim(&[(number, SECRET)]));
        files.push((format!("GIF, {name} in IIM"), class, gif_of(&[sets])));
        files.push((format!("GIF, {name} in resources"), class, gif_of(&[gif_extension(b"MGK8BIM0000", &resources)])));
    }
    for keyword in ["prompt", "workflow", "parameters"] {
        for kind in [b"tEXt", b"zTXt", b"iTXt"] {
            let chunk = text_chunk(kind, keyword, SECRET);
            files.push((format!("PNG, {keyword}"), Class::Text, png_of(&[chunk])));
        }
    }
    for (name, plain) in plain_files() {
        files.push((format!("{name}, and more behind"), Class::Trailer, [&plain[..], SECRET].concat()));
    }
    let after = png_of(&[]);
    let end = after.len() - 12;
    let late = [&after[..end], &text_chunk(b"tEXt", "parameters", SECRET), &after[end..]].concat();
    files.push(("PNG, after its data".to_owned(), Class::Text, late));
    let after = gif_of(&[]);
    let end = after.len() - 1;
    let late = [&after[..end], &[0; 5], &gif_xmp(&xmp(GPS_ATTRIBUTE)), &after[end..]].concat();
    files.push(("GIF, after its frames".to_owned(), Class::Location, late));
    let mpf = jpeg_with(&[(0xe2, b"MPF\0II*\0\x08\0\0\0\0\0".to_vec())]);
    files.push(("JPEG, two images".to_owned(), Class::Trailer, [mpf, jpeg_with(&[(0xfe, SECRET.to_vec())])].concat()));
    files
}

/// Files without private metadata.
fn plain_files() -> Vec<(&'static str, Vec<u8>)> {
    let tiff = Tiff::new(true).write();
    let profile = include_bytes!("../decode/tests/littlecms-srgb.icc");
    let icc = [&b"ICC_PROFILE\0\x01\x01"[..], profile].concat();
    let iim = iim(&[(105, PLAIN)]);
    vec![
        ("a bare JPEG", jpeg_with(&[])),
        ("a progressive JPEG", jpeg(&photo(40, 30), &Jpeg { progressive: true, ..Jpeg::default() })),
        (
            "a JPEG",
            jpeg_with(&[
                exif_segment(&tiff),
                xmp_segment(&xmp("")),
                (0xe2, icc),
                photoshop_segment(&resources(&iim)),
                (0xfe, PLAIN.to_vec()),
                (0xe5, PLAIN.to_vec()),
            ]),
        ),
        ("a bare PNG", png_of(&[])),
        (
            "a PNG",
            png_of(&[
                iccp(profile),
                png_chunk(b"eXIf", &tiff),
                text_chunk(b"iTXt", "XML:com.adobe.xmp", &xmp("")),
                text_chunk(b"tEXt", "Title", PLAIN),
                text_chunk(b"zTXt", "Prompter", PLAIN),
                png_chunk(b"tIME", &[7, 234, 11, 28, 1, 2, 3]),
            ]),
        ),
        ("a bare WebP", written(&photo(21, 13), OutputFormat::Webp, 80)),
        (
            "a WebP",
            webp_of(0x0c, &[riff_chunk(b"EXIF", &tiff), riff_chunk(b"XMP ", &xmp("")), riff_chunk(b"none", PLAIN)]),
        ),
        ("a bare GIF", gif((2, 2), (0, 0, 2, 2), vec![0, 1, 2, 3], None)),
        (
            "a GIF",
            gif_of(&[
                gif_extension(b"ICCRGBG1012", profile),
                gif_comment(PLAIN),
                gif_xmp(&xmp("")),
                gif_extension(b"MGKIPTC0000", &iim),
                gif_extension(b"none1234567", PLAIN),
            ]),
        ),
    ]
}

/// A file without its private metadata, and the classes of what was removed.
type Rewritten = (Vec<u8>, Vec<Class>);

fn feed(bytes: &[u8], size: usize) -> Result<Option<Rewritten>, Scattered> {
    let mut cleaner = Cleaner::new();
    bytes.chunks(size).for_each(|piece| cleaner.push(piece));
    let Some(cleaned) = cleaner.finish()? else { return Ok(None) };
    let removed = cleaned.removed().collect();
    let (mut rewriter, mut output) = (cleaned.rewriter(), Vec::new());
    bytes.chunks(size).for_each(|piece| rewriter.push(piece, &mut output));
    rewriter.finish(&mut output);
    Ok(Some((output, removed)))
}

fn cleaned(bytes: &[u8]) -> Rewritten {
    let cleaned = examine(bytes).unwrap().expect("there is something private");
    let removed = cleaned.removed().collect();
    (rewrite(bytes, cleaned), removed)
}

fn holds(bytes: &[u8], text: &[u8]) -> bool {
    memchr::memmem::find(bytes, text).is_some()
}

fn shown(bytes: &[u8]) -> Bitmap {
    decode(bytes).unwrap()
}

#[test]
fn a_file_without_private_metadata_is_left_as_it_is() {
    for (name, file) in plain_files() {
        assert!(examine(&file).unwrap().is_none(), "{name}");
    }
}

#[test]
fn private_metadata_is_removed_from_every_place() {
    for (name, class, file) in private_files() {
        let (rewritten, removed) = cleaned(&file);
        assert!(removed.contains(&class), "{name}: {removed:?}");
        assert!(!holds(&rewritten, SECRET), "{name}");
        assert!(!holds(&rewritten, PLAIN), "{name}");
        assert!(examine(&rewritten).unwrap().is_none(), "{name} is clean");
    }
}

#[test]
fn the_image_stays_as_it_was() {
    for (name, _, file) in private_files() {
        let (rewritten, _) = cleaned(&file);
        assert_eq!(probe(&rewritten), probe(&file), "{name}");
        let (before, after) = (shown(&file), shown(&rewritten));
        assert_eq!(before.pixels(), after.pixels(), "{name}");
    }
}

#[test]
fn orientation_and_authorship_of_exif_are_kept_in_both_byte_orders() {
    for is_little in [true, false] {
        for (name, _, tiff) in private_exif(is_little) {
            for file in [
                jpeg_with(&[exif_segment(&tiff)]),
                png_of(&[png_chunk(b"eXIf", &tiff)]),
                webp_of(0x08, &[riff_chunk(b"EXIF", &tiff)]),
            ] {
                let (rewritten, _) = cleaned(&file);
                assert_eq!(probe(&rewritten).unwrap().orientation, Orientation::Rotate90, "{name}");
                let count = memchr::memmem::find_iter(&rewritten, AUTHOR).count();
                assert_eq!(count, 2, "{name}: artist and copyright");
            }
        }
    }
}

#[test]
fn origin_and_authorship_of_xmp_are_kept() {
    let packet = xmp(GPS_ATTRIBUTE);
    for file in [
        jpeg_with(&[xmp_segment(&packet)]),
        png_of(&[text_chunk(b"iTXt", "XML:com.adobe.xmp", &packet)]),
        webp_of(0x04, &[riff_chunk(b"XMP ", &packet)]),
        gif_of(&[gif_xmp(&packet)]),
    ] {
        let (rewritten, _) = cleaned(&file);
        let start = memchr::memmem::find(&rewritten, b"<x:xmpmeta").unwrap();
        let end = memchr::memmem::find(&rewritten, b"</x:xmpmeta>").unwrap() + 12;
        let text = std::str::from_utf8(&rewritten[start..end]).unwrap();
        let document = roxmltree::Document::parse(text).unwrap();
        let value = |namespace: &str, name: &str| {
            let element = document.descendants().find(|it| it.has_tag_name((namespace, name))).unwrap();
            let texts = element.descendants().filter(|it| it.is_text()).filter_map(|it| it.text());
            texts.collect::<Vec<_>>().join("|")
        };
        let source = value("http://iptc.org/std/Iptc4xmpExt/2008-02-29/", "DigitalSourceType");
        assert_eq!(source, "http://cv.iptc.org/newscodes/digitalsourcetype/trainedAlgorithmicMedia");
        assert_eq!(value("http://purl.org/dc/elements/1.1/", "creator"), "Author-4419 1|Author-4419 2");
        assert_eq!(value("http://purl.org/dc/elements/1.1/", "rights"), "Author-4419 3");
        assert_eq!(value("http://ns.adobe.com/xap/1.0/rights/", "Owner"), "Author-4419 & \"sons\"");
        assert_eq!(value("http://ns.useplus.org/ldf/xmp/1.0/", "LicensorName"), "Author-4419 4");
        let names = document.descendants().filter(|it| it.is_element()).map(|it| it.tag_name().name());
        let properties = ["Owner", "DigitalSourceType", "creator", "rights", "Licensor", "LicensorName"];
        let frame = ["xmpmeta", "RDF", "Description", "Seq", "Alt", "li"];
        assert!(names.into_iter().all(|name| properties.contains(&name) || frame.contains(&name)), "{text}");
    }
}

#[test]
fn the_by_line_of_iim_is_kept() {
    let file = jpeg_with(&[photoshop_segment(&resources(&iim(&[(90, SECRET), (105, PLAIN)])))]);
    let (rewritten, _) = cleaned(&file);
    let kept = memchr::memmem::find(&rewritten, b"8BIM\x04\x04").unwrap();
    assert!(holds(&rewritten[kept..], &iim(&[])), "the character set, the version and the by-line");
}

#[test]
fn the_color_profile_is_kept() {
    let profile = include_bytes!("../decode/tests/littlecms-srgb.icc");
    let icc = [&b"ICC_PROFILE\0\x01\x01"[..], profile].concat();
    let (tiff, parameters) = (private_exif(true).remove(0).2, text_chunk(b"tEXt", "parameters", SECRET));
    let (jpeg, _) =
        cleaned(&jpeg_with(&[exif_segment(&tiff), (0xe2, icc.clone()), (0xee, b"Adobe\0\x64\0\0\0\0\x01".to_vec())]));
    assert!(holds(&jpeg, &icc) && holds(&jpeg, b"Adobe"));
    let (png, _) = cleaned(&png_of(&[iccp(profile), parameters]));
    assert!(holds(&png, &iccp(profile)));
    let chunks = [riff_chunk(b"ICCP", profile), riff_chunk(b"EXIF", &tiff)];
    let (webp, _) = cleaned(&webp_of(0x28, &chunks));
    assert!(holds(&webp, profile));
    assert_eq!(webp[20], 0x28, "the flags of profile and EXIF");
}

#[test]
fn the_frames_of_an_animation_and_their_number_of_repetitions_are_kept() {
    let (_, _, tiff) = private_exif(true).remove(0);
    let control = png_chunk(b"acTL", &[0, 0, 0, 2, 0, 0, 0, 3]);
    let png = png_of(&[control.clone(), png_chunk(b"eXIf", &tiff)]);
    let animation = riff_chunk(b"ANIM", &[1, 2, 3, 4, 5, 0]);
    let webp = webp_of(0x0a, &[animation.clone(), riff_chunk(b"EXIF", &tiff)]);
    for (file, kept) in [(png, control), (webp, animation)] {
        let (rewritten, _) = cleaned(&file);
        assert!(holds(&rewritten, &kept) && !holds(&rewritten, SECRET));
    }
}

#[test]
fn a_gif_without_metadata_is_what_is_left_of_it() {
    let profile = gif_extension(b"ICCRGBG1012", include_bytes!("../decode/tests/littlecms-srgb.icc"));
    let drawn = [b"\x21\x01\x0c", &[0; 12][..], b"\x04text\0"].concat();
    let secret = gif_xmp(b"damaged, PRIVATE-7731");
    let shown = [profile, gif_extension(b"ANIMEXTS1.0", b"\x01\0\0"), drawn];
    let unknown = b"\x21\xce\x0aplain-5582\0".to_vec();
    let behind = vec![secret, gif_extension(b"none1234567", PLAIN), unknown];
    let around = [vec![gif_comment(PLAIN)], shown.to_vec(), behind].concat();
    let (rewritten, removed) = cleaned(&gif_of(&around));
    assert!(rewritten == gif_of(&shown), "frames, repetitions, profile and texts, byte for byte");
    assert_eq!(removed, [Class::Text, Class::Other]);
}

#[test]
fn a_gif_that_is_cut_off_ends_clean() {
    for (name, _, file) in private_files().into_iter().filter(|(.., file)| file.starts_with(b"GIF")) {
        for length in 0..file.len() {
            let cut = &file[..length];
            let left = examine(cut).unwrap().map_or_else(|| cut.to_vec(), |cleaned| rewrite(cut, cleaned));
            assert!(!holds(&left, SECRET), "{name}, {length} bytes");
        }
    }
}

#[test]
fn sub_blocks_without_an_end_cost_little() {
    let began = std::time::Instant::now();
    let cut = gif_of(&[])[..25].to_vec();
    let endless = b"\x01x".repeat(8 * EXAMINED_MAX);
    for head in [&b"\x21\xff\x0bXMP DataXMP"[..], b"\x21\xff\x0bMGKIPTC0000"] {
        let file = [&cut, head, &endless].concat();
        let (mut cleaner, mut held) = (Cleaner::new(), 0);
        for piece in file.chunks(1000) {
            cleaner.push(piece);
            let Walker::Gif(walker) = &cleaner.walker else { panic!("a GIF") };
            held = held.max(walker.held());
        }
        assert!((EXAMINED_MAX..EXAMINED_MAX + 1000).contains(&held), "{held}");
        let rewritten = rewrite(&file, cleaner.finish().unwrap().expect("is damaged"));
        assert!(rewritten == cut);
    }
    let comment = [&cut, &b"\x21\xfe"[..], &endless].concat();
    assert!(examine(&comment).unwrap().is_none(), "a comment is no reason");
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
}

#[test]
fn a_webp_without_metadata_says_so() {
    let (webp, _) = cleaned(&webp_of(0x0c, &[riff_chunk(b"EXIF", b"II*\0damaged"), riff_chunk(b"XMP ", b"damaged")]));
    assert_eq!(webp[20], 0);
    assert_eq!(u32::from_le_bytes([webp[4], webp[5], webp[6], webp[7]]) as usize + 8, webp.len());
}

#[test]
fn the_thumbnail_of_jfif_goes_with_private_metadata() {
    let jfif = [&b"JFIF\0\x01\x02\0\0\x01\0\x01\x01\x01"[..], b"rgb"].concat();
    let tiff = private_exif(true).remove(0).2;
    let (rewritten, removed) = cleaned(&jpeg_with(&[(0xe0, jfif), exif_segment(&tiff)]));
    assert!(removed.contains(&Class::Thumbnail));
    assert!(holds(&rewritten, b"\xff\xe0\0\x10JFIF\0\x01\x02\0\0\x01\0\x01\0\0\xff"));
}

#[test]
fn damaged_exif_is_dropped_but_for_the_orientation() {
    // Its last value is that of the maker note.
    let whole = private_exif(false).remove(1).2;
    let mut loops = Tiff::new(true);
    loops.detail.push((0x8769, LONG, 8u32.to_le_bytes().to_vec()));
    let mut beyond = whole.clone();
    // The offset of the value of the first entry.
    beyond[18..22].copy_from_slice(&u32::MAX.to_be_bytes());
    for (name, tiff) in [("cut", &whole[..whole.len() - 1]), ("loop", &loops.write()), ("beyond", &beyond)] {
        for file in [jpeg_with(&[exif_segment(tiff)]), png_of(&[png_chunk(b"eXIf", tiff)])] {
            let (rewritten, removed) = cleaned(&file);
            assert_eq!(removed, [Class::Other], "{name}");
            assert_eq!(probe(&rewritten).unwrap().orientation, Orientation::Rotate90, "{name}");
            assert!(!holds(&rewritten, SECRET) && !holds(&rewritten, AUTHOR), "{name}");
        }
    }
}

#[test]
fn padding_after_the_end_is_no_reason_to_rewrite_a_file() {
    for (name, file) in plain_files() {
        assert!(examine(&[&file[..], &[0; 1000]].concat()).unwrap().is_none(), "{name}");
        let behind = [&file[..], &[0; 1000], b"x"].concat();
        assert_eq!(cleaned(&behind).1.iter().filter(|class| **class == Class::Trailer).count(), 1, "{name}");
    }
}

#[test]
fn what_follows_a_lost_structure_is_no_reason_to_rewrite_a_file() {
    let (png, jpeg) = (png_of(&[]), jpeg_with(&[]));
    let tiff = private_exif(true).remove(0).2;
    let with_place = png_of(&[png_chunk(b"eXIf", &tiff)]);
    for (file, with_place, at) in
        [(png, with_place.clone(), with_place.len() - 12), (jpeg, jpeg_with(&[exif_segment(&tiff)]), 2)]
    {
        // In the place of the last chunk, or of the first segment.
        let cut = if at == 2 { 2 } else { file.len() - 12 };
        let lost = [&file[..cut], b"\xff\xe5\0\x01", SECRET, &[0; 40]].concat();
        assert!(examine(&lost).unwrap().is_none());
        let at = if at == 2 { with_place.len() - jpeg_with(&[]).len() + 2 } else { at };
        let lost = [&with_place[..at], b"\xff\xe5\0\x01", SECRET, &[0; 40]].concat();
        assert!(!holds(&cleaned(&lost).0, SECRET));
    }
}

#[test]
fn a_manifest_is_noticed() {
    let tiff = private_exif(true).remove(0).2;
    let jumbf = [&b"JP\0\x01\0\0\0\x01\0\0\0\x40jumb\0\0\0\x26jumdc2pa"[..], &[0; 12], b"c2pa\0"].concat();
    for file in [
        jpeg_with(&[(0xeb, jumbf), exif_segment(&tiff)]),
        png_of(&[png_chunk(b"caBX", b"jumb"), png_chunk(b"eXIf", &tiff)]),
        webp_of(0x08, &[riff_chunk(b"EXIF", &tiff), riff_chunk(b"C2PA", b"jumb")]),
        gif_of(&[gif_extension(b"C2PA_GIF\x01\0\0", b"jumb")]),
    ] {
        assert!(has_manifest(&file));
    }
    assert!(!has_manifest(&jpeg_with(&[exif_segment(&tiff)])));
}

#[test]
fn the_size_of_pieces_does_not_matter() {
    for (name, _, file) in private_files() {
        let whole = feed(&file, file.len()).unwrap();
        for size in [1, 2, 7, 100] {
            assert_eq!(feed(&file, size).unwrap(), whole, "{name}");
        }
    }
}

#[test]
fn metadata_beyond_the_limit_counts_as_private() {
    let packet = |length: usize| {
        let mut packet = xmp("");
        packet.resize(length, b' ');
        packet
    };
    for (length, is_private) in [(EXAMINED_MAX - 1, false), (EXAMINED_MAX, false), (EXAMINED_MAX + 1, true)] {
        for file in [webp_of(0x04, &[riff_chunk(b"XMP ", &packet(length))]), gif_of(&[gif_xmp(&packet(length))])] {
            assert_eq!(examine(&file).unwrap().is_some(), is_private, "{length}");
        }
    }
    let two = [packet(EXAMINED_MAX / 2), packet(EXAMINED_MAX / 2 + 2)];
    assert!(examine(&webp_of(0x04, &two.clone().map(|it| riff_chunk(b"XMP ", &it)))).unwrap().is_some(), "together");
    assert!(examine(&gif_of(&two.map(|it| gif_xmp(&it)))).unwrap().is_some(), "together");
    // Decompressed bytes count.
    let spaces =
        |length: usize| text_chunk(b"zTXt", "XML:com.adobe.xmp", &[&xmp("")[..], &vec![b' '; length]].concat());
    assert!(examine(&png_of(&[spaces(EXAMINED_MAX - 10_000)])).unwrap().is_none());
    assert!(examine(&png_of(&[spaces(EXAMINED_MAX)])).unwrap().is_some());
    let bombs = vec![spaces(20 * EXAMINED_MAX); 200];
    assert!(!holds(&cleaned(&png_of(&bombs)).0, b"zTXt"));
}

#[test]
fn metadata_in_too_many_places_is_refused() {
    let scattered = |count: usize| {
        // A restart interval, which is kept, and a comment.
        let segments = [0xff, 0xdd, 0, 4, 0, 0, 0xff, 0xfe, 0, 2].repeat(count);
        let jpeg = jpeg_with(&[]);
        [&jpeg[..2], &segments, &jpeg[2..], b"behind"].concat()
    };
    // The rest of the image is one more range.
    assert!(examine(&scattered(PARTS_MAX - 1)).is_ok());
    assert_eq!(examine(&scattered(PARTS_MAX)).err(), Some(Scattered));
}

#[test]
fn hostile_xml_costs_little() {
    let began = std::time::Instant::now();
    let many = |one: &dyn Fn(usize) -> String, count: usize| (0..count).map(one).collect::<String>();
    for text in [
        format!("<a {}/>", many(&|n| format!("a{n}='' "), 100_000)),
        many(&|n| format!("<a xmlns:n{n}='n{n}'>"), 20_000),
        "<a>".repeat(300_000),
        "<a/>".repeat(300_000),
        format!("<!DOCTYPE a [<!ENTITY a '{}'>]><a>&a;</a>", "b".repeat(1000)),
    ] {
        assert!(examine(&webp_of(0x04, &[riff_chunk(b"XMP ", text.as_bytes())])).unwrap().is_some());
    }
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
}

proptest! {
    #[test]
    fn damaged_files_never_panic_and_end_clean(
        index in any::<prop::sample::Index>(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
        is_cut in any::<bool>(),
        size in 1usize..200,
    ) {
        let files = private_files();
        let mut file = index.get(&files).2.clone();
        for (at, by) in flips {
            let at = at.index(file.len());
            file[at] ^= by;
        }
        if is_cut {
            file.truncate(cut.index(file.len()));
        }
        let whole = feed(&file, file.len().max(1));
        prop_assert_eq!(&feed(&file, size), &whole);
        if let Ok(Some((rewritten, _))) = whole {
            prop_assert!(examine(&rewritten).unwrap().is_none());
            if let Ok(header) = probe(&file) {
                prop_assert_eq!(probe(&rewritten).map(|header| header.stored_size()), Ok(header.stored_size()));
            }
        }
    }

    #[test]
    fn random_bytes_behind_any_head_never_panic(
        head in prop::sample::select(vec![
            &b"\x89PNG\r\n\x1a\n\0\0\0\x20eXIf"[..], b"\x89PNG\r\n\x1a\n\0\0\0\x20iTXt", b"\xff\xd8\xff\xe1\0\x30Exif\0\0II*\0\x08\0\0\0",
            b"\xff\xd8\xff\xed\0\x30Photoshop 3.0\08BIM\x04\x04\0\0", b"RIFF\xff\0\0\0WEBPEXIF\x20\0\0\0MM\0*\0\0\0\x08",
            b"GIF89a\x01\0\x01\0\0\0\0", b"GIF89a\x01\0\x01\0\0\0\0\x21\xff\x0bXMP DataXMP",
            b"GIF89a\x01\0\x01\0\0\0\0\x21\xff\x0bMGK8BIM0000\x208BIM\x04\x04",
        ]),
        tail in prop::collection::vec(any::<u8>(), 0..300),
        size in 1usize..50,
    ) {
        let bytes = [head, &tail].concat();
        prop_assert_eq!(feed(&bytes, size), feed(&bytes, bytes.len()));
    }
}
