use std::io::Write;

use proptest::prelude::*;

use super::*;
use crate::bitmap::{Bitmap, Channels};
use crate::decode;
use crate::format::OutputFormat;
use crate::geometry::Size;
use crate::testing::*;

const URI: &str = "http://cv.iptc.org/newscodes/digitalsourcetype/trainedAlgorithmicMedia";

fn says(packet: &str) -> Vec<String> {
    Properties::parse(packet.as_bytes()).digital_source_types
}

/// An image in each format, with and without alpha where the format has it.
fn files() -> Vec<(&'static str, Vec<u8>)> {
    let clear = drawn(24, 18, Channels::Rgba, |x, y| [(x * 10) as u8, (y * 12) as u8, 77, (x * 11) as u8]);
    vec![
        ("jpeg", written(&photo(33, 21), OutputFormat::Jpeg, 85)),
        ("png", written(&photo(33, 21), OutputFormat::Png, 85)),
        ("png with alpha", written(&clear, OutputFormat::Png, 85)),
        ("webp", written(&photo(33, 21), OutputFormat::Webp, 85)),
        ("webp with alpha", written(&clear, OutputFormat::Webp, 85)),
        ("lossless webp", lossless_webp()),
        ("gif", gif_file()),
    ]
}

/// One pixel, as `cwebp -lossless` writes it (RFC 9649, 3.4): width and height of 1, with alpha.
fn lossless_webp() -> Vec<u8> {
    b"RIFF\x1a\0\0\0WEBPVP8L\x0d\0\0\0\x2f\0\0\0\x10\x07\x10\x11\x11\x88\x88\xfe\x07\0".to_vec()
}

/// Two by two pixels of a palette of two colors, in the version without extensions.
fn gif_file() -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = gif::Encoder::new(&mut file, 2, 2, &[255, 0, 0, 0, 0, 255]).expect("encodes");
    encoder.write_frame(&gif::Frame::from_indexed_pixels(2, 2, vec![0, 1, 1, 0], None)).expect("encodes");
    drop(encoder);
    file[..6].copy_from_slice(b"GIF87a");
    file
}

/// An MP4 of a file type, some data and an empty movie.
fn mp4_file() -> Vec<u8> {
    [mp4_part(b"ftyp", b"isom\0\0\0\0"), mp4_part(b"mdat", &[7; 300]), mp4_part(b"moov", b"")].concat()
}

fn mp4_part(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
    [&(data.len() as u32 + 8).to_be_bytes()[..], kind, data].concat()
}

fn pixels(file: &[u8]) -> (Size, Vec<u8>) {
    let image: Bitmap = decode(file).expect("decodes");
    (image.size(), image.pixels().to_vec())
}

#[test]
fn a_packet_says_nothing_but_the_origin() {
    let packet = packet(URI, Some("urn:c2pa:F9168C5E-CEB2-4faa-B6BF-329BF39FA1E4"));
    let document = roxmltree::Document::parse(&packet).expect("well-formed");
    let described: Vec<(&str, &str)> = document
        .descendants()
        .filter(|node| node.is_element() && node.children().all(|child| child.is_text()))
        .map(|node| (node.tag_name().name(), node.text().unwrap_or_default()))
        .collect();
    let provenance = "urn:c2pa:F9168C5E-CEB2-4faa-B6BF-329BF39FA1E4";
    assert_eq!(described, [("DigitalSourceType", URI), ("provenance", provenance)]);
    let read = Properties::parse(packet.as_bytes());
    assert_eq!(read, Properties { digital_source_types: vec![URI.into()], provenance: Some(provenance.into()) });
}

#[test]
fn only_the_label_of_a_manifest_is_kept_as_provenance() {
    for (value, is_kept) in [
        ("urn:c2pa:1", true),
        ("https://example.com/manifest", false),
        ("urn:uuid:1", false),
        ("urn:c2pa:<b>", false),
        (&format!("urn:c2pa:{}", "a".repeat(191)), true),
        (&format!("urn:c2pa:{}", "a".repeat(192)), false),
    ] {
        assert_eq!(packet(URI, Some(value)).contains("provenance"), is_kept, "{value}");
    }
}

