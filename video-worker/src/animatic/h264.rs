//! H.264 by OpenH264: planes in, the samples of a track out (ITU-T H.264; ISO/IEC 14496-15).

use openh264::encoder::{
    BitRate, Complexity, EncoderConfig, FrameRate, FrameType, IntraFramePeriod, QpRange, RateControlMode,
    SpsPpsStrategy, UsageType, VuiConfig,
};
use openh264::formats::YUVSlices;
use openh264::{OpenH264API, Timestamp};
use raster::Size;
use raster::motion::Planes;

use super::mp4::{Sample, Track};

/// Quantisers (ITU-T H.264, table 8-15's QP), finest first: a film is coded with one of them throughout, so that no frame is
/// seen to be worse than its neighbours. The finest is near transparent; the coarsest holds even noise within the rate.
pub const QUANTISERS: [u8; 5] = [22, 27, 32, 37, 42];

/// The most bits a second for each pixel of a frame: enough for any picture that moves slowly, and for the longest film that
/// is offered less than a result may have.
const BITS_PER_PIXEL_SECOND: u64 = 12;

/// Seconds between frames that a player can jump to.
const KEY_FRAME_SECONDS: u32 = 2;

/// NAL unit types (ITU-T H.264, table 7-1).
const SEQUENCE_PARAMETERS: u8 = 7;
const PICTURE_PARAMETERS: u8 = 8;

/// Why a frame was not encoded.
#[derive(Debug, thiserror::Error)]
pub enum EncoderError {
    /// The library said so.
    #[error("OpenH264 refused")]
    Library(#[from] openh264::Error),
    /// The library knows no such option.
    #[error("OpenH264 took no option")]
    Option,
    /// A frame came out without data.
    #[error("frame {0} was skipped")]
    Skipped(u32),
    /// No parameter sets came out.
    #[error("there are no parameter sets")]
    NoParameters,
}

/// The most bytes that `seconds` of frames of a size are to take; a second more than that is let pass, for key frames.
pub fn bytes_max(size: Size, seconds: f64) -> u64 {
    // A film of two minutes has far less than 2^52.
    (size.pixels() as f64 * BITS_PER_PIXEL_SECOND as f64 / 8.0 * (seconds + 1.0)) as u64
}

/// Encodes frames of one size on the calling thread.
pub struct Encoder {
    encoder: openh264::encoder::Encoder,
    frames_per_second: u32,
}

impl Encoder {
    /// An encoder of frames of `size`, whose sides are even, with one quantiser for all.
    ///
    /// # Errors
    /// [`EncoderError::Library`] and `Option`.
    pub fn new(size: Size, frames_per_second: u32, quantiser: u8) -> Result<Self, EncoderError> {
        let bit_rate = u32::try_from(size.pixels() * BITS_PER_PIXEL_SECOND).unwrap_or(u32::MAX);
        let config = EncoderConfig::new()
            .usage_type(UsageType::CameraVideoRealTime)
            .bitrate(BitRate::from_bps(bit_rate))
            .max_frame_rate(FrameRate::from_hz(frames_per_second as f32))
            .rate_control_mode(RateControlMode::Quality)
            // The rate control knows no other way to leave the quantiser alone.
            .qp(QpRange::new(quantiser, quantiser))
            .complexity(Complexity::Medium)
            // Every frame that was asked for is there.
            .skip_frames(false)
            .intra_frame_period(IntraFramePeriod::from_num_frames(KEY_FRAME_SECONDS * frames_per_second))
            // A dissolve is no change of scene.
            .scene_change_detect(false)
            // Takes what hardly moves for what stands still: slow moves would jerk.
            .background_detection(false)
            .adaptive_quantization(false)
            // One set of parameters for the whole track, which has room for one.
            .sps_pps_strategy(SpsPpsStrategy::ConstantId)
            // More threads mean more slices, and their number would depend on the machine.
            .num_threads(1)
            .vui(VuiConfig::bt709());
        let mut encoder = openh264::encoder::Encoder::with_api_config(OpenH264API::from_source(), config)?;
        silence(&mut encoder)?;
        Ok(Self { encoder, frames_per_second })
    }

    /// Encodes frame number `index`, from 0, and adds it to `track`.
    ///
    /// # Errors
    /// [`EncoderError`].
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

/// Keeps the library from writing to standard error. The wrapper does so, too, but only after the library has judged the
/// configuration, which it warns of: without skipped frames it cannot promise the bit rate, and is not asked to.
fn silence(encoder: &mut openh264::encoder::Encoder) -> Result<(), EncoderError> {
    let mut level: i32 = openh264_sys2::WELS_LOG_QUIET;
    // SAFETY: the option is one of those that may be set before the encoder is initialised, and reads four bytes.
    let refused = unsafe {
        encoder.raw_api().set_option(openh264_sys2::ENCODER_OPTION_TRACE_LEVEL, std::ptr::from_mut(&mut level).cast())
    };
    if refused == 0 { Ok(()) } else { Err(EncoderError::Option) }
}

/// A NAL unit without the start code of a byte stream (ITU-T H.264, annex B): zeros, then a one.
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
