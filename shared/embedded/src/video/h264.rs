//! Encodes H.264 with OpenH264: takes YUV planes and adds samples to a track (ITU-T H.264; ISO/IEC
//! 14496-15).

use openh264::encoder::{
    BitRate, Complexity, EncoderConfig, FrameRate, FrameType, IntraFramePeriod, QpRange, RateControlMode,
    SpsPpsStrategy, UsageType, VuiConfig,
};
use openh264::formats::YUVSlices;
use openh264::{OpenH264API, Timestamp};
use raster::Size;
use raster::motion::Planes;

use super::mp4::{Sample, Track};

/// Quantization parameters (QP in ITU-T H.264, table 8-15), finest first. A video is encoded with
/// one of them throughout, so that quality does not vary between frames. The finest is nearly
/// transparent; the coarsest keeps even noise within the maximum rate.
pub const QUANTIZERS: [u8; 5] = [22, 27, 32, 37, 42];

/// The maximum bit rate per pixel of a frame. It is sufficient for any slowly moving image, and
/// keeps the longest video below the maximum size of a result.
const BITS_PER_PIXEL_SECOND: u64 = 12;

/// Seconds between key frames.
const KEY_FRAME_SECONDS: u32 = 2;

/// NAL unit types (ITU-T H.264, table 7-1).
const SEQUENCE_PARAMETERS: u8 = 7;
const PICTURE_PARAMETERS: u8 = 8;

/// The reason why a frame was not encoded.
#[derive(Debug, thiserror::Error)]
pub enum EncoderError {
    /// OpenH264 returned an error.
    #[error("OpenH264 failed")]
    Library(#[from] openh264::Error),
    /// OpenH264 rejected an option.
    #[error("OpenH264 rejected an option")]
    Option,
    /// OpenH264 returned no data for a frame.
    #[error("frame {0} was skipped")]
    Skipped(u32),
    /// OpenH264 returned no parameter sets.
    #[error("OpenH264 returned no parameter sets")]
    NoParameters,
}

/// The maximum size in bytes of `seconds` of video. It allows for one extra second, because of key
/// frames.
pub fn bytes_max(size: Size, seconds: f64) -> u64 {
    // The product is far below 2^52, so the conversion is exact.
    (size.pixels() as f64 * BITS_PER_PIXEL_SECOND as f64 / 8.0 * (seconds + 1.0)) as u64
}

/// Encodes frames of one size on the calling thread.
pub struct Encoder {
    encoder: openh264::encoder::Encoder,
    frames_per_second: u32,
}

impl Encoder {
    /// Creates an encoder for frames of `size`, whose sides must be even, with a constant QP.
    ///
    /// # Errors
    ///
    /// [`EncoderError::Library`] and [`EncoderError::Option`].
    pub fn new(size: Size, frames_per_second: u32, quantizer: u8) -> Result<Self, EncoderError> {
        let bit_rate = u32::try_from(size.pixels() * BITS_PER_PIXEL_SECOND).unwrap_or(u32::MAX);
        let config = EncoderConfig::new()
            .usage_type(UsageType::CameraVideoRealTime)
            .bitrate(BitRate::from_bps(bit_rate))
            .max_frame_rate(FrameRate::from_hz(frames_per_second as f32))
            .rate_control_mode(RateControlMode::Quality)
            // The only way to keep the rate control from changing the QP.
            .qp(QpRange::new(quantizer, quantizer))
            .complexity(Complexity::Medium)
            // Every frame must be encoded.
            .skip_frames(false)
            .intra_frame_period(IntraFramePeriod::from_num_frames(KEY_FRAME_SECONDS * frames_per_second))
            // A dissolve is not a scene change.
            .scene_change_detect(false)
            // Background detection treats slow motion as static, which would make it jerky.
            .background_detection(false)
            .adaptive_quantization(false)
            // One parameter set for the whole track, because the file contains only one.
            .sps_pps_strategy(SpsPpsStrategy::ConstantId)
            // More threads mean more slices, so the output would depend on the machine.
            .num_threads(1)
            .vui(VuiConfig::bt709());
        let mut encoder = openh264::encoder::Encoder::with_api_config(OpenH264API::from_source(), config)?;
        silence(&mut encoder)?;
        Ok(Self { encoder, frames_per_second })
    }

    /// Encodes frame number `index`, from 0, and adds it to `track`.
    ///
    /// # Errors
    ///
    /// [`EncoderError`] if OpenH264 fails or returns no data.
    pub fn encode(&mut self, planes: &Planes, index: u32, track: &mut Track) -> Result<(), EncoderError> {
        let width = planes.size().width as usize;
        let [luma, blue, red] = planes.planes();
        let dimensions = (width, planes.size().height as usize);
        let source = YUVSlices::new((luma, blue, red), dimensions, (width, width / 2, width / 2));
        let at = Timestamp::from_millis(u64::from(index) * 1000 / u64::from(self.frames_per_second));
        let stream = self.encoder.encode_at(&source, at)?;
        let is_key = matches!(stream.frame_type(), FrameType::IDR);
        let mut sample = Sample::new(track, is_key);
        for layer in (0..stream.num_layers()).filter_map(|index| stream.layer(index)) {
            for unit in (0..layer.nal_count()).filter_map(|index| layer.nal_unit(index)) {
                let unit = without_start_code(unit);
                match unit.first().map(|header| header & 0x1f) {
                    None => {}
                    Some(SEQUENCE_PARAMETERS) => sample.set_sequence_parameters(unit),
                    Some(PICTURE_PARAMETERS) => sample.set_picture_parameters(unit),
                    Some(_) => sample.push(unit),
                }
            }
        }
        if sample.finish() { Ok(()) } else { Err(EncoderError::Skipped(index)) }
    }
}

/// Disables the library's output to standard error. The wrapper disables it too, but only after the
/// library has validated the configuration. The library then warns that it cannot guarantee the bit
/// rate without skipping frames, which is intended.
fn silence(encoder: &mut openh264::encoder::Encoder) -> Result<(), EncoderError> {
    let mut level: i32 = openh264_sys2::WELS_LOG_QUIET;
    // SAFETY: this option may be set before the encoder is initialized, and the library reads four
    // bytes from the pointer.
    let refused = unsafe {
        encoder.raw_api().set_option(openh264_sys2::ENCODER_OPTION_TRACE_LEVEL, std::ptr::from_mut(&mut level).cast())
    };
    if refused == 0 { Ok(()) } else { Err(EncoderError::Option) }
}

/// A NAL unit without the start code of a byte stream (ITU-T H.264, annex B): zeros followed by a
/// one.
fn without_start_code(unit: &[u8]) -> &[u8] {
    let zeros = unit.iter().take_while(|byte| **byte == 0).count();
    match unit.get(zeros) {
        Some(1) if zeros >= 2 => &unit[zeros + 1..],
        _ => unit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_codes_of_both_lengths_are_left_out_and_nothing_else() {
        assert_eq!(without_start_code(&[0, 0, 0, 1, 0x67, 1]), [0x67, 1]);
        assert_eq!(without_start_code(&[0, 0, 1, 0x65]), [0x65]);
        assert_eq!(without_start_code(&[0x65, 0, 0, 1]), [0x65, 0, 0, 1]);
        assert_eq!(without_start_code(&[0, 1, 7]), [0, 1, 7]);
        assert_eq!(without_start_code(&[0, 0]), [0, 0]);
    }
}
