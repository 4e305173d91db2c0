//! Small films for tests.

use crate::{Name, Scanner};

/// A box.
pub(crate) fn boxed(name: &Name, content: &[u8]) -> Vec<u8> {
    let size = u32::try_from(8 + content.len()).expect("is small");
    [&size.to_be_bytes()[..], name, content].concat()
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// A film of four frames with 100 ms each, and sound.
#[derive(Clone)]
pub(crate) struct Film {
    /// The name of the sample entry of the pictures.
    pub entry: Name,
    /// The object type of the sound.
    pub sound: Option<u8>,
    pub matrix: [i32; 4],
    /// More boxes in the sample entry.
    pub extra: Vec<u8>,
    /// The duration in the header of the film.
    pub duration: u32,
    /// The tables of the samples but that of the offsets; the last one of a name counts.
    pub tables: Vec<Vec<u8>>,
    /// Whether there is a table of offsets.
    pub offsets: bool,
    pub edit: Vec<u8>,
    /// Boxes at the end of the index.
    pub user: Vec<u8>,
    /// The handler of a track beside pictures and sound.
    pub beside: Option<Name>,
}

impl Default for Film {
    fn default() -> Self {
        let table = |name, numbers: &[u32]| boxed(name, &[vec![0; 4], words(numbers)].concat());
        Self {
            entry: *b"avc1",
            sound: Some(0x40),
            matrix: [1 << 16, 0, 0, 1 << 16],
            extra: Vec::new(),
            duration: 400,
            tables: vec![
                table(b"stts", &[1, 4, 100]),
                table(b"stsz", &[0, 4, 10, 20, 30, 40]),
                table(b"stsc", &[1, 1, 4, 1]),
                table(b"stss", &[2, 1, 3]),
            ],
            offsets: true,
            edit: Vec::new(),
            user: Vec::new(),
            beside: None,
        }
    }
}

impl Film {
    /// With an edit list.
    pub fn with_edit(self, list: Vec<u8>) -> Self {
        Self { edit: boxed(b"edts", &list), ..self }
    }

    pub fn file(&self) -> Vec<u8> {
        let kind = boxed(b"ftyp", b"isom\0\0\x02\0isomiso2avc1mp41");
        let samples: Vec<u8> = (0..4_u8).flat_map(|number| vec![number; 10 + 10 * usize::from(number)]).collect();
        let offset = u32::try_from(kind.len() + 8).expect("is small");
        let video = self.track(b"vide", &self.video_entry(), offset);
        let sound = self.sound.map(|object| self.track(b"soun", &sound_entry(object), offset));
        let header = boxed(b"mvhd", &[words(&[0, 0, 0, 1000, self.duration]), vec![0; 80]].concat());
        let beside = self.beside.map(|handler| self.track(&handler, &boxed(b"data", &[0; 8]), offset));
        let tracks = [Some(video), sound, beside].into_iter().flatten().collect::<Vec<_>>().concat();
        let index = boxed(b"moov", &[header, tracks, self.user.clone()].concat());
        [kind, boxed(b"mdat", &samples), index].concat()
    }

    fn video_entry(&self) -> Vec<u8> {
        let size = [vec![0; 24], vec![1, 64, 0, 180], vec![0; 50]].concat();
        let avc = boxed(b"avcC", b"\x01\x64\0\x28\xff\xe1\0\x04\x67\x64\0\x28\x01\0\x02\x68\xee");
        boxed(&self.entry, &[size, avc, self.extra.clone()].concat())
    }

    fn track(&self, handler: &Name, entry: &[u8], offset: u32) -> Vec<u8> {
        let matrix = self.matrix.map(|number| number.to_be_bytes());
        let [a, b, c, d] = matrix;
        let matrix = [a, b, [0; 4], c, d, [0; 4], [0; 4], [0; 4], (1_u32 << 30).to_be_bytes()].concat();
        let header = [words(&[7, 0, 0, 1, 0, 400]), vec![0; 16], matrix, vec![0; 8]].concat();
        let offsets = boxed(b"stco", &words(&[0, 1, offset]));
        let description = boxed(b"stsd", &[words(&[0, 1]), entry.to_vec()].concat());
        let offsets = if self.offsets { offsets } else { Vec::new() };
        let table = boxed(b"stbl", &[description, offsets, self.tables.concat()].concat());
        let media = [
            boxed(b"mdhd", &words(&[0, 0, 0, 1000, 400, 0])),
            boxed(b"hdlr", &[vec![0; 8], handler.to_vec(), vec![0; 13]].concat()),
            boxed(b"minf", &table),
        ];
        boxed(b"trak", &[boxed(b"tkhd", &header), self.edit.clone(), boxed(b"mdia", &media.concat())].concat())
    }
}

/// The sample entry of sound with this object type.
fn sound_entry(object: u8) -> Vec<u8> {
    let config = [&[object, 0x15][..], &[0; 11]].concat();
    let config = [&[4, config.len() as u8][..], &config].concat();
    let stream = [&[0, 0, 0][..], &config].concat();
    // A length in the longest form.
    let stream = [&[0, 0, 0, 0, 3, 0x80, 0x80, 0x80, stream.len() as u8][..], &stream].concat();
    boxed(b"mp4a", &[vec![0; 28], boxed(b"esds", &stream)].concat())
}

/// The film of the defaults.
pub(crate) fn film() -> Vec<u8> {
    Film::default().file()
}

/// The content of its index.
pub(crate) fn index_of(file: &[u8]) -> Vec<u8> {
    let mut scanner = Scanner::new();
    scanner.stream(0, file).expect("is a film");
    scanner.finish(file.len() as u64).expect("is a film")
}