#[test]
fn the_term_is_read_in_every_form_of_a_property() {
    let rdf = |body: &str| {
        format!(
            "<x:xmpmeta xmlns:x='adobe:ns:meta/'><rdf:RDF xmlns:rdf='{RDF}' xmlns:e='{IPTC_EXTENSION}'>{body}</rdf:RDF></x:xmpmeta>"
        )
    };
    for body in [
        format!("<rdf:Description rdf:about='' e:DigitalSourceType='{URI}'/>"),
        format!("<rdf:Description><e:DigitalSourceType>\n {URI} </e:DigitalSourceType></rdf:Description>"),
        format!("<rdf:Description><e:DigitalSourceType rdf:resource='{URI}'/></rdf:Description>"),
        format!("<rdf:Description/><rdf:Description e:DigitalSourceType='{URI}'/>"),
    ] {
        assert_eq!(says(&rdf(&body)), [URI], "{body}");
    }
    assert_eq!(says(&format!("{}\0\0  ", rdf(&format!("<rdf:Description e:DigitalSourceType='{URI}'/>")))), [URI]);
    for body in [
        // Another namespace, a property of another resource, no property, and a declared entity.
        format!("<rdf:Description xmlns:o='urn:o' o:DigitalSourceType='{URI}'/>"),
        format!("<rdf:Description><e:Other><rdf:Description e:DigitalSourceType='{URI}'/></e:Other></rdf:Description>"),
        format!("<rdf:Description>DigitalSourceType {URI}</rdf:Description>"),
    ] {
        assert_eq!(says(&rdf(&body)), [""; 0], "{body}");
    }
    let bomb = format!("<!DOCTYPE a [<!ENTITY b '{URI}'>]>{}", rdf("<rdf:Description e:DigitalSourceType='&b;'/>"));
    assert_eq!(says(&bomb), [""; 0]);
}

#[test]
fn nothing_is_read_from_a_packet_that_is_no_xml() {
    for packet in ["", "<", "\u{feff}", "<a>", &"<a>".repeat(MAX_PACKET_BYTES / 3), "<rdf:RDF/>"] {
        assert_eq!(says(packet), [""; 0]);
    }
}

#[test]
fn a_packet_is_written_into_every_format_and_changes_no_pixel() {
    for (name, file) in files() {
        let marked = insert_xmp(file.clone(), packet(URI, None).as_bytes());
        assert_eq!(read_xmp(&marked).as_deref(), Some(packet(URI, None).as_bytes()), "{name}");
        assert_eq!(pixels(&marked), pixels(&file), "{name}");
        assert_eq!(read_xmp(&file), None, "{name}");
        // A packet replaces the one before.
        let again = insert_xmp(marked.clone(), packet("http://example.com/other", None).as_bytes());
        assert_eq!(Properties::of_file(&again).digital_source_types, ["http://example.com/other"], "{name}");
        assert_eq!(insert_xmp(again, packet(URI, None).as_bytes()), marked, "{name}");
    }
}

