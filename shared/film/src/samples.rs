//! The samples of a track: where they are, and when they are shown (14496-12, 8.6 and 8.7).

use std::ops::Range;

use crate::boxes::{Cursor, children};
use crate::movie::{Edit, milliseconds};
use crate::{Error, Name, SAMPLES_MAX};

/// A coded frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Position in the file.
    pub offset: u64,
    /// Length in bytes.
    pub size: u32,
    /// When it is shown, in ticks of the track, before the edit.
    pub shown: i64,
    /// `true` if it is decoded without any other.
    pub is_key: bool,
}

/// The samples of a track in the order of decoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Samples {
    all: Vec<Sample>,
    /// The times at which samples are shown.
    shown: Range<i64>,
    timescale: u32,
}

/// The tables of a track, unread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tables<'a> {
    durations: Option<&'a [u8]>,
    shifts: Option<&'a [u8]>,
    keys: Option<&'a [u8]>,
    chunks: Option<&'a [u8]>,
    sizes: Option<(Name, &'a [u8])>,
    offsets: Option<(Name, &'a [u8])>,
}

impl<'a> Tables<'a> {
    pub fn read(content: &'a [u8]) -> Result<Self, Error> {
        let mut tables = Self::default();
        for child in children(*b"stbl", content) {
            let child = child?;
            match &child.name {
                b"stts" => tables.durations = Some(child.content),
                b"ctts" => tables.shifts = Some(child.content),
                b"stss" => tables.keys = Some(child.content),
                b"stsc" => tables.chunks = Some(child.content),
                b"stsz" | b"stz2" => tables.sizes = Some((child.name, child.content)),
                b"stco" | b"co64" => tables.offsets = Some((child.name, child.content)),
                _ => {}
            }
        }
        Ok(tables)
    }

    fn sizes(&self) -> Result<Vec<u32>, Error> {
        let (name, content) = self.sizes.ok_or(Error::Damaged(*b"stbl"))?;
        let (_, mut table) = Cursor::full(name, content)?;
        let (fixed, bits) = match &name {
            b"stsz" => (table.u32()?, 32),
            _ => (0, table.u32()? & 0xff),
        };
        let count = table.u32()?;
        if count > SAMPLES_MAX {
            return Err(Error::TooManySamples);
        }
        Ok(match (fixed, bits) {
            (0, 32) => table.table(count)?.iter().map(|size| u32::from_be_bytes(*size)).collect(),
            (0, 16) => table.table(count)?.iter().map(|size| u16::from_be_bytes(*size).into()).collect(),
            (0, 8) => table.table(count)?.iter().map(|[size]| u32::from(*size)).collect(),
            // Halves of bytes, which no film needs.
            (0, _) => return Err(Error::Damaged(name)),
            (fixed, _) => vec![fixed; count as usize],
        })
    }

    /// The positions of the samples of these sizes, chunk by chunk.
    fn offsets(&self, sizes: &[u32]) -> Result<Vec<u64>, Error> {
        let (name, content) = self.offsets.ok_or(Error::Damaged(*b"stbl"))?;
        let (_, mut table) = Cursor::full(name, content)?;
        let count = table.u32()?;
        // Both tables are as long as the file says, and not copied.
        let (short, long) = match &name {
            b"stco" => (table.table::<4>(count)?, &[][..]),
            _ => (&[][..], table.table::<8>(count)?),
        };
        let short = short.iter().map(|offset| u64::from(u32::from_be_bytes(*offset)));
        let chunks = short.chain(long.iter().map(|offset| u64::from_be_bytes(*offset)));
        let stsc = Error::Damaged(*b"stsc");
        let (_, mut runs) = Cursor::full(*b"stsc", self.chunks.ok_or(Error::Damaged(*b"stbl"))?)?;
        let run_count = runs.u32()?;
        let mut runs = runs.table::<12>(run_count)?.iter().map(|run| {
            let [a, b, c, d, e, f, g, h, ..] = *run;
            (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]))
        });
        let mut offsets = Vec::with_capacity(sizes.len());
        let (mut current, mut next) = (0, runs.next());
        for (number, mut at) in (1..).zip(chunks) {
            if let Some((first, samples)) = next.filter(|(first, _)| *first <= number) {
                if first != number {
                    return Err(stsc);
                }
                (current, next) = (samples, runs.next());
            }
            for _ in 0..current {
                // Chunks may claim more samples than there are.
                let Some(size) = sizes.get(offsets.len()) else { return Err(stsc) };
                offsets.push(at);
                at = at.checked_add((*size).into()).ok_or(Error::Damaged(name))?;
            }
        }
        if offsets.len() == sizes.len() { Ok(offsets) } else { Err(stsc) }
    }
}

