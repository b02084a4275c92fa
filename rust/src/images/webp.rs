//! WebP, lossy and lossless.

use std::io::Cursor;

use image_webp::WebPDecoder;

use super::compose::flatten_rgba;
use super::{Decoded, Limits, Orientation, animated, corrupt, zeroed};
use crate::border::Failure;

pub fn decode(data: &[u8], limits: Limits) -> Result<Decoded, Failure> {
    check_complete(data)?;
    let failed = |error: image_webp::DecodingError| corrupt("WebP", error);
    let mut decoder = WebPDecoder::new(Cursor::new(data)).map_err(failed)?;
    // Chunks are read into a buffer of the size that the file claims.
    decoder.set_memory_limit(data.len());
    if decoder.is_animated() {
        return Err(animated("WebP"));
    }
    let (width, height) = decoder.dimensions();
    limits.check(width, height)?;
    check_lossy_size(data, width, height)?;

    let channels = if decoder.has_alpha() { 4 } else { 3 };
    let mut pixels = zeroed(width, height, channels);
    decoder.read_image(&mut pixels).map_err(failed)?;
    let exif = decoder.exif_metadata().unwrap_or(None);
    Ok(Decoded {
        width,
        height,
        rgb: if channels == 4 {
            flatten_rgba(pixels)
        } else {
            pixels
        },
        orientation: Orientation::of_exif(exif.as_deref()),
    })
}

/// Without this, a file that ends within its EXIF data is decoded.
fn check_complete(data: &[u8]) -> Result<(), Failure> {
    let claimed = u32::from_le_bytes([data[4], data[5], data[6], data[7]]);
    // Some programs leave out the padding at the end.
    if u64::from(claimed) + 8 > data.len() as u64 + 1 {
        return Err(corrupt("WebP", "the data ends too early"));
    }
    Ok(())
}

/// The size of the image is given twice in an extended file, and the decoder compares the two only
/// after it has decoded a lossy image.
fn check_lossy_size(data: &[u8], width: u32, height: u32) -> Result<(), Failure> {
    let mut rest = &data[12..];
    while let Some((header, after)) = rest.split_at_checked(8) {
        let size = u32::from_le_bytes([header[4], header[5], header[6], header[7]]) as usize;
        if header.starts_with(b"VP8 ") {
            let side = |at: usize| {
                let low = after.get(at).copied().unwrap_or(0);
                let high = after.get(at + 1).copied().unwrap_or(0);
                u32::from(u16::from_le_bytes([low, high]) & 0x3fff)
            };
            if (side(6), side(8)) != (width, height) {
                return Err(corrupt("WebP", "its two sizes differ"));
            }
        }
        let padded = size.saturating_add(size & 1);
        rest = after.get(padded..).unwrap_or(&[]);
    }
    Ok(())
}
