//! JPEG: baseline and progressive, grey, YCbCr, RGB, CMYK and YCCK.

use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::{Decoded, Limits, Orientation, corrupt, zeroed};
use crate::border::Failure;

/// Every scan of a progressive file passes over all blocks, and files in use have about ten.
const MOST_SCANS: usize = 64;

pub fn decode(data: &[u8], limits: Limits) -> Result<Decoded, Failure> {
    let failed = |error: zune_jpeg::errors::DecodeErrors| corrupt("JPEG", format!("{error:?}"));
    let options = DecoderOptions::default()
        .set_strict_mode(true)
        // The limits are checked below, so that all formats report them alike.
        .set_max_width(usize::from(u16::MAX))
        .set_max_height(usize::from(u16::MAX))
        .jpeg_set_max_scans(MOST_SCANS)
        .jpeg_set_out_colorspace(ColorSpace::RGB);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(data), options);
    decoder.decode_headers().map_err(failed)?;
    let (width, height) = decoder
        .dimensions()
        .ok_or_else(|| corrupt("JPEG", "the header is missing"))?;
    let (width, height) = (width as u32, height as u32);
    limits.check(width, height)?;
    check_complete(data, width, height)?;

    let mut rgb = zeroed(width, height, 3);
    decoder.decode_into(&mut rgb).map_err(failed)?;
    let orientation = Orientation::of_exif(decoder.exif().map(Vec::as_slice));
    Ok(Decoded {
        width,
        height,
        rgb,
        orientation,
    })
}

/// The decoder fills missing rows at the end with grey, and would fill a large image from a header alone.
fn check_complete(data: &[u8], width: u32, height: u32) -> Result<(), Failure> {
    let blocks = u64::from(width.div_ceil(8)) * u64::from(height.div_ceil(8));
    let mut scans = data[first_scan(data)..].windows(2);
    // A block takes at least one bit.
    if !scans.any(|marker| marker == [0xff, 0xd9]) || 8 * (data.len() as u64) < blocks {
        return Err(corrupt("JPEG", "the data ends too early"));
    }
    Ok(())
}

/// Where the compressed pixels begin. The headers before it may contain a thumbnail, with an end marker.
fn first_scan(data: &[u8]) -> usize {
    let mut at = 2;
    while let Some(&[first, marker, high, low]) = data.get(at..at + 4) {
        at += match (first, marker) {
            (0xff, 0xda) => return at,
            (0xff, 0xff) => 1,
            (0xff, _) => 2 + usize::from(u16::from_be_bytes([high, low])),
            _ => 1,
        };
    }
    2
}