/// The values of a table of runs, `count` values in all.
fn runs<T>(
    name: Name,
    content: &[u8],
    count: usize,
    value: impl Fn(u8, u32) -> T,
    mut take: impl FnMut(usize, &T),
) -> Result<(), Error> {
    let (version, mut table) = Cursor::full(name, content)?;
    let entries = table.u32()?;
    let mut index = 0;
    for entry in table.table::<8>(entries)? {
        let [a, b, c, d, e, f, g, h] = *entry;
        let value = value(version, u32::from_be_bytes([e, f, g, h]));
        let length = (u32::from_be_bytes([a, b, c, d]) as usize).min(count - index);
        for _ in 0..length {
            take(index, &value);
            index += 1;
        }
    }
    if index == count { Ok(()) } else { Err(Error::Damaged(name)) }
}

pub(crate) fn read(
    tables: &Tables<'_>,
    edit: Option<Edit>,
    timescale: u32,
    movie_timescale: u32,
) -> Result<Samples, Error> {
    let sizes = tables.sizes()?;
    let count = sizes.len();
    let offsets = tables.offsets(&sizes)?;
    let is_key = tables.keys.is_none();
    let sample = |(size, offset): (u32, u64)| Sample { offset, size, shown: 0, is_key };
    let mut all: Vec<Sample> = sizes.into_iter().zip(offsets).map(sample).collect();

    let mut time = 0_i64;
    let durations = tables.durations.ok_or(Error::Damaged(*b"stbl"))?;
    // The sum of 2^18 numbers of 32 bits fits.
    runs(
        *b"stts",
        durations,
        count,
        |_, ticks| i64::from(ticks),
        |index, ticks| {
            all[index].shown = time;
            time += ticks;
        },
    )?;
    let end = time;
    if let Some(shifts) = tables.shifts {
        // Writers of version 0 store negative numbers too.
        let value = |_, ticks: u32| i64::from(ticks.cast_signed());
        runs(*b"ctts", shifts, count, value, |index, ticks| all[index].shown += ticks)?;
    }
    if let Some(keys) = tables.keys {
        let (_, mut table) = Cursor::full(*b"stss", keys)?;
        let key_count = table.u32()?;
        for number in table.table(key_count)? {
            let index = (u32::from_be_bytes(*number) as usize).checked_sub(1);
            index.and_then(|index| all.get_mut(index)).ok_or(Error::Damaged(*b"stss"))?.is_key = true;
        }
    }
    let start = edit.map_or(0, |edit| edit.start);
    let length = edit.filter(|edit| edit.duration > 0).map(|edit| {
        let ticks = u128::from(edit.duration) * u128::from(timescale) / u128::from(movie_timescale.max(1));
        i64::try_from(ticks).unwrap_or(i64::MAX)
    });
    let latest = all.iter().map(|sample| sample.shown).max().map_or(end, |latest| latest.saturating_add(1).max(end));
    let until = length.map_or(latest, |length| start.saturating_add(length));
    Ok(Samples { all, shown: start..until, timescale })
}

impl Samples {
    /// The samples in the order of decoding.
    pub fn all(&self) -> &[Sample] {
        &self.all
    }

    /// For how long they are shown, in milliseconds.
    pub fn milliseconds(&self) -> u64 {
        let ticks = u64::try_from(self.shown.end.saturating_sub(self.shown.start)).unwrap_or_default();
        milliseconds(ticks, self.timescale)
    }

    /// The samples that are shown, with their indexes. An edit that would leave none is ignored.
    fn visible(&self) -> impl Iterator<Item = (usize, &Sample)> {
        // A sample is shown until the next one begins, so that the one before the start may be shown, too.
        let is_before = |sample: &&Sample| sample.shown <= self.shown.start;
        let from = self.all.iter().filter(is_before).map(|sample| sample.shown).max().unwrap_or(i64::MIN);
        let range = if self.all.iter().any(|sample| (from..self.shown.end).contains(&sample.shown)) {
            from..self.shown.end
        } else {
            i64::MIN..i64::MAX
        };
        self.all.iter().enumerate().filter(move |(_, sample)| range.contains(&sample.shown))
    }

    /// The sample that is shown first.
    pub fn first(&self) -> Option<usize> {
        self.visible().min_by_key(|(_, sample)| sample.shown).map(|(index, _)| index)
    }

