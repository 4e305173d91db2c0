//! Messages on the socket: the number of parts, their lengths, and the parts. The first one is a head in JSON, the others
//! are files. Numbers are 64 bits in the order of the machine, because both ends are the same program.

use std::io::{Error, ErrorKind, Read, Result, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Maximum number of parts, far above that of any work.
const PARTS_MAX: u64 = 256;

/// Maximum size of a head in bytes. Texts of requests are far shorter.
pub(crate) const HEAD_MAX: u64 = 4 << 20;

/// Writes a message.
pub(crate) fn write(to: &mut impl Write, head: &impl Serialize, files: &[impl AsRef<[u8]>]) -> Result<()> {
    let head = serde_json::to_vec(head)?;
    let parts = || std::iter::once(&head[..]).chain(files.iter().map(AsRef::as_ref));
    let mut numbers = (parts().count() as u64).to_ne_bytes().to_vec();
    parts().for_each(|part| numbers.extend((part.len() as u64).to_ne_bytes()));
    // One call for what is short.
    numbers.extend(&head);
    to.write_all(&numbers)?;
    files.iter().try_for_each(|file| to.write_all(file.as_ref()))
}

/// Reads a message whose parts have at most `bytes_max` bytes together.
///
/// # Errors
///
/// `UnexpectedEof` if the other end is gone, `InvalidData` for anything but a message within the limits.
pub(crate) fn read<H: DeserializeOwned>(from: &mut impl Read, bytes_max: u64) -> Result<(H, Vec<Vec<u8>>)> {
    let count = number(from)?;
    if !(1..=PARTS_MAX).contains(&count) {
        return Err(invalid("wrong number of parts"));
    }
    let lengths = (0..count).map(|_| number(from)).collect::<Result<Vec<u64>>>()?;
    let sum = lengths.iter().try_fold(0_u64, |sum, length| sum.checked_add(*length));
    if lengths[0] > HEAD_MAX || sum.is_none_or(|sum| sum > bytes_max) {
        return Err(invalid("longer than permitted"));
    }
    let mut parts = lengths.into_iter().map(|length| part(from, length)).collect::<Result<Vec<_>>>()?.into_iter();
    let head = parts.next().unwrap_or_default();
    Ok((serde_json::from_slice(&head)?, parts.collect()))
}

fn number(from: &mut impl Read) -> Result<u64> {
    let mut bytes = [0; 8];
    from.read_exact(&mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}

fn part(from: &mut impl Read, length: u64) -> Result<Vec<u8>> {
    let capacity = usize::try_from(length).map_err(|_| invalid("longer than memory"))?;
    let mut part = Vec::new();
    part.try_reserve_exact(capacity)?;
    from.take(length).read_to_end(&mut part)?;
    if part.len() == capacity { Ok(part) } else { Err(ErrorKind::UnexpectedEof.into()) }
}

fn invalid(what: &'static str) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written() -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&mut bytes, &"head", &[&b"first"[..], b""]).expect("writes");
        bytes
    }

    #[test]
    fn a_message_comes_back() {
        let (head, files) = read::<String>(&mut &written()[..], u64::MAX).expect("reads");
        assert_eq!((head.as_str(), files), ("head", vec![b"first".to_vec(), Vec::new()]));
    }

    #[test]
    fn a_message_has_at_most_the_permitted_size() {
        // The head in quotation marks, and the file.
        let size = 6 + 5;
        for (bytes_max, fits) in [(size - 1, false), (size, true), (size + 1, true)] {
            assert_eq!(read::<String>(&mut &written()[..], bytes_max).is_ok(), fits, "{bytes_max}");
        }
    }

    #[test]
    fn a_head_has_at_most_four_mebibytes() {
        for (letters, fits) in [(HEAD_MAX - 3, true), (HEAD_MAX - 2, true), (HEAD_MAX - 1, false)] {
            let mut bytes = Vec::new();
            write(&mut bytes, &"x".repeat(letters as usize), &[b""; 0]).expect("writes");
            assert_eq!(read::<String>(&mut &bytes[..], u64::MAX).is_ok(), fits, "{letters}");
        }
    }

    #[test]
    fn a_message_has_at_most_256_parts() {
        for (files, fits) in [(254, true), (255, true), (256, false)] {
            let mut bytes = Vec::new();
            write(&mut bytes, &(), &vec![b"x"; files]).expect("writes");
            assert_eq!(read::<()>(&mut &bytes[..], u64::MAX).is_ok(), fits, "{files}");
        }
    }

    #[test]
    fn what_is_no_message_is_an_error() {
        let whole = written();
        for length in 0..whole.len() {
            let error = read::<String>(&mut &whole[..length], u64::MAX).expect_err("is cut off");
            assert_eq!(error.kind(), ErrorKind::UnexpectedEof, "{length}");
        }
        let claims = |numbers: &[u64]| numbers.iter().flat_map(|number| number.to_ne_bytes()).collect::<Vec<u8>>();
        for numbers in [&[0][..], &[u64::MAX], &[2, 1, u64::MAX], &[3, 1, u64::MAX / 2, u64::MAX / 2 + 2]] {
            assert!(read::<()>(&mut &claims(numbers)[..], 1 << 20).is_err(), "{numbers:?}");
        }
        // Memory for what is only claimed is not there.
        assert!(read::<()>(&mut &claims(&[2, 1, u64::MAX - 1])[..], u64::MAX).is_err());
    }
}
