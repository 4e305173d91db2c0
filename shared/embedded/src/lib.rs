//! The embedded generation runtime: images, texts and videos without a provider key, a GPU or a network
//! (`docs/adr/0011-embedded-runtime.md`).
//!
//! | module | model | result |
//! | --- | --- | --- |
//! | [`image`] | `sketch` | a labeled storyboard frame: references in a grid by role, a palette taken from them, the prompt as text |
//! | [`text`] | `outline` | a text in the form that the prompt asks for, made of the inputs by fixed rules |
//! | [`video`] | `animatic` | an H.264 MP4 that moves from the first frame to the last, with the prompt as caption |
//!
//! **Guarantee.** All functions are pure: they convert bytes and parameters to bytes, without I/O, clock or threads, and
//! give equal output for equal input. Foreign bytes and texts never cause a panic. The memory that a call needs is known
//! before it is made ([`image::memory_bytes`], [`video::Brief::memory_bytes`]).
//!
//! **Mechanism.** Pixels are decoded, resampled, blended and encoded by the crate `raster`. This crate decides what is
//! shown and where. OpenH264 encodes the frames of a video.
//!
//! **Reason.** A new installation can generate, and every path of the contract can be tested without a provider. A worker
//! that was interrupted makes the result again and gets the same bytes.

pub mod image;
pub mod text;
pub mod video;

#[cfg(test)]
mod testing;