#[test]
fn other_readers_find_the_packet_where_the_specification_says() {
    let packet = packet(URI, None);
    let marked = |index: usize| insert_xmp(files()[index].1.clone(), packet.as_bytes());
    // XMP Specification, part 3, 1.1.3: an APP1 segment, after that of JFIF if there is one.
    let jpeg = marked(0);
    let at = if jpeg[3] == 0xe0 { 4 + usize::from(u16::from_be_bytes([jpeg[4], jpeg[5]])) } else { 2 };
    assert_eq!(jpeg[at..at + 2], [0xff, 0xe1]);
    assert_eq!(usize::from(u16::from_be_bytes([jpeg[at + 2], jpeg[at + 3]])), 2 + 29 + packet.len());
    assert_eq!(&jpeg[at + 4..at + 33], b"http://ns.adobe.com/xap/1.0/\0");
    assert_eq!(&jpeg[at + 33..at + 33 + packet.len()], packet.as_bytes());
    // 1.1.5: an international text chunk, whose checksum the decoder of the crate `png` checks.
    let png = marked(1);
    let reader = png::Decoder::new(std::io::Cursor::new(&png)).read_info().expect("reads");
    let text = &reader.info().utf8_text[0];
    assert_eq!((text.keyword.as_str(), text.get_text().expect("is text")), ("XML:com.adobe.xmp", packet.clone()));
    // RFC 9649, 2.7: the extended header says that there is a packet and, in the lossless file, alpha.
    for (index, alpha) in [(3, 0), (4, 0x10), (5, 0x10)] {
        let webp = marked(index);
        assert_eq!(&webp[8..16], b"WEBPVP8X");
        assert_eq!(webp[20] & 0x14, 0x04 | alpha, "{index}");
        assert_eq!(u32::from_le_bytes([webp[4], webp[5], webp[6], webp[7]]) as usize, webp.len() - 8);
        let chunk = webp.windows(4).rposition(|part| part == b"XMP ").expect("has one");
        assert_eq!(&webp[chunk + 8..chunk + 8 + packet.len()], packet.as_bytes());
    }
    // 1.1.2: the trailer leads from any byte of the packet to the end.
    let gif = marked(6);
    assert_eq!(&gif[..6], b"GIF89a");
    let start = gif.windows(14).position(|part| part == GIF_XMP).expect("has one") + 14;
    let end = start + packet.len() + 258;
    for first in start..start + packet.len() {
        let mut at = first;
        while gif[at] != 0 {
            at += 1 + usize::from(gif[at]);
        }
        assert!(at + 1 == end || at + 2 == end, "{first}");
    }
    // 1.1.6: a box with this type.
    let mp4 = insert_xmp(mp4_file(), packet.as_bytes());
    let box_at = mp4_file().len();
    assert_eq!(u32::from_be_bytes([0, 1, 2, 3].map(|at| mp4[box_at + at])) as usize, mp4.len() - box_at);
    let kind = "75756964be7acfcb97a942e89c71999491e3afac";
    let hex: String = mp4[box_at + 4..box_at + 24].iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!((hex.as_str(), &mp4[box_at + 24..]), (kind, packet.as_bytes()));
    assert_eq!(mp4[..box_at], mp4_file());
}

#[test]
fn bytes_may_arrive_one_by_one() {
    let mp4 = ("mp4", insert_xmp(mp4_file(), packet(URI, None).as_bytes()));
    let marked = files().into_iter().map(|(name, file)| (name, insert_xmp(file, packet(URI, None).as_bytes())));
    for (name, file) in marked.chain([mp4]) {
        for size in [1, 2, 7, 64, 1000] {
            let mut reader = XmpReader::default();
            file.chunks(size).for_each(|piece| reader.push(piece));
            let found = reader.finish();
            assert_eq!(found.packet.as_deref(), Some(packet(URI, None).as_bytes()), "{name} {size}");
        }
    }
}

#[test]
fn a_file_with_a_manifest_is_left_alone() {
    let after = |file: &[u8], at: usize, part: &[u8]| [&file[..at], part, &file[at..]].concat();
    let files = files();
    let jumbf =
        b"\xff\xeb\x00\x2bJP\0\x01\0\0\0\x01\0\0\0\x21jumb\0\0\0\x19jumdc2pa\0\x11\0\x10\x80\0\0\xaa\0\x38\x9b\x71\x03";
    let manifests = [
        after(&files[0].1, 2, jumbf),
        after(&files[1].1, 33, &png_chunk(b"caBX", b"manifest")),
        insert_xmp(files[3].1.clone(), b"").into_iter().chain(*b"C2PA\x02\0\0\0ab").collect(),
        after(&mp4_file(), 16, &mp4_part(b"uuid", &[MP4_C2PA, b"manifest"].concat())),
    ];
    for mut file in manifests {
        if file.starts_with(b"RIFF") {
            let length = (file.len() - 8) as u32;
            file[4..8].copy_from_slice(&length.to_le_bytes());
        }
        let mut reader = XmpReader::default();
        reader.push(&file);
        assert!(reader.finish().has_manifest);
        assert_eq!(insert_xmp(file.clone(), packet(URI, None).as_bytes()), file);
    }
}

