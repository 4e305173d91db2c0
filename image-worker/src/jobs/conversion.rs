//! Converts images in formats that are not kept: uploads, as the [rendition](super::rendition) of no width, and what imports fetch
//! (docs/reference/assets.md#converted-formats).

use bytes::Bytes;
use decoder::{Made, Order, Work};
use domain::origin::Origin;
use raster::avif::{self, Kind};
use raster::xmp::{self, Properties};
use raster::{Format, HeaderError};
use serde::{Deserialize, Serialize};
use worker::decode::{header_of_made, refusal};
use worker::files::Content;
use worker::marks::marked;
use worker::{Error, ProgramRun, Reservation, Worker};

/// The header of an image that is converted.
#[derive(Debug)]
pub(super) enum Foreign {
    Avif(avif::Header),
    /// The program of the operator decodes it.
    Heif(avif::HeifHeader),
}

/// This process has no program for a HEIF. Another one, which was started with another configuration, may have one.
#[derive(Debug, thiserror::Error)]
#[error("an upload is a HEIF, and this process was started without CANVAS_HEIF_COMMAND")]
struct NoProgram;

impl Foreign {
    /// Reads the header from the first bytes of a file, of which [`avif::MAX_META_BYTES`] suffice.
    pub(super) fn probe(kind: Kind, head: &[u8]) -> Result<Self, HeaderError> {
        Ok(match kind {
            Kind::Avif => Self::Avif(avif::probe(head)?),
            Kind::Heif => Self::Heif(avif::probe_heif(head)?),
        })
    }

    /// Bytes of memory for the conversion, without the file.
    pub(super) fn memory_bytes(&self) -> u64 {
        match self {
            Self::Avif(header) => header.memory_bytes(),
            Self::Heif(header) => header.memory_bytes(),
        }
    }

    /// The packet with the origin that the metadata state. It is no mark of the service: the conversion says what the file said.
    fn stated_origin(&self, file: &[u8]) -> Option<String> {
        let packet = match self {
            Self::Avif(header) => avif::xmp(file, header)?,
            Self::Heif(header) => avif::xmp_of_heif(file, header)?,
        };
        let origin = Origin::from_file(&Properties::parse(&packet).digital_source_types)?;
        Some(xmp::packet(&origin.term.uri(), None))
    }

    /// Converts the file of this header. The inner error says what is wrong with it.
    pub(super) async fn convert(
        self,
        worker: &Worker,
        account: &str,
        memory: Reservation,
        file: Bytes,
    ) -> Result<Result<(Format, Content), String>, Error> {
        let (work, program) = match &self {
            Self::Avif(_) => (Convert { pixels_max: None }, None),
            Self::Heif(header) => {
                let program = worker.heif.clone().ok_or_else(|| Error::Own(NoProgram.into()))?;
                let program = ProgramRun { program, file_bytes: header.png_bytes() };
                (Convert { pixels_max: Some(header.pixels()) }, Some(program))
            }
        };
        let converted = memory.decode_by(program, Order::new(account, work, vec![file]), move |files, made| {
            let made = made.into_iter().next().unwrap_or_default();
            let format = header_of_made(&made)?.format;
            let packet = self.stated_origin(&files[0]);
            Ok::<_, Error>((format, Content::new(marked(made, packet.as_deref()))))
        });
        converted.await?.map_or_else(|why| Ok(Err(why)), |made| made.map(Ok))
    }
}

/// Makes a JPEG or a PNG of an AVIF, or of a PNG that a foreign program made of a file in another codec.
#[derive(Serialize, Deserialize)]
pub(crate) struct Convert {
    /// Pixels that the PNG has at most; absent for an AVIF.
    pixels_max: Option<u64>,
}

impl Work for Convert {
    const NAME: &'static str = "conversion";

    fn run(self, files: &[Bytes], _: &mut dyn FnMut(u32)) -> Made {
        let made = match self.pixels_max {
            None => avif::convert(&files[0]),
            Some(pixels_max) => avif::convert_decoded(&files[0], pixels_max),
        };
        Ok(vec![made.map_err(refusal)?.bytes])
    }
}