    /// The sample that is shown last.
    pub fn last(&self) -> Option<usize> {
        self.visible().max_by_key(|(_, sample)| sample.shown).map(|(index, _)| index)
    }

    /// The sample that is shown `seconds` after the beginning of the film. `None` at and beyond the end.
    pub fn at(&self, seconds: f64) -> Option<usize> {
        let ticks = seconds * f64::from(self.timescale);
        // A number with three decimals is the tick that it stands for.
        let ticks = if (ticks - ticks.round()).abs() < 1e-6 { ticks.round() } else { ticks.floor() };
        // The conversion saturates.
        let time = self.shown.start.saturating_add(ticks as i64);
        if !(ticks >= 0.0 && time < self.shown.end) {
            return None;
        }
        let reached = self.visible().filter(|(_, sample)| sample.shown <= time);
        // Before the first one is shown, players show it.
        reached.max_by_key(|(_, sample)| sample.shown).map(|(index, _)| index).or_else(|| self.first())
    }

    /// The key frames from which a sample can be decoded, by their indexes: those that are decoded and shown no later, nearest first.
    pub fn keys(&self, wanted: usize) -> impl Iterator<Item = usize> {
        let until = self.all.get(..=wanted).unwrap_or_default();
        let shown = until.last().map_or(i64::MIN, |sample| sample.shown);
        let is_key = move |(_, sample): &(usize, &Sample)| sample.is_key && sample.shown <= shown;
        until.iter().enumerate().rev().filter(is_key).map(|(index, _)| index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Movie;
    use crate::testing::{Film, boxed, index_of};

    fn samples(film: &Film) -> Result<Samples, Error> {
        let index = index_of(&film.file());
        let movie = Movie::read(&index).expect("is a film");
        movie.video().expect("has pictures").samples(movie.timescale)
    }

    fn keys(samples: &Samples, wanted: usize) -> Vec<usize> {
        samples.keys(wanted).collect()
    }

    /// A film of four frames of 100 ms, of which the first and the third are key frames.
    fn film() -> Film {
        Film::default()
    }

    fn full(name: &[u8; 4], numbers: &[u32]) -> Vec<u8> {
        boxed(name, &std::iter::once(&0).chain(numbers).flat_map(|number| number.to_be_bytes()).collect::<Vec<u8>>())
    }

    /// Four frames I P B B, as encoders order them, with an edit that begins at the first.
    fn reordered() -> Film {
        let ctts = full(b"ctts", &[4, 1, 100, 1, 300, 1, 0, 1, 0]);
        let elst = full(b"elst", &[1, 400, 100, 1 << 16]);
        Film { tables: [film().tables[..3].to_vec(), vec![full(b"stss", &[1, 1]), ctts]].concat(), ..film() }
            .with_edit(elst)
    }

    #[test]
    fn samples_have_places_times_and_keys() {
        let file = film().file();
        let read = samples(&film()).expect("is whole");
        let found: Vec<_> = read.all().iter().map(|it| (it.size, it.shown, it.is_key)).collect();
        assert_eq!(found, [(10, 0, true), (20, 100, false), (30, 200, true), (40, 300, false)]);
        for (number, sample) in read.all().iter().enumerate() {
            assert_eq!(file[sample.offset as usize], number as u8, "the first byte of each is its number");
        }
        assert_eq!((read.first(), read.last()), (Some(0), Some(3)));
        assert_eq!((keys(&read, 1), keys(&read, 3), keys(&read, 4)), (vec![0], vec![2, 0], vec![]));
    }

    #[test]
    fn a_time_shows_the_sample_that_began_last() {
        let read = samples(&film()).expect("is whole");
        for (seconds, index) in [
            (0.0, Some(0)),
            (0.0999, Some(0)),
            (0.1, Some(1)),
            (0.3, Some(3)),
            (0.3999, Some(3)),
            (0.4, None),
            (1e300, None),
            (-0.1, None),
            (f64::NAN, None),
        ] {
            assert_eq!(read.at(seconds), index, "{seconds}");
        }
    }

    #[test]
    fn frames_that_are_decoded_before_others_are_found_by_when_they_are_shown() {
        let read = samples(&reordered()).expect("is whole");
        assert_eq!((read.first(), read.last()), (Some(0), Some(1)));
        let shown: Vec<_> = [0.0, 0.1, 0.2, 0.3].map(|seconds| read.at(seconds)).into();
        assert_eq!(shown, [Some(0), Some(2), Some(3), Some(1)]);
        assert_eq!(read.at(0.4), None);
        assert_eq!(keys(&read, 2), [0]);
    }

    #[test]
    fn a_frame_before_its_key_frame_is_decoded_from_the_key_frame_before() {
        // Shown at 0, 100, 300, 200: the last one leads the key frame, which is decoded before it.
        let ctts = full(b"ctts", &[4, 1, 0, 1, 0, 1, 100, 1, 0_u32.wrapping_sub(100)]);
        let read = samples(&Film { tables: [film().tables, vec![ctts]].concat(), ..film() }).expect("is whole");
        assert_eq!((read.last(), keys(&read, 2), keys(&read, 3)), (Some(2), vec![2, 0], vec![0]));
    }

    #[test]
    fn an_edit_shows_a_part_of_the_film() {
        // The film has 1000 ticks in a second, as the track.
        let cut = |duration, start| {
            samples(&film().with_edit(full(b"elst", &[1, duration, start, 1 << 16]))).expect("is whole")
        };
        let part = cut(200, 100);
        assert_eq!((part.first(), part.last()), (Some(1), Some(2)));
        assert_eq!((part.at(0.0), part.at(0.1), part.at(0.2)), (Some(1), Some(2), None));
        let between = cut(100, 150);
        assert_eq!((between.first(), between.last(), between.at(0.05)), (Some(1), Some(2), Some(2)));
        let nothing = cut(100, 5000);
        assert_eq!((nothing.first(), nothing.last()), (Some(3), Some(3)), "the last frame stays");
        let empty_first = samples(&film().with_edit(full(b"elst", &[2, 50, u32::MAX, 1 << 16, 200, 200, 1 << 16])));
        assert_eq!(empty_first.expect("is whole").first(), Some(2));
    }

    #[test]
    fn a_track_has_at_most_262144_samples() {
        for (count, fits) in [(SAMPLES_MAX - 1, true), (SAMPLES_MAX, true), (SAMPLES_MAX + 1, false), (u32::MAX, false)]
        {
            let tables =
                vec![full(b"stts", &[1, count, 1]), full(b"stsz", &[5, count]), full(b"stsc", &[1, 1, count, 1])];
            let read = samples(&Film { tables, ..film() });
            assert_eq!(read.map(|read| read.all().len()).ok(), fits.then_some(count as usize), "{count}");
        }
    }

    #[test]
    fn tables_that_contradict_each_other_are_refused() {
        for (replaced, name) in [
            (full(b"stts", &[1, 3, 100]), b"stts"),
            (full(b"stts", &[u32::MAX, 4, 100]), b"stts"),
            (full(b"stsz", &[0, 4, 10, 20, 30]), b"stsz"),
            (full(b"stsz", &[0, 3, 10, 20, 30]), b"stsc"),
            (full(b"stsc", &[1, 1, 3, 1]), b"stsc"),
            (full(b"stsc", &[1, 1, u32::MAX, 1]), b"stsc"),
            (full(b"stsc", &[1, 2, 4, 1]), b"stsc"),
            (full(b"stsc", &[2, 1, 2, 1]), b"stsc"),
            (full(b"stss", &[1, 0]), b"stss"),
            (full(b"stss", &[1, 5]), b"stss"),
            (full(b"ctts", &[1, 3, 0]), b"ctts"),
            (boxed(b"stz2", &[0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 4, 0x12, 0x34]), b"stz2"),
            (boxed(b"co64", &[0, 0, 0, 0, 0, 0, 0, 1, 255, 255, 255, 255, 255, 255, 255, 250]), b"co64"),
        ] {
            let film = Film { tables: [film().tables, vec![replaced]].concat(), offsets: *name != *b"co64", ..film() };
            assert_eq!(samples(&film).map(|_| ()), Err(Error::Damaged(*name)));
        }
    }

    #[test]
    fn sizes_in_fewer_bits_are_read() {
        for sizes in [vec![16, 0, 0, 0, 4, 0, 10, 0, 20, 0, 30, 0, 40], vec![8, 0, 0, 0, 4, 10, 20, 30, 40]] {
            let stz2 = boxed(b"stz2", &[vec![0, 0, 0, 0, 0, 0, 0], sizes].concat());
            let read = samples(&Film { tables: [film().tables, vec![stz2]].concat(), ..film() }).expect("is whole");
            assert_eq!(read.all().iter().map(|sample| sample.size).collect::<Vec<_>>(), [10, 20, 30, 40]);
        }
    }
}
