//! PNG, row by row, so that only the RGB pixels are held in memory.

use std::io::Cursor;

use ::png::{BitDepth, ColorType, Decoder, InterlaceInfo, Limits as PngLimits, Transformations};

use super::compose::{on_white, rgba_on_white};
use super::{Decoded, Limits, Orientation, animated, corrupt, zeroed};
use crate::border::Failure;

/// Of one allocation for a row or a chunk.
const ALLOCATION_LIMIT: usize = 64 << 20;

pub fn decode(data: &[u8], limits: Limits) -> Result<Decoded, Failure> {
    let failed = |error: ::png::DecodingError| corrupt("PNG", error);
    let mut decoder = Decoder::new_with_limits(
        Cursor::new(data),
        PngLimits {
            bytes: ALLOCATION_LIMIT,
        },
    );
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    let header = decoder.read_header_info().map_err(failed)?;
    let (width, height) = (header.width, header.height);
    limits.check(width, height)?;
    // As Pillow: 16-bit grey is cut off at 255, and its transparent value is ignored.
    let is_wide_grey =
        header.color_type == ColorType::Grayscale && header.bit_depth == BitDepth::Sixteen;
    decoder.set_transformations(if is_wide_grey {
        Transformations::IDENTITY
    } else {
        Transformations::EXPAND
    });

    let mut reader = decoder.read_info().map_err(failed)?;
    let frames = reader.info().animation_control.map(|all| all.num_frames);
    if frames.is_some_and(|frames| frames > 1) {
        return Err(animated("PNG"));
    }
    let (color, depth) = reader.output_color_type();
    let mut rgb = zeroed(width, height, 3);
    let stride = 3 * width as usize;
    let mut next_row = 0;
    let mut pass_row = vec![0; stride];
    let pixel_bytes = color.samples() * if depth == BitDepth::Sixteen { 2 } else { 1 };
    while let Some(row) = reader.next_interlaced_row().map_err(failed)? {
        match row.interlace() {
            InterlaceInfo::Null(_) => {
                let out = &mut rgb[next_row * stride..][..stride];
                write_rgb(row.data(), color, depth, out)?;
                next_row += 1;
            }
            InterlaceInfo::Adam7(pass) => {
                let out = &mut pass_row[..3 * (row.data().len() / pixel_bytes)];
                write_rgb(row.data(), color, depth, out)?;
                ::png::expand_interlaced_row(&mut rgb, stride, out, pass, 24);
            }
        }
    }
    // EXIF data may follow the pixels. Damage after the pixels does no harm.
    let _ = reader.finish();
    let orientation = Orientation::of_exif(reader.info().exif_metadata.as_deref());
    Ok(Decoded {
        width,
        height,
        rgb,
        orientation,
    })
}

fn write_rgb(row: &[u8], color: ColorType, depth: BitDepth, out: &mut [u8]) -> Result<(), Failure> {
    match (color, depth == BitDepth::Sixteen) {
        (ColorType::Grayscale, false) => write_pixels::<1>(row, out, |v| [v[0]; 3]),
        (ColorType::Grayscale, true) => {
            write_pixels::<2>(row, out, |v| [if v[0] == 0 { v[1] } else { 255 }; 3])
        }
        (ColorType::GrayscaleAlpha, false) => {
            write_pixels::<2>(row, out, |v| [on_white(v[0], v[1]); 3])
        }
        (ColorType::GrayscaleAlpha, true) => {
            write_pixels::<4>(row, out, |v| [on_white(v[0], v[2]); 3])
        }
        (ColorType::Rgb, false) => out.copy_from_slice(row),
        (ColorType::Rgb, true) => write_pixels::<6>(row, out, |v| [v[0], v[2], v[4]]),
        (ColorType::Rgba, false) => write_pixels::<4>(row, out, rgba_on_white),
        (ColorType::Rgba, true) => {
            write_pixels::<8>(row, out, |v| rgba_on_white(&[v[0], v[2], v[4], v[6]]))
        }
        (ColorType::Indexed, _) => return Err(corrupt("PNG", "the palette is missing")),
    }
    Ok(())
}

/// Turns pixels of `BYTES` bytes into RGB.
fn write_pixels<const BYTES: usize>(
    row: &[u8],
    out: &mut [u8],
    rgb: impl Fn(&[u8; BYTES]) -> [u8; 3],
) {
    let pixels = row.as_chunks::<BYTES>().0;
    for (pixel, out) in pixels.iter().zip(out.as_chunks_mut::<3>().0) {
        *out = rgb(pixel);
    }
}
