//! Decodes PNG, JPEG, WebP and GIF images to 8-bit RGB, as Pillow's `convert("RGB")` does, except that
//! transparency is composed on white. Sizes are checked before pixels are allocated.

mod compose;
mod exif;
mod gif;
mod jpeg;
mod png;
#[cfg(test)]
mod tests;
mod webp;

pub use exif::Orientation;

use crate::border::Failure;

#[derive(Clone, Copy)]
pub struct Limits {
    pub pixels: u64,
    pub side: u32,
}

/// Row-major RGB, before the orientation is applied.
#[derive(Debug)]
pub struct Decoded {
    pub width: u32,
    pub height: u32,
    pub rgb: Vec<u8>,
    pub orientation: Orientation,
}

/// Decodes a file whose format is recognised by its first bytes.
pub fn decode(data: &[u8], limits: Limits) -> Result<Decoded, Failure> {
    if data.starts_with(b"\x89PNG\r\n\x1a\n") {
        png::decode(data, limits)
    } else if data.starts_with(b"\xff\xd8\xff") {
        jpeg::decode(data, limits)
    } else if data.starts_with(b"RIFF") && data.get(8..12) == Some(b"WEBP") {
        webp::decode(data, limits)
    } else if data.starts_with(b"GIF87a") || data.starts_with(b"GIF89a") {
        gif::decode(data, limits)
    } else {
        Err(Failure::refused(
            "the data is not a PNG, JPEG, WebP or GIF image",
        ))
    }
}

impl Limits {
    fn check(self, width: u32, height: u32) -> Result<(), Failure> {
        if width == 0 || height == 0 {
            return Err(Failure::refused(format!(
                "the image is {width} x {height} pixels; both sides must be at least 1"
            )));
        }
        if width.max(height) > self.side {
            return Err(Failure::refused(format!(
                "the image is {width} x {height} pixels; a side may have at most {}",
                self.side
            )));
        }
        if u64::from(width) * u64::from(height) > self.pixels {
            return Err(Failure::refused(format!(
                "the image is {width} x {height} pixels; an image may have at most {}",
                self.pixels
            )));
        }
        Ok(())
    }
}

fn corrupt(format: &str, reason: impl ToString) -> Failure {
    Failure::refused(format!(
        "the {format} image is corrupt: {}",
        reason.to_string()
    ))
}

fn animated(format: &str) -> Failure {
    Failure::refused(format!(
        "the {format} image is animated; send a single frame"
    ))
}

/// A buffer for `width` x `height` pixels. The limits were checked, so the size fits. The pages of a
/// zeroed buffer take no memory until they are written, so a lying header costs nothing.
fn zeroed(width: u32, height: u32, channels: usize) -> Vec<u8> {
    vec![0; width as usize * height as usize * channels]
}