#[test]
fn a_compressed_text_chunk_is_read_up_to_its_limit() {
    let chunk = |text: &[u8]| {
        let mut deflated = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        deflated.write_all(text).expect("compresses");
        let data = [PNG_XMP, &[1, 0, 0, 0], &deflated.finish().expect("compresses")].concat();
        png_file(ihdr(1, 1, 8, 0, false), &[png_chunk(b"iTXt", &data)], &[0, 7])
    };
    assert_eq!(Properties::of_file(&chunk(packet(URI, None).as_bytes())).digital_source_types, [URI]);
    let bomb = read_xmp(&chunk(&vec![b' '; 64 * MAX_PACKET_BYTES])).expect("is read in part");
    assert_eq!(bomb.len(), MAX_PACKET_BYTES);
}

#[test]
fn a_packet_counts_up_to_its_limit() {
    let webp = |length: usize| {
        let bare = packet(URI, None);
        let padded = format!("{bare}{}", " ".repeat(length - 8 - bare.len()));
        insert_xmp(files()[3].1.clone(), padded.as_bytes())
    };
    assert!(read_xmp(&webp(MAX_PACKET_BYTES - 2)).is_some());
    assert!(read_xmp(&webp(MAX_PACKET_BYTES)).is_some());
    assert!(read_xmp(&webp(MAX_PACKET_BYTES + 2)).is_none());
}

#[test]
fn a_video_is_extended_only_where_a_box_ends() {
    let whole = mp4_file();
    let open = [&whole[..], &[0, 0, 0, 0], b"mdat123"].concat();
    for file in [open, whole[..whole.len() - 1].to_vec(), [&whole[..], &[0]].concat()] {
        assert_eq!(insert_xmp(file.clone(), b"<x/>"), file);
    }
}

proptest! {
    #[test]
    fn damaged_files_are_read_and_written_without_a_panic(
        which in 0_usize..8, cut in 0.0..1.0, damage in prop::collection::vec((0.0..1.0, any::<u8>()), 0..8)
    ) {
        let mut all: Vec<Vec<u8>> = files().into_iter().map(|(_, file)| file).collect();
        all.push(mp4_file());
        let mut file = insert_xmp(all.swap_remove(which), packet(URI, None).as_bytes());
        for (at, byte) in damage {
            let at = (file.len() as f64 * at) as usize;
            file[at] = byte;
        }
        file.truncate((file.len() as f64 * (1.0 - cut * cut)) as usize);
        let mut one_by_one = XmpReader::default();
        file.iter().for_each(|byte| one_by_one.push(std::slice::from_ref(byte)));
        let mut at_once = XmpReader::default();
        at_once.push(&file);
        prop_assert_eq!(one_by_one.finish(), at_once.finish());
        insert_xmp(file, packet(URI, None).as_bytes());
    }
}

/// The parser compares each attribute of an element, and each namespace, with all others.
#[test]
fn a_packet_with_too_many_attributes_or_namespaces_says_nothing() {
    let term = "http://cv.iptc.org/newscodes/digitalsourcetype/trainedAlgorithmicMedia";
    for (number, is_read) in [(511, true), (512, true), (513, false), (20_000, false)] {
        // A packet declares three namespaces, one of them in its first element.
        let attributes: String = (1..number).map(|index| format!(" a{index}=\"\"")).collect();
        let namespaces: String = (3..number).map(|index| format!(" xmlns:n{index}=\"n{index}\"")).collect();
        for extra in [attributes, namespaces] {
            let text = packet(term, None).replacen("<x:xmpmeta", &format!("<x:xmpmeta{extra}"), 1);
            assert_eq!(!Properties::parse(text.as_bytes()).digital_source_types.is_empty(), is_read, "{number}");
        }
    }
}
